"""The aggregates of SELECT as those of tables, with the public ranges that a statement writes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sqlglot import exp

from wpinq.errors import LanguageError, WpinqError
from wpinq.expr import build, catalogue
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import trace
from wpinq.language.sql.expressions import Expressions, RowFunction
from wpinq.language.sql.relations import Relation, bounded, steps
from wpinq.language.sql.text import SqlText, check_parts
from wpinq.tables.agg import AGGREGATES
from wpinq.tables.aggregates import Aggregate

_OF_RANGE: dict[type, str] = {
    exp.Sum: "Sum",
    exp.Avg: "Mean",
    exp.Variance: "Var",
    exp.VariancePop: "Var",
    exp.Stddev: "Std",
    exp.StddevPop: "Std",
    exp.StddevSamp: "Std",
}
_OF_TWO: dict[type, str] = {exp.Corr: "Corr", exp.CovarPop: "Cov", exp.CovarSamp: "Cov"}
_QUANTILES: dict[type, Fraction] = {
    exp.Min: Fraction(1, 100),
    exp.Max: Fraction(99, 100),
    exp.Median: Fraction(1, 2),
}
"""A noisy extreme is a quantile next to it."""

_INTERVALS = ("DP_INTERVAL_LOW", "DP_INTERVAL_HIGH")


def is_aggregate(node: exp.Expression) -> bool:
    """Whether an expression is an aggregate of rows."""
    return isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup))


def interval_of(node: exp.Expression) -> str | None:
    """The column of which DP_INTERVAL_LOW or DP_INTERVAL_HIGH names an end."""
    if not isinstance(node, exp.Anonymous) or node.name.upper() not in _INTERVALS or len(node.expressions) != 1:
        return None
    return str(node.expressions[0].name)


class Aggregates:
    """A reader of aggregates over the rows of one relation."""

    def __init__(self, text: SqlText, relation: Relation) -> None:
        self.text, self.relation = text, relation

    def read(self, node: exp.Expression) -> Aggregate:
        """The aggregate of a node."""
        condition = None
        whole = node
        if isinstance(node, exp.Filter):
            condition, node = node.expression.this, node.this
        try:
            return self._read(node, condition)
        except LanguageError:
            raise
        except WpinqError as error:
            raise self.text.at(whole, str(error)) from None

    def _read(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        kind = type(node)
        if isinstance(node, exp.Count):
            return self._count(node, condition)
        if isinstance(node, exp.CountIf):
            check_parts(self.text, node, "this")
            return self._counted(lambda reader: self._both(reader, node.this, condition))
        if kind in _OF_RANGE:
            check_parts(self.text, node, "this")
            return AGGREGATES[_OF_RANGE[kind]](*self._ranged(node, node.this, condition))
        if kind in _OF_TWO:
            check_parts(self.text, node, "this", "expression")
            given = [part for each in (node.this, node.expression) for part in self._ranged(node, each, condition)]
            return AGGREGATES[_OF_TWO[kind]](*given)
        if kind in _QUANTILES:
            check_parts(self.text, node, "this")
            return self._quantile(node, node.this, _QUANTILES[kind], condition)
        if isinstance(node, exp.WithinGroup):
            order, node = node.expression, node.this
            if len(order.expressions) != 1 or order.expressions[0].args.get("desc") or node.args.get("expression"):
                raise self.text.at(order, "write WITHIN GROUP (ORDER BY CLAMP(age, 0, 100)), in rising order")
            if isinstance(node, (exp.PercentileCont, exp.PercentileDisc)):
                return self._quantile(node, order.expressions[0].this, self._share(node, node.this), condition)
        elif isinstance(node, (exp.PercentileCont, exp.PercentileDisc)) and node.args.get("expression"):
            return self._quantile(node, node.this, self._share(node, node.expression), condition)
        raise self.text.at(
            node,
            f"{node.key.upper()} is no aggregate here: COUNT, COUNT(DISTINCT x), COUNTIF, SUM, AVG, MIN, MAX, MEDIAN, "
            "PERCENTILE_CONT, VAR_POP, STDDEV_POP, COVAR_POP and CORR are",
        )

    def _value(self, node: exp.Expression, condition: exp.Expression | None) -> RowFunction:
        """The value of each row, null where it does not count."""

        def value(record: Expr) -> Expr:
            reader = Expressions(self.text, self.relation.names, record)
            found = reader.value(node)
            if condition is None:
                return found
            return catalogue.apply("where", reader.truth(condition), found, build.constant(None))

        return RowFunction(value)

    def _both(self, reader: Expressions, one: exp.Expression, other: exp.Expression | None) -> Expr:
        found = reader.truth(one)
        return found if other is None else catalogue.apply("and", found, reader.truth(other))

    def _counted(self, condition: Callable[[Expressions], Expr]) -> Aggregate:
        """The number of rows that satisfy a condition, as a sum of 0 and 1."""

        def value(record: Expr) -> Expr:
            reader = Expressions(self.text, self.relation.names, record)
            return catalogue.apply("where", condition(reader), build.constant(1), build.constant(0))

        return AGGREGATES["Sum"](RowFunction(value), 0, 1)

    def _count(self, node: exp.Count, condition: exp.Expression | None) -> Aggregate:
        check_parts(self.text, node, "this", "big_int")
        of = node.this
        if isinstance(of, exp.Distinct):
            check_parts(self.text, of, "expressions")
            if len(of.expressions) != 1:
                raise self.text.at(of, "COUNT(DISTINCT x) takes one column")
            return AGGREGATES["CountDistinct"](self._value(of.expressions[0], condition))
        if isinstance(of, exp.Star):
            check_parts(self.text, of)
            if condition is None:
                return AGGREGATES["Count"]()
            return self._counted(lambda reader: reader.truth(condition))
        value = self._value(of, condition)
        if not trace(value, (self.relation.query.plan.type,)).type.nullable:
            return AGGREGATES["Count"]()

        def present(reader: Expressions) -> Expr:
            return catalogue.apply("not", catalogue.apply("is_null", value.function(reader.record)))

        return self._counted(present)

    def _ranged(self, node: exp.Expression, of: exp.Expression, condition: exp.Expression | None) -> tuple[Any, ...]:
        """A value and its public range; refused without."""
        found = bounded(self.text, self.relation, of)
        if found is None:
            name = node.key.upper()
            raise self.text.at(
                of,
                f"{name} needs a public range, which is never read off the data: {name}(CLAMP(x, 0, 100)), or "
                "LEAST(GREATEST(x, 0), 100)",
            )
        value, (low, high) = found
        return self._value(value, condition), low, high

    def _share(self, node: exp.Expression, share: exp.Expression) -> Fraction:
        if not isinstance(share, exp.Literal) or share.is_string:
            raise self.text.at(node, "the share of a quantile is a number between 0 and 1 that is written")
        return Fraction(share.this)

    def _quantile(
        self, node: exp.Expression, of: exp.Expression, share: Fraction, condition: exp.Expression | None
    ) -> Aggregate:
        """A choice among the whole numbers, or days, of the range; or among the values that IN lists."""
        column = self.relation.names.find(self.text, of) if isinstance(of, exp.Column) else None
        found = bounded(self.text, self.relation, of)
        candidates = steps(*found[1]) if found is not None else column.keys if column is not None else None
        if not candidates:
            raise self.text.at(
                of,
                "a quantile is a choice among public whole numbers or days: MEDIAN(CLAMP(age, 0, 100)), and of other "
                "numbers MEDIAN(CLAMP(FLOOR(x), 0, 100))",
            )
        value = self._value(of if found is None else found[0], condition)
        if share == Fraction(1, 2):
            return AGGREGATES["Median"](value, candidates)
        return AGGREGATES["Quantile"](column=value, candidates=candidates, q=share)
