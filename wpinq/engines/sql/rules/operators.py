"""One rule per operator: from the relations of the inputs to that of the output.

Rounding. Each rule rounds as said at it, and `sums` once where equal records are added up. That happens when a dataset
whose records may repeat is stored. Such a dataset has blocks above the last stored one that merge (Select, SelectMany,
Concat, Except, Intersect, GroupBy, Join), perhaps under a Where or a Partition, and `Operator.rounding_units` allows
one sum to each of those; Where, Partition, Union and Shave keep a dataset free of repeats as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch

from wpinq.columns.records import leaf_types
from wpinq.engines.sql import blocks as b, sums, terms as t
from wpinq.engines.sql.dialect import Dialect, Unsupported
from wpinq.engines.sql.rules.lowering import canonical, lower, lower_with
from wpinq.engines.sql.rules.unnest import select_many, shave
from wpinq.engines.sql.script import Script, grouping, numbered, together
from wpinq.expr.nodes import Call, Lambda, Variable, walk
from wpinq.expr.types import INT
from wpinq.plan import operators as ops
from wpinq.plan.operator import Operator
from wpinq.plan.operators.families import Combination

#: The most tables, lookups aside, that a side of a join may read; beyond it the side is stored first.
TABLES_LIMIT = 6


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
def _(operator: ops.Shave, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    return shave(operator, script, inputs[0], output)


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
    norm = t.call("greatest", t.call("float_add", *norms), t.number(1e-300))
    weight = t.call("quotient", t.times(left.weight, right.weight), norm)
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
        return replace(total.block, output=block.output), total.term
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


# --- groups -----------------------------------------------------------------------------------------------------------

_GROUP = "g"


@dataclass(frozen=True, slots=True)
class _ReducedTerm:
    """One number or value kept of a group.

    `first` takes it over rows, and `then` over the distinct weights of a prefix.
    """

    first: str
    then: str
    term: t.SqlTerm | None
    finish: str


@relation_of.register
def _(operator: ops.GroupBy, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """The prefixes of every group, reduced, each with half the step of weight after it.

    Records of equal weight only ever count together, so a group is first reduced by weight: its rows are its distinct
    weights, and a window over those, heaviest first, gives the prefixes. Counts, integer sums, minima and maxima of a
    group are kept as such; for other reducers the records are, as lists, put in canonical order before the reducer sees
    them. A group of one weight, known from the plan, needs no window.

    Rounds one difference: halving is exact, but of the least float, whose half is dropped.
    """
    given = script.once(inputs[0])
    block = script.single(given)
    dialect = script.emitter.dialect
    key = t.aligned(lower(script, operator.key, block.output), operator.key.type)
    found = _aggregates(operator.reduce, block, dialect)
    if found is None:
        first, then, finish = (dialect.template(name) for name in ("collect", "collect_all", "collected"))
        kept = [_ReducedTerm(first, then, t.pack(t.aligned(block.output, given.type)), finish)]
    else:
        kept = list(found.values())
    terms = list(t.leaves(key))
    names = numbered("k", terms)
    arguments = {f"x{i}": item.term for i, item in enumerate(kept) if item.term is not None}
    inner, read = script.select(block, [*terms, *arguments.values(), block.weight], [*names, *arguments, "w"])
    if not given.nonnegative:
        inner = f"SELECT * FROM ({inner}) WHERE w > 0"
    one_weight = block.weight.kind == "literal" or b.determines_weight(block, key)
    firsts = [f"{item.first.format(f'x{i}')} AS y{i}" for i, item in enumerate(kept)]
    if one_weight:
        weight = block.weight.text if block.weight.kind == "literal" else "min(w)"
        sql = f"SELECT {', '.join([*names, *firsts, f'{weight} / 2 AS w'])} FROM ({inner}){grouping(names)}"
    else:
        groups = f"SELECT {', '.join([*names, *firsts, 'w'])} FROM ({inner}) GROUP BY {', '.join([*names, 'w'])}"
        by = f"PARTITION BY {', '.join(names)} " if names else ""
        prefix = [f"{item.then.format(f'y{i}')} AS y{i}" for i, item in enumerate(kept)]
        step = "(w - coalesce(lead(w) OVER o, 0)) / 2 AS w"
        windows = f"WINDOW o AS ({by}ORDER BY w DESC), p AS ({by}ORDER BY w DESC ROWS UNBOUNDED PRECEDING)"
        sql = f"SELECT {', '.join([*names, *prefix, step])} FROM ({groups}) {windows}"
    finished = [f"{item.finish.format(f'y{i}')} AS y{i}" for i, item in enumerate(kept)]
    sql = f"SELECT {', '.join([*names, *finished, 'w'])} FROM ({sql})"
    if block.weight.kind != "literal":
        sql += " WHERE w > 0"  # half of the least float is none
    counts = [f"y{i}" for i, item in enumerate(kept) if item.first == "count(*)"]
    key_columns = frozenset(names)
    keys = [key_columns] if one_weight else [key_columns | {count} for count in counts[:1]]
    columns = [(name, null) for name, (_, null) in zip(names, leaf_types(operator.key.type), strict=True)]
    columns += [(name, name not in counts) for name in numbered("y", kept)]
    constant = t.number(t.number_value(block.weight) / 2) if block.weight.kind == "literal" else None
    keyed, plain = replace(block, output=t.RecordShape(None, tuple(terms))), given.nonnegative and constant is not None
    if plain and len(counts) == len(kept) and b.covered(keyed, names) is not None:
        table = script.counts(keyed)  # which other steps may have made
    else:
        weight_from = key_columns if one_weight else None
        name = script.table(sql, read)
        table = b.SqlTable(name, tuple(columns), tuple(keys), weight_from, constant, (), one_weight)
    scan = script.scan(table)
    scan = scan if constant is None else replace(scan, weight=constant)
    held = iter(t.leaves(scan.output))
    key_shape, ys = t.shape_of(operator.key.type, held), list(held)
    if found is None:
        value = lower(script, operator.reduce, canonical(ys[0], given.type))
    else:
        value = lower_with(operator.reduce.core, {0: t.parameter(_GROUP)}, dict(zip(found, ys, strict=True)), dialect)
    result = replace(scan, output=t.RecordShape(None, (key_shape, value)))
    return replace(output, blocks=(result,))


def _aggregates(reduce: Lambda, block: b.Block, dialect: Dialect) -> dict[bytes, _ReducedTerm] | None:
    """The aggregates of a group for the reducer, by digest of expression; None: the records."""
    core = reduce.core
    found: dict[bytes, _ReducedTerm] = {}
    for node in walk(core.body):
        if not isinstance(node, Call) or not node.arguments:
            continue
        over = node.arguments[0]
        if node.name == "length" and over == core.parameters[0]:
            found[node.digest] = _ReducedTerm("count(*)", "sum({0}) OVER p", None, "CAST({0} AS BIGINT)")
        elif node.name in ("sum_list", "min_list", "max_list"):
            term = _projection(over, core.parameters[0], block, dialect)
            if term is None or (node.name == "sum_list" and node.type != INT):
                continue
            name = node.name[:3]
            finish = "TRY_CAST(coalesce({0}, 0) AS BIGINT)" if name == "sum" else "{0}"
            first = dialect.template("sum_of_ints") if name == "sum" else f"{name}({{0}})"
            found[node.digest] = _ReducedTerm(first, f"{name}({{0}}) OVER p", term, finish)
    body = lower_with(core, {0: t.parameter(_GROUP)}, {digest: t.literal("0") for digest in found}, dialect)
    return None if any(_GROUP in leaf.parameters for leaf in t.leaves(body)) else found


def _projection(over: object, group: Variable, block: b.Block, dialect: Dialect) -> t.SqlTerm | None:
    """The term whose values are the elements of a list made from a group, one for each record."""
    if isinstance(over, Call) and over.name == "map" and over.arguments[0] == group:
        function_ = over.arguments[1]
        assert isinstance(function_, Lambda)
        bound = {group.level: t.parameter(_GROUP), function_.level: block.output}
        shape = lower_with(function_, bound, {}, dialect)
        return shape if isinstance(shape, t.SqlTerm) and not shape.parameters else None
    return block.output if over == group and isinstance(block.output, t.SqlTerm) else None
