"""A plan to a program of statements."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from wpinq.engines.relational.block import Table, grows
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
from wpinq.engines.relational.scalar import ONE
from wpinq.expr.types import Type
from wpinq.plan.analysis import masses
from wpinq.plan.facts import nonnegative
from wpinq.plan.node import Node, topological
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
        The output: its columns, then its weight, in canonical order where no column is a list.
    reads : tuple of str
        The tables that it reads.
    type : Type
        The type of the output's records.
    steps : tuple of (str, int)
        The operators in order, each with the number of statements that come before it.
    """

    sources: dict[str, str]
    statements: tuple[Statement, ...]
    query: str
    reads: tuple[str, ...]
    type: Type
    steps: tuple[tuple[str, int], ...]


@lru_cache(maxsize=128)
def compile_plan(root: Node, rewrites: Rewrites | None = None) -> Compiled:
    """The program that evaluates a plan. A function of the plan alone.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> print(compile_plan(numbers.where(lambda x: x < 5).plan).query)  # doctest: +NORMALIZE_WHITESPACE
    SELECT * FROM (SELECT a0."c0" AS c0, a0."w" AS w FROM source_numbers AS a0
    WHERE (a0."c0" < CAST(5 AS BIGINT))) WHERE w <> 0 ORDER BY c0 NULLS FIRST
    """
    program = Program(rewrites=rewrites or Rewrites())
    bounds, signs = masses(root), nonnegative(root)
    order = list(topological([root]))
    uses = Counter(child.digest for node in order for child in node.inputs)
    tables: dict[str, str] = {}
    steps: list[tuple[str, int]] = []
    relations: dict[bytes, Relation] = {}
    for node in order:
        program.step = node.operator.name
        steps.append((program.step, len(program.statements)))
        output = Relation((), node.type, bounds[node.digest], signs[node.digest])
        if isinstance(node.operator, Source):
            name = tables.setdefault(node.operator.source, f"source_{node.operator.source}")
            relation = _source(program, node.operator, name, output)
        else:
            inputs = [relations[child.digest] for child in node.inputs]
            relation = relation_of(node.operator, program, inputs, output)
        if not program.rewrites.fuse or (uses[node.digest] > 1 and not _cheap_to_repeat(relation)):
            relation = program.stored(relation)
        relations[node.digest] = relation
    result = relations[root.digest]
    program.step = root.operator.name
    query, table = program.grouped(result)
    if result.unique:
        weights = result.blocks[0].weight
        if weights.kind != "literal" and not is_stored(result):
            query = f"SELECT * FROM ({query}) WHERE w <> 0"
    if not has_lists(result.type):
        keys = [f"{name} NULLS FIRST" for name in column_names(result.type)]
        if keys:
            query += f" ORDER BY {', '.join(keys)}"
    return Compiled(tables, tuple(program.statements), query, table.reads, result.type, tuple(steps))


def _source(program: Program, operator: Source, name: str, output: Relation) -> Relation:
    names = column_names(operator.record)
    nullable = [null for _, null in leaf_types(operator.record)]
    weight = ONE if "unit_weights" in operator.facts else None
    table = Table(name, tuple(zip(names, nullable, strict=True)), (frozenset(names),), None, weight)
    return Relation((program.scan(table, operator.record),), output.type, output.mass, output.nonnegative)


def _cheap_to_repeat(relation: Relation) -> bool:
    """Whether a dataset that is used twice is left as a query rather than stored: a table, or a join that can grow.

    A join that can grow is where a filter from whoever uses it pays most: it is stored only when it must be.
    """
    return len(relation.blocks) == 1 and (is_stored(relation) or (relation.unique and grows(relation.blocks[0])))
