"""Attributes of marginals: their public cells, and the expression that numbers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np

from wpinq.errors import AnswersError, ExpressionError, PlanError, described, suggest
from wpinq.expr import build, catalogue
from wpinq.expr.declare import Column
from wpinq.expr.nodes import Constant, Expr, Lambda, make_lambda
from wpinq.expr.trace import RecordFunction, trace
from wpinq.expr.types import BOOL, FLOAT, INT, STR, CategoryOf, ListOf, Logical, TupleOf, Type
from wpinq.expr.values import Value, presenter
from wpinq.inference.checks import MOST_BINS, count_of, positive, sequence_of
from wpinq.measure.measurement import check_domain
from wpinq.plan.construct import construct
from wpinq.plan.format import type_from_json, type_to_json, value_from_json, values_to_json
from wpinq.plan.node import Node
from wpinq.plan.operators import Select
from wpinq.plan.properties import plan_properties
from wpinq.runtime.arrays import Floats, Integers
from wpinq.runtime.public import public

#: What the cells of null and of all else are called unless told.
MISSING, OTHER = "missing", "other"

#: The most cells of one attribute.
CELLS_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class AttributeCells:
    """The public cells of an attribute's values, numbered from 0, each value in one or none.

    Those of the bins or of the categories come first, in order; then that of null; then that of all other values. A
    bin holds its lower end and not its upper one, but the last, which holds both.

    Attributes
    ----------
    name : str
        The name of the attribute.
    type : Type
        Of its values.
    edges : tuple or None
        The ends of the bins, ascending, in canonical form; one more than there are bins. None of categories.
    categories : tuple or None
        The categories, each a cell, in canonical form. None of bins.
    missing : str or None
        The name of the cell of null; None without one.
    other : str or None
        The name of the cell of all other values; None without one.
    """

    name: str
    type: Type
    edges: tuple[Value, ...] | None
    categories: tuple[Value, ...] | None
    missing: str | None
    other: str | None

    def __post_init__(self) -> None:
        check_cells(self)

    @property
    def named(self) -> int:
        """The number of bins or categories."""
        return len(self.categories) if self.categories is not None else len(self.edges or ()) - 1

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.named + (self.missing is not None) + (self.other is not None)

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each cell, a text, each once; bins are written `[18, 30)`."""
        present = presenter(self.type)
        if self.categories is not None:
            found = [_text(present(value)) for value in self.categories]
        else:
            ends = [_text(present(value)) for value in self.edges or ()]
            closing = [")"] * (self.named - 1) + ["]"]
            found = [f"[{low}, {high}{close}" for low, high, close in zip(ends, ends[1:], closing, strict=False)]
        return (*found, *(label for label in (self.missing, self.other) if label is not None))

    @property
    def holds_null(self) -> bool:
        """Whether values drawn for its cells may be null."""
        return self.missing is not None or (self.other is not None and self.type != STR)

    @property
    def note(self) -> str:
        """The value of rows for the cell of all other values, and the way to leave it out."""
        value = repr(self.other) if self.type == STR else "null or an empty field"
        way = f"written as {value}; other=False (--drop-other {self.name}) drops the cell with its records"
        return "" if self.other is None else f"{self.name}: {self.other!r} holds all other values, {way}"

    def draw(self, codes: Integers, generator: np.random.Generator) -> list[Any]:
        """A value for each number of a cell, as Python has it.

        A category is itself. Of a bin, a value is drawn uniformly among those that it holds: ints, dates and the like
        one by one, floats as real numbers. The cell of null gives null. That of all others gives its own name where
        values are strings, and null otherwise: which values there were is not known.
        """
        if len(codes) and (codes.min() < 0 or codes.max() >= self.size):
            raise AnswersError(f"{self.name} has the cells 0 to {self.size - 1}")
        present = presenter(self.type)
        if self.categories is not None:
            values: list[Any] = [present(value) for value in self.categories]
            values += [None] * (self.missing is not None)
            values += [self.other if self.type == STR else None] * (self.other is not None)
            return [values[code] for code in codes.tolist()]
        assert self.edges is not None
        inside = codes < self.named
        drawn = _uniform(self.edges, self.type, np.where(inside, codes, 0), generator)
        return [present(value) if held else None for value, held in zip(drawn, inside.tolist(), strict=True)]

    def to_json(self) -> dict[str, Any]:
        """The cells as plain data."""
        return {
            "name": self.name,
            "type": type_to_json(self.type),
            "bins": None if self.edges is None else values_to_json(self.edges, self.type),
            "categories": None if self.categories is None else values_to_json(self.categories, self.type),
            "missing": self.missing,
            "other": self.other,
            "labels": list(self.labels),
        }

    @staticmethod
    def from_json(data: Any) -> AttributeCells:
        """The cells that plain data hold."""
        type_ = type_from_json(data["type"])

        def values(given: list[Any] | None) -> tuple[Value, ...] | None:
            return None if given is None else tuple(value_from_json(value, type_) for value in given)

        name, missing, other = data["name"], data["missing"], data["other"]
        if not isinstance(name, str) or not all(label is None or isinstance(label, str) for label in (missing, other)):
            raise AnswersError("attributes and their cells have names that are texts")
        return AttributeCells(name, type_, values(data["bins"]), values(data["categories"]), missing, other)


def check_cells(cells: AttributeCells) -> None:
    """Refuse cells that no value could tell apart, or that are called alike."""
    name = cells.name
    if (cells.edges is None) == (cells.categories is None):
        raise PlanError(f"the attribute {name!r} has bins or categories, one of the two")
    if cells.edges is not None:
        if not ordered(cells.type):
            raise PlanError(f"the attribute {name!r} is of type {cells.type}, which has no bins: give categories=[...]")
        if None in cells.edges:
            raise PlanError(f"null is no end of a bin of {name!r}: it has a cell of its own, see missing=")
        if len(cells.edges) < 2 or any(low >= high for low, high in zip(cells.edges, cells.edges[1:], strict=False)):
            raise PlanError(f"the bins of {name!r} are given by two or more ends that ascend: bins=[0, 18, 30, 65]")
    if cells.categories is not None and (not cells.categories or None in cells.categories):
        raise PlanError(
            f"the categories of {name!r} are one value or more, and null is none of them: it has a cell of its own, "
            "see missing="
        )
    if cells.categories is not None and len(set(cells.categories)) < len(cells.categories):
        raise PlanError(f"a category of {name!r} is listed twice: a value has one cell")
    if cells.size > CELLS_LIMIT:
        raise PlanError(f"the attribute {name!r} has {cells.size:,} cells, and at most {CELLS_LIMIT:,} are possible")
    labels = cells.labels
    for label in (cells.missing, cells.other):
        if label is not None and labels.count(label) > 1:
            raise PlanError(
                f"two cells of {name!r} would be called {label!r}: name those of null and of all else apart, "
                'missing="no answer", other="elsewhere"'
            )


def ordered(type_: Type) -> bool:
    """Whether values of a type have bins."""
    return type_ in (INT, FLOAT) or (isinstance(type_, Logical) and not isinstance(type_, CategoryOf))


def _text(value: object) -> str:
    """A value as a label: whole numbers without a point, dates by ISO 8601."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}" if abs(value) < 1e15 else repr(value)
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _uniform(edges: tuple[Value, ...], type_: Type, bins: Integers, generator: np.random.Generator) -> list[Value]:
    """A value inside of each bin, in canonical form."""
    if type_ == FLOAT:
        ends = np.array(edges, dtype=np.float64)
        low, high = ends[bins], ends[bins + 1]
        share = generator.random(len(bins))
        # by parts, for the difference of two floats may be none; and never the upper end, which is the next bin's
        found = np.minimum(low * (1 - share) + high * share, np.nextafter(high, low))
        return list(np.maximum(found, low).tolist())
    whole = np.array(edges, dtype=np.int64)
    last = whole[1:] - 1
    last[-1] += 1  # the last bin holds its upper end
    return list(generator.integers(whole[bins], last[bins], endpoint=True).tolist())


def is_closed(type_: Type, values: Sequence[Value]) -> bool:
    """Whether no value of a type but null can be outside of these."""
    if type_ == BOOL:
        return len(set(values)) == 2
    return isinstance(type_, CategoryOf) and set(type_.listed) <= set(values)


# --- attributes: columns with their cells -----------------------------------------------------------------------------


@public
@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """A column with its public cells, before its query is known, made by `wp.attribute`."""

    column: RecordFunction | Lambda
    name: str
    bins: tuple[object, ...] | None
    categories: tuple[object, ...] | None
    missing: str | bool
    other: str | bool

    def bound(self, plan: Node) -> CodedAttribute:
        """The same for the records of a plan.

        Raises
        ------
        PlanError, ExpressionError
            When there is no such column, its cells are neither given nor public, or a cell is none of its values.
        """
        try:
            function = trace(self.column, (plan.type,))
        except ExpressionError as error:
            raise type(error)(f"attribute {self.name!r}: {error}") from None
        type_ = function.type
        if isinstance(type_, (ListOf, TupleOf)):
            raise PlanError(f"the attribute {self.name!r} is a single value, and not of type {type_}")
        plain = type_.with_nullable(False)
        edges = None if self.bins is None else self._values(self.bins, plain)
        categories = None if self.categories is None else self._values(self.categories, plain)
        domain = plan_properties(construct(Select, (plan,), {"function": function}, trace)).domain
        if edges is None and categories is None:
            categories = self._public(domain, function)
        inside = set(categories or ())
        closed = domain is not None and all(
            value is None or value in inside or (edges is not None and edges[0] <= value <= edges[-1])
            for value in domain
        )
        missing = _named(self.missing, MISSING) if type_.nullable else None
        other = _named(self.other, OTHER)
        if closed and (missing is not None or not type_.nullable):
            other = None  # nothing is outside
        return CodedAttribute(AttributeCells(self.name, plain, edges, categories, missing, other), function)

    def _values(self, given: Sequence[object], type_: Type) -> tuple[Value, ...]:
        try:
            found = check_domain(given, type_)
        except PlanError as error:
            raise PlanError(f"attribute {self.name!r}: {error}") from None
        if len(found) < len(given):
            raise PlanError(f"attribute {self.name!r}: a value is listed twice among its bins or categories")
        return found

    def _public(self, domain: Iterable[Value] | None, function: Lambda) -> tuple[Value, ...]:
        if domain is None:
            example = "bins=[0, 18, 30, 65]" if function.type in (INT, FLOAT) else 'categories=["north", "south"]'
            raise PlanError(
                f"the values of {self.name!r} are not public by the query: give them, without looking at the data, "
                f'wp.attribute("{self.name}", {example})'
            )
        return tuple(value for value in domain if value is not None)


@dataclass(frozen=True, slots=True)
class CodedAttribute:
    """An attribute of the records of a plan.

    Attributes
    ----------
    cells : AttributeCells
        Its cells.
    function : Lambda
        From a record to its value.
    """

    cells: AttributeCells
    function: Lambda

    @property
    def code(self) -> Expr:
        """The number of the cell of a record's value, as an expression; null where it has none.

        It is of the function's parameter.
        """
        cells, value = self.cells, self.function.body
        missing, other = cells.named, cells.named + (cells.missing is not None)
        outside = build.constant(None) if cells.other is None else build.constant(other)
        found = _bin(value, cells, outside) if cells.edges is not None else _category(value, cells, outside)
        if not value.type.nullable:
            return found
        null = outside if cells.missing is None else build.constant(missing)
        return catalogue.apply("where", catalogue.apply("is_null", value), null, found)


def attribute(
    column: RecordFunction,
    *,
    bins: Iterable[object] | None = None,
    categories: Iterable[object] | None = None,
    missing: str | bool = True,
    other: str | bool = True,
    name: str | None = None,
) -> Attribute:
    """A column with its public cells, for `marginals`.

    Parameters
    ----------
    column : str, Column or function
        The column, or a function of a record.
    bins : iterable, optional
        The ends of bins, ascending, of any widths: `[0, 18, 30, 65]` are three. A bin holds its lower end and not its
        upper one; the last holds both. For numbers, dates, times, durations and decimals.
    categories : iterable, optional
        The values that have a cell each. Where the query fixes the values of the column (categories, bools, `x % n`)
        neither bins nor categories need be given.
    missing : str or bool
        Whether null has a cell, and its name: by default "missing", if the column may be null. With False, null counts
        among other values.
    other : str or bool
        Whether all other values have a cell, and its name: by default "other", if the type has other values. With
        False, records with other values count in no marginal.
    name : str, optional
        The name of the attribute, for a function without a name.

    Returns
    -------
    Attribute
        Cells must be chosen without looking at the data: they are public, and so is their number.

    Raises
    ------
    PlanError
        When there is no name, or there are both bins and categories.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int | None)
    >>> age = wp.attribute("age", bins=[0, 18, 30, 65])
    >>> city = wp.attribute("city", categories=["Oslo", "Bergen"], other="elsewhere")
    >>> for cells in people.marginals([age, city], order=2, epsilon=1).attributes:
    ...     print(cells.name, cells.labels)
    age ('[0, 18)', '[18, 30)', '[30, 65]', 'missing', 'other')
    city ('Oslo', 'Bergen', 'elsewhere')
    """
    of_column = column.column_name if isinstance(column, Column) else column
    found = of_column if name is None else name
    if not isinstance(found, str) or not found:
        raise PlanError('attribute: give a function a name, as in wp.attribute(lambda p: p.age // 10, name="decade")')
    if bins is not None and categories is not None:
        raise PlanError(f"attribute {found!r}: give bins or categories, not both")
    for given, what in ((missing, "missing"), (other, "other")):
        if not isinstance(given, (str, bool)) or given == "":
            raise PlanError(f"attribute {found!r}: {what} is a name, True or False, not {described(given)}")
    ends, values = _listed(bins, found, "bins"), _listed(categories, found, "categories")
    return Attribute(column, found, ends, values, missing, other)


def _listed(given: Iterable[object] | None, name: str, what: str) -> tuple[object, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise PlanError(f"attribute {name!r}: {what} are a list of public values, not {described(given)}")
    return tuple(given)


def _named(given: str | bool, name: str) -> str | None:
    return given if isinstance(given, str) else name if given else None


def _bin(value: Expr, cells: AttributeCells, outside: Expr) -> Expr:
    """The number of a bin, by halving: as few comparisons as there can be for each record."""
    edges = cells.edges or ()
    ends = [Constant(cells.type, edge) for edge in edges]

    def between(first: int, last: int) -> Expr:
        """For a value at or above the end before `first` and below the end `last`."""
        if first == last:
            return build.constant(first - 1) if first else outside
        middle = (first + last) // 2
        below, above = between(first, middle), between(middle + 1, last)
        return catalogue.apply("where", catalogue.less(value, ends[middle]), below, above)

    final = catalogue.apply("where", catalogue.equal(value, ends[-1]), build.constant(cells.named - 1), outside)
    return catalogue.apply("where", catalogue.less(value, ends[-1]), between(0, len(ends) - 1), final)


def _category(value: Expr, cells: AttributeCells, outside: Expr) -> Expr:
    """The number of a category, by halving their order where they have one."""
    type_, compared = cells.type, value
    if isinstance(type_, CategoryOf):
        type_, compared = STR, catalogue.apply("to_str", value)
    numbered = sorted((stored, number) for number, stored in enumerate(cells.categories or ()))
    closed = is_closed(cells.type, [stored for stored, _ in numbered])

    def among(first: int, last: int) -> Expr:
        stored, number = numbered[first]
        if last - first == 1:
            if closed:
                return build.constant(number)
            same = catalogue.equal(compared, Constant(type_, stored))
            return catalogue.apply("where", same, build.constant(number), outside)
        middle = (first + last) // 2
        below = catalogue.less(compared, Constant(type_, numbered[middle][0]))
        return catalogue.apply("where", below, among(first, middle), among(middle, last))

    return among(0, len(numbered))


def codes(attributes: Sequence[CodedAttribute]) -> Lambda:
    """The function from a record to the numbers of its cells, a field an attribute."""
    first = attributes[0].function
    # traced for themselves, all functions call their record alike, so that their bodies stand side by side
    body = build.record((None,) * len(attributes), tuple(attribute.code for attribute in attributes))
    return make_lambda(first.parameters, body, first.level)


# The attributes of a table with their public sizes, and views over them.

#: The places of the attributes of a view, from 0, each once and ascending. () is the total.
View = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredView:
    """A noisy marginal: what was released of a view, in units of counts.

    Attributes
    ----------
    view : tuple of int
        The attributes.
    counts : array
        An unbiased count of every cell, an axis an attribute, in the order of the view.
    scale : float
        The scale of the Laplace noise in each cell, more than 0: `1 / (θ · ε)` for a view of weight θ.
    """

    view: View
    counts: Floats
    scale: float

    @property
    def variance(self) -> float:
        """The variance of each cell's noise."""
        return 2 * self.scale**2


#: The most views of a workload or a strategy.
MOST_VIEWS = 2**16
_ORDERS = {"singles": 1, "all pairs": 2, "all triples": 3}


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes by place, with names or without.

    Attributes
    ----------
    sizes : tuple of int
        The number of values of each, at least 1; values are 0 … size − 1.
    names : tuple of str, optional
        Their names, each once.

    Examples
    --------
    >>> attributes = Attributes.of({"age": 8, "city": 7})
    >>> attributes.view(("city", "age")), attributes.cells((0, 1)), attributes.shown((1,))
    ((0, 1), 56, "('city',)")
    """

    sizes: tuple[int, ...]
    names: tuple[str, ...] | None = None

    @staticmethod
    def of_cells(attributes: Iterable[AttributeCells]) -> Attributes:
        """By the names of attributes, and as many values as each has cells."""
        held = tuple(attributes)
        return Attributes(tuple(cells.size for cells in held), tuple(cells.name for cells in held))

    @staticmethod
    def of(given: Any) -> Attributes:
        """From sizes, or from names with sizes; PlanError for anything else."""
        if isinstance(given, Attributes):
            return given
        names = tuple(given) if isinstance(given, Mapping) else None
        sizes = sequence_of(list(given.values()) if isinstance(given, Mapping) else given, "sizes", PlanError)
        if not sizes:
            raise PlanError("marginals need one attribute at least: give sizes, or a dict from names to sizes")
        if names is not None and not all(isinstance(name, str) for name in names):
            raise PlanError("names of attributes are strings: {'age': 8, 'city': 7}")
        return Attributes(tuple(count_of(size, "a size", 1, MOST_BINS, PlanError) for size in sizes), names)

    def view(self, given: Any) -> View:
        """The view of some attributes, by place or by name and in any order, or PlanError."""
        if self.names is not None and isinstance(given, str):
            given = (given,)
        places = [self._place(member) for member in sequence_of(given, "a view", PlanError)]
        if len(set(places)) < len(places):
            raise PlanError(f"the view {given!r} names an attribute twice: name each once")
        return tuple(sorted(places))

    def _place(self, member: Any) -> int:
        if self.names is not None and isinstance(member, str):
            if member in self.names:
                return self.names.index(member)
            raise PlanError(f"there is no attribute {member!r}; {suggest(member, self.names)}")
        if isinstance(member, bool) or not isinstance(member, int) or not 0 <= member < len(self.sizes):
            wanted = f"a place from 0 to {len(self.sizes) - 1}" + ("" if self.names is None else " or a name")
            raise PlanError(f"a view holds attributes, each {wanted}, not {described(member)}")
        return member

    def views(self, given: Any) -> tuple[View, ...]:
        """Several views, ascending and each once, from a list or from the words for one order.

        Examples
        --------
        >>> Attributes.of([2, 2, 2]).views("all pairs")
        ((0, 1), (0, 2), (1, 2))
        """
        if isinstance(given, str):
            if given not in _ORDERS or _ORDERS[given] > len(self.sizes):
                raise PlanError(
                    f"views are a list, 'singles', 'all pairs' or 'all triples', of no more attributes than the "
                    f"{len(self.sizes)} there are; not {described(given)}"
                )
            return tuple(combinations(range(len(self.sizes)), _ORDERS[given]))
        found = [self.view(each) for each in sequence_of(given, "views", PlanError)]
        if not found or len(found) > MOST_VIEWS:
            raise PlanError(f"give from 1 to {MOST_VIEWS} views, not {len(found)}")
        if len(set(found)) < len(found):
            raise PlanError("a view is listed twice: list each once, whatever the order of its attributes")
        return tuple(sorted(found, key=by_order))

    def of_order(self, order: object) -> tuple[View, ...]:
        """All views of this number of attributes."""
        many = len(self.sizes)
        if type(order) is not int or not 1 <= order <= many:
            raise PlanError(
                f"the order of marginals is how many attributes each is of, from 1 to {many}, not {described(order)}: "
                f"give order=1, or order={many} for all of them together"
            )
        if comb(many, order) > MOST_VIEWS:
            raise PlanError(
                f"there are {comb(many, order):,} marginals of order {order}: list those wanted in workload=[...]"
            )
        return tuple(combinations(range(many), order))

    def shape(self, view: View) -> tuple[int, ...]:
        """The size of each attribute of a view."""
        return tuple(self.sizes[i] for i in view)

    def cells(self, view: Iterable[int]) -> int:
        """The number of cells of a view."""
        return prod(self.sizes[i] for i in view)

    def named(self, view: View) -> tuple[Any, ...]:
        """A view by names, or by places where attributes have none."""
        return view if self.names is None else tuple(self.names[i] for i in view)

    def shown(self, view: View) -> str:
        """A view as a message has it."""
        return repr(self.named(view))


def weight_of(value: Any, what: str) -> float:
    """A finite number of more than 0, or PlanError."""
    try:
        return positive(value, what)
    except AnswersError as reason:
        raise PlanError(str(reason)) from None


def by_order(view: View) -> tuple[int, View]:
    """What views are sorted by: how many attributes they have, then which."""
    return len(view), view
