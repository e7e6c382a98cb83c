"""The aggregates of SELECT as those of tables, with public ranges of the statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from sqlglot import exp

from wpinq.expr.build import constant
from wpinq.expr.catalogue import apply
from wpinq.expr.nodes import Expr
from wpinq.language.public_values import KEYS_LIMIT
from wpinq.language.sql.relations import Relation, function, public_range, shown, steps
from wpinq.language.sql.text import SqlText, check_parts
from wpinq.tables.agg import AGGREGATES
from wpinq.tables.aggregates import Aggregate

_MADE: Mapping[str, Callable[..., Aggregate]] = AGGREGATES
_OF_RANGES: dict[type, str] = {
    exp.Sum: "Sum", exp.Avg: "Mean", exp.Variance: "Var", exp.VariancePop: "Var", exp.Stddev: "Std",
    exp.StddevPop: "Std", exp.StddevSamp: "Std", exp.Corr: "Corr", exp.CovarPop: "Cov", exp.CovarSamp: "Cov",
}  # fmt: skip
#: The quantile that a choice gives: an extreme has too little weight beside it.
_SHARES = {exp.Min: "0.01", exp.Median: "0.5", exp.Max: "0.99"}


class Aggregates:
    """A reader of aggregates over the rows of one relation."""

    def __init__(self, text: SqlText, relation: Relation) -> None:
        self.text, self.relation, self.reader = text, relation, relation.reader(text)
        self.candidates = 0

    def read(self, node: exp.Expr) -> Aggregate:
        """The aggregate of a node."""
        condition = None
        if isinstance(node, exp.Filter):
            node, condition = node.this, self.reader.truth(node.expression.this)
        of: Any = node.args.get("this")
        kind = type(node)
        if isinstance(node, exp.WithinGroup):
            ordered, (node, kind) = node.expression.expressions, (node.this, type(node.this))
            if len(ordered) != 1 or ordered[0].args.get("desc") or node.args.get("expression"):
                raise self.text.at(node, "write WITHIN GROUP (ORDER BY CLAMP(age, 0, 100)), in rising order")
            of, share = ordered[0].this, node.this
        else:
            share = node.args.get("expression")
        if kind in (exp.PercentileCont, exp.PercentileDisc) and isinstance(share, exp.Literal) and not share.is_string:
            return self._quantile(node, of, share.this, condition)
        check_parts(self.text, node, "this", "expression", "big_int")
        if kind in _SHARES:
            return self._quantile(node, of, _SHARES[kind], condition)
        if kind in _OF_RANGES:
            each = [self._ranged(node, part, condition) for part in (of, node.args.get("expression")) if part]
            return _MADE[_OF_RANGES[kind]](*(part for ranged in each for part in ranged))
        if isinstance(node, exp.CountIf):
            return self._counted(self.reader.truth(of), condition)
        if not isinstance(node, exp.Count):
            known = "COUNT, COUNTIF, SUM, AVG, MIN, MAX, MEDIAN, PERCENTILE_CONT, VAR_POP, STDDEV_POP, COVAR_POP, CORR"
            raise self.text.at(node, f"{node.key.upper()} is no aggregate here: {known} are")
        if isinstance(of, exp.Distinct):
            if len(of.expressions) != 1:
                raise self.text.at(of, "COUNT(DISTINCT x) takes one column")
            return _MADE["CountDistinct"](function(self._where(self.reader.value(of.expressions[0]), condition)))
        value = constant(0) if isinstance(of, exp.Star) else self.reader.value(of)
        if value.type.nullable:
            return self._counted(apply("not", apply("is_null", value)), condition)
        return _MADE["Count"]() if condition is None else self._counted(condition, None)

    def _where(self, value: Expr, condition: Expr | None) -> Expr:
        """A value that is null where a row does not count."""
        return value if condition is None else apply("where", condition, value, constant(None))

    def _counted(self, condition: Expr, other: Expr | None) -> Aggregate:
        """The number of rows that satisfy a condition, as a sum of 1 and 0."""
        whole = condition if other is None else apply("and", condition, other)
        return _MADE["Sum"](function(apply("where", whole, constant(1), constant(0))), 0, 1)

    def _ranged(self, node: exp.Expr, of: exp.Expr, condition: Expr | None) -> tuple[Any, ...]:
        """A value and its public range; refused without."""
        found = public_range(self.relation, self.reader.value(of))
        if found is None:
            mend = f"{node.key.upper()}(CLAMP(x, 0, 100)), or LEAST(GREATEST(x, 0), 100)"
            raise self.text.at(of, f"{node.key.upper()} needs a public range, never read off the data: {mend}")
        return function(self._where(found[0], condition)), *(shown([end])[0] for end in found[1:])

    def _quantile(self, node: exp.Expr, of: exp.Expr, share: str, condition: Expr | None) -> Aggregate:
        """A choice among the whole numbers, or days, of the range."""
        found = public_range(self.relation, self.reader.value(of))
        listed = None if found is None else steps(*found[1:])
        if found is None or not listed:
            mend = "MEDIAN(CLAMP(age, 0, 100)), and of other numbers MEDIAN(CLAMP(FLOOR(x), 0, 100))"
            raise self.text.at(of, f"a quantile is a choice among public whole numbers or days: {mend}")
        self.candidates += len(listed)
        if self.candidates > KEYS_LIMIT:
            raise self.text.at(of, f"quantiles choose among at most {KEYS_LIMIT:,} candidates in all; split the SELECT")
        of_rows, given = function(self._where(found[0], condition)), {} if share == "0.5" else {"q": Fraction(share)}
        return _MADE["Quantile" if given else "Median"](of_rows, shown(listed), **given)
