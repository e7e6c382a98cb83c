"""Kill -9 of any process: debits stand, nothing is answered twice, and what is left goes on or refuses."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.test_requests import told
from tests.support.service import (
    COUNT,
    RunningService,
    below,
    children,
    comm,
    configured,
    running,
    state,
    until,
)
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.service.errors import FAILED

pytestmark = pytest.mark.long


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    path = configured(tmp_path)
    running_service = RunningService(path)
    try:
        yield running_service
    finally:
        if running_service.process.poll() is None:
            running_service.stop()
        with Ledger(tmp_path / "ledger.db", create=False) as ledger:
            ledger.verify()


class Asked:
    """A release that is under way."""

    def __init__(self, service: RunningService, token: str, epsilon: str, program: str = COUNT) -> None:
        self.answer: Any = None
        self._given = service, token, program.format(name="x", epsilon=epsilon)
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        service, token, program = self._given
        try:
            self.answer = service.release(token, program)
        except httpx.HTTPError as error:
            self.answer = error

    def runs(self) -> bool:
        """Whether no answer has come."""
        return self._thread.is_alive()

    def end(self) -> Any:
        self._thread.join()
        return self.answer


def spent(service: RunningService, analyst: str | None = None) -> Fraction:
    with Ledger(service.folder / "ledger.db", create=False) as ledger:
        return sum((each.spent for each in ledger.balances(analyst) if each.account == "edges"), Fraction(0))


def looking(service: RunningService) -> int:
    """The slot that holds a release whose look has begun, so that it is paid for; the look itself may have ended."""
    workers: list[int] = until(
        lambda: [worker for worker in service.processes("release") if any(map(confined, children(worker)))]
    )
    return workers[0]


def caught_looking(service: RunningService, asked: Asked) -> int | None:
    """A child that looks at data, stopped in the midst; None where the release ended and none was seen."""
    while asked.runs():
        for child in filter(confined, children(*service.processes("release"))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
            if until(lambda child=child: state(child) not in "RSD") and state(child) == "T":
                return child
    return None


def killed_looking(service: RunningService, token: str) -> tuple[Asked, Fraction]:
    """A release whose look was killed while its slot holds it, and what was paid for until then."""
    many = "var {name} = edges.Select(e => e.src).NoisyCount({epsilon}, over: range(0, 5000));"  # which takes a while
    for number in range(1, 32):  # a look that ended before it was seen is answered, and another is asked for
        asked = Asked(service, token, f"0.0{number:02}", many)
        child = caught_looking(service, asked)
        if child is not None:
            os.kill(child, signal.SIGKILL)
            until(lambda child=child: state(child) in "ZX")
            return asked, sum((Fraction(each, 1000) for each in range(1, number + 1)), Fraction(0))
        assert asked.end().status_code == 200
    raise AssertionError("no look was seen")


def confined(child: int) -> bool:
    """Whether a process has the limits of a look, which stand in a file that everybody may read."""
    try:
        limits = Path(f"/proc/{child}/limits").read_text()
    except OSError:
        return False
    return "Max file size             unlimited" not in limits


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: not comm(pid))


def closed_then_opened(service: RunningService, alice: str, curator: str) -> None:
    """The source is closed to analysts until its curator opens it."""
    answer = service.release(alice, COUNT.format(name="x", epsilon="0.125"))
    told(answer, 409, "SourceSuspended")
    assert service.ask("GET", "v1/sources", alice).json()[0]["suspended"]
    assert any(each["event"] == "suspended" for each in service.events())
    assert service.ask("POST", "v1/resume", curator, {"account": "edges"}).json() is True


def test_a_slot_that_dies_over_a_release_closes_its_source_and_another_takes_its_place(service: RunningService) -> None:
    alice, curator = service.admit("alice", "edges=1"), service.admit("curator", curator=True)
    for pid in service.processes("release"):
        kill(pid)  # idle ones: nothing is lost, and nothing closed
    asked = Asked(service, alice, "0.25")
    slot = looking(service)
    kill(slot)
    assert told(asked.end(), 500, "Failed") == FAILED
    assert spent(service) == spent(service, "alice") == Fraction(1, 4)
    closed_then_opened(service, alice, curator)
    again = service.release(alice, COUNT.format(name="x", epsilon="0.25"))  # paid for: drawn now, for the first time
    assert again.status_code == 200, again.text
    assert spent(service) == Fraction(1, 4)


def test_a_look_that_dies_is_the_same_failure_and_closes_its_source(service: RunningService) -> None:
    alice, curator = service.admit("alice", "edges=1"), service.admit("curator", curator=True)
    asked, paid = killed_looking(service, alice)
    assert told(asked.end(), 500, "Failed") == FAILED
    assert spent(service) == paid
    closed_then_opened(service, alice, curator)


def test_the_front_comes_back_and_what_was_paid_for_is_answered_once_and_for_nothing(service: RunningService) -> None:
    alice = service.admit("alice", "edges=1")
    asked = Asked(service, alice, "0.25")
    slot = looking(service)
    front = service.one("web")
    kill(front)
    assert isinstance(asked.end(), httpx.HTTPError)
    until(lambda: not comm(slot))  # it ends its release all the same
    until(lambda: service.processes("web"))
    assert service.ask("GET", "v1/me", alice).json() == {"name": "alice", "role": "analyst"}
    first, second = (service.release(alice, COUNT.format(name="x", epsilon="0.25")).json() for _ in range(2))
    assert first["answers"] == second["answers"]
    assert spent(service) == spent(service, "alice") == Fraction(1, 4)
    assert not service.ask("GET", "v1/sources", alice).json()[0]["suspended"]


def test_a_planner_that_dies_is_replaced(service: RunningService) -> None:
    alice = service.admit("alice", "edges=1")
    for pid in service.processes("planner"):
        kill(pid)
    answer = service.ask("POST", "v1/explain", alice, {"program": COUNT.format(name="x", epsilon="0.25")})
    assert answer.status_code == 200, answer.text


def test_without_the_keeper_the_service_ends_and_nothing_of_it_stays(service: RunningService) -> None:
    all_others = below(service.process.pid)
    kill(service.one("data"))
    assert service.ended() == 1
    until(lambda: not any(comm(pid).startswith("wpinq") for pid in all_others))
    assert "data process ended" in service.log.read_text()


def test_with_the_first_process_all_end_and_what_was_inflight_closes(service: RunningService) -> None:
    alice, curator = service.admit("alice", "edges=1"), service.admit("curator", curator=True)
    asked = Asked(service, alice, "0.25")
    looking(service)
    all_others = below(service.process.pid)
    assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    assert isinstance(asked.end(), httpx.HTTPError)
    until(lambda: not any(comm(pid).startswith("wpinq") for pid in all_others))
    assert spent(service) == Fraction(1, 4)
    service.start()  # over the same ledger: nobody was left to close what was looked at
    closed_then_opened(service, alice, curator)  # and what was paid for is answered
    answers = [service.release(alice, COUNT.format(name="x", epsilon="0.25")).json()["answers"] for _ in range(2)]
    assert answers[0] == answers[1]
    assert spent(service) == Fraction(1, 4)


def test_a_slot_and_the_front_that_die_over_one_release_close_its_source(service: RunningService) -> None:
    """In whichever order: a front that begins finds the record of the release, and waits for a slot that lives."""
    alice, curator = service.admit("alice", "edges=1"), service.admit("curator", curator=True)
    for number, first in enumerate(("slot", "front")):
        asked = Asked(service, alice, f"0.25{number}")
        slot = looking(service)
        front = service.one("web")
        for pid in (slot, front) if first == "slot" else (front, slot):
            os.kill(pid, signal.SIGKILL)
        asked.end()
        until(lambda front=front: not comm(front) and service.processes("web"))
        until(lambda: service.ask("GET", "v1/sources", alice).json()[0]["suspended"])
        closed_then_opened(service, alice, curator)


def test_a_stop_in_good_order_closes_nothing(service: RunningService) -> None:
    alice = service.admit("alice", "edges=1")
    asked = Asked(service, alice, "0.25")
    looking(service)
    assert service.stop() == 0
    asked.end()
    service.start()
    assert not service.ask("GET", "v1/sources", alice).json()[0]["suspended"]
    assert service.release(alice, COUNT.format(name="x", epsilon="0.25")).status_code == 200
    assert spent(service) == Fraction(1, 4)


def test_a_look_that_failed_before_a_stop_in_good_order_has_closed_its_source(service: RunningService) -> None:
    """Whoever stops the service because a child of it died would else learn, and tell, of that for nothing."""
    alice, curator = service.admit("alice", "edges=1"), service.admit("curator", curator=True)
    asked, _ = killed_looking(service, alice)
    assert service.stop() == 0
    asked.end()
    assert not list((service.folder / "ledger.db-inflight").glob("[!.]*"))
    with Ledger(service.folder / "ledger.db", create=False) as ledger:
        assert ledger.suspended() == {"edges"}
    service.start()
    closed_then_opened(service, alice, curator)


def test_a_stop_that_is_said_to_every_process_closes_nothing(service: RunningService) -> None:
    """As systemd says it, to all at once: the first process alone hears it, and asks the others."""
    alice = service.admit("alice", "edges=1")
    asked = Asked(service, alice, "0.25")
    looking(service)
    for pid in [*below(service.process.pid), service.process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    assert service.ended() == 0
    asked.end()
    service.start()
    assert not service.ask("GET", "v1/sources", alice).json()[0]["suspended"]


def test_a_restart_forgets_nothing(service: RunningService) -> None:
    alice = service.admit("alice", "edges=1")
    program = COUNT.format(name="x", epsilon="0.25")
    before = service.release(alice, program, label="before").json()
    assert service.stop() == 0
    service.start()
    assert service.release(alice, program).json() == before
    assert [each["label"] for each in service.ask("GET", "v1/history", alice).json()] == ["before"]


def test_a_budget_that_the_curator_set_outlives_a_restart(service: RunningService) -> None:
    curator = service.admit("curator", curator=True)
    service.ask("PUT", "v1/accounts", curator, {"budgets": {"edges": "12"}})
    service.stop()
    service.start()
    assert service.ask("GET", "v1/accounts", curator).json()[0]["budget"] == "12"


def test_fifty_analysts_spend_one_budget_and_not_a_bit_more(tmp_path: Path) -> None:
    """Each may spend all of it by the own budget; ten can."""
    path = configured(tmp_path, "release_workers = 10\nplanners = 4", "queue_seconds = 900.0", budget="1")
    # ten looks at once, each of which has to be over by its moment
    path.write_text(path.read_text().replace("safety_factor = 16.0", "safety_factor = 60.0"))
    with running(path) as service:
        tokens = [service.admit(f"analyst{i}", "edges=1") for i in range(50)]
        # each with an epsilon of its own in the ninth digit: what another paid for would be replayed for nothing
        asked = [Asked(service, token, f"0.1{'0' * 6}{i:02}") for i, token in enumerate(tokens)]
        answers = [each.end() for each in asked]
        statuses = [answer.status_code for answer in answers]
        assert statuses.count(200) in (9, 10)
        assert {answer.json()["error"]["kind"] for answer in answers if answer.status_code != 200} == {
            "SourceExhausted"
        }
        assert len({answer.text for answer in answers if answer.status_code == 409}) == 1
        assert Fraction(9, 10) <= spent(service) <= 1
        own = sum((spent(service, f"analyst{i}") for i in range(50)), Fraction(0))
        assert own == spent(service)
        with Ledger(tmp_path / "ledger.db", create=False) as ledger:
            ledger.verify()
