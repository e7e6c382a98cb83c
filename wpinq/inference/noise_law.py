"""The law of the noise in a strategy's answers: Laplace, or double-geometric on a lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wpinq.arrays import Floats
from wpinq.inference.checks import positive
from wpinq.inference.geometric_sums import geometric_half_widths, geometric_variance
from wpinq.inference.laplace_sums import linear_half_widths


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent noise of the density, or on multiples of a step the probability, `∝ exp(−|noise|/scale)`.

    Attributes
    ----------
    scale : float
        In units of the answers, more than 0.
    step : float, optional
        In units of the answers, the lattice of double-geometric noise, more than 0; None for Laplace noise.

    Examples
    --------
    >>> Noise(10.0).variance, round(Noise(10.0, step=5.0).variance, 1)
    (200.0, 195.9)
    """

    scale: float
    step: float | None = None

    def __post_init__(self) -> None:
        positive(self.scale, "the scale of noise")
        if self.step is not None:
            positive(self.step, "the step of a lattice")

    @property
    def variance(self) -> float:
        """`2·scale²`; on a lattice of step g `2αg²/(1 − α)²` with `α = exp(−g/scale)`, which is less."""
        if self.step is None:
            return 2 * self.scale**2
        return self.step**2 * geometric_variance(self.scale / self.step)

    def draw(self, random: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Reproducible noise for simulations. NOT private."""
        if self.step is None:
            return random.laplace(0.0, self.scale, shape)
        chance = -math.expm1(-self.step / self.scale)
        return self.step * (random.geometric(chance, shape) - random.geometric(chance, shape)).astype(np.float64)

    def half_widths(self, coefficients: Floats, confidence: float, repeats: Floats | None = None) -> Floats:
        """Half-widths of intervals around sums of this noise with public coefficients, a column a sum.

        `repeats`, of the same shape, are how many terms have each coefficient: one when left out. Each interval covers
        with the stated probability: exactly for Laplace noise, at least for noise on a lattice.
        """
        if self.step is None:
            return linear_half_widths(np.abs(coefficients) * self.scale, confidence, repeats)
        return self.step * geometric_half_widths(coefficients, self.scale / self.step, confidence, repeats)
