"""The norm of a join key that at most one record of a side has is that record's own weight.

A Join divides by `‖A_k‖ + ‖B_k‖`. Where the key of a side determines the row (the key holds a key of every table of
the side), `‖A_k‖` has one summand, `|w|`, and is read from the row: no table of norms is made, and none is looked up.

Needs: keys, which come from the plan alone. Weights: the sum of one number is that number, exactly; the table of
norms would have rounded it up to the grid, so the error can only fall. The absolute value is left out where the plan
says that no weight is negative.
"""

from __future__ import annotations

from wpinq.engines.relational.block import Block, determines_row
from wpinq.engines.relational.layout import Shape
from wpinq.engines.relational.scalar import Scalar, call


def own_norm(block: Block, key: Shape, nonnegative: bool) -> Scalar | None:
    """The norm of the records with the key of a row, where that is a term of the row; else None."""
    if not determines_row(block, key):
        return None
    return block.weight if nonnegative else call("absolute", block.weight)
