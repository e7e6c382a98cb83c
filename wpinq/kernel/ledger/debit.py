"""Debits: the new measurements of a batch, their price, and the rows that record it.

There are two payers. The sources pay once for each request, from anybody. An untrusted analyst has accounts within
those of the sources, and pays there the cost that the release would have without the requests of others. The digests,
partitions and accounts of that payer end in `@` and the analyst's name. `@` is in no other name, so neither payer can
be taken for the other. `docs/proofs/analysts.md` has the proof.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import chain, product
from typing import Any

import numpy as np

from wpinq.errors import BudgetExceeded, LedgerError, SourceExhausted
from wpinq.kernel.ledger.accounts import MARK, Account, Price, Pricing, check_text, find_account, get_account
from wpinq.kernel.ledger.chain import ANSWERS, DEBIT, START, Head, Transaction, append, link, tampered
from wpinq.noise.epsilon import decimal_epsilon

#: The one refusal that depends on the requests of others: the same for all, without a name or an amount.
EXHAUSTED = "a source has too little budget left, regardless of who spent it, and nothing was spent: ask the curator"

PAID = "SELECT digest FROM measurements WHERE digest IN (SELECT value FROM json_each(?))"
PAID_ONE = "SELECT digest FROM measurements WHERE digest = ?"  # a virtual table takes longer than the look-up
_ANALYST = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_DEMAND = re.compile(r"[0-9]{1,4000}(/[1-9][0-9]{0,3999})?", re.ASCII)  # "1e999999999" is a Fraction too


def check_analyst(name: object) -> str:
    """The name of an analyst, or a refusal."""
    if not isinstance(name, str) or _ANALYST.fullmatch(name) is None:
        raise LedgerError('an analyst is named by up to 64 ASCII letters, digits and "_", a letter first, as "alice"')
    return name


def no_budget(analyst: str, account: str) -> str:
    """The refusal of an analyst without a budget: the same whether or not the account exists."""
    return f"{analyst} has no budget for {account!r}: ask the curator for one"


@dataclass(frozen=True, slots=True)
class Payer:
    """The payer of a debit: the sources, or an analyst within them.

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
        """The name of a digest, a partition or an account of this payer."""
        return f"{name}{MARK}{self.analyst}" if self.analyst else name

    def unpaid(self, transaction: Transaction, digests: Iterable[str]) -> frozenset[str]:
        """The digests that this payer never paid for."""
        named = {self.named(each): each for each in digests}
        query, given = (PAID_ONE, [*named]) if len(named) == 1 else (PAID, [json.dumps([*named])])
        paid = {digest for (digest,) in transaction.execute(query, given)}
        return frozenset(each for name, each in named.items() if name not in paid)

    def priced(self, transaction: Transaction, new: frozenset[str], price: Price) -> Pricing:
        """The price of new digests to this payer, in names that both payers share."""
        return price(new, lambda part: demands(transaction, self.named(part))) if new else Pricing({}, {})

    def balances(self, accounts: Iterable[Account]) -> dict[str, Account]:
        """The accounts of this payer, by the names that both payers share."""
        split = ((each.name.partition(MARK), each) for each in accounts)
        return {name: each for (name, _, analyst), each in split if analyst == (self.analyst or "")}


def debit(
    transaction: Transaction,
    measurements: Mapping[str, str],
    price: Price,
    plans: Mapping[str, str],
    words: Mapping[str, str],
    analyst: str | None,
) -> frozenset[str]:
    """Charge all payers for the measurements that are new to them.

    Returns the digests that are new to the sources.

    Parameters
    ----------
    transaction : Transaction
        A write transaction.
    measurements : Mapping
        Digest -> public description.
    price : callable
        The price of new digests.
    plans : Mapping
        Digest -> canonical plan, of new digests.
    words : Mapping
        Label and run of the caller.
    analyst : str or None
        The analyst who made the request.

    Raises
    ------
    BudgetExceeded, LedgerError
        As `check_affordable`: of the analyst first.
    """
    due = []
    new: frozenset[str] = frozenset()
    for payer in (Payer(),) if analyst is None else (Payer(analyst), Payer()):
        new = payer.unpaid(transaction, measurements)
        if new:
            pricing = payer.priced(transaction, new, price)
            check_affordable(transaction, payer, pricing.charges, analyst)
            due.append((payer, pricing, sorted(new)))
    for payer, pricing, digests in reversed(due):  # the sources first: nothing is paid for by an analyst alone
        hashes = {digest: hashlib.sha256(plans[digest].encode()).hexdigest() for digest in digests if digest in plans}
        content = {
            "measurements": {payer.named(digest): " ".join(measurements[digest].split()) for digest in digests},
            "parts": raised(transaction, payer, pricing.parts),
            "plans": {payer.named(digest): hashed for digest, hashed in hashes.items()},
            **words,
        }
        first = _record(transaction, payer, pricing.charges, content, analyst or "")
        for digest, hashed in hashes.items():
            store_plan(transaction, hashed, first, plans[digest])
    return new


def _record(
    transaction: Transaction, payer: Payer, charges: Mapping[str, int], content: dict[str, Any], actor: str
) -> int:
    """Append an entry for each account, and return the number of the first.

    The first entry carries everything that the debit pays for.
    """
    first = 0
    for account, charge in sorted(charges.items()):
        name = payer.named(account)
        entry = append(transaction, DEBIT, name, charge, content, actor)
        transaction.execute("UPDATE accounts SET spent = spent + ? WHERE name = ?", (charge, name))
        if not first:
            first = entry
            for digest in content["measurements"]:
                transaction.execute("INSERT INTO measurements VALUES (?, ?)", (digest, first))
            for partition, part, demand in content["parts"]:
                transaction.execute("INSERT INTO parts VALUES (?, ?, ?, ?)", (partition, part, first, demand))
            content = {key: value for key, value in content.items() if key not in ("parts", "plans")} | {"with": first}
    return first


def store_plan(transaction: Transaction, digest: str, entry: int, plan: str) -> None:
    """Keep a plan under its digest, once."""
    query = "INSERT INTO plans SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM plans WHERE digest = ?1)"
    transaction.execute(query, (digest, entry, plan))


def check_affordable(transaction: Transaction, payer: Payer, charges: Mapping[str, int], analyst: str | None) -> None:
    """Refuse charges that a payer cannot pay.

    Parameters
    ----------
    transaction : Transaction
        That of the debit.
    payer : Payer
        The payer.
    charges : Mapping
        Account -> nano-epsilon, in names that both payers share.
    analyst : str or None
        The analyst who made the request.

    Raises
    ------
    BudgetExceeded
        Naming each account that lacks budget; `SourceExhausted`, without a word of them, where the sources lack it and
        an analyst made the request.
    LedgerError
        When there is no such account, or the charges are none.
    """
    if not charges:
        raise LedgerError("a debit must name every source that it uses, with 0 where nothing more is due")
    short = []
    for name, charge in sorted(charges.items()):
        account = find_account(transaction, payer.named(name))
        if account is None and payer.analyst:
            raise LedgerError(no_budget(payer.analyst, name))
        account = account or get_account(transaction, name)
        if isinstance(charge, bool) or not isinstance(charge, int) or charge < 0:
            raise LedgerError(f"the charge to {name!r} must be an integer of nano-epsilon, at least 0")
        if charge > account.remaining:
            short.append(
                f"{name!r} needs {decimal_epsilon(charge)} and has {decimal_epsilon(account.remaining)} left "
                f"of {decimal_epsilon(account.budget)}"
            )
    if short and analyst and not payer.analyst:
        raise SourceExhausted(EXHAUSTED)
    if short:
        budget = f"the budget of {payer.analyst}" if payer.analyst else "the budget"
        raise BudgetExceeded(
            f"{budget} does not cover the bill, and nothing was spent: {'; '.join(short)}. "
            "Lower epsilon, release less, or have the curator raise the budget"
        )


def raised(transaction: Transaction, payer: Payer, parts: Mapping[tuple[str, str], Fraction]) -> list[list[str]]:
    """The parts with a rising demand, as partition, part and demand."""
    stored = {partition: demands(transaction, payer.named(partition)) for partition in {pair[0] for pair in parts}}
    rising = []
    for (partition, part), demand in sorted(parts.items()):
        check_text("the digest of a partition", partition)
        check_text("the digest of a part", part)
        before = stored[partition].get(part, Fraction(0))
        if isinstance(demand, bool) or not isinstance(demand, (int, Fraction)) or demand < before:
            raise LedgerError("the demand of a part is a Fraction that never falls: add to the stored demand")
        if demand > before:
            rising.append([payer.named(partition), part, str(Fraction(demand))])
    return rising


def demands(transaction: Transaction, partition: str) -> dict[str, Fraction]:
    """Part digest -> its cumulative demand now."""
    last = "SELECT max(entry) FROM parts WHERE partition = each.partition AND part = each.part"
    query = f"SELECT part, demand FROM parts AS each WHERE partition = ? AND entry = ({last})"
    return {part: exact(demand) for part, demand in transaction.execute(query, (partition,))}


@lru_cache(maxsize=1024)
def exact(text: str) -> Fraction:
    """A demand as `str(Fraction)` writes it, and no power of ten.

    A power of ten in a few letters could take gigabytes.
    """
    if not _DEMAND.fullmatch(text):
        raise LedgerError("the ledger holds a demand that is none: it was not written by wpinq")
    return Fraction(text)


# The answers of a measurement, as the ledger stores them: all that one entry stored is one value, hashed in the entry.
#
# A key that has an answer keeps it: a second noisy value for a key could be averaged with the first.

#: Bytes that an entry stores, if its keys are more than one: SQLite keeps values below 10⁹.
_LARGEST = 2**28


#: Heads and tails of keys (`expr.values.code_factors`), and the number drawn for each head with each tail, in order.
NewAnswers = tuple[list[bytes], list[bytes], Sequence[float]]


def one_by_one(answers: Mapping[bytes, float]) -> NewAnswers:
    """Answers to keys that have nothing in common."""
    return [*answers], [b""], [*answers.values()]


@dataclass(slots=True)
class Stored:
    """All that was stored of a measurement, up to an entry.

    Attributes
    ----------
    last : Head
        The last entry that is in it.
    answers : dict
        Key -> value.
    listings : list of str
        The listings, in order, as JSON.
    """

    last: Head = START
    answers: dict[bytes, float] = field(default_factory=dict)
    listings: list[str] = field(default_factory=list)

    def catch_up(self, transaction: Transaction, name: str, measurement: str) -> None:
        """Take in the later entries.

        Raises
        ------
        LedgerError
            When the answers of an entry are not those that it stored; this is of no use any more then.
        """
        query = (
            "SELECT answers, (SELECT hash FROM entries AS before WHERE before.sequence = entry - 1), entries.hash, "
            "sequence, time, kind, actor, target, amount, content FROM answers JOIN entries ON sequence = entry "
            "WHERE measurement = ? AND entry > ? ORDER BY entry"
        )
        for packed, before, chained, *row in transaction.execute(query, (measurement, self.last.sequence)):
            # the link comes first: keys stand in the content, which is read only where it is the one that was chained
            own = link(before or START.hash, (*row,)) == chained and [row[2], row[4]] == [ANSWERS, measurement]
            content = json.loads(row[-1]) if own else {}
            found = unpack(packed, content) if content.get("digest") == digest(packed) else {}
            if len(found) != content.get("count") or not found.keys().isdisjoint(self.answers.keys()):
                raise tampered(name, f"the answers of entry {row[0]} are not those that were stored")
            self.answers |= found
            self.listings += [json.dumps(content["listing"])] if "listing" in content else []
            self.last = Head(row[0], chained)

    def add(self, transaction: Transaction, measurement: str, new: NewAnswers, more: dict[str, Any]) -> Sequence[float]:
        """Append those answers that are new, and return the numbers that stand.

        They are one entry unless they are very large. Without new answers and `more`, none is appended. Entries can be
        undone until they are committed, so the answers are not in this object until they are read again.

        Raises
        ------
        LedgerError
            Where one is no finite float, a key no bytes, or there are not as many of both.
        """
        heads, tails, numbers = new
        kinds = {numbers.dtype.type} if isinstance(numbers, np.ndarray) else {*map(type, numbers)}
        fit = len(numbers) == len(heads) * len(tails) and all(issubclass(kind, float) for kind in kinds)
        if not fit or {*map(type, chain(heads, tails))} - {bytes} or not np.isfinite(np.asarray(numbers, float)).all():
            raise LedgerError("answers are finite floats for keys of bytes: nothing was stored")
        if self.answers:
            drawn = dict(zip(map(b"".join, product(heads, tails)), numbers, strict=True))
            numbers = [self.answers.get(key, number) for key, number in drawn.items()]
            new = one_by_one({key: number for key, number in drawn.items() if key not in self.answers})
        pieces = [*_pieces(*new)] if len(new[2]) or more else []
        for left, (content, packed) in zip(reversed(range(len(pieces))), pieces, strict=True):
            entry = append(transaction, ANSWERS, measurement, 0, content if left else content | more)
            transaction.execute("INSERT INTO answers VALUES (?, ?, ?)", (measurement, entry, packed))
        return numbers


def digest(packed: bytes) -> str:
    """SHA-256 over packed answers."""
    return hashlib.sha256(packed).hexdigest()


def _pieces(heads: list[bytes], tails: list[bytes], numbers: Sequence[float]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The content and packed answers of each entry; one entry unless they are very large.

    Packed are the sizes of the heads, in 4 bytes each, the heads, and the doubles of each head with each tail, all
    big-endian. A REAL column would turn -0.0 into 0.0.
    """
    sizes = np.fromiter(map(len, heads), dtype=">u4", count=len(heads))
    table = np.asarray(numbers, dtype=">f8").reshape(-1, len(tails))
    many = max(1, _LARGEST // (4 + int(sizes.max(initial=0)) + 8 * len(tails)))
    for some in (slice(start, start + many) for start in range(0, len(heads) or 1, many)):
        packed = b"".join((sizes[some].data, *heads[some], table[some].data))
        yield {"count": table[some].size, "digest": digest(packed), "tails": [*map(bytes.hex, tails)]}, packed


def unpack(packed: bytes, content: Mapping[str, Any]) -> dict[bytes, float]:
    """Answers as they were packed, in an entry of this content.

    Entries without tails are of an earlier layout: each key stands after its size in 8 bytes, and before its double.
    """
    if "tails" in content:
        tails = [*map(bytes.fromhex, content["tails"])]
        start = 4 * (content["count"] // len(tails))
        ends = [start, *(np.frombuffer(packed[:start], dtype=">u4").cumsum(dtype=np.int64) + start).tolist()]
        heads = map(packed.__getitem__, map(slice, ends, ends[1:]))
        numbers = np.frombuffer(packed, dtype=">f8", offset=ends[-1]).tolist()
        return dict(zip(map(b"".join, product(heads, tails)), numbers, strict=True))
    found, at = {}, 0
    while at < len(packed):
        end = at + 8 + int.from_bytes(packed[at : at + 8])
        (found[packed[at + 8 : end]],), at = struct.unpack_from(">d", packed, end), end + 8
    return found
