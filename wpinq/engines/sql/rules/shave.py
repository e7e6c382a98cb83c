"""Shave: a heavy record cut into numbered pieces.

Of one width s: `w % s` is exact, so every piece is exact: nothing is rounded. Of widths per record: on the grid of
`sums`, lowered so that a running total of as many widths as the plan allows does not overflow, remainders are
integers; a piece that is a whole width is that width, another is off by two steps of the grid at most.
"""

from __future__ import annotations

import math
from dataclasses import replace

from wpinq.columns.records import column_names
from wpinq.engines.sql import sums
from wpinq.engines.sql import terms as t
from wpinq.engines.sql.blocks import Block, Relation, column_list, derived, output_keys
from wpinq.engines.sql.rules.lowering import lower
from wpinq.engines.sql.script import Script
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import FLOAT, ListOf
from wpinq.plan.operators import Shave


def shave_constant(operator: Shave, width: float, script: Script, given: Relation, output: Relation) -> Relation:
    """Pieces of one width, and the rest."""
    dialect = script.emitter.dialect
    block, names, keys = _rows(script, given)
    s = f"CAST({width!r} AS DOUBLE)"
    block = replace(block, output=t.aligned(block.output, given.type))
    inner, read = script.rows(block)
    cut = f"SELECT {', '.join([*names, f'w % {s} AS rest', 'w'])} FROM ({inner}) WHERE w > 0"
    whole = f"CAST(round((w - rest) / {s}) AS BIGINT)"
    pieces = "whole + CAST(rest > 0 AS BIGINT)"
    if operator.bound is not None:
        whole = f"CAST(least(round((w - rest) / {s}), {operator.bound}) AS BIGINT)"
        pieces = f"least({pieces}, {operator.bound})"
    counted = f"SELECT {', '.join([*names, 'rest', f'{whole} AS whole'])} FROM ({cut})"
    numbers = dialect.unnest({"i": dialect.write("numbers_below", pieces)})
    spread = f"SELECT {', '.join([*names, 'rest', 'whole', numbers])} FROM ({counted})"
    weighed = f"SELECT {', '.join([*names, 'i', f'CASE WHEN i < whole THEN {s} ELSE rest END AS w'])} FROM "
    one = f"{weighed}(SELECT *, ", f" AS i FROM ({counted})) WHERE i < {pieces}"
    return _result(
        operator, script, given, output, read, f"{weighed}({spread})", keys, _constant_piece(block, width), one, block
    )


def shave_varying(operator: Shave, widths: Lambda, script: Script, given: Relation, output: Relation) -> Relation:
    """Pieces of the widths that a function gives, as long as there is weight."""
    dialect = script.emitter.dialect
    block, names, keys = _rows(script, given)
    widths = operator.bounded_function(widths)
    type_ = widths.type
    assert isinstance(type_, ListOf)
    assert operator.bound is not None
    items = t.as_term(lower(script, widths, block.output))
    if type_.element != FLOAT:
        items = t.call("cast:DOUBLE[]", items)
    items = t.call("first", items, t.literal(str(operator.bound)))
    power = sums.exponent(given.mass) - operator.bound.bit_length() - 1
    grid, back = sums.power_of_two(power), sums.power_of_two(-power)
    shown = replace(block, output=t.aligned(block.output, given.type))
    inner, read = script.select(shown, [*t.leaves(shown.output), items, shown.weight], [*names, "widths", "w"])
    listed = ", ".join(names)
    first = f"{listed}, " if listed else ""
    numbers = dialect.write("numbers_below", dialect.write("list_length", "widths"))
    spread = f"SELECT {first}w, {dialect.unnest({'s': 'widths', 'i': numbers})} FROM ({inner}) WHERE w > 0"
    on_grid = (
        f"SELECT *, {dialect.write('to_grid', f'w * {grid}')} AS total, "
        f"CASE WHEN s > 0 THEN {dialect.write('to_grid', f'least(s, w) * {grid}')} ELSE 0 END AS step FROM ({spread})"
    )
    part = f"PARTITION BY {listed} " if listed else ""
    running = (
        f"SELECT *, total - coalesce(sum(step) OVER ({part}ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND "
        f"1 PRECEDING), 0) AS remaining FROM ({on_grid})"
    )
    rest = f"{dialect.write('from_grid', 'remaining')} * {back}"
    piece = f"CASE WHEN step < remaining THEN s ELSE {rest} END AS w"
    sql = f"SELECT {first}i, {piece} FROM ({running}) WHERE s > 0 AND remaining > 0"
    return _result(operator, script, given, output, read, sql, keys, None)


def _rows(script: Script, given: Relation) -> tuple[Block, list[str], tuple[frozenset[str], ...]]:
    given = script.once(given)
    block = script.single(given)
    names = column_names(given.type)
    keys = output_keys(replace(block, output=t.aligned(block.output, given.type)), names) or (frozenset(names),)
    return block, names, keys


def _result(
    operator: Shave,
    script: Script,
    given: Relation,
    output: Relation,
    read: tuple[str, ...],
    sql: str,
    keys: tuple[frozenset[str], ...],
    weight: t.SqlTerm | None,
    piece: tuple[str, str] | None = None,
    cut: Block | None = None,
) -> Relation:
    table = derived(sql, [*column_list(given.type), ("i", False)], read, tuple(key | {"i"} for key in keys))
    few = () if operator.bound is None else (("i", operator.bound),)
    block = script.scan(replace(table, weight=weight, few=few, piece=piece, cut=cut))
    terms = t.leaves(block.output)
    shape = t.RecordShape(None, (t.shape_of(given.type, terms), next(terms)))
    return replace(output, blocks=(replace(block, output=shape),))


def _constant_piece(block: Block, width: float) -> t.SqlTerm | None:
    """The weight of every piece, where all records weigh one multiple of the width by the plan."""
    if block.weight.kind != "literal":
        return None
    weight = t.number_value(block.weight)
    return t.number(width) if math.fmod(weight, width) == 0 else None
