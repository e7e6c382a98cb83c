"""What was paid for when bills counted paths and choices had twice their noise is answered from the ledger, free."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.session.former.releases import AGES, BUDGET, DATA, PAIRS, measurements
from wpinq.kernel import noisy_evaluation
from wpinq.kernel.ledger.ledger import Ledger, Pricing
from wpinq.kernel.prepare import Order, prepare
from wpinq.plan.properties import plan_properties

FOLDER = Path(__file__).parent / "former"
WRITTEN: dict[str, Any] = json.loads((FOLDER / "released.json").read_text())
NAMES = list(WRITTEN["released"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(FOLDER / "ledger.sqlite", tmp_path))


@pytest.fixture
def session(path: Path) -> Iterator[wp.Session]:
    with opened(path) as session:
        yield session


def opened(path: Path, version: str = "1") -> wp.Session:
    session = wp.Session(path)
    for source in (AGES, PAIRS):
        session.protect(source, DATA[source.plan.operator.source], budget=BUDGET, version=version)
    return session


def spent(session: wp.Session) -> dict[str, str]:
    return {name: str(session.spent(name)) for name in DATA}


def answered(session: wp.Session, name: str, keys: list[Any] | None = None) -> wp.Answers:
    released = session.release(measurements()[name])
    return released if isinstance(released, wp.Answers) else released.at(keys or [0])


@pytest.mark.parametrize("name", NAMES)
def test_a_former_release_is_answered_for_nothing(session: wp.Session, name: str) -> None:
    answers = answered(session, name)
    former = WRITTEN["released"][name]
    assert (list(answers.values), answers.scale) == (former["values"], former["scale"])
    assert spent(session) == WRITTEN["spent"]


def test_former_releases_are_answered_together(session: wp.Session) -> None:
    asked = measurements()
    batch = [asked[name] for name in NAMES]
    for name, released in zip(NAMES, session.release(batch), strict=True):
        if isinstance(released, wp.Answers):
            assert list(released.values) == WRITTEN["released"][name]["values"]
    assert spent(session) == WRITTEN["spent"]


def test_the_releases_are_of_plans_whose_bill_or_noise_has_changed(path: Path) -> None:
    # Otherwise they would be found by their present digests, and these tests would show nothing.
    with opened(path) as session, Ledger(path) as ledger:
        orders = {name: prepare(asked, session._protected, False) for name, asked in measurements().items()}
        found = ledger.paid(order.digest for order in orders.values())
    assert {name for name, order in orders.items() if order.digest not in found} == {
        "a count that moves by half",
        "a count that moves by half, key by key",
        "a choice of a part",
        "the most common",
        "the most common of what moves by half",
        "a quantile",
        "a median",
    }
    pairs = plan_properties(measurements()["a count of pairs"].plan)
    assert pairs.stability["pairs"] < pairs.uses["pairs"]


def test_a_new_key_of_a_former_release_is_drawn_at_its_scale(
    session: wp.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[float] = []
    noisy = noisy_evaluation.noisy
    monkeypatch.setattr(
        noisy_evaluation, "noisy", lambda order, *rest: drawn.append(order.scale) or noisy(order, *rest)
    )
    name = "a count that moves by half, key by key"
    answers = answered(session, name, [0, 1])
    former = WRITTEN["released"][name]
    assert [answers.values[0]] == former["values"]
    assert drawn == [answers.scale] == [former["scale"]]
    assert list(answered(session, name, [1, 0]).values) == list(answers.values)[::-1]
    assert spent(session) == WRITTEN["spent"]


@pytest.mark.parametrize("name", [name for name in NAMES if "part" not in name])  # another part may have paid for one
def test_fresh_noise_or_other_data_are_paid_for_and_released_anew(path: Path, name: str) -> None:
    asked = measurements()[name]
    with opened(path) as session:
        session.release(asked, fresh=True)
        assert spent(session) != WRITTEN["spent"]
    with opened(path, version="2") as session:
        before = spent(session)
        session.release(asked)
        assert spent(session) != before
        after = spent(session)
        session.release(asked)
        assert spent(session) == after


def test_a_part_owes_what_it_asks_beyond_what_was_paid(session: wp.Session) -> None:
    before = session.spent("ages")
    part = AGES.partition(lambda age: age // 10, [2, 3])[2].select(lambda age: age % 10)
    session.release(part.noisy_count("0.4", over=[3]))  # .9 of this part, and the other has paid 1
    assert session.spent("ages") == before
    session.release(part.noisy_count("0.3", over=[3]))
    assert session.spent("ages") == before + Fraction("0.2")


def test_a_former_choice_that_was_paid_for_and_never_made_is_made_now_at_its_scale(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales: list[float] = []

    def chosen(order: Order, scores: list[float]) -> int:
        scales.append(order.scale)
        return scores.index(max(scores))

    monkeypatch.setattr(noisy_evaluation, "chosen", chosen)
    asked = AGES.quantile(epsilon=Fraction(1, 4), q="0.75", candidates=range(20, 80, 5))
    with opened(path) as session:
        order = prepare(asked, session._protected, False)
        digest, scale = order.former[0]
        with Ledger(path) as ledger:
            ledger.debit({digest: asked.description}, lambda new, parts_of: Pricing({"ages": 1}, {}))
        before = spent(session)
        answers = session.release(asked)
        assert scales == [scale]
        assert scale == pytest.approx(8) and order.scale == pytest.approx(6)
        assert list(session.release(asked).values) == list(answers.values)
        assert len(scales) == 1
        assert spent(session) == before


def test_a_choice_of_a_scale_that_opendp_certified_is_answered_for_nothing(path: Path) -> None:
    asked = AGES.most_common("0.1", [23, 31, 44])
    with opened(path) as session, Ledger(path) as ledger:
        order = prepare(asked, session._protected, False)
        assert order.scale == 10 or order.scale == pytest.approx(10, rel=1e-6)
        raised = math.nextafter(math.nextafter(order.scale, math.inf), math.inf)  # as OpenDP had it for 0.1
        (digest,) = {digest for digest, scale in order.former if scale == raised}
        ledger.debit({digest: asked.description}, lambda new, parts_of: Pricing({"ages": 1}, {}))
        ledger.store_answers(digest, {b"choice": 2.0})
        before = spent(session)
        assert session.release(asked).value == 44
        assert spent(session) == before
