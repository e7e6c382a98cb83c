"""A handler of a signal of the user's own, as of a timeout, ends the work by its own error."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import wpinq as wp
from tests.support.parameters import tenth
from wpinq.runtime.signals import interruptible
from wpinq.sinks.laplace import NoisyCount

EDGES = wp.source("edges", src=int, dst=int)


class Late(Exception):
    """Of the user's."""


def late(*_: Any) -> None:
    raise Late("after a minute")


@pytest.fixture(params=tenth([signal.SIGALRM, signal.SIGPROF, signal.SIGTERM]), ids=str)
def alarm(request: pytest.FixtureRequest) -> Iterator[Any]:
    number = request.param
    former = signal.signal(number, late)
    yield lambda *_, **__: signal.raise_signal(number)
    assert signal.getsignal(number) is late
    signal.signal(number, former)


def check(caught: pytest.ExceptionInfo[Late]) -> None:
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    frames = [entry.frame for entry in caught.traceback]
    assert not any(
        isinstance(value, (duckdb.DuckDBPyConnection, pa.Table)) for f in frames for value in f.f_locals.values()
    )


def test_a_timeout_ends_the_reading_of_rows(alarm: Any) -> None:
    def rows() -> Iterator[Any]:
        yield 1, 2
        alarm()
        yield 2, 3

    with wp.Session() as session:
        with pytest.raises(Late) as caught:
            session.protect(EDGES, rows(), budget=1)
        check(caught)
        session.protect(EDGES, [(1, 2)], budget=1)


def test_a_timeout_ends_the_reading_of_public_rows(alarm: Any) -> None:
    with pytest.raises(Late) as caught:
        wp.evaluate(EDGES, {"edges": (alarm() for _ in range(2))})
    check(caught)


def test_a_timeout_ends_a_stream_that_a_database_reads(alarm: Any) -> None:
    schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[1], [2]], schema)
        alarm()

    with wp.Session() as session, pytest.raises(Late):
        session.protect(EDGES, pa.RecordBatchReader.from_batches(schema, batches()), budget=1)


def test_a_timeout_ends_a_release_which_stays_paid(alarm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = EDGES.noisy_count(1, over=[(1, 2)])
    with wp.Session() as session:
        session.protect(EDGES, [(1, 2)], budget=5)
        with monkeypatch.context() as patched:
            patched.setattr(NoisyCount, "draw", alarm)
            with pytest.raises(Late) as caught:
                session.release(asked)
            check(caught)
            assert session.spent("edges") == 1
        session.release(asked)
        assert session.spent("edges") == 1
        with monkeypatch.context() as patched:  # any other failure is the constant one
            patched.setattr(NoisyCount, "draw", late)
            with pytest.raises(wp.EvaluationFailed) as failed:
                session.release(EDGES.noisy_count(2, over=[(1, 2)]))
            assert failed.value.__context__ is None


def test_the_last_error_of_a_handler_counts_and_one_that_raises_none_is_nothing(alarm: Any) -> None:
    heard = []

    def work() -> str:
        for _ in range(2):
            try:
                alarm()
            except Late as error:
                heard.append(error)
        return "done"

    with pytest.raises(Late) as caught:
        interruptible(lambda: interruptible(work))
    assert caught.value is heard[-1]
    former = signal.signal(signal.SIGUSR1, lambda *_: heard.append("heard"))
    try:
        assert interruptible(lambda: signal.raise_signal(signal.SIGUSR1)) is None
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert heard[-1] == "heard"
