"""Means, variances, covariances, correlations and slopes: coverage and width of intervals, on five kinds of data.

    python benchmarks/moments.py [--draws 2000] [--sizes 30 300 10000] [--epsilon 1]

Each line has the share of draws whose 95 % interval holds the true statistic of the data as held (no interval counts
as all values), its median width, the width of the interval with the linearised statistic at the true totals (the best
that is known, where it covers), the share of draws without an interval, and the median error. Widths and errors are in
units of the ranges. The noise is that of numpy: nothing here is protected.

And the mean beside a sum about the middle and a count of half the weight each, which have twice the variance.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpinq.measure.answers import Answers
from wpinq.sinks.clamped import interval_of_ends, mean_of_ends
from wpinq.tables.moments import Corr, Cov, Intercept, Moment, Ols, Std, Var

Array = NDArray[np.float64]
MADE: dict[str, Moment] = {
    "var": Var("x", 0, 1),
    "std": Std("x", 0, 1),
    "cov": Cov("x", 0, 1, "y", 0, 1),
    "corr": Corr("x", 0, 1, "y", 0, 1),
    "ols": Ols("x", 0, 1, "y", 0, 1),
    "intercept": Intercept("x", 0, 1, "y", 0, 1),
    "far intercept": Intercept("x", 0, 1, "y", 3, 4),
}
KINDS = ("uniform", "narrow", "skewed", "binary", "constant")


def values(kind: str, size: int) -> tuple[Array, Array]:
    """Pairs of values from 0 to 1."""
    rng = np.random.default_rng(size)
    first, second = rng.random((2, size)), rng.normal(size=(2, size))
    if kind == "uniform":
        x, y = first[0], (first[0] + first[1]) / 2
    elif kind == "narrow":
        x, y = 0.4 + 0.05 * second[0], 0.6 + 0.03 * second[0] + 0.02 * second[1]
    elif kind == "skewed":
        x, y = -0.1 * np.log(first[0]), -0.05 * np.log(first[0]) - 0.05 * np.log(first[1])
    elif kind == "binary":
        x = (first[0] < 0.2).astype(float)
        y = np.where(first[1] < 0.8, x, 1 - x)
    else:
        x, y = np.full(size, 0.3), np.full(size, 0.7)
    return np.clip(x, 0, 1), np.clip(y, 0, 1)


@dataclass(frozen=True)
class Measured:
    """How the intervals of one statistic did."""

    coverage: float
    width: float
    linear: float
    none: float
    error: float


class _Weights:
    """What the statistic reads of released answers: the scale."""

    def __init__(self, scale: float) -> None:
        self.scale = scale


def measured(name: str, kind: str, size: int, epsilon: float, draws: int) -> Measured | None:
    """The intervals of one statistic over some draws; None where the data have no such statistic."""
    moment = MADE[name]
    columns = values(kind, size)[: len(moment.ranges)]
    shares = moment.shares(*((u, 1 - u) for u in columns))
    totals = np.array([np.broadcast_to(share, (size,)).sum() for share in shares])
    (true,) = moment.statistic(*totals[:, None])
    if not np.isfinite(true) or (kind == "constant" and name not in ("var", "std", "cov")):
        return None
    rng = np.random.default_rng(7)
    noisy = totals[:, None] + rng.laplace(scale=1 / epsilon, size=(len(totals), draws))
    weights: Answers = _Weights(1 / epsilon)  # type: ignore[assignment]
    number, low, high = moment.estimates(noisy, weights, 0.95)
    none = np.isnan(low)
    covered = none | ((low <= true + 1e-12) & (true - 1e-12 <= high))
    steps = [(moment.statistic(*(totals + h)[:, None]) - true)[0] / 1e-3 for h in 1e-3 * np.eye(len(totals))]
    linear = np.abs(np.array(steps) @ rng.laplace(scale=1 / epsilon, size=(len(totals), 20_000)))
    known = ~none
    return Measured(
        float(covered.mean()),
        float(np.median(high[known] - low[known])) if known.any() else float("nan"),
        2 * float(np.quantile(linear, 0.95)),
        float(none.mean()),
        float(np.nanmedian(np.abs(number - true))),
    )


def means(sizes: list[int], epsilon: float, draws: int) -> None:
    """The mean from two ends, beside a sum about the middle and a count."""
    print(f"{'rows':>6} {'kind':>9} {'covered':>8} {'rms, ends':>10} {'rms, halves':>12}")
    rng = np.random.default_rng(8)
    for size in sizes:
        for kind in KINDS:
            x, _ = values(kind, size)
            true, noise = x.mean(), rng.laplace(scale=1 / epsilon, size=(2, draws))
            upper, lower = size * true + noise[0], size * (1 - true) + noise[1]
            low, high = interval_of_ends(upper, lower, 1 / epsilon, 0.95)
            total, count = size * (true - 0.5) + noise[0], size / 2 + noise[1]
            halves = np.clip(0.5 + np.where(count > 0, total / count, 0) / 2, 0, 1)
            errors = [np.sqrt(np.mean((found - true) ** 2)) for found in (mean_of_ends(upper, lower), halves)]
            covered = np.mean((low <= true) & (true <= high))
            print(f"{size:6d} {kind:>9} {covered:8.4f} {errors[0]:10.2g} {errors[1]:12.2g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 300, 10_000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    means(options.sizes, options.epsilon, options.draws)
    print(f"\n{'':>5} {'rows':>6} {'kind':>9} {'covered':>8} {'width':>9} {'linear':>9} {'none':>6} {'error':>9}")
    for name in MADE:
        for size in options.sizes:
            for kind in KINDS:
                found = measured(name, kind, size, options.epsilon, options.draws)
                if found is not None:
                    line = f"{name:>5} {size:6d} {kind:>9} {found.coverage:8.4f} {found.width:9.3g} "
                    print(line + f"{found.linear:9.3g} {found.none:6.3f} {found.error:9.2g}", flush=True)


if __name__ == "__main__":
    main()
