"""The client: the objects of a session, and its errors, over HTTP and TLS."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import threading
from collections.abc import Iterator
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

import wpinq as wp
from tests.service.conftest import Peopled
from tests.support.service import COUNT, configured, running
from wpinq.errors import BudgetExceeded, EvaluationFailed, LanguageError, PlanError
from wpinq.service.client import ServiceError


@pytest.fixture(scope="module")
def alice(peopled: Peopled) -> wp.ServiceConnection:
    return wp.connect(peopled.service.address, peopled.alice)


def test_releases_come_as_they_were_asked_for(alice: wp.ServiceConnection) -> None:
    edges = alice.sources["edges"]
    counted = edges.select(lambda e: e.src).noisy_count("0.015", over=[1, 2])
    total = edges.noisy_sum("0.015", lambda e: e.dst, 0, 10)
    left = alice.remaining("edges")
    assert alice.bill([counted, total])["edges"] == alice.quote([counted, total])["edges"] == Fraction(3, 100)
    answers, summed = alice.release([counted, total], label="through the client")
    assert isinstance(answers, wp.Answers)
    assert answers.measurement.digest == counted.digest
    assert answers.keys == (1, 2)
    assert alice.remaining("edges") == left - Fraction(3, 100)
    assert alice.history()[-1].label == "through the client"
    assert alice.history()[-1].amount == Fraction(3, 100)

    again = alice.release({"counted, by hand": counted})
    assert again["counted, by hand"].values.tolist() == answers.values.tolist()
    assert alice.release(total).value == summed.value
    assert alice.quote(counted) == {}
    by_text = alice.release(
        COUNT.format(name="x", epsilon="e").join(["parameter e = 1;", ""]), parameters={"e": "0.015"}
    )
    assert list(by_text) == ["x"]


def test_tables_are_read_back(alice: wp.ServiceConnection) -> None:
    edges = alice.sources["edges"]
    tabulation = edges.by("src", keys=[1, 2]).agg(n=wp.count(), far=wp.mean("dst", 0, 10), epsilon="0.02")
    listed = edges.by("src", keys=wp.integers(1, 8), above=3).agg(n=wp.count(), epsilon="1/2")
    tables = alice.release({"table": tabulation, "listed": listed})
    assert tables["table"].keys == (1, 2)
    assert set(tables["table"][1]) == {"n", "far"}
    assert all(tables["listed"][key]["n"].estimate > 3 for key in tables["listed"].keys)


def test_marginals_are_read_back(alice: wp.ServiceConnection) -> None:
    """Alone, beside a table, and by a text program: one measurement, paid for once, and the same numbers each time."""
    edges = alice.sources["edges"]
    halves = [wp.attribute(name, bins=[0, 4, 9]) for name in ("src", "dst")]
    asked = edges.marginals(halves, epsilon="0.5")
    left = alice.remaining("edges")
    assert alice.quote(asked) == dict(asked.bill()) == {"edges": Fraction(1, 2)}
    found = alice.release(asked)
    assert isinstance(found, wp.MarginalTables)
    assert [found.answers.measurement.digest] == [one.digest for one in asked.measurements]
    assert found.names == ("src", "dst")
    assert found.counts("src", "dst").size == len(found.answers.keys)
    assert found.half_width("src") > 0
    assert not found.simulated
    assert alice.remaining("edges") == left - Fraction(1, 2)

    table = edges.by("src", keys=[1, 2]).agg(n=wp.count(), epsilon="0.02")
    beside, by_name = alice.release([table, asked])[1], alice.release({"both": asked})["both"]
    by_text = alice.release(wp.unparse({"both": asked}))["both"]
    written = alice.release(wp.unparse({"both": asked}).split(";\n", 1)[1])["both"]  # without the declaration
    for again in (beside, by_name, by_text, written):
        assert again.to_json() == found.to_json()
        assert again.to_columns("src", "dst") == found.to_columns("src", "dst")
    assert alice.remaining("edges") == left - Fraction(1, 2) - Fraction(1, 50)


def test_errors_are_the_library_s(alice: wp.ServiceConnection) -> None:
    edges = alice.sources["edges"]
    with pytest.raises(BudgetExceeded, match="alice"):
        alice.release(edges.select(lambda e: e.src).noisy_count(100, over=[1]))
    with pytest.raises(LanguageError, match="line 1") as wrong:
        alice.release("var x = edges.Selec(e => e.src);")
    assert wrong.value.line == 1
    with pytest.raises(PlanError, match="no source 'people' here"):
        alice.release(wp.source("people", int).noisy_count(1, over=[1]))
    with pytest.raises(PlanError, match="no public keys"):
        alice.release(edges.noisy_count(1))
    with pytest.raises(ServiceError, match="no budget"):
        alice.remaining("people")


def test_a_token_is_in_no_repr_and_no_copy(alice: wp.ServiceConnection, peopled: Peopled) -> None:
    assert peopled.alice not in repr(alice)
    with pytest.raises(ServiceError, match="holds a token"):
        pickle.dumps(alice)


@pytest.mark.parametrize(
    "url", ["http://example.org", "ftp://localhost", "example.org", "http://127.0.0.1.example.org/"]
)
def test_a_token_is_never_sent_in_clear(url: str) -> None:
    with pytest.raises(ServiceError, match="unencrypted"):
        wp.connect(url, "token")


def test_who_is_not_known_or_not_there(peopled: Peopled) -> None:
    with pytest.raises(ServiceError, match="a token is required") as refused:
        wp.connect(peopled.service.address, "wpinq_nobody")
    assert refused.value.status == 401
    with pytest.raises(ServiceError, match="no readable response"):
        wp.connect("http://127.0.0.1:1", "token")


class _Elsewhere(BaseHTTPRequestHandler):
    """Redirects, and notes what it is sent."""

    sent: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.sent.append(self.path)
        self.send_response(302)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *given: object) -> None:
        pass


def test_a_redirect_is_not_followed_with_the_token() -> None:
    with HTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(ServiceError):
            wp.connect(f"http://127.0.0.1:{server.server_port}", "token")
        thread.join()
    assert _Elsewhere.sent == ["/v1/sources"]


def test_a_failure_after_the_debit_is_the_session_s() -> None:
    from wpinq.service.client import _error_of
    from wpinq.service.errors import failure

    body = bytes(failure().response().body)
    assert isinstance(_error_of(500, body), EvaluationFailed)
    assert isinstance(_error_of(502, b"<html>"), ServiceError)
    assert type(_error_of(400, b'{"error": {"kind": "sys", "message": "x"}}')) is ServiceError


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate of this test")
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command.split(), *names], cwd=folder, check=True, capture_output=True)
    yield folder


@pytest.mark.long
def test_tls_is_verified(certificate: Path) -> None:
    with running(configured(certificate, 'host = "0.0.0.0"\ncertificate = "cert.pem"\nkey = "key.pem"')) as service:
        address = service.address.replace("0.0.0.0", "127.0.0.1")
        assert address.startswith("https://")
        token = service.admit("alice", "edges=1")
        with pytest.raises(ServiceError):
            wp.connect(address, token)
        trusting = wp.connect(address, token, cafile=str(certificate / "cert.pem"))
        assert trusting.remaining("edges") == 1
        with pytest.raises(ServiceError, match="no certificates"):
            wp.connect(address, token, cafile=str(certificate / "key.pem"))
