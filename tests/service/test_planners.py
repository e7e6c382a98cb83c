"""Planners, and the process that forks them: it has explained a program of ours, and holds nothing of anybody else."""

from __future__ import annotations

import asyncio
import os
import socket
from functools import partial
from pathlib import Path

import pytest

import wpinq as wp
from tests.service.conftest import Peopled
from tests.support.service import COUNT, RunningService, configured, until
from wpinq.engines.sql.engine import untranslated
from wpinq.service.config import read_configuration
from wpinq.service.server import _listener
from wpinq.service.workers import explained


def files(pid: int) -> list[str]:
    """All that a process has open."""
    found = Path(f"/proc/{pid}/fd").iterdir()
    return [os.readlink(each) for each in found]


def in_memory(pid: int, *words: bytes) -> set[bytes]:
    """Those of some words that stand in what a process may have written."""
    found: set[bytes] = set()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, access, *_ = line.split()
            start, end = (int(each, 16) for each in span.split("-"))
            if access.startswith("rw"):
                memory.seek(start)
                held = memory.read(end - start)
                found.update(word for word in words if word in held)
    return found


@pytest.mark.long
def test_planners_have_no_file_of_ledger_or_users_and_no_database(peopled: Peopled) -> None:
    folder = str(peopled.service.folder)
    for each in until(lambda: peopled.service.processes("planner")):
        named = {name.removeprefix(folder) for name in files(each) if name.startswith(folder)}
        assert named == {"/log.jsonl", "/ledger.db-inflight/.service"}  # the latter is a lock and nothing else
        mapped = Path(f"/proc/{each}/maps").read_text()
        assert "duckdb" not in mapped
        assert folder not in mapped


def all_planners(service: RunningService) -> list[int]:
    """The four planners of the fixture, once all are there."""
    found = service.processes("planner")
    return found if len(found) == 4 else []


@pytest.mark.long
def test_a_process_has_no_way_to_what_is_another_s(peopled: Peopled) -> None:
    """A planner in place of another had the way of measurements, by which it could have told a false load."""
    service = peopled.service
    before = set(until(lambda: all_planners(service)))
    assert service.ask(
        "POST", "v1/explain", peopled.alice, {"program": COUNT.format(name="x", epsilon="0.1")}
    ).is_success
    until(lambda: (now := all_planners(service)) and not before <= set(now))
    sockets = {
        name: [
            {file for file in files(pid) if file.startswith("socket:")}
            for pid in until(partial(service.processes, name))
        ]
        for name in ("planner", "load", "data", "release")
    }
    planner, load, data, release = (set.union(*held) for held in sockets.values())
    assert all(len(held) == 2 for each in sockets.values() for held in each)
    assert data == release
    assert not planner & load and not planner & data and not load & data


@pytest.mark.long
def test_who_forks_planners_holds_no_text_of_an_analyst_and_the_planner_that_had_it_is_gone(peopled: Peopled) -> None:
    service, before = peopled.service, set(until(lambda: peopled.service.processes("planner")))
    secret = 7_305_112_947
    program = f"var hidden_name = edges.Where(e => e.src < {secret}).NoisyCount(0.01, over: [(1, 2)]);"
    answer = service.ask("POST", "v1/explain", peopled.alice, {"program": program})
    assert str(secret) in answer.text
    until(lambda: not before <= set(service.processes("planner")))
    own = b"var c = b.NoisyCount(0.1"  # of its own program: it is looked for in the right place
    for pid in (service.process.pid, *service.processes("planner")):
        assert in_memory(pid, own, str(secret).encode(), b"hidden_name") == {own}


def test_an_explanation_says_what_has_no_program(peopled: Peopled) -> None:
    light, heavy = wp.source("light", int, cap="1e-25"), wp.source("heavy", int)
    joined = light.join(heavy, lambda x: x % 2, lambda y: y % 2, lambda x, y: x)
    assert "the caps of its sides differ" in untranslated(joined.plan)
    said = explained({"x": joined.noisy_count(1, over=[1])}, 0.95)["plans"]["x"]
    assert "Engine: none. Join: the caps of its sides differ" in said
    assert untranslated(light.plan) == ""
    assert "Engine: duckdb." in explained({"x": light.noisy_count(1, over=[1])}, 0.95)["plans"]["x"]


def test_answers_are_sent_at_once(tmp_path: Path) -> None:
    """A socket that does not say that it is of TCP is left to collect small pieces, for 40 ms each time."""

    async def delays(listener: socket.socket) -> bool:
        set_: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            set_.set_result(not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(met, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            writer.close()
            return await set_

    with _listener(read_configuration(configured(tmp_path))) as listener:
        assert not asyncio.run(delays(listener))
