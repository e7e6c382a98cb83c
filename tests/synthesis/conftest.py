"""Linear algebra on one thread, as whoever estimates has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wpinq.inference.least_squares import single_blas_thread


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tests of parts of an estimate call the optimiser without it: its second thread spins for most of their time."""
    with single_blas_thread():
        yield
