"""Rewrites of weights that the plan knows: constants, norms of one record, equal weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from wpinq.engines.sql import blocks as b
from wpinq.engines.sql import terms as t
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

VALUES_LIMIT = 8
"""The most weights that stand side by side: that many sums take about as long as one more row of a group."""


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
