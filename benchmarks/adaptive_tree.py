"""A spanning tree of pairs, chosen by the data, on Adult: 14 attributes, 91 pairs of 148,137 cells.

    python benchmarks/adaptive_tree.py [DATA] [--draws 20] [--epsilons 1 1/10]

Every draw is a run of `measure_tree` in a session, with the noise of the kernel, which is never seeded; the model is
the tree that `fit` makes of all its answers. Printed are the mean over the draws of

- TVD: the total variation distance between the model's pair and the true one, as shares, the mean over all 91 pairs,
  with its standard error;
- RMSE: of a cell of a pair, in records, over all of their cells;
- the seconds of processor time of measuring and of fitting.

Beside it: the same with γ = 0, which chooses by distance alone; and the one-ways, with all of epsilon. Nothing was
tuned on these draws, but shares and γ were on Adult.
"""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from histograms_data import Array, claim, parser

import wpinq as wp
from wpinq.histograms.strategies.marginals import Marginals
from wpinq.marginals.attributes import MeasuredView
from wpinq.marginals.models import fit
from wpinq.workflows.table import measure_tree, tree_bill

TARGETS = {Fraction(1): 0.052, Fraction(1, 10): 0.135}


def adult(data: Path) -> tuple[dict[str, int], Any]:
    """The sizes of the attributes by name, and the table."""
    import json

    import pandas

    sizes = json.loads((data / "tables" / "adult-domain.json").read_text(encoding="utf-8"))
    return sizes, pandas.read_csv(data / "tables" / "adult.csv.gz")


class Fresh:
    """A session that answers every draw anew."""

    def __init__(self, session: wp.Session) -> None:
        self.session = session
        self.remaining = session.remaining

    def release(self, measurements: wp.ListedMeasurement, *, label: str | None = None) -> wp.Answers:
        return self.session.release(measurements, label=label, fresh=True)


def errors(views: tuple[MeasuredView, ...], sizes: tuple[int, ...], truth: dict[Any, Array]) -> tuple[float, ...]:
    """TVD, RMSE, and the seconds of the fit."""
    start = time.process_time()
    model = fit(views, sizes, model="tree")
    found = {pair: model.marginal(pair) for pair in truth}
    seconds = time.process_time() - start
    distance = [np.abs(found[pair] / found[pair].sum() - truth[pair] / truth[pair].sum()).sum() / 2 for pair in truth]
    square = sum(((found[pair] - truth[pair]) ** 2).sum() for pair in truth) / sum(map(np.size, truth.values()))
    return float(np.mean(distance)), float(np.sqrt(square)), seconds


def main() -> None:
    asked = parser((__doc__ or "").partition("\n")[0], draws=20)
    asked.add_argument("--epsilons", type=Fraction, nargs="+", default=list(TARGETS))
    options = asked.parse_args()
    named, table = adult(options.data)
    codes, sizes = table.to_numpy(), tuple(named.values())
    fields = {f"a{i}": size for i, size in enumerate(sizes)}
    table.columns = list(fields)
    truth = {}
    for a, b in combinations(range(len(sizes)), 2):
        cells = np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b])
        truth[a, b] = cells.reshape(sizes[a], sizes[b]).astype(np.float64)
    people = wp.source("people", facts=["whole_weights"], unit="one person", **dict.fromkeys(fields, int))
    print(f"Adult, {len(codes):,} records, {len(truth)} pairs of {sum(map(np.size, truth.values())):,} cells\n")
    print(tree_bill(people, fields, 1), "\n")
    means = {}
    with wp.Session() as session:
        session.protect(people, table, budget=10**6)
        fresh = Fresh(session)

        def tree(epsilon: Fraction, penalty: Fraction) -> tuple[MeasuredView, ...]:
            return measure_tree(fresh, people, fields, epsilon, penalty=penalty).views

        def one_ways(epsilon: Fraction) -> tuple[MeasuredView, ...]:
            strategy = Marginals(fields, shares={(i,): size ** (1 / 3) for i, size in enumerate(sizes)})
            return strategy.measured(session.release(strategy.measure(people, epsilon), fresh=True))

        ways = {
            "tree, γ = 1/2": lambda epsilon: tree(epsilon, Fraction(1, 2)),
            "tree, γ = 0": lambda epsilon: tree(epsilon, Fraction(0)),
            "one-ways alone": one_ways,
        }
        print(f"{'':16}{'ε':>5}  {'TVD':>15}  {'RMSE':>6}  {'measuring':>9}  {'fit':>6}")
        for name, measure in ways.items():
            for epsilon in options.epsilons:
                rows = []
                for _ in range(options.draws):
                    start = time.process_time()
                    views = measure(epsilon)
                    seconds = time.process_time() - start
                    rows.append((*errors(views, sizes, truth), seconds))
                mean, deviation = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(options.draws)
                means[name, epsilon] = mean[0]
                found = f"{mean[0]:.4f} ± {deviation[0]:.4f}  {mean[1]:6.1f}  {mean[3]:7.2f} s  {mean[2]:4.2f} s"
                print(f"{name:16}{float(epsilon):5g}  {found}", flush=True)
    print()
    for epsilon in filter(TARGETS.__contains__, options.epsilons):
        target = TARGETS[epsilon]
        found = means["tree, γ = 1/2", epsilon]
        claim(f"TVD of at most {target} at epsilon {float(epsilon):g}", f"{found:.4f}", bool(found <= target))


if __name__ == "__main__":
    main()
