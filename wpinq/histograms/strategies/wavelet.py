"""Wavelet: the Haar coefficients of the histogram."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from wpinq.expr import functions as wp
from wpinq.expr.values import Value
from wpinq.histograms.inference.arrays import Floats
from wpinq.histograms.strategies.strategy import Element, LinearStrategy
from wpinq.histograms.workload import check_domain_size


@dataclass(frozen=True)
class Wavelet(LinearStrategy):
    """The Haar wavelet (Privelet). Sensitivity 1 + ⌈log₂ n⌉.

    The coefficient of a node, `(mean of left − mean of right)/2`, times the number W of leaves below it is
    `Σ left − Σ right`, and the base coefficient, the mean, times n is the total. Those are what is asked: the
    record (height, position) is the node over 2^height bins, (0, 0) the total. A bin adds 1 or −1 to each of
    its log₂ n nodes and 1 to the total, so that coefficient c gets noise of scale `λ/W(c)` as the method wants it.

    Parameters
    ----------
    domain : int
        The number of bins. When it is no power of two, the histogram is padded with empty bins; the inverse
        transform, cut to the domain, is then unbiased but no longer the least-squares estimate.

    Notes
    -----
    Source: Xiao, Wang, Gehrke, *Differential privacy via wavelet transforms*, ICDE 2010.

    Examples
    --------
    >>> Wavelet(4).apply(np.array([2.0, 0.0, 10.0, 2.0]))
    array([ 14., -10.,   2.,   8.])
    >>> Wavelet(4).infer([14, -10, 2, 8])
    array([ 2.,  0., 10.,  2.])
    """

    domain: int

    def __post_init__(self) -> None:
        check_domain_size(self.domain)

    @property
    def heights(self) -> int:
        """`⌈log₂ n⌉`."""
        return (self.domain - 1).bit_length()

    @property
    def sensitivity(self) -> Fraction:
        return Fraction(1 + self.heights)

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        heights = range(self.heights, 0, -1)
        return ((0, 0), *((h, i) for h in heights for i in range(self._nodes(h))))

    def _nodes(self, height: int) -> int:
        return -(-self.domain // (1 << height))

    def elements(self, bin: Any) -> list[Element]:
        found: list[Element] = [(wp.record(height=0, position=0), 1.0)]
        for h in range(1, self.heights + 1):
            half = bin if h == 1 else bin // 2 ** (h - 1)
            found.append((wp.record(height=h, position=bin // 2**h), wp.where(half % 2 == 0, 1.0, -1.0)))
        return found

    def apply(self, histogram: Floats) -> Floats:
        sums, details = np.asarray(histogram, dtype=np.float64), []
        for _ in range(self.heights):
            if len(sums) % 2:
                sums = np.concatenate((sums, np.zeros((1, *sums.shape[1:]))))
            details.append(sums[0::2] - sums[1::2])
            sums = sums[0::2] + sums[1::2]
        return np.concatenate([sums, *reversed(details)])

    def _down(self, answers: Floats, factor: float) -> Floats:
        values = np.asarray(answers, dtype=np.float64)
        sums, place = values[:1], 1
        for h in range(self.heights, 0, -1):
            size = self._nodes(h)
            detail = values[place : place + size]
            place += size
            below = np.empty((2 * size, *values.shape[1:]))
            below[0::2] = (sums + detail) * factor
            below[1::2] = (sums - detail) * factor
            sums = below[: self._nodes(h - 1)]
        return sums

    def transpose(self, answers: Floats) -> Floats:
        return self._down(answers, 1.0)

    def estimate(self, answers: Floats) -> Floats:
        return self._down(answers, 0.5)

    def coefficients(self, queries: Floats) -> Floats:
        # the rows of A are orthogonal, so (A⁻¹)ᵀ w is A w, each row over its squared norm: the leaves below it
        leaves = np.concatenate(
            [[2.0**self.heights]] + [np.full(self._nodes(h), 2.0**h) for h in range(self.heights, 0, -1)]
        )
        return np.asarray(self.apply(queries) / np.reshape(leaves, (-1,) + (1,) * (queries.ndim - 1)))
