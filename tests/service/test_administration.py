"""What the curator does: people, tokens, budgets, in the page's requests and on the command line."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.test_requests import told
from tests.support.service import COUNT, RunningService, configured, running
from wpinq.service.users import CURATOR, UsersError, UserStore, token_hash


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(configured(tmp_path_factory.mktemp("curating"))) as held:
        yield held


@pytest.fixture(scope="module")
def curator(service: RunningService) -> str:
    return service.admit("curator", curator=True)


@pytest.mark.long
def test_somebody_is_let_in_given_another_token_and_turned_away(service: RunningService, curator: str) -> None:
    given = {"name": "alice", "budgets": {"edges": "1/2"}}
    made = service.ask("POST", "v1/users", curator, given)
    assert made.status_code == 201, made.text
    first = made.json()["token"]
    assert service.ask("GET", "v1/remaining", first).json()[0]["remaining"] == "0.5"
    told(service.ask("POST", "v1/users", curator, given), 409, "UsersError")

    rolled = service.ask("POST", "v1/users/alice/token?roll=true&days=3", curator).json()["token"]
    assert service.ask("GET", "v1/me", first).status_code == service.ask("GET", "v1/me", rolled).status_code == 200
    held = {each["name"]: each for each in service.ask("GET", "v1/users", curator).json()}["alice"]["tokens"]
    assert all(each["expires"] for each in held)
    assert len(held) == 2
    for wrong in ("days=0", "days=40000", "days=soon", "roll=perhaps"):
        told(service.ask("POST", f"v1/users/alice/token?{wrong}", curator), 400, "Malformed")

    second = service.ask("POST", "v1/users/alice/token", curator).json()["token"]
    told(service.ask("GET", "v1/me", rolled), 401, "NoToken")
    told(service.ask("GET", "v1/me", first), 401, "NoToken")
    assert service.ask("GET", "v1/me", second).status_code == 200

    set_to = service.ask("PUT", "v1/users/alice/budgets", curator, {"budgets": {"edges": "2"}}).json()
    assert [each["budget"] for each in set_to] == ["2"]
    listed = {each["name"]: each for each in service.ask("GET", "v1/users", curator).json()}
    assert listed["alice"]["budgets"][0]["budget"] == "2"
    assert listed["alice"]["admitted"]
    assert "token" not in listed["alice"]

    assert service.ask("DELETE", "v1/users/alice", curator).status_code == 204
    told(service.ask("GET", "v1/me", second), 401, "NoToken")
    assert not {each["name"]: each for each in service.ask("GET", "v1/users", curator).json()}["alice"]["admitted"]
    acts = [each for each in service.ask("GET", "v1/events", curator).json() if each["account"] == "alice"]
    assert [each["kind"] for each in acts] == ["admit", "renew", "renew", "remove"]
    assert {each["actor"] for each in acts} == {"curator"}
    for method, path in (("POST", "v1/users/eve/token"), ("DELETE", "v1/users/eve")):
        told(service.ask(method, path, curator), 404, "NoSuchUser")


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    [
        {"name": "no name"},
        {"name": "edges@alice"},
        {"name": "<script>"},
        {"name": "Curator", "budgets": {"edges": "1"}},
        {"name": "mallory", "days": 0, "budgets": {"edges": "1"}},
        {"name": "mallory", "budgets": {"nothing": "1"}},
        {"name": "mallory", "budgets": {"edges@alice": "1"}},
        {"name": "mallory", "budgets": {"edges": "-1"}},
        {"name": "mallory", "role": "curator", "budgets": {"edges": "1"}},
    ],
)
def test_what_cannot_be_given_changes_nothing(service: RunningService, curator: str, given: dict[str, object]) -> None:
    before = service.ask("GET", "v1/users", curator).json(), service.ask("GET", "v1/accounts", curator).json()
    assert service.ask("POST", "v1/users", curator, given).status_code in (400, 409)
    assert before == (
        service.ask("GET", "v1/users", curator).json(),
        service.ask("GET", "v1/accounts", curator).json(),
    )


@pytest.mark.long
def test_budgets_of_sources_are_set_on_record(service: RunningService, curator: str) -> None:
    service.ask("PUT", "v1/accounts", curator, {"budgets": {"edges": "11"}})
    (event,) = [
        each
        for each in service.ask("GET", "v1/events", curator).json()
        if each["kind"] == "set budget" and each["account"] == "edges"
    ]
    assert (event["amount"], event["actor"]) == ("11", "curator")
    told(service.ask("PUT", "v1/accounts", curator, {"budgets": {"nothing": "1"}}), 409, "UsersError")
    told(service.ask("PUT", "v1/accounts", curator, {"budgets": {"edges": "-1"}}), 400, "EpsilonError")


@pytest.mark.long
def test_a_budget_of_0_leaves_nothing_to_spend_and_outlives_a_restart(tmp_path: Path) -> None:
    with running(configured(tmp_path)) as service:
        alice, curator = service.admit("alice", "edges=1"), service.admit("curator", curator=True)
        assert service.release(alice, COUNT.format(name="x", epsilon="0.25")).status_code == 200
        frozen = service.ask("PUT", "v1/users/alice/budgets", curator, {"budgets": {"edges": "0"}}).json()
        assert [(each["budget"], each["remaining"]) for each in frozen] == [("0.25", "0")]
        told(service.release(alice, COUNT.format(name="y", epsilon="0.01")), 409, "BudgetExceeded")
        assert service.release(alice, COUNT.format(name="x", epsilon="0.25")).status_code == 200  # it is paid for
        service.ask("PUT", "v1/users/alice/budgets", curator, {"budgets": {"edges": "1"}})
        service.ask("PUT", "v1/accounts", curator, {"budgets": {"edges": "0"}})
        told(service.release(alice, COUNT.format(name="y", epsilon="0.01")), 409, "SourceExhausted")
        service.stop()
        service.start()
        assert [each["remaining"] for each in service.ask("GET", "v1/accounts", curator).json()] == ["0", "0.75"]


@pytest.mark.long
def test_the_command_line_lets_in_renews_and_turns_away(service: RunningService) -> None:
    added = service.wpinq("add", "carol", "--budget", "edges=1")
    assert added.returncode == 0, added.stderr
    first = added.stdout.split()[-1]
    assert service.ask("GET", "v1/me", first).json() == {"name": "carol", "role": "analyst"}
    renewed = service.wpinq("renew", "carol").stdout.split()[-1]
    told(service.ask("GET", "v1/me", first), 401, "NoToken")
    assert service.ask("GET", "v1/me", renewed).status_code == 200
    rolled = service.wpinq("roll", "carol", "--days", "3").stdout.split()[-1]
    assert [service.ask("GET", "v1/me", token).status_code for token in (first, renewed, rolled)] == [401, 200, 200]
    listed = service.wpinq("list").stdout
    assert re.search(r"^carol, analyst since \S+\n(  token of \S+, until \S+\n){2}", listed, flags=re.M)
    assert not any(token in listed for token in (first, renewed, rolled))
    assert service.wpinq("remove", "carol").returncode == 0
    assert re.search(r"^carol, analyst since \S+, removed$", service.wpinq("list").stdout, flags=re.M)
    told(service.ask("GET", "v1/me", renewed), 401, "NoToken")
    second = service.wpinq("add", "dora", "--curator").stdout.split()[-1]
    assert service.ask("GET", "v1/users", second).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "eve"), "give eve a budget"),
        (("add", "eve", "--budget", "nothing=1"), "there is no account 'nothing'"),
        (("add", "e v e", "--budget", "edges=1"), "is named by"),
        (("add",), "with a name"),
        (("open", "edges"), "there is add, list, remove, renew, roll"),
        (("remove", "nobody"), "no user of this name"),
        (("renew", "curator", "--budget", "edges=1"), "go with add"),
        (("remove", "curator", "--days", "3"), "--days N, from 1 to 36500, goes with add, renew and roll"),
        (("roll", "curator", "--days", "0"), "from 1"),
        (("list", "curator"), "give list, or one of"),
        (("add", "CURATOR", "--curator"), "is a user already"),
        (("--port", "1"), "--port goes with --trial"),
        (("--columns", "a,b"), "--columns goes with --trial"),
        (("add", "x", "--trial"), "--trial takes one file"),
        (("--declare", "source x: int;"), "--declare goes with --trial"),
    ],
)
def test_the_command_line_says_what_is_missing(
    service: RunningService, curator: str, arguments: tuple[str, ...], words: str
) -> None:
    done = service.wpinq(*arguments)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_nobody_is_added_before_there_is_a_ledger(tmp_path: Path) -> None:
    from wpinq.cli.main import main

    assert main(["serve", str(configured(tmp_path)), "add", "alice", "--budget", "edges=1"]) == 2
    assert not (tmp_path / "ledger.db").exists()


def test_a_register_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "users.db"
    with UserStore(path) as register:
        token = register.add("alice")
        assert register.find(token) is not None
        assert register.find(token[:-1]) is None
        assert register.find("") is None
        assert register.find("x" * 10**6) is None
    assert path.stat().st_mode & 0o777 == 0o600
    rows = sqlite3.connect(path).execute("SELECT hash FROM tokens").fetchall()
    assert rows == [(token_hash(token),)]
    path.chmod(0o640)
    with pytest.raises(UsersError, match="chmod 600"):
        UserStore(path)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with pytest.raises(UsersError):
        UserStore(link)


def test_tokens_are_random_and_found_whoever_s_they_are(tmp_path: Path) -> None:
    with UserStore(tmp_path / "users.db") as users:
        tokens = {users.add(f"user{number}"): f"user{number}" for number in range(20)}
        assert len(tokens) == 20
        assert all(len(token) == len("wpinq_") + 43 for token in tokens)  # 32 bytes
        found = {token: users.find(token) for token in tokens}
        assert {token: user and user.name for token, user in found.items()} == tokens
        assert users.find("wpinq_") is None


def test_a_role_is_one_of_two(tmp_path: Path) -> None:
    with UserStore(tmp_path / "users.db") as register:
        register.add("dora", CURATOR)
        with pytest.raises(UsersError):
            register.add("eve", "owner")
        assert [each.name for each in register.all()] == ["dora"]
