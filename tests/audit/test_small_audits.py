"""The audit itself, at a small size: it finds nothing on what is sound, and each part finds what is planted for it.

Noise is not seeded: each test fails by chance with a probability of at most 1e-5.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.audit import __main__ as command, debits, fits, kills, noisy_choices, plans, sessions
from tests.audit.asked import KINDS
from tests.audit.bounds import Asked, asked, audit_bounds
from tests.audit.findings import Part, into_page, markdown
from tests.audit.hours import Allotment
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.plan.operator import REGISTRY
from wpinq.sinks import laplace

pytestmark = pytest.mark.long

FOREVER = Allotment(None)
POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")
ALIKE = {"numbers": 200_000, "listings": 200_000, "recipes": 200_000, "choices": 160_000}
"""As many draws as a control at an epsilon of 2 takes to be caught."""


def some(kind: str, *names: str) -> list[Asked]:
    return [one for one in asked((kind,), Fraction(2)) if one[1].name in names]


FEW = {
    "numbers": some("numbers", "an absent key", "geometric, absent"),
    "listings": some("listings", "a listing"),
    "recipes": some("recipes", "degree ccdf"),
    "choices": some("choices", "most common"),
}


# --- what is lost -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FEW)
def test_sound_noise_is_within_its_bill_and_too_little_is_caught(kind: str) -> None:
    part = audit_bounds(ALIKE[kind], FOREVER, FEW[kind])
    assert part.faults == []
    assert all(bound > 0.8 * exact for _, _, exact, bound, *_ in part.rows)


@pytest.mark.parametrize("kind", FEW)
def test_a_release_with_a_tenth_too_little_noise_is_a_fault(kind: str) -> None:
    part = audit_bounds(ALIKE[kind], FOREVER, FEW[kind][:1], noise=0.9)
    assert any("is lost, and" in fault and "billed" in fault for fault in part.faults)


def test_draws_of_another_law_than_that_of_ladders_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [one for one in asked(("draws",)) if one[1].name == "a count of triangles"]
    part = audit_bounds(3000, FOREVER, few)
    assert [fault for fault in part.faults if "not caught" not in fault] == []
    honest = noisy_choices.draw_count
    monkeypatch.setattr(noisy_choices, "draw_count", lambda ladder, scale, random: honest(ladder, 1.5 * scale, random))
    faults = audit_bounds(3000, FOREVER, few).faults
    assert sum("the noise has not its law" in fault for fault in faults) == 1


def test_noise_of_another_law_is_a_fault_of_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = laplace.add_laplace
    monkeypatch.setattr(laplace, "add_laplace", lambda weights, scale, random: honest(weights, 1.02 * scale, random))
    part = audit_bounds(200_000, FOREVER, FEW["numbers"][:1])
    assert any("the noise has not its law" in fault for fault in part.faults)


def test_every_pair_is_of_a_whole_bound_where_it_says_so() -> None:
    """Each pair once, at its epsilon: what is billed, and the law on the pair."""
    assert set(KINDS) == {"numbers", "listings", "recipes", "choices", "draws"}
    part = audit_bounds(2, FOREVER)
    # of two draws a side no control is caught, and how well they fit is no probability
    told = [fault for fault in part.faults if "not caught" not in fault and "has not its law" not in fault]
    assert told == []
    assert len({row[0] for row in part.rows}) == len(part.rows) > 33


def test_sessions_draw_the_law_at_the_bill() -> None:
    few = [*FEW["numbers"], *FEW["choices"]]
    part = sessions.audit_sessions(40, FOREVER, few)
    assert part.faults == []
    assert [row[:3] for row in part.rows] == [(engine, 3, 240) for engine in ("reference", "duckdb")]


def test_a_session_with_less_noise_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = laplace.add_laplace
    monkeypatch.setattr(laplace, "add_laplace", lambda weights, scale, random: honest(weights, 0.5 * scale, random))
    part = sessions.audit_sessions(300, FOREVER, FEW["numbers"][:1], ("reference",))
    assert any("not the law" in fault for fault in part.faults)


def test_a_session_that_charges_less_than_the_bill_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Ledger.debit

    def lowered(ledger: Ledger, measurements: Mapping[str, str], price: Any, *more: Any) -> frozenset[str]:
        def half(*asked: Any) -> Any:
            pricing = price(*asked)
            return replace(pricing, charges={name: charge // 2 for name, charge in pricing.charges.items()})

        return honest(ledger, measurements, half, *more)

    monkeypatch.setattr(Ledger, "debit", lowered)
    part = sessions.audit_sessions(2, FOREVER, FEW["numbers"][:1], ("reference",))
    assert any("what was spent is not the bill" in fault for fault in part.faults)


# --- the law of noise -------------------------------------------------------------------------------------------------


def test_all_noise_fits_its_law() -> None:
    part = fits.audit_fits(20_000, FOREVER)
    assert part.faults == []
    assert len(part.rows) == len(fits.KINDS)


def test_a_law_that_is_off_by_a_tenth_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = fits.with_laplace_noise
    monkeypatch.setattr(fits, "with_laplace_noise", lambda values, scale: honest(values, 0.9 * scale))
    assert any("Laplace noise of scale 1 on 0: scale" in fault for fault in fits.audit_fits(20_000, FOREVER).faults)


# --- plans ------------------------------------------------------------------------------------------------------------


def test_floats_keep_their_bound_on_both_engines() -> None:
    part = plans.audit_plans(1, {"reference": 60, "duckdb": 20}, FOREVER)
    assert part.faults == []
    assert (part.ran["plans on reference"], part.ran["plans on duckdb"]) == (60, 20)
    assert int(part.ran["of these rounded at all on reference"]) > 5


SEEDS = {"reference": 5, "duckdb": 6}
"""Plans that nothing is certified of before."""


@pytest.mark.parametrize("engine", SEEDS)
def test_an_operator_that_says_that_it_rounds_nothing_is_a_fault(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for operator in plans.OPERATORS:
        monkeypatch.setattr(REGISTRY[operator], "rounding_units", lambda self: Fraction(0))
    part = plans.audit_plans(SEEDS[engine], {engine: 40}, FOREVER)
    assert any("is off by" in fault and f"seed {SEEDS[engine]}, chunk 0, plan" in fault for fault in part.faults)


def test_a_fault_is_there_again_with_its_seed() -> None:
    first, again = (list(plans.plans("1 3", 6)) for _ in range(2))
    assert [(case.plan.digest, case.data) for case in first] == [(case.plan.digest, case.data) for case in again]


# --- kills ------------------------------------------------------------------------------------------------------------


@POSIX
def test_kills_leave_what_was_told(tmp_path: Path) -> None:
    part = kills.audit_kills(1, 12, FOREVER, tmp_path)
    assert part.faults == []
    assert part.ran["kills"] == 12
    assert int(part.ran["answers told"]) > 20


@POSIX
def test_a_debit_after_the_look_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    owed: list[tuple[wp.Measurement, str]] = []

    def looking(session: wp.Session, measurement: wp.Measurement, label: str) -> wp.Answers:
        """An answer from elsewhere, paid for when three more have been told."""
        if len(owed) == 3:
            unpaid, said = owed.pop(0)
            session.release(unpaid, label=said)
        owed.append((measurement, label))
        with wp.Session(engine="reference") as elsewhere:
            elsewhere.protect(kills.NUMBERS, kills.DATA, budget=1)
            return elsewhere.release(measurement)

    monkeypatch.setattr(kills, "released", looking)
    faults = kills.audit_kills(1, 8, FOREVER, tmp_path).faults
    assert any("told without a debit" in fault for fault in faults)
    assert any("answered twice, and not the same" in fault for fault in faults)
    assert all("seed 1, ledger" in fault for fault in faults)


# --- debits -----------------------------------------------------------------------------------------------------------


@POSIX
def test_processes_debit_together(tmp_path: Path) -> None:
    part = debits.audit_debits(1, 400, FOREVER, tmp_path)
    assert part.faults == []
    assert part.ran["debits tried"] == 400
    assert 0 < int(part.ran["of these refused, for the budget was spent"]) < 100


@POSIX
def test_a_debit_that_is_said_and_not_made_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    honest, numbers = Ledger.debit, count()

    def forgetting(ledger: Ledger, measurements: Mapping[str, str], *more: Any) -> frozenset[str]:
        if next(numbers) % 10 == 9:
            return frozenset(measurements)
        return honest(ledger, measurements, *more)

    monkeypatch.setattr(Ledger, "debit", forgetting)
    faults = debits.audit_debits(1, 160, FOREVER, tmp_path).faults
    assert any("were accepted" in fault for fault in faults)


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_report_and_says_whether_all_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ["--only", "plans", "--plans", "20", "--seed", "3", "--folder", str(tmp_path / "report")]
    assert command.main(small) == 0
    said = capsys.readouterr().out
    assert "plans on duckdb: 20" in said
    assert "seed 3" in said
    report = (tmp_path / "report" / "audit.md").read_text()
    assert f"# Audit of wpinq {wp.__version__}" in report
    assert "Seed 3" in report and "plans on reference: 20" in report and "no faults" in report
    (held,) = json.loads((tmp_path / "report" / "audit.json").read_text())["parts"]
    assert held["name"] == "plans" and held["ran"]["plans on reference"] == 20
    for operator in plans.OPERATORS:
        monkeypatch.setattr(REGISTRY[operator], "rounding_units", lambda self: Fraction(0))
    assert command.main([*small, "--seed", "4"]) == 1  # what is certified of plans is remembered
    assert "FAULT: plans: seed 4, chunk 0, plan" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="--only takes"):
        command.main(["--only", "nothing"])


def test_time_that_is_over_ends_a_part_early() -> None:
    part = plans.audit_plans(1, {"reference": 10**9}, Allotment(0.0))
    assert part.ran["plans on reference"] == plans.CHUNK
    bounded = audit_bounds(10**9, Allotment(0.0), FEW["choices"])
    assert bounded.ran["fewest draws a side"] == 2000
    assert bounded.ran["controls that were not caught for want of draws"] == 1
    assert bounded.faults == []


def test_a_page_keeps_the_figures_of_the_last_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- kills -->\nold\n<!-- end of kills -->\nafter\n")
    for killed in (5, 7):
        into_page(Part("kills", "About.", ran={"kills": killed}), 1, page)
    assert "old" not in page.read_text() and "kills: 5" not in page.read_text()
    assert page.read_text().startswith("before\n<!-- kills -->\nwpinq ")
    assert page.read_text().endswith("no faults.\n\n<!-- end of kills -->\nafter\n")
    with pytest.raises(SystemExit, match="no place for debits"):
        into_page(Part("debits", "About."), 1, page)


def test_faults_stand_at_the_head_of_the_report() -> None:
    part = Part("kills", "About.", faults=["what it is"], ran={"kills": 1000}, processor=1.5)
    assert "1 faults.\n\n- **kills**: what it is\n" in markdown([part], 1)
    assert "Ran kills: 1,000; 2 s" in markdown([part], 1)
