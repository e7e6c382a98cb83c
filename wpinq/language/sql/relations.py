"""FROM, JOIN, WHERE, WITH and subqueries as queries over the sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlglot import exp

from wpinq.api.people import tables_of
from wpinq.api.query import Query
from wpinq.api.series import Series
from wpinq.expr.build import constant, field_named, record
from wpinq.expr.catalogue import apply, divide
from wpinq.expr.declarations import Person
from wpinq.expr.declare import over_elements
from wpinq.expr.nodes import RESERVED, Call, Constant, Expr, Variable
from wpinq.expr.person_tables import PersonTables
from wpinq.expr.trace import Symbol, expr_of
from wpinq.expr.types import BOOL, DATE, INT, ListOf, TupleOf
from wpinq.expr.values import presenter
from wpinq.language.sql.expressions import Expressions, SqlColumn, Tables, find_column
from wpinq.language.sql.text import SqlText, check_parts, position
from wpinq.language.syntax import shorten, suggest
from wpinq.plan.node import sources as sources_of
from wpinq.plan.operators import Source
from wpinq.tables.grouping import record_of

Rows = Callable[[Expr], Expr]
_WORDS_OF_TABLES = ("epsilon", "split", "k_rule", "keys", "other", "above")


def function(value: Expr | Rows) -> Callable[[Symbol], Any]:
    """A function for queries, of a rule or of an expression over a relation's variable."""

    rule: Rows = (lambda record: value) if isinstance(value, Expr) else value
    return lambda record: Symbol(rule(expr_of(record)))


@dataclass(frozen=True, slots=True)
class Relation:
    """A query with the names of its columns.

    Over people `rows` gives the rows of a person, and `row` the one of a table that has one.
    """

    query: Query
    tables: Tables
    person: Person | None = None
    rows: Rows | None = None
    row: Rows | None = None

    @property
    def columns(self) -> dict[str, SqlColumn]:
        """Every column by its field."""
        return {column.field: column for table in self.tables.values() for column in table.values()}

    def reader(self, text: SqlText) -> Expressions:
        """A reader of expressions over the records."""
        return Expressions(text, self.tables, Variable(self.query.plan.type, 0, "record"))

    def renamed(self, alias: str) -> Relation:
        """The same as one table."""
        return replace(self, tables={alias: self.columns})

    def flat(self) -> Relation:
        """The rows of people as records."""
        return self if self.rows is None else Relation(self.query.unnest(function(self.rows)), self.tables)

    def filtered(self, text: SqlText, conditions: list[exp.Expr]) -> Relation:
        """The rows that satisfy all conditions."""
        if not conditions:
            return self
        whole, kept = exp.and_(*conditions, copy=False), self.rows
        test = function(lambda row: Expressions(text, self.tables, row).truth(whole))
        if kept is None:
            return replace(self, query=self.query.where(test).read_as(self.query.reading))
        return replace(self, rows=lambda person: apply("filter", *over_elements("filter", kept(person), test)))

    def listed(self, text: SqlText, part: exp.Expr) -> dict[bytes, tuple[Any, ...]]:
        """The digest of the expression whose values a condition lists, with these."""
        if not isinstance(part, (exp.In, exp.EQ, exp.Between)):
            return {}
        parts = [*part.expressions, *(part.args.get(end) for end in ("expression", "low", "high"))]
        found = self.reader(text).constants(part.this, [each for each in parts if each is not None])
        found = steps(*found) if found and isinstance(part, exp.Between) else found
        return {self.reader(text).value(part.this).digest: shown(found)} if found else {}


#: The most keys or candidates of a range.
LONGEST_RANGE = 100_000


def shown(values: list[Constant]) -> tuple[Any, ...]:
    """Constants as Python values, each once."""
    return tuple(dict.fromkeys(presenter(each.type)(each.value) for each in values))


def steps(low: Constant, high: Constant) -> list[Constant] | None:
    """Every whole number, or day, of a range; None of other types, or beyond the limit."""
    whole = low.type == high.type and low.type in (INT, DATE)
    if not whole or not 0 <= high.value - low.value < LONGEST_RANGE:
        return None
    return [Constant(low.type, value) for value in range(low.value, high.value + 1)]


def public_range(relation: Relation, value: Expr) -> tuple[Expr, Constant, Constant] | None:
    """A value with the public range that the statement writes.

    A clamp is left out, for an aggregate clamps itself.
    """
    match value:
        case Constant():
            return None if value.value is None or value.type == BOOL else (value, value, value)
        case Call(name="where", arguments=(_, *branches)):
            found = [public_range(relation, each) for each in branches if getattr(each, "value", each) is not None]
            ends = [end for each in found if each is not None for end in each[1:]]
            if not ends or None in found:
                return None
            return value, min(ends, key=lambda end: end.value), max(ends, key=lambda end: end.value)
        case Call(name="field", arguments=(Variable(type=TupleOf(names=names)),), attributes=(int(place),)):
            known = relation.columns[str(names[place])].range
            return None if known is None else (value, *known)
        case Call(name="min" | "max", arguments=(one, other)):
            inner, end = (other, one) if isinstance(one, Constant) else (one, other)
            if isinstance(inner, Call) and {inner.name, value.name} == {"min", "max"} and isinstance(end, Constant):
                ends = [each for each in inner.arguments if isinstance(each, Constant)]
                rest = [each for each in inner.arguments if not isinstance(each, Constant)]
                if len(ends) == len(rest) == 1:
                    return (rest[0], ends[0], end) if value.name == "min" else (rest[0], end, ends[0])
    return None


def conjuncts(clause: exp.Expr | None) -> list[exp.Expr]:
    """The conditions of WHERE or ON that all hold."""
    node = clause.this.unnest() if isinstance(clause, exp.Where) else clause
    return [*node.flatten()] if isinstance(node, exp.And) else [node] if node is not None else []


class Relations:
    """A reader of the tables of one statement."""

    def __init__(self, text: SqlText, sources: Mapping[str, Query]) -> None:
        self.text, self.sources = text, sources
        self.named: dict[str, Relation] = {}

    def read_with(self, node: exp.Expr) -> None:
        """Give the names of WITH their meaning, in order."""
        clause = node.args.get("with_") or exp.With()
        check_parts(self.text, clause, "expressions")
        for each in clause.expressions:
            check_parts(self.text, each, "this", "alias")
            check_parts(self.text, each.args["alias"], "this")
            self.named = {**self.named, each.alias: self.relation(each.this)}

    def relation(self, node: exp.Expr) -> Relation:
        """The relation of a subquery."""
        outer = self.named
        try:
            with self.text.placed(position(node)):
                self.read_with(node)
                if isinstance(node, exp.Subquery):
                    check_parts(self.text, node, "this", "alias", "with_")
                    return self.relation(node.this)
                if isinstance(node, exp.SetOperation):
                    return self._combined(node)
                if isinstance(node, exp.Select):
                    return self._selected(node)
                raise self.text.at(node, "write a SELECT here")
        finally:
            self.named = outer

    def _combined(self, node: exp.SetOperation) -> Relation:
        distinct = () if isinstance(node, exp.Union) else ("distinct",)
        check_parts(self.text, node, "this", "expression", "with_", *distinct)
        left, right = self.relation(node.this), self.relation(node.expression)
        if len(left.columns) != len(right.columns):
            raise self.text.at(node, f"both sides of {node.key.upper()} need as many columns")
        other = right.query
        if [*left.columns] != [*right.columns]:
            own = zip(left.columns, right.columns, strict=True)
            other = other.select(record_of({name: function(partial(field_named, name=of)) for name, of in own}))
        if isinstance(node, exp.Union):
            made = left.query.concat(other).read_as("UNION ALL: the weights of equal rows add up")
        elif isinstance(node, exp.Intersect):
            made = left.query.intersect(other).read_as("INTERSECT: of equal rows the smaller weight")
        else:
            made = left.query.difference(other).read_as("EXCEPT: the weight less that of equal rows, also below 0")
        return Relation(made, {"": {name: SqlColumn(name) for name in left.columns}})

    def _selected(self, node: exp.Select) -> Relation:
        check_parts(self.text, node, "expressions", "from_", "joins", "where", "group", "with_")
        given, conditions = self.tables(node), conjuncts(node.args.get("where"))
        if node.args.get("group"):
            return self._per_person(node, given.filtered(self.text, conditions))
        given = given.flat().filtered(self.text, conditions)
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star):
            check_parts(self.text, node.expressions[0])
            return given.renamed("")
        columns: dict[str, SqlColumn] = {}
        values: dict[str, Any] = {}
        for item in node.expressions:
            name, value = new_name(self.text, item, columns), given.reader(self.text).value(item.unalias())
            found = public_range(given, value)
            columns[name], values[name] = SqlColumn(name, found and (found[1], found[2])), function(value)
        return Relation(given.query.select(record_of(values)).read_as(given.query.reading), {"": columns})

    def _per_person(self, node: exp.Select, given: Relation) -> Relation:
        """A record for each person with rows: aggregates of the rows."""
        column, rows = given.person.column if given.person is not None else "", given.rows
        grouped = [each.name for each in node.args["group"].expressions]
        check_parts(self.text, node.args["group"], "expressions")
        if rows is None or grouped != [column]:
            mend = f"GROUP BY {column}" if rows is not None else "declare people, nested=True or wp.people"
            raise self.text.at(node.args["group"], f"a subquery groups by the id of people alone: {mend}")
        query = given.query
        if node.args.get("where") or isinstance(given.person, PersonTables):
            query = query.where(function(lambda person: apply("greater", apply("count", rows(person)), constant(0))))
        values: dict[str, Any] = {}
        for item in node.expressions:
            if item.unalias().name != column or not isinstance(item.unalias(), exp.Column):
                values[new_name(self.text, item, values)] = function(partial(self._of_rows, item.unalias(), given))
        made = query.select(record_of(values or {"rows": function(lambda person: apply("count", rows(person)))}))
        return Relation(made, {"": {name: SqlColumn(name) for name in values}})

    def _of_rows(self, node: exp.Expr, given: Relation, person: Expr) -> Expr:
        assert given.rows is not None
        rows, count = given.rows(person), apply("count", given.rows(person))
        names: dict[type, str] = {exp.Sum: "sum", exp.Avg: "sum", exp.Min: "min", exp.Max: "max"}
        name = names.get(type(node), "")
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return count
        if not name:
            raise self.text.at(node, "of the rows of a person there are COUNT(*), SUM, AVG, MIN and MAX")
        check_parts(self.text, node, "this")
        value = function(lambda row: Expressions(self.text, given.tables, row).value(node.this))
        arguments = over_elements(name, rows, value)
        if name == "sum" and arguments[1].type.nullable:
            raise self.text.at(node, "the sum of nothing but null is null in SQL: SUM(COALESCE(x, 0))")
        return divide(apply(name, *arguments), count) if isinstance(node, exp.Avg) else apply(name, *arguments)

    # --- FROM and JOIN ------------------------------------------------------------------------------------------------

    def tables(self, node: exp.Select) -> Relation:
        """The tables of FROM and JOIN."""
        if node.args.get("from_") is None:
            raise self.text.at(node, f"a SELECT needs FROM; {suggest('', self.sources)}")
        found = self._table(node.args["from_"].this)
        for join in node.args.get("joins") or ():
            check_parts(self.text, join, "this", "on", "using", "kind")
            found = self._joined(found, self._table(join.this), join)
        return found

    def _table(self, node: exp.Expr) -> Relation:
        if isinstance(node, exp.Subquery):
            return self.relation(node).renamed(node.alias)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.text.at(node, "FROM takes a table or a subquery")
        check_parts(self.text, node, "this", "db", "alias")
        check_parts(self.text, node.args.get("alias") or node.this, "this", "quoted")
        alias = node.alias or node.name
        if node.name in self.named and not node.db:
            return self.named[node.name].renamed(alias)
        found = {
            (name, table): query
            for name, query in self.sources.items()
            for table in (tables_of(query) or ([name] if not node.db else []))
            if table == node.name and node.db in ("", name)
        }
        if len(found) != 1:
            told = "is a table of several sources: write the source before it" if found else "is no table here"
            known = [table for name, query in self.sources.items() for table in (tables_of(query) or [name])]
            raise self.text.at(node, f"`{shorten(node.name)}` {told}; {suggest(node.name, [*known, *self.named])}")
        ((_, query),) = found.items()
        person = query.plan.operator.person if isinstance(query.plan.operator, Source) else None
        of: Rows = partial(field_named, name=node.name) if tables_of(query) else partial(lambda record: record)
        held = of(Variable(query.plan.type, 0, "record")).type
        type_ = held.element if isinstance(held, ListOf) else held
        if isinstance(query, Series) or not isinstance(type_, TupleOf) or None in type_.names:
            raise self.text.at(node, f"`{shorten(node.name)}` has no columns: give an epoch, or a query to records")
        made = Relation(query, {alias: {str(name): SqlColumn(str(name)) for name in type_.names}}, person)
        if isinstance(held, ListOf):
            return replace(made, rows=of)
        if not tables_of(query):
            return made
        return replace(made, query=query.where(_there(of)), rows=lambda record: apply("list", of(record)), row=of)

    def _joined(self, left: Relation, right: Relation, join: exp.Join) -> Relation:
        pairs = list[Any]()
        for each in join.args.get("using") or ():
            pairs.append((exp.column(each.this if isinstance(each, exp.Column) else each),) * 2)
        for part in conjuncts(join.args.get("on")):
            sides = part.args.get("this"), part.args.get("expression")
            pairs.append(sides if getattr(sides[0], "table", "") in left.tables else sides[::-1])
            if not isinstance(part, exp.EQ) or not all(isinstance(side, exp.Column) for side in sides):
                raise self.text.at(part, "ON takes equal columns: ON a.person_id = b.person_id; the rest goes to WHERE")
        names = [(self._key(left, one), self._key(right, other)) for one, other in pairs]
        if join.kind not in ("", "INNER") or not names or any(one != other for one, other in names):
            mend = "FROM a JOIN b USING (person_id); rename a column in a subquery"
            raise self.text.at(join, f"a join is by columns of one name, which are equal: {mend}")
        if {*left.tables} & {*right.tables}:
            raise self.text.at(join.this, "two tables have one name: name one apart, JOIN visits AS later")
        keys, people = [one for one, _ in names], left.rows is not None and right.rows is not None
        if people and sources_of([left.query.plan]) == sources_of([right.query.plan]):
            return self._joined_people(left, right, join, keys)
        one, other = left.flat(), right.flat()
        for key in keys:
            if key not in one.columns or key not in other.columns:
                raise self.text.at(join, f"`{key}` is in no record: declare the tables together, with wp.people")
            of = partial(field_named, name=key)
            if all(of(Variable(side.query.plan.type, 0, "record")).type.nullable for side in (one, other)):
                one = replace(one, query=one.query.where(_there(of)))  # SQL joins no null with another
        made = one.query.join(other.query, on=keys[0] if len(keys) == 1 else keys).read_as(JOIN_READING)
        return Relation(made, _merged(one, other, keys))

    def _joined_people(self, left: Relation, right: Relation, join: exp.Join, keys: list[str]) -> Relation:
        """The pairs of rows of each person."""
        first, second, row, person = left.rows, right.rows, right.row, left.person
        assert first is not None
        assert second is not None
        assert person is not None
        if keys != [person.column]:
            raise self.text.at(join, f"tables of people are joined by their id: USING ({person.column})")
        tables = _merged(left, right, [])
        own = {c.field: n for alias, table in right.tables.items() for n, c in tables[alias].items() if n in table}

        def pair(one: Expr, other: Expr) -> Expr:
            fields = {name: field_named(one, name) for name in left.columns}
            fields |= {name: field_named(other, each) for name, each in own.items()}
            return record(tuple(fields), tuple(fields.values()))

        def pairs(of: Expr, one: Expr) -> Expr:
            if row is not None:
                return pair(one, row(of))
            return apply("map", *over_elements("map", second(of), function(partial(pair, one))))

        def rows(of: Expr) -> Expr:
            made = apply("map", *over_elements("map", first(of), function(partial(pairs, of))))
            return made if row is not None else apply("flatten", made)

        query = left.query if row is None else left.query.where(_there(row))
        return Relation(query, tables, person, rows)

    def _key(self, side: Relation, node: exp.Expr) -> str:
        """The field of a column; of the id of people, its name."""
        assert isinstance(node, exp.Column)
        if side.person is not None and node.name == side.person.column and node.name not in side.columns:
            return str(node.name)
        return find_column(self.text, side.tables, node).field


JOIN_READING = "JOIN: the rows of a key share weight, so totals are weights and no counts"


def _there(of: Rows) -> Any:
    return function(lambda record: apply("not", apply("is_null", of(record))))


def _merged(left: Relation, right: Relation, keys: list[str]) -> Tables:
    """The columns of both sides; of the right, those that both have end in `_right`."""

    def shown(column: SqlColumn) -> SqlColumn:
        taken = column.field in left.columns and column.field not in keys
        return replace(column, field=f"{column.field}_right") if taken else column

    return {**left.tables, **{a: {n: shown(c) for n, c in table.items()} for a, table in right.tables.items()}}


def new_name(text: SqlText, item: exp.Expr, taken: Mapping[str, Any], default: str = "") -> str:
    """The name of a selected column, which no other has."""
    name = item.alias if isinstance(item, exp.Alias) else item.name if isinstance(item, exp.Column) else default
    if not (name.isidentifier() and name.isascii()) or name in taken or name in RESERVED or name in _WORDS_OF_TABLES:
        told = "is taken" if name in taken else "cannot name a column" if name else "has no name"
        raise text.at(item, f"this column {told}: name it with AS, in ASCII letters, digits and underscores")
    return str(name)
