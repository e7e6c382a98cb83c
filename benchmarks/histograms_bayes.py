"""Naldi and D'Acquisto: the Bayes estimate of one noisy count against the noisy count itself.

python benchmarks/histograms_bayes.py [--draws 100000]
"""

from __future__ import annotations

from itertools import product

import numpy as np
from histograms_data import claim, options

from wpinq.histograms import bayes_count

RECORDS = [100, 1000]
PROBABILITIES = [0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99]  # the paper's is 0.3
EPSILONS = [0.05, 0.1, 0.2, 0.5, 1.0]
HEADS = ["epsilon", "naive", "1/epsilon", "Bayes", "prior", "deviation", "wins", "P* at 0"]


def main() -> None:
    args = options("Bayes estimation of counting queries.", draws=100_000)
    rng = np.random.default_rng(args.seed)
    print(f"mean absolute error over {args.draws:,} draws, and how often the Bayes estimate is the closer one")
    print(f"{'n':>6}{'p':>6}" + "".join(f"{head:>11}" for head in HEADS))
    rows = []
    for n, p, epsilon in product(RECORDS, PROBABILITIES, EPSILONS):
        truth = rng.binomial(n, p, args.draws)
        noisy = truth + rng.laplace(0, 1 / epsilon, args.draws)
        naive, bayes = np.abs(noisy - truth), np.abs(bayes_count(noisy, n, p, 1 / epsilon) - truth)
        prior, deviation = np.abs(truth - n * p).mean(), np.sqrt(n * p * (1 - p))
        rows.append((n, p, epsilon, naive.mean(), bayes.mean(), (bayes < naive).mean(), prior, deviation))
        numbers = f"{naive.mean():11.3f}{1 / epsilon:11.1f}{bayes.mean():11.3f}{prior:11.3f}{deviation:11.3f}"
        outside = (1 + np.exp(-n * epsilon)) / 2  # Naldi and D'Acquisto 2014, theorem 1
        print(f"{n:6}{p:6}{epsilon:11}{numbers}{rows[-1][5]:11.1%}{outside:11.4f}")
    claim(
        "the Bayes error is below the naive one for all epsilon",
        f"largest ratio {max(r[4] / r[3] for r in rows):.3f}",
        all(r[4] < r[3] for r in rows),
    )
    growth = [a[4] / b[4] for a in rows for b in rows if a[:2] == b[:2] and (a[2], b[2]) == (0.05, 0.1)]
    claim(
        "it levels off, bounded by the spread of the binomial",
        f"at most {max(r[4] / r[7] for r in rows):.3f} standard deviations of it, and "
        f"{max(r[4] / r[6] for r in rows):.3f} times the error of the "
        "prior's mean;\n            "
        f"from epsilon 0.1 to 0.05 it grows {min(growth):.2f} to "
        f"{max(growth):.2f} times, the naive one twice",
        all(r[4] <= r[7] for r in rows) and max(growth) < 2,
    )
    least = min(rows, key=lambda r: r[5])
    claim(
        "it is the closer one in more than half of the draws",
        f"least share {least[5]:.1%} (n {least[0]}, p {least[1]}, epsilon {least[2]}); standard error "
        f"{np.sqrt(0.25 / args.draws):.2%}; above in {sum(r[5] > 0.5 for r in rows)} of {len(rows)} cells",
        least[5] > 0.5,
    )


if __name__ == "__main__":
    main()
