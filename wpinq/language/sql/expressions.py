"""Expressions of SQL as typed expressions, with the null of SQL: `=` with null is unknown.

Where databases disagree, or where one of their results cannot be ours, the expression is refused with another way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any

from sqlglot import exp

from wpinq.errors import ExpressionError
from wpinq.expr import build, catalogue
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.trace import Symbol, expr_of
from wpinq.expr.types import BOOL, DATE, FLOAT, INT, INT_MAX, NULL, STR, TIMESTAMP, CategoryOf, DecimalOf
from wpinq.language.sql.text import SqlText, check_parts
from wpinq.language.syntax import shorten, suggest

Bounds = tuple[Any, Any]


class RowFunction:
    """A function of a record, from its expression to another one, as a query takes it."""

    def __init__(self, function: Callable[[Expr], Expr]) -> None:
        self.function = function

    def __call__(self, record: Symbol) -> Symbol:
        return Symbol(self.function(expr_of(record)))


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column of a relation.

    Attributes
    ----------
    field : str
        The field of the records that holds it.
    bounds : pair or None
        The public range of its values, where the statement gives one.
    keys : tuple or None
        Its public values, where the statement lists them.
    """

    field: str
    bounds: Bounds | None = None
    keys: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that a clause can name, by table and column."""

    tables: Mapping[str, Mapping[str, SqlColumn]]
    hidden: str = ""
    """The column of the ids of people, which is in no record."""

    def find(self, text: SqlText, node: exp.Column) -> SqlColumn:
        """The column that a node names."""
        check_parts(text, node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            raise text.at(node, "* stands only in COUNT(*), or alone in a subquery")
        tables = self.tables
        if node.table:
            tables = {table: tables[table] for table in matching(node.args["table"], tables)}
            if not tables:
                raise text.at(
                    node, f"there is no table `{shorten(node.table)}` here; {suggest(node.table, self.tables)}"
                )
        found = [columns[name] for columns in tables.values() for name in matching(node.this, columns)]
        if len({column.field for column in found}) > 1:
            raise text.at(node, f"`{shorten(node.name)}` is a column of several tables: write the table before it")
        if not found and node.name == self.hidden:
            raise text.at(node, f"`{shorten(node.name)}` holds the ids of people, which are in no record")
        if not found:
            known = [name for columns in tables.values() for name in columns]
            text_instead = f", or write the text '{shorten(node.name)}'" if node.this.quoted else ""
            raise text.at(node, f"there is no column `{shorten(node.name)}`; {suggest(node.name, known)}{text_instead}")
        return found[0]


def matching(name: exp.Identifier, known: Mapping[str, Any]) -> list[str]:
    """The known names that an identifier can mean: without quotes, in any case of letters."""
    if name.name in known:
        return [name.name]
    return [] if name.quoted else [each for each in known if each.lower() == name.name.lower()]


_ARITHMETIC: dict[type, str] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}
_COMPARISONS: dict[type, str] = {
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.NullSafeEQ: "equal",
    exp.NullSafeNEQ: "not_equal",
}
_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
_NAMED_PARTS = {**{part: part for part in _PARTS}, "doy": "day_of_year", "dayofyear": "day_of_year", "isoweek": "week"}
_DATE_FUNCTIONS: dict[type, str] = {
    **{getattr(exp, part.title()): part for part in _PARTS},
    exp.DayOfYear: "day_of_year",
    exp.DayOfMonth: "day",
}
_UNITS = {part: part for part in _PARTS} | {"isoweek": "week"}
_STEPS = {part: part for part in _PARTS} | {"week": "week"}
_INTEGERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_MOMENTS = {
    exp.DType.DATE: ("date", DATE),
    exp.DType.TIMESTAMP: ("timestamp", TIMESTAMP),
    exp.DType.DATETIME: ("timestamp", TIMESTAMP),
}
_MENDS: dict[type, str] = {
    exp.Lower: "databases have other letters than A to Z, too: list the spellings, city IN ('Oslo', 'OSLO')",
    exp.Upper: "databases have other letters than A to Z, too: list the spellings, city IN ('Oslo', 'OSLO')",
    exp.Round: "halves are rounded in several ways: FLOOR(x + 0.5)",
    exp.Concat: "databases disagree on null in it: a || b",
    exp.Subquery: "a value from other rows depends on all of them: JOIN, or constants",
    exp.Exists: "it depends on other rows: JOIN",
    exp.Star: "* stands only in COUNT(*), or alone in a subquery",
    exp.Window: "windows rank rows by one another: use a subquery for each person, or GROUP BY",
    exp.Any: "list the values: x IN (1, 2)",
    exp.Parameter: "write the value",
    exp.Placeholder: "write the value",
}


class Expressions:
    """A reader of the expressions of one clause, over one record."""

    def __init__(self, text: SqlText, names: Names, record: Expr) -> None:
        self.text, self.names, self.record = text, names, record

    def value(self, node: exp.Expression) -> Expr:
        """The value of an expression."""
        try:
            return self._value(node)
        except ExpressionError as error:
            raise self.text.at(node, str(error)) from None

    def truth(self, node: exp.Expression) -> Expr:
        """A condition of which only the difference of true from false or unknown matters."""
        try:
            found = self._truth(node)
        except ExpressionError as error:
            raise self.text.at(node, str(error)) from None
        if found.type not in (BOOL, NULL):
            raise self.text.at(node, f"a condition is true or false, and this is of type {found.type}")
        return found

    def _truth(self, node: exp.Expression) -> Expr:
        if isinstance(node, exp.Paren):
            return self.truth(node.this)
        if isinstance(node, (exp.And, exp.Or)):
            check_parts(self.text, node, "this", "expression")
            return _apply(node.key, self.truth(node.this), self.truth(node.expression))
        if isinstance(node, exp.EQ):
            one, other = self._pair(node)
            return _present(_apply("equal", one, other), (one,) if one.type.nullable and other.type.nullable else ())
        if isinstance(node, exp.NEQ):
            return _present(_apply("not_equal", *(pair := self._pair(node))), pair)
        if isinstance(node, exp.In):
            return self._among(node)[1]
        if isinstance(node, exp.Not):
            inner = node.this.unnest()
            if isinstance(inner, exp.EQ):
                return _present(_apply("not_equal", *(pair := self._pair(inner))), pair)
            if isinstance(inner, exp.In):
                value, among = self._among(inner)
                return _present(_apply("not", among), (value,))
        return self.value(node)

    def _value(self, node: exp.Expression) -> Expr:
        kind = type(node)
        if kind in _ARITHMETIC:
            return self._arithmetic(node)
        if kind in _COMPARISONS:
            pair = self._pair(node)
            found = _apply(_COMPARISONS[kind], *pair)
            return catalogue.null_if_any(pair, found) if isinstance(node, (exp.EQ, exp.NEQ)) else found
        if kind in _DATE_FUNCTIONS:
            return _apply(_DATE_FUNCTIONS[kind], self._only(node))
        read = _READERS.get(kind)
        if read is None:
            said = node.name.upper() if isinstance(node, exp.Anonymous) else node.key.upper()
            if _is_aggregate(node):
                raise self.text.at(node, f"{shorten(said)} stands only in the SELECT of a released table")
            mend = _MENDS.get(kind, "it is not among the functions of docs/sql.md")
            raise self.text.at(node, f"{shorten(said)} is refused: {mend}")
        return read(self, node)

    def _only(self, node: exp.Expression) -> Expr:
        check_parts(self.text, node, "this")
        return self.value(node.this)

    def _column(self, node: exp.Column) -> Expr:
        return build.field_named(self.record, self.names.find(self.text, node).field)

    def _literal(self, node: exp.Literal) -> Expr:
        if node.is_string:
            return build.constant(node.this)
        try:
            return build.constant(int(node.this) if node.this.isdigit() else float(node.this))
        except (ValueError, OverflowError):
            raise self.text.at(node, "this number is beyond the range of numbers") from None

    def _logic(self, node: exp.Expression) -> Expr:
        check_parts(self.text, node, "this", "expression")
        return _apply(node.key, *(self._boolean(each) for each in (node.this, node.expression)))

    def _boolean(self, node: exp.Expression) -> Expr:
        found = self.value(node)
        if found.type not in (BOOL, NULL):
            raise self.text.at(node, f"a condition is true or false, and this is of type {found.type}")
        return found

    def _not(self, node: exp.Not) -> Expr:
        return _apply("not", self._boolean(node.this))

    def _pair(self, node: exp.Expression) -> tuple[Expr, Expr]:
        """Both sides, a text or a number written next to another type as one of that type."""
        check_parts(self.text, node, "this", "expression")
        one, other = self.value(node.this), self.value(node.expression)
        return self._fitted(one, node.this, other), self._fitted(other, node.expression, one)

    def _fitted(self, value: Expr, node: exp.Expression, other: Expr) -> Expr:
        type_ = other.type.with_nullable(False)
        literal = node.unnest()
        if isinstance(literal, exp.Neg):
            literal = literal.this.unnest()
        if type_ in (DATE, TIMESTAMP) and isinstance(value, Constant) and value.type == STR:
            try:
                return _apply(type_.name, value)  # type: ignore[attr-defined]  # a moment's
            except ExpressionError:
                return self._fitted(_apply("date", value), node, other)
        if type_ == TIMESTAMP and value.type == DATE:
            return _apply("to_timestamp", value)
        if isinstance(type_, DecimalOf) and value.type == FLOAT and isinstance(literal, exp.Literal):
            try:
                return build.constant(Decimal(literal.this) * (1 if literal is node.unnest() else -1))
            except InvalidOperation:
                raise self.text.at(node, "this is no number") from None
        return value

    def _arithmetic(self, node: exp.Expression) -> Expr:
        if isinstance(node.expression, exp.Interval):
            check_parts(self.text, node, "this", "expression")
            return self._moved(node.this, node.expression, -1 if isinstance(node, exp.Sub) else 1)
        one, other = self._pair(node)
        if STR in (one.type, other.type):
            raise self.text.at(node, "texts are joined by ||")
        if isinstance(node, exp.Sub) and one.type in (DATE, TIMESTAMP):
            raise self.text.at(node, "databases give days or an interval: DATE_DIFF(a, b, DAY)")
        return _apply(_ARITHMETIC[type(node)], one, other)

    def _moved(self, of: exp.Expression, by: exp.Interval, sign: int) -> Expr:
        check_parts(self.text, by, "this", "unit")
        unit, count = _STEPS.get(str(by.args.get("unit")).lower()), by.this
        if unit is None or not isinstance(count, exp.Literal) or not count.this.isdigit():
            raise self.text.at(by, "write a whole number of years, months, weeks, days or hours: INTERVAL 3 DAY")
        return _apply("offset", self.value(of), build.constant(sign * int(count.this)), build.constant(unit))

    def _added(self, node: exp.Expression) -> Expr:
        check_parts(self.text, node, "this", "expression", "unit")
        if not isinstance(node.expression, exp.Interval):
            raise self.text.at(node, "write DATE_ADD(day, INTERVAL 3 DAY)")
        return self._moved(node.this, node.expression, -1 if isinstance(node, exp.DateSub) else 1)

    def _divide(self, node: exp.Expression) -> Expr:
        check_parts(self.text, node, "this", "expression", *(("typed", "safe") if isinstance(node, exp.Div) else ()))
        one, other = self.value(node.this), self.value(node.expression)
        safe = isinstance(node, exp.SafeDivide) or isinstance(node.expression.unnest(), exp.Nullif)
        if not safe and not (isinstance(other, Constant) and other.value):
            raise self.text.at(node, "databases disagree on a division by 0: a / NULLIF(b, 0), which is null for it")
        if isinstance(one.type, DecimalOf) or isinstance(other.type, DecimalOf):
            raise self.text.at(node, "databases disagree on the decimals of a quotient: CAST(a AS DOUBLE) / b")
        return catalogue.divide(one, other)

    def _divisor(self, node: exp.Expression) -> tuple[Expr, Constant]:
        check_parts(self.text, node, "this", "expression")
        one, other = self.value(node.this), self.value(node.expression)
        if one.type != INT or other.type != INT or not (isinstance(other, Constant) and other.value > 0):
            raise self.text.at(node, "a remainder is of a whole number by a positive one that is written: x % 7")
        return one, other

    def _modulo(self, node: exp.Mod) -> Expr:
        """A remainder of the sign of the dividend, as databases have it."""
        one, other = self._divisor(node)
        rest = _apply("modulo", one, other)
        if _at_least_0(one):
            return rest
        zero = build.constant(0)
        below = _apply("and", catalogue.less(one, zero), _apply("not_equal", rest, zero))
        return _apply("where", below, _apply("subtract", rest, other), rest)

    def _floor(self, node: exp.Floor) -> Expr:
        check_parts(self.text, node, "this")
        inner = node.this.unnest()
        if isinstance(inner, exp.Div):
            one, other = self.value(inner.this), self.value(inner.expression)
            if one.type == INT and other.type == INT and isinstance(other, Constant) and other.value > 0:
                return catalogue.floor_divide(one, other)
        value = self.value(node.this)
        return value if value.type == INT else _apply("floor", value)

    def _ceil(self, node: exp.Ceil) -> Expr:
        value = self._only(node)
        return value if value.type == INT else catalogue.negate(_apply("floor", catalogue.negate(value)))

    def _absolute(self, node: exp.Abs) -> Expr:
        return _apply("absolute", self._only(node))

    def _negate(self, node: exp.Neg) -> Expr:
        return catalogue.negate(self._only(node))

    def _is(self, node: exp.Is) -> Expr:
        check_parts(self.text, node, "this", "expression")
        if isinstance(node.expression, exp.Null):
            return _apply("is_null", self.value(node.this))
        if not isinstance(node.expression, exp.Boolean):
            raise self.text.at(node, "IS takes NULL, TRUE or FALSE")
        value = self._boolean(node.this)
        value = value if node.expression.this else _apply("not", value)
        return _apply("where", value, build.constant(True), build.constant(False)) if value.type.nullable else value

    def _among(self, node: exp.In) -> tuple[Expr, Expr]:
        """A value, and whether it is one of a list; false for null."""
        value, tests = self.value(node.this), []
        for each in in_list(self.text, node):
            item = self._fitted(self.value(each), each, value)
            if not isinstance(item, Constant) or item.value is None:
                raise self.text.at(each, "IN lists constants; for null write OR x IS NULL")
            tests.append(_apply("equal", value, item))
        while len(tests) > 32:  # in few levels
            tests = [reduce(catalogue.either, tests[start : start + 2]) for start in range(0, len(tests), 2)]
        return value, reduce(catalogue.either, tests)

    def _in(self, node: exp.In) -> Expr:
        value, among = self._among(node)
        return catalogue.null_if_any((value,), among)

    def _between(self, node: exp.Between) -> Expr:
        check_parts(self.text, node, "this", "low", "high")
        value, ends = self.value(node.this), (node.args["low"], node.args["high"])
        low, high = (self._fitted(self.value(end), end, value) for end in ends)
        return _apply("and", _apply("greater_equal", value, low), _apply("less_equal", value, high))

    def _like(self, node: exp.Like) -> Expr:
        check_parts(self.text, node, "this", "expression")
        value, pattern = self.value(node.this), self.value(node.expression)
        word = str(pattern.value) if isinstance(pattern, Constant) and pattern.type == STR else "_"
        inner = word.strip("%")
        if set("%_\\") & set(inner) or (word.startswith("%") and not word.endswith("%")) or not inner:
            raise self.text.at(node, "LIKE takes 'word%' or '%word%', without other signs")
        if not word.endswith("%"):
            return catalogue.null_if_any((value,), _apply("equal", value, pattern))
        return _apply("contains" if word.startswith("%") else "starts_with", value, build.constant(inner))

    def _choice(self, node: exp.Case | exp.If) -> Expr:
        check_parts(self.text, node, *(("this", "ifs", "default") if isinstance(node, exp.Case) else node.arg_types))
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        default = node.args.get("default" if isinstance(node, exp.Case) else "false")
        subject = node.this if isinstance(node, exp.Case) else None
        conditions = []
        for each in branches:
            asked = each.this if subject is None else exp.EQ(this=subject.copy(), expression=each.this.copy())
            conditions.append(self.truth(asked))
        parts = [each.args["true"] for each in branches]
        values = [self.value(part) for part in parts]
        values.append(build.constant(None) if default is None else self.value(default))
        *found, result = catalogue.promote(*values)
        for condition, value in zip(reversed(conditions), reversed(found), strict=True):
            result = _apply("where", condition, value, result)
        return result

    def _coalesce(self, node: exp.Coalesce) -> Expr:
        check_parts(self.text, node, "this", "expressions", "is_nvl", "is_null")
        *values, result = catalogue.promote(*map(self.value, (node.this, *node.expressions)))
        for value in reversed(values):
            result = _apply("where", _apply("is_null", value), result, value)
        return result

    def _nullif(self, node: exp.Nullif) -> Expr:
        one, other = self._pair(node)
        return _apply("where", _apply("equal", one, other), build.constant(None), one)

    def _extremes(self, node: exp.Greatest | exp.Least) -> Expr:
        check_parts(self.text, node, "this", "expressions", "ignore_nulls")
        values = catalogue.promote(*map(self.value, (node.this, *node.expressions)))
        for value in values:
            self.check_present(node, value)
        name = "max" if isinstance(node, exp.Greatest) else "min"
        return reduce(lambda one, other: _apply(name, one, other), values)

    def check_present(self, node: exp.Expression, value: Expr) -> None:
        """Refuse a value that may be null in LEAST or GREATEST."""
        if value.type.nullable:
            raise self.text.at(
                node,
                "databases disagree on null in LEAST and GREATEST: CLAMP(x, 0, 100) is null for it, and "
                "COALESCE(x, 0) replaces it",
            )

    def _text(self, node: exp.Length | exp.StartsWith | exp.StrPosition) -> Expr:
        check_parts(self.text, node, "this", "expression", "substr")
        name = {exp.Length: "length", exp.StartsWith: "starts_with", exp.StrPosition: "find"}[type(node)]
        others = [node.args[part] for part in ("expression", "substr") if node.args.get(part) is not None]
        found = _apply(name, self.value(node.this), *map(self.value, others))
        return _apply("add", found, build.constant(1)) if name == "find" else found

    def _joined(self, node: exp.DPipe) -> Expr:
        check_parts(self.text, node, "this", "expression", "safe")
        one, other = self.value(node.this), self.value(node.expression)
        if not {one.type, other.type} <= {STR, NULL}:
            raise self.text.at(node, "|| joins texts: CAST(x AS TEXT) is the text of a whole number")
        return _apply("concatenate", one, other)

    def _substring(self, node: exp.Substring) -> Expr:
        check_parts(self.text, node, "this", "start", "length")
        given = (node.args.get("start"), node.args.get("length"))
        start, length = (None if each is None else self.value(each) for each in given)
        length = build.constant(INT_MAX // 2) if length is None else length
        if not all(isinstance(each, Constant) and each.type == INT for each in (start, length)) or start.value < 1:  # type: ignore[union-attr]
            raise self.text.at(node, "SUBSTR takes a place from 1 on, and a length, as numbers: SUBSTR(zip, 1, 2)")
        first = build.constant(start.value - 1)  # type: ignore[union-attr]
        return _apply("substring", self.value(node.this), first, length)

    def _extract(self, node: exp.Extract) -> Expr:
        check_parts(self.text, node, "this", "expression")
        part = node.name.lower()
        if part not in _NAMED_PARTS:
            raise self.text.at(
                node, f"EXTRACT takes {', '.join(_NAMED_PARTS).upper()}, on which databases agree: not {shorten(part)}"
            )
        return _apply(_NAMED_PARTS[part], self.value(node.expression))

    def _truncate(self, node: exp.DateTrunc | exp.TimestampTrunc) -> Expr:
        check_parts(self.text, node, "this", "unit")
        unit = _UNITS.get(node.args["unit"].name.lower())
        end = int(node.meta.get("end", -1)) + 1
        if unit is None or self.text.text[end:].lstrip(" (\n")[:1] != "'":
            raise self.text.at(
                node, f"write the unit first, as text: DATE_TRUNC('month', day), with {', '.join(_UNITS)}"
            )
        return _apply("truncate", self.value(node.this), build.constant(unit))

    def _days(self, node: exp.DateDiff) -> Expr:
        check_parts(self.text, node, "this", "expression", "unit", "big_int")
        one, other = (self.value(each) for each in (node.this, node.expression))
        if str(node.args.get("unit")).lower() != "day" or one.type != DATE or other.type != DATE:
            raise self.text.at(node, "write the days between two dates: DATE_DIFF(later, earlier, DAY)")
        return _apply("floor_divide", _apply("subtract", one, other), build.constant(timedelta(days=1)))

    def _cast(self, node: exp.Cast) -> Expr:
        check_parts(self.text, node, "this", "to", "safe")
        value, to = self.value(node.this), node.to.this
        type_ = value.type.with_nullable(False)
        if to in _MOMENTS:
            name, wanted = _MOMENTS[to]
            if isinstance(value, Constant) and type_ == STR:
                return _apply(name, value)
            if type_ in (DATE, TIMESTAMP):
                return value if type_ == wanted else _apply(f"to_{name}", value)
        if to in _INTEGERS and type_ in (INT, BOOL):
            return value if type_ == INT else _apply("to_int", value)
        if to == exp.DType.DOUBLE and (type_ in (INT, FLOAT) or isinstance(type_, DecimalOf)):
            return catalogue.to_float(value)
        if to in (exp.DType.TEXT, exp.DType.VARCHAR) and not node.to.expressions:
            if type_ == STR:
                return value
            if type_ == INT or isinstance(type_, CategoryOf):
                return _apply("to_str", value)
        raise self.text.at(
            node,
            f"databases cast {type_} to {node.to.sql()} in several ways: write FLOOR(x) for a whole number, CAST(x AS "
            "DOUBLE) for a float, CAST(x AS TEXT) for the text of a whole number; other types are declared so",
        )

    def _clamp(self, node: exp.Anonymous) -> Expr:
        if node.name.upper() != "CLAMP":
            raise self.text.at(node, f"there is no function {shorten(node.name)} here; see docs/sql.md")
        of, low, high = clamp_of(self.text, node)
        value = self.value(of)
        bounded = (self._fitted(self.value(end), end, value) for end in (high, low))
        return reduce(lambda one, part: _apply(*part, one), zip(("min", "max"), bounded, strict=True), value)


def clamp_of(text: SqlText, node: exp.Anonymous) -> tuple[exp.Expression, exp.Expression, exp.Expression]:
    """The parts of CLAMP."""
    if len(node.expressions) != 3:
        raise text.at(node, "CLAMP takes a value and the ends of its range: CLAMP(age, 0, 100)")
    of, low, high = node.expressions
    return of, low, high


def in_list(text: SqlText, node: exp.In) -> list[exp.Expression]:
    """The values that IN lists."""
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise text.at(
            node, "IN takes a list of constants: values from a subquery depend on the data; JOIN, or list them"
        )
    check_parts(text, node, "this", "expressions")
    if not node.expressions:
        raise text.at(node, "IN needs a value: city IN ('Oslo')")
    return list(node.expressions)


def _apply(name: str, *values: Expr) -> Expr:
    return catalogue.apply(name, *values)


def _present(condition: Expr, values: tuple[Expr, ...]) -> Expr:
    """A condition that does not hold where one of the values is null."""
    nullable = (value for value in values if value.type.nullable)
    return reduce(lambda held, value: _apply("and", held, _apply("not", _apply("is_null", value))), nullable, condition)


def _at_least_0(value: Expr) -> bool:
    """Whether a whole number is not negative, as it is written."""
    name, arguments = getattr(value, "name", ""), getattr(value, "arguments", ())
    if isinstance(value, Constant):
        return value.value is not None and value.value >= 0
    if name in ("length", "absolute", "count", *_PARTS, "day_of_year", "week"):
        return True
    if name == "max":
        return any(map(_at_least_0, arguments))
    return name in ("add", "multiply", "min", "floor_divide", "modulo") and all(map(_at_least_0, arguments))


def _is_aggregate(node: exp.Expression) -> bool:
    return isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup))


_READERS: dict[type, Callable[[Any, Any], Expr]] = {
    exp.Column: Expressions._column,
    exp.Literal: Expressions._literal,
    exp.Boolean: lambda reader, node: build.constant(bool(node.this)),
    exp.Null: lambda reader, node: build.constant(None),
    exp.Paren: lambda reader, node: reader.value(node.this),
    exp.And: Expressions._logic,
    exp.Or: Expressions._logic,
    exp.Not: Expressions._not,
    exp.Neg: Expressions._negate,
    exp.Is: Expressions._is,
    exp.In: Expressions._in,
    exp.Between: Expressions._between,
    exp.Like: Expressions._like,
    exp.Case: Expressions._choice,
    exp.If: Expressions._choice,
    exp.Coalesce: Expressions._coalesce,
    exp.Nullif: Expressions._nullif,
    exp.Greatest: Expressions._extremes,
    exp.Least: Expressions._extremes,
    exp.Div: Expressions._divide,
    exp.SafeDivide: Expressions._divide,
    exp.Mod: Expressions._modulo,
    exp.Floor: Expressions._floor,
    exp.Ceil: Expressions._ceil,
    exp.Abs: Expressions._absolute,
    exp.Length: Expressions._text,
    exp.StartsWith: Expressions._text,
    exp.StrPosition: Expressions._text,
    exp.Substring: Expressions._substring,
    exp.DPipe: Expressions._joined,
    exp.Extract: Expressions._extract,
    exp.DateTrunc: Expressions._truncate,
    exp.TimestampTrunc: Expressions._truncate,
    exp.DateDiff: Expressions._days,
    exp.DateAdd: Expressions._added,
    exp.DateSub: Expressions._added,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    exp.Anonymous: Expressions._clamp,
}
