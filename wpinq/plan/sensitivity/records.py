"""Symbolic records: what the plan tells of the records that one protected unit changes.

A term stands for one value, the same for all who write the same term: a field of the unit, a constant, a function of
such, or a record of terms. `UNKNOWN` stands for any value, also for many at once. Two equal terms without UNKNOWN are
equal values in every dataset; different terms may be equal values too, and no rule rests on their being different.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, below_first, digest_of, walk
from wpinq.expr.types import TupleOf, Type, signature

Path = tuple[int, ...]
"""Where a field lies in a record: its place, then its place in that field, and so on. Empty: the record itself."""


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
        """Every field with its path, the outermost first; at most `limit`, for records can hold one another often."""
        waiting: list[tuple[Path, Term]] = [((), self)]
        for path, term in waiting:  # grows as it is read
            if limit == 0:
                return
            limit -= 1
            yield path, term
            waiting += [((*path, place), part) for place, part in enumerate(term.fields)]

    def leaves(self) -> Iterator[Term]:
        """Every field that is no record itself: what tells two records apart, all of it."""
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
    """What a function gives for these terms."""
    core = function.core
    return evaluated(core.body, {core.level + place: term for place, term in enumerate(arguments)})


def evaluated(body: Expr, variables: dict[int, Term]) -> Term:
    """The term of an expression over primitives, from those of its variables by level."""
    found: dict[bytes, Term] = {}
    for expression in below_first([body], _arguments):
        found[expression.digest] = _of_expression(expression, variables, found)
    return found[body.digest]


def _arguments(expression: Expr) -> Sequence[Expr]:
    return () if isinstance(expression, Lambda) else expression.children  # the body of a closure is no value


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
    """Any record whose key is this value: what follows of its fields is known, everything else is not.

    Only a path of fields none of which can be null shows a part of the key: `x.n.k` is null where `n` is null and where
    `n` holds a null `k`, and these are two records.
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


def overlaid(term: Term, known: Term) -> Term:
    """A symbolic record with what is known of some of its fields in their place."""
    if known.known:
        return known
    if not known.fields or len(known.fields) != len(term.fields):
        return term
    return record([overlaid(part, of_part) for part, of_part in zip(term.fields, known.fields, strict=True)])


def _with(type_: Type, known: dict[Path, Term], path: Path) -> Term:
    """The record of a type in which these paths are known and nothing else."""
    if path in known:
        return known[path]
    inside = any(longer[: len(path)] == path for longer in known)
    if inside and isinstance(type_, TupleOf) and not type_.nullable:
        return record([_with(item, known, (*path, place)) for place, item in enumerate(type_.elements)])
    return UNKNOWN
