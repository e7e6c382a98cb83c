"""Tokens that end: by themselves, an hour after another took their place, or when they are taken away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from wpinq.service.users import CURATOR, UsersError, UserStore

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2025, 1, 31, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def users(tmp_path: Path, clock: Clock) -> Iterator[UserStore]:
    with UserStore(tmp_path / "users.db", clock) as made:
        yield made


def who(users: UserStore, *tokens: str) -> list[str | None]:
    """The names that tokens stand for."""
    return [None if (user := users.find(token)) is None else user.name for token in tokens]


def test_a_token_expires_after_its_days(users: UserStore, clock: Clock) -> None:
    brief, lasting = users.add("alice", days=2), users.add("bob")
    clock.now += timedelta(days=2) - SECOND
    assert who(users, brief, lasting) == ["alice", "bob"]
    clock.now += SECOND
    assert who(users, brief, lasting) == [None, "bob"]
    assert who(users, users.renew("alice", days=1)) == ["alice"]
    clock.now += timedelta(days=36_000)
    assert who(users, lasting) == ["bob"]


def test_a_rolled_token_is_valid_for_an_hour_beside_the_new_one(users: UserStore, clock: Clock) -> None:
    first = users.add("alice")
    second = users.renew("alice", roll=True)
    assert who(users, first, second) == ["alice", "alice"]
    clock.now += HOUR - SECOND
    assert who(users, first, second) == ["alice", "alice"]
    clock.now += SECOND
    assert who(users, first, second) == [None, "alice"]


def test_two_tokens_are_valid_at_most(users: UserStore, clock: Clock) -> None:
    tokens = [users.add("alice"), *(users.renew("alice", roll=True) for _ in range(3))]
    assert who(users, *tokens) == [None, None, "alice", "alice"]
    assert len(users.all()[0].tokens) == 2


def test_a_roll_does_not_prolong_a_token(users: UserStore, clock: Clock) -> None:
    first = users.add("alice", days=1)
    clock.now += timedelta(days=1) - SECOND
    second = users.renew("alice", days=1, roll=True)
    assert who(users, first, second) == ["alice", "alice"]
    clock.now += SECOND
    assert who(users, first, second) == [None, "alice"]


def test_a_renewed_or_removed_token_ends_at_once_and_those_of_others_do_not(users: UserStore) -> None:
    first, other = users.add("alice"), users.add("bob", CURATOR)
    rolled = users.renew("alice", roll=True)
    second = users.renew("alice")
    assert who(users, first, rolled, second, other) == [None, None, "alice", "bob"]
    users.remove("alice")
    assert who(users, second, other) == [None, "bob"]
    assert users.named("alice") is None
    assert [(each.name, each.admitted) for each in users.all()] == [("alice", False), ("bob", True)]
    assert who(users, users.renew("alice", roll=True)) == ["alice"]


def test_tokens_are_listed_by_their_times_and_are_not_shown(users: UserStore, clock: Clock) -> None:
    token = users.add("alice", days=1)
    clock.now += HOUR
    users.renew("alice", roll=True)
    (alice,) = users.all()
    assert [(each.made, each.expires) for each in alice.tokens] == [
        ("2025-01-31T12:00:00+00:00", "2025-01-31T14:00:00+00:00"),
        ("2025-01-31T13:00:00+00:00", None),
    ]
    assert token not in repr(alice)
    assert token.removeprefix("wpinq_")[:6] not in repr(alice)


@pytest.mark.parametrize("other", ["Alice", "ALICE", "alice"])
def test_names_that_differ_by_case_alone_are_refused(users: UserStore, other: str) -> None:
    """One is easily taken for the other, in the log, in the ledger and by who gives out budgets."""
    users.add("alice")
    for _ in range(2):
        with pytest.raises(UsersError, match="is a user already"):
            users.add(other)
        users.remove("alice")
    assert [each.name for each in users.all()] == ["alice"]
    if other != "alice":
        for act in (users.renew, users.remove):
            with pytest.raises(UsersError, match="no user of this name"):
                act(other)
        assert users.named(other) is None
