"""Targets of rewrites: each a choice with its plain answer, which a rewrite may better.

Beside these, a rewrite may change a `Block`, the rows of a join.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from wpinq.engines.sql.blocks import Block, Relation, SqlTable
from wpinq.engines.sql.terms import Shape, SqlTerm


@dataclass(frozen=True, slots=True)
class Reuse:
    """Whether a dataset that is used so often is stored in a table, or stays a query over the tables below."""

    relation: Relation
    uses: int
    stored: bool = True


@dataclass(frozen=True, slots=True)
class Minimum:
    """The Intersect of two relations; without a relation that says it otherwise, both sides are grouped by record."""

    inputs: tuple[Relation, ...]
    output: Relation
    relation: Relation | None = None


@dataclass(frozen=True, slots=True)
class KeyNorm:
    """The norm of the records of a block with the key of a row; without a term for it, a table of norms is made."""

    block: Block
    key: Shape
    nonnegative: bool
    term: SqlTerm | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of the weights, or of their sizes, of the rows of a block that agree in a shape; None: on the grid.

    `count` is the SQL of the number of those rows.
    """

    block: Block
    grouped_by: Shape
    absolute: bool = False
    sql: str | None = None
    count: str = "count(*)"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table that holds a dataset, as it is read; and what every record of it weighs, where the plan says so."""

    table: SqlTable
    each: Fraction | None


Addend = tuple[Block, tuple[SqlTerm, ...]]
"""A block, and the weights that one of its rows adds."""


@dataclass(frozen=True, slots=True)
class Addends:
    """Rows that are added up, as blocks that exclude each other, and whether where they start was chosen."""

    parts: tuple[Addend, ...]
    started: bool = False


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Rows that are added up, each with some weights; with a place, without the column of the record there.

    A row then stands for one with each of the values 0, 1, … there, which have the weights.
    """

    block: Block
    weights: tuple[tuple[SqlTerm, ...], ...]
    place: int | None = None


@dataclass(frozen=True, slots=True)
class QueryRows:
    """The rows of a query: blocks that exclude each other, and whether where they start was chosen before."""

    blocks: tuple[Block, ...]
    started: bool = False
