"""Desks: requests reach a worker, and whatever becomes of the worker the front is told something."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from wpinq.errors import BudgetExceeded, EvaluationFailed, LanguageError, LedgerError
from wpinq.service.handing_over import Desk, NobodyAnswered, NobodyThere, read_answer, serve_one
from wpinq.service.lines import WaitingLine
from wpinq.service.refusals import FAILED, Refusal


def asked(work: Callable[[Any], Any], request: Any = None, seconds: float = 300.0) -> Any:
    """What the front gets for a request on which a worker does some work."""
    desk = Desk.made()
    with desk.front, desk.back:
        worker = threading.Thread(target=serve_one, args=(desk, work))
        worker.start()
        try:
            return asyncio.run(desk.ask(request or {}, seconds))
        finally:
            worker.join()


def raising(error: BaseException) -> Callable[[Any], Any]:
    def work(request: Any) -> Any:
        raise error

    return work


def test_a_request_gets_there_and_its_answer_back() -> None:
    large = {"text": "x" * 3_000_000}
    assert read_answer(asked(lambda request: request, large)) == large


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (BudgetExceeded("words of the ledger"), 409, "words of the ledger"),
        (LanguageError("words", 3, 4), 400, "words"),
        (EvaluationFailed("after the debit"), 500, FAILED),
        (LedgerError("/a/path of the curator"), 500, FAILED),
        (KeyError("a record"), 500, FAILED),
        (MemoryError(), 500, FAILED),
        (RecursionError("a record"), 500, FAILED),
    ],
)
def test_errors_are_told_where_they_follow_from_public_things(error: Exception, status: int, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_answer(asked(raising(error)))
    assert (refused.value.status, refused.value.message) == (status, message)
    assert refused.value.line == getattr(error, "line", 0)


@pytest.mark.parametrize("answer", [{"x": float("nan")}, {"x": object()}, {"x": float("inf")}])
def test_what_json_cannot_say_is_a_failure_and_no_death(answer: Any) -> None:
    with pytest.raises(Refusal, match="failed"):
        read_answer(asked(lambda request: answer))


def test_a_worker_that_dies_is_noticed() -> None:
    desk = Desk.made()
    with desk.front, desk.back:

        def die() -> None:
            desk.take().close()

        worker = threading.Thread(target=die)
        worker.start()
        with pytest.raises(NobodyAnswered):
            asyncio.run(desk.ask({}, 300.0))
        worker.join()


def test_a_worker_that_dies_while_it_answers_is_noticed() -> None:
    desk = Desk.made()
    with desk.front, desk.back:

        def begin() -> None:
            with desk.take() as taken:
                taken.sendall(b'{"told": {"answers": 1')

        worker = threading.Thread(target=begin)
        worker.start()
        with pytest.raises(NobodyAnswered):
            asyncio.run(desk.ask({}, 300.0))
        worker.join()


def test_nobody_answers_in_time() -> None:
    desk = Desk.made()
    with desk.front, desk.back, pytest.raises(NobodyAnswered):
        asyncio.run(desk.ask({}, 0.01))


def test_a_front_that_dies_over_a_request_ends_the_worker_s_work_in_peace() -> None:
    desk = Desk.made()
    with desk.front, desk.back:
        for sent in (b"", b'{"asked": {"program'):
            mine, theirs = socket.socketpair()
            with mine, theirs:
                socket.send_fds(desk.front, [b"."], [theirs.fileno()])
                mine.sendall(sent)
            serve_one(desk, lambda request: pytest.fail("this is no request"))
        mine, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(desk.front, [b"."], [theirs.fileno()])
        mine.sendall(json.dumps({}).encode())
        mine.shutdown(socket.SHUT_WR)

        def work(request: Any) -> Any:
            mine.close()  # it died while the worker worked
            return {}

        serve_one(desk, work)


def test_a_desk_that_is_full_says_so() -> None:
    desk = Desk.made()
    with desk.front, desk.back:
        mine, theirs = socket.socketpair()
        with mine, theirs:
            with pytest.raises(BlockingIOError):
                while True:
                    socket.send_fds(desk.front, [b"."], [theirs.fileno()])
            before = len(os.listdir("/proc/self/fd"))
            with pytest.raises(NobodyThere):
                asyncio.run(desk.ask({}, 300.0))
            assert len(os.listdir("/proc/self/fd")) == before


def test_a_line_has_so_many_places_and_no_more_wait() -> None:
    async def wait() -> list[str]:
        line, told = WaitingLine(1, 1, 300.0), []
        free = asyncio.Event()

        async def stand(name: str) -> None:
            try:
                async with line.place():
                    told.append(f"{name} in")
                    await free.wait()
            except Refusal as refused:
                told.append(f"{name} {refused.kind}")

        tasks = [asyncio.create_task(stand(name)) for name in ("first", "second", "third")]
        for _ in range(10):
            await asyncio.sleep(0)
        free.set()
        await asyncio.gather(*tasks)
        return told

    assert asyncio.run(wait()) == ["first in", "third Busy", "second in"]


def test_a_line_is_left_by_whoever_waits_too_long() -> None:
    async def wait() -> str:
        line = WaitingLine(1, 5, 0.01)
        async with line.place():
            with pytest.raises(Refusal) as refused:
                async with line.place():
                    pass
        async with line.place():  # the place was given back
            return refused.value.kind

    assert asyncio.run(wait()) == "Busy"
