"""How chains go, as bars: steps and time of public candidates."""

from __future__ import annotations

import contextlib
from typing import Any

from wpinq.progress import progress_bar
from wpinq.synthesis.sampling import Update


class ChainBars:
    """Told how chains go, it shows a bar for each."""

    def __init__(self) -> None:
        self._bars: dict[int, Any] = {}

    def __call__(self, update: Update) -> None:
        with contextlib.suppress(OSError, ValueError):  # where stderr is full or closed, chains go on
            self._show(update)

    def _show(self, update: Update) -> None:
        bar = self._bars.get(update.chain)
        if bar is None:
            named = {"desc": f"chain {update.chain}", "position": update.chain}
            bar = progress_bar(total=update.total, unit=" steps", unit_scale=True, **named)
            self._bars[update.chain] = bar
        bar.update(update.steps - bar.n)
        if update.stopped:
            bar.set_postfix_str(update.stopped)
            bar.close()
