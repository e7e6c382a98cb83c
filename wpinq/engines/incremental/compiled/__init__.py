"""The compiled incremental engine: a numba module generated from the plans."""

from wpinq.engines.incremental.compiled.edge_walk import EdgeWalk
from wpinq.engines.incremental.compiled.errors import CannotCompile
from wpinq.engines.incremental.compiled.evaluator import CompiledEvaluator
from wpinq.engines.incremental.compiled.swaps import SwapWalk
from wpinq.engines.incremental.compiled.targets import Aim, Progress, Target

__all__ = ["Aim", "CannotCompile", "CompiledEvaluator", "EdgeWalk", "Progress", "SwapWalk", "Target"]
