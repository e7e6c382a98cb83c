"""The compiled incremental engine: a numba module generated from the plans."""

from wpinq.engines.incremental.compiled.errors import CannotCompile
from wpinq.engines.incremental.compiled.evaluator import CompiledEvaluator
from wpinq.engines.incremental.compiled.swaps import Progress, SwapWalk, Target

__all__ = ["CannotCompile", "CompiledEvaluator", "Progress", "SwapWalk", "Target"]
