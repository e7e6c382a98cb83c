"""The history in pages: each has so many events at most, and together they are all of them in order."""

from __future__ import annotations

import pytest

from tests.support.analysts import each, opened
from wpinq.measure.statement import Event


@pytest.mark.parametrize("analyst", [None, "alice", "bob"])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_pages_are_the_whole_history(analyst: str | None, size: int) -> None:
    with opened() as ledger:
        for number, who in enumerate(("alice", "bob", "alice", "alice", "bob")):
            ledger.debit({f"digest {number}": "degrees"}, each(edges=1), analyst=who)
            ledger.store_answers(f"digest {number}", {b"key": 1.5})
        whole, found, after = ledger.events(analyst), list[Event](), 0
        while page := ledger.events(analyst, after, size):
            assert len(page) <= size
            found += page
            after = page[-1].sequence
        assert tuple(found) == whole
        assert len(whole) == {None: 13, "alice": 3, "bob": 2}[analyst]
        assert "answers" not in {event.kind for event in whole}
        assert ledger.events(analyst, 2**62 - 1, size) == ()
