"""Public properties of a step's records: domain, counted things, and size bounds.

Domains are inferred from the query alone, never from data. A constant has one value, `x % n` has n, a bool has two, a
partition's key has one, a record has the product of its fields' values. A null that comes of the data is left out. So
are records that Intersect could keep only by a negative weight: listed records are released, all others are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from numbers import Integral
from typing import Any

from wpinq.errors import PlanError, described
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, walk
from wpinq.expr.types import BOOL, CategoryOf, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.plan.sensitivity.change import Term, record as record_of
from wpinq.plan.sensitivity.weights import Fields, at_key, least

#: The most values that are inferred; beyond it a domain must be given.
DOMAIN_LIMIT = 1_000_000

#: The most values that inference handles on its way, so that no query is slow to write down.
WORK_LIMIT = 4 * DOMAIN_LIMIT

Domain = tuple[Value, ...]


class Inference:
    """One inference over a plan, with the work left to it.

    It is iterative, so depth is no limit, and shared steps are done once.
    """

    def __init__(self) -> None:
        self.left = WORK_LIMIT

    def of_function(
        self, function: Lambda, inputs: Sequence[Domain | None], *, elements: bool = False
    ) -> Domain | None:
        """The values of a function, or the elements of the lists that it gives."""
        arguments = {v.digest: domain for v, domain in zip(function.core.parameters, inputs, strict=True)}
        # values of categories, by their primitive expressions, which know strings only
        known = walk(function) if function.core is not function else ()
        listed_in_types = {e.core.digest: e.type.listed for e in known if isinstance(e.type, CategoryOf)}
        done: dict[tuple[bytes, bool], Domain | None] = {}
        root = (function.body.core, elements)
        stack = [(*root, False)]
        while stack:
            expr, listed, ready = stack.pop()
            parts = _parts(expr, listed)
            if ready:
                found = self.combine(expr, listed, arguments, [done[part.digest, within] for part, within in parts])
                if found is None:
                    found = of_type(expr.type) if listed else listed_in_types.get(expr.digest, of_type(expr.type))
                done[expr.digest, listed] = found
            elif (expr.digest, listed) not in done:
                stack.append((expr, listed, True))
                stack.extend((part, within, False) for part, within in parts)
        return done[root[0].digest, elements]

    def combine(
        self, expr: Expr, listed: bool, arguments: dict[bytes, Domain | None], parts: list[Domain | None]
    ) -> Domain | None:
        if isinstance(expr, Variable):
            return None if listed else arguments.get(expr.digest)
        if isinstance(expr, Constant):
            return tuple(dict.fromkeys(expr.value or ())) if listed else (expr.value,)
        if not isinstance(expr, Call):
            return None
        if expr.name == "where" or (listed and expr.name == "list"):
            return self.merge(parts)
        if listed:
            return None
        if expr.name == "record":
            return self.product(parts)
        if expr.name == "weighted":
            return parts[0]
        if expr.name == "field" and parts[0] is not None:
            (index,) = expr.attributes
            return self.keep(record[index] for record in parts[0] if record is not None)
        if expr.name == "modulo" and isinstance(divisor := expr.arguments[1], Constant):
            return self.keep(range(divisor.value)) if 0 < (divisor.value or 0) <= DOMAIN_LIMIT else None
        return None

    def merge(self, domains: Sequence[Domain | None]) -> Domain | None:
        finite = [domain for domain in domains if domain is not None]
        return self.keep(value for domain in finite for value in domain) if len(finite) == len(domains) else None

    def product(self, domains: Sequence[Domain | None]) -> Domain | None:
        finite = [domain for domain in domains if domain is not None]
        size = math.prod(map(len, finite))
        return self.keep(product(*finite)) if len(finite) == len(domains) and size <= DOMAIN_LIMIT else None

    def keep(self, values: Iterable[Value]) -> Domain | None:
        """The distinct values, while there are few enough and work is left."""
        kept: dict[Value, None] = {}
        for value in values:
            self.left -= 1
            kept[value] = None
            if len(kept) > DOMAIN_LIMIT or self.left < 0:
                return None
        return tuple(kept)


def of_type(type_: Type) -> Domain | None:
    """The values of a type that has few."""
    if isinstance(type_, CategoryOf):
        return type_.listed
    return (False, True) if type_ == BOOL else None


def _parts(expr: Expr, listed: bool) -> tuple[tuple[Expr, bool], ...]:
    """The parts that decide an expression's values; for each, whether its elements are meant."""
    if not isinstance(expr, Call):
        return ()
    if expr.name == "where":
        return tuple((branch, listed) for branch in expr.arguments[1:])
    if listed:
        return tuple((item, False) for item in expr.arguments) if expr.name == "list" else ()
    if expr.name == "record":
        return tuple((item, False) for item in expr.arguments)
    return ((expr.arguments[0], False),) if expr.name in ("weighted", "field") else ()


# What weights count: a public factor such that every weight is that many times a number of things, for all data.
#
# Static, from the plan and what its sources declare, never from whether weights happen to be whole. Each operator says
# its own part (`Operator.counted`); where it does not, its output is weights and no counts.

NUMBERED = ", numbered within each record"


@dataclass(frozen=True, slots=True)
class Counted:
    """Weights that are multiples of a public factor: `A(x) = factor · #{things with record x}`.

    Attributes
    ----------
    factor : Fraction
        What one thing weighs, more than 0.
    of : str
        What the things are, in the plural.
    even : bool
        Whether no record stands for more than one thing: every record that is there weighs the factor.
    """

    factor: Fraction
    of: str
    even: bool = False


@dataclass(frozen=True, slots=True)
class NoCount:
    """A step with weights that the plan does not show to be counts, and the reason."""

    step: str
    reason: str


def numbered(things: Counted, width: Fraction) -> Counted | NoCount:
    """The pieces of things that are cut by one width, where one is a multiple of the other."""
    # a piece of a width that no float is may leave a rest of an ulp, which is no thing
    if (width / things.factor).denominator == 1:
        of = things.of if things.of.endswith(NUMBERED) else things.of + NUMBERED
        return Counted(things.factor, of, width == float(width) and (things.even or width == things.factor))
    if (things.factor / width).denominator == 1:  # every piece is a whole one
        return Counted(width, f"slices of {things.of}", even=width == float(width))
    return NoCount(
        "Shave", f"cuts things of weight {things.factor} into pieces of {width}, neither a multiple of the other"
    )


# Upper bounds that a source may declare: on its records, and on those that agree in some fields.

#: The largest bound that may be declared.
SIZE_LIMIT = 2**53

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Upper bounds on the records of a source, in all and with one value of some fields.

    They are part of a source's declaration. Bounds of a dataset also hold without any one unit. They bound the work of
    plans, and never cut rows nor sharpen a bill.

    Attributes
    ----------
    records : int or None
        The most records, each counted once.
    keys : tuple of (tuple of str, int)
        Fields, and the most records with the same values there.
    """

    records: int | None = None
    keys: tuple[tuple[Names, int], ...] = ()

    def check(self, record: Type) -> None:
        """Refuse bounds that records of a type cannot have.

        Raises
        ------
        PlanError
            With what to declare instead.
        """
        if not isinstance(self.keys, tuple) or not self.bounds:
            raise PlanError("sizes bound the records of a source, or those of a key")
        for _, number in self.bounds:
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= SIZE_LIMIT:
                raise PlanError(f"a bound on records is an integer from 1 to 2^53, not {described(number)}")
        for names, _ in self.keys:
            fields = record.names if isinstance(record, TupleOf) and not record.nullable else ()
            if not names or len(set(names)) < len(names) or not all(name in fields for name in names):
                named = ", ".join(str(field) for field in fields if field is not None) or "none with a name"
                raise PlanError(
                    f"keys_at_most bounds the records that agree in fields of the source, which are {named}: write "
                    'keys_at_most={"src": 500}, or {("src", "dst"): 3} for several fields together'
                )
        if len({frozenset(names) for names, _ in self.keys}) < len(self.keys):
            raise PlanError("keys_at_most has one bound for the same fields")

    @property
    def bounds(self) -> tuple[tuple[Names, int], ...]:
        """Each bound, with the fields that its records agree in: none where it is on all of them."""
        return self.keys if self.records is None else (((), self.records), *self.keys)

    @property
    def words(self) -> tuple[str, ...]:
        """The declared bounds in words, for bills, in the order of the bounds."""
        numbers = ("1 record" if most == 1 else f"{most:,} records" for _, most in self.bounds)
        keys = (f" with one {' and '.join(names)}" if names else "" for names, _ in self.bounds)
        return tuple(f"at most {number}{key}" for number, key in zip(numbers, keys, strict=True))

    @property
    def text(self) -> str:
        """The same for the ledger: what an account fixes."""
        # repr: no name of a field may read like the rest of a declaration
        counted = (f"{most} a key {names!r}" if names else f"{most} records" for names, most in self.bounds)
        return ", ".join(f"at most {number}" for number in counted)


def sizes_of(records: object, keys: object) -> Sizes | None:
    """The bounds as they are declared in Python, in one order; None where there are none."""
    if records is None and keys is None:
        return None
    if keys is not None and not isinstance(keys, Mapping):
        raise PlanError('keys_at_most names fields and how many records may agree there: keys_at_most={"src": 500}')
    pairs = [(_names(names), _whole(most)) for names, most in (keys or {}).items()]
    return Sizes(_whole(records), tuple(sorted(pairs)))


def _names(names: object) -> Names:
    found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else ()
    if not found or not all(isinstance(name, str) for name in found):
        raise PlanError('keys_at_most names fields: keys_at_most={"src": 500, ("src", "dst"): 3}')
    return tuple(sorted(found))


def _whole(number: Any) -> Any:
    """An integer, numpy's too; anything else is left for `Sizes.check` to refuse."""
    return int(number) if isinstance(number, Integral) and not isinstance(number, bool) else number


# How many records a step can have, and how many rows it handles: upper bounds from what the sources declare.
#
# Besides the number of all records there is, for some fields, the most records with the same values there. Each
# operator states its own part (`Operator.rows`). No bill and no noise follows from these.

#: The most sets of fields that are followed.
KEYS_LIMIT = 32


@dataclass(frozen=True, slots=True)
class RowBounds:
    """Bounds on the records of a step.

    Attributes
    ----------
    records : int or None
        The most records; None where nothing declared bounds them.
    a_key : mapping
        Fields to the most records with the same values there.
    handled : int or None
        The most rows that the step makes or reads, before equal ones are added up.
    """

    records: int | None = None
    a_key: Mapping[Fields, int] = field(default_factory=dict)
    handled: int | None = None

    def at_key(self, record: Term) -> int | None:
        """The most records of which a key shows what is known in this symbolic record."""
        return least([self.records, at_key(self.a_key, record)])


@dataclass(frozen=True, slots=True)
class Sized:
    """Known facts of an input: its records, a bound on its norm, and properties of its weights.

    Attributes
    ----------
    rows : RowBounds
        Its records.
    norm_bound : Fraction
        A bound on its norm.
    largest : Fraction or None
        What no weight exceeds, where none is negative.
    even : bool
        Whether all records weigh the same.
    nonnegative : bool
        Whether no weight is negative.
    """

    rows: RowBounds
    norm_bound: Fraction
    largest: Fraction | None = None
    even: bool = False
    nonnegative: bool = False


def both(one: int | None, other: int | None) -> int | None:
    """A sum, of which nothing is known where one is unknown."""
    return None if one is None or other is None else one + other


def times(one: int | None, other: int | None) -> int | None:
    """A product, of which nothing is known where one is unknown and the other is not 0."""
    if one == 0 or other == 0:
        return 0
    return None if one is None or other is None else one * other


def pieces(below: Sized, width: Fraction, limit: int | None) -> tuple[int | None, int | None]:
    """The pieces of one width: of all records together, and of one record."""
    largest = None
    if below.largest is not None:  # a weight that was rounded up leaves one rest more
        ratio = below.largest / width
        largest = math.ceil(ratio) if below.even else math.floor(ratio) + 1
    one = least([limit, largest])
    # whole ones share the norm; a rest each
    shared = both(below.rows.records, math.floor(below.norm_bound / width) + 1)
    return least([times(below.rows.records, one), shared]), one


def kept(a_key: Mapping[Fields, int], limit: int = KEYS_LIMIT) -> dict[Fields, int]:
    """As many keys as are followed, those of the fewest records first."""
    return dict(sorted(a_key.items(), key=lambda item: (item[1], len(item[0]), sorted(item[0])))[:limit])


def overlaid(term: Term, known: Term) -> Term:
    """A symbolic record with what is known of some of its fields in their place."""
    if known.known:
        return known
    if not known.fields or len(known.fields) != len(term.fields):
        return term
    return record_of([overlaid(part, of_part) for part, of_part in zip(term.fields, known.fields, strict=True)])
