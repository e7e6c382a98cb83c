"""Private quantiles: how far in rank the chosen bin is from the one that was asked for.

    python benchmarks/choices.py [DATA] [--draws 200]

On the 18 vectors of 4,096 bins, all bins being candidates; numpy noise on public data. The rank error of bin c at
quantile q is how far q lies from the shares of the weight before c and up to c, and 0 between them. Mechanisms, each
of one epsilon:

- before: the score `-|(1-q)L - qR|`, which leaves out the weight at the candidate, by permute-and-flip at 2/epsilon;
- OpenDP: its `make_private_quantile`, which is the same score at 2 max(q, 1-q)/epsilon. Its scores are checked here
  against its own, on one vector, and its scale against its map; its sampler would read all records for each draw;
- wpinq: the score of `Query.quantile`, at 2 max(q, 1-q)/epsilon;
- tree: `Hierarchical` over all bins, least squares, and the quantile read from the estimate. It gives all quantiles.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from histograms_data import DPBENCH, Array, claim, histogram, options

from wpinq.api.simulate import PublicOutput
from wpinq.histograms import Hierarchical, quantile
from wpinq.sinks.choose import Choose

EPSILONS = (Fraction(1, 10), Fraction(1))
QUANTILES = (Fraction(1, 2), Fraction(9, 10))
MECHANISMS = ("before", "OpenDP", "wpinq", "tree")


def rank_error(truth: Array, q: float) -> Array:
    """How far in rank each bin is from the quantile."""
    upto = np.cumsum(truth) / truth.sum()
    before = np.append(0.0, upto[:-1])
    return np.maximum(0.0, np.maximum(before - q, q - upto))


def score_without_own_weight(truth: Array, q: float) -> Array:
    upto = np.cumsum(truth)
    return -np.abs((1 - q) * (upto - truth) - q * (upto[-1] - upto))


def select(scores: Array, scale: float, seed: int) -> int:
    """A draw from the distribution of permute-and-flip, by numpy: the position of the largest `score + Exp(scale)`."""
    draws = np.random.default_rng(seed).exponential(scale, len(scores))
    return int(np.argmax(np.asarray(scores, dtype=np.float64) + draws))


def check_opendp(truth: Array) -> None:
    """OpenDP's own scores and privacy map, against what stands for them here."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    records, bins = np.repeat(np.arange(len(truth)), truth.astype(np.int64)).astype(float), range(len(truth))
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.symmetric_distance()
    for q in map(float, QUANTILES):
        scores = dp.t.make_quantile_score_candidates(*space, candidates=list(map(float, bins)), alpha=q)
        chosen = dp.m.make_private_quantile(
            *space, dp.max_divergence(), candidates=list(map(float, bins)), alpha=q, scale=1.0
        )
        theirs, ours = np.array(scores(list(records)), dtype=float), -score_without_own_weight(truth, q)
        np.testing.assert_allclose(theirs / theirs.max(), ours / ours.max(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(chosen.map(1), 2 * max(q, 1 - q))


def main() -> None:
    args = options("Private quantiles on 18 histograms.", draws=200)
    vectors = {name: histogram(args.data, name) for name in DPBENCH}
    check_opendp(vectors["ADULT"])
    rng = np.random.default_rng(args.seed)
    without_noise = {"before": 0, "wpinq": 0}
    for epsilon in EPSILONS:
        for q in QUANTILES:
            least = 2 * max(q, 1 - q) / epsilon
            print(f"\nepsilon {float(epsilon)}, quantile {float(q)}: mean rank error in %, {args.draws} draws")
            print(f"{'':14}{'records':>12}" + "".join(f"{name:>12}" for name in MECHANISMS))
            means = []
            for name, truth in vectors.items():
                error, bins = rank_error(truth, float(q)), range(len(truth))
                old = score_without_own_weight(truth, float(q))
                new = Choose("quantile", q).scores(PublicOutput(dict(zip(bins, truth, strict=True))), tuple(bins))
                without_noise["before"] += bool(error[np.argmax(old)])
                without_noise["wpinq"] += bool(error[np.argmax(new)])
                tree = Hierarchical(len(truth))
                nodes, spread = tree.apply(truth), float(tree.sensitivity / epsilon)

                def read(seed: int, tree=tree, nodes=nodes, spread=spread, q=q) -> int:
                    answers = nodes + np.random.default_rng(seed).laplace(0.0, spread, len(nodes))
                    return int(quantile(tree.estimate(answers), float(q)))

                mechanisms = (
                    partial(select, old, float(2 / epsilon)),
                    partial(select, old, float(least)),
                    partial(select, new, float(least)),
                    read,
                )
                seeds = rng.integers(2**31, size=args.draws).tolist()
                means.append([100 * np.mean([error[choose(seed)] for seed in seeds]) for choose in mechanisms])
                print(f"{name:14}{int(truth.sum()):12,}" + "".join(f"{mean:12.4f}" for mean in means[-1]))
            table = np.array(means)
            average = table.mean(axis=0)
            print(f"{'mean':26}" + "".join(f"{mean:12.4f}" for mean in average))
            worse = [f"{int((table[:, 2] > table[:, at] + 0.001).sum())} ({MECHANISMS[at]})" for at in (0, 1, 3)]
            claim(
                "wpinq has the least error, over all vectors",
                f"worse by more than .001 % on {', '.join(worse)} of {len(table)} vectors",
                bool(average[2] == average.min()),
            )
    cells = len(vectors) * len(QUANTILES)
    missed = {name: count // len(EPSILONS) for name, count in without_noise.items()}
    claim(
        "without noise the right bin is chosen",
        f"a wrong one in {missed['before']} of {cells} cells before, in {missed['wpinq']} now",
        missed["wpinq"] == 0,
    )


if __name__ == "__main__":
    main()
