"""The compiled incremental engine: a numba module generated from the plans."""

from wpinq.engines.delta.compiled.hash_tables.evaluator import CompiledEvaluator as CompiledEvaluator
from wpinq.engines.delta.compiled.routine import CannotCompile as CannotCompile
from wpinq.engines.delta.compiled.walks import EdgeWalk as EdgeWalk, SwapWalk as SwapWalk, WalkProgress as WalkProgress
from wpinq.engines.delta.evaluator import Goal as Goal
