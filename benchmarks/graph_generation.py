"""Synthetic graphs beside five published mechanisms, by the fifteen questions of a public benchmark (PGB, 2024).

    python benchmarks/graph_generation.py [DATA] [--graphs minnesota ...] [--epsilon 0.5 1 2] [--draws 3]
        [--nodes] [--results FILE] [--tables]

DATA holds `pgb/*.txt.gz`, `pgb/peers.tsv` with the errors of the other mechanisms, and `graphs/*.txt.gz`; by default
$WPINQ_DATA, else ../shared/data next to the checkout. Graphs are those of the two folders by the names of their files
(`hepph` is ca-HepPh), and generated ones: lfr, power-law-cluster, blocks, geometric, small-world, affiliation.

It reads true values of public graphs and prints errors against them: a benchmark, not a release. Noise is simulated
from numpy, the same for a draw every time. One undirected edge is protected, and epsilon is the whole cost.

Errors are relative, but for distributions of degrees and distances (Kullback-Leibler divergence of true to made),
eigenvector centrality (mean absolute difference of the largest 1 % of the entries) and communities (1 minus the
normalised mutual information). A cell is the mean over draws. The comparison leaves out nodes, edges, average degree
and communities, which other mechanisms answer from a public list of nodes. `--nodes` makes the nodes public here too,
and compares all fifteen.

The first table has the cells of the graphs with peers, the second the errors on all graphs, and the third structure,
true and made. With `--results` draws are kept in a file, from which the next run goes on; `--tables` draws none.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import igraph
import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.linalg import eigsh

from wpinq.graphs import Bounds, fit_graph
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.public_nodes import PublicNodes
from wpinq.mcmc import Settings
from wpinq.runtime.arrays import numbered

sys.path.insert(0, str(Path(__file__).parent))
from synthesis_budget import generated, read, simulated, weights

Edges = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PEERED = ["minnesota", "poli", "gnutella", "ba"]
GENERATED = ["lfr", "power-law-cluster", "blocks", "geometric", "small-world", "affiliation"]
FILES = {"hepph": "ca-HepPh"}
QUESTIONS = {
    "triangles": "triangles",
    "degvar": "degree variance",
    "degKL": "degree distribution",
    "diam": "diameter",
    "path": "mean path",
    "distKL": "distance distribution",
    "gcc": "global clustering",
    "acc": "average clustering",
    "mod": "modularity",
    "assort": "assortativity",
    "evc": "eigenvector centrality",
    "nodes": "nodes",
    "edges": "edges",
    "avgdeg": "average degree",
    "nmi": "communities",
}
"""Columns of peers.tsv; the first eleven do not hang on a public list of nodes."""
COMPARED = list(QUESTIONS)[:11]
STRUCTURE = ("edges", "components", "core", "squares", "diam", "path", "mod", "triangles", "acc", "assort")

#: More nodes than this are large: the distances are from 400 of them.
LARGE, SOURCES = 5_000, 400
#: Errors below it are as good as none: a cell that others win by less is even, and none worse than twice the best.
SMALL = 0.01
_COMMUNITY_RUNS = 5


def graph(name: str, data: Path) -> Edges:
    """The undirected edges of a graph, each once, over nodes 0, 1, 2, …."""
    if name in GENERATED:
        edges = np.array(_generated(name), dtype=np.int64)
    elif (file := data / "pgb" / f"{name}.txt.gz").exists():
        edges = np.loadtxt(file, dtype=np.int64)
    else:
        edges = read(FILES.get(name, name), data)
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return numbered(edges)[1]


def _generated(name: str) -> Any:
    """The edges of a generated graph, the same every time."""
    if name in ("lfr", "power-law-cluster"):
        return generated({"lfr": "communities"}.get(name, name))
    igraph.set_random_number_generator(random.Random(1))
    if name == "blocks":  # 18 groups of 200, a third of the edges between them
        inside, between = 17 * 0.68 / 199, 17 * 0.32 / 3400
        chances = np.where(np.eye(18, dtype=bool), inside, between).tolist()
        return igraph.Graph.SBM(chances, [200] * 18).get_edgelist()
    if name == "geometric":
        return igraph.Graph.GRG(3000, 0.0346).get_edgelist()
    if name == "small-world":
        return igraph.Graph.Watts_Strogatz(1, 3000, 4, 0.05).get_edgelist()
    rng, edges = np.random.default_rng(1), list[tuple[int, int]]()
    for size in np.minimum(3 + 6 * rng.pareto(2, 1500), 200).astype(np.int64):  # affiliation: about 7 edges a member
        members = rng.choice(4000, size, replace=False)
        one, other = np.triu_indices(size, 1)
        known = rng.random(len(one)) < 0.6 * min(1.0, 12 / size)
        edges += zip(members[one[known]].tolist(), members[other[known]].tolist(), strict=True)
    return edges


def profile(edges: Edges, nodes: int) -> dict[str, Any]:
    """All that the questions ask of a graph over nodes 0, 1, …: numbers, distributions, communities."""
    made = igraph.Graph(nodes)
    made.add_edges(np.ascontiguousarray(edges).data)
    igraph.set_random_number_generator(random.Random(0))
    degrees = np.array(made.degree(), dtype=np.float64)
    lengths = _lengths(made)
    best = max((made.community_multilevel() for _ in range(_COMMUNITY_RUNS)), key=lambda found: found.modularity)
    both = np.concatenate([edges, edges[:, ::-1]]).T
    adjacency = coo_array((np.ones(len(both.T)), both), shape=(nodes, nodes)).tocsr()
    wedges = (adjacency @ adjacency).tocoo()
    common = wedges.data[wedges.coords[0] < wedges.coords[1]]
    leading = np.abs(eigsh(adjacency, k=1, which="LA", v0=np.ones(nodes))[1][:, 0])
    return {
        "nodes": nodes,
        "edges": len(edges),
        "avgdeg": degrees.mean(),
        "degvar": degrees.var(),
        "degKL": np.bincount(degrees.astype(np.int64)) / nodes,
        "triangles": round(float(adjacency.multiply(wedges.tocsr()).sum()) / 6),
        "diam": _diameter(made),
        "path": float(np.arange(len(lengths)) @ lengths),
        "distKL": lengths,
        "gcc": made.transitivity_undirected(mode="zero"),
        "acc": made.transitivity_avglocal_undirected(mode="zero"),
        "mod": best.modularity,
        "assort": made.assortativity_degree(directed=False),
        "evc": -np.sort(-leading),
        "nmi": best.membership,
        "components": len(made.connected_components()),
        "core": max(made.coreness()),
        "squares": float((common * (common - 1)).sum() / 4),
    }


def _diameter(made: Any) -> int:
    """The longest distance of two nodes that reach one another: of the largest component, or one as large.

    Nodes at most i steps from a middle one are at most 2i apart: the search goes from the farthest to the nearest.
    """
    longest = 0
    for part in sorted(made.connected_components(), key=len, reverse=True):
        if len(part) <= longest + 1:
            break
        (path,) = made.get_shortest_paths(part[0], to=max(zip(made.distances(part[0], part)[0], part, strict=True))[1])
        far = made.distances(path[-1], part)[0]
        path = made.get_shortest_paths(path[-1], to=max(zip(far, part, strict=True))[1])[0]
        levels = np.array(made.distances(path[len(path) // 2], part)[0])
        longest = max(longest, len(path) - 1)
        for level in range(int(levels.max()), 0, -1):
            if longest >= 2 * level:
                break
            longest = max(longest, *made.eccentricity(np.array(part)[levels == level].tolist()), 0)
    return int(longest)


def _lengths(made: Any) -> Floats:
    """The share of each distance 0, 1, 2, … among pairs of nodes that reach one another."""
    if made.vcount() <= LARGE:
        counts = np.array([0, *(count for _, _, count in made.path_length_hist(directed=False).bins())])
        return np.asarray(counts / counts.sum())
    sources = np.random.default_rng(0).choice(made.vcount(), SOURCES, replace=False)
    found = np.array(made.distances(source=sources.tolist()))
    counts = np.bincount(found[np.isfinite(found) & (found > 0)].astype(np.int64))
    return np.asarray(counts / counts.sum())


def divergence(true: Floats, made: Floats) -> float:
    """The Kullback-Leibler divergence, with machine epsilon added inside of the logarithm."""
    size, tiny = max(len(true), len(made)), np.finfo(np.float64).eps
    p, q = (np.pad(each, (0, size - len(each))) for each in (true, made))
    return float((p * np.log((p + tiny) / (q + tiny))).sum())


def errors(true: dict[str, Any], made: dict[str, Any], same_nodes: bool) -> dict[str, float | None]:
    """The error of each question; none of communities where the nodes are others."""
    found: dict[str, float | None] = {}
    for name in QUESTIONS:
        if name in ("degKL", "distKL"):
            found[name] = divergence(true[name], made[name])
        elif name == "evc":
            count = max(1, round(len(true[name]) / 100))
            largest = (np.pad(each[name][:count], (0, max(0, count - len(each[name])))) for each in (true, made))
            found[name] = float(np.abs(np.subtract(*largest)).mean())
        elif name == "nmi":
            score = igraph.compare_communities(true[name], made[name], method="nmi") if same_nodes else None
            found[name] = None if score is None else 1 - score
        else:
            found[name] = float(abs(true[name] - made[name]) / abs(true[name])) if abs(true[name]) > 0 else None
    return found


# --- draws of this product --------------------------------------------------------------------------------------------


class Results:
    """The draws so far, in a file of a line each if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")

    def of(self, **wanted: Any) -> list[dict[str, Any]]:
        return [row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())]


def draw_all(given: argparse.Namespace, results: Results) -> None:
    """All draws that the results lack."""
    method = find_method("tags")
    for name in given.graphs:
        cells = [(epsilon, draw) for epsilon in given.epsilon for draw in range(1, given.draws + 1)]
        cells = [(e, d) for e, d in cells if not results.of(graph=name, epsilon=float(e), draw=d, public=given.nodes)]
        if not cells:
            continue
        edges = graph(name, given.data)
        nodes, outputs = int(edges.max()) + 1, dict[str, Any]()
        true = profile(edges, nodes)
        if not results.of(graph=name, draw=0):
            results.add({"graph": name, "draw": 0, "structure": {key: float(true[key]) for key in STRUCTURE}})
        for epsilon, draw in cells:
            public = PublicNodes.of(range(nodes)) if given.nodes else None
            bounds = Bounds(nodes=nodes if given.nodes else None)
            measurements = method.measurements(method.source(nodes=public), epsilon, bounds=bounds)
            outputs |= {
                query: weights(measurement, edges, method.symmetric)
                for query, measurement in measurements.items()
                if query not in outputs
            }
            answers = simulated(
                method, measurements, outputs, np.random.default_rng([draw, int(1000 * float(epsilon))])
            )
            began = time.perf_counter()
            fitted = fit_graph(answers, method, Settings(seed=draw), nodes=public, statistics=None)
            seconds = time.perf_counter() - began
            made = profile(fitted.edges, nodes if given.nodes else int(fitted.edges.max()) + 1)
            told = {**made, "average_clustering": made["acc"], "assortativity": made["assort"]}
            told |= {"mean_path": made["path"], "modularity": made["mod"], "largest_core": made["core"]}
            told["largest_degree"] = len(made["degKL"]) - 1
            row = {
                "graph": name,
                "epsilon": float(epsilon),
                "draw": draw,
                "public": given.nodes,
                "seconds": round(seconds, 1),
                "errors": errors(true, made, same_nodes=given.nodes),
                "structure": {key: float(made[key]) for key in STRUCTURE},
                "outside": [key for key, interval in fitted.uncertainty.items() if not interval.holds(told[key])],
            }
            results.add(row)
            print(f"{name}, epsilon {epsilon}, draw {draw}: {seconds:.0f} s", file=sys.stderr, flush=True)


# --- tables -----------------------------------------------------------------------------------------------------------


def peers(data: Path) -> dict[tuple[str, float], dict[str, dict[str, float]]]:
    """For each graph and epsilon the errors of each mechanism, of those that are there."""
    found: dict[tuple[str, float], dict[str, dict[str, float]]] = defaultdict(dict)
    path = data / "pgb" / "peers.tsv"
    rows = csv.DictReader(path.read_text().splitlines(), delimiter="\t") if path.exists() else []
    for row in rows:
        numbers = {name: float(row[name]) for name in QUESTIONS if row[name]}
        if "nmi" in numbers:
            numbers["nmi"] = 1 - numbers["nmi"]
        if row["method"] != "wpinq":
            found[row["graph"], float(row["epsilon"])][row["method"]] = numbers
    return found


def mean_errors(rows: list[dict[str, Any]], name: str) -> float | None:
    """To four digits, as those of the others."""
    found = [row["errors"][name] for row in rows if row["errors"][name] is not None]
    return round(float(np.mean(found)), 4) if found else None


def table(head: list[str], rows: list[list[str]]) -> None:
    print("\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]))


def show_cells(given: argparse.Namespace, results: Results) -> None:
    """The cells with peers: ours beside the best of them, and the counts."""
    published, compared = peers(given.data), list(QUESTIONS) if given.nodes else COMPARED
    settings = [(name, float(e)) for name in given.graphs for e in given.epsilon if (name, float(e)) in published]
    settings = [(n, e) for n, e in settings if any(row["draw"] for row in results.of(graph=n, epsilon=e))]
    if not settings:
        return
    cells, best, even, worse, winners = 0, 0, 0, list[str](), defaultdict[str, int](int)
    lines = []
    for question in compared:
        line = [QUESTIONS[question]]
        for name, epsilon in settings:
            ours = mean_errors(results.of(graph=name, epsilon=epsilon, public=given.nodes), question)
            others = {who: found[question] for who, found in published[name, epsilon].items() if question in found}
            rival = min(others, key=others.__getitem__)
            bar, cells = others[rival], cells + 1
            if ours is not None and ours <= bar:
                best, rival_shown = best + 1, f"< {bar:.3f}"
                winners["wpinq"] += 1
            else:
                winners[rival] += 1
                rival_shown = f"> {bar:.3f} {rival}"
                even += ours is not None and max(ours, bar) <= SMALL
                if question != "diam" and (ours is None or max(ours, SMALL) > 2 * max(bar, SMALL)):
                    worse.append(f"{QUESTIONS[question]} of {name} at {epsilon:g}")
                    rival_shown += " !"
            line.append("-" if ours is None else f"{ours:.3f} {rival_shown}")
        lines.append(line)
    print("\nOurs beside the best of the others (< best, > worse, ! worse than twice)\n")
    table(["question", *(f"{name} {epsilon:g}" for name, epsilon in settings)], lines)
    print(
        f"\n{cells} cells, best in {best} ({best / cells:.0%}), even in {even} where both are below {SMALL}:", end=" "
    )
    print(f"together {(best + even) / cells:.0%}; worse than twice in {len(worse)}, diameters aside")
    print("; ".join(worse))
    print("best cells: " + ", ".join(f"{who} {count}" for who, count in sorted(winners.items(), key=lambda w: -w[1])))


def show_errors(given: argparse.Namespace, results: Results) -> None:
    """The errors of each graph and epsilon, and its structure beside the true one."""
    errors_lines, structures = [], []
    for name in given.graphs:
        if known := results.of(graph=name, draw=0):
            structures.append([name, "true", *(f"{known[0]['structure'][key]:.4g}" for key in STRUCTURE), "", ""])
        for epsilon in map(float, given.epsilon):
            if not (rows := results.of(graph=name, epsilon=epsilon, public=given.nodes)):
                continue
            found = [mean_errors(rows, question) for question in QUESTIONS]
            errors_lines.append([f"{name} {epsilon:g}", *("-" if each is None else f"{each:.3f}" for each in found)])
            means = [np.mean([row["structure"][key] for row in rows]) for key in STRUCTURE]
            outside = sorted(key for row in rows for key in row["outside"])
            told = ", ".join(f"{key} {outside.count(key)}" for key in dict.fromkeys(outside))
            seconds = f"{np.mean([row['seconds'] for row in rows]):.0f}"
            structures.append([name, f"{epsilon:g}", *(f"{each:.4g}" for each in means), told, seconds])
    print("\nErrors, the mean over draws\n")
    table(["graph", *QUESTIONS], errors_lines)
    print("\nStructure: true, then the mean over draws; draws outside of their own intervals; seconds of a fit\n")
    table(["graph", "epsilon", *STRUCTURE, "outside", "seconds"], structures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("WPINQ_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
    parser.add_argument("data", nargs="?", type=Path, default=Path(default), help="holds pgb/ and graphs/")
    parser.add_argument("--graphs", nargs="+", default=[*PEERED, *GENERATED])
    parser.add_argument("--epsilon", nargs="+", default=["0.5", "1", "2"])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--nodes", action="store_true", help="public nodes, and all fifteen questions")
    parser.add_argument("--results", type=Path, help="a file that keeps draws")
    parser.add_argument("--tables", action="store_true", help="show what the file holds")
    given = parser.parse_args()
    results = Results(given.results)
    if not given.tables:
        draw_all(given, results)
    show_cells(given, results)
    show_errors(given, results)


if __name__ == "__main__":
    main()
