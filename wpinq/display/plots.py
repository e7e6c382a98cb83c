"""Answers as a plot, and the common part of plots: axes, labels, and stamps of simulations.

Axes have no global state. matplotlib is an optional extra, `pip install 'wpinq[plots]'`, and is imported when a plot is
drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from wpinq.display.html import STAMP
from wpinq.errors import AnswersError, install, shorten
from wpinq.expr.nodes import write_value
from wpinq.expr.types import TupleOf
from wpinq.noise.epsilon_text import format_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST_LABEL = 24
_MOST_LABELS = 20
_MOST_CHARACTERS = 60
_LINE = 45


@runtime_checkable
class Plottable(Protocol):
    """The parts of `Answers` that a plot shows."""

    @property
    def measurement(self) -> Any: ...
    @property
    def keys(self) -> tuple[Any, ...]: ...
    @property
    def simulated(self) -> bool: ...
    def rows(self, confidence: float) -> Iterable[Any]: ...
    def __len__(self) -> int: ...


def plot_answers(answers: Plottable, confidence: float = 0.95, axes: Axes | None = None) -> Axes:
    """A plot of answers with their intervals.

    Numbers are placed at their value, other keys side by side in the order of `answers.keys`. Points and bars are the
    estimates and intervals of `Answers.rows`, each interval for itself: of many answers, a share of 1 − confidence is
    expected to lie outside. The axis says what kind of number they are. What comes down to one number is one point.

    Parameters
    ----------
    answers : Answers
        The released answers.
    confidence : float
        Strictly between 0 and 1.
    axes : matplotlib Axes, optional
        Where to draw. A new figure, outside of pyplot, when left out.

    Returns
    -------
    matplotlib Axes
        `axes.figure.savefig(path)` writes it. When there are more than 20 keys that are no numbers, only some have
        their label written.

    Raises
    ------
    AnswersError
        When there are no answers to draw, when they are a choice, or when matplotlib is missing.

    Notes
    -----
    Privacy cost: none. A plot shows what was released; simulated answers are stamped, for they protect nothing.

    Examples
    --------
    >>> import wpinq as wp
    >>> bits = wp.source("bits", bool)
    >>> answers = wp.simulate(bits.noisy_count(epsilon=1), {"bits": [True, True, False]}, seed=1)
    >>> plot_answers(answers).get_ylabel()
    'number of rows of bits, 95 % interval'
    """
    if not isinstance(answers, Plottable):
        raise AnswersError(
            f"plot_answers draws Answers, not a {type(answers).__name__}: of a Release, take release.at(keys)"
        )
    measurement, sink = answers.measurement, answers.measurement.sink
    if sink.chooses:
        raise AnswersError("a choice among candidates has no interval to draw: show answers.value")
    if not len(answers):
        raise AnswersError("there are no answers to draw: release some keys with over=…")
    told = f", {100 * confidence:.10g} % interval" if sink.has_interval else ""  # the kind says that there is none
    drawn = plot_estimates(
        None if sink.single else answers.keys,
        list(answers.rows(confidence)),
        sink.noun if sink.single else _key_name(answers),
        plain_text(fill(f"{measurement.kind}{told}", _LINE)),
        axes,
        measurement.description,
    )
    provenance(drawn, answers)
    return drawn


def plot_estimates(
    keys: tuple[Any, ...] | None, rows: Sequence[Any], name: str, title: str, axes: Axes | None, label: str = ""
) -> Axes:
    """A plot of estimates with their intervals, by key."""
    ends = [
        # the interval of a listed key may have no low end: its bar goes down to 0
        (row.estimate - (row.low if np.isfinite(row.low) else 0.0), row.high - row.estimate)
        for row in rows
        if row.low is not None
    ]
    drawn = axes_or_new(axes)
    numeric = keys is not None and all(type(key) in (int, float, Decimal) for key in keys)
    drawn.errorbar(
        np.array(keys, dtype=np.float64) if numeric else np.arange(len(rows), dtype=np.float64),
        np.array([row.estimate for row in rows]),
        yerr=np.transpose(ends) if ends else None,
        fmt="o",
        markersize=3,
        linewidth=1,
        label=label,
    )
    if keys is not None:
        drawn.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        drawn.set_xlabel(name)
    if not numeric:
        _name_places(drawn, [name] if keys is None else [write_value(key) for key in keys])
    drawn.set_ylabel(title)
    return drawn


def axes_or_new(axes: Any) -> Axes:
    """The axes to draw on: those given, or those of a new figure outside of pyplot.

    Raises
    ------
    AnswersError
        When matplotlib is missing, or what is given are no axes.
    """
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ModuleNotFoundError as reason:
        raise AnswersError(
            f"plots need matplotlib, and the module {reason.name} is not installed: {install('plots')}"
        ) from None
    if axes is None:
        return Figure(figsize=(7.0, 4.0), layout="constrained").add_subplot(axes_class=shown(Axes, 110))
    if not isinstance(axes, Axes):
        raise AnswersError(f"axes are matplotlib Axes, such as fig.add_subplot() gives, not a {type(axes).__name__}")
    return axes


@lru_cache
def shown(base: Any, dots: int) -> Any:
    """A class of matplotlib's figures or axes that notebooks show where a cell ends with them."""

    def png(self: Any) -> bytes:
        written = BytesIO()
        self.get_figure(root=True).savefig(written, format="png", dpi=dots)
        return written.getvalue()

    return type(f"Shown{base.__name__}", (base,), {"_repr_png_": png, "__module__": __name__})


def provenance(axes: Axes, answers: Plottable | None) -> None:
    """Say on the plot which release it comes from; simulated answers are stamped across it."""
    if answers is None:
        return
    if not isinstance(answers, Plottable):
        raise AnswersError(f"answers are the Answers that the plot comes from, not a {type(answers).__name__}")
    measurement = answers.measurement
    axes.set_title(f"{measurement.sink.name}({format_epsilon(measurement.epsilon)})")
    stamp(axes, answers.simulated)


def stamp(axes: Axes, simulated: bool) -> None:
    """Stamp simulated numbers, across the plot: a title can be cropped or replaced."""
    if simulated:  # so faint that the data are seen through it
        axes.text(
            0.5, 0.5, STAMP, transform=axes.transAxes, color="tab:red", alpha=0.28, fontsize=22, rotation=15,
            ha="center", va="center", zorder=10,
        )  # fmt: skip


def plain_text(text: str) -> str:
    """Text that matplotlib shows as it is: a pair of dollars would be read as a formula."""
    return text.replace("$", r"\$")


def _key_name(answers: Plottable) -> str:
    type_ = answers.measurement.plan.type
    if isinstance(type_, TupleOf) and all(type_.names):
        return plain_text(f"({', '.join(map(str, type_.names))})")
    return "key"


def _name_places(axes: Axes, labels: list[str]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    short = [shorten(text, _LONGEST_LABEL) for text in labels]
    axes.xaxis.set_major_locator(FixedLocator(range(len(short)), nbins=_MOST_LABELS))

    def name(place: float, _: object) -> str:
        index = round(place)  # a pointer outside of the plot asks for names too
        return plain_text(short[index]) if 0 <= index < len(short) else ""

    axes.xaxis.set_major_formatter(FuncFormatter(name))
    if sum(map(len, short[:_MOST_LABELS])) > _MOST_CHARACTERS:
        axes.tick_params(axis="x", rotation=90)
    axes.set_xlim(-0.5, len(short) - 0.5)
