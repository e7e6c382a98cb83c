"""Running totals of a series: a tree of nodes over epochs, of which each is released once.

A total over n epochs is a sum of few nodes. After Chan, Shi and Song, *Private and continual release of statistics*,
TISSEC 2011, and Honaker, *Efficient use of differentially private binary trees*, TPDP 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

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

#: The numbers of the first and last epoch of a node.
Place = tuple[int, int]

#: What stands between these epochs in its name; and a weight that is one of 0.
_TO, _NONE = " to ", 1e-9


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

    def node(self, place: Place) -> ListedMeasurement:
        """The node over some epochs: the Concat of the query of each of them."""
        size = place[1] - place[0] + 1
        level = size.bit_length() - 1
        if size != 2**level or (place[0] - 1) % size or place[0] < 1:
            raise PlanError("a node covers 2^k epochs, after a whole number of such")
        epochs = [Query(Node(source_at(self.template, label))) for label in self.calendar.labels(*place)]
        whole = concat_all([*map(self.query, epochs)])
        share = Prepaid(self._tree, level, self.levels)
        return ListedMeasurement(whole.plan, NoisyCount(), self.epsilon, self.keys, whole.reading, None, share)

    def due(self, label: str) -> dict[str, ListedMeasurement]:
        """The nodes that end with an epoch, by name, to be released when it is over."""
        number = self.calendar.number(label)
        places = [(number - 2**level + 1, number) for level in range(self.levels) if number % 2**level == 0]
        return {_TO.join(self.calendar.labels(at, at)[0] for at in place): self.node(place) for place in places}

    def total(self, label: str, answers: Mapping[str, Answers], revised: bool = False) -> RunningAnswers:
        """The total from the first epoch on, by least squares over the nodes released until then.

        Parameters
        ----------
        label : str
            The last epoch.
        answers : mapping
            The released nodes by name, as `due` names them; at least those of the epochs not covered by larger ones.
        revised : bool
            Whether nodes that end later have a part in it: the total of a published epoch then changes.

        Returns
        -------
        RunningAnswers
            For each key, the total and its interval. Distinct values of an epoch are summed over epochs.
        """
        number = self.calendar.number(label)
        places = {name: self._place(name) for name in answers if _TO in name}
        nodes = {place: answers[name] for name, place in places.items() if revised or place[1] <= number}
        for place, own in nodes.items():
            if _identity(own.measurement) != _node(self, place) or own.simulated:
                raise AnswersError(f"the answers of the epochs {place} are not of this running total")
        firsts, lasts, scales = np.array([(*place, own.scale) for place, own in nodes.items()]).reshape(-1, 3).T
        epochs = np.arange(1, max([number, *lasts]) + 1)[:, None]
        # nodes are disjoint or nested: so the sum is known of each set of epochs that the same nodes cover
        sets, which = np.unique((firsts <= epochs) & (epochs <= lasts), axis=0, return_inverse=True)
        share = np.bincount(which.ravel(), epochs.ravel() <= number) / np.bincount(which.ravel())
        if (known := sets.any(axis=1)) @ (share % 1) or ~known @ share:
            raise AnswersError(f"the answers do not make the total: give all nodes that were due until {label}")
        # of all weights that make the total of the nodes, those of least variance
        matrix = sets[known].T / scales[:, None]
        weights = matrix @ np.linalg.solve(matrix.T @ matrix, share[known]) / scales
        terms = [(weight, own) for weight, (_, own) in zip(weights, nodes.items(), strict=True) if abs(weight) > _NONE]
        values = np.sum([weight * own.values for weight, own in terms], axis=0)
        return RunningAnswers(label, terms[0][1].keys, values, np.array([abs(w) * own.scale for w, own in terms]))

    def _place(self, name: str) -> Place:
        first, _, last = name.partition(_TO)
        return self.calendar.number(first), self.calendar.number(last)

    @property
    def _tree(self) -> str:
        plan = self.query(Query(Node(self.template))).plan
        return digest_of("running", plan.digest, str(self.epsilon), *canonical_bytes_of(self.keys, plan.type)).hex()


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
