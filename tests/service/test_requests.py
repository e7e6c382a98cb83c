"""Who gets in, with what, and what a request may be: over a real socket."""

from __future__ import annotations

import contextlib
import json
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.service.conftest import Peopled
from tests.support.service import COUNT, configured, running, until

KEPT = ("content-security-policy", "x-content-type-options", "referrer-policy", "cache-control", "x-frame-options")


def told(response: httpx.Response, status: int, kind: str) -> str:
    """The message of an error, which has the one shape that there is."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert all(name in response.headers for name in KEPT)
    assert "access-control-allow-origin" not in response.headers
    body = response.json()
    assert list(body) == ["error"]
    assert body["error"]["kind"] == kind, body
    return str(body["error"]["message"])


def every_endpoint(peopled: Peopled) -> list[tuple[str, str]]:
    paths = peopled.service.ask("GET", "openapi.json", None).json()["paths"]
    return [(method.upper(), path[1:].replace("{name}", "alice")) for path, held in paths.items() for method in held]


def test_nothing_is_told_to_who_shows_no_token(peopled: Peopled) -> None:
    endpoints = every_endpoint(peopled)
    assert len(endpoints) >= 14
    for method, path in endpoints:
        assert "Bearer" in told(peopled.service.ask(method, path, None), 401, "NoToken")


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer wpinq_" + "A" * 43, "Basic YTpi", "Bearer " + "x" * 5000, "Bearer \xff\xfe", "bearer null"],
)
def test_a_wrong_token_is_none(peopled: Peopled, header: str) -> None:
    answer = peopled.service.ask("GET", "v1/me", None, headers={b"Authorization": header.encode("latin-1")})
    told(answer, 401, "NoToken")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_two_tokens_are_none(peopled: Peopled) -> None:
    headers = [("Authorization", f"Bearer {peopled.alice}")] * 2
    told(httpx.get(f"{peopled.service.address}/v1/me", headers=headers), 401, "NoToken")


def test_a_token_is_no_part_of_an_address(peopled: Peopled) -> None:
    told(peopled.service.ask("GET", f"v1/me?token={peopled.alice}&access_token={peopled.alice}", None), 401, "NoToken")


def test_analysts_and_curators_keep_to_what_is_theirs(peopled: Peopled) -> None:
    service = peopled.service
    for method, path in every_endpoint(peopled):
        body: Any = {"POST": {}, "PUT": {}}.get(method)
        for_all = path in ("v1/me", "v1/sources", "v1/guide", "v1/explain")
        for_analysts = path in ("v1/release", "v1/remaining", "v1/history")
        for token, allowed in (
            (peopled.alice, for_all or for_analysts),
            (peopled.curator, for_all or not for_analysts),
        ):
            if not allowed:
                valid = {"v1/release": {"program": "x"}, "v1/users": {"name": "eve"}, "v1/resume": {"account": "edges"}}
                given = valid.get(path, {"budgets": {}}) if body is not None and method != "GET" else None
                told(
                    service.ask(method, path, token, given),
                    403,
                    "NotCurator" if token == peopled.alice else "NotAnalyst",
                )


def test_what_there_is_not_is_said_in_the_same_shape(peopled: Peopled) -> None:
    told(peopled.service.ask("GET", "v1/nothing", peopled.alice), 404, "NoRequest")
    told(peopled.service.ask("GET", "nothing", None), 404, "NoRequest")
    told(peopled.service.ask("GET", "../../etc/passwd", None), 404, "NoRequest")
    told(peopled.service.ask("GET", "%2e%2e/web.py", None), 404, "NoRequest")
    told(peopled.service.ask("PATCH", "v1/me", peopled.alice), 405, "NoRequest")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[" * 10_000,
        b'{"program": "x", "confidence": NaN}',
        b'{"program": "x", "confidence": 1e400}',
        b'{"program": "x", "confidence": 2}',
        b'{"program": 3}',
        b'{"program": "x", "measurements": {}}',
        b"{}",
        b'{"program": "x", "unknown": 1}',
        b'{"program": "x", "fresh": "yes"}',
        b'{"program": "x", "parameters": {"a": [1]}}',
        b"\xff\xfe",
        b'"program"',
    ],
)
def test_a_body_that_is_not_what_is_taken(peopled: Peopled, body: bytes) -> None:
    for path in ("v1/explain", "v1/release"):
        answer = peopled.service.ask(
            "POST", path, peopled.alice, content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["kind"] in ("Malformed", "NoRequest")


def test_a_body_too_large_is_refused_whether_it_says_so_or_not(peopled: Peopled) -> None:
    large = {"program": "// " + "x" * 20_000}
    assert "20,000 bytes" in told(peopled.service.ask("POST", "v1/explain", peopled.alice, large), 413, "TooLarge")

    def pieces() -> Any:
        for _ in range(30):
            yield b" " * 1_000

    told(peopled.service.ask("POST", "v1/explain", peopled.alice, content=pieces()), 413, "TooLarge")


def exchanged(address: str, sent: bytes) -> bytes:
    """What comes back for some bytes until the other side closes."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=300) as client:
        received = b""
        with contextlib.suppress(ConnectionError):  # which is one way to close
            client.sendall(sent)
            while piece := client.recv(65536):
                received += piece
    return received


def test_what_is_no_http_gets_the_same_shape(peopled: Peopled) -> None:
    for sent in (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
        head, _, body = exchanged(peopled.service.address, sent).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400"), head
        assert json.loads(body)["error"]["kind"] == "NoRequest"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Any:
    limits = "slow_seconds = 2.0\nexplain_seconds = 2.5"
    path = configured(tmp_path_factory.mktemp("strict"), "planners = 1", limits)
    text = path.read_text().replace("requests_a_minute = 6000", "requests_a_minute = 6")
    path.write_text(text.replace("releases_a_minute = 6000", "releases_a_minute = 1"))
    with running(path) as service:
        yield service


@pytest.mark.long
def test_slow_clients_do_not_stay(strict: Any) -> None:
    token = strict.admit("slow", "edges=1")
    assert exchanged(strict.address, b"") == b""  # says nothing
    assert exchanged(strict.address, b"GET /v1/me HTTP/1.1\r\nHost: x\r\nX-Slow: ") == b""  # never ends its head
    head = f"POST /v1/explain HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 100\r\n\r\n"
    answer = exchanged(strict.address, head.encode() + b"{")  # never ends its body
    assert answer.startswith(b"HTTP/1.1 408")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["kind"] == "TooSlow"
    kept = exchanged(
        strict.address, f"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    assert kept.startswith(b"HTTP/1.1 200")  # and closes, when nothing follows


@pytest.mark.long
def test_more_connections_than_there_may_be_are_closed(tmp_path: Path) -> None:
    asked = b"GET /v1/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with running(configured(tmp_path, limits="slow_seconds = 600.0\nconnections = 8")) as service:
        parts = urlsplit(service.address)
        with contextlib.ExitStack() as held:
            for _ in range(8):
                held.enter_context(socket.create_connection((parts.hostname, parts.port)))
            assert {exchanged(service.address, asked) for _ in range(4)} == {b""}
        until(lambda: exchanged(service.address, asked).startswith(b"HTTP/1.1 401"))


def refused_at_last(ask: Callable[[], httpx.Response]) -> tuple[int, httpx.Response]:
    """How often an asking went before it came too often, and how it then was refused."""
    for times in range(100):
        if (answer := ask()).status_code == 429:
            return times, answer
    raise AssertionError("nothing was too often")


@pytest.mark.long
def test_who_asks_too_often_waits(strict: Any) -> None:
    hasty, other = strict.admit("hasty", "edges=1"), strict.admit("other", "edges=1")
    times, answer = refused_at_last(lambda: strict.ask("GET", "v1/me", hasty))
    assert times >= 6
    assert "too many of your requests" in told(answer, 429, "TooOften")
    assert int(answer.headers["retry-after"]) >= 1
    assert strict.ask("GET", "v1/me", other).status_code == 200


@pytest.mark.long
def test_a_release_counts_as_one_whatever_becomes_of_it(strict: Any) -> None:
    token = strict.admit("careless", "edges=1")
    assert strict.release(token, "nonsense").status_code == 400
    _, answer = refused_at_last(lambda: strict.release(token, "nonsense"))
    assert int(answer.headers["retry-after"]) > 10  # of the releases a minute: one more request is there in ten seconds


@pytest.mark.long
def test_a_program_that_takes_too_long_to_read_costs_its_author_a_refusal(strict: Any) -> None:
    """The planner that reads it dies, the only one, and the next request finds another."""
    token = strict.admit("heavy", "edges=1")
    deep = ["var q = edges.Select(e => e.src);", *["q = q.Concat(q);"] * 1000]
    many = [f"var x{i} = q.Where(a => a != {i}).NoisyCount(0.001, over: [1]);" for i in range(200)]
    refused = strict.ask("POST", "v1/explain", token, {"program": "\n".join(deep + many)})
    assert "more time or memory" in told(refused, 400, "TooMuch")
    cheap = {"program": "nonsense("}
    # on a busy machine the first planner may outlive the patience with it, and the next request's
    until(lambda: strict.ask("POST", "v1/explain", token, cheap).json()["error"]["kind"] == "LanguageError")


def test_tokens_are_kept_as_hashes_in_files_of_the_owner(peopled: Peopled) -> None:
    folder = peopled.service.folder
    for path in folder.rglob("*"):
        if path.is_dir():
            continue
        try:
            held = path.read_bytes()
        except FileNotFoundError:  # what is under way, and ended since
            continue
        for token in (peopled.alice, peopled.bob, peopled.curator):
            assert token.encode() not in held, path
            assert token.removeprefix("wpinq_").encode() not in held, path
    for name in ("users.db", "ledger.db"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_the_log_has_who_and_what_but_no_words_of_theirs(peopled: Peopled) -> None:
    program = COUNT.format(name="secret_name", epsilon="0.0625")
    answer = peopled.service.release(peopled.alice, program, label="a secret label")
    assert answer.status_code == 200, answer.text
    peopled.service.ask("GET", "v1/unheard_of_path", peopled.alice)
    peopled.service.ask("POST", "v1/explain", peopled.alice, {"program": "secret_nonsense"})
    events = peopled.service.events()
    released = [each for each in events if each.get("route") == "/v1/release"]
    assert released[-1]["id"] == answer.headers["x-request-id"]
    assert {"user": "alice", "status": 200, "method": "POST"}.items() <= released[-1].items()
    assert {tuple(sorted(each)) for each in events if each["event"] == "request"} == {
        ("event", "id", "method", "route", "status", "time", "user")
    }
    text = peopled.service.log.read_text()
    assert "secret" not in text
    assert "unheard_of" not in text
    assert peopled.alice not in text
    for row in answer.json()["answers"]["secret_name"]["series"][0]["rows"]:
        assert str(row["estimate"]) not in text


def test_a_request_of_two_lengths_takes_no_other_along(peopled: Peopled) -> None:
    """Behind a proxy that believes the other one, what follows would be the request of somebody else."""
    head = f"POST /v1/explain HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {peopled.alice}\r\n"
    lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    follows = f"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {peopled.alice}\r\n\r\n"
    received = exchanged(peopled.service.address, f"{head}{lengths}{follows}".encode())
    assert received.startswith(b"HTTP/1.1 400")
    assert received.count(b"HTTP/1.1") == 1
    assert b"one length" in received
