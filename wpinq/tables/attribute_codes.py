"""Attributes: a column of a table with the cells that its values fall in, and the expression that numbers them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wpinq.errors import ExpressionError, PlanError
from wpinq.expr import build, catalogue, infix
from wpinq.expr.column import Column
from wpinq.expr.nodes import Constant, Expr, Lambda, make_lambda
from wpinq.expr.trace import RecordFunction, trace
from wpinq.expr.types import FLOAT, INT, STR, CategoryOf, ListOf, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.measure.measurement import check_domain
from wpinq.plan.certify import certify
from wpinq.plan.node import Node, construct
from wpinq.plan.operators import Select
from wpinq.tables.attribute_cells import MISSING, OTHER, AttributeCells, is_closed


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """A column with its public cells, before it is known of which query. `wp.attribute` makes it."""

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
        closed = False
        if edges is None and categories is None:
            categories, closed = self._public(plan, function), True
        elif categories is not None:
            closed = is_closed(plain, categories)
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

    def _public(self, plan: Node, function: Lambda) -> tuple[Value, ...]:
        found = certify(construct(Select, (plan,), {"function": function}, trace)).domain
        if found is None:
            example = "bins=[0, 18, 30, 65]" if function.type in (INT, FLOAT) else 'categories=["north", "south"]'
            raise PlanError(
                f"the values of {self.name!r} are not public by the query: give them, without looking at the data, "
                f'wp.attribute("{self.name}", {example})'
            )
        return tuple(value for value in found if value is not None)


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
        """The number of the cell that a record's value falls in, of the function's parameter; null where it is none."""
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
        What is read of each record.
    bins : iterable, optional
        The ends of bins, ascending, of any widths: `[0, 18, 30, 65]` are three. A bin holds its lower end and not its
        upper one; the last holds both. For numbers, dates, times, durations and decimals.
    categories : iterable, optional
        The values that have a cell each. Where the query fixes the values of the column (categories, bools, `x % n`)
        neither bins nor categories need be given.
    missing : str or bool
        Whether null has a cell of its own, and what it is called: "missing" unless told. It is there only where the
        column may be null. With False, null counts among all others.
    other : str or bool
        Whether all other values have a cell, and what it is called: "other" unless told. It is there only where the
        type leaves room for other values. With False, records with other values count nowhere, in no marginal.
    name : str, optional
        Of the attribute, where the column is a function without a name.

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
    found = name
    if found is None:
        found = column if isinstance(column, str) else column.column_name if isinstance(column, Column) else None
    if not isinstance(found, str) or not found:
        raise PlanError('attribute: give a function a name, as in wp.attribute(lambda p: p.age // 10, name="decade")')
    if bins is not None and categories is not None:
        raise PlanError(f"attribute {found!r}: give bins or categories, not both")
    for given, what in ((missing, "missing"), (other, "other")):
        if not isinstance(given, (str, bool)) or given == "":
            raise PlanError(f"attribute {found!r}: {what} is a name, True or False, not {given!r}")
    return Attribute(
        column, found, _listed(bins, found, "bins"), _listed(categories, found, "categories"), missing, other
    )


def _listed(given: Iterable[object] | None, name: str, what: str) -> tuple[object, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise PlanError(f"attribute {name!r}: {what} are a list of public values, not {given!r}")
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
        return catalogue.apply(
            "where", infix.less(value, ends[middle]), between(first, middle), between(middle + 1, last)
        )

    final = catalogue.apply("where", infix.equal(value, ends[-1]), build.constant(cells.named - 1), outside)
    return catalogue.apply("where", infix.less(value, ends[-1]), between(0, len(ends) - 1), final)


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
            same = infix.equal(compared, Constant(type_, stored))
            return catalogue.apply("where", same, build.constant(number), outside)
        middle = (first + last) // 2
        below = infix.less(compared, Constant(type_, numbered[middle][0]))
        return catalogue.apply("where", below, among(first, middle), among(middle, last))

    return among(0, len(numbered))


def codes(attributes: Sequence[CodedAttribute]) -> Lambda:
    """The function from a record to the numbers of its cells, a field an attribute."""
    first = attributes[0].function
    # traced for themselves, all functions call their record alike, so that their bodies stand side by side
    body = build.record((None,) * len(attributes), tuple(attribute.code for attribute in attributes))
    return make_lambda(first.parameters, body, first.level)
