"""Public values written in a program: epsilons, widths, limits, domains, parameters.

Numbers are exact: `0.1` is 1/10 and `1/3` a third, so that a budget is what it says.
"""

from __future__ import annotations

import datetime
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from wpinq.errors import LanguageError
from wpinq.expr import catalogue
from wpinq.expr.build import constant
from wpinq.expr.nodes import DEPTH_LIMIT, Constant
from wpinq.expr.values import presenter
from wpinq.language import syntax
from wpinq.language.syntax import Text, shorten, suggest
from wpinq.noise.epsilon import parse_epsilon
from wpinq.plan.domain import DOMAIN_LIMIT
from wpinq.sinks.keys import DigitKeys, GivenKeys, IntegerKeys, KeyDomain, ProductKeys

#: The value of a parameter.
PublicScalar = int | Fraction | str | bool | None

#: The most keys of all output domains of a program together.
KEYS_LIMIT = DOMAIN_LIMIT

_DOMAIN_FUNCTIONS = ("range", "product")
#: The functions that make a constant of a text.
LITERALS = ("date", "timestamp", "time", "duration", "decimal")
_EXACT: dict[str, Callable[..., int | Fraction]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class Values:
    """An evaluator of public values.

    It takes literals, parameters, `+ - * /`, lists, tuples, `range(a, b)` and `product(…)`.
    """

    def __init__(self, text: Text, parameters: Mapping[str, PublicScalar]) -> None:
        self.text = text
        self.parameters = parameters
        self.held = 0

    def scalar(self, node: syntax.Syntax) -> PublicScalar:
        """A number, string, true, false or null."""
        value: PublicScalar = self._value(node, 0)
        if value is not None and not isinstance(value, (bool, int, Fraction, str)):
            raise self.text.error("expected a number, a string, true, false or null", node.position)
        return value

    def integer(self, node: syntax.Syntax) -> int:
        """An integer."""
        value = self.number(node)
        if not isinstance(value, int):
            raise self.text.error("expected an integer", node.position)
        return value

    def numbers(self, node: syntax.Syntax) -> list[Any]:
        """A list of numbers."""
        value = self._value(node, 0)
        if not isinstance(value, list):
            raise self.text.error("expected a list of numbers, [0.25, 0.5]", node.position)
        return value

    def real(self, node: syntax.Syntax) -> float:
        """A number as the nearest float."""
        return self._float(self.number(node), node)

    def epsilon(self, node: syntax.Syntax) -> Fraction:
        """A privacy parameter."""
        with self.text.placed(node.position):
            return parse_epsilon(self.number(node))

    def keys(self, node: syntax.Syntax) -> list[Any]:
        """The keys of an output domain, as Python values."""
        value = self._value(node, 0)
        if not isinstance(value, (list, range)):
            raise self.text.error(
                "expected the public keys: range(0, 100), a list [1, 2], or product(range(0, 9), [1, 2])", node.position
            )
        self.hold(len(value), node.position)
        return [self.plain(key, node) for key in value]

    def key_domain(self, node: syntax.Syntax) -> KeyDomain:
        """A public domain of keys, described and not enumerated."""
        with self.text.placed(node.position):
            return self._described(node, 0)

    def _described(self, node: syntax.Syntax, depth: int) -> KeyDomain:
        if depth > DEPTH_LIMIT:
            raise self.text.error(f"this nests deeper than {DEPTH_LIMIT}", node.position)
        if not isinstance(node, syntax.Invocation) or node.subject is not None or node.new:
            return GivenKeys(tuple(self.keys(node)))
        if any(argument.name is not None for argument in node.arguments):
            raise self.text.error(f"{node.name} takes no named arguments", node.position)
        given = [argument.value for argument in node.arguments]
        if node.name == "product":
            return ProductKeys(tuple(self._described(part, depth + 1) for part in given))
        if node.name == "digits" and len(given) == 1:
            return DigitKeys(self.integer(given[0]))
        if node.name == "range" and len(given) == 2:
            first, end = (self._value(end, depth) for end in given)
            if type(first) is int and type(end) is int:
                return IntegerKeys(first, end - 1)
        return GivenKeys(tuple(self.keys(node)))

    def hold(self, keys: int, position: int) -> None:
        """Count keys towards what a program may release."""
        self.held += keys
        if self.held > KEYS_LIMIT:
            raise self.text.error(f"a program releases at most {KEYS_LIMIT:,} keys in all; split it", position)

    def constant(self, node: syntax.Syntax) -> Any:
        """One public value as a Python value: a scalar, or a tuple of values."""
        value = self._value(node, 0)
        if isinstance(value, (list, range)):
            raise self.text.error("expected one value, not a list", node.position)
        return self.plain(value, node)

    def plain(self, value: Any, node: syntax.Syntax) -> Any:
        """The value with floats for what was written as a decimal."""
        if isinstance(value, Fraction):
            return self._float(value, node)
        if isinstance(value, tuple):
            return tuple(self.plain(item, node) for item in value)
        return value

    def _float(self, value: int | Fraction, node: syntax.Syntax) -> float:
        try:
            return float(value)
        except OverflowError:
            raise self.text.error("this number is beyond the range of floats", node.position) from None

    def _value(self, node: syntax.Syntax, depth: int) -> Any:
        if depth > DEPTH_LIMIT:
            raise self.text.error(f"this nests deeper than {DEPTH_LIMIT}", node.position)
        if isinstance(node, syntax.Literal):
            return node.value
        if isinstance(node, syntax.Name):
            if node.name in self.parameters:
                return self.parameters[node.name]
            raise self.text.error(
                f"`{shorten(node.name)}` is not a parameter of the program, and only those can stand here; "
                f"{suggest(node.name, self.parameters)}",
                node.position,
            )
        if isinstance(node, syntax.Tuple):
            return tuple(self._value(item, depth + 1) for item in node.items)
        if isinstance(node, syntax.NumberList):
            return list(node.numbers)
        if isinstance(node, syntax.List):
            return [self._key(item, depth + 1) for item in node.items]
        if isinstance(node, syntax.Operation):
            return self._operation(node, depth + 1)
        if isinstance(node, syntax.Invocation) and node.subject is None:
            if node.name in _DOMAIN_FUNCTIONS and not node.new:
                return self._domain(node, depth + 1)
            if node.name in LITERALS and not node.new:
                return self._literal(node, depth + 1)
            if node.name == "digits":
                raise self.text.error(
                    "digits(…) is a domain that keys are listed out of: give a threshold too, above: 20", node.position
                )
        raise self.text.error(
            'only public values can stand here: numbers, strings, parameters and + - * / of them, date("…") and the '
            "like, lists, tuples, range(a, b), product(…)",
            node.position,
        )

    def number(self, node: syntax.Syntax, depth: int = 0) -> int | Fraction:
        """An exact number."""
        value = self._value(node, depth)
        if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
            raise self.text.error("expected a number", node.position)
        return value

    def _key(self, node: syntax.Syntax, depth: int) -> Any:
        value = self._value(node, depth)
        if isinstance(value, (list, range)):
            raise self.text.error(
                "a list of keys does not hold lists; write a key that is a record as (a, b)", node.position
            )
        return value

    def _operation(self, node: syntax.Operation, depth: int) -> int | Fraction:
        if node.operator not in (*_EXACT, "/"):
            raise self.text.error("public numbers are combined by + - * / only", node.position)
        *first, right = (self.number(operand, depth) for operand in node.operands)
        left = first[0] if first else 0  # -x is 0 - x
        if node.operator in _EXACT:
            return _EXACT[node.operator](left, right)
        if right == 0:
            raise self.text.error("division by zero", node.position)
        quotient = Fraction(left) / Fraction(right)
        exact = isinstance(left, int) and isinstance(right, int) and quotient.denominator == 1
        return int(quotient) if exact else quotient

    def _literal(self, node: syntax.Invocation, depth: int) -> Any:
        """A date, timestamp, time, duration or decimal, as Python has it."""
        values = [self._value(argument.value, depth) for argument in node.arguments]
        with self.text.placed(node.position):
            made = catalogue.apply(node.name, *map(constant, values))
        assert isinstance(made, Constant)
        return presenter(made.type)(made.value)

    def _domain(self, node: syntax.Invocation, depth: int) -> Any:
        for argument in node.arguments:
            if argument.name is not None:
                raise self.text.error(f"{node.name} takes no named arguments", argument.value.position)
        values = [self._value(argument.value, depth) for argument in node.arguments]
        if node.name == "range":
            kinds = set(map(type, values))
            if len(values) != 2 or kinds not in ({int}, {datetime.date}):
                raise self.text.error(
                    "a range of keys is range(first, end) with two integers or two dates, end left out", node.position
                )
            first, end = values if kinds == {int} else (day.toordinal() for day in values)
            self._check_size(end - first, node)
            keys = range(first, max(first, end))
            return keys if kinds == {int} else list(map(datetime.date.fromordinal, keys))
        if not values or not all(isinstance(value, (list, range)) for value in values):
            raise self.text.error("product takes lists or ranges: product(range(0, 9), [true, false])", node.position)
        self._check_size(math.prod(len(value) for value in values), node)
        return list(itertools.product(*values))

    def _check_size(self, size: int, node: syntax.Syntax) -> None:
        if size > KEYS_LIMIT:
            raise self.text.error(f"a domain has at most {KEYS_LIMIT:,} keys", node.position)


def override(name: str, given: object, default: PublicScalar) -> PublicScalar:
    """The value of a parameter given from outside, of the same kind as its default.

    The kinds are a number, a string or a bool.
    """
    if isinstance(default, bool):
        words = {"true": True, "false": False}
        if isinstance(given, bool):
            return given
        if isinstance(given, str) and given in words:
            return words[given]
        raise LanguageError(f"the parameter `{name}` is true or false, not {shorten(repr(given))}")
    if isinstance(default, (int, Fraction)):
        number = _number(name, given)
        return int(number) if isinstance(default, int) and number.denominator == 1 else number
    if given is None or isinstance(given, str):
        return given
    if default is None and isinstance(given, (bool, int, float, Fraction)):
        return given if isinstance(given, int) else _number(name, given)
    raise LanguageError(f"the parameter `{name}` is a string, not {shorten(repr(given))}")


def _number(name: str, given: object) -> Fraction:
    """The exact number of a value or a text; a float is the shortest decimal that names it."""
    problem = LanguageError(f"the parameter `{name}` is a number such as 3, 0.1 or 1/3, not {shorten(repr(given))}")
    if isinstance(given, bool):
        raise problem
    text = repr(given) if isinstance(given, float) else str(given).strip()
    _, _, exponent = text.lower().partition("e")
    if len(text) > 400 or len(exponent) > 4:
        raise problem
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise problem from None
