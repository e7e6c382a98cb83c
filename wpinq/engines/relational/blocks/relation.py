"""Relations: datasets under construction, as sums of blocks; and what is asked of their columns and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from wpinq.columns.flat import leaf_types
from wpinq.engines.relational.blocks.block import Block, SqlTable, determines_row
from wpinq.engines.relational.blocks.shape import leaves
from wpinq.engines.relational.blocks.term import TRUE
from wpinq.expr.types import Type

WEIGHT = "w"


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
    """

    blocks: tuple[Block, ...]
    type: Type
    mass: Fraction
    nonnegative: bool

    @property
    def unique(self) -> bool:
        """Whether each record comes out once at most."""
        return len(self.blocks) == 1 and determines_row(self.blocks[0], self.blocks[0].output)

    @property
    def linear(self) -> bool:
        """Whether the absolute weights of the rows add up to the norm: one row a record, or no sign to cancel."""
        return self.unique or self.nonnegative

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
