"""Scalar terms: the columns of a query as a DAG with shared parts, before they become text.

A term is a column, a literal, a parameter of a list function, such a function, or a call of a template of the
dialect. Equal terms have equal digests, so sharing survives substitution and each term is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Literal

from wpinq.columns.records import plain, type_name
from wpinq.expr.nodes import below_first, digest_of
from wpinq.expr.types import NULL, ListOf, TupleOf, Type

TermKind = Literal["column", "literal", "parameter", "function", "call"]


@dataclass(frozen=True, eq=False, slots=True)
class SqlTerm:
    """One term.

    Attributes
    ----------
    kind : str
        Which of the five it is.
    text : str
        A column's name, a literal's SQL, a parameter's name (also of a function), or a template's name.
    scope : str
        A column's alias; empty otherwise.
    arguments : tuple of Scalar
        What a template is filled with; a function's body.
    nullable : bool
        Whether it can be null. What is not known not to be null can be.
    parameters : frozenset of str
        The parameters that are free in it.
    """

    kind: TermKind
    text: str
    scope: str = ""
    arguments: tuple[SqlTerm, ...] = ()
    nullable: bool = True
    parameters: frozenset[str] = frozenset()
    digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        digest = digest_of(self.kind, self.text, self.scope, *(argument.digest for argument in self.arguments))
        object.__setattr__(self, "digest", digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SqlTerm) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


ALWAYS_NULLABLE = frozenset(
    (
        *("fit_int", "fit_float", "divide_float", "divisor", "float_to_int"),
        *("str_to_int", "str_to_float", "concatenate", "element", "table_element"),
        *("list_min", "list_max", "float_list_sum", "int_list_sum", "if_valid"),
    )
)
NEVER_NULLABLE = frozenset(("same", "is_null", "is_present"))


@lru_cache(maxsize=1024)
def column(alias: str, name: str, nullable: bool) -> SqlTerm:
    """A column of the table that goes by this alias."""
    return SqlTerm("column", name, alias, nullable=nullable)


@lru_cache(maxsize=1024)
def literal(text: str) -> SqlTerm:
    """A constant, as SQL text."""
    return SqlTerm("literal", text, nullable=text.startswith("CAST(NULL"))


def parameter(name: str) -> SqlTerm:
    """A parameter of a list function."""
    return SqlTerm("parameter", name, parameters=frozenset((name,)))


def function(name: str, body: SqlTerm) -> SqlTerm:
    """The function of one parameter that gives `body`."""
    return SqlTerm("function", name, arguments=(body,), nullable=False, parameters=body.parameters - {name})


def call(template: str, *arguments: SqlTerm) -> SqlTerm:
    """A template of the dialect, filled in."""
    if template in NEVER_NULLABLE:
        nullable = False
    elif template == "where":
        nullable = arguments[1].nullable or arguments[2].nullable
    else:
        nullable = template in ALWAYS_NULLABLE or any(argument.nullable for argument in arguments)
    parameters = frozenset[str]().union(*(argument.parameters for argument in arguments))
    return SqlTerm("call", template, "", arguments, nullable, parameters)


def number(value: float) -> SqlTerm:
    """A float constant."""
    return literal(f"CAST({value!r} AS DOUBLE)")


def number_value(term: SqlTerm) -> float:
    """The float that `number` made a term of."""
    return float(term.text.removeprefix("CAST(").removesuffix(" AS DOUBLE)"))


ONE = number(1.0)
TRUE, FALSE = literal("TRUE"), literal("FALSE")


def same(left: SqlTerm, right: SqlTerm) -> SqlTerm:
    """Whether two values are equal, null being equal to itself."""
    if left.nullable or right.nullable:
        return call("same", left, right)
    return call("equal", left, right)


def both(conditions: Iterable[SqlTerm]) -> SqlTerm:
    """The conjunction."""
    result: SqlTerm | None = None
    for condition in conditions:
        if condition != TRUE:
            result = condition if result is None else call("and", result, condition)
    return TRUE if result is None else result


def negated(condition: SqlTerm) -> SqlTerm:
    """The opposite of a condition; what is null stays null."""
    return condition.arguments[0] if condition.text == "not" else call("not", condition)


def times(left: SqlTerm, right: SqlTerm) -> SqlTerm:
    """The product of two weights; 1 is left out, for it changes no bit."""
    if left == ONE:
        return right
    return left if right == ONE else call("float_multiply", left, right)


def walk(roots: Iterable[SqlTerm]) -> Iterator[SqlTerm]:
    """Every distinct term once, arguments first; any depth."""
    return below_first(roots, attrgetter("arguments"))


def columns(*roots: SqlTerm) -> set[SqlTerm]:
    """The columns that terms mention."""
    return {term for term in walk(roots) if term.kind == "column"}


def conjuncts(condition: SqlTerm) -> list[SqlTerm]:
    """The parts of a conjunction."""
    found: list[SqlTerm] = []
    stack = [condition]
    while stack:
        term = stack.pop()
        if term.kind == "call" and term.text == "and":
            stack.extend(reversed(term.arguments))
        elif term != TRUE:
            found.append(term)
    return found


def renamed(to: Mapping[str, str]) -> Callable[[SqlTerm], SqlTerm]:
    """The function that reads columns from other aliases."""
    return substitute(lambda term: column(to[term.scope], term.text, term.nullable) if term.scope in to else None)


def refilled(term: SqlTerm, arguments: tuple[SqlTerm, ...]) -> SqlTerm:
    """A function or a call with other arguments."""
    if arguments == term.arguments:
        return term
    return function(term.text, *arguments) if term.kind == "function" else call(term.text, *arguments)


def substitute(
    replace: Callable[[SqlTerm], SqlTerm | None], kinds: Container[TermKind] = ("column",)
) -> Callable[[SqlTerm], SqlTerm]:
    """The function that replaces terms of some kinds by `replace(term)`, where that gives one.

    Work is shared.
    """
    done: dict[bytes, SqlTerm] = {}

    def rewrite(root: SqlTerm) -> SqlTerm:
        for term in walk([root]):
            if term.digest in done:
                continue
            found = replace(term) if term.kind in kinds else None
            if found is not None or not term.arguments:
                done[term.digest] = found or term
            else:
                done[term.digest] = refilled(term, tuple(done[argument.digest] for argument in term.arguments))
        return done[root.digest]

    return rewrite


# --- values as terms: a record is its leaves side by side, as `columns.records` lays them in a table ------------------


@dataclass(frozen=True, slots=True)
class RecordShape:
    """A record side by side: whether it is there (None where it always is), and its fields."""

    valid: SqlTerm | None
    fields: tuple[Shape, ...]


#: A value of any type, as terms.
Shape = SqlTerm | RecordShape


def as_term(shape: Shape) -> SqlTerm:
    """A value of no record type, which is one term."""
    assert isinstance(shape, SqlTerm)
    return shape


def shape_of(type_: Type, leaves: Iterator[SqlTerm]) -> Shape:
    """A value whose leaves are these terms."""
    type_ = plain(type_)
    if isinstance(type_, TupleOf):
        valid = next(leaves) if type_.nullable else None
        return RecordShape(valid, tuple(shape_of(element, leaves) for element in type_.elements))
    return next(leaves)


def leaves(shape: Shape) -> Iterator[SqlTerm]:
    """The terms of a value, in order."""
    if isinstance(shape, SqlTerm):
        yield shape
        return
    if shape.valid is not None:
        yield shape.valid
    for part in shape.fields:
        yield from leaves(part)


def map_shape(function_: Callable[[SqlTerm], SqlTerm], shape: Shape) -> Shape:
    """The same value with every term replaced."""
    if isinstance(shape, SqlTerm):
        return function_(shape)
    valid = None if shape.valid is None else function_(shape.valid)
    return RecordShape(valid, tuple(map_shape(function_, part) for part in shape.fields))


def aligned(shape: Shape, type_: Type) -> Shape:
    """The value with exactly the columns of its type.

    It has a "there" column where, and only where, it can be null.
    """
    type_ = plain(type_)
    if isinstance(shape, SqlTerm) or not isinstance(type_, TupleOf):
        return shape
    valid = (shape.valid or TRUE) if type_.nullable else None
    return RecordShape(valid, tuple(aligned(p, e) for p, e in zip(shape.fields, type_.elements, strict=True)))


def null(type_: Type) -> Shape:
    """Null, of a type."""
    type_ = plain(type_)
    if isinstance(type_, TupleOf):
        return RecordShape(FALSE, tuple(null(element) for element in type_.elements))
    return literal(f"CAST(NULL AS {type_name(type_)})")


def is_null(shape: Shape) -> SqlTerm:
    """Whether a value is null."""
    if isinstance(shape, SqlTerm):
        return call("is_null", shape) if shape.nullable else FALSE
    return FALSE if shape.valid is None else call("not", shape.valid)


def same_value(left: Shape, right: Shape) -> SqlTerm:
    """Whether two values of one type are equal; null equals itself."""
    if isinstance(left, SqlTerm) and isinstance(right, SqlTerm):
        return same(left, right)
    assert isinstance(left, RecordShape) and isinstance(right, RecordShape)
    parts = [same_value(a, b) for a, b in zip(left.fields, right.fields, strict=True)]
    if left.valid is not None or right.valid is not None:
        parts.insert(0, same(left.valid or TRUE, right.valid or TRUE))
    return both(parts)


def choose(condition: SqlTerm, yes: Shape, no: Shape) -> Shape:
    """`yes` where the condition holds, else `no`; both of one type."""
    if condition in (TRUE, FALSE):
        return yes if condition == TRUE else no
    if isinstance(yes, SqlTerm) and isinstance(no, SqlTerm):
        return call("where", condition, yes, no)
    assert isinstance(yes, RecordShape) and isinstance(no, RecordShape)
    valid = None
    if yes.valid is not None or no.valid is not None:
        valid = call("where", condition, yes.valid or TRUE, no.valid or TRUE)
    return RecordShape(valid, tuple(choose(condition, a, b) for a, b in zip(yes.fields, no.fields, strict=True)))


# --- lists --------------------------------------------------------------------------------------------------------


def pack(shape: Shape) -> SqlTerm:
    """A value as one term: a record becomes a struct, or null."""
    if isinstance(shape, SqlTerm):
        return shape
    parts = [pack(part) for part in shape.fields]
    packed = call(f"struct:{len(parts)}", *parts)
    return packed if shape.valid is None else call("if_valid", shape.valid, packed)


def unpack(term: SqlTerm, type_: Type) -> Shape:
    """The value that one term holds."""
    type_ = plain(type_)
    if not isinstance(type_, TupleOf):
        return term
    parts = tuple(unpack(call(f"struct_field:{i}", term), element) for i, element in enumerate(type_.elements))
    return RecordShape(call("is_present", term), parts)


def coerce(shape: Shape, given: Type, wanted: Type, level: int = 0) -> Shape:
    """The value as one of a type that it unifies with: null finds its type.

    Names do not matter.
    """
    given, wanted = plain(given), plain(wanted)
    if same_layout(given, wanted):
        return shape
    if given == NULL:
        return null(wanted)
    if isinstance(given, TupleOf) and isinstance(wanted, TupleOf):
        assert isinstance(shape, RecordShape)
        pairs = zip(shape.fields, given.elements, wanted.elements, strict=True)
        return RecordShape(shape.valid, tuple(coerce(part, a, b, level) for part, a, b in pairs))
    assert isinstance(given, ListOf) and isinstance(wanted, ListOf) and isinstance(shape, SqlTerm)
    name = f"c{level}"
    element = pack(coerce(unpack(parameter(name), given.element), given.element, wanted.element, level + 1))
    return call(f"cast:{type_name(wanted)}", call("map", shape, function(name, element)))


def merged(left: Type, right: Type) -> Type:
    """The type that holds the values of two types that agree but for names and nulls."""
    if NULL in (left, right):
        return (right if left == NULL else left).with_nullable()
    nullable = left.nullable or right.nullable
    if isinstance(left, TupleOf) and isinstance(right, TupleOf):
        elements = tuple(merged(a, b) for a, b in zip(left.elements, right.elements, strict=True))
        return TupleOf((None,) * len(elements), elements, nullable=nullable)
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        return ListOf(merged(left.element, right.element), nullable=nullable)
    return left.with_nullable(nullable)


def same_layout(left: Type, right: Type) -> bool:
    """Whether values of both types lie in the same columns, apart from "there" columns."""
    left, right = plain(left), plain(right)
    if isinstance(left, TupleOf) and isinstance(right, TupleOf):
        pairs = zip(left.elements, right.elements, strict=True)
        return len(left.elements) == len(right.elements) and all(same_layout(a, b) for a, b in pairs)
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        return same_layout(left.element, right.element)
    return left == right


def order_term(term: SqlTerm, type_: Type, level: int = 0) -> SqlTerm:
    """A term that the database orders as the canonical order does: null first, also inside."""
    type_ = plain(type_)
    if isinstance(type_, TupleOf):
        parts: list[SqlTerm] = []
        for i, element in enumerate(type_.elements):
            part = call(f"struct_field:{i}", term)
            parts += [call("is_present", part), order_term(part, element, level)]
        return call("if_valid", call("is_present", term), call(f"struct:{len(parts)}", *parts))
    if isinstance(type_, ListOf):
        name = f"o{level}"
        inside = parameter(name)
        key = call("struct:2", call("is_present", inside), order_term(inside, type_.element, level + 1))
        return call("map", term, function(name, key))
    return term
