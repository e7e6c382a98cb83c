"""Requests by way of a proxy: who may name a user, whose address counts, and what the log has of it."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from tests.service.test_revocation import HeldChannel
from tests.support.parameters import for_each
from tests.support.service import COUNT, ROOT, RunningService, configured, until
from wpinq.errors import UsageError
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.service.app import create_app, security_headers
from wpinq.service.config import read_configuration
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.inflight import InflightReleases
from wpinq.service.middleware import UNIX, RequestGuard
from wpinq.service.server import _protocol
from wpinq.service.users import CURATOR, UserStore

PROXY, OTHER = "10.0.0.5", "10.0.0.6"
HEADER = 'proxies = ["10.0.0.5", "2001:db8::/32"]\nauthenticate = "X-Wpinq-User"'

PROGRAM = COUNT.format(name="x", epsilon="0.25")

Ask = Callable[..., Awaitable[httpx.Response]]


def asked(folder: Path, service: str, work: Callable[[Ask, dict[str, str]], Awaitable[Any]], limits: str = "") -> Any:
    """What some work gives that may ask a service in this process, by way of `ask(path, client, **headers)`."""
    path = configured(Path(tempfile.mkdtemp(dir=folder)), service)
    if limits:
        path.write_text(path.read_text().replace("wrong_tokens_a_minute = 6000", limits))
    configuration = read_configuration(path)
    InflightReleases(configuration.ledger).begin()

    async def run() -> Any:
        with Ledger(configuration.ledger) as ledger, UserStore(configuration.users) as users:
            tokens = {"alice": users.add("alice"), "carol": users.add("carol", CURATOR), "eve": users.add("eve")}
            users.remove("eve")
            dispatcher = Dispatcher(configuration, {}, ledger, HeldChannel(), HeldChannel(), HeldChannel())
            dispatcher.start()
            guard = RequestGuard(create_app(dispatcher), dispatcher, security_headers(False))

            async def ask(path: str, client: str, *headers: tuple[str, str]) -> httpx.Response:
                transport = httpx.ASGITransport(app=guard, client=(client, 1234))
                async with httpx.AsyncClient(transport=transport, base_url="http://here") as session:
                    return await session.get(path, headers=list(headers))

            try:
                return await work(ask, tokens)
            finally:
                dispatcher.users.close()

    return asyncio.run(run())


NAMED = ("X-Wpinq-User", "alice")
SITE = "Sec-Fetch-Site"


@for_each(
    ("client", "headers", "status", "kind"),
    [
        (PROXY, [NAMED], 200, "alice"),
        (UNIX, [NAMED], 200, "alice"),
        ("2001:db8::7", [NAMED], 200, "alice"),
        (PROXY, [("x-wpinq-user", "carol")], 200, "carol"),
        (PROXY, [NAMED, (SITE, "same-origin")], 200, "alice"),
        (PROXY, [NAMED, (SITE, "none")], 200, "alice"),
        (PROXY, [NAMED, ("X-Forwarded-For", "192.0.2.9")], 200, "alice"),
        (PROXY, [], 401, "NoToken"),
        (PROXY, [("X-Wpinq-User", "")], 401, "NoToken"),
        (PROXY, [("X-Wpinq-User", "eve")], 401, "NoToken"),
        (PROXY, [("X-Wpinq-User", "mallory")], 401, "NoToken"),
        (PROXY, [("X-Wpinq-User", "Alice")], 401, "NoToken"),
        (PROXY, [("X-Wpinq-User", "alice' OR '1'='1")], 401, "NoToken"),
        (PROXY, [NAMED, ("X-Wpinq-User", "carol")], 403, "NotProxy"),
        (PROXY, [NAMED, (SITE, "cross-site")], 403, "NotProxy"),
        (PROXY, [NAMED, (SITE, "same-site")], 403, "NotProxy"),
        (OTHER, [NAMED], 403, "NotProxy"),
        ("", [NAMED], 403, "NotProxy"),
        ("127.0.0.1", [NAMED], 403, "NotProxy"),
        (OTHER, [NAMED, ("X-Forwarded-For", PROXY)], 403, "NotProxy"),
        (OTHER, [NAMED, ("X-Forwarded-For", UNIX)], 403, "NotProxy"),
        (OTHER, [NAMED, ("Forwarded", f"for={PROXY}")], 403, "NotProxy"),
    ],
)
def test_a_name_counts_where_the_proxy_says_it_and_nowhere_else(
    client: str, headers: list[tuple[str, str]], status: int, kind: str, tmp_path: Path
) -> None:
    async def work(ask: Ask, tokens: dict[str, str]) -> httpx.Response:
        return await ask("/v1/me", client, *headers)

    answer = asked(tmp_path, HEADER, work)
    assert answer.status_code == status, answer.text
    assert (answer.json()["name"] if status == 200 else answer.json()["error"]["kind"]) == kind


def test_a_token_does_not_help_a_name_from_elsewhere_and_a_name_needs_a_header_that_is_declared(tmp_path: Path) -> None:
    async def with_token(ask: Ask, tokens: dict[str, str]) -> list[tuple[int, str | None]]:
        bearer = ("Authorization", f"Bearer {tokens['carol']}")
        answers = [await ask("/v1/me", client, *more, bearer) for client in (PROXY, OTHER) for more in ((), (NAMED,))]
        return [(each.status_code, each.json().get("name")) for each in answers]

    assert asked(tmp_path, HEADER, with_token) == [(200, "carol"), (200, "alice"), (200, "carol"), (403, None)]
    proxies = HEADER.partition("\n")[0]
    assert asked(tmp_path, proxies, with_token) == [(200, "carol")] * 4  # nobody is named where no header is declared


def test_a_named_curator_has_the_routes_of_one_and_an_analyst_has_not(tmp_path: Path) -> None:
    async def work(ask: Ask, tokens: dict[str, str]) -> list[int]:
        named = [await ask("/metrics", PROXY, ("X-Wpinq-User", name)) for name in ("alice", "carol")]
        return [each.status_code for each in named]

    assert asked(tmp_path, HEADER, work) == [403, 200]


def test_a_header_without_a_proxy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can be set by any client"):
        read_configuration(configured(tmp_path, 'authenticate = "X-User"'))
    for wrong in ('authenticate = "X User"', 'authenticate = ""', 'proxies = ["*"]', 'proxies = ["proxy.example.org"]'):
        with pytest.raises(UsageError, match="in \\[service"):
            read_configuration(configured(tmp_path, wrong))
    read_configuration(configured(tmp_path, 'authenticate = "X-User"\nsocket = "wpinq.sock"'))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds for which the guard holds answers back, which nobody waits for here."""
    found: list[float] = []

    async def held(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr("wpinq.service.limits.asyncio.sleep", held)
    return found


WRONG = ("Authorization", "Bearer wpinq_nothing")


def test_wrong_tokens_are_slowed_by_address_and_right_ones_are_not(tmp_path: Path, waits: list[float]) -> None:
    async def work(ask: Ask, tokens: dict[str, str]) -> list[int]:
        right = ("Authorization", f"Bearer {tokens['alice']}")
        sent = [
            *[(OTHER, WRONG, ("X-Forwarded-For", f"192.0.2.{number}")) for number in range(3)],  # as it likes
            (OTHER, right),
            ("10.0.0.7", WRONG),
            *[(PROXY, WRONG, ("X-Forwarded-For", "198.51.100.1, 192.0.2.1"))] * 3,  # the proxy tells of the last
            (PROXY, WRONG, ("X-Forwarded-For", "192.0.2.2")),
            (PROXY, right, ("X-Forwarded-For", "192.0.2.1")),
            *[
                ("2001:db8:1::1", WRONG, ("X-Forwarded-For", f"2001:dead::{number}")) for number in range(3)
            ],  # of one client
        ]
        return [(await ask("/v1/me", client, *headers)).status_code for client, *headers in sent]

    limited = asked(tmp_path, HEADER, work, "wrong_tokens_a_minute = 2")
    assert limited == [401, 401, 429, 200, 401, 401, 401, 429, 401, 200, 401, 401, 429]
    assert len(waits) == 3
    assert all(0 < seconds <= 15 for seconds in waits)  # no longer than a slow client may take


def test_few_wrong_tokens_of_an_address_wait_at_a_time_and_others_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that waits holds a connection, of which others need one."""
    ends, held, on = asyncio.Event(), [0], asyncio.sleep

    async def held_back(seconds: float) -> None:
        held[0] += 1
        await ends.wait()

    monkeypatch.setattr("wpinq.service.limits.asyncio.sleep", held_back)

    async def work(ask: Ask, tokens: dict[str, str]) -> list[tuple[int, int]]:
        found = []
        for _ in range(2):  # the second time as the first
            ends.clear()
            tries = [asyncio.create_task(ask("/v1/me", OTHER, WRONG)) for _ in range(31)]
            while len(answered := [each for each in tries if each.done()]) + held[0] < len(tries):
                await on(0)
            found.append((held[0], sum(each.result().status_code == 429 for each in answered)))
            ends.set()
            assert {each.status_code for each in await asyncio.gather(*tries)} <= {401, 429}
            held[0] = 0
        return found

    assert asked(tmp_path, HEADER, work, "wrong_tokens_a_minute = 2") == [(4, 25), (4, 27)]


def test_a_user_whom_a_proxy_names_is_one_until_removed_also_without_a_token_that_is_valid(tmp_path: Path) -> None:
    async def work(ask: Ask, tokens: dict[str, str]) -> list[int]:
        with UserStore(next(tmp_path.glob("*/users.db"))) as users:
            expired = users.renew("alice", days=-1)
            by_token = await ask("/v1/me", OTHER, ("Authorization", f"Bearer {expired}"))
            by_name = await ask("/v1/me", PROXY, NAMED)
            users.remove("alice")
            return [each.status_code for each in (by_token, by_name, await ask("/v1/me", PROXY, NAMED))]

    assert asked(tmp_path, HEADER, work) == [401, 200, 401]


def test_the_log_has_the_address_where_the_configuration_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(ask: Ask, tokens: dict[str, str]) -> list[str]:
        right = ("Authorization", f"Bearer {tokens['alice']}")
        forwarded = ("X-Forwarded-For", "192.0.2.1" + "9" * 200)
        answers = [await ask("/v1/me", client, right, forwarded) for client in (OTHER, PROXY)]
        answers.append(await ask("/v1/me", OTHER, WRONG))
        answers.append(await ask("/nothing", OTHER))
        return [each.headers["x-request-id"] for each in answers]

    for asks, addresses in (
        ("", [None] * 4),
        ("\nlog_addresses = true", [OTHER, ("192.0.2.1" + "9" * 200)[:64], OTHER, OTHER]),
    ):
        ids = asked(tmp_path, HEADER + asks, work)
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        assert [line["id"] for line in lines] == ids
        assert len(set(ids)) == len(ids)
        assert [line.get("address") for line in lines] == addresses
        assert [line["user"] for line in lines] == ["alice", "alice", "", ""]


def test_the_address_that_came_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    from wpinq.service.limits import Rates

    monkeypatch.setattr("wpinq.service.limits._REMEMBERED", 2)
    rates = Rates(1, clock=lambda: 0.0)
    assert [rates.wait(each) for each in "abacab"] == [0.0, 0.0, 60.0, 0.0, 60.0, 0.0]  # b made room for c


def test_a_client_that_has_no_address_is_the_proxy_on_a_unix_socket_alone() -> None:
    """The address of a TCP client that has gone cannot be found, though its request is there: it is nobody's proxy."""

    async def seen(unnamed: str) -> list[Any]:
        found: list[Any] = []

        async def application(scope: Any, receive: Any, send: Any) -> None:
            found.append(scope["client"])
            await PlainTextResponse("")(scope, receive, send)

        config = uvicorn.Config(application, log_config=None, lifespan="off")
        config.load()
        made = _protocol(60.0, 8, SimpleNamespace(context=None), unnamed)  # type: ignore[arg-type]
        here, there = socket.socketpair()
        with there:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(
                lambda: made(config=config, server_state=ServerState(), app_state={}, _loop=loop),  # type: ignore[call-arg]
                here,
            )
            there.setblocking(False)
            await loop.sock_sendall(there, b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            assert await loop.sock_recv(there, 12) == b"HTTP/1.1 200"
        return found

    assert asyncio.run(seen("")) == [("", 0)]
    assert asyncio.run(seen(UNIX)) == [(UNIX, 0)]


@pytest.mark.long
def test_a_service_on_a_unix_socket_believes_who_may_open_it(tmp_path: Path) -> None:
    path = configured(tmp_path, 'socket = "wpinq.sock"\nauthenticate = "X-Wpinq-User"')
    for time in ("first", "second"):  # this one finds the socket of the first, which was killed
        service = RunningService(path)
        try:
            assert service.address == f"unix:{tmp_path / 'wpinq.sock'}"
            assert stat.S_IMODE((tmp_path / "wpinq.sock").stat().st_mode) == 0o660
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(tmp_path / "wpinq.sock")), timeout=300) as client:
                assert client.get("http://here/v1/me").status_code == 401
                named = {"X-Wpinq-User": "alice"}
                if time == "first":
                    service.admit("alice", "edges=1")
                assert client.get("http://here/v1/me", headers=named).json()["name"] == "alice"
                asked = client.post("http://here/v1/release", headers=named, json={"program": PROGRAM})
                assert asked.status_code == 200, asked.text
        finally:
            service.stop(signal.SIGKILL)


class SignedIn(BaseHTTPRequestHandler):
    """As oauth2-proxy: who has a cookie is somebody."""

    def do_GET(self) -> None:
        who = self.headers.get("Cookie", "").removeprefix("signed_in=")
        self.send_response(202 if who else 401 if self.path == "/oauth2/auth" else 200)
        if who:
            self.send_header("X-Auth-Request-Email", who)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def behind_nginx(tmp_path: Path) -> Iterator[tuple[RunningService, str]]:
    """A service and the address of the nginx before it, with the configuration of the docs."""
    nginx = shutil.which("nginx")
    if nginx is None:
        pytest.skip("there is no nginx")
    signing = ThreadingHTTPServer(("127.0.0.1", 0), SignedIn)
    threading.Thread(target=signing.serve_forever, daemon=True).start()
    folder = Path(tempfile.mkdtemp())  # the path of a Unix socket is short
    folder.chmod(0o755)
    service = RunningService(
        configured(folder, 'socket = "wpinq.sock"\nauthenticate = "X-Wpinq-User"\nlog_addresses = true')
    )
    (folder / "wpinq.sock").chmod(0o666)  # for nginx' workers, who are nobody here
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = (ROOT / "examples" / "service" / "nginx.conf").read_text()
    for former, here in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("ssl_certificate /etc/nginx/cert.pem;", ""),
        ("ssl_certificate_key /etc/nginx/key.pem;", ""),
        ("127.0.0.1:4180", f"127.0.0.1:{signing.server_address[1]}"),
        ("/run/wpinq/wpinq.sock", str(folder / "wpinq.sock")),
    ):
        assert former in text
        text = text.replace(former, here)
    paths = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"pid {folder}/pid; error_log {folder}/error.log; daemon off; events {{}}"
    (folder / "nginx.conf").write_text(f"{head} http {{ access_log off; {paths} {text} }}")
    process = subprocess.Popen([nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        until(lambda: (folder / "pid").exists() and (folder / "pid").read_text().strip())
        yield service, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        assert service.stop() == 0
        signing.shutdown()
        signing.server_close()
        shutil.rmtree(folder)


@pytest.mark.long
def test_the_configuration_of_nginx_names_who_signed_in_and_nobody_else(
    behind_nginx: tuple[RunningService, str],
) -> None:
    service, address = behind_nginx
    service.admit("alice", "edges=1")
    token = service.admit("carol", curator=True)

    def me(**headers: str) -> tuple[int, str | None]:
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        answer = httpx.get(f"{address}/v1/me", headers=sent, timeout=300)
        return answer.status_code, answer.json().get("name") if answer.content else None

    alice, other = "signed_in=alice@example.org", "signed_in=mallory@example.org"
    assert me(Cookie=alice) == (200, "alice")
    assert me(Cookie=alice, X_Wpinq_User="carol", X_Forwarded_For="192.0.2.1") == (200, "alice")
    assert me(X_Wpinq_User="carol") == (403, None)  # the page to sign in
    assert me(Cookie=other, X_Wpinq_User="carol") == (401, None)
    assert me(Cookie=other, Authorization=f"Bearer {token}") == (200, "carol")
    assert me(Cookie=alice, Sec_Fetch_Site="cross-site")[0] == 403
    asked = httpx.post(f"{address}/v1/release", headers={"Cookie": alice}, json={"program": PROGRAM}, timeout=300)
    assert asked.status_code == 200, asked.text
    events = [each for each in service.events() if each["event"] == "request"]
    assert {each["address"] for each in events} == {"127.0.0.1"}  # as nginx tells, and not as a client does
    assert {each["user"] for each in events} == {"alice", "carol", ""}
