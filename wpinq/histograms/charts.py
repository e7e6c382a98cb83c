"""Plots of histograms: an estimate with its intervals, and the tree.

matplotlib is an optional extra, `pip install 'wpinq[plots]'`, and is imported when a plot is drawn; AnswersError where
it is missing. Plots are drawn on `axes`, or on a new figure outside of pyplot, and these axes are given back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.display.plots import axes_or_new, provenance
from wpinq.errors import AnswersError
from wpinq.histograms.strategy import LinearStrategy
from wpinq.histograms.trees import Hierarchical
from wpinq.inference.checks import vector
from wpinq.inference.intervals import Bootstrap
from wpinq.inference.tree import Tree
from wpinq.measure.answers import Answers
from wpinq.runtime.arrays import Floats
from wpinq.sinks.answer_kinds import COUNT, RESCALED, WEIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NUMBERS = 10
_MOST_OUTLINED = 100


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


def plot_tree(values: Any, branching: int, answers: Answers | None = None, axes: Axes | None = None) -> Axes:
    """A plot of the tree of ranges, with a rectangle for each node over its bins.

    Node i of height h spans the bins from `i · k^h` on. The colour is the node's value per bin, so that a node and its
    children have one colour where the counts are even, and noise stands out at the leaves. Levels of at most 10 nodes
    have their values written in.

    Parameters
    ----------
    values : Answers or array-like
        Answers of `Hierarchical.measure`, drawn as measured; or numbers of the nodes, root first, in one row or in
        levels: `strategy.nodes(answers)` draws the consistent tree. AnswersError when no tree has that many nodes.
    branching : int
        The branching factor k, at least 2.
    answers : Answers, optional
        The answers behind the values, which the plot then names; it is stamped for simulated answers.

    Examples
    --------
    >>> axes = plot_tree([[14], [3, 11], [3, 0, 11, 0]], branching=2)
    >>> [text.get_text() for text in axes.texts]
    ['14', '3', '11', '3', '0', '11', '0']
    """
    if isinstance(values, LinearStrategy):
        raise AnswersError(
            "the values come first, then the branching factor: plot_tree(answers, 2), or "
            "plot_tree(strategy.nodes(answers), 2)"
        )
    source = values if isinstance(values, Answers) else answers
    numbers = values if isinstance(values, Answers) else _one_row(values)
    strategy = Hierarchical(_leaves(len(numbers), branching), branching)
    tree = strategy.tree
    levels = tree.split(strategy.answers_of(numbers))
    drawn = axes_or_new(axes)
    from matplotlib.collections import PolyCollection

    corners, middles = [], []
    for height, size in zip(range(tree.levels - 1, -1, -1), tree.sizes, strict=True):
        edges = np.minimum(np.arange(size + 1) * branching**height, strategy.domain) - 0.5
        corners += [[(a, height), (b, height), (b, height + 1), (a, height + 1)] for a, b in pairwise(edges)]
        middles.append((edges[1:] + edges[:-1]) / 2)
    widths = np.array([corner[1][0] - corner[0][0] for corner in corners])
    colours = PolyCollection(
        corners,
        array=np.concatenate(levels) / widths,
        cmap="viridis",
        edgecolors="white",
        linewidths=np.repeat([0.5 if size <= _MOST_OUTLINED else 0.0 for size in tree.sizes], tree.sizes),
        antialiaseds=False,
    )
    drawn.add_collection(colours)
    for row, (level, middle) in enumerate(zip(levels, middles, strict=True)):
        for value, place in zip(level, middle, strict=True) if len(level) <= _MOST_NUMBERS else ():
            drawn.text(
                place, tree.levels - row - 0.5, f"{value:.4g}", ha="center", va="center", fontsize=8, clip_on=True,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0},
            )  # fmt: skip
    drawn.set_yticks(np.arange(tree.levels) + 0.5, [str(height) for height in range(tree.levels)])
    drawn.set(xlim=(-0.5, strategy.domain - 0.5), ylim=(0, tree.levels), xlabel="bin", ylabel="height")
    drawn.figure.colorbar(colours, ax=drawn, label="count per bin")
    provenance(drawn, source)
    return drawn


def _one_row(values: Any) -> Floats:
    what = "the values of the nodes"
    if isinstance(values, Sequence) and values and not any(isinstance(level, (int, float)) for level in values):
        return np.concatenate([vector(level, what) for level in values])
    return vector(values, what)


def _leaves(nodes: int, branching: int) -> int:
    """The number of leaves of the tree with this many nodes; it grows with them."""
    Tree.uniform(1, branching)  # refuses a branching factor that is none
    if nodes:
        leaves = 1 + bisect_left(range(1, nodes), nodes, key=lambda n: sum(Tree.uniform(n, branching).sizes))
        if sum(Tree.uniform(leaves, branching).sizes) == nodes:
            return leaves
    raise AnswersError(f"no tree with {branching} children a node has {nodes} nodes: give one number for every node")
