"""Debits: what of a batch is new, what that costs, and what is recorded of it.

There are two sides. The sources pay once for what anybody asks for. An analyst who is not trusted has accounts within
those of the sources, and there pays what the release would cost if nobody else had asked for anything: the digests,
the partitions and the accounts of that side have the analyst's name behind an `@`, which is in no other name, so that
neither side can be taken for the other. `docs/proofs/analysts.md` has the proof.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.errors import BudgetExceeded, LedgerError, SourceExhausted
from wpinq.kernel.ledger import ledger_releases
from wpinq.kernel.ledger import ledger_tables as tables
from wpinq.kernel.ledger.chain import decimal_epsilon
from wpinq.kernel.ledger.ledger_tables import PartsOf, Price, Pricing

MARK = "@"
"""What stands between a name and the analyst whose it is."""

EXHAUSTED = (
    "a source that this needs has too little budget left, whoever spent it, and nothing was spent: ask the curator"
)
"""The one refusal that hangs on what others asked: the same for all, without a name or an amount."""

_ANALYST = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)


def check_analyst(name: object) -> str:
    """The name of an analyst, or a refusal."""
    if not isinstance(name, str) or _ANALYST.fullmatch(name) is None:
        raise LedgerError(
            'an analyst is named by up to 64 ASCII letters, digits and "_", with a letter first, such as "alice"'
        )
    return name


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose digests, partitions and accounts a debit is about: those of the sources, or an analyst's within them.

    Attributes
    ----------
    analyst : str, optional
        The analyst; None for the sources.
    """

    analyst: str | None = None

    def __post_init__(self) -> None:
        if self.analyst is not None:  # an empty name is no name, and would be that of the sources
            check_analyst(self.analyst)

    def named(self, name: str) -> str:
        """What a digest, a partition or an account is called on this side."""
        return f"{name}{MARK}{self.analyst}" if self.analyst else name

    def unpaid(self, connection: sqlite3.Connection, digests: Iterable[str]) -> frozenset[str]:
        """The digests that this side never paid for."""
        return frozenset(each for each in digests if tables.measurement_id(connection, self.named(each)) is None)

    def priced(self, new: frozenset[str], price: Price, demands: PartsOf) -> Pricing:
        """What it costs this side that these are new, in names that both sides share."""
        return price(new, lambda partition: demands(self.named(partition))) if new else Pricing({}, {})

    def balances(self, accounts: Iterable[tables.Account]) -> dict[str, tables.Account]:
        """Those of all accounts that are of this side, by the names that both sides share."""
        split = ((each.name.partition(MARK), each) for each in accounts)
        return {name: each for (name, _, analyst), each in split if analyst == (self.analyst or "")}


@dataclass(frozen=True, slots=True)
class Recorded:
    """An entry that a debit appends.

    Attributes
    ----------
    account : str
        Which is charged.
    charge : int
        Nano-epsilon.
    content : dict
        What the entry says.
    first : int
        How many measurements it is the first to pay for.
    """

    account: str
    charge: int
    content: dict[str, Any]
    first: int


def settled(
    connection: sqlite3.Connection,
    measurements: Mapping[str, str],
    price: Price,
    demands: PartsOf,
    said: Mapping[str, str],
    analyst: str | None,
) -> tuple[frozenset[str], list[Recorded]]:
    """What of a batch is new to the sources, and what is to be recorded so that all who pay for it have paid.

    Parameters
    ----------
    connection : Connection
        In the transaction of the debit.
    measurements : Mapping
        Digest -> public description.
    price : callable
        What new digests cost.
    demands : callable
        The demands on a partition, as they are stored.
    said : Mapping
        What the caller says beside the debit.
    analyst : str or None
        Who asks; None where that is nobody but the curator.

    Raises
    ------
    BudgetExceeded, LedgerError
        As `check_affordable`: of the analyst's side first.
    """
    recorded: list[Recorded] = []
    new: frozenset[str] = frozenset()
    for side in (Payer(),) if analyst is None else (Payer(analyst), Payer()):
        new = side.unpaid(connection, measurements)
        if new:
            pricing = side.priced(new, price, demands)
            check_affordable(connection, side, pricing.charges, analyst)
            bought = {digest: measurements[digest] for digest in new}
            # the sources first, so that there is nothing that an analyst alone has paid for
            recorded = [*entries(connection, side, pricing, bought, said), *recorded]
    return new, recorded


def entries(
    connection: sqlite3.Connection,
    side: Payer,
    pricing: Pricing,
    descriptions: Mapping[str, str],
    said: Mapping[str, str],
) -> Iterator[Recorded]:
    """What a side records of what it affords: an entry for each account. `descriptions` are of what is new."""
    parts = {(side.named(partition), part): demand for (partition, part), demand in pricing.parts.items()}
    content = {
        "measurements": {side.named(digest): " ".join(text.split()) for digest, text in descriptions.items()},
        "parts": raised(connection, parts),
        **said,
    }
    first = len(descriptions)
    for account, charge in sorted(pricing.charges.items()):
        releases = ledger_releases.recorded(pricing.terms, account, side.named)
        yield Recorded(side.named(account), charge, content | releases, first)
        first = 0


def check_affordable(
    connection: sqlite3.Connection, side: Payer, charges: Mapping[str, int], asker: str | None
) -> None:
    """Refuse charges that a side cannot pay.

    Parameters
    ----------
    connection : Connection
        In the transaction of the debit.
    side : Payer
        Who is to pay.
    charges : Mapping
        Account -> nano-epsilon, in names that both sides share.
    asker : str or None
        The analyst who asked; None where nobody but the curator did.

    Raises
    ------
    BudgetExceeded
        Naming each account that lacks budget; `SourceExhausted`, without a word of them, where the sources lack it and
        an analyst asked.
    LedgerError
        When there is no such account, or the charges are none.
    """
    if not charges:
        raise LedgerError("a debit must name every source that it uses, with 0 where nothing more is due")
    short = []
    for name, charge in sorted(charges.items()):
        account = tables.find_account(connection, side.named(name))
        if account is None and side.analyst:
            raise LedgerError(no_budget(side.analyst, name))
        account = account or tables.get_account(connection, name)
        if isinstance(charge, bool) or not isinstance(charge, int) or charge < 0:
            raise LedgerError(f"the charge to {name!r} must be an integer of nano-epsilon, at least 0")
        if charge > account.remaining:
            short.append(
                f"{name!r} needs {decimal_epsilon(charge)} and has {decimal_epsilon(account.remaining)} left "
                f"of {decimal_epsilon(account.budget)}"
            )
    if short and asker and not side.analyst:
        raise SourceExhausted(EXHAUSTED)
    if short:
        whose = f"the budget of {side.analyst}" if side.analyst else "the budget"
        raise BudgetExceeded(
            f"{whose} does not cover the bill, and nothing was spent: {'; '.join(short)}. "
            "Lower epsilon or ask for less, or have the curator raise the budget"
        )


def no_budget(analyst: str, account: str) -> str:
    """What is said where an analyst has no account within an account: the same whether or not there is that."""
    return f"{analyst} has no budget for {account!r}: the curator gives one"


def raised(connection: sqlite3.Connection, parts: Mapping[tuple[str, str], Fraction]) -> list[list[str]]:
    """The parts whose demand rises, as partition, part and demand."""
    stored = {partition: tables.demands(connection, partition) for partition in sorted({pair[0] for pair in parts})}
    rising = []
    for (partition, part), demand in sorted(parts.items()):
        tables.check_text("the digest of a partition", partition)
        tables.check_text("the digest of a part", part)
        before = stored[partition].get(part, Fraction(0))
        if isinstance(demand, bool) or not isinstance(demand, (int, Fraction)) or demand < before:
            raise LedgerError("the demand of a part is a Fraction that never falls: add to the stored demand")
        if demand > before:
            rising.append([partition, part, str(Fraction(demand))])
    return rising
