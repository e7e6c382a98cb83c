"""The prior of all estimates, a curve over log2 of the degree, and the misfit to answers.

A curve is a level, a slope and a bend at each knot, the bends independent and normal: an integrated random walk, whose
posterior mode is a smoothing spline (Wahba, JRSS B 1978). Written in standard normal variables z it is `basis @ z`, so
that the prior is `‖z‖²/2` and an optimiser needs no scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wpinq.runtime.arrays import Floats

SPACING = 0.5
"""Between knots, in octaves."""
_OUT_OF_STEPS = 1
"""What SciPy's L-BFGS-B says when it did all iterations it was given."""
_GAIN = 0.01
"""Of the logarithm of a likelihood; a search that gains less by beginning anew has ended."""


def curve_basis(at: Floats, level: float, slope: float, bend: float) -> Floats:
    """The matrix B for which `B @ z`, z standard normal, is a random curve at the given points.

    Parameters
    ----------
    at : array of shape (n,)
        Where, in octaves.
    level, slope : float
        Standard deviations of the curve and of its slope per octave at the lowest point.
    bend : float
        Standard deviation of the change of the slope over one octave.

    Returns
    -------
    array of shape (n, variables)

    Examples
    --------
    >>> curve_basis(np.array([0.0, 0.5, 1.0]), level=1.0, slope=2.0, bend=0.0).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 0.0]]
    """
    place = (at - at.min()) / SPACING
    knots = max(3, int(np.ceil(place.max())) + 1)
    number = np.arange(knots)
    curve = np.zeros((knots, knots))
    curve[:, 0] = level
    curve[:, 1] = slope * SPACING * number
    for knot in range(2, knots):
        curve[knot:, knot] = bend * SPACING**1.5 * (number[knot:] - knot + 1)
    left = np.minimum(place.astype(np.int64), knots - 2)
    share = (place - left)[:, None]
    return np.asarray((1 - share) * curve[left] + share * curve[left + 1])


def most_likely(
    negative: Callable[[Floats], tuple[float, Floats]], start: Floats, iterations: int, most: Floats | None = None
) -> Floats:
    """The point, nowhere above `most`, where a function, given with its gradient, is least, by L-BFGS.

    A search that thinks it has ended begins anew where it stands, as long as that leads lower: one that met a bound
    from a steep place takes steps too small to tell from an end.
    """
    from scipy.optimize import Bounds, minimize

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-9}
    bounds = None if most is None else Bounds(ub=most)
    point, least = start, np.inf
    while True:
        found = minimize(negative, point, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if found.status == _OUT_OF_STEPS or not found.fun < least - _GAIN:
            return np.asarray(found.x)
        point, least = found.x, found.fun


def evidence_mean(estimates: Sequence[Floats], evidence: Sequence[float]) -> Floats:
    """The mean of estimates, each weighted by its evidence, of which the natural logarithm is given.

    Examples
    --------
    >>> evidence_mean([np.array([1.0]), np.array([4.0])], [np.log(2e-300), np.log(1e-300)]).round(9).tolist()
    [2.0]
    """
    relative = np.exp(np.asarray(evidence) - max(evidence))
    return np.asarray(np.average(np.stack(estimates), axis=0, weights=relative))


# --- the misfit of estimates under Laplace noise ----------------------------------------------------------------------

# Where several answers say one thing, the mean absolute difference tells twice what the mean square does: noise of
# standard deviation 1 has Fisher information 2 by its law, 1 by that of normal noise. It is rounded where it is 0, so
# that a search by gradients ends.

INFORMATION = 2.0
"""The Fisher information of an answer in deviations: the curvature to count, for at a point it is all or nothing."""
ROUNDED = 0.3
"""In deviations."""


def laplace_misfit(off: Floats, rounded: float = ROUNDED) -> tuple[Floats, Floats]:
    """Minus the logarithm of the likelihood of each difference, up to a constant, and its slope.

    `√2·|u|` of a difference of u deviations, rounded below so many of them.

    Examples
    --------
    >>> misfit, slope = laplace_misfit(np.array([0.0, -4.0]))
    >>> misfit.round(2).tolist(), slope.round(2).tolist()
    ([0.0, 5.25], [0.0, -1.41])
    """
    size = np.hypot(off, rounded)
    return np.asarray(np.sqrt(2) * (size - rounded)), np.asarray(np.sqrt(2) * off / size)
