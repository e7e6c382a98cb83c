"""Ctrl-C is KeyboardInterrupt wherever it comes, whatever a database makes of it; debits are not refunded."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.engines.sql.duckdb import database
from wpinq.engines.sql.duckdb.instance import _Opened
from wpinq.runtime.signals import interruptible

pytestmark = pytest.mark.long

PEOPLE = wp.source("people", name=str, number=int)
ROWS = [(f"Rumpelstilzchen {i}", i) for i in range(60_000)]
COPIES = PEOPLE.select_many(lambda p: F.map(F.range(0, 8, limit=8), lambda n: (p.name, p.number, n)))
NAMES = COPIES.shave(1.0, limit=2).select(lambda piece: piece.record[0])


class Pressed:
    """Ctrl-C, pressed once."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
        if self.times == 1:
            signal.raise_signal(signal.SIGINT)


def shown(error: BaseException) -> str:
    chain: list[str] = []
    following: BaseException | None = error
    while following is not None:
        chain.append(repr(following))
        following = following.__context__
    return " ".join(chain)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_release_that_spills(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed, write = Pressed(), _Opened.write

    def pressing(opened: _Opened, data: bytes) -> int:
        pressed()
        return write(opened, data)

    with wp.Session(memory_limit="32MB", threads=threads) as session:
        session.protect(PEOPLE, ROWS, budget=10)
        asked, before = NAMES.noisy_count(1, over=[ROWS[0][0]]), session.spent("people")
        with monkeypatch.context() as patched:
            patched.setattr(_Opened, "write", pressing)
            with pytest.raises(KeyboardInterrupt) as interrupted:
                session.release(asked)
        assert pressed.times > 0, "nothing spilled, so this tests nothing: lower the limit"
        assert shown(interrupted.value) == "KeyboardInterrupt()"
        debited = session.spent("people")
        assert debited > before
        session.release(asked)
        assert session.spent("people") == debited


def test_the_rows_of_a_reader() -> None:
    pressed, schema = Pressed(), pa.schema([("name", pa.string()), ("number", pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        for i in range(10):
            yield pa.record_batch([[f"Rumpelstilzchen {i}"], [i]], schema)
            pressed()

    with wp.Session() as session:
        with pytest.raises(KeyboardInterrupt) as interrupted:
            session.protect(PEOPLE, pa.RecordBatchReader.from_batches(schema, batches()), budget=1)
        assert shown(interrupted.value) == "KeyboardInterrupt()"
        session.protect(PEOPLE, ROWS[:5], budget=1)


def test_data_that_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of them does not stand in the way of the release after it, which was paid for."""

    def pressing(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    asked = PEOPLE.noisy_count(10**6, over=[ROWS[0]])
    with wp.Session() as session:
        session.protect(PEOPLE, ROWS[:5], budget=10**8)
        session.release(asked)
        with monkeypatch.context() as patched:
            patched.setattr(database, "unload", pressing)
            with pytest.raises(KeyboardInterrupt):
                session.protect(PEOPLE, ROWS[:6], budget=10**8, version="2")
        again = PEOPLE.select(lambda p: p.name).noisy_count(10**6, over=[ROWS[0][0]])
        assert round(session.release(again).values[0]) == 1


def test_what_a_database_raises_instead() -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise duckdb.InterruptException("Rumpelstilzchen") from None

    with pytest.raises(KeyboardInterrupt) as interrupted:
        interruptible(work)
    assert shown(interrupted.value) == "KeyboardInterrupt()"


def test_what_comes_out_all_the_same_is_not_given() -> None:
    def work() -> int:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return 4711

    with pytest.raises(KeyboardInterrupt) as interrupted:
        interruptible(work)
    held = [repr(frame.frame.f_locals) for frame in interrupted.traceback if frame.name == "interruptible"]
    assert held
    assert "4711" not in "".join(held)


def test_what_comes_after_a_handler_that_was_left_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C again, at the very moment at which the handler from before is to come back."""
    before, given, put = signal.getsignal(signal.SIGINT), [], signal.signal

    def failing(number: int, handler: Any) -> Any:
        given.append(handler)
        if len(given) == 2:
            raise KeyboardInterrupt
        return put(number, handler)

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise duckdb.InterruptException("Rumpelstilzchen")  # noqa: B904 - as a database does, context and all

    try:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(signal, "signal", failing)
            interruptible(lambda: 7)
        assert signal.getsignal(signal.SIGINT) is not before
        with pytest.raises(KeyboardInterrupt) as interrupted:
            interruptible(work)
        assert shown(interrupted.value) == "KeyboardInterrupt()"
    finally:
        signal.signal(signal.SIGINT, before)


def test_nothing_else_is_changed() -> None:
    handler = signal.getsignal(signal.SIGINT)
    assert interruptible(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_handler_of_ones_own_has_the_word() -> None:
    called: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *given: called.append(given))
    try:
        interruptible(lambda: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(called) == 1


def test_in_another_thread_there_is_no_ctrl_c() -> None:
    given: list[int] = []
    thread = threading.Thread(target=lambda: given.append(interruptible(lambda: 7)))
    thread.start()
    thread.join()
    assert given == [7]
