"""Expressions of SQL as typed expressions, with the null of SQL: `=` with null is unknown.

Where databases disagree, or where one of their results cannot be ours, an expression is refused with another way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial, reduce
from typing import Any

from sqlglot import exp

from wpinq.errors import ExpressionError
from wpinq.expr.build import constant, field_named
from wpinq.expr.catalogue import apply, divide, either, null_if_any, promote, to_float
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.types import BOOL, DATE, FLOAT, INT, STR, TIMESTAMP, CategoryOf, DecimalOf
from wpinq.language.sql.text import SqlText, check_parts
from wpinq.language.syntax import shorten, suggest


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column: the field that holds it, and the range that the statement makes public."""

    field: str
    range: tuple[Constant, Constant] | None = None


#: The columns that a clause can name, by table and name.
Tables = Mapping[str, Mapping[str, SqlColumn]]


def find_column(text: SqlText, tables: Tables, node: exp.Column) -> SqlColumn:
    """The column that a node names."""
    check_parts(text, node, "this", "table")
    if node.table and node.table not in tables:
        raise text.at(node, f"there is no table `{shorten(node.table)}` here; {suggest(node.table, tables)}")
    named = [tables[node.table]] if node.table else [*tables.values()]
    found = {columns[node.name].field: columns[node.name] for columns in named if node.name in columns}
    if not found:
        hint = suggest(node.name, [name for columns in named for name in columns])
        quoted = f"; a text is quoted once: '{shorten(node.name)}'" if getattr(node.this, "quoted", False) else ""
        raise text.at(node, f"there is no column `{shorten(node.name)}` here; {hint}{quoted}")
    if len(found) > 1:
        raise text.at(node, f"`{shorten(node.name)}` is a column of several tables: write the table before it")
    return next(iter(found.values()))


_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
_FUNCTIONS: dict[type, str] = {
    exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Neg: "negate", exp.Abs: "absolute",
    exp.LT: "less", exp.LTE: "less_equal", exp.GT: "greater", exp.GTE: "greater_equal", exp.EQ: "equal",
    exp.NEQ: "not_equal", exp.NullSafeEQ: "equal", exp.NullSafeNEQ: "not_equal", exp.SafeDivide: "divide",
    exp.And: "and", exp.Or: "or", exp.Not: "not", exp.DPipe: "concatenate", exp.Length: "length",
    exp.StartsWith: "starts_with", exp.DayOfYear: "day_of_year",
}  # fmt: skip
#: What is called as it is, on one value or two.
_FUNCTIONS |= {getattr(exp, part.title()): part for part in _PARTS}
_EXTRACTED = {**{part: part for part in _PARTS}, "doy": "day_of_year", "dayofyear": "day_of_year", "isoweek": "week"}
_MOMENTS = {exp.DType.DATE: DATE, exp.DType.TIMESTAMP: TIMESTAMP, exp.DType.DATETIME: TIMESTAMP}
_INTEGERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_SPELLINGS = "databases change letters beyond A to Z, too: list the spellings, city IN ('Oslo', 'OSLO')"
_MENDS: dict[type, str] = {
    exp.Lower: _SPELLINGS,
    exp.Upper: _SPELLINGS,
    exp.Round: "halves are rounded in several ways: FLOOR(x + 0.5)",
    exp.Concat: "databases disagree on null in it: a || b",
    exp.Subquery: "a value of other rows depends on all of them: JOIN, or write a constant",
    exp.Exists: "it depends on other rows: JOIN",
    exp.Star: "it stands only in COUNT(*), or alone in a subquery",
}


class Expressions:
    """A reader of expressions over one record."""

    def __init__(self, text: SqlText, tables: Tables, record: Expr) -> None:
        self.text, self.tables, self.record = text, tables, record
        self.known: dict[int, tuple[exp.Expr, Expr]] = {}  # each node is read once, however often it is asked for

    def value(self, node: exp.Expr) -> Expr:
        """The value of an expression."""
        if not isinstance(node, exp.Expr):
            raise self.text.error("a value is missing: a function or a sign has too little around it", 0)
        if id(node) not in self.known:
            self.known[id(node)] = node, self._read(node)
        return self.known[id(node)][1]

    def _read(self, node: exp.Expr) -> Expr:
        try:
            name = _FUNCTIONS.get(type(node))
            if name is not None and not isinstance(node.args.get("expression"), exp.Interval):
                check_parts(self.text, node, *_READ)
                values = self._fitted(*(node.args[part] for part in ("this", "expression") if node.args.get(part)))
                found = apply(name, *values)
                return null_if_any(values, found) if isinstance(node, (exp.EQ, exp.NEQ)) else found
            if type(node) not in _READERS:
                mend = _MENDS.get(type(node), "docs/sql.md lists the functions that there are")
                raise self.text.at(node, f"{shorten(node.key.upper())} is refused here: {mend}")
            check_parts(self.text, node, *_READ, *_READ_OF.get(type(node), ()))
            return _READERS[type(node)](self, node)
        except ExpressionError as error:
            raise self.text.at(node, str(error)) from None

    def truth(self, node: exp.Expr) -> Expr:
        """A condition of which only the difference of true from false or unknown matters."""
        node = node.unnest()
        if isinstance(node, (exp.And, exp.Or)):
            return apply(node.key, self.truth(node.this), self.truth(node.expression))
        if isinstance(node, exp.EQ):
            values = self._fitted(node.this, node.expression)
            return self.value(node) if all(value.type.nullable for value in values) else apply("equal", *values)
        return self._among(node)[0] if isinstance(node, exp.In) else self.value(node)

    def constants(self, of: exp.Expr, values: Sequence[exp.Expr]) -> list[Constant] | None:
        """Constants as values of the type of an expression; None where one is none."""
        found = [self._fitted(of, each)[1] for each in values]
        plain = [each for each in found if isinstance(each, Constant) and each.value is not None]
        return plain if len(plain) == len(found) else None

    def _fitted(self, *nodes: exp.Expr) -> tuple[Expr, ...]:
        """Values that meet: texts beside a date are dates, and numbers beside a decimal decimals."""
        values = [self.value(node) for node in nodes]
        types = [value.type.with_nullable(False) for value in values]
        moment = next((type_ for type_ in types if type_ in (DATE, TIMESTAMP)), None)
        exact = any(isinstance(type_, DecimalOf) for type_ in types)
        for place, value in enumerate(values):
            if isinstance(value, Constant) and value.type == STR and moment is not None:
                values[place] = apply(moment.name, value)
            elif isinstance(value, Constant) and value.type == FLOAT and exact:
                values[place] = constant(Decimal(repr(value.value)))
        return tuple(values)

    def _column(self, node: exp.Column) -> Expr:
        return field_named(self.record, find_column(self.text, self.tables, node).field)

    def _literal(self, node: exp.Literal) -> Expr:
        try:
            number = int if node.this.isdigit() else float
            return constant(node.this if node.is_string else number(node.this))
        except (ValueError, OverflowError):
            raise self.text.at(node, "this number is beyond the range of numbers") from None

    def _among(self, node: exp.In) -> tuple[Expr, Expr]:
        """Whether a value is one of a list, false for null; and the value."""
        check_parts(self.text, node, "this", "expressions")
        listed = self.constants(node.this, node.expressions)
        if not listed:
            raise self.text.at(node, "IN lists constants that are not null: city IN ('Oslo', 'Rome')")
        tests = [apply("equal", value := self.value(node.this), each) for each in listed]
        while len(tests) > 32:  # in few levels
            tests = [reduce(either, tests[start : start + 2]) for start in range(0, len(tests), 2)]
        return reduce(either, tests), value

    def _in(self, node: exp.In) -> Expr:
        among, value = self._among(node)
        return null_if_any((value,), among)

    def _between(self, node: exp.Between) -> Expr:
        low, high = (self._fitted(node.this, node.args[end]) for end in ("low", "high"))
        return apply("and", apply("greater_equal", *low), apply("less_equal", *high))

    def _is(self, node: exp.Is) -> Expr:
        if not isinstance(node.expression, exp.Null):
            raise self.text.at(node, "IS takes NULL; a condition needs no IS TRUE")
        return apply("is_null", self.value(node.this))

    def _moved(self, node: exp.Add | exp.Sub) -> Expr:
        steps = node.expression
        unit, count = str(steps.args.get("unit")).lower(), steps.this
        if unit not in (*_PARTS, "week") or not isinstance(count, exp.Literal) or not count.this.isdigit():
            raise self.text.at(steps, "write a whole number of a unit: day + INTERVAL 3 MONTH")
        number = constant(int(count.this) * (1 if isinstance(node, exp.Add) else -1))
        return apply("offset", self.value(node.this), number, constant(unit))

    def _divide(self, node: exp.Div) -> Expr:
        one, other = self.value(node.this), self.value(node.expression)
        if not isinstance(node.expression.unnest(), exp.Nullif) and not (isinstance(other, Constant) and other.value):
            raise self.text.at(node, "databases disagree on a division by 0: a / NULLIF(b, 0) is null for it")
        return divide(one, other)

    def _modulo(self, node: exp.Mod) -> Expr:
        """A remainder with the sign of the dividend, as databases have it."""
        one, other = self.value(node.this), self.value(node.expression)
        if one.type != INT or not (isinstance(other, Constant) and other.type == INT and other.value > 0):
            raise self.text.at(node, "a remainder is of a whole number by a positive one that is written: x % 7")
        rest, zero = apply("modulo", one, other), constant(0)
        if _at_least_0(one):
            return rest
        below = apply("and", apply("less", one, zero), apply("not_equal", rest, zero))
        return apply("where", below, apply("subtract", rest, other), rest)

    def _floor(self, node: exp.Floor) -> Expr:
        inner = node.this.unnest()
        if isinstance(inner, exp.Div):
            one, other = self.value(inner.this), self.value(inner.expression)
            if one.type == other.type == INT and isinstance(other, Constant) and other.value > 0:
                return apply("floor_divide", one, other)
        value = self.value(node.this)
        return value if value.type == INT else apply("floor", value)

    def _like(self, node: exp.Like) -> Expr:
        pattern = node.expression.this if isinstance(node.expression, exp.Literal) else ""
        word = pattern.strip("%")
        if pattern not in (f"{word}%", f"%{word}%") or not word or set("_%\\") & set(word):
            raise self.text.at(node, "LIKE takes 'word%' or '%word%', without other signs")
        return apply("contains" if pattern[0] == "%" else "starts_with", self.value(node.this), constant(word))

    def _choice(self, node: exp.Case | exp.If) -> Expr:
        branches, rest = (node.args["ifs"], "default") if isinstance(node, exp.Case) else ([node], "false")
        subject = node.this if isinstance(node, exp.Case) else None
        parts = [each.this if subject is None else exp.EQ(this=subject, expression=each.this) for each in branches]
        default = node.args.get(rest) or exp.Null()
        *values, result = promote(*(self.value(each) for each in (*(b.args["true"] for b in branches), default)))
        for condition, value in reversed([*zip(map(self.truth, parts), values, strict=True)]):
            result = apply("where", condition, value, result)
        return result

    def _coalesce(self, node: exp.Coalesce) -> Expr:
        *values, result = promote(*self._fitted(node.this, *node.expressions))
        for value in reversed(values):
            result = apply("where", apply("is_null", value), result, value)
        return result

    def _nullif(self, node: exp.Nullif) -> Expr:
        one, other = self._fitted(node.this, node.expression)
        return apply("where", apply("equal", one, other), constant(None), one)

    def _extremes(self, node: exp.Greatest | exp.Least) -> Expr:
        values = promote(*self._fitted(node.this, *node.expressions))
        if any(value.type.nullable for value in values):
            mend = "CLAMP(x, 0, 100) is null for it, and COALESCE(x, 0) replaces it"
            raise self.text.at(node, f"databases disagree on null in LEAST and GREATEST: {mend}")
        return reduce(partial(apply, "max" if isinstance(node, exp.Greatest) else "min"), values)

    def _clamp(self, node: exp.Anonymous) -> Expr:
        if node.name.upper() != "CLAMP" or len(node.expressions) != 3:
            mend = "CLAMP takes a value and two ends: CLAMP(age, 0, 100)" if node.name.upper() == "CLAMP" else ""
            raise self.text.at(node, mend or f"there is no function {shorten(node.name)} here; docs/sql.md lists them")
        value, low, high = self._fitted(*node.expressions)
        return apply("max", apply("min", value, high), low)

    def _substring(self, node: exp.Substring) -> Expr:
        value, *ends = (self.value(node.args[part]) for part in ("this", "start", "length") if node.args.get(part))
        places = [end.value for end in ends if isinstance(end, Constant) and end.type == INT]
        if len(places) < 2 or places[0] < 1:
            raise self.text.at(node, "SUBSTR takes a place from 1 on, and a length: SUBSTR(zip, 1, 2)")
        return apply("substring", value, constant(places[0] - 1), constant(places[1]))

    def _extract(self, node: exp.Extract) -> Expr:
        if node.name.lower() not in _EXTRACTED:
            raise self.text.at(node, f"databases agree on the parts {', '.join(_EXTRACTED).upper()}: take one of them")
        return apply(_EXTRACTED[node.name.lower()], self.value(node.expression))

    def _truncate(self, node: exp.DateTrunc | exp.TimestampTrunc) -> Expr:
        unit, written = node.args["unit"].name.lower(), self.text.text[int(node.meta.get("end", -1)) + 1 :]
        if unit not in _PARTS or not written.lstrip(" (\n").startswith("'"):
            raise self.text.at(node, "write the unit as a text before: DATE_TRUNC('month', day), of year to second")
        return apply("truncate", self.value(node.this), constant(unit))

    def _days(self, node: exp.DateDiff) -> Expr:
        values = self._fitted(node.this, node.expression)
        if str(node.args.get("unit")).lower() != "day" or any(value.type != DATE for value in values):
            raise self.text.at(node, "write the days between two dates: DATE_DIFF(later, earlier, DAY)")
        return apply("floor_divide", apply("subtract", *values), constant(timedelta(days=1)))

    def _cast(self, node: exp.Cast) -> Expr:
        value, to = self.value(node.this), node.to.this
        type_, text = value.type.with_nullable(False), to in (exp.DType.TEXT, exp.DType.VARCHAR)
        if to in _MOMENTS and (type_ in (DATE, TIMESTAMP) or (type_ == STR and isinstance(value, Constant))):
            name = _MOMENTS[to].name
            return value if type_ == _MOMENTS[to] else apply(name if type_ == STR else f"to_{name}", value)
        if (to in _INTEGERS and type_ == INT) or (text and type_ == STR and not node.to.expressions):
            return value
        if to == exp.DType.DOUBLE and (type_ in (INT, FLOAT) or isinstance(type_, DecimalOf)):
            return to_float(value)
        if (to in _INTEGERS and type_ == BOOL) or (text and (type_ == INT or isinstance(type_, CategoryOf))):
            return apply("to_str" if text else "to_int", value)
        mend = "FLOOR(x) is a whole number, CAST(x AS DOUBLE) a float, CAST(x AS TEXT) the text of a whole number"
        raise self.text.at(node, f"databases cast {type_} in several ways: {mend}; declare a column of another type so")


def _at_least_0(value: Expr) -> bool:
    """Whether a whole number is not negative, as it is written."""
    if isinstance(value, Constant):
        return value.value is not None and bool(value.value >= 0)
    name, arguments = getattr(value, "name", ""), getattr(value, "arguments", ())
    return name in ("length", "absolute", *_EXTRACTED.values()) or (name == "max" and any(map(_at_least_0, arguments)))


#: How each other kind of node is read.
_READERS: dict[type, Callable[[Any, Any], Expr]] = {
    exp.Column: Expressions._column, exp.Literal: Expressions._literal, exp.Paren: lambda of, node: of.value(node.this),
    exp.Boolean: lambda of, node: constant(bool(node.this)), exp.Null: lambda of, node: constant(None),
    exp.Add: Expressions._moved, exp.Sub: Expressions._moved, exp.Div: Expressions._divide,
    exp.Mod: Expressions._modulo, exp.Floor: Expressions._floor, exp.Is: Expressions._is, exp.In: Expressions._in,
    exp.Between: Expressions._between, exp.Like: Expressions._like, exp.Case: Expressions._choice,
    exp.If: Expressions._choice, exp.Coalesce: Expressions._coalesce, exp.Nullif: Expressions._nullif,
    exp.Greatest: Expressions._extremes,
    exp.Least: Expressions._extremes, exp.Anonymous: Expressions._clamp, exp.Substring: Expressions._substring,
    exp.Extract: Expressions._extract, exp.DateTrunc: Expressions._truncate, exp.TimestampTrunc: Expressions._truncate,
    exp.DateDiff: Expressions._days, exp.Cast: Expressions._cast, exp.TryCast: Expressions._cast,
}  # fmt: skip
#: The parts of nodes that are read where a node may have them; the rest is refused.
_READ = (
    "this", "expression", "expressions", "table", "is_string", "low", "high", "ifs", "true", "false", "is_nvl",
    "is_null", "ignore_nulls", "start", "length", "unit", "big_int", "safe",
)  # fmt: skip
_READ_OF: dict[type, tuple[str, ...]] = {exp.Case: ("default",), exp.Cast: ("to",), exp.TryCast: ("to",)}
