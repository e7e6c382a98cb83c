"""What the scripts of the paper's results share: its figures, the graphs, measurements at its prices, two seeds.

These scripts read true values of PUBLIC graphs, and print errors against them: they are experiments, not releases. The
noise is drawn by `wp.simulate` from numpy and protects nothing.
"""

from __future__ import annotations

import argparse
import gzip
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import wpinq as wp
from wpinq.graphs import degree_ccdf, degree_sequence, nodes, nodes_from_weight
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.methods import DegreesThen
from wpinq.graphs.synthesis.random_graphs import fit_degrees, graphical, random_graph
from wpinq.measure.answers import Answers

Edges = npt.NDArray[np.int64]
EPSILON = 0.1
"""The paper's, per use of the symmetric directed edges."""


@dataclass(frozen=True)
class Paper:
    """What the paper prints of a graph (Tables 1 and 2): nodes, directed edges, largest degree, triangles,
    assortativity; of its random counterpart the same; triangles of the seed and after MCMC, where it ran TbI."""

    name: str
    file: str
    table_1: tuple[int, int, int, int, float]
    random: tuple[int, int, int, int, float]
    seed: int | None = None
    after: int | None = None

    @property
    def triangles(self) -> int:
        return self.table_1[3]


PAPER = {
    paper.file: paper
    for paper in (
        Paper("CA-GrQc", "ca-GrQc", (5242, 28980, 81, 48260, 0.66), (5242, 28992, 81, 586, 0.00), 643, 35201),
        Paper(
            "CA-HepPh",
            "ca-HepPh",
            (12008, 237010, 491, 3358499, 0.63),
            (11996, 237190, 504, 323867, 0.04),
            248629,
            2723633,
        ),
        Paper("CA-HepTh", "ca-HepTh", (9877, 51971, 65, 28339, 0.27), (9870, 52056, 66, 322, 0.05), 222, 16889),
        Paper("Caltech", "Caltech36", (769, 33312, 248, 119563, -0.06), (771, 33368, 238, 50269, 0.17), 45170, 129475),
        Paper(
            "Epinions",
            "soc-Epinions1",
            (75879, 1017674, 3079, 1624481, -0.01),
            (75882, 1018060, 3085, 1059864, 0.00),
        ),
    )
}


def options(description: str, graphs: list[str], steps: int, seeds: int) -> argparse.ArgumentParser:
    """The arguments that the scripts have in common."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[1]
    default = os.environ.get("WPINQ_DATA", root.parent / "shared" / "data")
    parser.add_argument("data", nargs="?", type=Path, default=Path(default), help="holds graphs/*.txt.gz")
    parser.add_argument("--graphs", nargs="+", default=graphs, help="names of files in DATA/graphs, without .txt.gz")
    parser.add_argument("--steps", type=int, default=steps, help="of each chain")
    parser.add_argument("--seeds", type=int, default=seeds, help="how many runs: seeds 1, 2, …")
    return parser


def read(data: Path, name: str) -> Edges:
    """The undirected edges of a public graph, each once."""
    with gzip.open(data / "graphs" / f"{name}.txt.gz", "rt") as lines:
        return np.loadtxt(lines, dtype=np.int64, ndmin=2)


def degrees(edges: Edges) -> Edges:
    """Falling degrees of the nodes that have an edge."""
    return np.sort(np.unique(edges, return_counts=True)[1])[::-1]


def random_counterpart(edges: Edges, seed: int) -> Edges:
    """A random simple graph with the same degrees."""
    return random_graph(degrees(edges), np.random.default_rng(seed))


def configuration_graph(falling: Edges, rng: np.random.Generator) -> Edges:
    """The configuration model without what it repeats: ends are paired at random, loops are dropped, edges that came
    out twice are one. Large degrees come out smaller."""
    ends = rng.permutation(np.repeat(np.arange(len(falling)), falling))
    pairs = np.sort(ends[: len(ends) // 2 * 2].reshape(-1, 2), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


class FromConfigurations(DegreesThen):
    """The paper's method, begun from `configuration_graph`, as the paper's seeds apparently were."""

    def seed(self, answers: Mapping[str, Answers], rng: np.random.Generator) -> list[tuple[int, int]]:
        drawn = configuration_graph(graphical(fit_degrees(answers)), rng)
        return [(int(a), int(b)) for a, b in drawn]


def paper_method(query: str, bucket: int = 20, triad_share: float = 0.0, configurations: bool = False) -> DegreesThen:
    """The method of section 5.1 for a query, with the share of closing proposals and the seed that are wanted."""
    method = find_method(query, bucket, triad_share)
    assert isinstance(method, DegreesThen)
    return FromConfigurations(method.name, method.fits, method.triad_share) if configurations else method


def measure(edges: Edges, method: DegreesThen, epsilon: float, seed: int) -> dict[str, Answers]:
    """What the paper measures of the symmetric directed graph, each query once at `epsilon`.

    Degree CCDF, degree sequence and node count, 3 uses, and the queries of the method. The keys of the CCDF go up to a
    public bound, the next power of two above the largest degree; those of the sequence follow from the node count, and
    those of the method's queries from the fitted degrees.
    """
    source = method.source()
    # The random seed of numpy decides all noise; a bound in powers of two says little about the graph.
    data = {"edges": [tuple(edge) for edge in np.concatenate([edges, edges[:, ::-1]]).tolist()]}

    def released(query: wp.Query, keys: Any = None) -> Answers:
        draws.append(len(draws))
        return wp.simulate(query.noisy_count(epsilon, keys), data, seed=10 * seed + len(draws))

    draws: list[int] = []
    answers = {
        "degree_ccdf": released(degree_ccdf(source), range(1 << int(degrees(edges)[0]).bit_length())),
        "nodes": released(nodes(source).select(lambda node: "nodes"), ["nodes"]),
    }
    count = nodes_from_weight(answers["nodes"]["nodes"])
    answers["degree_sequence"] = released(degree_sequence(source), range(max(2, int(count + 10 * 2 / epsilon))))
    for name, fit in method.fits.items():
        answers[name] = released(fit.recipe(source), None if fit.keys is None else fit.keys(fit_degrees(answers)))
    return answers


def bills(answers: Mapping[str, Answers]) -> str:
    """What the measurements cost, to one directed and to one undirected edge."""
    directed = sum(answer.epsilon * sum(wp.Query(answer.plan).uses().values()) for answer in answers.values())
    return f"costs {float(directed):g} to one directed edge, {float(2 * directed):g} to one undirected edge"


def claim(text: str, measured: str, holds: bool | None) -> None:
    verdict = {True: "holds", False: "DOES NOT HOLD", None: "see above"}[holds]
    print(f"  claim:    {text}\n  measured: {measured}  -> {verdict}\n", flush=True)
