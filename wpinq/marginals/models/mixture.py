"""Mixtures of products: records are of a few hundred kinds, and within a kind attributes are independent.

A marginal of two attributes is then one matrix product, and one of more a product of two matrices whose columns are
products of a kind's shares. So a fit costs a few matrix products a step, whatever the size of the table.

Source: Aydore et al., *Differentially Private Query Release Through Adaptive Projection*, ICML 2021, and Liu, Vietri
and Wu, *Iterative Methods for Private Synthetic Data*, NeurIPS 2021: mixtures of products that are fitted by gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.marginals.attributes import View
from wpinq.marginals.models.joint_model import FitTarget, JointModel, systematic
from wpinq.runtime.arrays import Floats, Integers

_BITS = 30


class DigitalNet:
    """A net of points, of which random shifts are taken.

    Parameters
    ----------
    points : int
        The most points that are taken at once.
    dimensions : int
        Of the cube.

    Notes
    -----
    A shift adds the same random digits, without carry, to all points: it keeps the net's evenness, and every point by
    itself is uniform. Source: Sobol', *On the distribution of points in a cube*, 1967; Owen, *Monte Carlo extension of
    quasi-Monte Carlo*, WSC 1998, for the shift.

    Examples
    --------
    >>> net = DigitalNet(4, 2)
    >>> ranks = net.ranks(4, np.random.default_rng(0))
    >>> np.sort(ranks, axis=0).tolist(), sorted(map(tuple, (ranks // 2).tolist()))
    ([[0, 0], [1, 1], [2, 2], [3, 3]], [(0, 0), (0, 1), (1, 0), (1, 1)])
    """

    def __init__(self, points: int, dimensions: int) -> None:
        from scipy.stats import qmc

        powers = max(0, (points - 1).bit_length())
        net = qmc.Sobol(dimensions, scramble=False, bits=_BITS).random_base2(powers)
        self._points: Integers = np.rint(net * 2**_BITS).astype(np.int64)

    def ranks(self, points: int, random: np.random.Generator) -> Integers:
        """For some points their ranks in each dimension, of shape (points, dimensions): each from 0 on, once."""
        shifted = self._points[:points] ^ random.integers(0, 2**_BITS, self._points.shape[1])
        found: Integers = np.empty_like(shifted)
        places = np.broadcast_to(np.arange(points)[:, None], shifted.shape)
        np.put_along_axis(found, np.argsort(shifted, axis=0), places, axis=0)
        return found


_STEP = 0.1
_FIRST_MOMENT, _SECOND_MOMENT = 0.9, 0.99
_SPREAD = 0.5
"""The standard deviation of the logarithms that kinds begin with, around the table's own shares."""
_CENTRINGS = 8

Shares = NDArray[Any]
"""Of each kind (first axis), the shares of an attribute's values, or of the cells of several attributes."""


@dataclass(eq=False, repr=False)
class MixtureModel(JointModel):
    """A mixture of products: `p(record) = 1/K Σ_k Π_i p_{k,i}(record_i)`. What `fit` gives unless told otherwise.

    Attributes
    ----------
    shares : tuple of arrays
        For each attribute its shares in each kind, of shape (K, size).
    """

    shares: tuple[Floats, ...]

    def _shares(self, view: View) -> Floats:
        kinds = len(self.shares[0])
        parts = [self.shares[i] for i in view]
        if not parts:
            return np.ones(())
        cut = _cut([part.shape[1] for part in parts])
        left, right = product_of(parts[:cut]), product_of(parts[cut:], kinds)
        return np.asarray(left.T @ right / kinds).reshape(self.attributes.shape(view))

    def _rows(self, rows: int, random: np.random.Generator) -> Integers:
        kinds = len(self.shares[0])
        found = np.empty((rows, len(self.shares)), dtype=np.int64)
        kind = systematic(np.full(kinds, 1 / kinds), rows, random)
        ends = np.searchsorted(kind, np.arange(kinds + 1))
        net = DigitalNet(-(-rows // kinds), len(self.shares))
        for k, (start, stop) in enumerate(pairwise(ends.tolist())):
            # which value meets which is the net's: pairs of attributes come out nearly as even as each by itself
            ranks = net.ranks(stop - start, random)
            for i, shares in enumerate(self.shares):
                found[start:stop, i] = systematic(shares[k], stop - start, random)[ranks[:, i]]
        return found


def fit_mixture(target: FitTarget, components: int, members: int, steps: int, seed: int) -> MixtureModel:
    """Several mixtures, each from its own random start, as one: what differs from start to start averages out."""
    found = [_MixtureFit(target, components, np.random.default_rng([seed, member])) for member in range(members)]
    taken = [member.run(steps) for member in found]
    parts = zip(*(member.shares(np.float64) for member in found), strict=True)
    shares = tuple(np.concatenate(of_one) for of_one in parts)
    model = MixtureModel(target.attributes, target.total, target.views, 0.0, max(taken), shares)
    left = sum(float(((model.marginal(each.view) - each.counts) ** 2).sum()) / each.variance for each in target.views)
    model.loss = left / target.cells
    return model


@dataclass(slots=True)
class _CutView:
    """A measured view in the units of a fit: counts over those of one kind, cut into two groups of attributes."""

    left: View
    right: View
    counts: Shares
    weight: np.floating[Any]


class _MixtureFit:
    """One mixture on its way: Adam on the logarithms of the shares, in floats of 32 bits for speed."""

    def __init__(self, target: FitTarget, components: int, random: np.random.Generator, kind: Any = np.float32) -> None:
        sizes = target.attributes.sizes
        self.limit = target.limit
        ends = np.cumsum(sizes)
        self.places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        records = target.total / components
        self.asked = []
        for measured in target.views:
            cut = _cut(target.attributes.shape(measured.view))
            left, right = measured.view[:cut], measured.view[cut:]
            counts = (measured.counts / records).reshape(target.attributes.cells(left), -1).astype(kind)
            self.asked.append(_CutView(left, right, counts, kind(records**2 / measured.variance)))
        self.logits: Shares = np.hstack([_scattered(each, components, random) for each in target.singles]).astype(kind)

    def shares(self, kind: Any = None) -> list[Shares]:
        """Of each attribute, in each kind: `softmax` of its logarithms."""
        found = []
        for place in self.places:
            logits = self.logits[:, place].astype(kind or self.logits.dtype, copy=False)
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            found.append(weights)
        return found

    def loss_and_gradient(self) -> tuple[float, Shares]:
        """The loss, and its derivatives by the logarithms."""
        shares = self.shares()
        slopes = [np.zeros_like(each) for each in shares]
        loss = 0.0
        for asked in self.asked:
            left = product_of([shares[i] for i in asked.left])
            right = product_of([shares[i] for i in asked.right], len(left))
            gap = left.T @ right - asked.counts
            weighted = asked.weight * gap
            loss += float(np.vdot(gap, weighted)) / 2
            _spread(right @ weighted.T, asked.left, shares, slopes)
            _spread(left @ weighted, asked.right, shares, slopes)
        gradient = np.empty_like(self.logits)
        for place, share, slope in zip(self.places, shares, slopes, strict=True):
            gradient[:, place] = share * (slope - (share * slope).sum(axis=1, keepdims=True))
        return loss, gradient

    def run(self, steps: int) -> int:
        """Steps until the loss is at the limit, the last third of them ever smaller; how many were taken."""
        first, second = np.zeros_like(self.logits), np.zeros_like(self.logits)
        for step in range(1, steps + 1):
            loss, gradient = self.loss_and_gradient()
            if loss <= self.limit:
                return step - 1
            first += (1 - _FIRST_MOMENT) * (gradient - first)
            second += (1 - _SECOND_MOMENT) * (gradient**2 - second)
            length = _STEP * min(1.0, 3 * (steps - step) / steps) / (1 - _FIRST_MOMENT**step)
            root = np.sqrt(second / (1 - _SECOND_MOMENT**step)) + 1e-12
            self.logits -= length * first / root
        return steps


def _scattered(shares: Floats, components: int, random: np.random.Generator) -> Floats:
    """Logarithms of shares, another in each kind, whose mean over the kinds is as given."""
    logits = np.log(shares) + _SPREAD * random.normal(size=(components, len(shares)))
    for _ in range(_CENTRINGS):
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        logits += np.log(shares / weights.mean(axis=0))
    return np.asarray(logits)


def product_of(parts: Sequence[Shares], kinds: int = 0) -> Shares:
    """Within each kind, the shares of the cells of several attributes, the last fastest; of none, 1 a kind."""
    if not parts:
        return np.ones((kinds, 1), dtype=np.float32)
    found = parts[0]
    for part in parts[1:]:
        found = (found[:, :, None] * part[:, None, :]).reshape(len(part), -1)
    return found


def _spread(slope: Shares, view: View, shares: list[Shares], slopes: list[Shares]) -> None:
    """Add what the derivatives by the cells of a group of attributes are by each of them."""
    if len(view) == 1:
        slopes[view[0]] += slope
    elif view:
        cut = _cut([shares[i].shape[1] for i in view])
        left, right = product_of([shares[i] for i in view[:cut]]), product_of([shares[i] for i in view[cut:]])
        cells = slope.reshape(len(left), left.shape[1], right.shape[1])
        _spread(np.matmul(cells, right[:, :, None])[:, :, 0], view[:cut], shares, slopes)
        _spread(np.matmul(left[:, None, :], cells)[:, 0, :], view[cut:], shares, slopes)


def _cut(sizes: Sequence[int]) -> int:
    """Where to cut some attributes into two groups so that the larger has the fewest cells."""
    return min(range(1, len(sizes)), key=lambda cut: max(prod(sizes[:cut]), prod(sizes[cut:])), default=1)
