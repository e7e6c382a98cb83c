"""Joint models of the table Adult: the error of marginals and of drawn rows, time, memory, and coverage of intervals.

    nice -n 15 python benchmarks/joint_models.py [DATA] [--draws 20] [--only six,triples,fourteen,intervals,peer]

Means over draws with seeds --seed, --seed + 1 and on. The root mean square is over all cells of all views, the total
variation a mean over the views, seconds are processor time of one fit. `peer` fits the same answers with private-pgm,
the package mbi, where it is installed.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import resource
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from histograms_data import Array, claim, parser

from wpinq.marginals.cells import MeasuredView, View
from wpinq.marginals.models.model_fit import EXACT, fit, marginal_intervals
from wpinq.marginals.planning import MarginalPlan, plan_marginals
from wpinq.marginals.residual_basis import ConsistentMarginals

SIX = ("workclass", "education-num", "marital-status", "race", "sex", "income>50K")
PARTS = ("six", "triples", "fourteen", "intervals", "peer")


class Table:
    """A table of codes, the true marginals of its views, and a plan for them."""

    def __init__(self, codes: Array, sizes: tuple[int, ...], order: int) -> None:
        self.codes, self.sizes = codes, sizes
        self.views = list(combinations(range(len(sizes)), order))
        self.truth = {view: self.counts(codes, view) for view in self.views}
        self.plan: MarginalPlan = plan_marginals(sizes, self.views)
        self.exact = [self.counts(codes, view) for view in self.plan.measured]

    def counts(self, codes: Array, view: View) -> Array:
        shape = [self.sizes[i] for i in view]
        cells = np.ravel_multi_index([codes[:, i] for i in view], shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)

    def answers(self, epsilon: float, seed: int) -> list[MeasuredView]:
        random = np.random.default_rng(seed)
        found = []
        for view, share, exact in zip(self.plan.measured, self.plan.shares, self.exact, strict=True):
            scale = 1 / (share * epsilon)
            found.append(MeasuredView(view, exact + random.laplace(0, scale, exact.shape), scale))
        return found

    def errors(self, marginal) -> tuple[float, float]:
        gaps = [marginal(view) - self.truth[view] for view in self.views]
        square = sum(float((gap**2).sum()) for gap in gaps) / sum(gap.size for gap in gaps)
        return math.sqrt(square), float(np.mean([np.abs(gap).sum() / 2 / len(self.codes) for gap in gaps]))


def load(data: Path, names: tuple[str, ...] | None, order: int) -> Table:
    domain = json.loads((data / "tables" / "adult-domain.json").read_text(encoding="utf-8"))
    with gzip.open(data / "tables" / "adult.csv.gz", "rt", encoding="utf-8") as lines:
        held, *rows = csv.reader(lines)
    chosen = list(names or held)
    codes = np.array(rows, dtype=np.int64)[:, [held.index(name) for name in chosen]]
    return Table(codes, tuple(domain[name] for name in chosen), order)


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def measure(table: Table, epsilon: float, args, rows: bool = False, oracle: bool = False) -> dict[str, Array]:
    """The means of (root mean square, total variation, seconds) of each way to make marginals of the same answers."""
    found: dict[str, list[tuple[float, float, float]]] = {}

    def note(name: str, marginal, seconds: float = 0.0) -> None:
        found.setdefault(name, []).append((*table.errors(marginal), seconds))

    for seed in range(args.seed, args.seed + args.draws):
        answers = table.answers(epsilon, seed)
        note("least squares", ConsistentMarginals(answers, table.sizes, table.views).marginal)
        if oracle:
            start = time.process_time()
            full = fit(answers, table.sizes, "full table")
            note("full table", full.marginal, time.process_time() - start)
        start = time.process_time()
        joint = fit(answers, table.sizes, seed=seed)
        note("mixture", joint.marginal, time.process_time() - start)
        if rows:
            codes, (light, weight) = joint.draw(seed=seed), joint.weighted_draw(seed=seed)
            note("rows", lambda view, codes=codes: table.counts(codes, view))
            note("ten rows of a tenth", lambda view, c=light, w=weight: w * table.counts(c, view))
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    for name, (square, variation, seconds) in means.items():
        print(f"  epsilon {epsilon:<5}{name:22}{square:10.2f}{variation:10.4f}{seconds:8.2f} s")
    return means


def shown(mean: Array) -> str:
    return f"{mean[0]:.2f} / {mean[1]:.4f}"


def within(mean: Array, square: float, variation: float) -> bool:
    return bool(mean[0] <= square and mean[1] <= variation)


def six(args) -> None:
    table = load(args.data, SIX, 2)
    print(
        f"six attributes, {len(table.codes):,} records, all pairs; error a cell / total variation, {args.draws} draws"
    )
    fit(table.answers(1.0, args.seed), table.sizes)
    held = megabytes()
    one, tenth = (measure(table, epsilon, args, rows=True, oracle=True) for epsilon in (1.0, 0.1))
    claim("epsilon 1: at most 10.8 / .0033", shown(one["mixture"]), within(one["mixture"], 10.8, 0.0033))
    claim("epsilon .1: at most 80 / .022", shown(tenth["mixture"]), within(tenth["mixture"], 80, 0.022))
    claim("rows drawn at epsilon 1: at most 13 / .004", shown(one["rows"]), within(one["rows"], 13, 0.004))
    slowest = max(one["mixture"][2], tenth["mixture"][2])
    memory = f"{held:.0f} MB (with rows drawn {megabytes():.0f} MB)"
    claim("a fit: at most 2 s, 200 MB", f"{slowest:.2f} s, {memory}", slowest <= 2 and held <= 200)
    ratios = [float((each["mixture"][:2] / each["full table"][:2]).max()) for each in (one, tenth)]
    claim("at most a tenth worse than the full table", f"{max(ratios):.3f} times its error", max(ratios) <= 1.1)


def triples(args) -> None:
    table = load(args.data, SIX, 3)
    print("six attributes, all triples")
    one, tenth = (measure(table, epsilon, args) for epsilon in (1.0, 0.1))
    claim("epsilon 1: 6.2 / .0085", shown(one["mixture"]), within(one["mixture"], 6.2, 0.0085))
    claim("epsilon .1: 45.7 / .052", shown(tenth["mixture"]), within(tenth["mixture"], 45.7, 0.052))


def fourteen(args) -> None:
    table = load(args.data, None, 2)
    print("fourteen attributes, all pairs")
    one, tenth = (measure(table, epsilon, args) for epsilon in (1.0, 0.1))
    claim("epsilon 1: total variation at most .052", f"{one['mixture'][1]:.4f}", bool(one["mixture"][1] <= 0.052))
    claim(
        "epsilon .1: total variation at most .135 (an adaptive tree; here a plan without a look at the data)",
        f"{tenth['mixture'][1]:.4f}",
        bool(tenth["mixture"][1] <= 0.135),
    )


def intervals(args) -> None:
    table = load(args.data, SIX, 2)
    print(f"intervals of nominal 90 %, six attributes, all pairs, {args.bootstraps} re-estimates each")
    for epsilon in (0.1, 1.0):
        hits, cells, exact = 0, 0, 0
        for seed in range(args.seed, args.seed + args.draws):
            joint = fit(table.answers(epsilon, seed), table.sizes, seed=seed)
            found = marginal_intervals(joint, table.views, 0.9, draws=args.bootstraps, seed=seed)
            for view, each in found.items():
                truth = table.truth[view]
                hits += int(((each.lower - 1e-9 <= truth) & (truth <= each.upper + 1e-9)).sum())
                cells += truth.size
                exact += each.method == EXACT
        share = hits / cells
        instead = exact / args.draws / len(table.views)
        print(f"  epsilon {epsilon}: exact ones of least squares in {instead:.0%} of the views")
        claim(f"epsilon {epsilon}: 85 to 95 % of the cells are covered", f"{share:.1%}", 0.85 <= share <= 0.95)


def peer(args) -> None:
    try:
        import jax
        import mbi
    except ImportError:
        print("private-pgm is not installed: pip install 'wpinq[benchmarks]'")
        return
    jax.config.update("jax_enable_x64", True)
    table = load(args.data, SIX, 2)
    names = [f"a{i}" for i in range(len(table.sizes))]
    domain = mbi.Domain(names, table.sizes)
    print("six attributes, all pairs: the same answers by private-pgm, mirror descent, 1500 steps")
    for epsilon in (1.0, 0.1):
        found: dict[str, list[tuple[float, ...]]] = {"private-pgm": [], "mixture": []}
        for seed in range(args.seed, args.seed + args.peer_draws):
            answers = table.answers(epsilon, seed)
            start = time.process_time()
            asked = [
                mbi.LinearMeasurement(
                    each.counts.ravel(), tuple(names[i] for i in each.view), stddev=math.sqrt(each.variance)
                )
                for each in answers
            ]
            model = mbi.estimation.MirrorDescent().estimate(domain, asked, iters=1500)
            pairs = {
                view: np.asarray(model.project(tuple(names[i] for i in view)).datavector()).reshape(
                    [table.sizes[i] for i in view]
                )
                for view in table.views
            }
            found["private-pgm"].append((*table.errors(pairs.__getitem__), time.process_time() - start))
            start = time.process_time()
            joint = fit(answers, table.sizes, seed=seed)
            seconds = time.process_time() - start
            found["mixture"].append((*table.errors(joint.marginal), seconds))
        theirs, ours = (np.mean(found[name], axis=0) for name in ("private-pgm", "mixture"))
        claim(
            f"epsilon {epsilon}: no farther off than private-pgm on the same answers, in less time",
            f"{shown(ours)}, {ours[2]:.1f} s; private-pgm {shown(theirs)}, {theirs[2]:.1f} s",
            bool((ours <= theirs).all()),
        )
    print(f"  {megabytes():.0f} MB with jax")


def main() -> None:
    options = parser("Joint models of a table.", draws=20)
    options.add_argument("--only", default=",".join(PARTS), help="parts, with commas between: " + ", ".join(PARTS))
    options.add_argument("--bootstraps", type=int, default=25)
    options.add_argument("--peer-draws", type=int, default=3)
    args = options.parse_args()
    run = {"six": six, "triples": triples, "fourteen": fourteen, "intervals": intervals, "peer": peer}
    for part in args.only.split(","):
        run[part](args)


if __name__ == "__main__":
    main()
