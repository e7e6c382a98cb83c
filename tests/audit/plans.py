"""Random plans on engines that round, against exact rationals: how much of the certified bound an error ever uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import cycle, islice
from random import Random
from typing import Any

from tests.audit.findings import Part
from tests.audit.hours import Allotment
from tests.support.plans import DYADIC_WEIGHTS, OPERATORS, Case, distance, random_cases
from wpinq.engines import reference
from wpinq.engines.contract import Engine, find_engine
from wpinq.plan.arithmetic import EXACT, FLOAT
from wpinq.plan.properties import plan_properties

CHUNK = 100
"""Plans of one seed."""

ROOTS = 2
"""Plans that are grown together."""

Floats = dict[str, dict[Any, float]]


def plans(seed: str, count: int) -> Iterator[Case]:
    """Plans over weights that floats hold exactly, each operator at the root of as many."""
    rng, roots = Random(seed), cycle(OPERATORS)
    for _ in range(0, count, ROOTS):
        yield from random_cases(rng, tuple(islice(roots, ROOTS)), DYADIC_WEIGHTS)


class Ratios:
    """The largest error of an engine as a share of its bound, for each operator at the root, and faults."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.worst = dict.fromkeys(OPERATORS, Fraction(0))
        self.plans = dict.fromkeys(OPERATORS, 0)
        self.rounded = 0
        self.faults: list[str] = []

    def take(self, case: Case, exact: Any, found: Any, where: str) -> None:
        error, bound = distance(exact, found), plan_properties(case.plan).rounding_error
        self.plans[case.operator] += 1
        self.rounded += error > 0
        if bound:
            self.worst[case.operator] = max(self.worst[case.operator], error / bound)
        if error > bound:
            self.faults.append(f"{where}: {self.engine} is off by {float(error):.3g}, and may by {float(bound):.3g}")


def audit_plans(seed: int, counts: dict[str, int], allotment: Allotment) -> Part:
    """So many plans on each engine, or as many as there is time for; each engine has the same time.

    Engines go over the same plans in the same order: those of seed `SEED CHUNK`, a hundred of each.
    """
    part = Part(
        "plans",
        "Random plans of depth four and more on random data, by floats, against the same in exact rationals. "
        "The ratio is "
        "the largest distance of the two outputs over the bound that the plan's certificate states; above 1 "
        "is a fault.",
        ("operator at the root", *(f"{engine}, {what}" for engine in counts for what in ("plans", "worst ratio"))),
    )
    found = []
    for place, (name, count) in enumerate(counts.items()):
        share = allotment.share(1 / (len(counts) - place))
        with find_engine(name)(None, 1 if name == "duckdb" else None) as engine:
            found.append(_on(engine, name, seed, count, share))
    for operator in OPERATORS:
        cells = [(one.plans[operator], float(one.worst[operator])) for one in found]
        part.rows.append((operator, *(cell for pair in cells for cell in pair)))
    for one in found:
        part.faults += one.faults
        part.ran[f"plans on {one.engine}"] = sum(one.plans.values())
        part.ran[f"of these rounded at all on {one.engine}"] = one.rounded
    return part


def _on(engine: Engine, name: str, seed: int, count: int, allotment: Allotment) -> Ratios:
    ratios, evaluate = Ratios(name), _evaluator(engine)
    for chunk in range(-(-count // CHUNK)):
        if chunk and allotment.over:
            break
        for place, case in enumerate(plans(f"{seed} {chunk}", min(CHUNK, count - chunk * CHUNK))):
            exact = reference.evaluate(case.plan, case.data, EXACT)
            where = f"seed {seed}, chunk {chunk}, plan {place}, {case.operator} at its root"
            try:
                ratios.take(case, exact, evaluate(case), where)
            except Exception as error:
                ratios.faults.append(f"{where}: {name} raised {type(error).__name__}: {error}")
    return ratios


def _evaluator(engine: Engine) -> Callable[[Case], Any]:
    def evaluate(case: Case) -> Any:
        floats: Floats = {name: {r: float(w) for r, w in given.items()} for name, given in case.data.items()}
        return engine.evaluate(case.plan, floats, FLOAT)

    return evaluate
