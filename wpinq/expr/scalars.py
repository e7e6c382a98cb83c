"""The types of single values: those that engines know, and the logical ones that are said in them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from wpinq.errors import ExpressionError

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
PARTS_LIMIT = 1000
"""The most fields, at any depth, that a record may have."""
TYPE_DEPTH_LIMIT = 64
"""How deep records and lists may nest in one another."""
VALUES_LIMIT = 20_000_000
"""The most values that one record may hold, by the bounds of its lists."""
SCALE_LIMIT = 18
"""The most decimals of a `decimal`: 64 bits hold 18 digits of any value."""
CATEGORIES_LIMIT = 10_000
"""The most values of a `category`."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type of values. `nullable` says whether null may stand in for a value; it is not part of equality.

    `parts`, `depth` and `values` measure it: parts at any depth, levels of nesting, and the most values held where
    lists have bounds. They are limited, for a record nested in itself doubles with each step of a short query.
    """

    nullable: bool = field(default=False, compare=False, kw_only=True)
    parts: int = field(init=False, default=1, compare=False, repr=False)
    depth: int = field(init=False, default=0, compare=False, repr=False)
    values: int = field(init=False, default=1, compare=False, repr=False)

    def with_nullable(self, nullable: bool = True) -> Type:
        """The same type, with null allowed or not."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def __or__(self, other: None) -> Type:
        return self.with_nullable() if other is None else NotImplemented

    __ror__ = __or__

    def _measure(self, elements: tuple[Type, ...], times: int = 1) -> None:
        parts = 1 + sum(element.parts for element in elements)
        depth = 1 + max((element.depth for element in elements), default=0)
        values = 1 + times * sum(element.values for element in elements)
        if parts > PARTS_LIMIT:
            raise ExpressionError(f"a record may have {PARTS_LIMIT:,} fields at any depth, and no more")
        if depth > TYPE_DEPTH_LIMIT:
            raise ExpressionError(f"records and lists may nest {TYPE_DEPTH_LIMIT} deep in one another, and no deeper")
        if values > VALUES_LIMIT:
            raise ExpressionError(
                f"a record may hold {VALUES_LIMIT:,} values, but the bounds of its lists allow more: lower the limits"
            )
        for name, measure in (("parts", parts), ("depth", depth), ("values", values)):
            object.__setattr__(self, name, measure)


@dataclass(frozen=True, slots=True)
class Scalar(Type):
    """`int` (64 bits, signed), `float` (finite, 64 bits), `bool`, `str` (code points), or `null` alone."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Logical(Scalar):
    """A scalar that means more than the `stored` one which stands for it: what engines see is an int or a str.

    `date` counts days and `timestamp` microseconds since 1970 (UTC), `time` microseconds since midnight, `duration`
    microseconds.
    """

    stored: Scalar


@dataclass(frozen=True, slots=True)
class DecimalOf(Logical):
    """An exact number with so many decimals, as a 64-bit count of its last decimal."""

    scale: int


@dataclass(frozen=True, slots=True)
class CategoryOf(Logical):
    """A string out of a few that the declaration lists: a public domain."""

    listed: tuple[str, ...]
    known: frozenset[str] = field(init=False, default=frozenset(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", frozenset(self.listed))


INT = Scalar("int")
FLOAT = Scalar("float")
BOOL = Scalar("bool")
STR = Scalar("str")
NULL = Scalar("null", nullable=True)
DATE = Logical("date", INT)
TIMESTAMP = Logical("timestamp", INT)
TIME = Logical("time", INT)
DURATION = Logical("duration", INT)


def decimal(scale: int) -> DecimalOf:
    """The type of exact numbers with `scale` decimals, for declarations and casts.

    Parameters
    ----------
    scale : int
        From 0 to 18. Values are whole multiples of `10**-scale`, at most `2**63 - 1` of them.

    Examples
    --------
    >>> import wpinq as wp
    >>> from decimal import Decimal
    >>> sales = wp.source("sales", price=wp.decimal(2))
    >>> wp.evaluate(sales.select(lambda s: s.price * 3), {"sales": [(Decimal("0.10"),)]})
    WeightedDataset({Decimal('0.30'): 1.0})
    """
    if type(scale) is not int or not 0 <= scale <= SCALE_LIMIT:
        raise ExpressionError(f"the scale of a decimal is an integer from 0 to {SCALE_LIMIT}: decimal(2) has cents")
    return DecimalOf(f"decimal({scale})", INT, scale)


def category(*values: str) -> CategoryOf:
    """The type of strings out of a public list, for declarations and casts.

    Parameters
    ----------
    *values : str
        Each once; at most 10,000. They are public: part of the declaration, and the keys of a count without `over`.

    Examples
    --------
    >>> import wpinq as wp
    >>> votes = wp.source("votes", colour=wp.category("red", "green"))
    >>> votes.select(lambda v: v.colour).noisy_count(epsilon=1).domain
    ('red', 'green')
    """
    sound = all(type(value) is str and not any(0xD800 <= ord(c) <= 0xDFFF for c in value) for value in values)
    if not values or not sound or len(set(values)) != len(values) or len(values) > CATEGORIES_LIMIT:
        raise ExpressionError(f"a category lists its strings, each once, at most {CATEGORIES_LIMIT:,} of them")
    return CategoryOf(f"category({', '.join(map(json.dumps, values))})", STR, values)
