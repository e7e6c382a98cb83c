"""The norm of a join key that at most one record of a side has is that record's own weight.

A Join divides by `‖A_k‖ + ‖B_k‖`. Where the key of a side determines the row (the key holds a key of every table of
the side), `‖A_k‖` has one summand, `|w|`, and is read from the row: no table of norms is made, and none is looked up.

Needs: keys, which come from the plan alone. Weights: the sum of one number is that number, exactly; the table of
norms would have rounded it up to the grid, so the error can only fall. The absolute value is left out where the plan
says that no weight is negative.
"""

from __future__ import annotations

from dataclasses import replace

from wpinq.engines.relational.blocks.block import determines_row
from wpinq.engines.relational.blocks.subjects import KeyNorm
from wpinq.engines.relational.blocks.term import call
from wpinq.engines.relational.sql.script import Script


def read_own_norm(script: Script, norm: KeyNorm) -> KeyNorm:
    """The norm as a term of the row, where the key determines the row."""
    if not determines_row(norm.block, norm.key):
        return norm
    weight = norm.block.weight
    return replace(norm, term=weight if norm.nonnegative else call("absolute", weight))
