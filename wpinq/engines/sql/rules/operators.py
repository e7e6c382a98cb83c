"""One rule per operator: from the relations of the inputs to that of the output.

Rounding. Each rule rounds as said at it, and `sums` once where equal records are added up. That happens when a dataset
whose records may repeat is stored. Such a dataset has blocks above the last stored one that merge (Select, SelectMany,
Concat, Except, Intersect, GroupBy, Join), perhaps under a Where or a Partition, and `Operator.rounding_units` allows
one sum to each of those; Where, Partition, Union and Shave keep a dataset free of repeats as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

from wpinq.engines.sql import blocks as b
from wpinq.engines.sql import sums
from wpinq.engines.sql import terms as t
from wpinq.engines.sql.dialect import Unsupported
from wpinq.engines.sql.rules.group_by import group_by
from wpinq.engines.sql.rules.lowering import lower
from wpinq.engines.sql.rules.select_many import select_many
from wpinq.engines.sql.rules.shave import shave_constant, shave_varying
from wpinq.engines.sql.script import Script, grouping, numbered, together
from wpinq.expr.nodes import Lambda
from wpinq.plan import operators as ops
from wpinq.plan.operator import Operator
from wpinq.plan.operators.merging import Combination

TABLES_LIMIT = 6
"""The most tables, lookups aside, that a side of a join may read; beyond it the side is stored first."""


@singledispatch
def relation_of(operator: Operator, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """The relation of an operator's output.

    `output` carries the output's type, mass and sign, and no blocks.
    """
    raise Unsupported("the operator has no rule in SQL")


def _mapped(relation: b.Relation, output: b.Relation, change: Callable[[b.Block], b.Block]) -> b.Relation:
    blocks, partial = tuple(change(block) for block in relation.blocks), relation.partial
    if partial is not None:
        partial = replace(partial, of=blocks, block=change(partial.block))
    return replace(output, blocks=blocks, partial=partial)


@relation_of.register
def _(operator: ops.Select, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """Rounds nothing by itself: sums do, wherever they are taken."""
    return _mapped(inputs[0], output, lambda each: replace(each, output=lower(script, operator.function, each.output)))


@relation_of.register
def _(operator: ops.Where, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """Rounds nothing."""
    return _mapped(
        inputs[0], output, lambda block: b.restricted(block, t.as_term(lower(script, operator.predicate, block.output)))
    )


@relation_of.register
def _(operator: ops.Partition, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """Rounds nothing."""
    part_type, key_type = operator.part.type, operator.key.type
    constant = lower(script, Lambda(part_type, 0, (), operator.part))
    common = t.merged(key_type, part_type)

    def change(block: b.Block) -> b.Block:
        key = t.coerce(lower(script, operator.key, block.output), key_type, common)
        return b.restricted(block, t.same_value(key, t.coerce(constant, part_type, common)))

    return _mapped(inputs[0], output, change)


@relation_of.register
def _(operator: ops.SelectMany, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    return select_many(operator, script, inputs[0], output)


@relation_of.register
def _(operator: ops.GroupBy, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    return group_by(operator, script, inputs[0], output)


@relation_of.register
def _(operator: ops.Shave, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    if isinstance(operator.widths, Lambda):
        return shave_varying(operator, operator.widths, script, inputs[0], output)
    return shave_constant(operator, operator.widths, script, inputs[0], output)


# --- two inputs -----------------------------------------------------------------------------------------------------


@relation_of.register(ops.Concat)
@relation_of.register(ops.Except)
def _(operator: Combination, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """Rounds nothing by itself: a sum of two relations is their blocks together.

    Signs are exact.
    """
    blocks = list[b.Block]()
    for relation, coefficient in zip(inputs, operator.coefficients, strict=True):
        if coefficient == 1 and t.same_layout(relation.type, output.type):
            blocks += relation.blocks  # as they are: a chain of Concats goes through each of its inputs once
            continue
        for block in relation.blocks:
            weight = block.weight if coefficient == 1 else t.call("negate_weight", block.weight)
            shape = t.coerce(block.output, relation.type, output.type)
            blocks.append(replace(block, output=shape, weight=weight))
    return replace(output, blocks=tuple(blocks))


@relation_of.register(ops.Union)
@relation_of.register(ops.Intersect)
def _(operator: ops.Union | ops.Intersect, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """Rounds nothing: a maximum and a minimum are one of their arguments."""
    if isinstance(operator, ops.Intersect):
        found = script.rewritten(b.Minimum(tuple(inputs), output)).relation
        if found is not None:
            return found
    sides = []
    for side, relation in enumerate(inputs):
        once = script.once(relation)
        block = script.single(once)
        shape = t.aligned(t.coerce(block.output, relation.type, output.type), output.type)
        rows, read = script.rows(replace(block, output=shape))
        sides.append((f"SELECT *, {side} AS side FROM ({rows})", read))
    choose = "greatest" if isinstance(operator, ops.Union) else "least"
    of = [f"coalesce(max(w) FILTER (WHERE side = {side}), CAST(0 AS DOUBLE))" for side in (0, 1)]
    columns = b.column_list(output.type)
    names = [name for name, _ in columns]
    both_sides = " UNION ALL ".join(sql for sql, _ in sides)
    sql = f"SELECT {', '.join([*names, f'{choose}({of[0]}, {of[1]}) AS w'])} FROM ({both_sides}){grouping(names)}"
    name = script.table(f"SELECT * FROM ({sql}) WHERE w <> 0", [table for _, read in sides for table in read])
    table = script.rewritten(b.StoredTable(b.SqlTable(name, columns, (frozenset(names),)), output.each)).table
    return replace(output, blocks=(script.scan(table, output.type),))


@relation_of.register
def _(operator: ops.Join, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """Rounds by 6 u relative, and once more for `sums.norm_sql`.

    The 6 u are for a product, a quotient, a sum of two norms, and their three roundings.
    """
    sides: list[b.Block] = []
    keys: list[t.Shape] = []
    norms: list[t.SqlTerm] = []
    common = t.merged(operator.left_key.type, operator.right_key.type)
    for relation, function in zip(inputs, (operator.left_key, operator.right_key), strict=True):
        if not relation.linear:
            relation = script.stored(relation)
        block = script.single(relation)
        if sum(not table.lookup for _, table in block.tables) > TABLES_LIMIT:
            relation = script.stored(relation)
            block = script.single(relation)
        key = t.coerce(lower(script, function, block.output), function.type, common)
        block, norm = _norm(script, relation, block, key, output.mass)
        sides.append(block)
        keys.append(key)
        norms.append(norm)
    left, right = sides
    weight = t.call("divide_weights", t.times(left.weight, right.weight), t.call("float_add", *norms))
    joined = b.Block(
        left.tables + right.tables,
        t.both([left.condition, right.condition, t.same_value(*keys)]),
        lower(script, operator.result, left.output, right.output),
        weight,
    )
    return replace(output, blocks=(script.rewritten(joined),))


def _norm(
    script: Script, relation: b.Relation, block: b.Block, key: t.Shape, mass: Fraction
) -> tuple[b.Block, t.SqlTerm]:
    """A side with, in each of its rows, the norm of its records with the same key, as a term.

    It comes from a table of norms by key, made from the side as it is, whatever filters the join is under.
    """
    terms = list(t.leaves(key))
    shown = replace(block, output=t.RecordShape(None, tuple(terms)))
    names = numbered("c", terms)
    total, covers = script.rewritten(b.Total(shown, shown.output, True, relation.nonnegative)), b.covered(shown, names)
    if total.term is not None:
        return block, total.term
    if total.sql is not None and shown.weight == t.ONE and covers is not None:
        norms = script.counts(shown)
    else:
        norm = total.sql or sums.norm_sql("w", relation.mass, mass, script.emitter.dialect)
        queries = [
            script.select(each, [*t.leaves(each.output), number, each.weight], [*names, "n", "w"])
            for each, number in total.rows
        ]
        rows, read = together(queries or [script.rows(shown)])
        name = script.table(f"SELECT {', '.join([*names, f'{norm} AS w'])} FROM ({rows}){grouping(names)}", read)
        listed = tuple((n, term.nullable) for n, term in zip(names, terms, strict=True))
        norms = b.SqlTable(name, listed, (frozenset(names),), lookup=True, covers=covers)
    alias = script.alias()
    return b.looked_up(block, alias, norms, terms), norms.weight_at(alias)
