"""Relations: datasets under construction, as sums of blocks; and what is asked of their columns and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from wpinq.columns.flat import leaf_types
from wpinq.engines.relational.blocks.block import Block, SqlTable, determines_row
from wpinq.engines.relational.blocks.shape import aligned, leaves
from wpinq.engines.relational.blocks.term import TRUE, call, column, columns
from wpinq.expr.types import Type

WEIGHT = "w"


@dataclass(frozen=True, slots=True)
class PartialSums:
    """The rows of some blocks with equal records added up without rounding, so that adding goes on where it stopped.

    Attributes
    ----------
    of : tuple of Block
        Those blocks: what stands for others is of no use.
    block : Block
        Over the table of the sums, one row a record; its weight is a column of those.
    columns : tuple of str
        The columns of the sums: `n`, the number of rows, `w`, their least weight, and `h`, their sum on the grid.
    mass : Fraction
        The mass that the grid is for.
    """

    of: tuple[Block, ...]
    block: Block
    columns: tuple[str, ...]
    mass: Fraction


@dataclass(frozen=True, slots=True)
class Relation:
    """A dataset under construction: the sum of some blocks.

    Attributes
    ----------
    blocks : tuple of Block
        Their rows together, each with its weight: equal records add.
    type : Type
        The type of the records.
    mass : Fraction
        A bound on the norm.
    nonnegative : bool
        Whether no row has a negative weight.
    partial : PartialSums or None
        Where its rows stand partly added up.
    each : Fraction or None
        What every record weighs, where the plan says so.
    """

    blocks: tuple[Block, ...]
    type: Type
    mass: Fraction
    nonnegative: bool
    partial: PartialSums | None = None
    each: Fraction | None = None

    @property
    def unique(self) -> bool:
        """Whether each record comes out once at most."""
        return len(self.blocks) == 1 and determines_row(self.blocks[0], self.blocks[0].output)

    @property
    def linear(self) -> bool:
        """Whether the absolute weights of the rows add up to the norm: one row a record, or no sign to cancel."""
        return self.unique or self.nonnegative

    @property
    def parts(self) -> PartialSums | None:
        """The partial sums from which its rows can be added up."""
        partial = self.partial
        return partial if partial is not None and partial.of is self.blocks and partial.mass == self.mass else None

    @property
    def table(self) -> str | None:
        """The table that holds the dataset as it stands, each record once; None where it takes a query."""
        if len(self.blocks) != 1 or len(self.blocks[0].tables) != 1:
            return None
        (block,) = self.blocks
        ((alias, table),) = block.tables
        shown = [*leaves(block.output), block.weight] == [*table.at(alias), table.weight_at(alias)]
        stands = table.keys and not table.source.startswith("(")
        return table.source if stands and shown and block.condition == TRUE else None


def mirrored(relation: Relation) -> bool:
    """Whether it is a list of pairs in both directions, such that with each (x, y) it has (y, x) at the same weight."""
    for block in relation.blocks:
        ((alias, table), *others) = block.tables
        item = column(alias, "item", True)
        pair = [call(f"struct_field:{i}", item) for i in range(2)]
        shown = list(leaves(aligned(block.output, relation.type)))
        if others or not table.mirrored or block.condition != TRUE or shown != pair or item in columns(block.weight):
            return False
    return True


def derived(
    sql: str, columns: Sequence[tuple[str, bool]], read: tuple[str, ...], keys: tuple[frozenset[str], ...] = ()
) -> SqlTable:
    """A query that reads some tables, as a table."""
    return SqlTable(f"({sql})", tuple(columns), keys, reads=read)


def column_list(type_: Type) -> tuple[tuple[str, bool], ...]:
    """The names of a record's columns in a table, each with whether it can be null."""
    return tuple((f"c{i}", nullable) for i, (_, nullable) in enumerate(leaf_types(type_)))


def reads(blocks: Sequence[Block]) -> tuple[str, ...]:
    """The tables that blocks read."""
    found = [table.reads or (table.source,) for block in blocks for _, table in block.tables]
    return tuple(dict.fromkeys(name for names in found for name in names))
