"""Naldi and D'Acquisto: the Bayes estimate of one noisy count against the noisy count itself.

python benchmarks/histograms_bayes.py [--draws 100000]
"""

from __future__ import annotations

import numpy as np
from histograms_data import claim, options

from wpinq.histograms import bayes_count, out_of_range_probability


def main() -> None:
    args = options("Bayes estimation of counting queries.", draws=100_000)
    rng = np.random.default_rng(args.seed)
    print(f"mean absolute error over {args.draws:,} draws, and how often the Bayes estimate is the closer one")
    print(
        f"{'n':>6}{'p':>6}{'epsilon':>9}{'naive':>9}{'1/epsilon':>11}{'Bayes':>9}{'spread':>9}{'wins':>8}{'P* at 0':>9}"
    )
    rows = []
    cells = [(n, 0.3, e) for n in (100, 1000) for e in (0.05, 0.1, 0.2, 0.5, 1.0)]
    cells += [(n, p, 0.1) for n in (100, 1000) for p in (0.05, 0.5, 0.95)]
    for n, p, epsilon in cells:
        truth = rng.binomial(n, p, args.draws)
        noisy = truth + rng.laplace(0, 1 / epsilon, args.draws)
        naive, bayes = np.abs(noisy - truth), np.abs(bayes_count(noisy, n, p, 1 / epsilon) - truth)
        spread = np.abs(truth - n * p).mean()
        rows.append((n, p, epsilon, naive.mean(), bayes.mean(), (bayes < naive).mean(), spread))
        print(
            f"{n:6}{p:6}{epsilon:9}{naive.mean():9.3f}{1 / epsilon:11.1f}{bayes.mean():9.3f}{spread:9.3f}"
            f"{rows[-1][5]:8.1%}{out_of_range_probability(0, n, 1 / epsilon):9.4f}"
        )
    claim(
        "the Bayes error is below the naive one for all epsilon",
        f"largest ratio {max(r[4] / r[3] for r in rows):.3f}",
        all(r[4] < r[3] for r in rows),
    )
    claim(
        "it levels off, bounded by the spread of the binomial",
        f"largest ratio to the prior mean's error {max(r[4] / r[6] for r in rows):.3f}",
        all(r[4] <= 1.01 * r[6] for r in rows),
    )
    least = min(rows, key=lambda r: r[5])
    claim(
        "it is the closer one in more than half of the draws",
        f"least share {least[5]:.1%} (n {least[0]}, p {least[1]}, epsilon {least[2]})",
        least[5] > 0.5,
    )


if __name__ == "__main__":
    main()
