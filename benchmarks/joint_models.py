"""Joint models of the table Adult: the error of marginals and of drawn rows, time, memory, and coverage of intervals.

    nice -n 15 python benchmarks/joint_models.py [DATA] [--draws 20] [--only six,triples,fourteen,intervals,peer,choice]

Means over draws with seeds --seed, --seed + 1 and on. The root mean square is over all cells of all views, the total
variation a mean over the views, seconds are processor time of one fit. `peer` fits the same answers with private-pgm,
the package mbi, where it is installed. `choice` compares the marginals that are chosen from public sizes with single
attributes, a spanning tree that the data choose, and all pairs: on Adult with six and fourteen attributes and on `fair`
of statsmodels, by the rows that are drawn. A fifth of the table is held out; total variation is from the rest, and two
classifiers of scikit-learn learn from the rows and are tested on what was held out.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import resource
import time
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
from histograms_data import Array, claim, parser
from spanning_tree import measured_tree, tree_rows

from wpinq.marginals.cells import Attributes, MeasuredView, View
from wpinq.marginals.models import EXACT, fit, marginal_intervals
from wpinq.marginals.planning import MarginalPlan, plan_marginals
from wpinq.marginals.residual_basis import ConsistentMarginals
from wpinq.marginals.tabulation import choose_marginals

SIX = ("workclass", "education-num", "marital-status", "race", "sex", "income>50K")
PARTS = ("six", "triples", "fourteen", "intervals", "peer", "choice")


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


# --- the choice of marginals for synthetic rows -----------------------------------------------------------------------

EPSILONS = ("1/10", "3/10", "1", "3")


def fair() -> tuple[Array, tuple[int, ...]]:
    """The table `fair` of statsmodels, nine attributes; the last is whether there was an affair."""
    import statsmodels.api

    frame = statsmodels.api.datasets.fair.load_pandas().data
    frame["affairs"] = frame["affairs"] > 0
    codes = [np.unique(frame[name], return_inverse=True)[1] for name in frame]
    return np.array(codes).T, tuple(int(column.max()) + 1 for column in codes)


class HeldOut:
    """A table without a fifth of its rows, on which classifiers of its last attribute are tested."""

    def __init__(self, codes: Array, sizes: tuple[int, ...]) -> None:
        order = np.random.default_rng(7).permutation(len(codes))
        self.test, self.codes = np.split(codes[order], [len(codes) // 5])
        self.sizes, self.views = sizes, list(combinations(range(len(sizes)), 2))
        self.truth = {view: self.counts(self.codes, view) for view in self.views}

    def counts(self, codes: Array, view: View) -> Array:
        shape = [self.sizes[i] for i in view]
        cells = np.ravel_multi_index([codes[:, i] for i in view], shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)

    def answers(self, weights: dict[View, float], epsilon: float, random: np.random.Generator) -> list[MeasuredView]:
        total, found = sum(weights.values()), []
        for view, weight in weights.items():
            exact, scale = self.counts(self.codes, view), total / (weight * epsilon)
            found.append(MeasuredView(view, exact + random.laplace(0, scale, exact.shape), scale))
        return found

    def planned(self, plan: MarginalPlan, epsilon: float, seed: int) -> Array:
        shares = dict(zip(plan.measured, plan.shares, strict=True))
        return fit(self.answers(shares, epsilon, np.random.default_rng(seed)), self.sizes, seed=seed).draw(seed=seed)

    def errors(self, rows: Array) -> tuple[float, float, float]:
        """The mean total variation of all pairs, and the AUC of logistic regression and of gradient boosting."""
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import roc_auc_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        gaps = [self.counts(rows, view) / len(rows) - self.truth[view] / len(self.codes) for view in self.views]
        variation = float(np.mean([np.abs(gap).sum() / 2 for gap in gaps]))
        if len(set(rows[:, -1])) < 2:
            return variation, 0.5, 0.5
        cells = OneHotEncoder(categories=[np.arange(size) for size in self.sizes[:-1]])
        models = (
            make_pipeline(cells, LogisticRegression(C=0.1, max_iter=200)),
            HistGradientBoostingClassifier(max_iter=60, random_state=0),
        )
        found = [each.fit(rows[:, :-1], rows[:, -1]).predict_proba(self.test[:, :-1])[:, 1] for each in models]
        regression, boosting = (float(roc_auc_score(self.test[:, -1], each)) for each in found)
        return variation, regression, boosting


def choice(args) -> None:
    for name in args.tables.split(","):
        adult = None if name == "fair" else load(args.data, SIX if name == "six" else None, 1)
        codes, sizes = (adult.codes, adult.sizes) if adult else fair()
        table = HeldOut(codes, sizes)
        real = table.errors(table.codes)
        print(f"{name}: {len(table.codes):,} rows; AUC of real ones {real[1]:.3f}, {real[2]:.3f}; {args.draws} draws")
        singles, pairs = (plan_marginals(sizes, views) for views in ("singles", "all pairs"))
        for text in EPSILONS:
            epsilon = float(Fraction(text))
            chosen = choose_marginals(Attributes(sizes), Fraction(text), len(table.codes))
            plan = plan_marginals(sizes, chosen, "total")
            found: dict[str, list[tuple[float, float, float]]] = {}
            for seed in range(args.seed, args.seed + args.draws):
                answers = measured_tree(sizes, table.truth, table.answers, epsilon, seed)
                rows = {"tree": tree_rows(answers, sizes, seed)}
                each = {"singles": singles, "all pairs": pairs, "chosen": plan}
                rows |= {way: table.planned(each[way], epsilon, seed) for way in each}
                for way in rows:
                    found.setdefault(way, []).append(table.errors(rows[way]))
            means = {way: np.mean(each, axis=0) for way, each in found.items()}
            for way, (variation, *scores) in means.items():
                print(f"  epsilon {epsilon:<5}{way:12}{variation:8.4f}" + "".join(f"{each:8.3f}" for each in scores))
            ours = means.pop("chosen")
            others = np.array(list(means.values()))
            gaps, ratio = ours[1:] - others[:, 1:].max(axis=0), ours[0] / others[:, 0].min()
            claim(
                "AUC within .01 of the best of the three, total variation at most 1.2 times the least",
                f"{len(chosen) - len(sizes)} pairs: {', '.join(f'{gap:+.3f}' for gap in gaps)}; {ratio:.2f} times",
                bool(ratio <= 1.2 and gaps.min() >= -0.01),
            )


def main() -> None:
    options = parser("Joint models of a table.", draws=20)
    options.add_argument("--only", default=",".join(PARTS), help="parts, with commas between: " + ", ".join(PARTS))
    options.add_argument("--tables", default="six,fair,fourteen", help="of the part choice")
    options.add_argument("--bootstraps", type=int, default=25)
    options.add_argument("--peer-draws", type=int, default=3)
    args = options.parse_args()
    run = {"six": six, "triples": triples, "fourteen": fourteen, "intervals": intervals, "peer": peer, "choice": choice}
    for part in args.only.split(","):
        run[part](args)


if __name__ == "__main__":
    main()
