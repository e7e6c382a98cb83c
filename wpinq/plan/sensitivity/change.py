"""The change of a dataset as a sum of atoms, each with bounds on gain and loss.

When one protected unit appears, a step's output changes by Δ. Δ is a sum of atoms; that of a term is zero but for
records which match the term, and

    ‖Δ⁺‖ ≤ increase      ‖Δ⁻‖ ≤ decrease      ‖Δ‖ ≤ total.

When the unit disappears, increase and decrease change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, below_first, digest_of, walk
from wpinq.expr.types import TupleOf, Type, signature

# Symbolic records: the known part, from the plan, of the records that one protected unit changes.
#
# A term stands for one value, the same for all who write the same term: a field of the unit, a constant, a function of
# such, or a record of terms. `UNKNOWN` stands for any value, also for many at once. Two equal terms without UNKNOWN are
# equal values in every dataset; different terms may be equal values too, and no rule rests on their being different.

#: Where a field lies in a record: its place, then its place in that field, and so on. Empty: the record itself.
Path = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A symbolic value: equal to another where the digests are.

    Attributes
    ----------
    digest : bytes
        The digest of its meaning.
    known : bool
        Whether it is one value: no UNKNOWN anywhere in it, in the arguments of functions and in lists neither.
    fields : tuple of Term
        The fields of a record that is known to be one, else empty.
    """

    digest: bytes
    known: bool
    fields: tuple[Term, ...] = field(default=())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def at(self, path: Path) -> Term:
        """The term at a path, UNKNOWN where the term has no such fields."""
        found = self
        for place in path:
            if place >= len(found.fields):
                return UNKNOWN
            found = found.fields[place]
        return found

    def paths(self, limit: int = 64) -> Iterator[tuple[Path, Term]]:
        """Every field with its path, outermost first, up to a limit.

        The limit is for records that contain one another often.
        """
        waiting: list[tuple[Path, Term]] = [((), self)]
        for path, term in waiting:  # grows as it is read
            if limit == 0:
                return
            limit -= 1
            yield path, term
            waiting += [((*path, place), part) for place, part in enumerate(term.fields)]

    def leaves(self) -> Iterator[Term]:
        """Every field that is no record itself: together they identify the record."""
        if self.fields:
            for part in self.fields:
                yield from part.leaves()
        else:
            yield self


UNKNOWN = Term(digest_of("unknown"), known=False)


def leaf(*identity: bytes | str) -> Term:
    """One value that is known by its name only."""
    return Term(digest_of("leaf", *identity), known=True)


def record(fields: Sequence[Term]) -> Term:
    """A record, never null, of these fields."""
    known = all(item.known for item in fields)
    return Term(digest_of("record", *(item.digest for item in fields)), known, tuple(fields))


def any_record(name: str, *types: Type, path: Path = ()) -> Term:
    """A record of all these types at once, each field known by its place under `name`.

    A record that may be null is one value: null is not the record of nulls.
    """
    records = [type_ for type_ in types if isinstance(type_, TupleOf) and not type_.nullable]
    if len(records) < len(types):
        return leaf(name, *map(str, path))
    columns = zip(*(type_.elements for type_ in records), strict=True)
    return record([any_record(name, *column, path=(*path, place)) for place, column in enumerate(columns)])


def constant(value: Constant) -> Term:
    """A public value."""
    type_ = value.type
    if isinstance(type_, TupleOf) and isinstance(value.value, tuple):
        return record([constant(Constant(t, v)) for t, v in zip(type_.elements, value.value, strict=True)])
    return leaf(value.digest)


def applied(function: Lambda, arguments: Sequence[Term]) -> Term:
    """The result of a function of these terms."""
    core = function.core
    return evaluated(core.body, {core.level + place: term for place, term in enumerate(arguments)})


def evaluated(body: Expr, variables: dict[int, Term]) -> Term:
    """The term of an expression over primitives, from those of its variables by level."""
    found: dict[bytes, Term] = {}
    # the body of a closure is no value
    for expression in below_first([body], lambda each: () if isinstance(each, Lambda) else each.children):
        found[expression.digest] = _of_expression(expression, variables, found)
    return found[body.digest]


def _of_expression(expression: Expr, variables: dict[int, Term], found: dict[bytes, Term]) -> Term:
    if isinstance(expression, Variable):
        return variables.get(expression.level, UNKNOWN)
    if isinstance(expression, Constant):
        return constant(expression)
    if isinstance(expression, Lambda):
        return _closure(expression, variables)
    assert isinstance(expression, Call)
    arguments = [found[argument.digest] for argument in expression.arguments]
    if expression.name == "record":
        return record(arguments)
    if expression.name == "field" and arguments[0].fields:
        (place,) = expression.attributes
        assert isinstance(place, int)
        return arguments[0].fields[place]
    if not all(argument.known for argument in arguments):
        return UNKNOWN
    # What is static in a call is part of its meaning: limits and names, and the types that it was compiled for.
    static = [expression.name, repr(expression.attributes), signature(expression.type)]
    typed = [signature(argument.type) for argument in expression.arguments if not isinstance(argument, Lambda)]
    return leaf("call", *static, str(len(typed)), *typed, *(argument.digest for argument in arguments))


def _closure(function: Lambda, variables: dict[int, Term]) -> Term:
    """A function inside an expression: known where all that it takes from outside is."""
    free = {inside.level for inside in walk(function) if isinstance(inside, Variable) and inside.level < function.level}
    taken = [variables.get(level, UNKNOWN) for level in sorted(free)]
    if not all(term.known for term in taken):
        return UNKNOWN
    return leaf("closure", function.digest, *(term.digest for term in taken))


def matching(key: Lambda, value: Term) -> Term:
    """Any record with this key: fields that follow from the key are known, no others.

    Only a path of fields none of which can be null shows a part of the key: `x.n.k` is null where `n` is null and where
    `n` has a null `k`, and these are two records.
    """
    core = key.core
    parts = [(core.body, value)]
    known: dict[Path, Term] = {}
    for body, term in parts:  # grows as it is read
        if isinstance(body, Call) and body.name == "record" and term.fields:
            parts += zip(body.arguments, term.fields, strict=True)
        path = _path(body, core.level)
        if path is not None:
            known[path] = term
    return _with(core.parameters[0].type, known, ())


def _path(body: Expr, level: int) -> Path | None:
    """The path that an expression reads from a variable, through records that are never null."""
    path: list[int] = []
    while isinstance(body, Call) and body.name == "field":
        (place,), (body,) = body.attributes, body.arguments
        if body.type.nullable or not isinstance(place, int):
            return None
        path.insert(0, place)
    return tuple(path) if isinstance(body, Variable) and body.level == level else None


def _with(type_: Type, known: dict[Path, Term], path: Path) -> Term:
    """The record of a type in which these paths are known and nothing else."""
    if path in known:
        return known[path]
    inside = any(longer[: len(path)] == path for longer in known)
    if inside and isinstance(type_, TupleOf) and not type_.nullable:
        return record([_with(item, known, (*path, place)) for place, item in enumerate(type_.elements)])
    return UNKNOWN


#: The most distinct atoms at a step; more become one of unknown record, which is sound and less sharp.
ATOMS_LIMIT = 256

#: The longest denominators that are kept; a longer one is rounded up: bounds of deep plans stay short numbers.
_BITS = 96


@dataclass(frozen=True, slots=True)
class ChangeBounds:
    """Bounds on the weight that a change adds, removes and moves in all.

    Each is at least 0, neither part above the total, which is no more than their sum. Any three bounds come down to
    such: see `ChangeBounds.of`.
    """

    increase: Fraction
    decrease: Fraction
    total: Fraction

    @staticmethod
    def of(increase: Fraction, decrease: Fraction, total: Fraction) -> ChangeBounds:
        """The least move that three bounds allow."""
        increase, decrease = shorter(increase), shorter(decrease)
        total = min(shorter(total), increase + decrease)
        return ChangeBounds(min(increase, total), min(decrease, total), total)

    @staticmethod
    def any_sign(total: Fraction) -> ChangeBounds:
        """A change that may add or take away all of its total."""
        return ChangeBounds.of(total, total, total)

    def __add__(self, other: ChangeBounds) -> ChangeBounds:
        return ChangeBounds.of(self.increase + other.increase, self.decrease + other.decrease, self.total + other.total)

    def __mul__(self, share: Fraction) -> ChangeBounds:
        return ChangeBounds.of(self.increase * share, self.decrease * share, self.total * share)

    @property
    def reversed(self) -> ChangeBounds:
        """The bounds with the opposite sign."""
        return ChangeBounds(self.decrease, self.increase, self.total)

    @property
    def of_one_record(self) -> ChangeBounds:
        """The bounds where the whole change falls on one record, which gains or loses, not both."""
        return ChangeBounds.of(self.increase, self.decrease, max(self.increase, self.decrease))


NOTHING = ChangeBounds(Fraction(0), Fraction(0), Fraction(0))
#: One record of weight 1 appears.
ONE = ChangeBounds(Fraction(1), Fraction(0), Fraction(1))


def shorter(number: Fraction) -> Fraction:
    """The number, or a slightly larger one of a shorter denominator."""
    excess = number.denominator.bit_length() - _BITS
    if excess <= 0:
        return number
    return Fraction(-(-number.numerator >> excess), number.denominator >> excess)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a step's output by one unit.

    Attributes
    ----------
    atoms : mapping
        Term to the bounds of its atom.
    rules : frozenset of str
        The rules that made it less than what paths count, in words for bills.
    """

    atoms: Mapping[Term, ChangeBounds]
    rules: frozenset[str] = frozenset()

    @property
    def total(self) -> Fraction:
        """The most that all of it is, in norm."""
        return sum((move.total for move in self.atoms.values()), Fraction(0))

    def mapped(self, term: Callable[[Term], Term]) -> Change:
        """The change of records that become others, each with its whole weight."""
        return added(((term(of), move) for of, move in self.atoms.items()), self.rules)

    def each(self, move: Callable[[ChangeBounds], ChangeBounds]) -> Change:
        """The change with every atom's bounds put through a function."""
        return added(((of, move(bounds)) for of, bounds in self.atoms.items()), self.rules)

    def by(self, term: Callable[[Term], Term]) -> Iterator[tuple[Term, ChangeBounds]]:
        """Its atoms added up by a term, as the key of their records."""
        sums: dict[Term, ChangeBounds] = {}
        for of, move in self.atoms.items():
            key = term(of)
            sums[key] = sums[key] + move if key in sums else move
        return iter(sums.items())


ONE_RECORD = "what falls on one record is gain or loss, not both"


def added(atoms: Iterable[tuple[Term, ChangeBounds]], rules: Iterable[str] = ()) -> Change:
    """The change that is the sum of these atoms.

    Atoms of one term become one. What falls on one record known by its term is no more than the larger of what that
    record gains and loses.
    """
    sums: dict[Term, ChangeBounds] = {}
    for term, move in atoms:
        if move.total:
            sums[term] = sums[term] + move if term in sums else move
    used = set(rules)
    for term, move in sums.items():
        if term.known and max(move.increase, move.decrease) < move.total:
            used.add(ONE_RECORD)
            sums[term] = move.of_one_record
    if len(sums) > ATOMS_LIMIT:
        sums = {UNKNOWN: sum(sums.values(), NOTHING)}
    return Change(sums, frozenset(used))


def together(changes: Iterable[Change]) -> Change:
    """The sum of changes."""
    changes = list(changes)
    return added((item for each in changes for item in each.atoms.items()), [r for each in changes for r in each.rules])


def anything(changes: Iterable[Change]) -> Change:
    """The change by stability alone: as much as the inputs, at any records, of either sign."""
    changes = list(changes)
    total = sum((change.total for change in changes), Fraction(0))
    return added([(UNKNOWN, ChangeBounds.any_sign(total))], [r for each in changes for r in each.rules])
