"""Float evaluation against exact evaluation: the documented rounding bound, and independence of input order."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from tests.support.plans import DYADIC_WEIGHTS, OPERATORS, Case, Data, distance, neighbour, norm, random_case
from wpinq.engines import reference
from wpinq.plan import arithmetic
from wpinq.plan.node import sources, topological
from wpinq.plan.properties import plan_properties


@dataclass
class FloatFindings:
    """What a run over random plans found: cases that break a promise, and the largest share of the bound used."""

    rounding: list[Case] = field(default_factory=list)
    order: list[Case] = field(default_factory=list)
    norm_bound: list[Case] = field(default_factory=list)
    slack: list[Case] = field(default_factory=list)
    largest: Fraction = Fraction(0)
    slack_trials: int = 0

    @property
    def violations(self) -> list[Case]:
        """All of them."""
        return [*self.rounding, *self.order, *self.norm_bound, *self.slack]


def shuffled(rng: Random, data: Data) -> Data:
    """The same datasets with their records in another order."""
    return {name: dict(rng.sample(list(weights.items()), len(weights))) for name, weights in data.items()}


def check_floats(seed: int, plans: int, operators: tuple[str, ...] = OPERATORS) -> FloatFindings:
    """Random plans over weights that floats hold exactly, each source's cap being its norm.

    Checked: `‖float − exact‖ ≤ rounding_error(plan)`; equal bits for shuffled sources; every node's exact norm is
    within its mass; and for neighbours at distance 1 or more within the caps,
    `‖float(A) − float(A′)‖ ≤ (1 + slack) · Σ_s S_s · ‖A_s − A′_s‖`.
    """
    rng, findings = Random(seed), FloatFindings()
    for i in range(plans):
        case = random_case(rng, operators[i % len(operators)], DYADIC_WEIGHTS)
        declared = sources([case.plan])
        rounded = reference.evaluate(case.plan, case.data, arithmetic.FLOAT)
        exact = reference.evaluate(case.plan, case.data, arithmetic.EXACT)
        error, bound = distance(rounded, exact), plan_properties(case.plan).rounding_error
        if bound:
            findings.largest = max(findings.largest, error / bound)
        if error > bound:
            findings.rounding.append(case)
        again = reference.evaluate(case.plan, shuffled(rng, case.data), arithmetic.FLOAT)
        if again != rounded:
            findings.order.append(case)
        bounds = plan_properties(case.plan).steps
        if any(
            norm(reference.evaluate(node, case.data, arithmetic.EXACT)) > bounds[node.digest].norm_bound
            for node in topological([case.plan])
        ):
            findings.norm_bound.append(case)
        near, distances = neighbour(rng, case.data, {name: source.record for name, source in declared.items()})
        within = all(norm(near[name]) <= source.cap for name, source in declared.items())
        if within and sum(distances.values()) >= 1:
            findings.slack_trials += 1
            stability = plan_properties(case.plan).stability
            allowed = sum((stability[name] * moved for name, moved in distances.items()), Fraction(0))
            moved = distance(rounded, reference.evaluate(case.plan, near, arithmetic.FLOAT))
            if moved > allowed * (1 + plan_properties(case.plan).slack()):
                findings.slack.append(case)
    return findings
