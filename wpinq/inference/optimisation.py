"""A small quasi-Newton minimiser (L-BFGS) whose arithmetic starts no threads.

scipy's calls threaded BLAS on every vector, and numpy does on every large matrix: where other work shares the cores,
their threads wait for each other, and the optimisation of a strategy took five to a hundred times longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.runtime.arrays import Floats
from wpinq.runtime.optional_imports import install

_MEMORY = 20
_SUFFICIENT = 1e-4
_HALVINGS = 40
_UNTHREADED = 1 << 17
"""Products of matrices of fewer multiplications start no threads in OpenBLAS, whose bound is twice that."""


def minimise(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, iterations: int, tolerance: float = 1e-9
) -> tuple[Floats, float]:
    """A local minimum of a smooth function by limited-memory BFGS with backtracking (Armijo).

    `objective` gives the value and the gradient at a point. At most `iterations` steps, until one gains less than the
    share `tolerance` of the value. The last point and its value, at most that of the start, are given back.

    Source: Nocedal and Wright, *Numerical optimization*, algorithm 7.5.

    Examples
    --------
    >>> point, value = minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), 50)
    >>> point.round(6)
    array([3., 3.])
    """
    point, (value, gradient) = start, objective(start)
    memory: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    for _ in range(iterations):
        direction = -_scaled(gradient, memory)
        slope = _dot(direction, gradient)
        if slope >= 0:
            memory.clear()
            direction, slope = -gradient, -_dot(gradient, gradient)
        if slope == 0:
            break
        step = 1.0 if memory else min(1.0, 1.0 / float(np.abs(gradient).sum()))
        for _ in range(_HALVINGS):
            moved = point + step * direction
            new_value, new_gradient = objective(moved)
            if new_value <= value + _SUFFICIENT * step * slope:
                break
            step /= 2
        else:
            break
        change, turn = moved - point, new_gradient - gradient
        curvature = _dot(change, turn)
        if curvature > 1e-12 * _dot(turn, turn) ** 0.5 * _dot(change, change) ** 0.5:
            memory.append((change, turn, curvature))
        gained = value - new_value
        point, value, gradient = moved, new_value, new_gradient
        if gained <= tolerance * abs(value) and len(memory) > 1:
            break
    return point, value


def _scaled(gradient: Floats, memory: deque[tuple[Floats, Floats, float]]) -> Floats:
    """The inverse Hessian's approximation times the gradient: the two-loop recursion."""
    found, shares = gradient.copy(), []
    for change, turn, curvature in reversed(memory):
        share = _dot(change, found) / curvature
        shares.append(share)
        found -= share * turn
    if memory:
        _, turn, curvature = memory[-1]
        found *= curvature / _dot(turn, turn)
    for (change, turn, curvature), share in zip(memory, reversed(shares), strict=True):
        found += (share - _dot(turn, found) / curvature) * change
    return found


def _dot(left: Floats, right: Floats) -> float:
    return float((left * right).sum())


def matrix_product(left: Floats, right: Floats) -> Floats:
    """`left @ right`, in blocks of the longest axis too small for threads.

    Examples
    --------
    >>> left, right = np.arange(600_000.0).reshape(2, -1) % 7, np.ones((300_000, 2))
    >>> bool((matrix_product(left, right) == left @ right).all())
    True
    """
    rows, inner = left.shape
    columns = right.shape[1]
    longest = max(rows, inner, columns)
    block = max(1, _UNTHREADED * longest // (rows * inner * columns))
    right = np.array(right, order="C")  # of one array and its transpose numpy makes another, threaded call
    found = np.zeros((rows, columns))
    for start in range(0, longest, block):
        part = slice(start, start + block)
        if longest == inner:
            found += left[:, part] @ right[part]
        elif longest == rows:
            found[part] = left[part] @ right
        else:
            found[:, part] = left @ right[:, part]
    return found


# One thread for linear algebra on small vectors, where a second one does nothing but wait for its next call.


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Let the BLAS libraries of numpy and scipy run on one thread, whatever they ran on before; then as before.

    The optimiser calls them some hundred thousand times, for microseconds each, between which their other threads spin.
    What they give depends on the number of threads in its last bits; so estimates do not depend on the machine either.
    """
    import scipy.optimize  # noqa: F401  (its library must be there to be told)

    with import_threadpoolctl().threadpool_limits(limits=1, user_api="blas"):
        yield


def import_threadpoolctl() -> Any:
    """threadpoolctl, when first used; AnswersError where it is not installed."""
    try:
        import threadpoolctl
    except ModuleNotFoundError:
        raise AnswersError(f"synthetic graphs need threadpoolctl: {install('synthesis')}") from None
    return threadpoolctl
