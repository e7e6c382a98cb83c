"""A SELECT as the table that it asks for: `wp.sql`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from wpinq.api.query import Query
from wpinq.errors import LanguageError, PlanError, described
from wpinq.expr.build import constant
from wpinq.expr.catalogue import apply
from wpinq.language.sql.aggregates import Aggregates
from wpinq.language.sql.relations import Relation, Relations, conjuncts, function, new_name
from wpinq.language.sql.text import SqlText, check_parts, position
from wpinq.language.syntax import shorten
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan.node import Node, sources as sources_of
from wpinq.plan.operators import Source
from wpinq.tables.aggregates import Aggregate
from wpinq.tables.grouping import NO_OTHER, find_groups
from wpinq.tables.tabulation import Grouping, Split, Tabulation

_OPTIONS = ("epsilon", "delta", "max_groups_contributed", "privacy_unit_column")
#: The most aggregates of a statement.
AGGREGATES_LIMIT = 100
_ENDS = {"DP_INTERVAL_LOW": "low", "DP_INTERVAL_HIGH": "high"}


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
    if isinstance(sources, Mapping):
        known = {each: Query(query) if isinstance(query, Node) else query for each, query in sources.items()}
    else:
        known = {_source_of(query).source: query for query in ([sources] if isinstance(sources, Query) else sources)}
    read = SqlText(text, name)
    try:
        with read.placed(0):
            return _Statement(read, known).table(epsilon, split)
    except RecursionError:  # only where the caller itself stands near Python's limit
        raise LanguageError(f"{name}: the statement nests too deep to be read from here") from None


def _source_of(query: Query) -> Source:
    if not isinstance(query, Query) or not isinstance(query.plan.operator, Source):
        raise PlanError('sources are those of wp.source; give other queries a name: {"adults": query}')
    return query.plan.operator


class _Statement:
    """The outermost SELECT."""

    def __init__(self, text: SqlText, sources: Mapping[str, Query]) -> None:
        self.text = text
        tree, self.options = text.tree()
        if not isinstance(tree, exp.Select):
            raise text.at(tree, "write one SELECT: SELECT COUNT(*) AS n FROM (SELECT ... UNION ALL SELECT ...)")
        self.node = tree
        check_parts(text, tree, "expressions", "from_", "joins", "where", "group", "having", "with_")
        self.relations = Relations(text, sources)

    def table(self, epsilon: EpsilonLike | None, split: Split) -> Tabulation:
        """The table, lowered clause by clause."""
        asked = self._epsilon(epsilon)
        self.relations.read_with(self.node)
        relation = self._cut(self.relations.tables(self.node)).flat()
        self._check_unit(relation)
        groups = self._groups(relation)
        relation, keys = self._filtered(relation, groups)
        aggregates = self._aggregates(relation, groups)
        above = self._above(aggregates)
        columns = {name: function(relation.reader(self.text).value(of)) for name, of in groups.items()}
        given = keys or ({} if above is not None else None)
        found = find_groups(relation.query.plan, (), columns, given, NO_OTHER, above)
        if found.keys is None and found.listing is None:
            mend = "list them, WHERE city IN ('Oslo', 'Rome'), or declare a category"
            raise self.text.at(self.node.args["group"], f"groups are public, and these have no keys: {mend}")
        return Grouping(found, relation.query.reading).agg(epsilon=asked, split=split, **aggregates)

    def _epsilon(self, given: EpsilonLike | None) -> EpsilonLike:
        unknown = [name for name in self.options if name not in _OPTIONS]
        written = self.options.get("epsilon")
        if unknown:
            raise self.text.error(f"there is no option {shorten(unknown[0])}: {', '.join(_OPTIONS)}", 0)
        if self.options.get("delta", "0").strip("0.") != "":
            raise self.text.error("delta is 0 here, for the ledger adds up pure epsilon: leave it out", 0)
        if written is not None and given is not None:
            raise self.text.error("epsilon stands in OPTIONS and beside the statement: leave one out", 0)
        if written is None and given is None:
            mend = "give it beside the statement, or SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) ..."
            raise self.text.error(f"a released table costs epsilon: {mend}", 0)
        return written if given is None else given  # type: ignore[return-value]  # one of both is there

    def _cut(self, relation: Relation) -> Relation:
        """At most so many rows of each person as groups may be contributed."""
        most, rows = self.options.get("max_groups_contributed"), relation.rows
        if most is None:
            return relation
        if rows is None or relation.row is not None or not most.isdigit() or int(most) < 1:
            mend = "a whole number, with a source of people in FROM (nested=True, or wp.people)"
            raise self.text.error(f"max_groups_contributed cuts the rows of each person: give {mend}", 0)
        return replace(relation, rows=lambda person: apply("first", rows(person), constant(int(most))))

    def _check_unit(self, relation: Relation) -> None:
        column = self.options.get("privacy_unit_column")
        for source in sources_of([relation.query.plan]).values() if column is not None else ():
            if source.person is None or source.person.column != column:
                raise self.text.error(f"the unit of {source.source} is {source.unit}: leave the option out", 0)

    def _groups(self, relation: Relation) -> dict[str, exp.Expr]:
        """The expressions of GROUP BY, by the names of their columns."""
        clause, items = self.node.args.get("group") or exp.Group(), self.node.expressions
        check_parts(self.text, clause, "expressions")
        aliases = {item.alias: item.this for item in items if isinstance(item, exp.Alias)}
        found: dict[str, exp.Expr] = {}
        for each in clause.expressions:
            of = each
            if isinstance(each, exp.Literal) and each.this in map(str, range(1, len(items) + 1)):
                of = items[int(each.this) - 1].unalias()
            elif isinstance(each, exp.Column) and not each.table and each.name in aliases:
                of = aliases[each.name]
                if of != each and any(each.name in table for table in relation.tables.values()):
                    raise self.text.at(each, f"`{shorten(each.name)}` is a column and an alias: rename the alias")
            found[new_name(self.text, next((item for item in items if item.unalias() == of), of), found)] = of
        return found

    def _filtered(
        self, relation: Relation, groups: Mapping[str, exp.Expr]
    ) -> tuple[Relation, dict[str, tuple[Any, ...]]]:
        """The rows after WHERE, and the keys of groups that the statement lists.

        A condition that lists the groups is left out of the plan: records of other groups count nowhere.
        """
        reader, keys, kept = relation.reader(self.text), dict[str, tuple[Any, ...]](), list[exp.Expr]()
        digests = {reader.value(of).digest: name for name, of in groups.items()}
        for part in conjuncts(self.node.args.get("where")):
            ((of, values),) = relation.listed(self.text, part).items() or [(b"", ())]
            if of in digests and digests[of] not in keys:
                keys[digests[of]] = values
            else:
                kept.append(part)
        return relation.filtered(self.text, kept), keys

    def _aggregates(self, relation: Relation, groups: Mapping[str, exp.Expr]) -> dict[str, Aggregate]:
        found, reader = dict[str, Aggregate](), Aggregates(self.text, relation)
        asked = [item for item in self.node.expressions if item.unalias() not in groups.values()]
        calls = [item for item in asked if isinstance(item.unalias(), exp.Anonymous)]
        ends = [item for item in calls if item.unalias().name.upper() in _ENDS]
        for item in asked:
            value = item.unalias()
            if item in ends:
                continue
            if not isinstance(value, (exp.AggFunc, exp.Filter, exp.WithinGroup)):
                mend = "select aggregates, such as COUNT(*) AS n, and columns of GROUP BY"
                mend = "compute on the released table" if value.find(exp.AggFunc) else f"rows are private: {mend}"
                raise self.text.at(item, f"this is no aggregate: {mend}")
            if len(found) == AGGREGATES_LIMIT:
                raise self.text.at(item, f"a SELECT has at most {AGGREGATES_LIMIT} aggregates; split it")
            column, kind = value.find(exp.Column), value.find(exp.AggFunc) or value
            default = kind.key if column is None else f"{kind.key}_{column.name}"
            name = new_name(self.text, item, {**groups, **found}, default)
            with self.text.placed(position(item)):
                found[name] = reader.read(value)
                found[name].bound(relation.query.plan.type)
        for item in ends:
            of = item.unalias().expressions[0].name if item.unalias().expressions else ""
            end = f"{of}_{_ENDS[item.unalias().name.upper()]}"
            if of not in found or item.alias not in ("", end):
                raise self.text.at(item, "name an aggregate of this SELECT; its ends are columns x_low and x_high")
        if not found:
            raise self.text.at(self.node, "select an aggregate, such as COUNT(*) AS n")
        return found

    def _above(self, aggregates: Mapping[str, Aggregate]) -> Fraction | None:
        """The threshold of HAVING."""
        clause = self.node.args.get("having")
        if clause is None:
            return None
        test = clause.this.unnest()
        items = {item.alias: item.this for item in self.node.expressions if isinstance(item, exp.Alias)}
        count = items.get(test.this.name, test.this) if isinstance(test, exp.GT) else None
        limit = test.args.get("expression")
        of_rows = isinstance(count, exp.Count) and isinstance(count.this, exp.Star)
        if not of_rows or not isinstance(limit, exp.Literal) or limit.is_string:
            raise self.text.at(clause, "HAVING compares the noisy count with a number: HAVING COUNT(*) > 20")
        if not any(aggregate.lists for aggregate in aggregates.values()) or not self.node.args.get("group"):
            raise self.text.at(clause, "HAVING lists groups by their count: add GROUP BY, and COUNT(*) AS n to SELECT")
        return Fraction(limit.this)
