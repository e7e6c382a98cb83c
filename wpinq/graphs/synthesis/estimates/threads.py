"""One thread for linear algebra on small vectors, where a second one does nothing but wait for its next call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wpinq.errors import AnswersError
from wpinq.installing import install


@contextmanager
def one_blas_thread() -> Iterator[None]:
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
