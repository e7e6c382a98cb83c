"""Primitives: their definition, their registry, and common parts of definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wpinq.errors import ExpressionError
from wpinq.expr.types import INT_MAX, INT_MIN, NULL, ListOf, Type
from wpinq.expr.values import Value

# Amounts that grow with the content of a record: sums of products of unknown sizes, with whole factors.
#
# The sizes are at least 1. A list that nothing bounds has an unknown size, and so has each of its elements, whose sizes
# add up to no more than that of the list: so going over all pieces of a text takes a time in proportion to the text.

#: Unknown sizes that are multiplied, by number, in order.
Factors = tuple[int, ...]

#: The most unknown sizes in a product.
DEGREE_LIMIT = 32


@dataclass(frozen=True, slots=True)
class Amount:
    """A bound: products of unknown sizes, each with how often it is added."""

    terms: Mapping[Factors, int] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int | Amount) -> Amount:
        """A whole number of at least 0 as an amount."""
        return number if isinstance(number, Amount) else cls({(): number} if number else {})

    def __add__(self, other: int | Amount) -> Amount:
        terms = dict(self.terms)
        for sizes, factor in Amount.of(other).terms.items():
            terms[sizes] = terms.get(sizes, 0) + factor
        return Amount(terms)

    __radd__ = __add__

    def __mul__(self, other: int | Amount) -> Amount:
        terms: dict[Factors, int] = {}
        for one, times in self.terms.items():
            for another, factor in Amount.of(other).terms.items():
                sizes = tuple(sorted(one + another))
                if len(sizes) > DEGREE_LIMIT:
                    raise ExpressionError("functions of lists stand too deep inside one another")
                terms[sizes] = terms.get(sizes, 0) + times * factor
        return Amount(terms)

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return bool(self.terms)

    def capped(self, most: int) -> Amount:
        """The same, where it is known to be no more than a number."""
        return Amount({sizes: min(factor, most) for sizes, factor in self.terms.items()})

    def over(self, size: int, count: Amount, total: Amount) -> Amount:
        """The sum of this amount over the elements of a list.

        `size` is the unknown size of one element, `count` their number, and `total` the sum of their sizes.
        """
        added = Amount()
        for sizes, factor in self.terms.items():
            others = Amount({tuple(one for one in sizes if one != size): factor})
            times = len(sizes) - len(*others.terms)
            for _ in range(times):  # a sum of powers is at most the power of the sum
                others = others * total
            added = added + (others if times else others * count)
        return added

    @property
    def known(self) -> bool:
        """Whether it is a number for every record."""
        return not any(self.terms)

    @property
    def factor(self) -> int:
        """The factor of its terms: their factors together."""
        return sum(self.terms.values())

    @property
    def degree(self) -> int:
        """The number of unknown sizes that are multiplied."""
        return max(map(len, self.terms), default=0)


def most(*amounts: int | Amount) -> Amount:
    """No less than any of some amounts."""
    terms: dict[Factors, int] = {}
    for amount in amounts:
        for sizes, factor in Amount.of(amount).terms.items():
            terms[sizes] = max(terms.get(sizes, 0), factor)
    return Amount(terms)


Types = tuple[Type, ...]
CallAttributes = tuple[str | int | None, ...]
Meaning = Callable[..., Any]
TypingRule = Callable[[Types, CallAttributes], Type]
Amounts = tuple[Amount, ...]
#: From the size and the longest string of each argument, and the type of the result, to the steps that a call takes
#: and the longest string in what it gives. Of an argument that is a function, the size is the steps of all its calls.
WorkRule = Callable[[Amounts, Amounts, Type], tuple[int | Amount, int | Amount]]

#: The most code points that a concatenation gives; beyond it, null. A string added to itself doubles.
TEXT_LIMIT = 1_000_000

#: The most elements that a range or a flattened list has.
LIST_LIMIT = 1_000_000


class Mistyped(Exception):
    """The reason why arguments do not fit; the caller adds the expression."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A core function, with its typing rule, its implementation and its work.

    These are `typing(argument types, attributes)` and `implement(attributes) -> function of values`.

    `arity` is the number of its arguments, or None where it takes any.
    """

    name: str
    arity: int | None
    typing: TypingRule
    implement: Callable[[CallAttributes], Meaning]
    work: WorkRule


PRIMITIVES: dict[str, Primitive] = {}


def define(
    name: str,
    arity: int | None,
    typing: TypingRule | None = None,
    meaning: Meaning | None = None,
    *,
    work: WorkRule | None = None,
    implement: Callable[[CallAttributes], Meaning] | None = None,
    place: str = "wpinq.expr.functions",
) -> None:
    """Register a primitive.

    One with a meaning that depends on its attributes gives `implement` instead. The work is required and never guessed:
    a primitive that counted as free would let one record take any time.
    """
    implement = implement or (meaning and (lambda attributes, plain=meaning: plain))
    if typing is None or implement is None or work is None:
        parts = {"typing rule": typing, "meaning": implement, "bound on its work": work}
        missing = " and no ".join(what for what, given in parts.items() if given is None)
        raise ExpressionError(f"the primitive {name!r} is not fully defined in {place}: it has no {missing}")
    if name in PRIMITIVES:
        raise ExpressionError(f"the primitive {name!r} is defined twice, the second time in {place}")
    PRIMITIVES[name] = Primitive(name, arity, typing, implement, work)


def primitive_named(name: str) -> Primitive:
    """The primitive of this name, or ExpressionError."""
    if name not in PRIMITIVES:
        raise ExpressionError(f"there is no primitive {name!r}: it is defined in no module of wpinq.expr.functions")
    return PRIMITIVES[name]


def typed(name: str, types: Types, attributes: CallAttributes) -> Type:
    """The type of a primitive call, or Mistyped."""
    type_ = primitive_named(name).typing(types, attributes)
    if not isinstance(type_, Type):
        raise ExpressionError(f"the typing rule of the primitive {name!r} gives no type")
    return type_


# --- what typing rules share ------------------------------------------------------------------------------------------


def any_null(types: Types) -> bool:
    return any(type_.nullable for type_ in types)


def expect(types: Types, *allowed: Type, what: str) -> None:
    for type_ in types:
        if type_ not in allowed and type_ != NULL:
            raise Mistyped(f"{what}, not {type_}")


def list_type(type_: Type) -> ListOf:
    """The type as a list type; Mistyped when it is not one."""
    if isinstance(type_, ListOf):
        return type_
    raise Mistyped(f"expected a list, not {type_}")


# --- what meanings share ----------------------------------------------------------------------------------------------


def fit_number(value: Any) -> Value:
    """The number if 64 bits can say it, else null; -0.0 is 0.0."""
    if type(value) is int:
        return value if INT_MIN <= value <= INT_MAX else None
    return value + 0.0 if math.isfinite(value) else None


def strict(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *values: None if None in values else function(*values)


# --- how much work: of what passes its arguments on, and of what reads every element and code point ----------------


def moved(sizes: Amounts, texts: Amounts, given: Type) -> tuple[int, Amount]:
    return 1, most(*texts)


def handled(sizes: Amounts, texts: Amounts, given: Type) -> tuple[Amount, Amount]:
    return sum(sizes, Amount.of(1)), most(*texts)
