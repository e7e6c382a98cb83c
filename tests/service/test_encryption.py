"""TLS: what is encrypted, who can read the key, and connections that never say what they want."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

import wpinq as wp
from tests.service.test_deaths import kill, looking
from tests.support.service import COUNT, RunningService, below, configured, running, until
from wpinq.errors import UsageError
from wpinq.service.client import ServiceError
from wpinq.service.config import read_configuration
from wpinq.service.server import server_context

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate"),
]

MOST = 6
TLS = 'certificate = "cert.pem"\nkey = "key.pem"'


def certified(folder: Path, *passphrase: str) -> Path:
    """A folder with a certificate of its own for this machine, and its key."""
    command = "openssl req -x509 -newkey rsa:2048 -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", *(passphrase or ["-nodes"])]
    subprocess.run([*command.split(), *more], cwd=folder, check=True, capture_output=True)
    (folder / "key.pem").chmod(0o600)
    return folder


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = certified(tmp_path_factory.mktemp("encrypted"))
    with running(configured(folder, TLS, f"connections = {MOST}\nslow_seconds = 600.0")) as held:
        yield held


def test_a_client_that_has_the_certificate_is_answered_and_no_other(service: RunningService) -> None:
    token, authority = service.admit("alice", "edges=1"), str(service.folder / "cert.pem")
    assert service.address.startswith("https://")
    alice = wp.connect(service.address, token, cafile=authority)
    edges = alice.sources["edges"]
    assert alice.release(edges.select(lambda e: e.src).noisy_count("0.1", over=[1, 2])).keys == (1, 2)
    trusted = ssl.create_default_context(cafile=authority)
    answer = httpx.get(f"{service.address}/v1/me", headers={"Authorization": f"Bearer {token}"}, verify=trusted)
    assert answer.json()["name"] == "alice"
    assert answer.headers["strict-transport-security"]
    with pytest.raises(ServiceError, match="cafile"):
        wp.connect(service.address, token)


def test_nothing_is_said_in_clear(service: RunningService) -> None:
    token = service.admit("bob", "edges=1")
    with pytest.raises(httpx.HTTPError):
        service_in_clear = service.address.replace("https://", "http://")
        httpx.get(f"{service_in_clear}/v1/me", headers={"Authorization": f"Bearer {token}"}, timeout=300)


def test_connections_that_never_begin_to_encrypt_are_counted_too(service: RunningService) -> None:
    """Otherwise any number of them could stay open, each with its buffers."""
    where = urlsplit(service.address)
    silent = []
    try:
        for _ in range(MOST + 1):
            silent.append(socket.create_connection((where.hostname, where.port), timeout=100))
        last = silent[-1]
        with contextlib.suppress(ConnectionResetError):
            assert last.recv(1) == b""  # turned away: nothing was sent, and there was no time to give up
    finally:
        for each in silent:
            each.close()


def trusts(service: RunningService, certificate: bytes) -> bool:
    """Whether a client that trusts this certificate alone is answered on a new connection."""
    trusted = ssl.create_default_context(cadata=certificate.decode())
    try:
        return httpx.get(f"{service.address}/healthz", verify=trusted, timeout=300).status_code == 200
    except httpx.ConnectError:
        return False


def hang_up(service: RunningService) -> None:
    """SIGHUP to all processes of the service, as a terminal says it."""
    for pid in [*below(service.process.pid), service.process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGHUP)


def test_a_new_certificate_is_taken_on_and_a_bad_one_is_not(tmp_path: Path) -> None:
    with running(configured(certified(tmp_path), TLS)) as service:
        alice = service.admit("alice", "edges=1")
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        former = (tmp_path / "cert.pem").read_bytes()
        assert trusts(service, former)
        with httpx.Client(verify=context, headers={"Authorization": f"Bearer {alice}"}, timeout=300) as client:
            assert client.get(f"{service.address}/v1/me").status_code == 200
            release, body = f"{service.address}/v1/release", {"program": COUNT.format(name="x", epsilon="0.25")}
            answers: list[httpx.Response] = []
            asked = threading.Thread(target=lambda: answers.append(client.post(release, json=body)))
            asked.start()
            looking(service)
            certified(tmp_path)
            hang_up(service)
            asked.join()
            assert answers[0].status_code == 200, answers[0].text  # on the connection that it began on
        until(lambda: trusts(service, (tmp_path / "cert.pem").read_bytes()))
        assert not trusts(service, former)
        latter = (tmp_path / "cert.pem").read_bytes()

        (tmp_path / "cert.pem").write_bytes(former)  # which does not go with the key
        hang_up(service)
        kept, *_ = until(lambda: [each for each in service.events() if each["event"] == "certificate kept"])
        assert "no certificate and its key" in kept["reason"]
        assert trusts(service, latter)
        kill(service.one("web"))
        until(lambda: trusts(service, latter))  # the next web process has it too
        assert service.process.poll() is None


def resident(pid: int) -> int:
    """The megabytes of memory that a process holds."""
    return int(re.findall(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), flags=re.M)[0]) // 1024


@pytest.mark.parametrize("asked", [b"GET /openapi.json", b"GET /v1/me"])
def test_250_connections_at_once_take_little_memory_and_leave_none(tmp_path: Path, asked: bytes) -> None:
    """Each had a buffer of 256 KiB, and a timer held it for long after its end."""
    with running(configured(certified(tmp_path), TLS, "slow_seconds = 600.0")) as service:
        where, trusted = urlsplit(service.address), ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        for _ in range(4):
            with contextlib.ExitStack() as held:
                clients = [
                    held.enter_context(socket.create_connection((where.hostname, where.port), timeout=300))
                    for _ in range(250)
                ]
                wrapped = [
                    held.enter_context(trusted.wrap_socket(each, server_hostname="localhost")) for each in clients
                ]
                for each in wrapped:
                    each.sendall(asked + b" HTTP/1.1\r\nHost: here\r\n\r\n")
                assert all(each.recv(9) == b"HTTP/1.1 " for each in wrapped)
                assert resident(service.one("web")) <= 150


def test_a_service_without_a_certificate_outlives_a_hang_up(tmp_path: Path) -> None:
    with running(configured(tmp_path)) as service:
        before = service.one("web")
        hang_up(service)
        assert service.ask("GET", "healthz", None).status_code == 200
        assert service.one("web") == before
        assert service.process.poll() is None


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    held = read_configuration(configured(certified(tmp_path), TLS))
    assert server_context(held) is not None
    for mode in (0o604, 0o640, 0o620):
        (tmp_path / "key.pem").chmod(mode)
        with pytest.raises(UsageError, match="chmod 600"):
            server_context(held)


def test_a_key_that_asks_for_a_passphrase_is_refused_and_asks_nobody(tmp_path: Path) -> None:
    held = read_configuration(configured(certified(tmp_path, "-passout", "pass:secret"), TLS))
    with pytest.raises(UsageError, match="passphrase"):
        server_context(held)
