"""A SELECT as the table that it asks for: `wp.sql`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from sqlglot import exp

from wpinq.api.query import Query
from wpinq.errors import LanguageError, PlanError, WpinqError, described
from wpinq.expr.nodes import RESERVED, Lambda
from wpinq.expr.trace import trace
from wpinq.language.sql.aggregates import Aggregates, interval_of, is_aggregate
from wpinq.language.sql.relations import (
    CLAUSES,
    PeopleRows,
    Relation,
    Relations,
    check_new,
    conjuncts,
    filtered,
    flat,
    function_of,
    listed,
    output_name,
)
from wpinq.language.sql.text import SqlText, check_parts, number
from wpinq.language.syntax import shorten
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan.node import Node
from wpinq.plan.node import sources as sources_of
from wpinq.plan.operators import Source
from wpinq.tables.aggregates import Aggregate
from wpinq.tables.grouping import NO_OTHER, find_groups
from wpinq.tables.tabulation import Grouping, Split, Tabulation

OPTIONS = ("epsilon", "delta", "max_groups_contributed", "privacy_unit_column")
TAKEN = ("epsilon", "split", "k_rule", "keys", "other", "above")


def sql(
    text: str,
    sources: Query | Iterable[Query] | Mapping[str, Query | Node],
    *,
    epsilon: EpsilonLike | None = None,
    split: Split = None,
    name: str = "sql",
) -> Tabulation:
    """The table that a SELECT asks for, with the same plan as `by` and `agg` give it.

    Parameters
    ----------
    text : str
        The statement; `docs/sql.md` has what is read, and what is refused.
    sources : Query, several, or a mapping from names to queries
        The tables: sources, or queries by the names that the statement gives them.
    epsilon : number, optional
        The cost of the table, unless the statement has it in `OPTIONS(epsilon = 1)`.
    split : mapping, optional
        The share of each aggregate, as in `Grouping.agg`.
    name : str
        The name of the statement in messages, such as that of its file.

    Returns
    -------
    Tabulation
        The request, which a session releases as a table.

    Raises
    ------
    LanguageError
        At the first thing that is refused: line, column, and what to write.

    Notes
    -----
    Privacy cost: none; a statement is data, and its table costs epsilon when it is released. Ranges and keys are those
    that the statement writes or a source declares, and never read off the data.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int)
    >>> text = '''
    ... SELECT city, COUNT(*) AS n, AVG(CLAMP(age, 0, 100)) AS age
    ... FROM people WHERE city IN ('Oslo', 'Rome') GROUP BY city
    ... '''
    >>> print(wp.sql(text, people, epsilon=1))
    Tabulation by city: 2 groups, epsilon 1
      n    count                               1 together
      age  mean of age, clamped to 0 to 100    1 together
    """
    if not isinstance(text, str):
        raise LanguageError(f"a statement is text, not {described(text)}")
    try:
        return _Statement(SqlText(text, name), _by_name(sources)).table(epsilon, split)
    except RecursionError:  # only where the caller itself stands near Python's limit
        raise LanguageError(f"{name}: the statement nests too deep to be read from here") from None


def _by_name(given: Query | Iterable[Query] | Mapping[str, Query | Node]) -> dict[str, Query]:
    if isinstance(given, Mapping):
        return {name: Query(each) if isinstance(each, Node) else each for name, each in given.items()}
    found: dict[str, Query] = {}
    for query in [given] if isinstance(given, Query) else given:
        operator = query.plan.operator if isinstance(query, Query) else None
        if not isinstance(operator, Source):
            raise PlanError('sources are those of wp.source; name other queries: {"adults": query}')
        found[operator.source] = query
    return found


class _Statement:
    """The outermost SELECT."""

    def __init__(self, text: SqlText, sources: Mapping[str, Query]) -> None:
        self.text = text
        self.tree, self.options = text.tree()
        self.relations = Relations(text, sources)

    def table(self, epsilon: EpsilonLike | None, split: Split) -> Tabulation:
        """The table, lowered clause by clause."""
        node = self.tree.unnest()
        if isinstance(node, exp.SetOperation):
            raise self.text.at(node, "a released table is one SELECT: SELECT COUNT(*) FROM (... UNION ALL ...)")
        if not isinstance(node, exp.Select):
            raise self.text.at(node, "only SELECT is read here")
        known = ("expressions", "from_", "joins", "where", "group", "having", "with_")
        check_parts(self.text, node, *known, mends=CLAUSES)
        asked = self._epsilon(epsilon)
        self.relations.read_with(node)
        given = self._cut(self.relations.tables(node))
        relation = flat(given)
        self._check_unit(relation)
        try:
            return self._grouped(node, relation, asked, split)
        except LanguageError:
            raise
        except WpinqError as error:
            raise self.text.at(node, str(error)) from None

    def _grouped(self, node: exp.Select, relation: Relation, epsilon: Any, split: Split) -> Tabulation:
        groups = self._groups(node, relation)
        traced = {
            name: trace(function_of(self.text, relation.names, each), (relation.query.plan.type,))
            for name, each in groups.items()
        }
        relation, keys = self._keys(node, relation, traced)
        columns = {name: function_of(self.text, relation.names, each) for name, each in groups.items()}
        aggregates = self._aggregates(node, relation, groups)
        above = self._above(node, aggregates)
        reading = relation.query.reading
        if not columns:
            found = find_groups(relation.query.plan, (), {}, None, NO_OTHER)
        else:
            found = find_groups(relation.query.plan, (), columns, keys or ({} if above else None), NO_OTHER, above)
            if found.keys is None and found.listing is None:
                raise self.text.at(
                    node.args["group"],
                    "groups are public: list them, WHERE city IN ('Oslo', 'Rome'), or declare a category",
                )
        return Grouping(found, reading).agg(epsilon=epsilon, split=split, **aggregates)

    # --- options ------------------------------------------------------------------------------------------------------

    def _epsilon(self, given: EpsilonLike | None) -> EpsilonLike:
        for name, option in self.options.items():
            if name not in OPTIONS:
                raise self.text.error(f"there is no option {shorten(name)}: {', '.join(OPTIONS)}", option[1])
        delta = self.options.get("delta")
        if delta is not None and number(self.text, delta, "delta") != 0:
            raise self.text.error("delta is 0: the ledger adds up pure epsilon; leave it out", delta[1])
        written = self.options.get("epsilon")
        if written is None:
            if given is None:
                raise self.text.error(
                    "a released table costs epsilon: give epsilon=1, or write SELECT WITH DIFFERENTIAL_PRIVACY "
                    "OPTIONS(epsilon = 1)",
                    0,
                )
            return given
        if given is not None:
            raise self.text.error("epsilon is an argument and an option: leave one out", written[1])
        return number(self.text, written, "epsilon")

    def _cut(self, given: Relation | PeopleRows) -> Relation | PeopleRows:
        option = self.options.get("max_groups_contributed")
        if option is None:
            return given
        if not isinstance(given, PeopleRows) or not given.lists:
            raise self.text.error(
                "max_groups_contributed cuts the rows of each person: give a source of people, nested=True or "
                "wp.people, in FROM",
                option[1],
            )
        most = number(self.text, option, "max_groups_contributed")
        if most < 1 or most.denominator != 1:
            raise self.text.error("max_groups_contributed is a whole number from 1 on", option[1])
        return given.cut(int(most))

    def _check_unit(self, relation: Relation) -> None:
        option = self.options.get("privacy_unit_column")
        if option is None:
            return
        for source in sources_of([relation.query.plan]).values():
            if source.person is None or source.person.column != option[0]:
                raise self.text.error(
                    f"the unit of `{source.source}` is {source.unit}, by its declaration: leave the option out",
                    option[1],
                )

    # --- groups -------------------------------------------------------------------------------------------------------

    def _groups(self, node: exp.Select, relation: Relation) -> dict[str, exp.Expression]:
        """The expressions of GROUP BY, by the names of their columns."""
        clause = node.args.get("group")
        if clause is None:
            return {}
        check_parts(self.text, clause, "expressions", mends=CLAUSES)
        aliases = {item.alias: item.this for item in node.expressions if isinstance(item, exp.Alias)}
        found: dict[str, exp.Expression] = {}
        for each in clause.expressions:
            of = each
            if isinstance(each, exp.Literal) and not each.is_string:
                place = int(each.this) if each.this.isdigit() and len(each.this) < 6 else 0
                if not 1 <= place <= len(node.expressions):
                    raise self.text.at(each, f"GROUP BY takes a column, or its place from 1 to {len(node.expressions)}")
                of = node.expressions[place - 1].unalias()
            elif isinstance(each, exp.Column) and not each.table and each.name in aliases:
                of = aliases[each.name]
                if of != each and each.name in relation.columns:
                    raise self.text.at(each, f"`{shorten(each.name)}` is a column and an alias: rename the alias")
            elif isinstance(each, (exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets)):
                raise self.text.at(each, "release one table for each set of columns")
            if is_aggregate(of):
                raise self.text.at(each, "groups are by values of rows, not by aggregates")
            item = next((item for item in node.expressions if item.unalias() == of), of)
            name = output_name(self.text, item)
            self._check_name(item, name, found)
            found[name] = of
        return found

    def _keys(
        self, node: exp.Select, relation: Relation, traced: Mapping[str, Lambda]
    ) -> tuple[Relation, dict[str, tuple[Any, ...]]]:
        """The rows after WHERE, and the public keys of columns that the statement lists.

        A condition that lists the groups is left out of the plan: records of other groups count nowhere.
        """
        keys: dict[str, tuple[Any, ...]] = {}
        kept: list[exp.Expression] = []
        where = node.args.get("where")
        for part in conjuncts(where.this) if where is not None else ():
            name = None
            for of, values in listed(self.text, relation, part):
                function = trace(function_of(self.text, relation.names, of), (relation.query.plan.type,))
                name = next((name for name, each in traced.items() if each == function and name not in keys), None)
                if name is not None:
                    keys[name] = values
            if name is None:
                kept.append(part)
        for name, each in traced.items():
            for column in relation.columns.values():
                if name not in keys and column.keys and each == trace(column.field, (relation.query.plan.type,)):
                    keys[name] = column.keys
        if kept:
            whole = exp.Where(this=exp.and_(*kept, copy=False) if len(kept) > 1 else kept[0])
            relation = filtered(self.text, relation, whole)
        return relation, keys

    # --- columns ------------------------------------------------------------------------------------------------------

    def _aggregates(
        self, node: exp.Select, relation: Relation, groups: Mapping[str, exp.Expression]
    ) -> dict[str, Aggregate]:
        found: dict[str, Aggregate] = {}
        reader = Aggregates(self.text, relation)
        ends: list[tuple[exp.Expression, str]] = []
        for item in node.expressions:
            value = item.unalias()
            if value in groups.values():
                continue
            of = interval_of(value)
            if of is not None:
                ends.append((item, of))
                continue
            if not is_aggregate(value):
                raise self.text.at(item, self._mend_of(item, value, bool(groups)))
            name = item.alias or self._default_name(value)
            self._check_name(item, name, {**groups, **found})
            found[name] = reader.read(value)
        for item, of in ends:
            if of not in found:
                raise self.text.at(item, f"`{shorten(of)}` names no aggregate of this SELECT")
            end = f"{of}_{item.unalias().name.rpartition('_')[2].lower()}"
            if isinstance(item, exp.Alias) and item.alias != end:
                raise self.text.at(item, f"the table has this end as `{end}`: leave AS out")
        if not found:
            raise self.text.at(node, "select an aggregate: COUNT(*) AS n")
        return found

    def _mend_of(self, item: exp.Expression, value: exp.Expression, grouped: bool) -> str:
        if isinstance(value, exp.Star):
            return "rows are private: select aggregates, such as COUNT(*)"
        if list(value.find_all(exp.AggFunc)):
            return "compute on the released table: select the aggregates alone, with AVG for a ratio to COUNT"
        if grouped:
            return "a selected column is an aggregate, or one of GROUP BY"
        return "rows are private: select aggregates, such as COUNT(*), or add GROUP BY"

    def _default_name(self, value: exp.Expression) -> str:
        """The name of an aggregate without AS: that of the function, with its column."""
        column = next(iter(value.find_all(exp.Column)), None)
        function = value.find(exp.AggFunc)
        word = value.key if function is None else function.key
        return word if column is None or not column.name else f"{word}_{column.name}"

    def _check_name(self, item: exp.Expression, name: str, taken: Mapping[str, Any]) -> None:
        check_new(self.text, item, name, taken)
        if name in RESERVED or name in TAKEN:
            raise self.text.at(item, f"`{name}` is a word of tables: name this column otherwise, AS name")

    def _above(self, node: exp.Select, aggregates: Mapping[str, Aggregate]) -> Fraction | None:
        """The threshold of HAVING."""
        clause = node.args.get("having")
        if clause is None:
            return None
        if not node.args.get("group"):
            raise self.text.at(clause, "HAVING lists groups: it needs GROUP BY")
        test = clause.this.unnest()
        count = test.this if isinstance(test, exp.GT) else None
        if isinstance(count, exp.Column):
            items = {item.alias: item.this for item in node.expressions if isinstance(item, exp.Alias)}
            count = items.get(count.name)
        limit = test.expression if isinstance(test, exp.GT) else None
        rows = isinstance(count, exp.Count) and isinstance(count.this, exp.Star)
        if not rows or not isinstance(limit, exp.Literal) or limit.is_string:
            raise self.text.at(clause, "HAVING compares the noisy count with a number: HAVING COUNT(*) > 20")
        if not any(aggregate.lists for aggregate in aggregates.values()):
            raise self.text.at(clause, "HAVING reads the noisy count, so select it: COUNT(*) AS n")
        return Fraction(limit.this)
