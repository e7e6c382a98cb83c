"""A plan to a program of statements."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from wpinq.engines.relational.block import Table
from wpinq.engines.relational.dialect import DUCKDB, Dialect
from wpinq.engines.relational.emit import Emitter, Unsupported
from wpinq.engines.relational.layout import leaf_types
from wpinq.engines.relational.operators import relation_of
from wpinq.engines.relational.program import (
    Program,
    Relation,
    Rewrites,
    Statement,
    column_names,
    has_lists,
    is_stored,
)
from wpinq.engines.relational.rewrites.equal_weights import Equal
from wpinq.engines.relational.rewrites.fuse import stays_query
from wpinq.engines.relational.scalar import ONE
from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.plan.certify import certify
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operators.source import Source


@dataclass(frozen=True, slots=True)
class Compiled:
    """What to run: statements in order, the query of the output, and the tables that sources must stand in.

    Attributes
    ----------
    sources : dict of str to str
        Source name to the name of its table.
    statements : tuple of Statement
        Each creates one table.
    query : str
        The output: its columns, then its weight, in canonical order where no column is a list and the dialect sorts.
    reads : tuple of str
        The tables that it reads.
    type : Type
        The type of the output's records.
    steps : tuple of (str, int)
        The operators in order, each with the number of statements that come before it.
    open : frozenset of str
        The tables, sources among them, whose weights the program takes as any: see `rewrites.equal_weights`.
    """

    sources: dict[str, str]
    statements: tuple[Statement, ...]
    query: str
    reads: tuple[str, ...]
    type: Type
    steps: tuple[tuple[str, int], ...]
    open: frozenset[str]


@lru_cache(maxsize=128)
def compile_plan(
    root: Node, rewrites: Rewrites | None = None, equal: Equal = frozenset(), dialect: Dialect = DUCKDB
) -> Compiled:
    """The program that evaluates a plan: a function of the plan, and of which tables have equal weights.

    Knowing that of a table changes no statement up to the one that makes it.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> print(compile_plan(numbers.where(lambda x: x < 5).plan).query)  # doctest: +NORMALIZE_WHITESPACE
    SELECT * FROM (SELECT a0."c0" AS c0, a0."w" AS w FROM source_numbers AS a0
    WHERE (a0."c0" < CAST(5 AS BIGINT))) WHERE w <> 0 ORDER BY c0 NULLS FIRST
    """
    program = Program(Emitter(dialect), rewrites or Rewrites(), equal=equal)
    try:
        return _compile(root, program)
    except Unsupported as gap:
        reason = f"{program.step}: {gap}"
    raise PlanError(reason)


compile_anew = compile_plan.__wrapped__
"""The same, remembered nowhere: a weight that was found in protected data must not outlive them."""


def _table(source: str) -> str:
    """The table of a source. A database may take names that differ in case for one, so other names are spelt in hex."""
    plain = source.isascii() and source == source.lower()
    return f"source_{source}" if plain else f"sourcex_{source.encode().hex()}"


def _compile(root: Node, program: Program) -> Compiled:
    above = {table for table, weight in program.equal if weight > 0}
    positive = frozenset(name for name in sources([root]) if _table(name) in above)
    certain = certify(root, positive).steps
    order = list(topological([root]))
    uses = Counter(child.digest for node in order for child in node.inputs)
    tables: dict[str, str] = {}
    steps: list[tuple[str, int]] = []
    relations: dict[bytes, Relation] = {}
    for node in order:
        program.step = node.operator.name
        steps.append((program.step, len(program.statements)))
        output = Relation((), node.type, certain[node.digest].mass, certain[node.digest].nonnegative)
        if isinstance(node.operator, Source):
            name = tables.setdefault(node.operator.source, _table(node.operator.source))
            relation = _source(program, node.operator, name, output)
        else:
            inputs = [relations[child.digest] for child in node.inputs]
            relation = relation_of(node.operator, program, inputs, output)
        if not program.rewrites.fuse or not stays_query(relation, uses[node.digest]):
            relation = program.stored(relation)
        relations[node.digest] = relation
    result = relations[root.digest]
    program.step = root.operator.name
    query, table = program.grouped(result)
    if result.unique:
        weights = result.blocks[0].weight
        if weights.kind != "literal" and not is_stored(result):
            query = f"SELECT * FROM ({query}) WHERE w <> 0"
    if program.emitter.dialect.sorts and not has_lists(result.type):
        keys = [f"{name} NULLS FIRST" for name in column_names(result.type)]
        if keys:
            query += f" ORDER BY {', '.join(keys)}"
    statements, left_open = tuple(program.statements), frozenset(program.open)
    return Compiled(tables, statements, query, table.reads, result.type, tuple(steps), left_open)


def _source(program: Program, operator: Source, name: str, output: Relation) -> Relation:
    names = column_names(operator.record)
    nullable = [null for _, null in leaf_types(operator.record)]
    weight = ONE if "unit_weights" in operator.facts else None
    table = Table(name, tuple(zip(names, nullable, strict=True)), (frozenset(names),), None, weight)
    table = program.observed(table)
    return Relation((program.scan(table, operator.record),), output.type, output.mass, output.nonnegative)
