"""Running totals of a series: a tree of nodes over epochs, of which each is released once.

A total over n epochs is a sum of few nodes. After Chan, Shi and Song, *Private and continual release of statistics*,
TISSEC 2011, and Honaker, *Efficient use of differentially private binary trees*, TPDP 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.api.query import Query
from wpinq.errors import AnswersError, PlanError
from wpinq.expr.epochs import Epoch
from wpinq.expr.nodes import digest_of
from wpinq.expr.values import Value, canonical_bytes_of
from wpinq.inference.intervals import linear_half_widths
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import ListedMeasurement, Measurement
from wpinq.measure.prepaid import Prepaid, source_at
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.node import Node
from wpinq.plan.operators.source import Source
from wpinq.runtime.public import public
from wpinq.sinks.laplace import NoisyCount

Place = tuple[int, int]
"""The numbers of the first and last epoch of a node."""


@public
@dataclass(frozen=True, repr=False)
class RunningTotal:
    """A running total of a query over the epochs of a series: see `Series.running`.

    Attributes
    ----------
    template : Source
        The series.
    query : callable
        From the source of an epoch to what is counted of it.
    epsilon : Fraction
        Of each node.
    keys : tuple
        The public keys.
    levels : int
        The number of levels: a node of level k covers `2^k` epochs.
    """

    template: Source
    query: Callable[[Query], Query]
    epsilon: Fraction
    keys: tuple[Value, ...]
    levels: int

    def __post_init__(self) -> None:
        each, (first, *_) = self.calendar.each, Bill([self.node((1, 1))]).values()
        if each is not None and first > each:
            raise PlanError(
                f"an epoch owes {self.levels} levels of {format_epsilon(self.epsilon)} and its budget is "
                f"{format_epsilon(each)}: take fewer levels, a smaller epsilon, or a larger budget_each"
            )

    @property
    def calendar(self) -> Epoch:
        """The calendar of the epochs."""
        assert self.template.epoch is not None
        return self.template.epoch

    def _of_epoch(self, label: str) -> Query:
        return self.query(Query(Node(source_at(self.template, label))))

    def node(self, place: Place) -> ListedMeasurement:
        """The node over some epochs: the Concat of the query of each of them."""
        size = place[1] - place[0] + 1
        level = size.bit_length() - 1
        if size != 2**level or (place[0] - 1) % size or place[0] < 1:
            raise PlanError("a node covers 2^k epochs, after a whole number of such")
        whole = concat_all([*map(self._of_epoch, self.calendar.labels(*place))])
        share = Prepaid(self._tree, level, self.levels)
        return ListedMeasurement(whole.plan, NoisyCount(), self.epsilon, self.keys, whole.reading, None, share)

    def due(self, label: str) -> dict[str, ListedMeasurement]:
        """The nodes that end with an epoch, by name, to be released when it is over."""
        number = self.calendar.number(label)
        sizes = [2**level for level in range(self.levels) if number % 2**level == 0]
        places = [(number - size + 1, number) for size in sizes]
        return {self._title(place): self.node(place) for place in places}

    def total(self, label: str, answers: Mapping[str, Answers]) -> RunningAnswers:
        """The total from the first epoch on, by least squares over the nodes released until then.

        A total is not revised by nodes that are released later.

        Parameters
        ----------
        label : str
            The last epoch.
        answers : mapping
            The released nodes by name, as `due` names them; at least those of the epochs not covered by larger ones.

        Returns
        -------
        RunningAnswers
            For each key, the total and its interval. Distinct values of an epoch are summed over epochs.
        """
        number, size = self.calendar.number(label), 2 ** (self.levels - 1)
        terms: list[tuple[float, Answers]] = []
        first = 1
        while first <= number:
            while first + size - 1 > number:
                size //= 2
            found = self._node(first, first + size - 1, answers)
            if found is None:
                raise AnswersError(f"the total needs the answers of the node {self._title((first, first + size - 1))}")
            terms += found[1]
            first += size
        weights = np.array([weight for weight, _ in terms])
        values = weights @ np.array([node.values for _, node in terms])
        return RunningAnswers(label, terms[0][1].keys, values, weights * [node.scale for _, node in terms])

    def _node(
        self, first: int, last: int, answers: Mapping[str, Answers]
    ) -> tuple[float, list[tuple[float, Answers]]] | None:
        """The variance of the best estimate below a node, and the weight of each answer in it."""
        own = answers.get(self._title((first, last)))
        if own is not None and (_identity(own.measurement) != _node(self, (first, last)) or own.simulated):
            raise AnswersError(f"the answers {self._title((first, last))} are not of this running total")
        middle = (first + last) // 2
        halves = [self._node(*half, answers) for half in ((first, middle), (middle + 1, last))] if first < last else []
        below = [half for half in halves if half is not None]
        if own is None and (len(below) < 2):
            return None
        if own is None or len(below) < 2:
            return (2 * own.scale**2, [(1.0, own)]) if own is not None else _sum(below)
        variance, terms = _sum(below)
        share = variance / (variance + 2 * own.scale**2)
        return share * 2 * own.scale**2, [(share, own), *(((1 - share) * weight, node) for weight, node in terms)]

    @property
    def _tree(self) -> str:
        plan = self.query(Query(Node(self.template))).plan
        return digest_of("running", plan.digest, str(self.epsilon), *canonical_bytes_of(self.keys, plan.type)).hex()

    def _title(self, place: Place) -> str:
        return " to ".join(self.calendar.labels(each, each)[0] for each in place)


def concat_all(queries: list[Query]) -> Query:
    """The Concat of some queries, in a balanced tree.

    Of a chain, each step would look at all sources before it.
    """
    middle = len(queries) // 2
    return concat_all(queries[:middle]).concat(concat_all(queries[middle:])) if middle else queries[0]


@lru_cache(maxsize=4096)  # each total reads the nodes of all earlier ones
def _node(total: RunningTotal, place: Place) -> tuple[bytes, tuple[Value, ...] | None]:
    return _identity(total.node(place))


def _identity(measurement: Measurement) -> tuple[bytes, tuple[Value, ...] | None]:
    """The noise of a node and its keys; answers from a file have no more."""
    return replace(measurement, prepaid=None).digest, measurement.domain


def _sum(parts: list[tuple[float, list[Any]]]) -> tuple[float, list[Any]]:
    return sum(variance for variance, _ in parts), [term for _, terms in parts for term in terms]


@public
@dataclass(frozen=True)
class RunningAnswers:
    """A running total up to an epoch, for each key.

    Attributes
    ----------
    label : str
        The last epoch.
    keys : tuple
        The keys.
    values : numpy array of float64
        The totals, in the order of the keys.
    scales : numpy array of float64
        The scales of the independent Laplace terms of which the noise of each total is the sum.
    """

    label: str
    keys: tuple[Value, ...]
    values: NDArray[np.float64]
    scales: NDArray[np.float64]

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in each total."""
        return float(np.sqrt(2 * (self.scales**2).sum()))

    def interval(self, key: Value, confidence: float = 0.95) -> tuple[float, float]:
        """The interval that contains the total without noise with this probability.

        It is for keys that were fixed before the epochs. Of a key chosen from answers that are part of this total, the
        noise is not that of a key chosen in advance.
        """
        half = float(linear_half_widths(self.scales[:, None], confidence)[0])
        value = float(self.values[self.keys.index(key)])
        return value - half, value + half
