"""Estimates keep linear algebra on one thread, and put it back."""

from __future__ import annotations

import pytest
import threadpoolctl

from wpinq.inference.least_squares import single_blas_thread

pytestmark = pytest.mark.long


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]


def test_blas_runs_on_one_thread_and_then_as_before() -> None:
    import scipy.optimize  # noqa: F401  (it brings a library of its own)

    with threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with single_blas_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        assert set(before) != {1}
