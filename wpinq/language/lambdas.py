"""The bodies of lambdas: from syntax to typed expressions.

The functions are those that traced lambdas call.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from inspect import Parameter, Signature

from wpinq.errors import ExpressionError
from wpinq.expr import build, catalogue
from wpinq.expr.declare import over_elements
from wpinq.expr.nodes import DEPTH_LIMIT, INFIX, Expr
from wpinq.expr.trace import lift
from wpinq.expr.types import DURATION, INT, NULL, ListOf, TupleOf
from wpinq.language import syntax
from wpinq.language.grammar import SCALARS
from wpinq.language.public_values import PublicScalar
from wpinq.language.syntax import Text, shorten, suggest

#: The most steps that all lambdas of a program take to build, functions expanded at each use.
STEP_LIMIT = 50_000

_INFIX = {sign: name for name, (sign, _, _) in reversed(INFIX.items())}
_KEEPS_NAME = frozenset({"rotate", "reverse", "sort"})
_ELEMENT_TYPES = {**SCALARS, "string": SCALARS["str"], "double": SCALARS["float"]}

Environment = Mapping[str, Expr]


class TextFunction:
    """A function of a program as a Python callable, which tracing calls like any other."""

    def __init__(self, lambdas: Lambdas, node: syntax.ArrowFunction, environment: Environment, depth: int) -> None:
        self.lambdas, self.node, self.environment, self.depth = lambdas, node, environment, depth
        shown = [f"{name}_" if keyword.iskeyword(name) else name for name in node.parameters]
        self.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in shown])

    def __call__(self, *values: object) -> Expr:
        given = [lift(value) for value in values]
        names = self.node.parameters
        if len(given) == 1 < len(names):
            (whole,) = given
            if not isinstance(whole.type, TupleOf) or len(whole.type.elements) != len(names):
                raise ExpressionError(f"a lambda of {len(names)} parameters needs a record of as many fields")
            given = build.fields(whole)
        inner = {**self.environment, **dict(zip(names, given, strict=True))}
        return self.lambdas.expression(self.node.body, inner, self.depth + 1)


class Lambdas:
    """A builder of expressions, in which a name is a variable, else a parameter of the program."""

    def __init__(self, text: Text, parameters: Mapping[str, PublicScalar], queries: Collection[str]) -> None:
        self.text = text
        self.parameters = parameters
        self.queries = queries
        self.functions: dict[str, syntax.ArrowFunction] = {}
        self.steps = 0
        self.tables: dict[syntax.NumberList, Expr] = {}

    def function(self, node: syntax.ArrowFunction) -> TextFunction:
        """A lambda of the program, over nothing but its parameters."""
        return TextFunction(self, node, {}, 0)

    def expression(self, node: syntax.Syntax, environment: Environment, depth: int) -> Expr:
        """The expression that syntax means where variables stand for these expressions."""
        self.steps += 1
        with self.text.placed(node.position):
            if self.steps > STEP_LIMIT:
                raise ExpressionError(
                    f"the lambdas of this program take more than {STEP_LIMIT:,} steps once functions are written out "
                    "at each use; use fewer functions of functions"
                )
            if depth > DEPTH_LIMIT:
                deep = f"this nests deeper than {DEPTH_LIMIT}, functions written out; split it over several Select"
                raise ExpressionError(deep)
            return self._build(node, environment, depth + 1)

    def _build(self, node: syntax.Syntax, environment: Environment, depth: int) -> Expr:
        def below(child: syntax.Syntax) -> Expr:
            return self.expression(child, environment, depth)

        if isinstance(node, syntax.Literal):
            return self.constant(node.value)
        if isinstance(node, syntax.Name):
            return self._name(node, environment)
        if isinstance(node, syntax.Access):
            return build.field_named(below(node.subject), node.name)
        if isinstance(node, syntax.Index):
            return self._index(below(node.subject), node, below)
        if isinstance(node, syntax.Invocation):
            return self._call(node, environment, depth)
        if isinstance(node, syntax.Operation):
            return self._operation(node.operator, *map(below, node.operands))
        if isinstance(node, syntax.Tuple):
            return build.record((None,) * len(node.items), tuple(below(item) for item in node.items))
        if isinstance(node, syntax.List):
            return self._list(node, below)
        if isinstance(node, syntax.NumberList):
            return self._table(node)
        if isinstance(node, syntax.RecordLiteral):
            return self._record(node, below)
        raise ExpressionError("a lambda stands only in functions of lists: sum(l, x => …)")

    def constant(self, value: PublicScalar) -> Expr:
        """A literal or a parameter as an expression; a decimal is a float."""
        try:
            return build.constant(float(value) if isinstance(value, Fraction) else value)
        except OverflowError:
            raise ExpressionError("this number is beyond the range of floats") from None

    def _name(self, node: syntax.Name, environment: Environment) -> Expr:
        if node.name in environment:
            return environment[node.name]
        if node.name in self.parameters:
            return self.constant(self.parameters[node.name])
        if node.name in self.queries:
            raise ExpressionError(f"`{shorten(node.name)}` is a query, and a lambda sees one record; see Join")
        known = [*environment, *self.parameters]
        raise ExpressionError(f"`{shorten(node.name)}` means nothing here; {suggest(node.name, known)}")

    def _index(self, subject: Expr, node: syntax.Index, below: Callable[[syntax.Syntax], Expr]) -> Expr:
        if not isinstance(subject.type, TupleOf):
            return catalogue.apply("element", subject, below(node.index))
        count = len(subject.type.elements)
        index = node.index.value if isinstance(node.index, syntax.Literal) else None
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
            raise ExpressionError(f"the fields of this record are [0] to [{count - 1}], written as numbers")
        return build.field(subject, index)

    def _operation(self, operator: str, left: Expr, right: Expr | None = None) -> Expr:
        if right is None:
            return catalogue.apply("negate" if operator == "-" else "not", left)
        if operator != "/":
            return catalogue.rebuild(_INFIX[operator], (left, right))
        if left.type in (INT, NULL) and right.type in (INT, NULL):  # as in the paper's `l.Count()/k`
            return build.call("floor_divide", left, right)
        if left.type == DURATION:
            return catalogue.apply("floor_divide", left, right)
        return catalogue.apply("divide", left, right)

    def _list(self, node: syntax.List, below: Callable[[syntax.Syntax], Expr]) -> Expr:
        built = catalogue.apply("list", *(below(item) for item in node.items))
        name = node.element
        if name is None or name in self.functions:
            return built
        if name not in _ELEMENT_TYPES:
            known = [*_ELEMENT_TYPES, *self.functions]
            raise ExpressionError(f"there is no type `{shorten(name)}`; {suggest(name, known)}")
        assert isinstance(built.type, ListOf)
        if built.type.element not in (_ELEMENT_TYPES[name], NULL):
            raise ExpressionError(f"this is a list of {built.type.element}, not of {name}")
        return built

    def _table(self, node: syntax.NumberList) -> Expr:
        if node not in self.tables:  # once, however often the function that holds it is used
            self.tables[node] = lift(list(node.numbers))
        return self.tables[node]

    def _record(self, node: syntax.RecordLiteral, below: Callable[[syntax.Syntax], Expr]) -> Expr:
        names: list[str] = []
        for field in node.fields:
            name = field.name if field.name is not None else _inferred(field.value)
            if name is None:
                raise self.text.error("this field needs a name: name = …", field.value.position)
            if name in names:
                raise self.text.error(
                    f"two fields are called `{shorten(name)}`; name them apart: {shorten(name)}2 = …",
                    field.value.position,
                )
            names.append(name)
        return build.record(tuple(names), tuple(below(field.value) for field in node.fields))

    def _call(self, node: syntax.Invocation, environment: Environment, depth: int) -> Expr:
        for argument in node.arguments:
            if argument.name is not None:
                raise self.text.error(
                    "functions of records take their arguments in order, without names", argument.value.position
                )
        if node.subject is None and node.name in self.functions:
            return self._inline(node, environment, depth)
        name = snake(node.name)
        if node.new or name not in catalogue.FUNCTIONS:
            known = self.functions if node.new else [*self.functions, *catalogue.FUNCTIONS]
            declare = f"; or declare it: function {shorten(node.name)}(x) => …;" if node.subject is None else ""
            raise ExpressionError(f"there is no function `{shorten(node.name)}`; {suggest(node.name, known)}{declare}")
        written = [*([] if node.subject is None else [node.subject]), *(argument.value for argument in node.arguments)]
        arguments: list[Expr] = []
        for position, value in enumerate(written):
            if isinstance(value, syntax.ArrowFunction) and position == 1 and catalogue.FUNCTIONS[name].takes_function:
                arguments[:] = over_elements(name, arguments[0], TextFunction(self, value, environment, depth))
            else:
                arguments.append(self.expression(value, environment, depth))
        return catalogue.apply(name, *arguments)

    def _inline(self, node: syntax.Invocation, environment: Environment, depth: int) -> Expr:
        function = self.functions[node.name]
        if len(node.arguments) != len(function.parameters):
            raise ExpressionError(
                f"{node.name}({', '.join(function.parameters)}) takes {len(function.parameters)} argument(s), "
                f"not {len(node.arguments)}"
            )
        arguments = [self.expression(argument.value, environment, depth) for argument in node.arguments]
        return self.expression(function.body, dict(zip(function.parameters, arguments, strict=True)), depth)


def snake(name: str) -> str:
    """The name of a function in snake case: `Count`, `StartsWith` and `starts_with` alike."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _inferred(value: syntax.Syntax) -> str | None:
    """The name of a field that has none, as C# takes it: the last name of `e`, of `x.path`.

    A rotated, reversed or sorted record keeps its name: `rotate(x.path)` is `path`.
    """
    while isinstance(value, syntax.Invocation) and snake(value.name) in _KEEPS_NAME and not value.new:
        if value.subject is not None:
            value = value.subject
        elif value.arguments:
            value = value.arguments[0].value
        else:
            return None
    return value.name if isinstance(value, (syntax.Name, syntax.Access)) else None
