"""The report of a synthesis as plain data, and plots of the graph and its chains."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wpinq.display.plots import axes_or_new
from wpinq.errors import AnswersError
from wpinq.graphs.synthesis.fit import SyntheticGraph, graph_statistics
from wpinq.graphs.synthesis.uncertainty import uncertainty_report
from wpinq.measure.answers import STAMP
from wpinq.measure.bill import Bill

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FORMAT, FORMAT_VERSION = "wpinq synthesis", 1


def report(graph: SyntheticGraph) -> dict[str, Any]:
    """All that is known of a synthetic graph, ready for `json.dump`.

    Every figure is of released answers or of synthetic graphs; nothing of the secret one is known here, its errors
    least of all.

    Parameters
    ----------
    graph : SyntheticGraph
        The result of `fit_graph`.

    Returns
    -------
    dict
        `method`; `bill`, source to epsilon, and `bill_text`; `measurements`, each with epsilon, noise scale and number
        of keys; `simulated`, whether any answers protect nothing; `settings`, with the public seed and the number of
        steps that was done unless chains stopped before; `public_nodes` in words, or null; `prior`, its terms as plain
        data, none where it is uniform;
        `steps_per_edge`, those done by the best chain; `chains`, each with its engine, trace and the statistics of the
        graph it began from, with its `family`; `best_chain`; `noise_level`;
        `graph`, the statistics of the synthetic graph; and
        `uncertainty`, of the same statistics of the secret graph: `confidence`, `statistics`, each with an interval,
        or with `not_measured`, and in words, and `swamped`, those of which noise leaves nothing to be seen. Figures
        that are not numbers are null.

    Notes
    -----
    Privacy cost: none.
    """
    bill = Bill({name: table.measurement for name, table in graph.answers.items()})
    samples, statistics = graph.samples, graph.statistics()
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "method": graph.method.name,
        "bill": {source: str(cost) for source, cost in bill.items()},
        "bill_text": str(bill).splitlines(),
        "measurements": {
            name: {"epsilon": str(table.epsilon), "scale": table.scale, "keys": len(table)}
            for name, table in graph.answers.items()
        },
        "simulated": any(table.simulated for table in graph.answers.values()),
        "settings": graph.settings.to_json(),
        "public_nodes": graph.nodes and graph.nodes.words,
        "prior": [prior.to_json() for prior in samples.priors],
        "steps_per_edge": samples.traces[samples.best].steps[-1] / max(len(graph.edges), 1),
        "chains": [
            {
                "engine": chain.note,
                "trace": {**_plain(trace.to_json()), "acceptance": trace.acceptance},
                "began_from": _plain(graph_statistics(seed, len(graph.nodes) if graph.nodes else None)),
                "family": family,
            }
            for chain, trace, seed, family in zip(
                samples.chains, samples.traces, graph.seeds, graph.families, strict=True
            )
        ],
        "best_chain": samples.best,
        "noise_level": _plain(samples.noise),
        "graph": _plain(statistics),
        "uncertainty": uncertainty_report(graph.uncertainty, statistics),
    }


def _plain(value: Any) -> Any:
    """The same data without nan and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- plots ------------------------------------------------------------------------------------------------------------


def plot_degrees(graph: SyntheticGraph, axes: Any = None) -> Axes:
    """The degree distribution of the synthetic graph, as numbers of nodes of at least a degree.

    Parameters
    ----------
    graph : SyntheticGraph
        The result of `fit_graph`.
    axes : matplotlib Axes, optional
        Where to draw; a new figure unless given.
    """
    drawn = axes_or_new(axes)
    degrees = np.sort(_degrees(graph.edges))[::-1]
    drawn.step(degrees, np.arange(1, len(degrees) + 1), where="post")
    drawn.set(xscale="log", yscale="log", xlabel="degree", ylabel="nodes of at least this degree")
    return _named(drawn, graph, "degrees")


def plot_joint_degrees(graph: SyntheticGraph, axes: Any = None) -> Axes:
    """The degrees of both ends of each edge of the synthetic graph, on a logarithmic grid.

    Edges count both ways.

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
    """A figure along each chain: the score beside the noise level, or a traced statistic.

    Parameters
    ----------
    graph : SyntheticGraph
        The result of `fit_graph`.
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
