"""GroupBy: every prefix of a group by falling weight, reduced.

Records of equal weight only ever count together, so a group is first reduced by weight: its rows are its distinct
weights, and a window over those, heaviest first, gives the prefixes. Counts, integer sums, minima and maxima of
a group are kept as such; for other reducers the records are, as lists, put in canonical order before the reducer
sees them. A group of one weight, known from the plan, needs no window.

Rounds one difference: halving is exact, but of the least float, whose half is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wpinq.columns.records import leaf_types
from wpinq.engines.sql import terms as t
from wpinq.engines.sql.blocks import Block, Relation, SqlTable, covered, determines_weight
from wpinq.engines.sql.dialect import Dialect
from wpinq.engines.sql.rules.lowering import canonical, lower, lower_with
from wpinq.engines.sql.script import Script, grouping, numbered
from wpinq.expr.nodes import Call, Lambda, Variable, walk
from wpinq.expr.types import INT
from wpinq.plan.operators import GroupBy

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


def group_by(operator: GroupBy, script: Script, given: Relation, output: Relation) -> Relation:
    """The prefixes of every group, reduced, each with half the step of weight after it."""
    given = script.once(given)
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
    one_weight = block.weight.kind == "literal" or determines_weight(block, key)
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
    if plain and len(counts) == len(kept) and covered(keyed, names) is not None:
        table = script.counts(keyed)  # which other steps may have made
    else:
        weight_from = key_columns if one_weight else None
        name = script.table(sql, read)
        table = SqlTable(name, tuple(columns), tuple(keys), weight_from, constant, (), one_weight)
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


def _aggregates(reduce: Lambda, block: Block, dialect: Dialect) -> dict[bytes, _ReducedTerm] | None:
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


def _projection(over: object, group: Variable, block: Block, dialect: Dialect) -> t.SqlTerm | None:
    """The term whose values are the elements of a list made from a group, one for each record."""
    if isinstance(over, Call) and over.name == "map" and over.arguments[0] == group:
        function_ = over.arguments[1]
        assert isinstance(function_, Lambda)
        bound = {group.level: t.parameter(_GROUP), function_.level: block.output}
        shape = lower_with(function_, bound, {}, dialect)
        return shape if isinstance(shape, t.SqlTerm) and not shape.parameters else None
    if over == group and isinstance(block.output, t.SqlTerm):
        return block.output
    return None
