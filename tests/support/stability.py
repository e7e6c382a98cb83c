"""Stability on random plans: `‖T(A) − T(A′)‖ ≤ Σ_s S_s · ‖A_s − A′_s‖`, in exact arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from tests.support.plans import OPERATORS, Case, distance, neighbour, random_cases
from wpinq.engines import reference
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.node import sources
from wpinq.plan.properties import plan_properties

ROOTS = 2
"""Plans that are grown together: growing them is what takes the time."""

NEIGHBOURS = 2
"""Neighbouring datasets that each plan is tried on."""


@dataclass
class Findings:
    """What a run over random plans found.

    Attributes
    ----------
    plans, vacuous : int
        Distinct plans, and those of them whose output moved for no neighbour that was tried.
    ratio : dict
        By operator at the root, the largest distance of outputs over the bound.
    violations : list of Case
        Plans whose bound was exceeded.
    """

    plans: int = 0
    vacuous: int = 0
    ratio: dict[str, Fraction] = field(default_factory=lambda: dict.fromkeys(OPERATORS, Fraction(0)))
    violations: list[Case] = field(default_factory=list)


def ratios(case: Case, rng: Random) -> Iterable[Fraction]:
    """For some neighbours of a case's dataset, the distance of outputs over the bound."""
    schemas = {name: source.record for name, source in sources([case.plan]).items()}
    allowed = plan_properties(case.plan).stability
    output = reference.evaluate(case.plan, case.data, EXACT)
    for _ in range(NEIGHBOURS):
        near, distances = neighbour(rng, case.data, schemas)
        bound = sum((allowed[name] * moved for name, moved in distances.items()), Fraction(0))
        if bound:  # else the changes cancelled
            yield distance(output, reference.evaluate(case.plan, near, EXACT)) / bound


def _cases(rng: Random, operators: tuple[str, ...]) -> Iterator[Case]:
    roots = itertools.cycle(operators)
    while True:
        yield from random_cases(rng, tuple(itertools.islice(roots, ROOTS)))


def check_stability(
    seed: int, plans: int, operators: tuple[str, ...] = OPERATORS, until: Fraction | None = None
) -> Findings:
    """Random plans, as many as asked, all distinct; fewer when a ratio beyond `until` is found."""
    findings, seen = Findings(), set()
    rng = Random(seed)
    for case in _cases(rng, operators):
        if findings.plans == plans:
            break
        if case.plan.digest in seen:
            continue
        seen.add(case.plan.digest)
        findings.plans += 1
        largest = max(ratios(case, rng), default=Fraction(0))
        findings.vacuous += largest == 0
        findings.ratio[case.operator] = max(findings.ratio[case.operator], largest)
        if largest > 1:
            findings.violations.append(case)
        if until is not None and largest > until:
            break
    return findings
