"""From a chain of operators to a query or a measurement.

Names are looked up in the registry and the table of sinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from wpinq.api.query import Query
from wpinq.api.series import Series
from wpinq.errors import PlanError
from wpinq.expr.build import constant
from wpinq.expr.nodes import DEPTH_LIMIT, Constant, Expr, Lambda, TooDeep, make_lambda, write
from wpinq.expr.trace import trace
from wpinq.expr.types import NULL, ListOf, Type, tuple_type
from wpinq.language import syntax, tables
from wpinq.language.lambdas import Lambdas, TextFunction
from wpinq.language.public_values import Values
from wpinq.language.syntax import Text, shorten, suggest
from wpinq.marginals.tabulation import MarginalTabulation
from wpinq.measure.measurement import Measurement
from wpinq.plan.construct import construct
from wpinq.plan.node import Node
from wpinq.plan.operator import REGISTRY
from wpinq.sinks import sink as sinks
from wpinq.sinks.syntax import SinkSyntax
from wpinq.tables.tabulation import Grouping, Tabulation

#: The ways to write a release in text, by their names.
SINKS: dict[str, SinkSyntax] = {way.name: way for sink in sinks.SINKS.values() for way in sink.syntax}

_OWNERS = {way.name: sink for sink in sinks.SINKS.values() for way in sink.syntax}

#: What a program may have of some things, and the error beyond it.
LIMITS = {
    "operators": (5_000, "a program has at most {:,} operators; split it"),
    "releases": (200, "a program has at most {} releases; split it"),
    # each looks for a public domain through its whole plan
    "without keys": (50, "at most {} releases of a program may leave their keys out; give them: over: [...]"),
    # each is planned for half a second
    "without views": (20, "at most {} marginals of a program may be without views; give views: and shares:"),
    "characters": (syntax.TEXT_LIMIT, f"with functions written out, {syntax.LIMITS}; split it"),
    "characters with tables": (syntax.TABLES_LIMIT, f"with functions written out, {syntax.LIMITS}; split it"),
}

READ_AS = "ReadAs"

#: The steps from a series to the rows of an epoch, or of several.
EPOCH, BETWEEN = "Epoch", "Between"

#: How the numbers of operators are read, by kind; an argument of a sink is read as its kind says.
_NUMBERS = {"limit": "integer", "widths": "real"}

#: What a program gives a name to.
ProgramValue = Query | Measurement | Tabulation | MarginalTabulation


class Chains:
    """A builder of queries and measurements.

    `bound` has the meaning of each name so far.
    """

    def __init__(self, text: Text, values: Values, lambdas: Lambdas, bound: Mapping[str, ProgramValue]) -> None:
        self.text = text
        self.values = values
        self.lambdas = lambdas
        self.bound = bound
        self.counts = Counter[str]()

    def value(self, node: syntax.Syntax, depth: int = 0) -> ProgramValue:
        """The query, or what is released, of a chain: a name, and operators called on it."""
        steps: list[syntax.Invocation] = []
        while isinstance(node, syntax.Invocation) and node.subject is not None:
            steps.append(node)
            node = node.subject
        if depth > DEPTH_LIMIT:
            raise self.text.error(f"queries nest deeper than {DEPTH_LIMIT}; name some of them with var", node.position)
        if isinstance(node, syntax.Access):
            raise self.text.error(f"`{shorten(node.name)}` is called: .{shorten(node.name)}(…)", node.position)
        if not isinstance(node, syntax.Name):
            raise self.text.error("a query starts with the name of a source or of another query", node.position)
        if node.name not in self.bound:
            what = "is a parameter" if node.name in self.values.parameters else "has no meaning yet"
            raise self.text.error(
                f"`{shorten(node.name)}` {what}; a query starts with a source or another query; "
                f"{suggest(node.name, self.bound)}",
                node.position,
            )
        value: ProgramValue | Grouping = self.bound[node.name]
        for step in reversed(steps):
            if isinstance(value, (Measurement, Tabulation, MarginalTabulation)):
                raise self.text.error(
                    "nothing can follow a release; call it on the query, under a name of its own", step.position
                )
            value = self._step(value, step, depth)
        if isinstance(value, Grouping):
            raise self.text.error("By needs aggregates: .Agg(1, rows: Count())", steps[0].position)
        return value

    def _epochs(self, series: Series, step: syntax.Invocation) -> Query:
        """The rows of an epoch, or of several."""
        labels = {EPOCH: ("label",), BETWEEN: ("first", "last")}.get(step.name)
        if labels is None:
            words = 'a series gives .Epoch("2026-11-27") and .Between("…", "…"); running totals are asked for in Python'
            raise self.text.error(words, step.position)
        given = self.bind(step, dict.fromkeys(labels, False))
        found = [str(self.values.scalar(given[label])) for label in labels]
        return series.epoch(*found) if step.name == EPOCH else series.between(*found)

    def _query(self, node: syntax.Syntax, depth: int) -> Query:
        value = self.value(node, depth)
        if not isinstance(value, Query):
            raise self.text.error("this is a release; a query is needed", node.position)
        return value

    def _step(self, query: Query | Grouping, step: syntax.Invocation, depth: int) -> ProgramValue | Grouping:
        with self.text.placed(step.position):
            self._count("operators")
            if step.name == tables.AGG:
                return self._table(query, step)
            if isinstance(query, Grouping):
                raise self.text.error("only .Agg(epsilon, rows: Count(), …) can follow .By(…)", step.position)
            if isinstance(query, Series):
                return self._epochs(query, step)
            if step.name == tables.BY:
                return tables.read_grouping(self, query, step)
            if step.name == tables.MARGINALS:
                return self._marginals(query, step)
            if step.name in REGISTRY:
                return self._operator(query, step, depth)
            if step.name in SINKS:
                return self._release(query, step)
        if step.name == READ_AS:
            (note,) = self.bind(step, {"note": False}).values()
            reading = self.values.scalar(note)
            if not isinstance(reading, str):
                raise self.text.error('the note is a string: .ReadAs("half a node each")', note.position)
            return query.read_as(reading)
        methods = {operator.method: name for name, operator in REGISTRY.items()}
        known = [*REGISTRY, *SINKS, tables.BY, tables.AGG, tables.MARGINALS, READ_AS]
        hint = f"did you mean `{methods[step.name]}`?" if step.name in methods else suggest(step.name, known)
        raise self.text.error(f"there is no operator `{shorten(step.name)}`; {hint}", step.position)

    def bind(self, step: syntax.Invocation, parameters: Mapping[str, bool]) -> dict[str, syntax.Syntax]:
        """The arguments by parameter name, given in order or by name.

        The mapping says which are optional.
        """
        shape = f"{step.name}({', '.join(f'[{p}]' if optional else p for p, optional in parameters.items())})"
        bound: dict[str, syntax.Syntax] = {}
        for position, argument in enumerate(step.arguments):
            name = argument.name
            if name is None:
                if position >= len(parameters):
                    raise self.text.error(f"too many arguments: {shape}", argument.value.position)
                name = list(parameters)[position]
            if name not in parameters:
                hint = suggest(name, parameters)
                raise self.text.error(f"{step.name} takes no `{shorten(name)}`; {hint}", argument.value.position)
            if name in bound:
                raise self.text.error(f"`{name}` is given twice: {shape}", argument.value.position)
            bound[name] = argument.value
        missing = [name for name, optional in parameters.items() if not optional and name not in bound]
        if missing:
            raise self.text.error(f"{step.name} needs {' and '.join(missing)}: {shape}", step.position)
        return bound

    def _arguments(self, step: syntax.Invocation, parameters: Sequence[Any], depth: int = 0) -> dict[str, Any]:
        """What is given for the parameters of an operator or a sink, by name."""
        written = self.bind(step, {p.name: p.optional for p in parameters})
        arguments: dict[str, Any] = {}
        for name, kind in ((p.name, p.kind) for p in parameters if p.name in written):
            node = written[name]
            if kind == "query":
                arguments[name] = self._query(node, depth + 1).plan
            elif kind == "constant":
                arguments[name] = _constant(self.values.constant(node))
            elif kind in ("function", "widths") and isinstance(node, syntax.ArrowFunction):
                arguments[name] = self.lambdas.function(node)
            elif kind == "function":
                raise self.text.error(f"{step.name} needs a function for {name}: x => …", node.position)
            else:
                arguments[name] = getattr(self.values, _NUMBERS.get(kind, kind))(node)
        return arguments

    def _operator(self, query: Query, step: syntax.Invocation, depth: int) -> Query:
        operator = REGISTRY[step.name]
        arguments = self._arguments(step, operator.parameters, depth)
        others = (p.name for p in operator.parameters if p.kind == "query")
        inputs = [query.plan, *(arguments.pop(name) for name in others if name in arguments)]
        result = construct(operator, tuple(inputs), arguments, self._convert)
        self._check(result, step)
        return Query(result)

    def _convert(self, given: Any, types: tuple[Type, ...]) -> Lambda:
        """The `construct` callback: functions of the program and Python defaults alike are traced."""
        if isinstance(given, Expr):
            return make_lambda((), given)
        if not isinstance(given, TextFunction):
            return trace(given, types)
        with self.text.placed(given.node.position):
            return trace(given, types)

    def _check(self, node: Node, step: syntax.Invocation) -> None:
        """Refuse what could not be printed and read back: everything that is read can be."""
        held = (getattr(node.operator, item.name) for item in fields(node.operator))  # type: ignore[arg-type]  # every operator is a dataclass
        self._check_functions([value for value in held if isinstance(value, Lambda)], step)

    def _check_functions(self, functions: Iterable[Lambda], step: syntax.Invocation) -> None:
        for function in functions:
            try:
                text = write(function)
            except TooDeep:
                raise PlanError(
                    f"with its functions written out, {step.name} nests deeper than {DEPTH_LIMIT} or is too long; "
                    "split it over several Select"
                ) from None
            self._count("characters with tables", len(text))
            self._count("characters", syntax.size(text))

    def _table(self, query: Query | Grouping, step: syntax.Invocation) -> Tabulation:
        table = tables.read_tabulation(self, query if isinstance(query, Grouping) else query.by(), step)
        self._count("releases", len(table.measurements))
        self.values.hold(sum(len(asked.domain or ()) for asked in table.measurements), step.position)
        self._check_functions(tables.functions_of(table), step)
        return table

    def _count(self, what: str, many: int = 1) -> None:
        """Count towards a limit of the program; PlanError beyond it."""
        self.counts[what] += many
        most, problem = LIMITS[what]
        if self.counts[what] > most:
            raise PlanError(problem.format(most))

    def _marginals(self, query: Query, step: syntax.Invocation) -> MarginalTabulation:
        self._count("releases")
        self._count("without views", all(argument.name != "views" for argument in step.arguments))
        asked = tables.read_marginals(self, query, step)
        self.values.hold(asked.measuring.cells, step.position)
        self._check_functions((each.function for each in asked.coded), step)
        return asked

    def _release(self, query: Query, step: syntax.Invocation) -> Measurement:
        self._count("releases")
        sink = SINKS[step.name]
        arguments = self._arguments(step, sink.parameters)
        self._count("without keys", any(p.kind == "keys" and p.name not in arguments for p in sink.parameters))
        measurement: Measurement = sink.build(_OWNERS[step.name], query, arguments)
        if "over" not in arguments:
            self.values.hold(len(measurement.domain or ()), step.position)
        self._check(measurement.plan, step)
        return measurement


def _constant(value: Any) -> Constant:
    """A public value as an expression; an empty tuple can only be a list."""
    if isinstance(value, tuple):
        return Constant(tuple_type(_constant(item).type for item in value) if value else ListOf(NULL), value)
    return constant(value)
