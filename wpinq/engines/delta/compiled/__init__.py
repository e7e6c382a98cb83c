"""The compiled incremental engine: a numba module generated from the plans."""

from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.engines.incremental.compiled.tables.compiled_evaluator import CompiledEvaluator
from wpinq.engines.incremental.compiled.walks.edge_walk import EdgeWalk
from wpinq.engines.incremental.compiled.walks.graph_walk import WalkProgress
from wpinq.engines.incremental.compiled.walks.swaps import SwapWalk
from wpinq.engines.incremental.goals import Goal

__all__ = ["CannotCompile", "CompiledEvaluator", "EdgeWalk", "Goal", "SwapWalk", "WalkProgress"]
