"""Error of degree-sequence fits at equal total epsilon, on public graphs, with simulated (numpy) noise.

    python benchmarks/degree_fit.py [DATA] [--epinions] [--draws 5]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout.

- staircase: half of epsilon on the sequence, half on the CCDF, fitted together (Proserpio et al., section 3.1)
- isotonic:  all of epsilon on the sequence, isotonic regression, rounded to integers >= 0 (Hay et al.)
- ccdf:      all of epsilon on the CCDF, made monotone, rounded and transposed
- 1:9 split: the staircase with a tenth of epsilon on the sequence, the rest on the CCDF, weighted by their scales
- doubled:   NOT at equal epsilon: the staircase when each of its two measurements has all of epsilon

Epsilon is per use of the symmetric edges. The key domains are public bounds: the powers of two that follow the
number of nodes (sequence) and the largest degree (CCDF). Degrees beyond the domain of the sequence count as
errors. A `*` marks a method that does better than the staircase (the even split) at the same total epsilon.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wpinq.graphs.fitting import degree_sequence_from_ccdf, fit_degree_sequence, isotonic_degree_sequence

Array = npt.NDArray[np.float64]
GRAPHS = ["ca-GrQc", "ca-HepTh", "Caltech36", "ca-HepPh"]
EPSILONS = [0.1, 0.5, 1.0]
METHODS = ["staircase", "isotonic", "ccdf", "1:9 split", "doubled"]
AT_EQUAL_EPSILON = 4


def true_measurements(path: Path) -> tuple[Array, Array]:
    with gzip.open(path, "rt") as lines:
        edges = np.loadtxt(lines, dtype=np.int64)
    degrees = np.sort(np.unique(edges, return_counts=True)[1])[::-1]
    sequence = np.zeros(1 << len(degrees).bit_length())
    sequence[: len(degrees)] = degrees
    keys = np.arange(1 << int(degrees[0]).bit_length())
    ccdf = np.searchsorted(-degrees, -keys, side="left").astype(float)
    return sequence, ccdf


def errors(fit: npt.NDArray[np.int64] | Array, truth: Array) -> tuple[float, float]:
    length = max(len(fit), len(truth))
    difference = np.pad(fit, (0, length - len(fit))) - np.pad(truth, (0, length - len(truth)))
    return float(np.abs(difference).sum()), float((difference**2).sum())


def draw(
    sequence: Array, ccdf: Array, epsilon: float, rng: np.random.Generator
) -> Iterator[tuple[float, float, float]]:
    def noisy(truth: Array, spent: float) -> Array:
        return truth + rng.laplace(0.0, 1.0 / spent, len(truth))

    v, h = noisy(sequence, epsilon / 2), noisy(ccdf, epsilon / 2)
    start = time.perf_counter()
    staircase = fit_degree_sequence(v, h)
    seconds = time.perf_counter() - start
    yield *errors(staircase, sequence), seconds
    v, h = noisy(sequence, epsilon), noisy(ccdf, epsilon)
    yield *errors(np.maximum(np.rint(isotonic_degree_sequence(v)), 0.0), sequence), 0.0
    yield *errors(degree_sequence_from_ccdf(h), sequence), 0.0
    doubled = fit_degree_sequence(v, h)
    v, h = noisy(sequence, epsilon / 10), noisy(ccdf, epsilon * 9 / 10)
    yield *errors(fit_degree_sequence(v, h, sequence_scale=9.0, ccdf_scale=1.0), sequence), 0.0
    yield *errors(doubled, sequence), 0.0


def main() -> None:
    root = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description="Compare degree-sequence fits at equal total epsilon.")
    default = os.environ.get("WPINQ_DATA", root.parent / "shared" / "data")
    parser.add_argument("data", nargs="?", type=Path, default=Path(default))
    parser.add_argument("--epinions", action="store_true", help="add soc-Epinions1 (75,879 nodes)")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    print(f"median of {options.draws} draws, seed {options.seed}; * = beats the staircase at equal total epsilon")
    heads = [f"{m + ' ' + e:>13}" for e in ("L1", "L2²") for m in METHODS]
    print(f"{'graph':14}{'v keys':>8}{'h keys':>8}{'epsilon':>8}", *heads, f"{'staircase ms':>13}")
    for name in GRAPHS + ["soc-Epinions1"] * options.epinions:
        sequence, ccdf = true_measurements(options.data / "graphs" / f"{name}.txt.gz")
        for epsilon in EPSILONS:
            draws = [list(draw(sequence, ccdf, epsilon, rng)) for _ in range(options.draws)]
            medians = np.median(np.array(draws), axis=0)
            cells = []
            for column in medians.T[:2]:
                marks = ["*" if v < column[0] and k < AT_EQUAL_EPSILON else " " for k, v in enumerate(column)]
                cells += [f"{value:12,.0f}{mark}" for value, mark in zip(column, marks, strict=True)]
            print(f"{name:14}{len(sequence):8}{len(ccdf):8}{epsilon:8}", *cells, f"{1e3 * medians[0, 2]:13.1f}")


if __name__ == "__main__":
    main()
