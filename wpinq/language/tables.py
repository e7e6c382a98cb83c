"""Tables in text: `people.By("city", keys: [...]).Agg(1, rows: Count())`.

A column is a name or a function in text as in Python, and `Agg` takes also, say, `salary: Mean("salary", 0, 200000)`.
Both ways are here: read, and written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any, Protocol

from wpinq.api.query import Query
from wpinq.errors import LanguageError
from wpinq.expr.nodes import RESERVED, Lambda, quote, write, write_public
from wpinq.language import syntax
from wpinq.language.lambdas import Lambdas
from wpinq.language.public_values import Values
from wpinq.language.syntax import Text, shorten, suggest
from wpinq.marginals.cells import MISSING, OTHER, Attribute, CodedAttribute, View, attribute
from wpinq.marginals.tabulation import MarginalTabulation
from wpinq.measure.measurement import check_domain
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.sinks.syntax import write_domain, write_keys
from wpinq.tables.agg import AGGREGATES
from wpinq.tables.aggregates import Aggregate, OfColumn, column_name
from wpinq.tables.grouping import NO_OTHER
from wpinq.tables.tabulation import Grouping, Tabulation

#: The steps that group records, and that ask for aggregates of the groups.
BY, AGG = "By", "Agg"


class StepReader(Protocol):
    """What reads the parts of a step: `Chains`."""

    text: Text
    values: Values
    lambdas: Lambdas

    def bind(self, step: syntax.Invocation, parameters: Mapping[str, bool]) -> dict[str, syntax.Syntax]: ...


def _arguments(reading: StepReader, step: syntax.Invocation) -> tuple[list[syntax.Syntax], dict[str, syntax.Syntax]]:
    """The arguments of a step: those in order, and after them those by name, each once."""
    in_order: list[syntax.Syntax] = []
    named: dict[str, syntax.Syntax] = {}
    for name, node in ((argument.name, argument.value) for argument in step.arguments):
        if name is None:
            in_order.append(node)
        elif name in named:
            raise reading.text.error(f"`{shorten(name)}` is given twice", node.position)
        else:
            named[name] = node
    return in_order, named


def _with_epsilon(
    reading: StepReader, step: syntax.Invocation, shape: str
) -> tuple[Fraction, list[syntax.Syntax], dict[str, syntax.Syntax]]:
    """The epsilon of a step, its first argument or one by name, and all others."""
    in_order, named = _arguments(reading, step)
    if in_order and "epsilon" not in named:
        named["epsilon"] = in_order.pop(0)
    if "epsilon" not in named:
        raise reading.text.error(f"{step.name} needs epsilon: {shape}", step.position)
    return reading.values.epsilon(named.pop("epsilon")), in_order, named


def read_grouping(reading: StepReader, query: Query, step: syntax.Invocation) -> Grouping:
    """The grouping of `By`: columns in order or by name, `keys`, `other` and `above`.

    With `above`, the keys are a domain.
    """
    in_order, named = _arguments(reading, step)
    keys, other, above = (named.pop(name, None) for name in ("keys", "other", "above"))
    if named and in_order and in_order[-1].position > next(iter(named.values())).position:
        raise reading.text.error("a column in order after a named one", in_order[-1].position)
    listed = reading.values.keys if above is None else reading.values.key_domain
    return query.by(
        *(_column(reading, node, step) for node in in_order),
        keys=None if keys is None else listed(keys),
        other=NO_OTHER if other is None else reading.values.constant(other),
        above=None if above is None else reading.values.number(above),
        **{name: _column(reading, node, step) for name, node in named.items()},
    )


def read_tabulation(reading: StepReader, grouping: Grouping, step: syntax.Invocation) -> Tabulation:
    """What `Agg` gives: an epsilon, aggregates by name, and `split`."""
    epsilon, in_order, named = _with_epsilon(reading, step, "Agg(1, rows: Count())")
    if in_order:
        raise reading.text.error("give each aggregate a name: Agg(1, rows: Count())", in_order[0].position)
    split = _split(reading, named.pop("split")) if "split" in named else None
    k_rule = reading.values.number(named.pop("k_rule")) if "k_rule" in named else None
    aggregates = {name: _aggregate(reading, node) for name, node in named.items()}
    return grouping.agg(epsilon=epsilon, split=split, k_rule=k_rule, **aggregates)


def _column(reading: StepReader, node: syntax.Syntax, step: syntax.Invocation) -> Any:
    if isinstance(node, syntax.ArrowFunction):
        return reading.lambdas.function(node)
    if isinstance(node, syntax.Literal) and isinstance(node.value, str):
        return node.value
    raise reading.text.error(f'{step.name} needs the name of a column, "city", or a function, x => …', node.position)


def _split(reading: StepReader, node: syntax.Syntax) -> dict[str, object]:
    if not isinstance(node, syntax.RecordLiteral) or any(field.name is None for field in node.fields):
        raise reading.text.error("split is the share of each: split: {rows = 1, salary = 3}", node.position)
    return {str(field.name): reading.values.epsilon(field.value) for field in node.fields}


def _aggregate(reading: StepReader, node: syntax.Syntax) -> Aggregate:
    if not isinstance(node, syntax.Invocation) or node.subject is not None or node.new or node.name not in AGGREGATES:
        name = node.name if isinstance(node, syntax.Invocation) else ""
        raise reading.text.error(f"`{shorten(name)}` is no aggregate; {suggest(name, AGGREGATES)}", node.position)
    made = AGGREGATES[node.name]
    kinds = dict(made.parameters)
    given: dict[str, Any] = {}
    for name, value in reading.bind(node, dict.fromkeys(kinds, False)).items():
        kind = kinds[name]
        given[name] = _column(reading, value, node) if kind == "function" else getattr(reading.values, kind)(value)
    return made(**given)


def write_table(tabulation: Tabulation) -> list[str]:
    """The steps that ask for a table, behind the query that it is of."""
    groups = tabulation.groups
    steps = []
    if tabulation.columns:
        columns = list(_columns(tabulation.columns))
        if groups.public_keys is not None:
            columns.append(f"keys: {write_keys(groups.public_keys, groups.type)}")
        if groups.listing is not None:
            columns.append(f"keys: {write_domain(groups.listing.domain, groups.type)}")
            columns.append(f"above: {groups.listing.above!r}")
        if groups.other is not NO_OTHER:
            columns.append(f"other: {write_public(groups.other, groups.type)}")
        steps.append(f".{BY}({', '.join(columns)})")
    asked = [format_epsilon(tabulation.epsilon)]
    asked += [f"{_name(name)}: {_written(aggregate)}" for name, aggregate in tabulation.aggregates.items()]
    if len(set(tabulation.epsilons.values())) > 1:
        shares = (f"{name} = {format_epsilon(epsilon)}" for name, epsilon in tabulation.epsilons.items())
        asked.append(f"split: {{{', '.join(shares)}}}")
    return [*steps, f".{AGG}({', '.join(asked)})"]


def functions_of(tabulation: Tabulation) -> Iterator[Lambda]:
    """Every function that writing a table writes."""
    yield from tabulation.columns.values()
    for aggregate in tabulation.aggregates.values():
        yield from (getattr(aggregate, name) for name, kind in aggregate.parameters if kind == "function")


def _columns(columns: Mapping[str, Lambda]) -> Iterator[str]:
    in_order = True
    for name, function in columns.items():
        in_order = in_order and column_name(function) == name
        yield quote(name) if in_order else f"{_name(name)}: {_function(function)}"


def _function(function: Lambda) -> str:
    name = column_name(function)
    return write(function) if name is None else quote(name)


def _written(aggregate: Aggregate) -> str:
    arguments = []
    for name, kind in aggregate.parameters:
        value = getattr(aggregate, name)
        if kind == "function":
            arguments.append(_function(value))
        elif kind == "keys":
            assert isinstance(aggregate, OfColumn)
            assert isinstance(aggregate.column, Lambda)
            type_ = aggregate.column.type
            arguments.append(write_keys(check_domain(value, type_), type_))
        elif kind == "numbers":
            arguments.append(f"[{', '.join(map(format_epsilon, value))}]")
        else:
            arguments.append(format_epsilon(value) if isinstance(value, Fraction) else repr(value))
    return f"{aggregate.name}({', '.join(arguments)})"


def _name(name: str) -> str:
    taken = name in RESERVED or name in ("epsilon", "split", "k_rule", "keys", "other", "above")
    if taken or not (name.isidentifier() and name.isascii()):
        raise LanguageError(f"{shorten(name)!r} cannot name a column in text: take ASCII letters, digits, underscores")
    return name


# Marginals in text: `people.Marginals(1, Attribute("age", bins: [0, 18, 65]), "sex", order: 2)`.
#
# A program that was printed says what is measured, with its shares, so that it reads back as the same measurement,
# whatever a planner finds. Both ways are here: read, and written.

#: The step that asks for marginals, and how an attribute is written.
MARGINALS, ATTRIBUTE = "Marginals", "Attribute"

#: Shares are written as so many parts of this, which they are exactly.
UNITS = 2**30


def read_marginals(reading: StepReader, query: Query, step: syntax.Invocation) -> MarginalTabulation:
    """The marginals of `Marginals`: an epsilon, attributes, and options.

    The options are `order`, `workload`, `views`, `shares` and `objective`.
    """
    epsilon, in_order, named = _with_epsilon(reading, step, 'Marginals(1, "sex", order: 1)')
    values, views_of = reading.values, partial(_views, reading)
    options: dict[str, Callable[[syntax.Syntax], Any]] = {"order": values.integer, "objective": values.scalar}
    options |= {"workload": views_of, "views": views_of, "shares": values.keys}
    given: dict[str, Any] = {}
    for name, node in named.items():
        if name not in options:
            raise reading.text.error(
                f"Marginals takes no `{shorten(name)}`: it takes epsilon, attributes, order, workload, views, shares "
                "and objective",
                node.position,
            )
        given[name] = options[name](node)
    views, shares = given.pop("views", None), given.pop("shares", None)
    if (views is None) != (shares is None) or (views is not None and len(views) != len(shares or ())):
        raise reading.text.error("views are the measured marginals, and shares their shares: give both", step.position)
    if views is not None:
        if "objective" in given:
            raise reading.text.error("an objective plans the views, and these are given: leave one out", step.position)
        given["measure"] = dict(zip(views, shares, strict=True))
        if len(given["measure"]) < len(views):
            raise reading.text.error("a view is listed twice among those measured", step.position)
    return query.marginals([_attribute(reading, node) for node in in_order], epsilon=epsilon, **given)


def _attribute(reading: StepReader, node: syntax.Syntax) -> Attribute:
    if isinstance(node, syntax.Literal) and isinstance(node.value, str):
        return attribute(node.value)
    if not isinstance(node, syntax.Invocation) or node.subject is not None or node.new or node.name != ATTRIBUTE:
        raise reading.text.error('an attribute is "sex" or Attribute("age", bins: [0, 18, 65])', node.position)
    names = {"column": False, "bins": True, "categories": True, "missing": True, "other": True, "name": True}
    written = reading.bind(node, names)
    found: dict[str, Any] = {"column": _column(reading, written.pop("column"), node)}
    for name, value in written.items():
        found[name] = reading.values.keys(value) if name in ("bins", "categories") else reading.values.scalar(value)
    return attribute(**found)


def _views(reading: StepReader, node: syntax.Syntax) -> list[tuple[str, ...]]:
    found = []
    for view in node.items if isinstance(node, syntax.List) else (node,):
        named = view.items if isinstance(view, syntax.List) else (view,)
        names = [name.value for name in named if isinstance(name, syntax.Literal) and isinstance(name.value, str)]
        if not isinstance(view, syntax.List) or len(names) < len(named):
            raise reading.text.error(
                'views are lists of the names of attributes: [["age", "sex"], ["city"]]', view.position
            )
        found.append(tuple(names))
    return found


def write_marginals(asked: MarginalTabulation) -> list[str]:
    """The step that asks for marginals, behind the query that they are of."""
    measuring = asked.measuring
    many = len(measuring.attributes.sizes)
    parts = [format_epsilon(asked.epsilon), *map(_written_marginal_text, asked.coded)]
    order = max(map(len, measuring.wanted))
    if order and measuring.wanted == tuple(combinations(range(many), order)):
        parts.append(f"order: {order}")
    else:
        parts.append(f"workload: {_named(asked, measuring.wanted)}")
    parts.append(f"views: {_named(asked, measuring.measured)}")
    parts.append(f"shares: [{', '.join(str(round(share * UNITS)) for share in measuring.shares)}]")
    return [f".{MARGINALS}({', '.join(parts)})"]


def _named(asked: MarginalTabulation, views: tuple[View, ...]) -> str:
    names = [quote(cells.name) for cells in asked.attributes]
    return f"[{', '.join('[' + ', '.join(names[place] for place in view) + ']' for view in views)}]"


def _written_marginal_text(coded: CodedAttribute) -> str:
    cells, column = coded.cells, column_name(coded.function)
    parts = [write(coded.function) if column is None else quote(column)]
    if cells.edges is not None:
        parts.append(f"bins: {write_keys(cells.edges, cells.type)}")
    else:
        parts.append(f"categories: {write_keys(cells.categories or (), cells.type)}")
    if coded.function.type.nullable and cells.missing != MISSING:
        parts.append(f"missing: {'false' if cells.missing is None else quote(cells.missing)}")
    if cells.other != OTHER:
        parts.append(f"other: {'false' if cells.other is None else quote(cells.other)}")
    if column != cells.name:
        parts.append(f"name: {quote(cells.name)}")
    return f"{ATTRIBUTE}({', '.join(parts)})"
