"""Identity: every bin by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.api.query import Query
from wpinq.expr.trace import UserFunction
from wpinq.expr.values import Value
from wpinq.histograms.strategies.linear import Coefficient, LinearStrategy
from wpinq.histograms.strategies.strategy import bins_of
from wpinq.histograms.workload import Workload
from wpinq.runtime.arrays import Floats


@dataclass(frozen=True)
class Identity(LinearStrategy):
    """Every bin by itself, L: `Select(bin)`. Sensitivity 1.

    Best for bins one by one; the noise of a range grows with its length.

    Parameters
    ----------
    domain : int
        The number of bins.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", age=int)
    >>> strategy = Identity(100)
    >>> strategy.query(people, bin=lambda p: p.age).uses()
    {'people': 1}
    """

    domain: int

    @property
    def keys(self) -> tuple[Value, ...]:
        return tuple(range(self.domain))

    @property
    def passes(self) -> int:
        return 0

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: `Select(bin)`, bins outside of the domain left out. Uses of the source: 1."""
        return bins_of(source, bin, self.domain)

    def elements(self, bin: Any) -> list[Coefficient]:
        return [(bin, 1.0)]

    def apply(self, histogram: Floats) -> Floats:
        return np.asarray(histogram, dtype=np.float64)

    def transpose(self, answers: Floats) -> Floats:
        return self.apply(answers)

    def estimate(self, answers: Floats) -> Floats:
        return self.apply(answers)

    def coefficients(self, queries: Floats) -> Floats:
        return self.apply(queries)

    def squared_norm(self, workload: Workload) -> float:
        return float(workload.gram_diagonal().sum())
