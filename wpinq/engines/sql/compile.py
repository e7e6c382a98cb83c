"""A plan to a program of statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from wpinq.columns.records import column_names, column_types, has_lists
from wpinq.engines.contract import WantedRanges
from wpinq.engines.sql.batch_sums import RowsToSum, rows_to_sum
from wpinq.engines.sql.blocks import Relation, SqlTable, column_list, grows
from wpinq.engines.sql.dialect import DUCKDB, Dialect, Unsupported
from wpinq.engines.sql.emit import Emitter
from wpinq.engines.sql.key_pushdown import can_narrow
from wpinq.engines.sql.rewrite_targets import Reuse
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.rules.operators import relation_of
from wpinq.engines.sql.script import Rewrite, Script, SqlStatement
from wpinq.engines.sql.terms import ONE
from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import plan_properties

# Steps of plans as they were written, for plans that begin alike: what they have in common is compiled once.
#
# What a step adds to a script is a function of the step, of what the plan says of it, of how many read it, of whether
# it is shared, and of the steps before. So a program that goes on from remembered steps is, to the letter, the
# one that is written from the start.

HELD = 2048
"""How many steps are remembered, those used last."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenStep:
    """What a step added to a script: itself alone, for it stands for all steps before it, too.

    Attributes
    ----------
    gave : object
        The dataset at the step; of the last one, what the output is read by.
    statements : tuple of SqlStatement
        The tables that it makes.
    aliases : int
        How many aliases were given out by now.
    """

    gave: Any
    statements: tuple[SqlStatement, ...]
    aliases: int


class WrittenSteps:
    """The steps that were written last."""

    def __init__(self) -> None:
        self._held = lru_cache(maxsize=HELD)(_none_yet)

    def after(
        self, before: WrittenStep | None, step: Hashable, script: Script, write: Callable[[], object]
    ) -> WrittenStep:
        """What a step adds after the one before: remembered, else written; the script has it then.

        Parameters
        ----------
        before : WrittenStep or None
            The step before, which the script has; None where it has none.
        step : hashable
            All that tells this step from others that may come next.
        script : Script
            What it is added to.
        write : callable
            Adds it.
        """
        held = self._held(before, step)
        if held:
            _go_on(script, held[0])
        else:
            number = len(script.statements)
            gave = write()
            held.append(WrittenStep(gave, tuple(script.statements[number:]), script.aliases))
        return held[0]


def _none_yet(before: WrittenStep | None, step: Hashable) -> list[WrittenStep]:
    return []


def _go_on(script: Script, step: WrittenStep) -> None:
    script.statements += step.statements
    script.made.update(statement.creates for statement in step.statements)
    script.aliases = step.aliases


@dataclass(frozen=True, slots=True)
class Compiled:
    """What to run: statements in order, the query of the output, and the tables that sources must stand in.

    Attributes
    ----------
    sources : dict of str to str
        Source name to the name of its table.
    statements : tuple of SqlStatement
        Each creates one table.
    output : str
        The query of the output: its columns, then its weight.
    order : str
        What puts it in canonical order; empty where a column is a list, or the dialect does not sort.
    table : str or None
        The table that holds the output as it stands, if one does.
    reads : tuple of str
        The tables that the query reads.
    type : Type
        The type of the output's records.
    steps : tuple of (str, int)
        The operators in order, each with the number of statements that come before it.
    grows : bool
        Whether the query of the output joins tables to more rows than they have.
    asked : bool
        Whether it gives all weights of the records that are asked for, and needs to be told which.
    added : RowsToSum or None
        What the query of the output adds up, where other plans may add up more of it at once.
    """

    sources: dict[str, str]
    statements: tuple[SqlStatement, ...]
    output: str
    order: str
    table: str | None
    reads: tuple[str, ...]
    type: Type
    steps: tuple[tuple[str, int], ...]
    grows: bool
    asked: bool
    added: RowsToSum | None = None

    @property
    def query(self) -> str:
        """The output in order."""
        return self.output + self.order

    @property
    def queries(self) -> list[tuple[str, str]]:
        """The query of each statement with its step, then that of the output."""
        return [*((statement.step, statement.query) for statement in self.statements), (self.steps[-1][0], self.query)]


def compile_plan(
    root: Node,
    rewrites: tuple[Rewrite, ...] = REWRITES,
    dialect: Dialect = DUCKDB,
    shared: frozenset[bytes] = frozenset(),
    asked: bool = False,
) -> Compiled:
    """The program that evaluates a plan: a function of the plan and of what is shared, never of the data.

    Steps that are shared with other plans, by digest, are stored as partial sums where that changes no weight: see
    `Script.partly_summed`. Asked for keys, it makes no rows of other records where that helps: see `sql.asked`.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> print(compile_plan(numbers.where(lambda x: x < 5).plan).query)  # doctest: +NORMALIZE_WHITESPACE
    SELECT * FROM (SELECT a0."c0" AS c0, a0."w" AS w FROM source_numbers AS a0
    WHERE (a0."c0" < CAST(5 AS BIGINT))) WHERE w <> 0 ORDER BY c0 NULLS FIRST
    """
    return _compiled(root, rewrites, dialect, shared, asked)


def compile_anew(
    root: Node,
    rewrites: tuple[Rewrite, ...],
    dialect: Dialect,
    shared: frozenset[bytes],
    asked: bool,
    written: WrittenSteps,
) -> Compiled:
    """The same, of which nothing is remembered but its steps, in `written`."""
    script = Script(Emitter(dialect), rewrites)
    try:
        return _compile(root, script, shared, asked, written)
    except Unsupported as gap:
        reason = f"{script.step}: {gap}"
    raise PlanError(reason)


PLANS_LIMIT = 4096
"""The most plans that are remembered: a table has a choice in each of thousands of groups, and looks at all in turn."""


@lru_cache(maxsize=PLANS_LIMIT)  # behind a function, so that all ways to call it are one
def _compiled(
    root: Node, rewrites: tuple[Rewrite, ...], dialect: Dialect, shared: frozenset[bytes], asked: bool
) -> Compiled:
    return compile_anew(root, rewrites, dialect, shared, asked, _written)


_written = WrittenSteps()


def _table(source: str) -> str:
    """The table of a source. A database may take names that differ in case for one, so other names are spelt in hex."""
    plain = source.isascii() and source == source.lower()
    return f"source_{source}" if plain else f"sourcex_{source.encode().hex()}"


def source_tables(root: Node) -> dict[str, str]:
    """The tables that the sources of a plan must stand in, by name of the source."""
    return {name: _table(name) for name in sources([root])}


def _facts(root: Node) -> Callable[[Node], Relation]:
    """What the plan says of the dataset at a node, as a relation without blocks."""
    steps, each = plan_properties(root).steps, plan_properties(root).equal_weights

    def said(node: Node) -> Relation:
        step = steps[node.digest]
        return Relation((), node.type, step.mass, step.nonnegative, each=each.get(node.digest))

    return said


def _compile(root: Node, script: Script, shared: frozenset[bytes], asked: bool, written: WrittenSteps) -> Compiled:
    said = _facts(root)
    order = list(topological([root]))
    uses = Counter(child.digest for node in order for child in node.inputs)
    steps: list[tuple[str, int]] = []
    relations: dict[bytes, Relation] = {}
    began = (script.rewrites, script.emitter.dialect)
    before: WrittenStep | None = None
    for node in order:
        script.step = node.operator.name
        steps.append((script.step, len(script.statements)))
        told = (node.digest, uses[node.digest], node.digest in shared, began if before is None else ())
        write = partial(_step, script, node, relations, said, uses[node.digest], node.digest in shared)
        before = written.after(before, told, script, write)
        relations[node.digest] = before.gave
    result = relations[root.digest]
    script.step = root.operator.name
    output, table, grown = written.after(before, "output", script, partial(_output, script, result)).gave
    narrow = _narrowed(script, result) if asked and grown and can_narrow(result.blocks) else None
    if narrow is not None:
        output, table = narrow
    if result.unique and result.table is None and result.blocks[0].weight.kind != "literal":
        output = f"SELECT * FROM ({output}) WHERE w <> 0"
    sorts = script.emitter.dialect.sorts and not has_lists(result.type)
    keys = [f"{name} NULLS FIRST" for name in column_names(result.type)] if sorts else []
    return Compiled(
        source_tables(root),
        tuple(script.statements),
        output,
        f" ORDER BY {', '.join(keys)}" if keys else "",
        result.table,
        table.reads,
        result.type,
        tuple(steps),
        grown,
        narrow is not None,
        rows_to_sum(result),
    )


def in_ranges(query: str, type_: Type, within: WantedRanges) -> str:
    """The query of an output without the records outside of some ranges, as far as their ends are plainly written."""
    wanted = [
        f"{name} BETWEEN {_plain(ends[0])} AND {_plain(ends[1])}"
        for name, ends in zip(column_names(type_), within, strict=False)
        if ends is not None and all(map(_plain, ends))
    ]
    return f"SELECT * FROM ({query}) AS q WHERE {' AND '.join(wanted)}" if wanted else query


def _plain(end: Value) -> str:
    """An int or a text as SQL; empty for all that would need care."""
    if isinstance(end, str):
        return f"'{end}'" if end.isascii() and end.isalnum() else ""
    return str(end) if type(end) is int else ""


def _step(
    script: Script,
    node: Node,
    relations: Mapping[bytes, Relation],
    said: Callable[[Node], Relation],
    uses: int,
    shared: bool,
) -> Relation:
    """The dataset at a node, from those at its inputs."""
    if isinstance(node.operator, Source):
        relation = _source(script, node.operator, _table(node.operator.source), said(node))
    else:
        inputs = [relations[child.digest] for child in node.inputs]
        relation = relation_of(node.operator, script, inputs, said(node))
    if script.rewritten(Reuse(relation, uses)).stored:
        relation = script.stored(relation)
    return script.partly_summed(relation) if shared else relation


def _output(script: Script, result: Relation) -> tuple[str, SqlTable, bool]:
    """The query of an output, what is known of its rows, and whether it joins tables to more rows than they have."""
    grown = result.parts is None and any(grows(block) for block in result.blocks)
    return *script.grouped(result), grown


def _narrowed(script: Script, result: Relation) -> tuple[str, SqlTable] | None:
    """The query of an output that is asked for keys, where they filter a table in each of its blocks."""
    script.asked = column_types(result.type)
    try:
        found = script.grouped(result)
    finally:
        script.asked = ()
    return found if script.narrow else None


def _source(script: Script, operator: Source, name: str, output: Relation) -> Relation:
    columns, weight = column_list(operator.record), ONE if "unit_weights" in operator.facts else None
    table = SqlTable(name, columns, (frozenset(dict(columns)),), weight=weight)
    return Relation((script.scan(table, operator.record),), output.type, output.mass, output.nonnegative)
