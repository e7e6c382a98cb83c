"""Plots of synthetic graphs and of the chains that made them. Matplotlib, lazily; nothing secret can be drawn."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wpinq.display.plots import axes_or_new
from wpinq.errors import AnswersError
from wpinq.graphs.synthesis.workflow import SyntheticGraph
from wpinq.measure.answers import STAMP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_degrees(graph: SyntheticGraph, axes: Any = None) -> Axes:
    """The degree distribution of the synthetic graph: for each degree, the number of nodes of at least that degree.

    Parameters
    ----------
    graph : SyntheticGraph
        What `synthesize` gave.
    axes : matplotlib Axes, optional
        Where to draw; a new figure unless given.
    """
    drawn = axes_or_new(axes)
    degrees = np.sort(_degrees(graph.edges))[::-1]
    drawn.step(degrees, np.arange(1, len(degrees) + 1), where="post")
    drawn.set(xscale="log", yscale="log", xlabel="degree", ylabel="nodes of at least this degree")
    return _named(drawn, graph, "degrees")


def plot_joint_degrees(graph: SyntheticGraph, axes: Any = None) -> Axes:
    """The degrees of the two ends of each edge of the synthetic graph, both ways, as counts on a logarithmic grid.

    Parameters
    ----------
    graph, axes
        As for `plot_degrees`.
    """
    from matplotlib.colors import LogNorm

    drawn = axes_or_new(axes)
    _, dense = np.unique(graph.edges, return_inverse=True)
    ends = _degrees(graph.edges)[dense.reshape(-1, 2)]
    both = np.concatenate([ends, ends[:, ::-1]])
    largest = int(both.max(initial=1))
    bounds = np.unique(np.rint(np.geomspace(1, largest + 1, min(largest + 1, 40))))
    counts, _, _ = np.histogram2d(both[:, 0], both[:, 1], bins=[bounds, bounds])
    held = np.ma.masked_equal(counts.T, 0)
    mesh = drawn.pcolormesh(bounds, bounds, held, norm=LogNorm(vmin=1, vmax=max(2.0, counts.max())))
    drawn.figure.colorbar(mesh, ax=drawn, label="directed edges")
    drawn.set(xscale="log", yscale="log", xlabel="degree of one end", ylabel="degree of the other end")
    return _named(drawn, graph, "joint degrees")


def plot_trace(graph: SyntheticGraph, quantity: str = "score", axes: Any = None) -> Axes:
    """A figure along each chain: the score, with what noise alone would leave, or a traced statistic.

    Parameters
    ----------
    graph : SyntheticGraph
        What `synthesize` gave.
    quantity : str
        "score", "acceptance", or a statistic that was traced: "triangles", "assortativity", "average_clustering".
    axes : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Raises
    ------
    AnswersError
        When there is no such trace.
    """
    drawn = axes_or_new(axes)
    for number, trace in enumerate(graph.samples.traces):
        lines = {"score": trace.score, "acceptance": trace.acceptance, **trace.statistics}
        if quantity not in lines:
            raise AnswersError(f"there is no trace of {quantity!r}; there are {', '.join(lines)}")
        drawn.plot(trace.steps, lines[quantity], marker=".", label=f"chain {number}")
    if quantity == "score" and math.isfinite(graph.samples.noise):
        drawn.axhline(graph.samples.noise, color="0.5", linestyle="--", label="noise alone")
    drawn.set(xlabel="steps", ylabel=quantity.replace("_", " "))
    drawn.legend()
    return _named(drawn, graph, quantity.replace("_", " ") + " along the chains")


def save_plots(graph: SyntheticGraph, folder: str | os.PathLike[str]) -> list[Path]:
    """Draw all into png files of a folder, made if absent; their paths."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    drawn = {"degrees": plot_degrees(graph), "joint_degrees": plot_joint_degrees(graph)}
    for quantity in ("score", *graph.samples.traces[0].statistics):
        drawn[quantity] = plot_trace(graph, quantity)
    paths = []
    for name, axes in drawn.items():
        paths.append(place / f"{name}.png")
        cast("Figure", axes.figure).savefig(paths[-1])
    return paths


def _degrees(edges: Any) -> Any:
    """The degree of each node that has an edge, in the order of the nodes."""
    return np.unique(edges, return_counts=True)[1]


def _named(axes: Axes, graph: SyntheticGraph, what: str) -> Axes:
    simulated = any(table.simulated for table in graph.answers.values())
    axes.set_title(f"{what}, synthetic graph by {graph.method.name}" + (f" ({STAMP})" if simulated else ""))
    return axes
