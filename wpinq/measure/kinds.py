"""What kind of number a release gives: a count, a rescaled count, a weight that is no count, or a statistic.

From the plan and its sources' declarations alone, so that it says nothing of the data, and is the same whatever the
notation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from wpinq.expr.values import Value
from wpinq.plan.certify import certify
from wpinq.plan.counting import NoCount
from wpinq.plan.node import Node

COUNT, RESCALED, WEIGHT, STATISTIC = "count", "rescaled count", "weight, not a count", "statistic"
"""The four kinds, as tables and columns call them."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of number a measurement releases.

    Attributes
    ----------
    name : str
        "count", "rescaled count", "weight, not a count", or "statistic".
    of : str
        What is counted, why it is no count, or which statistic it is.
    factor : Fraction
        What one of the things counted adds to a weight: 1 unless the count is rescaled. An answer divided by it is the
        count, and so are the ends of its interval.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int, facts=["unit_weights"])
    >>> people.select(lambda p: p.city).noisy_count(epsilon=1).kind.name
    'count'
    >>> print(people.group_by(lambda p: p.city).noisy_count(epsilon=1).kind)
    rescaled count: of groups of rows of people, which weigh 1/2 each
    """

    name: str
    of: str
    factor: Fraction = Fraction(1)

    def __str__(self) -> str:
        if self.name == RESCALED:
            return f"{self.name}: {self.of}, which weigh {self.factor} each"
        return f"{self.name}: {self.of}"

    def at(self, key: Value) -> tuple[str, Fraction]:
        """The name of the kind of one answer, and what it is divided by."""
        return self.name, self.factor


def kind_of_weights(plan: Node) -> Kind:
    """What the weights of a plan are, where these are what is released."""
    found = certify(plan).counted
    if isinstance(found, NoCount):
        return Kind(WEIGHT, f"{found.step} {found.reason}")
    return Kind(COUNT if found.factor == 1 else RESCALED, f"of {found.of}", found.factor)
