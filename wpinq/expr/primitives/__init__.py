"""The primitives: the only functions that an engine must know. Modules of this folder define them, and are found there.

Each has a typing rule, a meaning, and a bound on its work. All are total: whatever a 64-bit machine cannot say
(division by zero, overflow, a failed cast, an element out of range) is null, and no primitive raises on any value.
Floats are produced by correctly rounded operations alone, for another last bit would be another record.
"""

from wpinq.expr.definition import LIST_LIMIT, PRIMITIVES, TEXT_LIMIT

__all__ = ["LIST_LIMIT", "PRIMITIVES", "TEXT_LIMIT"]
