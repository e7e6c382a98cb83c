"""Marginals in text: `people.Marginals(1, Attribute("age", bins: [0, 18, 65]), "sex", order: 2)`.

A program that was printed says what is measured, with its shares, so that it reads back as the same measurement,
whatever a planner finds. Both ways are here: read, and written.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from wpinq.expr.nodes import Lambda
from wpinq.expr.printing import quote, write
from wpinq.language.sinks import write_keys
from wpinq.language.syntax import ArrowFunction, Invocation, List, Literal, Syntax
from wpinq.language.table_text import StepReader
from wpinq.language.text import shorten
from wpinq.marginals.measured_views import View
from wpinq.measure.epsilon import format_epsilon
from wpinq.query import Query
from wpinq.tables.aggregates import column_name
from wpinq.tables.attribute_cells import MISSING, OTHER, AttributeCells
from wpinq.tables.attribute_codes import Attribute, CodedAttribute, attribute
from wpinq.tables.marginal_tabulation import MarginalTabulation

MARGINALS, ATTRIBUTE = "Marginals", "Attribute"
"""The step that asks for marginals, and how an attribute is written."""

UNITS = 2**30
"""Shares are written as so many parts of this, which they are exactly."""


def read_marginals(reading: StepReader, query: Query, step: Invocation) -> MarginalTabulation:
    """What `Marginals` gives: an epsilon, attributes, and `order`, `workload`, `views`, `shares` or `objective`."""
    given: dict[str, Any] = {}
    attributes: list[Any] = []
    for position, argument in enumerate(step.arguments):
        node = argument.value
        if argument.name is None:
            if position == 0:
                given["epsilon"] = reading.values.epsilon(node)
            else:
                attributes.append(_attribute(reading, node))
            continue
        if argument.name in given:
            raise reading.text.error(f"`{argument.name}` is given twice", node.position)
        if argument.name == "epsilon":
            given["epsilon"] = reading.values.epsilon(node)
        elif argument.name == "order":
            given["order"] = reading.values.integer(node)
        elif argument.name == "objective":
            given["objective"] = reading.values.scalar(node)
        elif argument.name in ("workload", "views"):
            given[argument.name] = _views(reading, node)
        elif argument.name == "shares":
            given["shares"] = _shares(reading, node)
        else:
            raise reading.text.error(
                f"Marginals takes no `{shorten(argument.name)}`: it takes epsilon, attributes, order, workload, views, "
                "shares and objective",
                node.position,
            )
    if "epsilon" not in given:
        raise reading.text.error('Marginals needs epsilon: Marginals(1, "sex", order: 1)', step.position)
    views, shares = given.pop("views", None), given.pop("shares", None)
    if (views is None) != (shares is None) or (views is not None and len(views) != len(shares or ())):
        raise reading.text.error("views are what is measured, and shares the share of each: give both", step.position)
    if views is not None:
        if "objective" in given:
            raise reading.text.error("an objective is what views are planned for, and these are given", step.position)
        given["measure"] = dict(zip(views, shares, strict=True))
        if len(given["measure"]) < len(views):
            raise reading.text.error("a view is listed twice among those measured", step.position)
    return query.marginals(attributes, **given)


def _attribute(reading: StepReader, node: Syntax) -> Attribute:
    if isinstance(node, Literal) and isinstance(node.value, str):
        return attribute(node.value)
    if not isinstance(node, Invocation) or node.subject is not None or node.new or node.name != ATTRIBUTE:
        raise reading.text.error('an attribute is "sex" or Attribute("age", bins: [0, 18, 65])', node.position)
    names = {"column": False, "bins": True, "categories": True, "missing": True, "other": True, "name": True}
    written = reading.bind(node, names)
    found: dict[str, Any] = {}
    column = written.pop("column")
    if isinstance(column, ArrowFunction):
        found["column"] = reading.lambdas.function(column)
    elif isinstance(column, Literal) and isinstance(column.value, str):
        found["column"] = column.value
    else:
        raise reading.text.error('Attribute needs the name of a column, "age", or a function, x => …', column.position)
    for name, value in written.items():
        found[name] = reading.values.keys(value) if name in ("bins", "categories") else reading.values.scalar(value)
    return attribute(**found)


def _views(reading: StepReader, node: Syntax) -> list[tuple[str, ...]]:
    shape = 'views are lists of the names of attributes: [["age", "sex"], ["city"]]'
    if not isinstance(node, List):
        raise reading.text.error(shape, node.position)
    found = []
    for view in node.items:
        names = view.items if isinstance(view, List) else ()
        values = [name.value for name in names if isinstance(name, Literal)]
        if not isinstance(view, List) or len(values) < len(names) or not all(isinstance(v, str) for v in values):
            raise reading.text.error(shape, view.position)
        found.append(tuple(map(str, values)))
    return found


def _shares(reading: StepReader, node: Syntax) -> list[Any]:
    return [reading.values.plain(value, node) for value in reading.values.keys(node)]


def write_marginals(asked: MarginalTabulation) -> list[str]:
    """The step that asks for marginals, behind the query that they are of."""
    measuring = asked.measuring
    many = len(measuring.attributes.sizes)
    parts = [format_epsilon(asked.epsilon), *map(_written, asked.coded)]
    order = max(map(len, measuring.wanted))
    if order and measuring.wanted == tuple(combinations(range(many), order)):
        parts.append(f"order: {order}")
    else:
        parts.append(f"workload: {_named(asked, measuring.wanted)}")
    parts.append(f"views: {_named(asked, measuring.measured)}")
    parts.append(f"shares: [{', '.join(str(round(share * UNITS)) for share in measuring.shares)}]")
    return [f".{MARGINALS}({', '.join(parts)})"]


def functions_of_marginals(asked: MarginalTabulation) -> Iterator[Lambda]:
    """Every function that writing marginals writes."""
    return (each.function for each in asked.coded)


def _named(asked: MarginalTabulation, views: tuple[View, ...]) -> str:
    names = [quote(cells.name) for cells in asked.attributes]
    return f"[{', '.join('[' + ', '.join(names[place] for place in view) + ']' for view in views)}]"


def _written(coded: CodedAttribute) -> str:
    cells, column = coded.cells, column_name(coded.function)
    parts = [write(coded.function) if column is None else quote(column)]
    if cells.edges is not None:
        parts.append(f"bins: {_values(cells.edges, cells)}")
    else:
        parts.append(f"categories: {_values(cells.categories or (), cells)}")
    if coded.function.type.nullable and cells.missing != MISSING:
        parts.append(f"missing: {'false' if cells.missing is None else quote(cells.missing)}")
    if cells.other != OTHER:
        parts.append(f"other: {'false' if cells.other is None else quote(cells.other)}")
    if column != cells.name:
        parts.append(f"name: {quote(cells.name)}")
    return f"{ATTRIBUTE}({', '.join(parts)})"


def _values(values: tuple[Any, ...], cells: AttributeCells) -> str:
    return write_keys(values, cells.type)
