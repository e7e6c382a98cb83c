"""The compiled incremental engine: a numba module generated from the plans."""

from wpinq.engines.delta.compiled.hash_tables.evaluator import CompiledEvaluator
from wpinq.engines.delta.compiled.routine import CannotCompile
from wpinq.engines.delta.compiled.walks import EdgeWalk, SwapWalk, WalkProgress
from wpinq.engines.delta.evaluator import Goal

__all__ = ["CannotCompile", "CompiledEvaluator", "EdgeWalk", "Goal", "SwapWalk", "WalkProgress"]
