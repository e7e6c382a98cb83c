"""Synthesis of a graph from answers alone, and the statistics that say how near it comes."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.api.query import Query
from wpinq.display.html import render
from wpinq.errors import AnswersError, WpinqError
from wpinq.expr.types import STR, TupleOf
from wpinq.graphs.edges import write_edges
from wpinq.graphs.synthesis import components
from wpinq.graphs.synthesis.directed import RECIPROCAL
from wpinq.graphs.synthesis.labels import LABELS, LabelMixing
from wpinq.graphs.synthesis.method import LOST, Method, SeedGraph, answered
from wpinq.graphs.synthesis.methods import find_method
from wpinq.graphs.synthesis.public_nodes import PublicNodes
from wpinq.graphs.synthesis.random_graphs import import_igraph, imported, local_clustering, rising
from wpinq.graphs.synthesis.uncertainty import Interval, phrase, warning
from wpinq.mcmc.chain import Chain
from wpinq.mcmc.proposal import Swaps
from wpinq.mcmc.run import ChainBars, Samples, Update, sample
from wpinq.mcmc.settings import CheckpointError, Settings, make_folder, write_atomically
from wpinq.mcmc.target import Prior
from wpinq.measure.answers import Answers
from wpinq.plan.node import sources, topological
from wpinq.runtime.arrays import Integers, numbered

# Statistics of a public graph: those that a synthesis fits, and those of its structure.

#: What `graph_statistics` gives: what methods measure, or may.
STATISTICS = ("nodes", "edges", "largest_degree", "triangles", "assortativity", "average_clustering")


def graph_statistics(edges: Any, nodes: int | None = None) -> dict[str, float]:
    """The numbers of nodes, edges and triangles, largest degree, assortativity and clustering.

    Assortativity is the correlation of the degrees of the two ends of an edge, nan where all degrees are equal.
    Average clustering is the mean over nodes of the share of pairs of neighbours that are neighbours, 0 for nodes of
    degree 1.

    Parameters
    ----------
    edges : array-like of shape (edges, 2)
        The undirected edges of a PUBLIC simple graph, each once. Nodes are what has an edge.
    nodes : int, optional
        The number of nodes, where there are others.

    Returns
    -------
    dict
        `nodes`, `edges`, `largest_degree`, `triangles`, `assortativity`, `average_clustering`.

    Notes
    -----
    Privacy cost: not applicable. The figures are exact: they are for synthetic graphs, never for protected ones.

    Examples
    --------
    >>> graph_statistics([(0, 1), (1, 2), (2, 0), (2, 3)])["triangles"]
    1
    """
    pairs = np.asarray(edges).reshape(-1, 2)
    joined, dense = numbered(pairs)
    degrees = np.bincount(dense.reshape(-1), minlength=joined)
    nodes = nodes or joined
    triangles, local = local_clustering(degrees, dense)
    ends, count = degrees[dense].astype(np.float64), max(len(pairs), 1)
    middle = (ends.sum() / (2 * count)) ** 2
    with np.errstate(invalid="ignore"):
        assortativity = ((ends[:, 0] * ends[:, 1]).sum() / count - middle) / ((ends**2).sum() / (2 * count) - middle)
    return {
        "nodes": nodes,
        "edges": len(pairs),
        "largest_degree": int(degrees.max(initial=0)),
        "triangles": triangles,
        "assortativity": float(assortativity),
        "average_clustering": float(local.sum()) / max(nodes, 1),
    }


# --- structure: components, mean path, modularity, largest core -------------------------------------------------------

#: What `graph_structure` gives.
STRUCTURE = ("components", "mean_path", "modularity", "largest_core")

#: All that is said of a synthetic graph, by name.
ALL_STATISTICS = STATISTICS + STRUCTURE

#: How many edges the searches for the mean path follow, about, and at least `_STARTS` searches.
_VISITS = 2_000_000
_STARTS = 32


def graph_structure(edges: Integers, nodes: int | None = None) -> dict[str, float]:
    """The components, mean path, modularity and largest core of a public graph.

    The mean path is over the pairs of nodes that a path joins; where a graph has more than about 2,000,000 edges times
    nodes, over the pairs of evenly chosen nodes, 32 or more, with all others. Modularity is that of the communities
    that the Leiden method finds (Traag et al., Scientific Reports 2019), in an order that is the same every time.
    The largest core is the largest k for which some subgraph has all degrees ≥ k.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        The undirected edges of a PUBLIC simple graph, each once, over nodes 0, 1, 2, …. Nodes are what has an edge.
    nodes : int, optional
        The number of nodes, where there are others: a component each.

    Returns
    -------
    dict
        By the names in `STRUCTURE`; a mean path or modularity that does not exist is nan.

    Notes
    -----
    Privacy cost: not applicable. They are for synthetic graphs, never for protected ones.

    Examples
    --------
    >>> graph_structure(np.array([(0, 1), (1, 2), (2, 0), (3, 4)]))
    {'components': 2, 'mean_path': 1.0, 'modularity': 0.375, 'largest_core': 2}
    """
    joined, dense = numbered(edges)
    alone = (nodes or joined) - joined
    if not joined:
        return {"components": alone, "mean_path": np.nan, "modularity": np.nan, "largest_core": 0}
    igraph = import_igraph()
    graph, flat = igraph.Graph(joined), np.ascontiguousarray(dense, dtype=np.int64)
    graph.add_edges(flat.data)  # the constructor takes twice as long
    searches = min(joined, max(_STARTS, _VISITS // len(edges)))
    starts = np.linspace(0, joined - 1, searches).astype(np.int64).tolist()
    lengths = np.array(graph.distances(source=starts), dtype=np.float64)
    igraph.set_random_number_generator(random.Random(0))
    try:
        modularity = float(graph.community_leiden("modularity").modularity)
    finally:
        igraph.set_random_number_generator(random)
    return {
        "components": len(graph.connected_components()) + alone,
        "mean_path": float(lengths[(lengths > 0) & np.isfinite(lengths)].mean()),
        "modularity": modularity,
        "largest_core": int(max(graph.coreness())),
    }


EdgeStatistics = Callable[[Integers], Mapping[str, float]]


def traced_statistics(edges: Any, nodes: int | None = None) -> dict[str, float]:
    """Triangles, assortativity and average clustering of a public graph.

    Swaps keep the other `graph_statistics`.
    """
    found = graph_statistics(edges, nodes)
    return {name: found[name] for name in ("triangles", "assortativity", "average_clustering")}


@dataclass(frozen=True, slots=True)
class SyntheticGraph:
    """A synthetic graph fitted to released answers, with a record of the fit.

    Attributes
    ----------
    edges : ndarray of int64, shape (edges, 2)
        The graph of the chain with the lowest final score, with triangles, components and labels mended where the
        answers tell of them: each edge once, the smaller node first, sorted. Nodes are 0, 1, 2, …; none represents a
        person. Of public nodes they are the places in `nodes.names`.
    method : Method
        How it was made.
    settings : Settings
        The settings of the chains, with their number of steps.
    answers : mapping
        The fitted answers.
    samples : Samples
        The chains with their traces.
    seeds : tuple of ndarray
        The graph that each chain began from.
    uncertainty : mapping
        The statistics of the SECRET graph, from name to `Interval`. Missing statistics were not measured; they are
        inherited from the seed graph.
    families : tuple of str
        The family of each of these graphs in words, and whether the answers tell it from others; empty where the
        method has one family.
    nodes : PublicNodes, optional
        The public nodes, of which any may have no edge. Which of them has which edges is drawn at random, within their
        labels where they have some.
    arcs : ndarray of int64, shape (directed edges, 2), optional
        The edges with their directions, of a directed graph; one in both directions is there twice.
    """

    edges: Integers
    method: Method
    settings: Settings
    answers: Mapping[str, Answers]
    samples: Samples
    seeds: tuple[Integers, ...]
    uncertainty: Mapping[str, Interval] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    nodes: PublicNodes | None = None
    arcs: Integers | None = None

    def statistics(self) -> dict[str, float]:
        """The statistics of the synthetic graph; see `graph_statistics` and `graph_structure`."""
        nodes = self._nodes if self.nodes else None
        found = {**graph_statistics(self.edges, nodes), **graph_structure(self.edges, nodes)}
        if self.arcs is not None:
            found |= {"edges": len(self.arcs), RECIPROCAL: len(self.arcs) - len(self.edges)}
        return found

    def __repr__(self) -> str:
        return f"<SyntheticGraph: {self._nodes:,} nodes, {len(self.edges):,} edges, fitted by {self.method.name}>"

    def _repr_html_(self) -> str:
        found = self.statistics()
        rows = [
            [name.replace("_", " "), f"{value:.6g}", phrase(self.uncertainty.get(name), value)]
            for name, value in found.items()
        ]
        return render("synthetic_graph.html", method=self.method.name, rows=rows, warning=warning(self.uncertainty))

    def to_networkx(self) -> Any:
        """The graph as a networkx.Graph; needs `pip install 'wpinq[graphs]'`.

        Privacy cost: none, it is public.
        """
        networkx = imported("networkx", "graphs")
        graph = networkx.Graph() if self.arcs is None else networkx.DiGraph()
        graph.add_nodes_from(self.nodes.names if self.nodes else range(self._nodes))
        graph.add_edges_from(self.named_edges())
        return graph

    def to_igraph(self) -> Any:
        """The graph as an igraph.Graph, whose vertices have the names of public nodes, or none.

        Privacy cost: none, it is public.
        """
        names = {"vertex_attrs": {"name": list(map(str, self.nodes.names))}} if self.nodes else {}
        return import_igraph().Graph(self._nodes, self._drawn, directed=self.arcs is not None, **names)

    def to_pandas(self) -> Any:
        """The edges as a pandas.DataFrame with the columns src and dst; needs `wpinq[tables]`.

        Privacy cost: none, it is public.
        """
        return imported("pandas", "tables").DataFrame(self.named_edges(), columns=["src", "dst"])

    def named_edges(self) -> list[Any]:
        """The edges by the names of public nodes, or by numbers where there are none."""
        return self.nodes.named(self._drawn) if self.nodes else self._drawn.tolist()

    @property
    def _drawn(self) -> Integers:
        return self.edges if self.arcs is None else self.arcs

    @property
    def _nodes(self) -> int:
        return len(self.nodes) if self.nodes else int(self.edges.max(initial=-1)) + 1

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the edge list; see `write_edges`."""
        write_edges(self.named_edges() if self.nodes else self._drawn, path)


def fit_graph(
    answers: Mapping[str, Answers],
    method: Method | str,
    settings: Settings,
    *,
    nodes: PublicNodes | None = None,
    prior: Prior | Sequence[Prior] = (),
    outside: bool = False,
    statistics: EdgeStatistics | None = traced_statistics,
    checkpoints: str | os.PathLike[str] | None = None,
    on_update: Callable[[Update], None] | None = None,
    on_uncertainty: Callable[[Mapping[str, Interval]], None] | None = None,
    progress: bool = False,
    compiled: bool = True,
) -> SyntheticGraph:
    """A public graph that fits answers, found by Markov chains that keep fitted degrees.

    Each chain begins from a graph of its own that the method draws, and swaps edges with stationary distribution
    `(π(A) · exp(−Σ_i ε_i · ‖Q_i(A) − m_i‖_1))^beta` over the graphs A of its degrees, where m_i are the answers, or
    what the method makes of them (`Method.estimate`), and π is the prior, uniform by default.

    Parameters
    ----------
    answers : mapping
        Name to Answers, those that the method measures.
    method : Method or str
        The method of the answers, or its name as for `find_method`.
    settings : Settings
        Steps, beta, chains, seed, stopping. Without a number of steps, 400 for each edge of the seed
        graph, which has the degrees that follow from answers, at most 20,000,000 and none once a chain is at rest.
    nodes : PublicNodes, optional
        The public nodes that the answers were measured with. With labels the mixing matrix is a further target, and
        after the walk a few edges are swapped where a clear cell is still off.
    prior : Prior or sequence of Prior
        As for `wpinq.mcmc.sample`, over `method.source()`. With one, chains do all their steps.
    outside : bool
        Whether records that were not released cost too what the graph has of them, as if released as 0; see `Target`.
    statistics : callable or None
        From the edges of a graph, an array of shape (edges, 2), to figures that are traced after each chunk.
        `traced_statistics` takes 0.66 s on 405,740 edges.
    checkpoints : path, optional
        A folder, made if absent. Run again with the same arguments, chains go on from there, to the last bit.
    on_update : callable, optional
        Told how chains go; see `Update`.
    on_uncertainty : callable, optional
        Called with the intervals of the secret graph's statistics (`SyntheticGraph.uncertainty`), before any graph is
        drawn.
    progress : bool
        Whether to show a bar for each chain instead.
    compiled : bool
        Whether compiled code is used where it can be.

    Returns
    -------
    SyntheticGraph

    Raises
    ------
    AnswersError
        When answers are missing, or too noisy for degrees.
    PlanError
        When there is no such method, or it does not fit the answers or the settings.
    CheckpointError
        When the folder holds another run, or cannot be written.

    Notes
    -----
    Privacy cost: none. It reads answers and nothing else, and imports nothing that holds data: `measure_graph` and the
    command `wpinq synthesize` measure first. Source: paper, section 5.1.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.graphs.synthesis import find_method
    >>> from wpinq.mcmc import Settings
    >>> method = find_method("tbi")
    >>> secret = [(a, b) for a in range(12) for b in range(12) if a != b and (a // 4 == b // 4 or abs(a - b) == 4)]
    >>> from wpinq.graphs.synthesis.method import Bounds
    >>> wanted = method.measurements(method.source(), 50, bounds=Bounds(nodes=20, degree=20))
    >>> answers = {name: wp.simulate(m, {"edges": secret}, seed=1) for name, m in wanted.items()}
    >>> graph = fit_graph(answers, method, Settings(steps=2000, seed=1), compiled=False)
    >>> graph.statistics()["edges"] == len(secret) // 2
    True
    """
    chosen = find_method(method) if isinstance(method, str) else method
    chosen.check(settings)
    public = None if nodes is None else len(nodes)
    estimates = chosen.estimate(answers, public)
    targets = [replace(target, outside=outside or target.outside) for target in estimates.targets]
    declared = sources([target.plan for target in targets])
    if len(declared) != 1:
        raise AnswersError(f"the targets of a method are over one source of edges, not {len(declared)}")
    ((source, declaration),) = declared.items()
    if nodes is not None and not declaration.unit.endswith(nodes.words):
        raise AnswersError("the answers were measured with other public nodes: give these")
    found = dict(estimates.intervals(np.random.default_rng(np.random.SeedSequence((settings.seed, 2)))))
    if public is not None:
        found["nodes"] = Interval(public, public, swamped=False, public=True)
    uncertainty = {name: found[name] for name in (*ALL_STATISTICS, RECIPROCAL) if name in found}
    if on_uncertainty is not None:
        on_uncertainty(uncertainty)
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence((settings.seed, 1)).spawn(settings.chains)]
    drawn = [estimates.seed(rng) for rng in generators]
    begun = [seed if isinstance(seed, SeedGraph) else SeedGraph(seed) for seed in drawn]
    mixing = None
    if nodes is not None and nodes.labels:
        (leaf,) = (node for node in topological([targets[0].plan]) if not node.inputs)
        mixing = LabelMixing.of(answered(answers, LABELS), nodes, max(len(seed.edges) for seed in begun))
        targets.append(mixing.target(Query(leaf)))
        begun = [_placed(seed, mixing.places(seed.edges, rng)) for seed, rng in zip(begun, generators, strict=True)]
    elif public is not None:
        begun = [_placed(seed, rng.permutation(public)) for seed, rng in zip(begun, generators, strict=True)]
    over_nodes: EdgeStatistics = partial(traced_statistics, nodes=public)
    traced = over_nodes if statistics is traced_statistics else statistics
    seeds = tuple(_array(seed.edges) for seed in begun)
    if min(map(len, seeds)) < 2:
        raise AnswersError(LOST)
    settled = settings.settled(max(map(len, seeds)), rest=not prior)
    starts = [{source: _labelled(seed, declaration.record)} for seed in seeds]
    folder = None if checkpoints is None else Path(checkpoints)
    if folder is not None:
        make_folder(folder)
    samples = sample(
        targets,
        [Swaps(source, chosen.symmetric, chosen.triad_share, seed.places, seed.reach) for seed in begun],
        starts,
        settled,
        prior=prior,
        statistics=None if traced is None else lambda chain: traced(_edges(chain)),
        checkpoints=folder,
        on_update=ChainBars() if progress else on_update,
        compiled=compiled,
    )
    edges, families = _edges(samples.chains[samples.best]), tuple(seed.family for seed in begun)
    arcs, rng = None, np.random.default_rng(np.random.SeedSequence((settings.seed, 3)))
    if np.isfinite(estimates.clustering) and found["triangles"].swamped:
        edges = _array(components.remove_triangles(edges, estimates.clustering, rng))
    if (held := found.get("triangles")) is not None:  # what falls apart is joined below, where that is known
        edges = _array(components.with_triangles(edges, held.low * (estimates.components is not None), held.high, rng))
    # with labels it would move cells of their matrix, and from places it has its large scale
    if estimates.finish is not None and mixing is None and begun[samples.best].places is None:
        edges = _array(estimates.finish(edges, rng))
    if (core := found.get("largest_core")) is not None:
        edges = _array(components.with_core(edges, core.low, core.high, rng))
    if (parts := estimates.components) is not None:
        edges = components.join_components(edges, parts, rng, found["components"].high if public is None else np.inf)
        edges = _array(components.split_components(edges, parts, rng))
    if mixing is not None:  # after components are joined, which moves a few edges between labels
        edges = _array(mixing.mended(edges, rng))
    if estimates.direct is not None:
        turned = estimates.direct(edges, rng)
        arcs = turned[np.lexsort(turned.T[::-1])]
    return SyntheticGraph(edges, chosen, settled, dict(answers), samples, seeds, uncertainty, families, nodes, arcs)


def _placed(seed: SeedGraph, order: Integers) -> SeedGraph:
    """The graph over public nodes in this order, which is drawn: no answer tells which is which."""
    places = None
    if seed.places is not None:
        places = np.zeros((len(order), seed.places.shape[1]))
        places[order[: len(seed.places)]] = seed.places
    return replace(seed, edges=order[seed.edges], places=places)


def _edges(chain: Chain) -> Integers:
    """The edges of a chain's graph in canonical order."""
    held = getattr(chain, "edge_array", None)
    if held is None:
        (records,) = chain.candidate.values()
        held = list({tuple(sorted((int(a), int(b)))) for a, b in records})
    return _array(held)


def _array(edges: Any) -> Integers:
    small, large = rising(np.asarray(edges).astype(np.int64).reshape(-1, 2))
    wide = int(large.max(initial=0)) + 1  # nodes are 0, 1, 2, …: one number holds a pair, and sorts faster than two
    return np.stack(np.divmod(np.sort(small * wide + large), wide), axis=1)


def _labelled(edges: Integers, record: Any) -> NDArray[Any]:
    """The edges with nodes of the type that the source declares: numbers, or their texts."""
    if isinstance(record, TupleOf) and record.elements[0] == STR:
        return edges.astype(str).astype(object)
    return edges


# A run in a folder, its answers, options and chains, from which it can be resumed.

FORMAT, FORMAT_VERSION = "wpinq synthesis run", 4
_RUN, _ANSWERS = "run.json", "answers"


def holds_run(folder: Path) -> bool:
    """Whether a run that can go on is in the folder."""
    return (folder / _RUN).exists()


def holds_answers(folder: Path) -> bool:
    """Whether answers were put into the folder."""
    return any((folder / _ANSWERS).glob("*.json"))


def prepare_folder(folder: Path) -> None:
    """Make the folder, which only its owner can open, and see that it can be written to.

    Raises
    ------
    CheckpointError
        When it cannot.
    """
    make_folder(folder)
    make_folder(folder / _ANSWERS)
    write_atomically(folder / "writable", b"")
    (folder / "writable").unlink()


def save_answers(folder: Path, name: str, table: Answers) -> None:
    """Put the answers of one measurement into a prepared folder."""
    write_atomically(folder / _ANSWERS / f"{name}.json", json.dumps(table.to_json()).encode())


def save_run(
    folder: Path, method: str, settings: Settings, answers: Mapping[str, Answers], nodes: PublicNodes | None = None
) -> None:
    """Put a run into a prepared folder; once this returns, it can go on from there.

    The method is named as for `find_method`.
    """
    for name, table in answers.items():
        save_answers(folder, name, table)
    known = {"format": FORMAT, "version": FORMAT_VERSION, "answers": list(answers)}
    known |= {"method": method, "settings": settings.to_json()}
    known["nodes"], known["labels"] = (None, ()) if nodes is None else (nodes.names, nodes.labels)
    write_atomically(folder / _RUN, json.dumps(known, indent=1).encode())


def load_run(folder: Path) -> tuple[Method, Settings, dict[str, Answers], PublicNodes | None]:
    """The method, the settings, the answers and the public nodes of the run in a folder.

    Raises
    ------
    CheckpointError
        When there is none, or it cannot be read.
    """
    if not holds_run(folder):
        raise CheckpointError(f"there is no run in {folder} that could go on: repeat the command that began it")
    try:
        known = json.loads((folder / _RUN).read_text(encoding="utf-8"))
        if (known["format"], known["version"]) == (FORMAT, FORMAT_VERSION):
            answers = {name: Answers.load(folder / _ANSWERS / f"{name}.json") for name in known["answers"]}
            nodes = known["nodes"]
            if nodes is not None:
                nodes = PublicNodes(tuple(nodes), tuple(known["labels"]))
            return find_method(known["method"]), Settings.from_json(known["settings"]), answers, nodes
    except (OSError, ValueError, KeyError, TypeError, AttributeError, WpinqError):
        pass
    raise CheckpointError(f"the run in {folder} cannot be read: it is damaged, or of another version")
