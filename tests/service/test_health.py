"""What machines ask for: whether the service lives and is ready, and the curator's metrics."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.service.conftest import Peopled
from tests.service.test_channels import asked as worked, raising
from tests.service.test_proxies import OTHER, Ask, asked
from tests.service.test_requests import told
from tests.service.test_revocation import HeldChannel
from tests.support.parameters import for_each
from tests.support.service import COUNT, configured
from wpinq.errors import BudgetExceeded, EvaluationFailed, LedgerError
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.service.app import create_app
from wpinq.service.config import Configuration, read_configuration
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.errors import FAILED, Refusal
from wpinq.service.inflight import InflightReleases
from wpinq.service.processes import read_answer


def test_the_service_says_yes(peopled: Peopled) -> None:
    for path in ("healthz", "readyz"):
        answer = peopled.service.ask("GET", path, None)
        assert (answer.status_code, answer.text) == (200, "yes")


def replaced(configuration: Configuration) -> None:
    os.rename(configuration.ledger, configuration.ledger.with_name("away.db"))
    Ledger(configuration.ledger.with_name("other.db")).close()
    os.rename(configuration.ledger.with_name("other.db"), configuration.ledger)


LOST: tuple[Callable[[Configuration], object], ...] = (
    lambda held: None,
    lambda held: held.users.unlink(),
    lambda held: held.users.write_bytes(b"no register at all" * 1000),
    lambda held: held.ledger.unlink(),
    replaced,
)


@for_each("lose", LOST)
def test_a_service_without_its_files_is_not_ready(
    lose: Callable[[Configuration], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = read_configuration(configured(tmp_path))
    InflightReleases(configuration.ledger).begin()

    async def asked() -> tuple[httpx.Response, httpx.Response]:
        with Ledger(configuration.ledger) as ledger:
            dispatcher = Dispatcher(configuration, {}, ledger, HeldChannel(), HeldChannel(), HeldChannel())
            dispatcher.start()
            transport = httpx.ASGITransport(app=create_app(dispatcher))
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                before = await client.get("/readyz")
                assert (before.status_code, before.text) == (200, "yes")
                lose(configuration)
                try:
                    return await client.get("/readyz"), await client.get("/healthz")
                finally:
                    dispatcher.users.close()

    ready, healthy = asyncio.run(asked())
    assert (healthy.status_code, healthy.text) == (200, "yes")
    if lose is LOST[0]:
        assert (ready.status_code, ready.text) == (200, "yes")
    else:
        assert (ready.status_code, ready.text) == (503, "no")
        assert "not ready" in capsys.readouterr().err


def test_a_register_that_cannot_be_read_is_said_in_the_log_and_not_to_the_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(ask: Ask, tokens: dict[str, str]) -> httpx.Response:
        users = next(tmp_path.glob("*/users.db"))
        users.write_bytes(b"no register at all" * 1000)
        return await ask("/v1/me", OTHER, ("Authorization", f"Bearer {tokens['alice']}"))

    assert told(asked(tmp_path, "", work), 500, "Failed") == FAILED
    line = next(each for each in map(json.loads, capsys.readouterr().err.splitlines()) if each["event"] == "failure")
    assert line["error"] == "UsersError"
    assert re.search(r"users\.db cannot be read \(.*\): see that it is a whole file", line["reason"])


def test_a_ledger_that_cannot_be_read_is_said_in_the_log_and_not_to_the_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "/a/ledger.db: the disk is full: make room on it"

    async def work(ask: Ask, tokens: dict[str, str]) -> httpx.Response:
        monkeypatch.setattr(Ledger, "balances", lambda *_: raising(LedgerError(words))(None))
        return await ask("/v1/remaining", OTHER, ("Authorization", f"Bearer {tokens['alice']}"))

    assert told(asked(tmp_path, "", work), 500, "Failed") == FAILED
    assert json.loads(capsys.readouterr().err.splitlines()[0])["reason"] == words


def test_a_worker_s_trouble_with_the_ledger_is_said_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    words = "/a/ledger.db: the disk is full: make room on it"
    with pytest.raises(Refusal, match=FAILED):
        read_answer(worked(raising(LedgerError(words))))
    assert json.loads(capsys.readouterr().err)["reason"] == words
    for silent in (BudgetExceeded("words"), EvaluationFailed("words"), KeyError("a record"), OSError("a record")):
        with pytest.raises(Refusal):
            read_answer(worked(raising(silent)))
    assert capsys.readouterr().err == ""


def test_metrics_are_the_curator_s_and_name_no_analyst(peopled: Peopled) -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="metrics are read as Prometheus reads them")
    service = peopled.service
    program = COUNT.format(name="x", epsilon="0.001")
    assert service.ask("POST", "v1/explain", peopled.alice, {"program": program}).status_code == 200
    service.ask("POST", "v1/explain", peopled.alice, {"program": "nonsense("})
    told(service.ask("GET", "metrics", None), 401, "NoToken")
    told(service.ask("GET", "metrics", peopled.alice), 403, "NotCurator")
    answer = service.ask("GET", "metrics", peopled.curator)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in parser.text_string_to_metric_families(answer.text)}
    assert {name: family.type for name, family in families.items()} == {
        "wpinq_requests": "counter",
        "wpinq_refusals": "counter",
        "wpinq_queue_length": "gauge",
        "wpinq_account_suspended": "gauge",
        "wpinq_account_epsilon_left": "gauge",
    }
    labels = {name: [sample.labels for sample in family.samples] for name, family in families.items()}
    assert {"route": "/v1/explain", "status": "200"} in labels["wpinq_requests"]
    assert {"route": "/v1/explain", "status": "400"} in labels["wpinq_refusals"]
    assert all(each["status"] >= "400" for each in labels["wpinq_refusals"])
    assert labels["wpinq_queue_length"] == [{"queue": "planner"}, {"queue": "release"}]
    assert labels["wpinq_account_suspended"] == labels["wpinq_account_epsilon_left"] == [{"account": "edges"}]
    (left,) = families["wpinq_account_epsilon_left"].samples
    held = service.ask("GET", "v1/accounts", peopled.curator).json()
    assert left.value <= float(next(each["budget"] for each in held if each["account"] == "edges"))
    assert not re.search("alice|bob|curator|second|byte|time", answer.text)
