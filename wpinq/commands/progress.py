"""How chains go, on stderr."""

from __future__ import annotations

import contextlib
import math
import sys
import time

from wpinq.synthesis.sampling import Update

_EVERY = 5.0
"""Seconds between two lines, where they do not overwrite one another."""


class ProgressLine:
    """Told how chains go, it shows them: on one line that is overwritten on a terminal, else a line every few seconds.

    All of it is of synthetic graphs and released answers.

    Parameters
    ----------
    chains : int
        How many there are.
    """

    def __init__(self, chains: int) -> None:
        self._latest: dict[int, Update] = {}
        self._chains, self._terminal, self._printed = chains, sys.stderr is not None and sys.stderr.isatty(), 0.0

    def __call__(self, update: Update) -> None:
        self._latest[update.chain] = update
        done = all(latest.stopped for latest in self._latest.values()) and len(self._latest) == self._chains
        now = time.monotonic()
        if sys.stderr is None or not (self._terminal or done or now - self._printed >= _EVERY):
            return
        self._printed = now
        line = "; ".join(self._said(self._latest[chain]) for chain in sorted(self._latest))
        before, after = ("\r\x1b[K", "\n" if done else "") if self._terminal else ("", "\n")
        with contextlib.suppress(OSError, ValueError):
            print(before + line, end=after, file=sys.stderr, flush=True)

    def _said(self, update: Update) -> str:
        share, filled = update.steps / update.total, round(20 * update.steps / update.total)
        which = f"chain {update.chain} " if self._chains > 1 else ""
        bar = "#" * filled + "." * (20 - filled)
        noise = f" (noise {update.noise:.4g})" if math.isfinite(update.noise) else ""
        return (
            f"{which}[{bar}] {share:.0%} of {update.total:,} steps, {update.rate:,.0f} steps/s, "
            f"{update.acceptance:.1%} kept, score {update.score:.4g}{noise}"
            + (f", {update.stopped}" if update.stopped else "")
        )
