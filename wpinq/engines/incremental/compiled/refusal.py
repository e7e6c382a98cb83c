"""What the compiled engine raises when a plan is beyond it."""

from __future__ import annotations

from wpinq.errors import PlanError


class CannotCompile(PlanError):
    """A plan, or numba itself, is out of the compiled engine's reach. The message names the step and the reason.

    The python engine (`wpinq.engines.incremental.Evaluator`) runs every plan; a caller that falls back to it shows
    this message.
    """
