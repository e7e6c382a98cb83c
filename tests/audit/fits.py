"""Whether all noise has its exact law, far out and near, alone and beside other noise; bytes are the system's."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from tests.audit.findings import Part
from tests.audit.hours import Allotment
from tests.audit.noisy_choices import p_value
from tests.support.choice_laws import permute_and_flip
from tests.support.ladder_laws import rung_law
from tests.support.system_noise import select, with_geometric_noise, with_laplace_noise
from wpinq.noise.conditional import ConditionalNoise, successes
from wpinq.noise.ladder import draw_count
from wpinq.sinks.graph_ladders import simple_graph, triangle_ladder

FALSE_ALARM = 1e-9
"""With which each p-value is a fault by chance."""

Values = dict[str, float]
"""p-values, by what was tested."""


def of_laplace(values: np.ndarray[Any, Any], scale: float) -> Values:
    """Noise that should be Laplace noise, an even number."""
    law = stats.laplace(scale=scale)
    size, sizes = len(values), np.abs(values)
    spread = stats.gamma(size).cdf(float(sizes.sum()) / scale)
    quartiles = np.digitize(values, law.ppf([0.25, 0.5, 0.75]))
    found = {
        "Kolmogorov-Smirnov": float(stats.kstest(values, law.cdf).pvalue),
        "scale": 2 * min(spread, 1 - spread),
        "sign": float(stats.binomtest(int((values > 0).sum()), size, 0.5).pvalue),
    }
    for lag in (1, 2, 8):
        usable = quartiles[: size - size % (2 * lag)].reshape(-1, 2, lag)
        cells = 4 * usable[:, 0].ravel() + usable[:, 1].ravel()
        found[f"independence at lag {lag}"] = float(stats.chisquare(np.bincount(cells, minlength=16)).pvalue)
    for reach in (5.0, 8.0):
        beyond = int((sizes > reach * scale).sum())
        found[f"beyond {reach:g} scales"] = float(stats.binomtest(beyond, size, math.exp(-reach)).pvalue)
    return found


def of_outcomes(seen: Mapping[Any, int], law: Mapping[Any, float]) -> Values:
    """Outcomes, of which each has a known chance."""
    return {"chi-square": p_value(Counter(seen), law)}


def geometric_law(scale: float, cut: int | None = None) -> dict[int, float]:
    """Double-geometric noise, given that it is at most a cut where there is one."""
    a = math.exp(-1 / scale)
    reach = math.ceil(60 * scale) + 60
    law = {k: a ** abs(k) for k in range(-reach, (reach if cut is None else cut) + 1)}
    total = math.fsum(law.values())
    return {k: weight / total for k, weight in law.items()}


def _laplace(value: float, scale: float) -> Callable[[int], Values]:
    return lambda size: of_laplace(np.array(with_laplace_noise([value] * size, scale)) - value, scale)


def _geometric(scale: float) -> Callable[[int], Values]:
    return lambda size: of_outcomes(Counter(with_geometric_noise([7] * size, scale)), _shifted(geometric_law(scale), 7))


def _shifted(law: Mapping[int, float], by: int) -> dict[int, float]:
    return {k + by: chance for k, chance in law.items()}


def _choice(size: int) -> Values:
    scores = [0.0, 2.0, 3.0, 3.5, -1.0]
    law = dict(enumerate(permute_and_flip(scores, 1.7).tolist()))
    return of_outcomes(Counter(select(scores, 1.7) for _ in range(size)), law)


def _ladder(size: int) -> Values:
    ladder, scale = triangle_ladder(simple_graph([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)])), 2.0
    of_rungs, ends = rung_law(ladder, scale)
    law: dict[Hashable, float] = {}
    for rung, (low, high) in enumerate(zip([-1, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        for away in range(low + 1, high + 1) if rung < 40 else ():
            shared = float(of_rungs[rung]) / (high - low)
            law |= {ladder.count: shared} if away == 0 else {ladder.count + s * away: shared / 2 for s in (-1, 1)}
    return of_outcomes(Counter(draw_count(ladder, scale, os.urandom) for _ in range(size)), law)


def _above(size: int) -> Values:
    drawn = np.array(ConditionalNoise(1.3, False, os.urandom).above(2.0, size))
    return {"Kolmogorov-Smirnov": float(stats.kstest((drawn - 2.0) / 1.3, "expon").pvalue)}


def _at_most(weight: float) -> Callable[[int], Values]:
    def tried(size: int) -> Values:
        drawn = np.array(ConditionalNoise(1.3, False, os.urandom).at_most([weight] * size, [2.0] * size))
        law = stats.laplace(weight, 1.3)
        return {"Kolmogorov-Smirnov": float(stats.kstest(law.cdf(drawn) / law.cdf(2.0), "uniform").pvalue)}

    return tried


def _steps_at_most(size: int) -> Values:
    drawn = ConditionalNoise(1.7, True, os.urandom).at_most([2] * size, [3.0] * size)
    return of_outcomes(Counter(int(x) - 2 for x in drawn), geometric_law(1.7, cut=1))


def _rare(size: int) -> Values:
    chance, trials = Fraction(1, 10**9), 10**10
    seen = Counter(len(successes(trials, lambda bits: (chance, chance), os.urandom)) for _ in range(size // 100))
    return of_outcomes(seen, dict(enumerate(stats.poisson.pmf(range(60), 10).tolist())))


KINDS: dict[str, tuple[Callable[[int], Values], float]] = {
    **{f"Laplace noise of scale {s:g} on {v:g}": (_laplace(v, s), 1.0) for v, s in ((0, 1), (7, 2.5), (-1e6, 0.3))},
    "Laplace noise of scale 1000 on 0.1": (_laplace(0.1, 1000.0), 1.0),
    **{f"double-geometric noise of scale {s:g}": (_geometric(s), 1.0) for s in (0.4, 2.0, 50.0)},
    "a choice among five": (_choice, 0.5),
    "a count on a ladder": (_ladder, 0.05),
    "Laplace noise above a cut": (_above, 0.5),
    "Laplace noise at most a cut": (_at_most(0.5), 0.5),
    "Laplace noise at most a cut below the weight": (_at_most(9.0), 0.5),
    "double-geometric noise at most a cut": (_steps_at_most, 0.3),
    "how many of 10^10 absent keys are listed": (_rare, 0.1),
}
"""Every kind of noise, and which share of the size it is drawn so often that it takes about as long."""


def audit_fits(size: int, allotment: Allotment) -> Part:
    """Draw so many of each kind, fewer of those that take long, and compare with the law."""
    part = Part(
        "fits",
        f"The noise itself against its exact law. A p-value below {FALSE_ALARM:g} is a fault, which chance brings with "
        f"that probability each.",
        ("noise", "draws", "tests", "least p-value", "of the test of"),
    )
    total = 0
    for place, (name, (test, share)) in enumerate(KINDS.items()):
        drawn = max(2000, int(size * share))
        if place and allotment.over:
            part.ran["left out for want of time"] = len(KINDS) - place
            break
        found = test(drawn)
        worst = min(found, key=lambda what: found[what])
        part.rows.append((name, drawn, len(found), found[worst], worst))
        part.faults += [f"{name}: {what}, p = {p:.3g}" for what, p in found.items() if p < FALSE_ALARM]
        total += drawn
    tests = sum(int(row[2]) for row in part.rows)
    part.ran = {"draws": total, "tests": tests, "least p-value": min(float(row[3]) for row in part.rows), **part.ran}
    return part
