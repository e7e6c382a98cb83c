"""Plots of histograms: an estimate with its intervals.

matplotlib is an optional extra, `pip install 'wpinq[plots]'`, and is imported when a plot is drawn; AnswersError where
it is missing. Plots are drawn on `axes`, or on a new figure outside of pyplot, and these axes are given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.display.plots import axes_or_new, provenance
from wpinq.errors import AnswersError
from wpinq.inference.checks import vector
from wpinq.inference.intervals import Bootstrap
from wpinq.measure.answers import Answers
from wpinq.runtime.arrays import Floats
from wpinq.sinks.answer_kinds import COUNT, RESCALED, WEIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_estimate(
    estimate: Any, interval: Any = None, truth: Any = None, answers: Answers | None = None, axes: Axes | None = None
) -> Axes:
    """A plot of the estimated count of each bin, with intervals, and a public truth.

    Bin i spans i − ½ to i + ½. AnswersError when the numbers are not finite, are not one a bin, or a lower end lies
    above its upper end.

    Parameters
    ----------
    estimate : array-like
        One count a bin, as `strategy.infer(answers)` gives it.
    interval : pair of array-like, or Bootstrap, optional
        Lower and upper ends, one a bin: from `strategy.interval` of each bin, or the Bootstrap of `Sorted.interval`,
        which is labelled as the approximation that it is.
    truth : array-like, optional
        PUBLIC data only: the true counts are drawn as they are. For experiments; never give it protected counts.
    answers : Answers, optional
        The answers behind the estimate, which the plot then names; it is stamped for simulated answers.

    Examples
    --------
    >>> axes = plot_estimate([3.0, 0.5, 11.2], interval=([1, -2, 9], [5, 3, 13]))
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['interval', 'estimate']
    """
    counts = vector(estimate, "the estimate")
    if not len(counts):
        raise AnswersError("the estimate has no bins: there is nothing to draw")
    ends = None if interval is None else _ends(interval, len(counts))
    true_counts = None if truth is None else vector(truth, "the truth", len(counts))
    drawn = axes_or_new(axes)
    edges = np.arange(len(counts) + 1) - 0.5
    drawn.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    if ends is not None:
        lower, upper, name = ends
        drawn.stairs(upper, edges, baseline=lower, fill=True, color="tab:blue", alpha=0.25, linewidth=0, label=name)
    if true_counts is not None:
        drawn.stairs(true_counts, edges, baseline=None, color="0.3", linewidth=1, label="truth (public data)")
    drawn.stairs(counts, edges, baseline=None, color="tab:blue", linewidth=1.5, label="estimate")
    drawn.legend()
    provenance(drawn, answers)
    known = answers is None or answers.kind.name in (COUNT, RESCALED)
    drawn.set(xlabel="bin", ylabel="count" if known else WEIGHT)
    return drawn


def _ends(interval: Any, size: int) -> tuple[Floats, Floats, str]:
    if isinstance(interval, Bootstrap):
        lower, upper, name = interval.lower, interval.upper, f"interval ({interval.label})"
    else:
        try:
            lower, upper = interval
        except (TypeError, ValueError):
            raise AnswersError("an interval is a pair (lower ends, upper ends), or a Bootstrap") from None
        name = "interval"
    low, high = vector(lower, "the lower ends", size), vector(upper, "the upper ends", size)
    if (low > high).any():
        raise AnswersError(f"the lower end of bin {int(np.argmax(low > high))} lies above its upper end")
    return low, high, name
