"""Public tables for joint models, and noisy marginals of them."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from wpinq.marginals.cells import MeasuredView, View
from wpinq.marginals.planning import plan_marginals
from wpinq.runtime.arrays import Floats, Integers

SIX = ("workclass", "education-num", "marital-status", "race", "sex", "income>50K")
SIX_SIZES = (9, 16, 7, 5, 2, 2)


def adult() -> tuple[list[str], tuple[int, ...], Integers]:
    """The table Adult: names, sizes and codes of 14 attributes. Skips the test where the data are absent."""
    folder = Path(os.environ.get("WPINQ_DATA", "absent")) / "tables"
    if not (folder / "adult.csv.gz").exists():
        pytest.skip("WPINQ_DATA names no folder with tables/adult.csv.gz")
    sizes = json.loads((folder / "adult-domain.json").read_text(encoding="utf-8"))
    with gzip.open(folder / "adult.csv.gz", "rt", encoding="utf-8") as lines:
        names, *rows = csv.reader(lines)
    return names, tuple(sizes[name] for name in names), np.array(rows, dtype=np.int64)


def adult_six() -> Integers:
    """Six attributes of Adult, of `SIX_SIZES`."""
    names, sizes, codes = adult()
    places = [names.index(name) for name in SIX]
    assert tuple(sizes[place] for place in places) == SIX_SIZES
    return codes[:, places]


def made_table(sizes: Sequence[int], records: int, kinds: int = 30, seed: int = 1) -> Integers:
    """A table of records of some kinds, each kind with its own shares of values: attributes hang together."""
    random = np.random.default_rng(seed)
    kind = random.choice(kinds, records, p=random.dirichlet(np.full(kinds, 0.5)))
    columns = []
    for size in sizes:
        common = random.dirichlet(np.full(size, 0.3)) + 0.1 / size
        shares = np.array([random.dirichlet(common * random.choice([3, 10, 50]) + 1e-3) for _ in range(kinds)])
        places = random.random(records)[:, None] > np.cumsum(shares, axis=1)[kind]
        columns.append(np.minimum(places.sum(axis=1), size - 1))
    return np.stack(columns, axis=1).astype(np.int64)


def counts(codes: Integers, view: View, sizes: Sequence[int]) -> Floats:
    """The histogram of some attributes of a table."""
    shape = [sizes[i] for i in view]
    cells = np.ravel_multi_index([codes[:, i] for i in view], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def pairs_of(sizes: Sequence[int]) -> list[View]:
    return list(combinations(range(len(sizes)), 2))


def planned_views(codes: Integers, sizes: Sequence[int], epsilon: float, seed: int) -> list[MeasuredView]:
    """What the planner would measure for all pairs, with noise that is reproducible and not private."""
    plan = plan_marginals(tuple(sizes), "all pairs")
    return measured(codes, sizes, dict(zip(plan.measured, plan.shares, strict=True)), epsilon, seed)


def measured(
    codes: Integers, sizes: Sequence[int], shares: dict[View, float], epsilon: float, seed: int
) -> list[MeasuredView]:
    """Noisy counts of views with shares of epsilon."""
    random = np.random.default_rng(seed)
    found = []
    for view, share in shares.items():
        scale = 1 / (share * epsilon)
        exact = counts(codes, view, sizes)
        found.append(MeasuredView(view, exact + random.laplace(0.0, scale, exact.shape), scale))
    return found


def errors(marginals: dict[View, Floats], truth: dict[View, Floats]) -> tuple[float, float]:
    """The root mean square over all cells, and the mean total variation over the views."""
    gaps = [marginals[view] - truth[view] for view in truth]
    cells = sum(gap.size for gap in gaps)
    records = float(next(iter(truth.values())).sum())
    square = sum(float((gap**2).sum()) for gap in gaps) / cells
    return square**0.5, float(np.mean([np.abs(gap).sum() / 2 / records for gap in gaps]))
