"""The load of the machine: releases get more time for it or are refused before the debit, and neither tells of data."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import wpinq as wp
from tests.service.conftest import Peopled
from tests.support.confined import TWO_SOURCES, told
from tests.support.service import COUNT, RunningService, configured, niceness
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.service import dispatcher, processes, workers
from wpinq.service.app import create_app, security_headers
from wpinq.service.config import read_configuration
from wpinq.service.dispatcher import (
    LEAST_SLOWDOWN,
    MOST_SLOWDOWN,
    Dispatcher,
    MachineLoad,
    measure_slowdown,
    stretch,
)
from wpinq.service.errors import Refusal
from wpinq.service.inflight import InflightReleases
from wpinq.service.middleware import RequestGuard
from wpinq.service.processes import Channel, NoAnswer


class Told(Channel):
    """A way to workers that give one answer."""

    def __init__(self, **told: Any) -> None:
        object.__setattr__(self, "told", told)
        object.__setattr__(self, "asked", [])

    async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        self.asked.append((dict(request), seconds))
        return {"answer": self.told}


class Machine(Channel):
    """A machine on which a release may burn all cores: a measurement then finds it slow."""

    def __init__(self) -> None:
        object.__setattr__(self, "burning", [])

    async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        return {"answer": {"slowdown": 2 * MOST_SLOWDOWN if self.burning else 1.0}}


def outcomes(schedule: list[int], burns: bool, gated: bool) -> list[tuple[int, str]]:
    """The releases of a schedule that ended and how, in order: each number begins its release, and then ends it.

    Release 0 reads the data, and burns all cores for one of their values.
    """
    seen: list[tuple[int, str]] = []

    async def run() -> None:
        machine = Machine()
        measured = MachineLoad(machine, 1e6, lambda: None)
        if not gated:
            measured._idle.wait = immediately  # type: ignore[assignment,method-assign]
        ends = {number: asyncio.Event() for number in schedule}

        async def release(number: int) -> None:
            try:
                async with measured.release():
                    if number == 0 and burns:
                        machine.burning.append(number)
                    await ends[number].wait()
                    machine.burning.clear()
                seen.append((number, "answered"))
            except Refusal as refusal:
                seen.append((number, refusal.kind))

        under_way: dict[int, asyncio.Task[None]] = {}
        for number in [*schedule, *sorted(set(schedule))]:
            if number in under_way:
                ends[number].set()
            else:
                under_way[number] = asyncio.create_task(release(number))
            for _ in range(30):  # until nothing goes on by itself
                await asyncio.sleep(0)
        await asyncio.gather(*under_way.values())

    asyncio.run(run())
    return seen


async def immediately(*given: Any) -> None:
    """A wait for nothing."""
    for work in given:
        work()


def schedules(count: int) -> list[list[int]]:
    """Random orders in which some releases begin and end."""
    drawn = random.Random(4)
    return [drawn.sample([0, 0, 1, 1, 2, 2, 3, 3], 8) for _ in range(count)]


def test_a_look_that_burns_all_cores_for_one_value_of_the_data_changes_no_answer_and_no_503_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "FRESH_SECONDS", -1.0)  # each release is measured
    monkeypatch.setattr(dispatcher, "run_in_threadpool", immediately)
    told_apart = 0
    for schedule in schedules(60):
        quiet, burning = (outcomes(schedule, burns, gated=True) for burns in (False, True))
        assert quiet == burning
        assert all(outcome == "answered" for _, outcome in quiet)
        told_apart += outcomes(schedule, True, gated=False) != outcomes(schedule, False, gated=False)
    assert told_apart > 10  # if it were measured at once


def test_releases_begin_together_after_one_measurement_while_it_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "run_in_threadpool", immediately)
    channel = Told(slowdown=3.0)

    async def run() -> list[float]:
        measured = MachineLoad(channel, 1e6, lambda: None)
        async with measured.release() as one, measured.release() as other:
            return [one, other]

    assert asyncio.run(run()) == [3.0, 3.0]
    assert len(channel.asked) == 1


def test_who_would_wait_too_long_for_the_end_of_others_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "FRESH_SECONDS", -1.0)

    async def run() -> None:
        measured = MachineLoad(Told(slowdown=1.0), 1e6, lambda: None)
        async with measured.release():
            monkeypatch.setattr(measured, "_seconds", 0.0)  # of the second alone: a busy machine is slow as well
            with pytest.raises(Refusal) as refused:
                async with measured.release():
                    pass
        monkeypatch.setattr(measured, "_seconds", 1e6)
        assert (refused.value.status, refused.value.kind) == (503, "Busy")
        async with measured.release():  # it ended, and nobody waits for it
            pass

    asyncio.run(run())


def test_a_measurement_that_never_comes_back_is_a_machine_that_is_too_slow() -> None:
    class Lost(Told):
        async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
            raise NoAnswer

    async def run() -> None:
        with pytest.raises(Refusal) as refused:
            async with MachineLoad(Lost(), 1e6, lambda: None).release():
                pass
        assert (refused.value.status, refused.value.kind) == (503, "Overloaded")

    asyncio.run(run())


def test_the_fixed_work_takes_at_least_its_processor_time() -> None:
    assert measure_slowdown({})["slowdown"] > 0.9


def released(folder: Path, slowdown: float) -> tuple[httpx.Response, Told]:
    """What is answered to a release of one look of 2 seconds, on a machine of this slowdown, and what workers got."""
    configuration = read_configuration(configured(folder, limits="release_seconds = 100.0", margin=3.0))
    InflightReleases(configuration.ledger).begin()
    planners = Told(program=None, unbudgeted=[], not_admitted="", seconds=2.0, bill={"edges": "0.1"})
    releases = Told(answers={}, remaining={})

    async def asked() -> httpx.Response:
        with Ledger(configuration.ledger) as ledger:
            served = Dispatcher(configuration, {}, ledger, planners, releases, Told(slowdown=slowdown))
            served.start()
            with served.users as users:
                token = users.add("alice")
                guard = RequestGuard(create_app(served), served, security_headers(False))
                transport = httpx.ASGITransport(app=guard)
                async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                    body = {"program": COUNT.format(name="x", epsilon="0.1")}
                    headers = {"Authorization": f"Bearer {token}"}
                    return await client.post("/v1/release", json=body, headers=headers)

    return asyncio.run(asked()), releases


def test_a_slow_machine_is_told_before_any_worker_is_asked_and_a_less_slow_one_gets_more_time(tmp_path: Path) -> None:
    response, releases = released(tmp_path, MOST_SLOWDOWN + 1)
    assert (response.status_code, response.json()["error"]["kind"]) == (503, "Overloaded")
    assert "nothing was debited" in response.json()["error"]["message"]
    assert int(response.headers["retry-after"]) > 0
    assert releases.asked == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("slowdown", "times"), [(1.0, 1.0), (3.0, 1.0), (12.0, 4.0), (MOST_SLOWDOWN, MOST_SLOWDOWN / 3)]
)
def test_the_safety_factor_covers_a_slowdown_and_what_is_beyond_it_is_added(
    tmp_path: Path, slowdown: float, times: float
) -> None:
    response, releases = released(tmp_path, slowdown)
    assert response.status_code == 200
    ((sent, patience),) = releases.asked
    assert (sent["times"], sent["seconds"]) == (times, 2.0 * times)
    assert patience > sent["seconds"]


def test_a_release_is_stretched_by_what_the_safety_factor_does_not_cover() -> None:
    limits = wp.Limits(safety_factor=2.0)
    assert [stretch(slowdown, limits) for slowdown in (0.5, 2.0, 5.0)] == [LEAST_SLOWDOWN / 2, LEAST_SLOWDOWN / 2, 2.5]
    assert stretch(LEAST_SLOWDOWN, wp.Limits()) == 1.0


def test_a_session_gives_the_releases_to_come_more_time_and_admits_the_same_plans() -> None:
    found = told(
        TWO_SOURCES
        + """
held = []
with opened() as session:
    protected(session)
    clock = session._releaser._evaluator.clock
    for times in (1, 2):
        session.set_stretch(times)
        begun = clock.now()
        session.release(asked, fresh=True)
        held.append(clock.now() - begun)
admitted = []
for seconds in (held[0] * 1.001, held[0] * 0.999):
    with opened(limits=wp.Limits(seconds=seconds)) as session:
        protected(session)
        session.set_stretch(8)
        admitted.append(outcome(lambda: session.release(asked))[0])
with wp.Session() as plain:
    tell(held=held, refused=outcome(lambda: plain.set_stretch(1)), admitted=admitted)
"""
    )
    once, twice = found["held"]
    assert twice == pytest.approx(2 * once)
    assert found["refused"][0] == "SessionError"
    assert found["admitted"] == ["answers", "PlanError"]


def test_the_front_and_planners_are_nicer_than_releases(peopled: Peopled, monkeypatch: pytest.MonkeyPatch) -> None:
    service, own = peopled.service, niceness(os.getpid())
    found = {name: {niceness(pid) for pid in service.processes(name)} for name in ("web", "load", "data", "release")}
    assert found == {"web": {own + processes.NICENESS}, "load": {own}, "data": {own}, "release": {own}}

    def nice(by: int) -> None:
        raise RuntimeError(by)

    monkeypatch.setattr(os, "nice", nice)
    planner = workers.PlannerWorker(None, {}, None)  # type: ignore[arg-type]  # of no service yet
    with pytest.raises(RuntimeError, match=str(processes.NICENESS)):
        planner.answer({})


PLANTED = """
import hashlib, os, sys, threading
from pathlib import Path
from wpinq.service import dispatcher, server
from wpinq.sinks.laplace import LaplaceSink
dispatcher.FRESH_SECONDS, honest = -1.0, LaplaceSink.draw

def burning(sink, output, keys, scales, random):
    if max(output.weights(keys).values(), default=0) > 99:
        burnt, ended = threading.Event(), threading.Event()

        def work():
            while not burnt.is_set():
                hashlib.pbkdf2_hmac("sha256", b"", b"", 10_000)
            ended.wait()  # so that it is seen for longer

        for _ in range(30):
            threading.Thread(target=work, daemon=True).start()
        burnt.wait(1)
        burnt.set()
        ended.wait(3.5)
        ended.set()
    return honest(sink, output, keys, scales, random)

def slowdown(request):
    return {"slowdown": 100.0 if any(map(burns, filter(str.isdigit, os.listdir("/proc")))) else 1.0}

def burns(pid):
    try:
        release = Path(f"/proc/{pid}/comm").read_text().strip() == "wpinq-release"
        return release and os.getpgid(int(pid)) == os.getpgid(0) and os.stat(f"/proc/{pid}/task").st_nlink > 30
    except OSError:  # it ended
        return False

LaplaceSink.draw, server.measure_slowdown = burning, slowdown
UNGATED
from wpinq.cli.main import main
sys.exit(main())
"""
"""A service in which a look burns all cores where a vertex has more than 99 edges: measurements see its threads.

A measurement by the clock would see how busy the machine of the tests is, too.
"""


UNGATED = """
async def at_once(*given):
    pass

def ungated(measured, *given):
    gated(measured, *given)
    measured._idle.wait, measured._wait_for_others = at_once, lambda: None

gated, dispatcher.MachineLoad.__init__ = dispatcher.MachineLoad.__init__, ungated
"""


class PlantedService(RunningService):
    """A service with other code in it."""

    command = ("-c", PLANTED.replace("UNGATED", ""))


class UngatedService(RunningService):
    """The same, which measures at once."""

    command = ("-c", PLANTED.replace("UNGATED", UNGATED))


def statuses(folder: Path, neighbours: int, planted: type[RunningService] = PlantedService) -> Counter[int]:
    """How a planted service answers one analyst, while another has it look at a vertex of so many neighbours."""
    folder.mkdir()
    configuration = configured(folder, limits="queue_seconds = 600.0", budget="1000", margin=30.0)
    (folder / "edges.txt").write_text("".join(f"1\t{other}\n" for other in range(2, neighbours + 2)))
    configuration.write_text(configuration.read_text().replace("records_at_most = 100;", "records_at_most = 1000;"))
    service = planted(configuration)
    try:
        tokens = [service.admit(who, "edges=500") for who in ("alice", "bob")]
        # two looks, so that the others do not keep step
        twice = COUNT.format(name="x", epsilon="0.1") + COUNT.format(name="z", epsilon="0.2")
        programs = twice, "var y = edges.Select(e => 0).NoisyCount(0.1, over: [1]);"

        def asked(token: str, program: str) -> list[int]:
            return [service.release(token, program, fresh=True).status_code for _ in range(3)]

        with ThreadPoolExecutor(2) as pool:
            _, others = pool.map(asked, tokens, programs)
        return Counter(others)
    finally:
        service.stop()


@pytest.mark.long
def test_a_real_look_that_burns_all_cores_changes_no_answer_and_no_503_of_others(tmp_path: Path) -> None:
    quiet, burning = statuses(tmp_path / "quiet", 7), statuses(tmp_path / "burning", 119)
    assert quiet == burning == {200: 3}
    assert statuses(tmp_path / "ungated", 119, UngatedService)[503]
