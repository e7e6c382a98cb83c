"""Plots of histograms: an estimate with its intervals, the error by size of range, the tree.

matplotlib is an optional extra, `pip install 'wpinq[plots]'`, and is imported when a plot is drawn; AnswersError where
it is missing. Plots are drawn on `axes`, or on a new figure outside of pyplot, and these axes are given back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.display.plots import axes_or_new, plain_text, provenance
from wpinq.errors import AnswersError, PlanError, described
from wpinq.histograms.strategies.strategy import LinearStrategy
from wpinq.histograms.strategies.trees import Hierarchical
from wpinq.histograms.workload import Ranges
from wpinq.inference.checks import integer_row, vector
from wpinq.inference.intervals import Bootstrap
from wpinq.inference.tree import Tree
from wpinq.measure.answers import Answers
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import format_epsilon
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


def plot_error_by_range_size(
    strategies: Mapping[str, LinearStrategy] | Sequence[LinearStrategy],
    epsilon: object,
    sizes: Sequence[int] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """A plot of the expected squared error of strategies, by the number of bins of a range.

    No data are used.

    A line for each strategy, both scales logarithmic. At size s, `expected_error(all n − s + 1 ranges of s bins, ε) /
    (n − s + 1)`: an exact average over all places.

    Parameters
    ----------
    strategies : mapping from names to linear strategies, or sequence of them
        One at least, over the same number n of bins: PlanError elsewhere.
    epsilon : number
        More than 0; what a source used once pays.
    sizes : sequence of int, optional
        Between 1 and n. 1, 2, 4, … up to n when left out.

    Notes
    -----
    Time grows with n² for each size, and is about a second a size at n = 4096. Source: Hay et al. 2010, figure 6.

    Examples
    --------
    >>> from wpinq.histograms import Hierarchical, Identity
    >>> axes = plot_error_by_range_size({"bins": Identity(8), "tree": Hierarchical(8)}, epsilon=1)
    >>> [float(error) for error in axes.get_lines()[0].get_ydata()]
    [2.0, 4.0, 8.0, 16.0]
    """
    named = _named(strategies)
    domain = named[0][1].domain
    chosen = [2**i for i in range(domain.bit_length())] if sizes is None else _sizes(sizes, domain)
    spent = parse_epsilon(epsilon)
    workloads = [Ranges(domain, np.arange(domain - s + 1), np.arange(s, domain + 1)) for s in chosen]
    errors = [[s.expected_error(ranges, spent) / ranges.queries for ranges in workloads] for _, s in named]
    drawn = axes_or_new(axes)
    for (name, _), row in zip(named, errors, strict=True):
        drawn.plot(chosen, row, marker="o", markersize=3, label=plain_text(name))
    drawn.set_xscale("log", base=2)
    title = f"{domain} bins, epsilon {format_epsilon(spent)}"
    drawn.set(yscale="log", xlabel="bins in the range", ylabel="expected squared error", title=title)
    drawn.legend()
    return drawn


def _named(strategies: Any) -> list[tuple[str, LinearStrategy]]:
    if not isinstance(strategies, (Mapping, Sequence)):
        raise PlanError(f"give a list of strategies, or names with strategies, not a {type(strategies).__name__}")
    pairs = strategies.items() if isinstance(strategies, Mapping) else [(repr(each), each) for each in strategies]
    named = [(str(name), strategy) for name, strategy in pairs]
    if not named:
        raise PlanError("give at least one strategy to draw")
    for _, strategy in named:
        if not isinstance(strategy, LinearStrategy):
            raise PlanError(
                f"{described(strategy)} is not a linear strategy: only their error is known without the data"
            )
    domains = {strategy.domain for _, strategy in named}
    if len(domains) > 1:
        raise PlanError(f"the strategies are over different domains, of {sorted(domains)} bins: make them agree")
    return named


def _sizes(sizes: Any, domain: int) -> list[int]:
    row = integer_row(sizes)
    if row is None or (row > domain).any():
        raise PlanError(f"sizes of ranges are integers from 1 to the {domain} bins of the domain")
    return sorted({int(size) for size in row})


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
