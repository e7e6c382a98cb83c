"""What is remembered of a measurement that is released again: nothing that could be another the next time."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

import wpinq as wp
from wpinq.errors import PlanError, SessionError
from wpinq.kernel import orders

NUMBERS = wp.source("numbers", int)


def fresh(session: wp.Session, measurement: wp.Measurement) -> wp.Answers:
    answers = session.release(measurement, fresh=True)
    assert isinstance(answers, wp.Answers)
    return answers


def test_a_measurement_is_looked_at_once_and_forgotten_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    check = orders.check_domain
    monkeypatch.setattr(orders, "check_domain", lambda *given, **more: looked.append(given) or check(*given, **more))
    measurement, before = NUMBERS.noisy_count(0.5, over=range(3)), len(orders._known)
    with wp.Session() as session:
        session.protect(NUMBERS, [1, 2, 2], budget=10)
        first, second = (fresh(session, measurement) for _ in range(2))
        assert first.keys == second.keys == (0, 1, 2)
        assert list(first.values) != list(second.values)
        assert len(looked) == 1
        assert len(orders._known) == before + 1
        fresh(session, replace(measurement))
        assert len(looked) == 2
        del measurement, first, second
        gc.collect()
        assert len(orders._known) == before


def test_keys_that_could_change_are_looked_at_every_time() -> None:
    keys = [1, 2]
    by_hand = replace(NUMBERS.noisy_count(0.5, over=[1]), domain=keys)  # type: ignore[arg-type]
    with wp.Session() as session:
        session.protect(NUMBERS, [1, 2, 2], budget=10)
        assert fresh(session, by_hand).keys == (1, 2)
        keys[:] = [True, 3]
        with pytest.raises(PlanError, match="cannot be released"):
            fresh(session, by_hand)
        keys[:] = [3]
        assert fresh(session, by_hand).keys == (3,)
        assert session.spent("numbers") == 1


def test_a_known_measurement_is_refused_where_its_sources_are_others() -> None:
    measurement = NUMBERS.noisy_count(0.5, over=[1])
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget=1)
        fresh(session, measurement)
    with wp.Session() as session:
        with pytest.raises(SessionError, match="not protected in this session"):
            session.release(measurement)
        session.protect(wp.source("numbers", int, cap=5), [1], budget=1)
        with pytest.raises(SessionError, match="another declaration"):
            session.release(measurement)
        assert session.spent("numbers") == 0
