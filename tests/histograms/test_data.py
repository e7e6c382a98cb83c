"""The papers' results on public data; skipped where the data are absent."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from wpinq.histograms import CountOfCounts, HierarchicalCounts, Sorted, Tree, earth_movers_distance
from wpinq.noise.geometric import add_geometric


def load(*names: str) -> list[np.ndarray]:
    default = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("WPINQ_DATA", default))
    paths = [folder / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip(
            f"{', '.join(names)} not there: set WPINQ_DATA to the folder that holds hist1d/ and count-of-counts/"
        )
    return [np.load(path) for path in paths]


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.01])
def test_sorted_nettrace_is_ten_times_better_than_its_noisy_counts(epsilon):
    (counts,) = load("hist1d/NETTRACE.npy")
    truth = np.sort(counts).astype(float)
    noisy = truth + np.random.default_rng(1).laplace(0, 1 / epsilon, len(truth))
    fitted = Sorted(len(truth)).infer(noisy)
    assert ((fitted - truth) ** 2).sum() * 10 < ((noisy - truth) ** 2).sum()


def test_taxi_errors_are_those_of_the_paper():
    (taxi,) = load("count-of-counts/taxi_level1.npy")
    largest, groups = 20_000, int(taxi.sum())
    truth = np.pad(taxi, (0, largest + 1 - len(taxi)))
    for method, values, published in (
        ("cumulative", np.cumsum(truth)[:-1], 2819.8),
        ("unattributed", np.repeat(np.arange(len(truth)), truth), 11227.6),
    ):
        noisy = add_geometric(values.tolist(), 1.0, np.random.default_rng(2).bytes)
        error = earth_movers_distance(truth, CountOfCounts(groups, largest, method).infer(noisy))
        assert error == pytest.approx(published, rel=0.15), method


def test_taxi_hierarchy_is_consistent():
    levels = [np.atleast_2d(level) for level in load(*(f"count-of-counts/taxi_level{i}.npy" for i in (1, 2, 3)))]
    strategy = HierarchicalCounts(Tree([[2], [18, 10]]), levels[2].sum(axis=1), levels[2].shape[1] - 1)
    rng = np.random.default_rng(3)
    noisy = [[np.cumsum(row)[:-1] + rng.laplace(0, 3, len(row) - 1) for row in level] for level in levels]
    root, middle, leaves = strategy.infer(noisy, [1 / 3] * 3)
    assert (root[0] == sum(middle)).all()
    assert (middle[0] == sum(leaves[:18])).all()
    assert (middle[1] == sum(leaves[18:])).all()
    for leaf, true in zip(leaves, levels[2], strict=True):
        assert leaf.sum() == true.sum()
        assert leaf.min() >= 0
