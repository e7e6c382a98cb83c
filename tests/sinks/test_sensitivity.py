"""The declared sensitivity of every sink against exact scores on random neighbouring data."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.sink_cases import ROUNDING, halved
from tests.support.sinks import CASES
from wpinq.sinks.sink import SINKS

TRIALS = 40
EACH = [(name, kind) for name, case in CASES.items() for kind in case.kinds]


def test_every_sink_has_a_case() -> None:
    assert CASES.keys() == SINKS.keys(), "a sink has no case under tests/support/sinks, or a case no sink"
    assert all(case.loose for case in CASES.values() if case.reached < Fraction(9, 10))


@pytest.mark.parametrize(("name", "kind"), EACH)
def test_scores_move_no_further_than_is_billed_and_nearly_as_far(name: str, kind: str) -> None:
    shares = [*CASES[name].shares(kind, TRIALS)]
    assert max(shares) <= 1 + ROUNDING
    assert max(shares) >= CASES[name].reached


@pytest.mark.parametrize(("name", "kind"), EACH)
def test_half_of_the_sensitivity_is_noticed(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SINKS[name], "sensitivity", halved(SINKS[name]))
    assert any(share > 1 + ROUNDING for share in CASES[name].shares(kind, TRIALS))
