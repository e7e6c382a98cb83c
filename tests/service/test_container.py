"""A service in a container, where its first process is given every orphan; and under systemd."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import httpx
import pytest

from tests.service.test_deaths import Asked, closed_then_opened, killed_looking, looking, spent
from tests.service.test_requests import told
from tests.support.service import COUNT, ROOT, RunningService, below, children, configured, until
from wpinq.service.errors import FAILED

UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")


def refused() -> str:
    """Why there are no namespaces here; "" where there are."""
    try:
        done = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr if done.returncode else ""


@pytest.fixture
def contained(tmp_path: Path) -> Iterator[RunningService]:
    if reason := refused():
        pytest.skip(f"no process may have a namespace of its own here: {reason}")
    service = RunningService(configured(tmp_path), UNSHARE)
    try:
        yield service
        os.kill(below(service.process.pid)[0], signal.SIGTERM)  # which the first process of a container has to handle
        assert service.ended() == 0
    finally:
        if service.process.poll() is None:
            service.stop(signal.SIGKILL)


@pytest.mark.long
def test_a_worker_that_is_killed_over_a_look_closes_its_source_and_the_service_goes_on(
    contained: RunningService,
) -> None:
    """Its child is an orphan then, and the first process is told of the end of a child that it never forked."""
    first = below(contained.process.pid)[0]
    assert Path(f"/proc/{first}/status").read_text().split("NSpid:")[1].split()[1] == "1"
    alice, curator = contained.admit("alice", "edges=1"), contained.admit("curator", curator=True)
    asked = Asked(contained, alice, "0.25")
    worker = looking(contained)
    (look,) = below(worker)
    os.kill(worker, signal.SIGKILL)
    assert told(asked.end(), 500, "Failed") == FAILED
    until(lambda: not Path(f"/proc/{look}").exists())  # the first process has waited for it
    assert spent(contained) == spent(contained, "alice") == 1 / 4
    closed_then_opened(contained, alice, curator)
    assert contained.release(alice, COUNT.format(name="x", epsilon="0.25")).status_code == 200
    assert below(contained.process.pid)[0] == first


@pytest.mark.long
def test_a_look_that_is_killed_there_closes_its_source(contained: RunningService) -> None:
    alice, curator = contained.admit("alice", "edges=1"), contained.admit("curator", curator=True)
    asked, _ = killed_looking(contained, alice)
    assert told(asked.end(), 500, "Failed") == FAILED
    closed_then_opened(contained, alice, curator)


SIGNALS = [signal.Signals[f"SIG{name}"] for name in ("KILL", "TERM", "INT", "HUP", "ALRM", "USR1", "USR2", "QUIT")]


@pytest.mark.long
@pytest.mark.parametrize("before", [(), UNSHARE])
def test_no_signal_at_a_look_ends_the_service_but_those_that_end_its_first_process_or_that_of_the_data(
    tmp_path: Path, before: tuple[str, ...]
) -> None:
    if before and (reason := refused()):
        pytest.skip(f"no process may have a namespace of its own here: {reason}")
    service = RunningService(configured(tmp_path, margin=8.0), before)
    alice, curator = service.admit("alice", "edges=10"), service.admit("curator", curator=True)
    try:
        data = service.one("data")
        for number, sent in enumerate(SIGNALS):
            program = COUNT.format(name="x", epsilon=f"0.0{number + 1}")
            asked = Asked(service, alice, f"0.0{number + 1}")
            worker = looking(service)
            others = [service.one(role) for role in ("planner", "load", "web")]
            unmoved = [data] if sent in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) else []
            for pid in (*children(worker), worker, *others, *unmoved):
                os.kill(pid, sent)
            asked.end()

            def answered(program: str = program) -> bool:
                with contextlib.suppress(httpx.HTTPError):  # of a web process that ends
                    service.ask("POST", "v1/resume", curator, {"account": "edges"})
                    return service.release(alice, program).status_code == 200
                return False

            until(answered)
            assert service.one("data") == data, sent
        assert spent(service) == sum(range(1, len(SIGNALS) + 1)) / Fraction(100)
    finally:
        service.stop(signal.SIGKILL)


EXAMPLES = ROOT / "examples" / "service"


def test_the_image_runs_the_service_as_its_first_process_and_not_as_root() -> None:
    said = dict(
        line.split(" ", 1) for line in (EXAMPLES / "Dockerfile").read_text().splitlines() if line and line[0] != "#"
    )
    assert json.loads(said["ENTRYPOINT"]) == ["wpinq", "serve", "/etc/wpinq/service.toml"]  # in no shell
    assert said["USER"] == "wpinq"
    assert signal.Signals[said["STOPSIGNAL"]] == signal.SIGTERM
    assert json.loads(said["HEALTHCHECK"].removeprefix("CMD "))[-1].endswith("/healthz')")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze reads the unit")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    unit = (EXAMPLES / "wpinq.service").read_text()
    assert "OOMPolicy=continue" in unit
    (tmp_path / "wpinq.service").write_text(unit.replace("/opt/wpinq/bin/wpinq", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "wpinq.service")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
