"""What a history of pure releases lost at a δ: a reading of it, beside the pure sum that budgets are kept in.

Divergences add up over releases. Over the parts of one partition they do not: one unit changes one part, or is spread
over several, which is no worse. So for each order the releases of a part are added up, and the largest part counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np

from wpinq.errors import EpsilonError
from wpinq.measure.renyi import Orders, divergence, least_epsilon
from wpinq.noise.epsilon import NANO, parse_epsilon
from wpinq.plan.demand import PartKey

NO_PROMISE = (
    "With a delta this is a reading of the history, and no promise where what was released, or its epsilon, was chosen "
    "by looking at answers. The promise, and the budget, is the pure epsilon."
)


@dataclass(frozen=True, slots=True)
class Charged:
    """One release, as an account was charged for it.

    Attributes
    ----------
    noise : str
        The kind of its noise.
    epsilon : Fraction
        What it costs the account by itself, one release alone.
    parts : tuple of PartKey
        The parts that it reads nothing beside, each within the one before; none where it reads anything else.
    """

    noise: str
    epsilon: Fraction
    parts: tuple[PartKey, ...] = ()


@dataclass(slots=True)
class _ReleasedFrom:
    """What was released from a dataset, by itself and from its parts."""

    released: Counter[tuple[str, Fraction]] = field(default_factory=Counter)
    partitions: dict[str, dict[str, _ReleasedFrom]] = field(default_factory=dict)

    def part(self, key: PartKey) -> _ReleasedFrom:
        partition, part = key
        return self.partitions.setdefault(partition, {}).setdefault(part, _ReleasedFrom())


def parse_delta(value: object) -> Fraction:
    """The δ that a number or a text means, exactly: more than 0 and less than 1.

    >>> parse_delta("1e-6")
    Fraction(1, 1000000)
    """
    try:
        delta = parse_epsilon(value)
    except EpsilonError:
        delta = Fraction(0)
    if not 0 < delta < 1:
        raise EpsilonError("a delta lies between 0 and 1, and is no finer than 1e-30: give for example 1e-6")
    return delta


def spent_at(delta: Fraction, charged: Iterable[Charged], spent: Fraction) -> Fraction:
    """The ε that releases lost at a δ, in whole nano-epsilon, rounded up.

    Parameters
    ----------
    delta : Fraction
        Between 0 and 1.
    charged : iterable of Charged
        All that was released at the cost of one account.
    spent : Fraction
        The pure sum, which the reading never exceeds.

    Returns
    -------
    Fraction
        For one unit, and two datasets that the pure promise covers.

    Notes
    -----
    Privacy cost: none; charges are public. It is true of a history whose charges were not chosen by looking at answers.

    Examples
    --------
    >>> history = [Charged("Laplace", Fraction(1, 10))] * 100
    >>> float(spent_at(Fraction(1, 10**6), history, Fraction(10)))
    4.984174177
    """
    root = _ReleasedFrom()
    for one in charged:
        dataset = root
        for key in one.parts:
            dataset = dataset.part(key)
        dataset.released[one.noise, one.epsilon] += 1
    found = least_epsilon(lambda t: _lost(root, t), float(delta))
    return min(spent, Fraction(math.ceil(Fraction(found) * NANO), NANO))


def _lost(root: _ReleasedFrom, t: Orders) -> Orders:
    """The divergence of all that was released from a dataset, for each order."""

    @cache
    def of_one(noise: str, epsilon: Fraction) -> Orders:
        return divergence(noise, t, math.nextafter(float(epsilon), math.inf))

    datasets = list(_below_first(root))
    lost: dict[int, Orders] = {}
    for dataset in datasets:
        total = np.zeros_like(t)
        for (noise, epsilon), times in dataset.released.items():
            total += times * of_one(noise, epsilon)
        for parts in dataset.partitions.values():
            total += np.maximum.reduce([lost.pop(id(part)) for part in parts.values()])
        lost[id(dataset)] = total
    return lost[id(root)]


def _below_first(root: _ReleasedFrom) -> Iterator[_ReleasedFrom]:
    """A dataset and its parts, parts before what was split: partitions may nest deeper than Python's calls."""
    found = [root]
    for dataset in found:
        found.extend(part for parts in dataset.partitions.values() for part in parts.values())
    return reversed(found)
