"""Partitions of bins, their Gibbs law and its losses by definition: to sixty digits, nothing of it by the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import median_low

Partition = tuple[int, ...]
"""The bins at which buckets begin."""

DIGITS = 60
Law = Mapping[Partition, Decimal]


def dyadic(bins: int) -> dict[Partition, tuple[int, int]]:
    """Every partition into nodes of the tree of halves: how many nodes were split for it, and how many not split."""
    size = 1
    while size < bins:
        size *= 2
    return _below(0, size, bins)


def _below(first: int, size: int, bins: int) -> dict[Partition, tuple[int, int]]:
    if size == 1:
        return {(first,): (0, 0)}
    middle = first + size // 2
    if middle >= bins:
        return _below(first, size // 2, bins)
    found = {(first,): (0, 1)}
    for left, (a, b) in _below(first, size // 2, bins).items():
        for right, (c, d) in _below(middle, size // 2, bins).items():
            found[left + right] = (a + c + 1, b + d)
    return found


def median_deviation(weights: Sequence[Fraction]) -> Fraction:
    """`min_c Σ |x_i − c|`."""
    middle = median_low(weights)
    return sum((abs(weight - middle) for weight in weights), Fraction(0))


def mean_deviation(weights: Sequence[Fraction]) -> Fraction:
    """`Σ |x_i − mean|`."""
    middle = sum(weights, Fraction(0)) / len(weights)
    return sum((abs(weight - middle) for weight in weights), Fraction(0))


def cost(
    weights: Sequence[float | Fraction],
    starts: Partition,
    penalty: Fraction,
    deviation: Callable[[Sequence[Fraction]], Fraction] = median_deviation,
) -> Fraction:
    """`Σ_I (D(I) + penalty)`."""
    ends = (*starts[1:], len(weights))
    exact = [Fraction(weight) for weight in weights]
    return sum((deviation(exact[a:b]) + penalty for a, b in zip(starts, ends, strict=True)), Fraction(0))


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def gibbs(
    weights: Sequence[float | Fraction],
    scale: Fraction,
    penalty: Fraction,
    split: Fraction,
    deviation: Callable[[Sequence[Fraction]], Fraction] = median_deviation,
) -> dict[Partition, Decimal]:
    """The law by its definition, summed over all partitions."""
    with localcontext() as context:
        context.prec = DIGITS
        found = {}
        for starts, (splits, stays) in dyadic(len(weights)).items():
            prior = decimal(split) ** splits * decimal(1 - split) ** stays
            found[starts] = prior * (-decimal(cost(weights, starts, penalty, deviation) / scale)).exp()
        total = sum(found.values())
        return {starts: weight / total for starts, weight in found.items()}


def log_ratios(one: Law, other: Law) -> list[Decimal]:
    """`ln(Pr / Pr')` of every outcome; infinite where one of the two is 0."""
    with localcontext() as context:
        context.prec = DIGITS
        return [
            (one[outcome] / other[outcome]).ln() if one[outcome] and other[outcome] else Decimal("inf")
            for outcome in one.keys() | other.keys()
        ]


def largest_loss(one: Law, other: Law) -> Decimal:
    """The auditor: the ε that two laws of the same outcomes tell apart."""
    return max(abs(ratio) for ratio in log_ratios(one, other))
