"""Random lambdas over a given record type, as data: a recipe is drawn first, then traced once and remembered.

Recipes are nested tuples, so equal ones are traced and compiled only once however many plans draw them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import Any

from wpinq import functions as F
from wpinq.expr.nodes import Lambda
from wpinq.expr.trace import Symbol, lift, trace
from wpinq.expr.types import BOOL, FLOAT, INT, STR, ListOf, Scalar, TupleOf, Type

Recipe = tuple[Any, ...]
"""What a lambda computes: an operation and its arguments, which may be recipes."""

IDENTITY: Recipe = ("at", 0, ())


def atoms(types: tuple[Type, ...]) -> list[tuple[Recipe, Type]]:
    """Every scalar and every list that can be reached by field access, with the recipe that reaches it."""
    return [
        (("at", argument, path), reached) for argument, type_ in enumerate(types) for path, reached in _paths(type_)
    ]


def _paths(type_: Type) -> Iterator[tuple[tuple[int, ...], Type]]:
    if isinstance(type_, TupleOf):
        for i, element in enumerate(type_.elements):
            for path, reached in _paths(element):
                yield (i, *path), reached
    else:
        yield (), type_


def leaves(type_: Type) -> int:
    """How large a record type is: plans project records that grow beyond a few leaves."""
    if isinstance(type_, TupleOf):
        return sum(leaves(element) for element in type_.elements)
    return 2 * leaves(type_.element) if isinstance(type_, ListOf) else 1


def scalar(rng: Random, types: tuple[Type, ...]) -> Recipe:
    """A recipe for a scalar."""
    reachable = atoms(types)
    if not reachable or rng.random() < 0.03:
        return ("constant", rng.choice([0, 7, "k", True, 0.5]))
    atom, type_ = rng.choice(reachable)
    if type_ == INT and rng.random() < 0.25:
        others = [other for other, other_type in reachable if other_type == INT]
        return (rng.choice(["add", "subtract", "max", "equal", "less"]), atom, rng.choice(others))
    return _of_atom(rng, atom, type_)


def _of_atom(rng: Random, atom: Recipe, type_: Type) -> Recipe:
    if rng.random() < 0.4 and isinstance(type_, Scalar):
        return atom
    if type_ == INT:
        return rng.choice(
            [
                ("modulo", atom, ("constant", rng.choice([2, 3, 3, 4]))),
                ("floor_divide", atom, ("constant", rng.choice([2, 3]))),
                ("floor_divide", ("constant", 6), atom),
                ("add", atom, ("constant", rng.choice([1, -2]))),
                ("multiply", atom, atom),
                ("where", ("less", atom, ("constant", 2)), atom, ("constant", 2)),
                ("divide", atom, ("constant", rng.choice([2, 3]))),
                ("negate", atom),
                ("text", atom),
            ]
        )
    if type_ == FLOAT:
        return rng.choice([("floor", atom), ("add", atom, ("constant", 0.5)), ("less", atom, ("constant", 1.0))])
    if type_ == STR:
        return rng.choice(
            [("length", atom), ("lower", atom), ("head", atom), ("add", atom, ("constant", "x")), ("number", atom)]
        )
    if type_ == BOOL:
        return ("where", atom, ("constant", 1), ("constant", 0))
    if isinstance(type_, ListOf):
        choices: list[Recipe] = [("count", atom), ("element", atom, ("constant", 0)), ("sort", atom)]
        if type_.element == INT:
            choices += [("sum", atom), ("min", atom), ("max_of", atom)]
        return rng.choice(choices)
    return atom


def record(rng: Random, types: tuple[Type, ...]) -> Recipe:
    """A recipe for a record: the whole, a scalar, or scalars side by side."""
    draw = rng.random()
    if draw < 0.25 and leaves(types[0]) <= 4:
        return IDENTITY
    if draw < 0.35 and isinstance(types[0], TupleOf) and len(set(types[0].elements)) == 1:
        if isinstance(types[0].elements[0], Scalar):
            return (rng.choice(["sort", "reverse", "rotate"]), IDENTITY)
        return ("reverse", IDENTITY)
    if draw < 0.6:
        return ("tuple", *(scalar(rng, types) for _ in range(rng.choice([2, 2, 3]))))
    if draw < 0.7:
        return ("named", scalar(rng, types), scalar(rng, types))
    if draw < 0.8:  # keeps records apart, so that little cancels
        return ("tuple", *(atom for atom, _ in atoms(types)[:4]), ("constant", 1))
    return scalar(rng, types)


def predicate(rng: Random, types: tuple[Type, ...]) -> Recipe:
    """A recipe for a condition, sometimes null."""
    reachable = atoms(types)
    atom, type_ = rng.choice(reachable) if reachable else (("constant", 1), INT)
    if type_ == INT:
        condition = rng.choice(
            [
                ("less", atom, ("constant", rng.choice([1, 2, 3, 30]))),
                ("equal", ("modulo", atom, ("constant", rng.choice([2, 3]))), ("constant", rng.choice([0, 1]))),
                ("less", ("floor_divide", ("constant", 4), atom), ("constant", 3)),  # null for 0
                ("equal", atom, rng.choice([a for a, t in reachable if t == INT] or [atom])),
            ]
        )
    elif type_ == STR:
        condition = ("less", atom, ("constant", rng.choice(["a", "b", "c"])))
    elif type_ == FLOAT:
        condition = ("less", atom, ("constant", rng.choice([0.5, 1.0])))
    elif type_ == BOOL:
        condition = atom
    elif isinstance(type_, ListOf):
        condition = ("less", ("count", atom), ("constant", rng.choice([2, 4])))
    else:
        condition = ("null", atom)
    return ("not", condition) if rng.random() < 0.4 else condition


WEIGHTS = (0.5, 1.0, 2.0, -0.5, -1.0, 3.0, 0.25, 0.0)


def elements(rng: Random, types: tuple[Type, ...]) -> Recipe:
    """A recipe for the list of a SelectMany, weighted or not."""
    draw = rng.random()
    lists = [atom for atom, type_ in atoms(types) if isinstance(type_, ListOf)]
    integers = [atom for atom, type_ in atoms(types) if type_ == INT]
    if lists and draw < 0.3:
        return rng.choice([("items", rng.choice(lists)), ("subsets", rng.choice(lists))])
    if integers and draw < 0.45:
        return ("range", ("constant", 0), rng.choice(integers))
    value = record(rng, types)
    values = [value, value, ("tuple", value, ("constant", 1)), ("tuple", value, ("constant", 2))]
    if draw < 0.65:
        return ("list", *(values[: rng.choice([1, 2])]))
    pairs = [values[rng.choice([2, 3])] for _ in range(rng.choice([1, 2, 3]))]
    weights: list[Recipe] = [("constant", rng.choice(WEIGHTS)) for _ in pairs]
    if integers and rng.random() < 0.4:
        weights[0] = ("subtract", ("modulo", rng.choice(integers), ("constant", 4)), ("constant", 1))
    return ("list", *(("weighted", pair, weight) for pair, weight in zip(pairs, weights, strict=True)))


def widths(rng: Random, types: tuple[Type, ...]) -> Recipe | float:
    """A constant width, or a recipe for the list of widths of a record: zero, negative and null among them."""
    if rng.random() < 0.5:
        return rng.choice([0.5, 1.0, 3.0, 16.0, 100.0])
    integers = [atom for atom, type_ in atoms(types) if type_ == INT]
    pool: list[Recipe] = [("constant", w) for w in (0.5, 1.0, -1.0, 2.0, 0.0, 0.25, 3.0)]
    pool += [("subtract", atom, ("constant", 1)) for atom in integers]
    pool += [("floor_divide", ("constant", 3), atom) for atom in integers]  # null for 0
    return ("list", *(rng.choice(pool) for _ in range(rng.choice([2, 3, 5]))), ("constant", 100.0))


def reducer(rng: Random, element: Type) -> Recipe:
    """A recipe for a function of a group, all of them symmetric but for the order that GroupBy itself fixes."""
    numbers = [("inner", path) for path, reached in _paths(element) if reached == INT]
    group = IDENTITY
    choices: list[Recipe] = [
        ("count", group),
        ("floor_divide", ("count", group), ("constant", 2)),
        group,
        ("collect", group),
        ("element", group, ("constant", 0)),
    ]
    if numbers:
        number = rng.choice(numbers)
        choices += [
            ("sum", group, number),
            ("min", group, number),
            ("max_of", group, number),
            ("tuple", ("count", group), ("sum", group, number)),
        ]
    return rng.choice(choices)


@lru_cache(maxsize=100_000)
def _traced(recipe: Recipe, types: tuple[Type, ...], shown: str) -> Lambda:
    if len(types) == 1:
        return trace(lambda x: render(recipe, (x,)), types)
    return trace(lambda x, y: render(recipe, (x, y)), types)


def traced(recipe: Recipe, types: tuple[Type, ...]) -> Lambda:
    """The Lambda of a recipe. Equality of types leaves out what may be null, so their text is part of the key."""
    return _traced(recipe, types, repr(types))


_INFIX = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b,
    "modulo": lambda a, b: a % b,
    "equal": lambda a, b: a == b,
    "less": lambda a, b: a < b,
    "max": F.max,
    "element": F.element,
    "where": F.where,
    "not": lambda a: ~a,
    "negate": lambda a: -a,
    "null": F.is_null,
    "text": lambda a: F.cast(a, str),
    "number": lambda a: F.cast(a, int),
    "floor": F.floor,
    "length": F.length,
    "lower": F.lower,
    "head": lambda a: F.substring(a, 0, 1),
    "count": F.count,
    "sort": F.sort,
    "reverse": F.reverse,
    "rotate": F.rotate,
    "collect": F.collect,
    "items": lambda a: a,
    "subsets": lambda a: F.subsets(a, 2),
    "range": lambda a, b: F.range(a, b, limit=4),
    "weighted": F.weighted,
    "tuple": lambda *parts: parts,
    "named": lambda a, b: F.record(left=a, right=b),
    "list": lambda *items: list(items),
}
_REDUCERS = {"sum": F.sum, "min": F.min, "max_of": F.max}


def compose(outer: Recipe, inner: Recipe, types: tuple[Type, ...]) -> Lambda:
    """The Lambda of one recipe after another."""
    return trace(lambda x: render(outer, (Symbol(lift(render(inner, (x,)))),)), types)


def render(recipe: Recipe, symbols: tuple[Any, ...]) -> Any:
    """What a recipe gives for these symbols."""
    operation, *rest = recipe
    if operation == "at":
        value = symbols[rest[0]]
        for index in rest[1]:
            value = value[index]
        return value
    if operation == "constant":
        return rest[0]
    if operation in _REDUCERS:
        items = render(rest[0], symbols)
        if len(rest) == 1:
            return _REDUCERS[operation](items)
        path = rest[1][1]
        return _REDUCERS[operation](items, lambda item: render(("at", 0, path), (item,)))
    return _INFIX[operation](*(render(argument, symbols) for argument in rest))
