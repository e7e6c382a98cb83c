"""Rewrites of sums: constant weights, counts, norms of one record, weights side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from wpinq.engines.sql import blocks as b, terms as t
from wpinq.engines.sql.script import Script, grouping


def read_equal_weights(script: Script, stored: b.StoredTable) -> b.StoredTable:
    """Read a stored dataset whose records all weigh the same as one of that constant weight.

    Before: `SELECT t.c0, t.w FROM t`. After: `SELECT t.c0, 0.5 FROM t`.

    An edge list that declares `unit_weights` and `simple` so has degrees that are functions of the vertex. Its paths
    need no sum. `symmetrize` and half-edges keep this: no record is in a simple list and in its reverse.

    Needs: `equal_weights` of the plan's properties, and a weight that a float can say; never the data. A program chosen
    by the content of a table would take more time, or memory, where one record is there.

    Weights: the constant is the exact weight. The stored one differs from it by no more than the error bound of the
    plan.
    """
    table, each = stored.table, stored.each
    if table.weight is not None or each is None or Fraction(float(each)) != each:
        return stored
    return replace(stored, table=replace(table, weight=t.number(float(each))))


def find_no_repeats(script: Script, relation: b.Relation) -> b.Relation:
    """Rows that weigh as much as each record weighs are one to a record, and are not added up.

    Before: `SELECT c0, c1, sum(w) FROM (SELECT c1, c0, 1.0 FROM e UNION ALL SELECT c0, c1, 1.0 FROM e) GROUP BY …`.
    After: `SELECT c1, c0, 1.0 FROM e UNION ALL SELECT c0, c1, 1.0 FROM e`.

    A list of edges that declares `unit_weights` and `simple` is symmetrised so.

    Needs: `equal_weights` of the plan's properties, a weight other than 0, and rows of just that constant weight.

    Weights: the rows of a record weigh together as much as one of them. So there is one, and the sum of one number is
    that number.
    """
    each = relation.each
    if not each or Fraction(float(each)) != each:
        return relation
    return replace(relation, repeats=any(block.weight != t.number(float(each)) for block in relation.blocks))


def read_own_norm(script: Script, total: b.Total) -> b.Total:
    """The norm of a join key with at most one record is the weight of that record.

    Before: `SELECT … a.w * b.w / (n.norm + m.norm) FROM a, b, norms_of_a AS n, norms_of_b AS m WHERE …`.
    After: `SELECT … a.w * b.w / (a.w + m.norm) FROM a, b, norms_of_b AS m WHERE …`.

    Needs: a key that holds a key of every table of the side, as the plan says.

    Weights: the sum of one number is that number, exactly. The table of norms would have rounded it up to the grid, so
    the error can only fall. The absolute value is left out where the plan says that no weight is negative.
    """
    if not total.absolute or not b.determines_row(total.block, total.grouped_by):
        return total
    weight = total.block.weight
    return replace(total, term=weight if total.nonnegative else t.call("absolute", weight))


def count_rows(script: Script, total: b.Total) -> b.Total:
    """Rows of one weight are counted instead of summed.

    Before: `CAST(sum(CAST(w * 2^96 AS HUGEINT)) AS DOUBLE) * 2^-96`. After: `CAST(count(*) AS DOUBLE) * min(w)`.

    Linear steps (Select, Where, Concat, the rows of a Join) pass their rows on without adding up equal records. So
    there is one such sum at the end, and not one at each step.

    Needs: a weight that is a constant, or a function of the columns that are grouped by. Keys and declared facts say
    so.

    Weights: the count is exact (below `2^53`, which no machine reaches). The product rounds once, by one roundoff of
    the sum: less than the grid of `sums` may take. A norm takes the absolute value of the common weight, which rounds
    nothing.
    """
    weight = total.block.weight
    if weight == t.ONE:
        return replace(total, sql=f"CAST({total.count} AS DOUBLE)")
    if weight.kind == "literal":
        common = weight.text
    elif b.determines_weight(total.block, total.grouped_by):
        common = "min(w)"
    else:
        return total
    return replace(total, sql=f"CAST({total.count} AS DOUBLE) * {f'abs({common})' if total.absolute else common}")


# Pairs of rows at a key, counted from the rows of each side.

#: The columns that some tables have of a key, by class of equal columns, in the order of the key.
_Key = Mapping[t.SqlTerm, t.SqlTerm]


def multiply_counts(script: Script, total: b.Total) -> b.Total:
    """The pairs of rows at a key are a product, less the pairs that an inequality leaves out.

    Before: `SELECT b.c0, count(*) FROM e AS a, e AS b WHERE a.c1 = b.c0 AND NOT a.c0 = b.c1 GROUP BY b.c0`.
    After: `SELECT k0, sum(n) FROM (SELECT m.k0, m.n * o.n AS n FROM ends AS m, starts AS o WHERE m.k0 = o.k0 UNION ALL
    SELECT k0, -n FROM returns) GROUP BY k0`. Here `ends` and `starts` count edges by `c1` and by `c0`, and `returns`
    counts `FROM e AS a, e AS b WHERE a.c1 = b.c0 AND a.c0 = b.c1` by `b.c0`. Where all three are one table, no sum is
    needed: the norm is `n * n - n` of the row that has the key.

    The norm of paths at their middle vertex is the case in point: `in(k) · out(k) − reciprocal(k)`. No path is listed.
    A loop is a row like others. Where every edge has its reverse, as the plan proves, `returns` is `starts`.

    Needs: rows of one weight at each key, a constant or a function of the key (`late_aggregation`), as `unit_weights`
    gives them. Two tables, beside lookups at the key. Conditions on rows of one table, equalities of the key, and at
    most one condition on rows of both: an inequality, with no more pairs than rows where it is an equality.

    Weights: at a key every row of one side meets every row of the other, and the pairs that satisfy a condition are
    those that do not satisfy its negation. So the number is that of the rows that were counted, and its product with
    the weight is the same float. A number from `2^53` on, which counting one by one never reached, is rounded to a
    float first. Both roundoffs are within the two that a norm may take. A sum may take one: only norms are counted so.
    """
    block, find = total.block, b.classes(total.block)
    core = [item for item in block.tables if not item[1].lookup]
    lookups = [item for item in block.tables if item[1].lookup]
    if total.term is not None or total.sql is None or not total.absolute or len(core) != 2 or not b.grows(block):
        return total
    key = [find(leaf) for leaf in t.leaves(total.grouped_by)]
    columns = [{find(term): term for term in table.at(alias)} for alias, table in core]
    one, other = ({each: held[each] for each in key if each in held} for held in columns)
    if not key or len({*key}) < len(key) or {*key} != {*one, *other} or any(table.reads for _, table in core):
        return total
    (left, of_left), (right, of_right) = _part(block, core[:1], one), _part(block, core[1:], other)
    rest, of_rest = _part(block, lookups, dict.fromkeys(key, t.TRUE))  # which is as good as any value of the key
    across = [part for part in t.conjuncts(block.condition) if part not in of_left | of_right | of_rest]
    said = [left.condition, right.condition, *_equal(one, other), *map(t.negated, across)]
    shape = t.RecordShape(None, tuple(one[each] if each in one else other[each] for each in key))
    met = b.Block(tuple(core), t.both(said), shape, t.ONE)
    by_key = {term.scope for term in t.columns(rest.weight)} <= {alias for alias, _ in lookups}
    if not by_key or len({*across}) > 1 or any(p.text != "not" or p.nullable or b.grows(met) for p in across):
        return total
    counts = [(script.alias(), script.counts(side)) for side in (left, right)]
    if len(one) == len(other) == len(key) and counts[0][1] == counts[1][1] and (not across or _turned(met)):
        n = t.column(script.alias(), "n", False)
        block = b.looked_up(block, n.scope, counts[0][1], t.leaves(total.grouped_by))
        number, weight = t.call("int_multiply", n, n), t.call("absolute", block.weight)
        number = t.call("int_subtract", number, n) if across else number
        return replace(total, block=block, term=t.times(t.call("from_grid", number), weight))
    by_side = zip((one, other), counts, strict=True)
    one, other = (dict(zip(side, n.at(alias), strict=False)) for side, (alias, n) in by_side)
    pairs, _ = _part(block, [*counts, *lookups], {each: one[each] if each in one else other[each] for each in key})
    pairs = replace(pairs, condition=t.both([pairs.condition, *_equal(one, other)]))
    rows = [(pairs, t.call("int_multiply", *(t.column(alias, "n", False) for alias, _ in counts)))]
    if across:
        alias, less = script.alias(), script.counts(met)
        left_out, _ = _part(block, [(alias, less), *lookups], dict(zip(key, less.at(alias), strict=False)))
        rows.append((left_out, t.call("negate_weight", t.column(alias, "n", False))))
    return replace(total, rows=tuple(rows), sql="CAST(sum(n) AS DOUBLE) * abs(min(w))")


def _part(block: b.Block, tables: Sequence[tuple[str, b.SqlTable]], key: _Key) -> tuple[b.Block, set[t.SqlTerm]]:
    """The conditions of a block on some tables alone, and which of its conditions they are.

    Columns of the key are read from these tables where the block reads equal ones of others.
    """
    find, scopes = b.classes(block), {alias for alias, _ in tables}
    read = t.substitute(lambda term: None if term.scope in scopes else key.get(find(term)))
    images = {part: read(part) for part in t.conjuncts(block.condition)}
    said = {part for part, image in images.items() if {term.scope for term in t.columns(image)} <= scopes}
    own = t.both(dict.fromkeys(images[part] for part in images if part in said and not b.trivial(images[part])))
    return b.Block(tuple(tables), own, t.RecordShape(None, tuple(key.values())), read(block.weight)), said


def _equal(one: _Key, other: _Key) -> list[t.SqlTerm]:
    """The conditions that two sides have the same key."""
    return [t.same(column, other[each]) for each, column in one.items() if each in other]


def _turned(block: b.Block) -> bool:
    """Whether the pairs of a block are the rows of a mirrored table, each with its reverse."""
    (one, table), (other, twin) = block.tables
    crossed = {frozenset(pair) for pair in zip(table.at(one), twin.at(other)[::-1], strict=False)}
    said = [frozenset(part.arguments if b.links(part) else ()) for part in t.conjuncts(block.condition)]
    return table == twin and table.mirrored and len(crossed) == 2 and {*said} == crossed


# Rows that differ in a column of few values become one row, with a weight for each value.
#
# A node of degree d has up to as many degree tags as there are limits, and a join with them makes each wedge at the
# node as many rows, grouped by pair and tag: 90 million rows where there are 20 million wedges. Where the column, the
# piece of a Shave, takes no values but 0, 1, …, n − 1 whatever the data are, the weights of all pieces of a record can
# stand side by side in one row instead, 0 where it has no such piece. The join then makes one row for all of them, n
# sums are taken by what is left of the record, and each sum becomes a row again.
#
# Needs: such a column, n at most 8, that is one column of the output and stands nowhere else: not in a condition,
# another
# column or the weight. Of its table nothing may be used but the column, its weight, and the rest of its key. So that it
# pays: a join that grows, and a weight that is a function of the rest of that key and of the piece, for then
# `fold_lookups` computes the n weights once a key, numbers on the grid, and a row just reads them.
#
# Weights: a row of (x, i) had a weight made by a term from some numbers. The same term of the same numbers, rounded to
# the same grid, stands in column i now, or the integer 0 where there was no row. So each sum is of the same integers,
# and
# has the bits that it had; where all were 0 there is no row, as before. Zeros are on the grid, so that the error bound
# of `sums` counts the contributions that it counted.
#
# Before: `SELECT x, i, sum(w) FROM wedges JOIN pieces GROUP BY x, i`.
# After: `SELECT x, unnest(range(n)), unnest([w0, …]) FROM (SELECT x, sum(w0), … FROM wedges JOIN nodes GROUP BY x)`.

#: The most weights that stand side by side: that many sums take about as long as one more row of a group.
VALUES_LIMIT = 8


def put_side_by_side(script: Script, rows: b.SideBySide) -> b.SideBySide:
    """Put the weights of one column's values side by side, where there is such a column."""
    if len(rows.blocks) > 1 or not b.grows(rows.blocks[0]):
        return rows
    for place, alias, table, count in _places(rows.blocks[0], rows.weights[0]):
        return _put(script, rows, place, (alias, table), count)
    return rows


def _places(block: b.Block, weights: tuple[t.SqlTerm, ...]) -> Iterator[tuple[int, str, b.SqlTable, int]]:
    """The output columns of few values that may go: place, alias, table, and number of values."""
    terms = list(t.leaves(block.output))
    for place, term in enumerate(terms):
        for alias, table in block.tables:
            count = dict(table.few).get(term.text) if term.kind == "column" and term.scope == alias else None
            if count is None or count > VALUES_LIMIT:
                continue
            rest = [held for held in table.at(alias) if held != term]
            others = t.columns(*terms[:place], *terms[place + 1 :], block.condition, *weights)
            one_key = any(key == {name for name, _ in table.columns} for key in table.keys)
            known, _ = b.closure(block, rest)
            if one_key and term not in others and t.columns(*weights) <= {*known, t.column(alias, "w", False)}:
                yield place, alias, table, count


def _put(script: Script, rows: b.SideBySide, place: int, of: tuple[str, b.SqlTable], count: int) -> b.SideBySide:
    (block,), (alias, table) = rows.blocks, of
    terms = list(t.leaves(block.output))
    value = terms.pop(place).text
    side, held = script.alias(), _pieces(script, table, value, count)
    read = t.renamed({alias: side})
    (added,), weights = rows.weights, list[tuple[t.SqlTerm, ...]]()
    for name, _ in held.columns[-count:]:
        own = t.substitute({t.column(side, "w", False): t.column(side, name, False)}.get)
        missing = t.call("is_null", t.column(side, name, True))
        weights.append(tuple(t.call("where", missing, t.number(0.0), own(read(weight))) for weight in added))
    shape = t.RecordShape(None, tuple(map(read, terms)))
    tables = tuple((side, held) if other == alias else (other, kept) for other, kept in block.tables)
    values = tuple(t.literal(f"CAST({i} AS BIGINT)") for i in range(count))
    block = b.Block(tables, read(block.condition), shape, weights[0][0])
    return b.SideBySide((block,), tuple(weights), place, values)


def _pieces(script: Script, table: b.SqlTable, value: str, count: int) -> b.SqlTable:
    """The table with one row for all values of one column, beside the other columns.

    It has the weight at each value, null where there is none.
    """
    quote = script.emitter.dialect.quote
    keys = [(name, nullable) for name, nullable in table.columns if name != value]
    weights = [f"w{i}" for i in range(count)]
    shown = [quote(name) for name, _ in keys]
    chosen = [f"max(w) FILTER (WHERE {quote(value)} = {i}) AS {name}" for i, name in enumerate(weights)]
    sql = f"SELECT {', '.join([*shown, *chosen])} FROM {table.source}{grouping(shown)}"
    name = script.table(sql, table.reads or (table.source,))
    listed = (*keys, *((weight, True) for weight in weights))
    return b.SqlTable(name, listed, (frozenset(name for name, _ in keys),), lookup=True)


def scan_once(script: Script, rows: b.SideBySide) -> b.SideBySide:
    """Rows of blocks that differ in one constant become one row, with a weight for each value.

    Before: `SELECT c0, c1, sum(w) FROM (SELECT c0, 'sum' AS c1, w0 AS w FROM s UNION ALL SELECT c0, 'count', w1 FROM s)
    GROUP BY c0, c1`.
    After: `SELECT c0, unnest(['sum', 'count']), unnest([w0, w1]) FROM (SELECT c0, sum(w0), sum(w1) FROM s GROUP BY
    c0)`.

    A mean reads its sum and its count so in one scan, and groups by the key alone.

    Needs: blocks over the same tables, of one condition; records that differ in one column, where each block has a
    constant of its own.

    Weights: each sum is of the same integers on the grid (`sums`), in another order. So all bits stay, and the error
    bound. A sum of 0, or of nothing but nulls, is no record, as before.
    """
    columns = [*zip(*(t.leaves(block.output) for block in rows.blocks), strict=True)]
    places = [place for place, column in enumerate(columns) if len({*column}) > 1]
    alike = {(block.tables, block.condition) for block in rows.blocks}
    if len(alike) > 1 or len(places) != 1 or any(len(weights) > 1 for weights in rows.weights):
        return rows
    values = columns[places[0]]
    if not len({*values}) == len(values) <= VALUES_LIMIT or any(value.kind != "literal" for value in values):
        return rows
    ((tables, condition),) = alike
    kept = tuple(column[0] for place, column in enumerate(columns) if place not in places)
    block = b.Block(tables, condition, t.RecordShape(None, kept), rows.blocks[0].weight)
    return b.SideBySide((block,), rows.weights, places[0], values)
