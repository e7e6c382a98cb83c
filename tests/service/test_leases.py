"""Several services over one ledger in PostgreSQL: leases of releases in flight, and what a lost one keeps from whom."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import PASSWORD, Server
from tests.support.service import COUNT, RunningService, configured, running, until
from wpinq.errors import LedgerError, UsageError
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, Pricing, SuspensionError
from wpinq.kernel.ledger.postgres import PostgresStore
from wpinq.service.config import read_configuration
from wpinq.service.leases import Leases
from wpinq.service.users import UserStore, admit


@pytest.fixture(autouse=True)
def lasting() -> Iterator[None]:
    """A process that may last long, as that of a release."""
    held = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 10_000)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, held)


def let_end(server: Server, url: str) -> None:
    """Let all leases be over."""
    server.execute("UPDATE wpinq.leases SET until = clock_timestamp()", url.rpartition("/")[2])


@pytest.fixture
def url(postgres_ledger: str) -> str:
    with Ledger(postgres_ledger) as ledger:
        for name in ("edges", "people"):
            ledger.open_accounts([declared_account(name, "s", "u", Fraction(1), 10**9)])
    return postgres_ledger


@pytest.fixture
def stores(url: str) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """Of two services."""
    made = PostgresStore(url), PostgresStore(url)
    yield made
    for each in made:
        each.close()


def test_a_release_that_ends_leaves_nothing(stores: tuple[PostgresStore, PostgresStore]) -> None:
    one, two = Leases(stores[0], "one"), Leases(stores[1], "two")
    name = one.name()
    with one.recorded(name, {"edges", "people"}):
        assert one.names() == {name}
        assert two.names() == frozenset()  # it lasts, and is another's
        assert not one.ended(name)
        assert one.accounts(name) == two.accounts(name) == {"edges", "people"}
    with pytest.raises(KeyError), one.recorded(name, {"edges"}):
        raise KeyError  # it was refused, say: nobody died
    assert one.names() == two.names() == frozenset()
    assert one.ended(name, wait=True)
    assert one.accounts(name) == frozenset()


def test_a_lease_whose_holder_is_gone_suspends_its_accounts(
    url: str, stores: tuple[PostgresStore, PostgresStore], postgres_server: Server
) -> None:
    two = Leases(stores[1], "two")
    pid = os.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_REAL, 10_000)
        with Leases(stores[0], "one").recorded("name", {"edges"}):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert two.names() == frozenset()
    assert not two.ended("name")
    let_end(postgres_server, url)
    assert two.names() == {"name"}
    assert two.ended("name")
    with Ledger(url) as ledger:
        assert ledger.suspended() == frozenset()
        assert two.suspend("name", ledger) == ({"edges"}, {"edges"})
        assert two.suspend("name", ledger) == (frozenset(), frozenset())
        assert ledger.suspended() == {"edges"}
    assert two.names() == frozenset()


@pytest.mark.parametrize("loss", ["over", "taken"])
def test_who_lost_a_lease_stores_nothing_and_answers_nothing(
    url: str, stores: tuple[PostgresStore, PostgresStore], postgres_server: Server, loss: str
) -> None:
    one, two = Leases(stores[0], "one"), Leases(stores[1], "two")
    ledger = Ledger(stores[0])
    with pytest.raises(SuspensionError), one.recorded("name", {"edges"}):
        ledger.debit({"m": "count"}, lambda new, parts_of: Pricing({"edges": 1}, {}))
        if loss == "taken":
            two.forget("name")
        else:
            let_end(postgres_server, url)
        for act in (
            lambda: ledger.store_answers("m", {b"a": 1.0}),
            lambda: ledger.debit({"n": "count"}, lambda new, parts_of: Pricing({"edges": 1}, {})),
        ):
            with pytest.raises(LedgerError, match="the lease of this release is lost"):
                act()
    assert two.names() == ({"name"} if loss == "over" else frozenset())
    assert ledger.account("edges").spent == 1  # the debit stands
    assert ledger.answers("m") == {}


def test_a_release_that_fails_without_its_lease_leaves_it_to_be_suspended(
    url: str, stores: tuple[PostgresStore, PostgresStore], postgres_server: Server
) -> None:
    one, two = Leases(stores[0], "one"), Leases(stores[1], "two")
    with pytest.raises(SuspensionError), one.recorded("name", {"edges"}):
        let_end(postgres_server, url)
        raise LedgerError("the disk is full")
    assert two.names() == {"name"}


def test_an_answer_that_was_stored_is_not_sent_without_the_lease(
    url: str, stores: tuple[PostgresStore, PostgresStore], postgres_server: Server
) -> None:
    with pytest.raises(SuspensionError), Leases(stores[0], "one").recorded("name", {"edges"}):
        let_end(postgres_server, url)


def test_a_release_without_a_time_of_its_end_has_no_lease(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    ledger = Ledger(stores[0])
    with pytest.raises(SuspensionError), Leases(stores[0], "one").recorded("name", {"edges"}):
        ledger.suspend(["edges"])


# two services


@contextmanager
def services(folder: Path, server: Server, budget: str) -> Iterator[tuple[str, list[RunningService]]]:
    """A ledger, and two services over it with the same users."""
    url = server.ledger()
    with ExitStack() as stack:
        started = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            path = configured(folder / name, "release_workers = 3", budget=budget, margin=64.0)
            text = path.read_text().replace('"ledger.db"', f'"{url}"').replace('"users.db"', f'"{folder}/users.db"')
            path.write_text(text)
            started.append(stack.enter_context(running(path)))
        yield url, started
    logs = "".join((folder / name / "log.jsonl").read_text() for name in ("one", "two"))
    assert "secret" not in logs
    with Ledger(url) as ledger:
        ledger.verify()


def admitted(url: str, folder: Path, names: list[str], budget: str) -> list[str]:
    with UserStore(folder / "users.db") as users, Ledger(url) as ledger:
        return [admit(users, ledger, name, "analyst", {"edges": budget}) for name in names]


@pytest.mark.long
def test_fifty_analysts_get_twenty_answers_through_two_services(tmp_path: Path, postgres_server: Server) -> None:
    cost = 0.1
    with services(tmp_path, postgres_server, "2") as (url, pair):
        tokens = admitted(url, tmp_path, [f"analyst{number}" for number in range(50)], "1")

        def ask(number: int) -> Any:
            program = COUNT.replace("edges.", f"edges.Where(e => e.dst > {number - 100}).").format(
                name="x", epsilon=cost
            )
            while True:
                response = pair[number % 2].release(tokens[number], program)
                if response.status_code not in (429, 503):
                    return response

        with ThreadPoolExecutor(50) as pool:
            responses = list(pool.map(ask, range(50)))
        with Ledger(url) as ledger:
            assert ledger.account("edges").remaining == 0
            assert ledger.suspended() == frozenset()
    codes = [response.status_code for response in responses]
    assert codes.count(200) == 20, [response.text for response in responses]
    assert {response.json()["error"]["kind"] for response in responses if response.status_code != 200} == {
        "SourceExhausted"
    }


@pytest.mark.long
def test_a_failure_on_one_suspends_on_both_and_a_replay_crosses(tmp_path: Path, postgres_server: Server) -> None:
    with services(tmp_path, postgres_server, "2") as (url, (one, two)):
        (token,) = admitted(url, tmp_path, ["alice"], "1")
        program = COUNT.format(name="x", epsilon=0.1)
        first, again = one.release(token, program), two.release(token, program)
        assert first.status_code == again.status_code == 200, (first.text, again.text)
        assert first.json()["answers"] == again.json()["answers"]
        other = COUNT.format(name="x", epsilon=0.2)
        asked = threading.Thread(target=lambda: one.release(token, other))
        asked.start()

        def under_way() -> bool:
            with Ledger(url) as ledger:
                return ledger.account("edges").spent == 3 * 10**8

        until(under_way)
        for pid in one.processes("release"):
            os.kill(pid, signal.SIGKILL)
        asked.join()
        with Ledger(url) as ledger:
            assert ledger.suspended() == {"edges"}
        for service in (one, two):
            refused = service.release(token, COUNT.format(name="x", epsilon=0.05))
            assert (refused.status_code, "suspended" in refused.text) == (409, True), refused.text
        with Ledger(url) as ledger:
            assert ledger.resume("edges")
            assert ledger.account("edges").spent == 3 * 10**8
        assert two.release(token, other).status_code == 200


@pytest.mark.long
def test_the_other_service_suspends_where_one_is_gone(tmp_path: Path, postgres_server: Server) -> None:
    with services(tmp_path, postgres_server, "2") as (url, (one, two)):
        (token,) = admitted(url, tmp_path, ["alice"], "1")
        with closing(PostgresStore(url)) as store:
            begin = "SELECT begin_lease(?, ?, ?, ?)"
            given = "name", "a service that is gone", '["edges"]', 0.0
            store.write(lambda transaction: transaction.execute(begin, given))
        refused = two.release(token, COUNT.format(name="x", epsilon=0.1))
        assert (refused.status_code, "suspended" in refused.text) == (409, True), refused.text
        with Ledger(url) as ledger:
            assert ledger.suspended() == {"edges"}
            assert ledger.account("edges").spent == 0
        assert one.ask("GET", "healthz", None).status_code == 200


def test_a_configuration_tells_no_password(tmp_path: Path, url: str) -> None:
    path = configured(tmp_path)
    path.write_text(path.read_text().replace('"ledger.db"', f'"{url}"'))
    configuration = read_configuration(path)
    assert PASSWORD.replace(" ", "%20") in os.fspath(configuration.ledger)
    assert "secret" not in f"{configuration!r} {configuration}"
    path.write_text(path.read_text().replace("port = 0", "port = -1"))
    with pytest.raises(UsageError) as refused:
        read_configuration(path)
    assert "secret" not in str(refused.value)
    path.write_text(path.read_text().replace(url, f"{url}/more"))
    with pytest.raises(UsageError, match="the URL of a ledger is") as refused:
        read_configuration(path)
    assert "secret" not in str(refused.value)
