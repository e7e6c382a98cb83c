"""Progress bars, in a terminal and in a notebook: step names, step numbers, and time.

The numbers are of public steps.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

OnStep = Callable[[str], None]

#: Seconds between two lines, where they do not overwrite one another.
_EVERY = 5.0


def progress_bar(**options: Any) -> Any:
    """A bar of tqdm's on stderr; as a widget in notebooks that have widgets."""
    if importlib.util.find_spec("ipywidgets") is not None:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm
    shown = sys.stderr is not None
    every = 0.1 if shown and sys.stderr.isatty() else _EVERY
    return tqdm(mininterval=every, dynamic_ncols=True, disable=not shown, **options)


class StepDisplay:
    """A display of the steps of a release, or a callback for them.

    Whatever goes wrong with that, a release goes on.

    Parameters
    ----------
    on_step : callable, optional
        Told the name of each step.
    shown : bool
        Whether to show the name and the time on a bar as well.
    """

    def __init__(self, on_step: OnStep | None, shown: bool = False) -> None:
        self._on_step, self._shown = on_step, shown
        self._bar: Any = None

    @property
    def callback(self) -> OnStep | None:
        """What engines are given."""
        return self._tell if self._shown or self._on_step is not None else None

    def _tell(self, step: str) -> None:
        # its own trouble, such as a closed display, cannot cost a release that was paid for
        with contextlib.suppress(Exception):
            if self._on_step is not None:
                self._on_step(step)
        with contextlib.suppress(Exception):
            if self._shown:
                if self._bar is None:
                    self._bar = progress_bar(bar_format="{desc}  {elapsed}", leave=False)
                self._bar.set_description_str(step)

    def done(self) -> None:
        """The release is over: the bar goes."""
        bar, self._bar = self._bar, None
        with contextlib.suppress(Exception):
            if bar is not None:
                bar.close()


def tell_terminal(words: str) -> None:
    """Write to stderr if it is a terminal, and never to a file or a pipe."""
    with contextlib.suppress(Exception):
        if sys.stderr.isatty():
            sys.stderr.write(f"{words}\n")
