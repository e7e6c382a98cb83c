"""Scalar terms: what a column of a query can be, as a DAG with shared parts, before it becomes text.

A term is a column, a literal, a parameter of a list function, such a function, or a call of a template of the
dialect. Equal terms have equal digests, so sharing survives substitution and each term is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from wpinq.expr.nodes import below_first, digest_of

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
        "fit_int",
        "fit_float",
        "divide_float",
        "divisor",
        "float_to_int",
        "str_to_int",
        "str_to_float",
        "concatenate",
        "element",
        "table_element",
        "list_min",
        "list_max",
        "float_list_sum",
        "int_list_sum",
        "if_valid",
    )
)
NEVER_NULLABLE = frozenset(("same", "is_null", "is_present"))


def column(alias: str, name: str, nullable: bool) -> SqlTerm:
    """A column of the table that goes by this alias."""
    return SqlTerm("column", name, alias, nullable=nullable)


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
    """The function that puts `replace(term)` for each term of some kinds for which it gives one; work is shared."""
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
