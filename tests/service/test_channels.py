"""Channels: requests reach a worker, and whatever becomes of the worker the front is told something."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.parameters import for_each
from wpinq.errors import BudgetExceeded, EvaluationFailed, LanguageError, LedgerError
from wpinq.service.dispatcher import FairQueue
from wpinq.service.errors import FAILED, Refusal
from wpinq.service.processes import Channel, NoAnswer, StopAsked, read_answer, serve_one


def asked(work: Callable[[Any], Any], request: Any = None, seconds: float = 300.0) -> Any:
    """What the front gets for a request on which a worker does some work."""
    channel = Channel.create()
    with channel.sender, channel.receiver:
        worker = threading.Thread(target=serve_one, args=(channel, work))
        worker.start()
        try:
            return asyncio.run(channel.ask(request or {}, seconds))
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
    channel = Channel.create()
    with channel.sender, channel.receiver:

        def die() -> None:
            channel.take().close()

        worker = threading.Thread(target=die)
        worker.start()
        with pytest.raises(NoAnswer):
            asyncio.run(channel.ask({}, 300.0))
        worker.join()


def test_a_worker_that_dies_while_it_answers_is_noticed() -> None:
    channel = Channel.create()
    with channel.sender, channel.receiver:

        def begin() -> None:
            with channel.take() as taken:
                taken.sendall(b'{"answer": {"answers": 1')

        worker = threading.Thread(target=begin)
        worker.start()
        with pytest.raises(NoAnswer):
            asyncio.run(channel.ask({}, 300.0))
        worker.join()


@for_each("error", [SystemExit(1), KeyboardInterrupt(), StopAsked(), OSError("a record")])
def test_work_that_is_broken_off_ends_the_worker_in_peace(error: BaseException) -> None:
    """Not as one that could not begin, after which no other is forked."""
    channel = Channel.create()
    mine, theirs = socket.socketpair()
    with channel.sender, channel.receiver, mine:
        with theirs:
            socket.send_fds(channel.sender, [b"."], [theirs.fileno()])
        mine.sendall(b"{}")
        mine.shutdown(socket.SHUT_WR)
        serve_one(channel, raising(error))
        answer = mine.recv(1 << 16)
    assert (answer == b"") == (not isinstance(error, Exception))


def test_nobody_answers_in_time() -> None:
    channel = Channel.create()
    with channel.sender, channel.receiver, pytest.raises(NoAnswer):
        asyncio.run(channel.ask({}, 0.01))


def test_a_front_that_dies_over_a_request_ends_the_worker_s_work_in_peace() -> None:
    channel = Channel.create()
    with channel.sender, channel.receiver:
        for sent in (b"", b'{"asked": {"program'):
            mine, theirs = socket.socketpair()
            with mine, theirs:
                socket.send_fds(channel.sender, [b"."], [theirs.fileno()])
                mine.sendall(sent)
            serve_one(channel, lambda request: pytest.fail("this is no request"))
        mine, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(channel.sender, [b"."], [theirs.fileno()])
        mine.sendall(json.dumps({}).encode())
        mine.shutdown(socket.SHUT_WR)

        def work(request: Any) -> Any:
            mine.close()  # it died while the worker worked
            return {}

        serve_one(channel, work)


def test_a_channel_that_is_full_says_so() -> None:
    channel = Channel.create()
    with channel.sender, channel.receiver:
        mine, theirs = socket.socketpair()
        with mine, theirs:
            with pytest.raises(BlockingIOError):
                while True:
                    socket.send_fds(channel.sender, [b"."], [theirs.fileno()])
            before = len(os.listdir("/proc/self/fd"))
            with pytest.raises(Refusal) as refused:
                asyncio.run(channel.ask({}, 300.0))
            assert refused.value.status == 503
            assert len(os.listdir("/proc/self/fd")) == before


def test_a_line_has_so_many_places_and_no_more_wait() -> None:
    async def wait() -> list[str]:
        line, told = FairQueue(1, 1, 300.0), []
        free = asyncio.Event()

        async def stand(name: str) -> None:
            try:
                async with line.place(name):
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
        line = FairQueue(1, 5, 0.01)
        async with line.place("first"):
            with pytest.raises(Refusal) as refused:
                async with line.place("second"):
                    pass
        async with line.place("second"):  # the place was given back
            return refused.value.kind

    assert asyncio.run(wait()) == "Busy"


async def told_in_order(places: int, asked: list[str], free: list[str]) -> list[str]:
    """Who got places of a line, in order, where all ask at once and those named in `free` give one back in turn."""
    line, told = FairQueue(places, 100, 300.0), []
    done = {name: asyncio.Queue[None]() for name in asked}

    async def stand(name: str) -> None:
        async with line.place(name):
            told.append(name)
            await done[name].get()

    tasks = [asyncio.create_task(stand(name)) for name in asked]
    for name in free:
        for _ in range(10):
            await asyncio.sleep(0)
        done[name].put_nowait(None)
    for _ in range(10):
        await asyncio.sleep(0)
    found = list(told)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(300), line.place("last"):  # all places were given back
        return found


@pytest.mark.parametrize(
    ("places", "asked", "free", "told"),
    [
        (2, ["mallory"] * 4, [], ["mallory"]),
        (2, ["mallory"] * 4 + ["bob"], [], ["mallory", "bob"]),
        (4, ["mallory"] * 6 + ["bob", "carol"], [], ["mallory", "mallory", "mallory", "bob"]),
        (1, ["mallory"] * 3 + ["bob"], ["mallory"], ["mallory", "bob"]),
        (3, ["mallory"] * 6 + ["bob"] * 2, ["bob"], ["mallory", "mallory", "bob", "bob"]),
    ],
)
def test_one_analyst_does_not_keep_all_places_from_the_others(
    places: int, asked: list[str], free: list[str], told: list[str]
) -> None:
    assert asyncio.run(told_in_order(places, asked, free)) == told


def test_a_place_that_comes_as_somebody_gives_up_is_not_lost() -> None:
    async def wait() -> None:
        line = FairQueue(1, 5, 300.0)
        async with line.place("first"):
            second = asyncio.create_task(line.place("second").__aenter__())
            await asyncio.sleep(0)
        second.cancel()  # its turn has come, and it has not noticed
        await asyncio.gather(second, return_exceptions=True)
        async with asyncio.timeout(300), line.place("third"):
            pass

    asyncio.run(wait())
