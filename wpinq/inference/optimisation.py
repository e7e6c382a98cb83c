"""Smooth minimisation, and linear algebra on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from wpinq.runtime.arrays import Floats

_MEMORY = 20


def minimise(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, iterations: int, tolerance: float = 1e-9
) -> tuple[Floats, float]:
    """A local minimum of a smooth function by L-BFGS.

    Parameters
    ----------
    objective : callable
        From a point to the value and the gradient there.
    start : array
        The first point.
    iterations : int
        The most steps.
    tolerance : float
        The search ends at a step that gains less than this share of the value, or of 1 where the value is smaller.

    Returns
    -------
    (array, float)
        The last point and its value, at most that of the start.

    Examples
    --------
    >>> point, value = minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), 50)
    >>> point.round(6)
    array([3., 3.])
    """
    from scipy.optimize import minimize

    options = {"maxiter": iterations, "maxfun": 40 * iterations, "ftol": tolerance, "gtol": 0.0, "maxcor": _MEMORY}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x, dtype=np.float64), float(found.fun)


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Run the BLAS libraries of numpy and scipy on one thread inside of the block.

    An optimiser calls them up to some hundred thousand times, for microseconds each. Further threads only wait for the
    next call, and compete with other work for the cores. The last bits of results depend on the number of threads, so
    on one thread they do not depend on the machine's.
    """
    import scipy.optimize  # noqa: F401  (a library that is loaded later is not limited)
    import threadpoolctl

    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        yield
