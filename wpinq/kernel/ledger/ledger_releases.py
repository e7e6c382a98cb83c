"""What a debit records of each release for its account, and the releases of an account as its debits tell them.

It stands in an entry's content beside what carries the promise: versions that know nothing of it pass over it, and
entries from before it have none. Nothing that is charged depends on it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel.ledger.nano_epsilon import from_nano, to_nano
from wpinq.kernel.ledger.schema import LIMIT
from wpinq.measure.delta_reading import Charged
from wpinq.plan.demand import PartKey

UNRECORDED = ""
"""The noise of what was released before it was recorded."""

_FINEST = 10**18
_EXACT = re.compile(r"[0-9]{1,4000}(/[1-9][0-9]{0,3999})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms one measurement is released: the noise, how far a unit moves it, what it costs by itself.

    Attributes
    ----------
    noise : str
        The kind of noise.
    scale : float
        Its scale, in the units that it is drawn in.
    moves : Mapping
        Account -> source -> the bound on how far one unit of weight there moves the output.
    costs : Mapping
        Account -> the epsilon that it is charged for this measurement alone.
    parts : tuple
        The chain of parts that it reads nothing beside, the outermost first, with the demand that it adds to each.
    """

    noise: str
    scale: float
    moves: Mapping[str, Mapping[str, Fraction]]
    costs: Mapping[str, Fraction]
    parts: tuple[tuple[PartKey, Fraction], ...]


def recorded(terms: Mapping[str, Terms], account: str, named: Callable[[str], str]) -> dict[str, Any]:
    """What a debit from an account says of its releases: nothing, where no terms are known.

    `named` says what digests and partitions are called on the side of the debit.
    """
    if not terms:
        return {}
    found = {named(digest): _written(each, account, named) for digest, each in terms.items() if account in each.costs}
    return {"releases": found}


def _written(terms: Terms, account: str, named: Callable[[str], str]) -> dict[str, Any]:
    written: dict[str, Any] = {"noise": terms.noise, "scale": terms.scale, "epsilon": to_nano(terms.costs[account])}
    written["moves"] = {source: _text(bound) for source, bound in terms.moves[account].items()}
    if terms.parts:
        written["parts"] = [[named(partition), part, str(demand)] for (partition, part), demand in terms.parts]
    return written


def _text(bound: Fraction) -> str:
    """A bound as text, rounded up where its fraction is long: entries stay small, whatever the plan."""
    return str(bound if bound.denominator < _FINEST else Fraction(math.ceil(bound * _FINEST), _FINEST))


def read(amount: int, content: Mapping[str, Any]) -> tuple[Charged, ...] | None:
    """The releases that a debit records, or None where it is from before there were records.

    Raises
    ------
    LedgerError, ValueError, LookupError, TypeError, AttributeError
        When this is not what a debit can have recorded: other measurements than it paid for, a part that it raised no
        demand of, or releases that cost less each by itself than was debited for them together.
    """
    if "releases" not in content:
        return None
    raised = {(partition, part): _exact(demand) for partition, part, demand in content["parts"]}
    releases = content["releases"]
    found = [_read(releases[digest], raised) for digest in sorted(releases)]
    if not releases.keys() <= content["measurements"].keys():
        raise LedgerError("what is recorded was not paid for")
    if sum(written["epsilon"] for written in releases.values()) < amount:
        raise LedgerError("more was debited than all releases cost")
    return tuple(found)


def _read(written: Mapping[str, Any], raised: Mapping[PartKey, Fraction]) -> Charged:
    noise, scale, epsilon = written["noise"], written["scale"], written["epsilon"]
    parts = [((partition, part), _exact(demand)) for partition, part, demand in written.get("parts", [])]
    sound = type(noise) is str and type(scale) is float and 0 < scale < math.inf
    sound = sound and type(epsilon) is int and 0 < epsilon < LIMIT
    sound = sound and all(_exact(bound) > 0 for bound in written["moves"].values())
    # The demand of the innermost part always rises, that of an outer one only where the largest part does.
    sound = sound and all(raised[key] >= demand > 0 for key, demand in parts[-1:])
    if not sound:
        raise LedgerError("no release is recorded so")
    return Charged(noise, from_nano(epsilon), tuple(key for key, _ in parts))


def charged(debits: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Charged]:
    """The releases of an account, from the amount and the content of its debits; raises as `read`.

    Of what was not recorded the debit is known: the worst case of its amount. But over parts of partitions an amount is
    only what the largest rose by. So the debits over parts, up to the last that was not recorded, count as one release
    of all their amounts: that is what they lost at most, whatever the parts.
    """
    known = [read(amount, content) for amount, content in debits]
    unknown = [place for place, (_, content) in enumerate(debits) if known[place] is None and content["parts"]]
    last, pooled = max(unknown, default=-1), 0
    for place, ((amount, content), releases) in enumerate(zip(debits, known, strict=True)):
        if content["parts"] and place <= last:
            pooled += amount
        elif releases is None:
            yield Charged(UNRECORDED, from_nano(amount))
        else:
            yield from releases
    yield Charged(UNRECORDED, from_nano(pooled))


@lru_cache(maxsize=1024)
def _exact(text: object) -> Fraction:
    """A number as `str(Fraction)` writes it; never a power of ten, of which a few letters can ask for gigabytes."""
    if not isinstance(text, str) or _EXACT.fullmatch(text) is None:
        raise LedgerError("no number is recorded so")
    return Fraction(text)
