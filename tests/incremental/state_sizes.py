"""How many records the incremental engines hold, besides the candidate and outputs of the Python one."""

from __future__ import annotations

from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CompiledEvaluator
from wpinq.engines.delta.compiled.hash_table import LIVE


def state_size(evaluator: Evaluator | CompiledEvaluator) -> int:
    """The records of state of an evaluator: of the compiled one the candidate included, the outputs not."""
    if isinstance(evaluator, Evaluator):
        parts = [part for kernel in evaluator._kernels.values() for part in getattr(kernel, "_parts", {}).values()]
        return sum(len(weights) for part in parts for weights in part)
    design, words = evaluator._design, evaluator._arena.words
    outputs = [table for table, _ in design.outputs]
    held = [table for table in design.tables.all if table.logged and table not in outputs]
    return sum(int(words[table.header + LIVE]) for table in held if not table.is_index)
