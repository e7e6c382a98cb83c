"""Accounts: the budget, the permanent declaration and the balance of each protected source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from wpinq.errors import LedgerError
from wpinq.expr.epochs import SEPARATOR
from wpinq.expr.person_tables import PersonTables
from wpinq.expr.types import signature
from wpinq.kernel.ledger.chain import LIMIT, OPEN, RESUME, SUSPEND, Transaction, append
from wpinq.noise.epsilon import decimal_epsilon
from wpinq.plan.operators.source import Source

#: The declaration of a shared account: no source declares this.
SHARED = "the tables of one account, whose costs add up"

#: The declaration of an analyst's account within an account.
OF_ANALYST = "what an analyst may ask for of an account"

#: It stands between a name and the analyst, in the names of an analyst's accounts, measurements and partitions.
MARK = "@"

_SELECT = "SELECT name, unit, unit_weight, schema, budget, spent, suspended FROM accounts"
FIND = f"{_SELECT} WHERE name = ?"
_UNFIT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Pricing:
    """The cost of a debit.

    Attributes
    ----------
    charges : Mapping
        Source name -> nano-epsilon to debit. Every source that the measurements use is in it, those that cost
        nothing more (a part below the maximum of its partition) with 0.
    parts : Mapping
        (partition digest, part digest) -> the new cumulative demand of that part: absolute, never below the stored.
    """

    charges: Mapping[str, int]
    parts: Mapping[tuple[str, str], Fraction]


#: Partition digest -> {part digest: cumulative demand}, as stored.
PartsOf = Callable[[str], Mapping[str, Fraction]]

#: The digests that were never debited and the stored demands -> what they cost now.
Price = Callable[[frozenset[str], PartsOf], Pricing]


@dataclass(frozen=True, slots=True)
class Account:
    """The balance of one source, and its declaration.

    Attributes
    ----------
    name : str
        The source.
    unit : str
        The protected unit, in words.
    unit_weight : Fraction
        The total weight by which one protected unit can change the source.
    schema : str
        The record type of the source, as text.
    budget, spent : int
        Nano-epsilon.
    suspended : bool
        Whether it answers no analyst.
    """

    name: str
    unit: str
    unit_weight: Fraction
    schema: str
    budget: int
    spent: int
    suspended: bool = False

    @property
    def remaining(self) -> int:
        """The budget that is left, in nano-epsilon."""
        return self.budget - self.spent


def all_accounts(transaction: Transaction) -> tuple[Account, ...]:
    """Every account, by name."""
    return tuple(_account(*row) for row in transaction.execute(f"{_SELECT} ORDER BY name").fetchall())


def find_account(transaction: Transaction, name: str) -> Account | None:
    """The account of a source, or None."""
    row = transaction.execute(FIND, (name,)).fetchone()
    return None if row is None else _account(*row)


def get_account(transaction: Transaction, name: str) -> Account:
    """The account of a source, or a refusal."""
    found = find_account(transaction, name)
    if found is None:
        raise LedgerError(no_account(name, [account.name for account in all_accounts(transaction)]))
    return found


def no_account(name: str, known: Iterable[str]) -> str:
    """The refusal of a name without an account."""
    names = ", ".join(map(repr, known)) or "none"
    return f"the ledger has no account {name!r} (accounts: {names}): protect a source of that name first"


def open_account(transaction: Transaction, declared: Account, actor: str) -> Account:
    """The account as it stands, opened here where there was none."""
    known = find_account(transaction, declared.name)
    if known is not None:
        return check_same(known, declared)
    values = {"schema": declared.schema, "unit": declared.unit, "unit_weight": str(declared.unit_weight)}
    spent = {"spent": declared.spent} if declared.spent else {}
    append(transaction, OPEN, declared.name, declared.budget, values | spent, actor)
    row = (declared.name, *values.values(), declared.budget)
    transaction.execute("INSERT INTO accounts VALUES (?, ?, ?, ?, ?, 0, 0)", row)
    transaction.execute("UPDATE accounts SET spent = ? WHERE name = ?", (declared.spent, declared.name))
    return declared


def set_suspended(transaction: Transaction, names: Iterable[str], suspended: bool, actor: str) -> frozenset[str]:
    """Suspend or resume accounts, of an epoch its whole series; those that were not before."""
    names = {name.partition(SEPARATOR)[0] for name in names}
    found = frozenset(name for name in names if get_account(transaction, name).suspended != suspended)
    for name in sorted(found):
        append(transaction, SUSPEND if suspended else RESUME, name, 0, {}, actor)
        transaction.execute("UPDATE accounts SET suspended = ? WHERE name = ?", (int(suspended), name))
    return found


def declared_account(name: str, schema: str, unit: str, unit_weight: Fraction, budget: int) -> Account:
    """The account that a declaration opens; LedgerError when it makes no sense."""
    for field, text in (("name", name), ("schema", schema), ("unit", unit)):
        check_text(f"the {field} of a source", text)
    if MARK in name:
        raise LedgerError(f"{name!r} would be an analyst's account: those are opened by set_budget")
    if isinstance(unit_weight, bool) or not isinstance(unit_weight, (int, Fraction)) or unit_weight <= 0:
        raise LedgerError(f"the unit weight of {name!r} must be a positive Fraction")
    check_budget(name, budget)
    return Account(name, unit, Fraction(unit_weight), schema, budget, 0)


def check_same(known: Account, declared: Account) -> Account:
    """The known account, when it was opened with the same declaration and budget."""
    for field in ("schema", "unit", "unit weight"):
        stored, given = (str(getattr(account, field.replace(" ", "_"))) for account in (known, declared))
        if stored != given:
            raise LedgerError(
                f"the ledger has {known.name!r} with the {field} {stored!r}, not {given!r}: use that, "
                "or protect the data under another name"
            )
    # an epoch is opened with the budget that the template fixes, and has its own from then on
    if known.budget != declared.budget and (SEPARATOR not in known.name or known.name.endswith("*")):
        raise LedgerError(
            f"the ledger has {known.name!r} with a budget of {decimal_epsilon(known.budget)}, not "
            f"{decimal_epsilon(declared.budget)}: use that, or change it on record with set_budget"
        )
    return known


def check_text(field: str, text: str) -> None:
    """Refuse values that are no text, or text that a database cannot keep as it is."""
    if not isinstance(text, str) or not text or _UNFIT.search(text):
        raise LedgerError(f"{field} must be text, not empty, without NUL or lone surrogates")


def check_budget(name: str, budget: int) -> None:
    """Refuse a budget that is not an integer of nano-epsilon within the bounds of the schema."""
    if isinstance(budget, bool) or not isinstance(budget, int) or not 0 <= budget < LIMIT:
        raise LedgerError(f"the budget of {name!r} must be an integer of nano-epsilon, at least 0 and below 2^62")


def accounts_of(source: Source, unit: str, budget: int) -> tuple[Account, ...]:
    """The accounts of a source: opened before its data are kept, declared before they are read.

    A source with an account of its own has one, with its budget. Where tables of the same people share an account, that
    account has the budget and pays for all. Each table then also has an account of budget 0, from which nothing can be
    paid, and which fixes the table's declaration. `/` is in no name, so no source can be taken for a table of an
    account.
    """
    words, schema, weight = unit + source.rows_of_unit, declaration(source), source.unit_weight
    if source.person is None or not source.person.account:
        return (declared_account(source.source, schema, words, weight, budget),)
    shared = declared_account(source.account, SHARED, unit, Fraction(1), budget)
    return shared, declared_account(f"{source.account}/{source.source}", schema, words, weight, 0)


def check_single(source: Source, accounts: Iterable[Account]) -> None:
    """Refuse names that would stand for two things in a ledger.

    A source that the ledger knows in another account would lose its history. A name that is a table of one account and
    itself the account of other tables would have two balances.

    Raises
    ------
    LedgerError
        Naming the account.
    """
    names = {source.source, source.source.partition(SEPARATOR)[0]}  # of an epoch, also that of its series
    ours = {f"{source.account}/{source.source}"} if source.person is not None and source.person.account else names
    for known in accounts:
        holder, _, table = known.name.rpartition("/")
        if known.name not in ours and known.schema != SHARED and table in names:
            raise LedgerError(
                f"the ledger has {table!r} as the account {known.name!r}, which another declaration opened: "
                "use that, or protect the data under another name"
            )
        if known.schema == SHARED and known.name == source.source != source.account:
            raise LedgerError(f"the ledger has {known.name!r} as a shared account: protect the data under another name")
        if holder and holder != source.account == table:
            raise LedgerError(
                f"the ledger has {table!r} as a table of the account {holder!r}: give the account of "
                f"{source.source!r} another name"
            )


def declaration(source: Source) -> str:
    """The text of an account's declaration: schema, cap, facts, sizes, and the person of a row.

    The unit is not in it.
    """
    sizes = "" if source.sizes is None else f"; {source.sizes.text}"
    text = f"{signature(source.record)}; cap {source.cap}; facts {', '.join(source.facts) or 'none'}{sizes}"
    if source.epoch is not None:
        text += f"; epoch {source.epoch.label or 'each'} of {source.epoch.words}"
    if source.person is None:
        return text
    form = "one record a person" if source.person.nested else "one record a row"
    if isinstance(source.person, PersonTables):
        form += f", ids {source.person.id_type}; {'; '.join(table.words for table in source.person.tables)}"
    # repr: a column may have any name, and none may read like the rest of a declaration
    return f"{text}; person {source.person.column!r}, at most {source.person.at_most} rows, {form}"


def _account(name: str, unit: str, unit_weight: str, schema: str, budget: int, spent: int, suspended: int) -> Account:
    return Account(name, unit, Fraction(unit_weight), schema, budget, spent, bool(suspended))
