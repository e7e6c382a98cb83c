"""FROM, JOIN, WHERE, WITH and subqueries as queries over the sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any

from sqlglot import exp

from wpinq.api.query import Query
from wpinq.api.series import Series
from wpinq.errors import LanguageError, WpinqError
from wpinq.expr import build, catalogue
from wpinq.expr.declarations import Person
from wpinq.expr.declare import over_elements
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.person_tables import PersonTables
from wpinq.expr.trace import Symbol, expr_of, trace
from wpinq.expr.types import ListOf, TupleOf, Type
from wpinq.expr.values import presenter
from wpinq.language.sql.expressions import (
    Bounds,
    Expressions,
    Names,
    RowFunction,
    SqlColumn,
    clamp_of,
    in_list,
    matching,
)
from wpinq.language.sql.text import SqlText, check_parts
from wpinq.language.syntax import shorten, suggest
from wpinq.plan.domain import DOMAIN_LIMIT
from wpinq.plan.operators import Source
from wpinq.tables.grouping import record_of

CLAUSES = {
    "order": "the answers are noisy: sort the released table",
    "limit": "the answers are noisy: cut the released table",
    "offset": "the answers are noisy: cut the released table",
    "distinct": "COUNT(DISTINCT x) counts values, and GROUP BY lists groups",
    "qualify": "windows rank rows by one another",
    "sample": "each row counts: leave it out",
    "having": "it compares the noisy count of a released table: WHERE filters the rows of a subquery",
    "rollup": "release one table for each set of columns",
    "cube": "release one table for each set of columns",
    "grouping_sets": "release one table for each set of columns",
    "all": "name the columns: GROUP BY city",
    "laterals": "tables of people are unnested by their names",
    "side": "an outer join makes rows for what is absent: JOIN ... USING, and a table of its own for the rest",
    "by_name": "both sides have their columns in one order",
    "columns": "name columns in the SELECT: AS name",
}
"""What to write in place of clauses."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A query, and the names of its columns."""

    query: Query
    names: Names

    @property
    def columns(self) -> dict[str, SqlColumn]:
        """Every column by its field."""
        return {each.field: each for table in self.names.tables.values() for each in table.values()}

    def renamed(self, alias: str) -> Relation:
        """The same as one table."""
        return replace(self, names=Names({alias: self.columns}))


@dataclass(frozen=True, slots=True)
class PeopleRows:
    """Rows of people: one record is a person, with a list of rows or one row for each table.

    Attributes
    ----------
    query : Query
        The people.
    person : Person
        Their declaration.
    tables : mapping
        Alias to the function from a person to the rows.
    """

    query: Query
    person: Person
    tables: Mapping[str, Callable[[Expr], Expr]]

    @property
    def lists(self) -> dict[str, Callable[[Expr], Expr]]:
        """The tables with a list of rows."""
        return {alias: rows for alias, rows in self.tables.items() if isinstance(self.type_of(rows), ListOf)}

    @property
    def single(self) -> dict[str, Callable[[Expr], Expr]]:
        """The tables with one row, or none."""
        return {alias: row for alias, row in self.tables.items() if alias not in self.lists}

    def type_of(self, rows: Callable[[Expr], Expr]) -> Type:
        """The type of the rows of a table."""
        return trace(RowFunction(rows), (self.query.plan.type,)).type

    @property
    def names(self) -> Names:
        """The columns of a row of all tables together; the names that several have end in that of the table."""
        tables: dict[str, dict[str, SqlColumn]] = {}
        taken: set[str] = set()
        for alias, rows in {**self.lists, **self.single}.items():
            type_ = self.type_of(rows)
            row = type_.element if isinstance(type_, ListOf) else type_
            assert isinstance(row, TupleOf)
            fields = {name: name if name not in taken else f"{name}_{alias}" for name in map(str, row.names)}
            taken |= {*fields.values()}
            tables[alias] = {name: SqlColumn(field) for name, field in fields.items()}
        return Names(tables, self.person.column)

    def cut(self, most: int) -> PeopleRows:
        """At most so many rows of each list."""

        def first(rows: Callable[[Expr], Expr], record: Expr) -> Expr:
            return catalogue.apply("first", rows(record), build.constant(most))

        lists = self.lists
        return replace(
            self, tables={a: partial(first, rows) if a in lists else rows for a, rows in self.tables.items()}
        )

    def present(self) -> Query:
        """The people with a row in every table that has one row."""
        query = self.query
        for row in self.single.values():
            query = query.where(RowFunction(partial(_is_there, row)))
        return query

    def rows(self, record: Expr) -> Expr:
        """The list of the joined rows of one person."""
        names, single, lists = self.names.tables, self.single, list(self.lists.items())
        if len(lists) == 1 and not single:
            return lists[0][1](record)

        def joined(left: Sequence[tuple[str, Callable[[Expr], Expr]]], found: dict[str, Expr]) -> Expr:
            (alias, rows), *more = left

            def row(element: Expr) -> Expr:
                fields = {c.field: build.field_named(element, name) for name, c in names[alias].items()}
                if more:
                    return joined(more, found | fields)
                whole = found | fields | alone
                return build.record(tuple(whole), tuple(whole.values()))

            made = catalogue.apply("map", *over_elements("map", rows(record), RowFunction(row)))
            return catalogue.apply("flatten", made) if more else made

        alone = {
            c.field: build.field_named(row(record), name)
            for alias, row in single.items()
            for name, c in names[alias].items()
        }
        return joined(lists, {})

    def flat(self) -> Relation:
        """The rows as records."""
        query, names = self.present(), self.names
        if self.lists:
            return Relation(query.unnest(RowFunction(self.rows)), names)
        fields = {
            column.field: RowFunction(partial(_field_of, row, name))
            for alias, row in self.single.items()
            for name, column in names.tables[alias].items()
        }
        return Relation(query.select(record_of(fields)), names)


def _is_there(value: Callable[[Expr], Expr], record: Expr) -> Expr:
    return catalogue.apply("not", catalogue.apply("is_null", value(record)))


def _field_of(row: Callable[[Expr], Expr], name: str, record: Expr) -> Expr:
    return build.field_named(row(record), name)


def field(name: str) -> Callable[[Expr], Expr]:
    """The function to a field."""
    return lambda record: build.field_named(record, name)


class Relations:
    """A reader of the tables of one statement."""

    def __init__(self, text: SqlText, sources: Mapping[str, Query]) -> None:
        self.text = text
        self.sources = sources
        self.named: dict[str, Relation] = {}

    def read_with(self, node: exp.Expression) -> None:
        """Give the names of WITH their meaning, in order."""
        clause = node.args.get("with_")
        if clause is None:
            return
        check_parts(self.text, clause, "expressions")
        for each in clause.expressions:
            check_parts(self.text, each, "this", "alias")
            check_parts(self.text, each.args["alias"], "this", mends=CLAUSES)
            if each.alias in self.named:
                raise self.text.at(each, f"WITH names `{shorten(each.alias)}` twice")
            self.named[each.alias] = self.relation(each.this)

    def relation(self, node: exp.Expression) -> Relation:
        """The relation of a subquery."""
        if isinstance(node, exp.Subquery):
            check_parts(self.text, node, "this", "alias", mends=CLAUSES)
            return self.relation(node.this)
        kept = dict(self.named)
        try:
            self.read_with(node)
            if isinstance(node, exp.SetOperation):
                return self._combined(node)
            if not isinstance(node, exp.Select):
                raise self.text.at(node, "write a SELECT here")
            return self._selected(node)
        except LanguageError:
            raise
        except WpinqError as error:
            raise self.text.at(node, str(error)) from None
        finally:
            self.named = kept

    def _combined(self, node: exp.SetOperation) -> Relation:
        check_parts(self.text, node, "this", "expression", "distinct", "with_", mends=CLAUSES)
        left, right = (self.relation(each) for each in (node.this, node.expression))
        if len(left.columns) != len(right.columns):
            raise self.text.at(node, f"both sides of {node.key.upper()} need as many columns")
        fields = dict(zip(left.columns, right.columns, strict=True))
        one, other = left.query, right.query
        if list(fields) != list(fields.values()):
            other = other.select(record_of(fields_of(fields)))
        if isinstance(node, exp.Union):
            if node.args.get("distinct"):
                raise self.text.at(node.expression, "UNION drops equal rows: write UNION ALL, which adds their weights")
            made = one.concat(other).read_as("UNION ALL: the weights of equal rows add up")
        elif isinstance(node, exp.Intersect):
            made = one.intersect(other).read_as("INTERSECT: the smaller of the weights that a row has in both")
        else:
            made = one.difference(other).read_as(
                "EXCEPT: weights less those of equal rows, below 0 where these are more"
            )
        columns = {name: SqlColumn(name) for name in left.columns}
        return Relation(made, Names({"": columns}))

    def _selected(self, node: exp.Select) -> Relation:
        check_parts(self.text, node, "expressions", "from_", "joins", "where", "group", "with_", mends=CLAUSES)
        given = self.tables(node)
        if node.args.get("group"):
            if not isinstance(given, PeopleRows):
                raise self.text.at(
                    node.args["group"],
                    "a subquery groups by the id of people, over a source of people (nested=True, or wp.people); GROUP "
                    "BY other columns stands in the outermost SELECT",
                )
            return self._per_person(node, given)
        relation = filtered(self.text, flat(given), node.args.get("where"))
        items = node.expressions
        if len(items) == 1 and isinstance(items[0], exp.Star):
            check_parts(self.text, items[0])
            return relation.renamed("")
        columns: dict[str, SqlColumn] = {}
        functions: dict[str, Any] = {}
        for item in items:
            name, value = output_name(self.text, item), item.unalias()
            check_new(self.text, item, name, columns)
            if isinstance(value, exp.Column):
                columns[name] = replace(relation.names.find(self.text, value), field=name)
            else:
                found = bounded(self.text, relation, value, inner=True)
                columns[name] = SqlColumn(name, None if found is None else found[1])
            functions[name] = function_of(self.text, relation.names, value)
        return Relation(relation.query.select(record_of(functions)), Names({"": columns}))

    def tables(self, node: exp.Select) -> Relation | PeopleRows:
        """The tables of FROM and JOIN."""
        clause = node.args.get("from_")
        if clause is None:
            raise self.text.at(node, f"a SELECT needs FROM: {suggest('', self.sources)}")
        found = self._table(clause.this)
        for join in node.args.get("joins") or ():
            check_parts(self.text, join, "this", "on", "using", "kind", mends=CLAUSES)
            if join.kind not in ("", "INNER") or not (join.args.get("on") or join.args.get("using")):
                raise self.text.at(join, "join by equal columns: JOIN visits USING (person_id)")
            found = self._joined(found, self._table(join.this), join)
        return found

    def _table(self, node: exp.Expression) -> Relation | PeopleRows:
        if isinstance(node, exp.Subquery):
            return self.relation(node).renamed(node.alias)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.text.at(node, "FROM takes a table or a subquery")
        check_parts(self.text, node, "this", "db", "alias", mends=CLAUSES)
        if node.args.get("alias") is not None:
            check_parts(self.text, node.args["alias"], "this", mends=CLAUSES)
        alias = node.alias or node.name
        if not node.db and (named := matching(node.this, self.named)):
            return self.named[named[0]].renamed(alias)
        owners = self._owners(node)
        if len(owners) == 1:
            ((query, name),) = owners
            person = query.plan.operator.person  # type: ignore[attr-defined]  # of a source of people
            if name is None:
                return PeopleRows(query, person, {alias: lambda record: record})
            return PeopleRows(query, person, {alias: field(name)})
        found = [] if node.db else matching(node.this, self.sources)
        if not found or owners:
            told = "stands in several sources: write the source before it" if owners else "is no table here"
            tables = {f"{name}.{each}": each for name, query in self.sources.items() for each in _tables_of(query)}
            known = {**self.sources, **tables, **self.named}
            raise self.text.at(node, f"`{shorten(node.name)}` {told}; {suggest(node.name, known)}")
        query = self.sources[found[0]]
        type_ = query.plan.type
        if isinstance(query, Series) or not isinstance(type_, TupleOf) or None in type_.names or _tables_of(query):
            mend = (
                "give an epoch of the series under this name: {name: series.epoch(...)}"
                if isinstance(query, Series)
                else f"name one of its tables: {', '.join(_tables_of(query))}"
                if _tables_of(query)
                else "give a query to records with named columns"
            )
            raise self.text.at(node, f"`{found[0]}` is no table of columns: {mend}")
        person = query.plan.operator.person if isinstance(query.plan.operator, Source) else None
        columns = {str(name): SqlColumn(str(name)) for name in type_.names}
        hidden = person.column if person is not None and person.column not in columns else ""
        return Relation(query, Names({alias: columns}, hidden))

    def _owners(self, node: exp.Table) -> list[tuple[Query, str | None]]:
        """The sources of people that have a table of this name; None for the rows of a nested one."""
        found: list[tuple[Query, str | None]] = []
        for name, query in self.sources.items():
            source = query.plan.operator
            person = source.person if isinstance(source, Source) else None
            if person is None or not person.nested or (node.db and name not in matching(node.args["db"], self.sources)):
                continue
            if isinstance(person, PersonTables):
                found += [(query, each) for each in matching(node.this, dict.fromkeys(_tables_of(query)))]
            elif not node.db and name in matching(node.this, self.sources):
                found.append((query, None))
        return found

    # --- joins --------------------------------------------------------------------------------------------------------

    def _joined(
        self, left: Relation | PeopleRows, right: Relation | PeopleRows, join: exp.Join
    ) -> Relation | PeopleRows:
        pairs = self._keys(left, right, join)
        same = isinstance(left, PeopleRows) and isinstance(right, PeopleRows) and left.query == right.query
        if same:
            assert isinstance(left, PeopleRows)
            assert isinstance(right, PeopleRows)
            if pairs != [(left.person.column, left.person.column)]:
                raise self.text.at(
                    join, f"tables of the same people are joined on their id: USING ({left.person.column})"
                )
            if {*left.tables} & {*right.tables}:
                raise self.text.at(join.this, "give the table another name: JOIN visits AS later USING (...)")
            return replace(left, tables={**left.tables, **right.tables})
        one, other = flat(left), flat(right)
        for name in {*one.names.tables} & {*other.names.tables}:
            raise self.text.at(join.this, f"two tables are called `{shorten(name)}`: name one apart with AS")
        for here, there in pairs:
            if one.names.hidden == here or other.names.hidden == there:
                raise self.text.at(join, "ids of people are in no record: declare the tables together, as wp.people")
            types = [_field_type(side.query, field) for side, field in ((one, here), (other, there))]
            if all(type_.nullable for type_ in types):  # SQL joins no null with another
                one = replace(one, query=one.query.where(RowFunction(partial(_is_there, field(here)))))
        keys = {here for here, there in pairs if here == there}
        fields: dict[str, str] = {}
        for name in other.columns:
            if name not in keys:
                fields[name] = f"{name}_right" if name in one.columns else name
        if len({*one.columns, *fields.values()}) < len(one.columns) + len(fields):
            raise self.text.at(join, "both sides would give one column twice: rename it in a subquery")
        if len(keys) == len(pairs):
            names = [here for here, _ in pairs]
            made = one.query.join(other.query, on=names[0] if len(names) == 1 else names)
        else:
            left_key, right_key = ([pair[side] for pair in pairs] for side in (0, 1))

            def result(record: Symbol, match: Symbol) -> Symbol:
                values = {name: build.field_named(expr_of(record), name) for name in one.columns}
                values |= {shown: build.field_named(expr_of(match), name) for name, shown in fields.items()}
                return Symbol(build.record(tuple(values), tuple(values.values())))

            made = one.query.join(other.query, _key(left_key), _key(right_key), result)
        tables: dict[str, dict[str, SqlColumn]] = {alias: dict(table) for alias, table in one.names.tables.items()}
        for alias, table in other.names.tables.items():
            tables[alias] = {n: replace(c, field=fields.get(c.field, c.field)) for n, c in table.items()}
        return Relation(made.read_as(JOIN_READING), Names(tables))

    def _keys(self, left: Relation | PeopleRows, right: Relation | PeopleRows, join: exp.Join) -> list[tuple[str, str]]:
        """The fields of the left side and of the right side that are equal."""
        if join.args.get("using"):
            asked = [
                (exp.column(each.this if isinstance(each, exp.Column) else each),) * 2 for each in join.args["using"]
            ]
        else:
            asked = []
            for part in conjuncts(join.args["on"]):
                if not isinstance(part, exp.EQ) or not all(
                    isinstance(side, exp.Column) for side in (part.this, part.expression)
                ):
                    raise self.text.at(part, "ON takes equal columns: ON a.person_id = b.person_id; others go to WHERE")
                asked.append((part.this, part.expression))
        found = []
        for one, other in asked:
            if one.table in right.names.tables and one.table:
                one, other = other, one
            found.append(tuple(self._key(side, each) for side, each in ((left, one), (right, other))))
        return found  # type: ignore[return-value]  # pairs

    def _key(self, side: Relation | PeopleRows, node: exp.Column) -> str:
        hidden = side.names.hidden
        own = not node.table or matching(node.args["table"], side.names.tables)
        if hidden and own and matching(node.this, {hidden: None}):
            return hidden
        return side.names.find(self.text, node).field

    # --- aggregates of one person -------------------------------------------------------------------------------------

    def _per_person(self, node: exp.Select, people: PeopleRows) -> Relation:
        """One record for each person with rows: aggregates of the rows."""
        column, group = people.person.column, node.args["group"]
        check_parts(self.text, group, "expressions", mends=CLAUSES)
        if [each.name for each in group.expressions] != [column]:
            raise self.text.at(group, f"a subquery groups by the id of people alone: GROUP BY {column}")
        names, condition = people.names, node.args.get("where")

        def rows(record: Expr) -> Expr:
            found = people.rows(record)
            if condition is None:
                return found
            kept = condition_of(self.text, names, condition)
            return catalogue.apply("filter", *over_elements("filter", found, kept))

        query = people.present()
        if not people.lists:
            raise self.text.at(node, "each person has one row of this table: leave GROUP BY out")
        if condition is not None or isinstance(people.person, PersonTables):
            least = build.constant(0)
            query = query.where(RowFunction(lambda record: _more(catalogue.apply("count", rows(record)), least)))
        functions: dict[str, Any] = {}
        for item in node.expressions:
            value = item.unalias()
            if isinstance(value, exp.Column) and value.name == column:
                continue
            name = output_name(self.text, item)
            check_new(self.text, item, name, functions)
            functions[name] = RowFunction(partial(self._of_rows, value, names, rows))
        if not functions:
            raise self.text.at(node, "select an aggregate of each person: COUNT(*) AS visits")
        columns = {name: SqlColumn(name) for name in functions}
        return Relation(query.select(record_of(functions)), Names({"": columns}, column))

    def _of_rows(self, node: exp.Expression, names: Names, rows: Callable[[Expr], Expr], record: Expr) -> Expr:
        kind, found = type(node), rows(record)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return catalogue.apply("count", found)
        name = {exp.Sum: "sum", exp.Avg: "sum", exp.Min: "min", exp.Max: "max"}.get(kind)
        if name is None:
            raise self.text.at(node, "of the rows of a person there are COUNT(*), SUM, AVG, MIN and MAX")
        check_parts(self.text, node, "this")
        made = catalogue.apply(name, *over_elements(name, found, function_of(self.text, names, node.this)))
        values = trace(function_of(self.text, names, node.this), (found.type.element,))  # type: ignore[attr-defined]  # a list's
        if values.type.nullable and name == "sum":
            raise self.text.at(node, "the sum of nothing but null is null in SQL: SUM(COALESCE(x, 0))")
        return catalogue.divide(made, catalogue.apply("count", found)) if kind is exp.Avg else made


JOIN_READING = "JOIN: the rows of a key share weight, so totals are weights and no counts"


def flat(given: Relation | PeopleRows) -> Relation:
    """Rows as records."""
    return given.flat() if isinstance(given, PeopleRows) else given


def _tables_of(query: Query) -> tuple[str, ...]:
    source = query.plan.operator
    person = source.person if isinstance(source, Source) else None
    return tuple(table.name for table in person.tables) if isinstance(person, PersonTables) else ()


def _field_type(query: Query, field: str) -> Type:
    return trace(field, (query.plan.type,)).type


def _key(fields: list[str]) -> Any:
    """A key of unnamed parts, for the names differ."""
    if len(fields) == 1:
        return fields[0]
    return RowFunction(
        lambda record: build.record((None,) * len(fields), tuple(map(partial(build.field_named, record), fields)))
    )


def fields_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Functions to the fields, by other names."""
    return {name: RowFunction(field(each)) for name, each in fields.items()}


def function_of(text: SqlText, names: Names, node: exp.Expression) -> Any:
    """An expression as a function of the record."""
    return RowFunction(lambda record: Expressions(text, names, record).value(node))


def condition_of(text: SqlText, names: Names, clause: exp.Expression) -> Any:
    """The condition of WHERE as a function of the record."""
    return RowFunction(lambda record: Expressions(text, names, record).truth(clause.this))


def _more(value: Expr, least: Expr) -> Expr:
    return catalogue.compare("greater", value, least)


def filtered(text: SqlText, relation: Relation, clause: exp.Expression | None) -> Relation:
    """The rows that satisfy WHERE; the columns whose values it lists are public then."""
    if clause is None:
        return relation
    names = relation.names
    query = relation.query.where(condition_of(text, names, clause))
    found = listed(text, relation, clause.this)
    keys = {names.find(text, node).field: keys for node, keys in found if isinstance(node, exp.Column)}
    tables = {
        alias: {name: replace(c, keys=keys.get(c.field, c.keys)) for name, c in table.items()}
        for alias, table in names.tables.items()
    }
    return Relation(query.read_as(relation.query.reading), replace(names, tables=tables))


def conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    """The conditions that all hold."""
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from conjuncts(node.this)
        yield from conjuncts(node.expression)
    else:
        yield node


def listed(
    text: SqlText, relation: Relation, where: exp.Expression
) -> Iterator[tuple[exp.Expression, tuple[Any, ...]]]:
    """The expressions whose values a condition lists, and these, as Python values."""
    for part in conjuncts(where):
        if isinstance(part, exp.In):
            of, values = part.this, in_list(text, part)
        elif isinstance(part, exp.EQ) and not isinstance(part.this, exp.Literal):
            of, values = part.this, [part.expression]
        elif isinstance(part, exp.Between):
            ends = constants(text, relation, part.this, [part.args["low"], part.args["high"]])
            if ends is not None and (keys := steps(*ends)):
                yield part.this, keys
            continue
        else:
            continue
        found = constants(text, relation, of, values)
        if found is not None:
            yield of, tuple(dict.fromkeys(found))


def constants(
    text: SqlText, relation: Relation, of: exp.Expression, values: Sequence[exp.Expression]
) -> list[Any] | None:
    """Constants as Python values of the type of an expression; None where they are none."""
    found: list[Any] = []

    def read(record: Expr) -> Expr:
        reader = Expressions(text, relation.names, record)
        value = reader.value(of)
        for each in values:
            item = reader._fitted(reader.value(each), each, value)
            if not isinstance(item, Constant) or item.value is None:
                raise _NotConstant
            (item,) = [one for one in catalogue.promote(item, value) if isinstance(one, Constant)][:1]
            found.append(presenter(item.type)(item.value))
        return value

    try:
        trace(RowFunction(read), (relation.query.plan.type,))
    except _NotConstant:
        return None
    return found


class _NotConstant(Exception):
    """A value is none that is written."""


def steps(low: Any, high: Any) -> tuple[Any, ...]:
    """Every whole number, or day, of a range; none where it is one of others, or too long."""
    if type(low) is int and type(high) is int and 0 <= high - low < DOMAIN_LIMIT:
        return tuple(range(low, high + 1))
    if type(low) is date and type(high) is date and 0 <= (high - low).days < DOMAIN_LIMIT:
        return tuple(low + timedelta(days=day) for day in range((high - low).days + 1))
    return ()


def bounded(
    text: SqlText, relation: Relation, node: exp.Expression, inner: bool = False
) -> tuple[exp.Expression, Bounds] | None:
    """A value and its public range, as the statement writes it; None where it writes none.

    What clamps a value to its range is left out, for an aggregate does so itself.
    """
    node = node.unnest()
    if isinstance(node, exp.Column):
        bounds = relation.names.find(text, node).bounds
        return None if bounds is None else (node, bounds)
    if isinstance(node, exp.Anonymous) and node.name.upper() == "CLAMP":
        of, low, high = clamp_of(text, node)
    elif isinstance(node, (exp.Least, exp.Greatest)):
        parts = _nested(node)
        if parts is None:
            return None
        of, low, high = parts
        function = function_of(text, relation.names, node)
        trace(function, (relation.query.plan.type,))  # refuses null
    elif isinstance(node, (exp.Case, exp.If)):
        branches = [each.args["true"] for each in (node.args["ifs"] if isinstance(node, exp.Case) else [node])]
        default = node.args.get("default" if isinstance(node, exp.Case) else "false")
        ends = [
            constants(text, relation, node, [each])
            for each in (*branches, default)
            if each is not None and not isinstance(each, exp.Null)
        ]
        if not ends or any(end is None for end in ends):
            return None
        numbers = [end[0] for end in ends if end is not None]
        return node, (min(numbers), max(numbers))
    else:
        return None
    found = constants(text, relation, of, [low, high])
    if found is None:
        raise text.at(node, "the ends of a range are numbers that are written: CLAMP(age, 0, 100)")
    return of, (found[0], found[1])


def _nested(node: exp.Least | exp.Greatest) -> tuple[exp.Expression, exp.Expression, exp.Expression] | None:
    """Of LEAST(GREATEST(x, low), high), in any order: x, low and high."""
    other = exp.Greatest if isinstance(node, exp.Least) else exp.Least
    outer = [node.this, *node.expressions]
    inside = [each for each in outer if isinstance(each.unnest(), other)]
    if len(outer) != 2 or len(inside) != 1:
        return None
    (end,) = [each for each in outer if each is not inside[0]]
    within = inside[0].unnest()
    parts = [within.this, *within.expressions]
    constant = [each for each in parts if not list(each.find_all(exp.Column))]
    if len(parts) != 2 or len(constant) != 1:
        return None
    (of,) = [each for each in parts if each is not constant[0]]
    low, high = (constant[0], end) if isinstance(node, exp.Least) else (end, constant[0])
    return of, low, high


def output_name(text: SqlText, item: exp.Expression) -> str:
    """The name of a selected column."""
    name = item.alias if isinstance(item, exp.Alias) else item.name if isinstance(item, exp.Column) else ""
    if not name:
        raise text.at(item, "name this column: AS name")
    return name


def check_new(text: SqlText, item: exp.Expression, name: str, taken: Mapping[str, Any]) -> None:
    """Refuse a name that is taken, or that no text program could write."""
    if name in taken:
        raise text.at(item, f"two columns are called `{shorten(name)}`: name one apart with AS")
    if not (name.isidentifier() and name.isascii()):
        raise text.at(item, f"`{shorten(name)}` cannot name a column: take ASCII letters, digits, underscores, AS name")
