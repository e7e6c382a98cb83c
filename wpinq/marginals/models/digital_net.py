"""Points that fill a cube evenly, in every few of its dimensions: Sobol's net, shifted at random."""

from __future__ import annotations

import numpy as np

from wpinq.arrays import Integers

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
