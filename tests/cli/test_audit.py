"""`wpinq audit`: sound programs pass, noise or a sensitivity that is too small is found, and no data are opened."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.support.sink_cases import halved
from tests.support.sinks import CASES
from wpinq.cli import audit
from wpinq.cli.main import main
from wpinq.kernel.session import Session
from wpinq.sinks import choose, graph_counts, laplace
from wpinq.sinks.sink import SINKS, Sink

SLACK = 1e-5
"""By which noise is more than the bill asks, for the rounding of engines."""

VISITS = 'source visits(page: category("a", "b"), age: int); '
COUNT = VISITS + "var n = visits.Select(v => v.page).NoisyCount(2);"
LISTED = VISITS + "var n = visits.Select(v => v.age).NoisyCountAbove(2, over: range(0, 1000), above: 2);"
MEDIAN = VISITS + "var n = visits.Select(v => v.age).Median(2, over: [1, 2, 3]);"
GROUPS = VISITS + 'var n = visits.By("page").Agg(2, q: Median("age", [1, 2]));'
DEGREE = "source e(src: int, dst: int) with facts = [unit_weights]; var n = e.LargestDegree(2);"


def audited(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, draws: int
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of an audit, and its findings."""
    program = folder / "program.wpq"
    program.write_text(text)
    code = main(["audit", str(program), "--draws", str(draws), "--json"])
    return code, json.loads(capsys.readouterr().out)["findings"]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short search."""
    monkeypatch.setattr(audit, "TRIES", 120)


def test_a_sound_program_passes_and_comes_near_its_bill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, (found,) = audited(tmp_path, capsys, COUNT, 20_000)
    assert code == 0
    assert (found["billed"], found["violation"]) == ("2", False)
    assert found["exact"] == pytest.approx(2, rel=SLACK)
    assert 1.7 < found["bound"] <= 2


def less_noise(module: Any, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A mutation: nine tenths of the scale that a mechanism was asked for."""

    def mutate(monkeypatch: pytest.MonkeyPatch) -> None:
        honest = getattr(module, name)

        def drawn(values: Any, scale: Any, *more: Any) -> Any:
            return honest(values, scale * (Fraction(9, 10) if isinstance(scale, Fraction) else 0.9), *more)

        monkeypatch.setattr(module, name, drawn)

    return mutate


@pytest.mark.parametrize(
    ("text", "mutate", "draws"),
    [
        pytest.param(COUNT, less_noise(laplace, "add_laplace"), 100_000, id="numbers"),
        pytest.param(DEGREE, less_noise(graph_counts, "draw_count"), 16_000, id="a ladder", marks=pytest.mark.long),
        pytest.param(MEDIAN, less_noise(choose, "select"), 60_000, id="a choice", marks=pytest.mark.long),
    ],
)
def test_a_tenth_too_little_noise_is_found(
    text: str,
    mutate: Callable[[pytest.MonkeyPatch], None],
    draws: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch)
    code, (found,) = audited(tmp_path, capsys, text, draws)
    assert code == 9
    assert found["exact"] <= 2 < found["bound"]


@pytest.mark.parametrize(("text", "sink"), [(COUNT, "NoisyCount"), (MEDIAN, "Choose")])
def test_a_sensitivity_of_half_is_found_by_the_search_alone(
    text: str, sink: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SINKS[sink], "sensitivity", halved(SINKS[sink]))
    code, (found,) = audited(tmp_path, capsys, text, 100)
    assert code == 9
    assert found["exact"] == pytest.approx(4, rel=SLACK)


def test_a_stability_of_half_is_found_by_the_search_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Sink.stability

    def lowered(sink: Sink, plan: Any) -> Mapping[str, Fraction]:
        return {name: moved / 2 for name, moved in honest(sink, plan).items()}

    monkeypatch.setattr(Sink, "stability", lowered)
    paired = VISITS + "var n = visits.Concat(visits).Select(v => v.page).NoisyCount(1);"
    code, (found,) = audited(tmp_path, capsys, paired, 100)
    assert code == 9
    assert found["billed"] == "1"
    assert found["exact"] == pytest.approx(2, rel=SLACK)


ONE_CANDIDATE = "Quantile(0.1, 1/3, over: [0])"
TEXTS = [(name, text, "edges" in case.kinds) for name, case in CASES.items() for text in case.texts]


@pytest.mark.parametrize(("name", "text", "graph"), [*TEXTS, ("ChooseInGroups", GROUPS, False)])
def test_every_sink_is_audited(
    name: str,
    text: str,
    graph: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "TRIES", 30)
    source = "source s(a: int, b: int) with facts = [unit_weights];" if graph else "source s: int;"
    whole = text if text.startswith("source") else f"{source} var n = s.{text};"
    code, (found,) = audited(tmp_path, capsys, whole, 100)
    assert code == 0
    if text == ONE_CANDIDATE:
        assert found["reason"] == "no made neighbours move it"
        return
    assert found["draws"] == 100
    assert 0 < found["exact"] <= float(Fraction(found["billed"])) * (1 + 1e-9)


def test_every_sink_has_a_text() -> None:
    assert {name for name, *_ in TEXTS} | {"ChooseInGroups"} == SINKS.keys()


PEOPLE = """
source people(page: str, spent: decimal(2)?, day: date) with person = "who", at_most = 3;
source pairs(src: str, dst: str) with facts = [symmetric, unit_weights], unit_weight = 2;
var days = people.Select(p => year(p.day)).NoisyCount(1, over: [1970]);
var ends = pairs.Select(p => p.src).NoisyCount(1, over: ["a", "b", "c"]);
"""


def test_a_unit_may_be_a_person_or_a_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = audited(tmp_path, capsys, PEOPLE, 200)
    assert code == 0
    assert [each["billed"] for each in found] == ["3", "2"]
    assert [each["exact"] for each in found] == pytest.approx([3, 2], rel=SLACK)


def test_a_measurement_that_nothing_moves_is_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.wpq").write_text(
        VISITS + "var n = visits.Where(v => 1 > 2).Select(v => v.age).NoisyCount(1, over: [1]);"
    )
    assert main(["audit", str(tmp_path / "p.wpq"), "--draws", "100"]) == 0
    assert "n: NoisyCount(1): billed 1 to visits; not audited: no made neighbours move it" in capsys.readouterr().out


OPENED: list[str] = []
sys.addaudithook(lambda event, found: OPENED.append(str(found[0])) if event in ("open", "sqlite3.connect") else None)


def test_neither_data_nor_ledgers_are_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any, **options: Any) -> None:
        raise AssertionError("an audit opened a session")

    monkeypatch.setattr(Session, "__init__", refuse)
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text("page,age\na,1\n")
    OPENED.clear()
    assert audited(tmp_path, capsys, COUNT, 100)[0] == 0
    assert str(tmp_path / "program.wpq") in OPENED
    assert not [path for path in OPENED if path.endswith((".csv", ".db", ".parquet", ":memory:"))]


def test_made_data_depend_on_the_seed_alone() -> None:
    from wpinq.language import parse

    (asked,) = parse(COUNT).measurements.values()
    one, again, other = (audit._Maker("n", asked, "visits", seed).worst(20) for seed in ("1", "1", "2"))
    assert one == again != other


@pytest.mark.parametrize("wrong", [["--minutes", "0"], ["--draws", "5"]])
def test_a_wrong_option_is_refused(wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.wpq").write_text(COUNT)
    assert main(["audit", str(tmp_path / "p.wpq"), *wrong]) == 2
    assert "--minutes is more than 0, and --draws at least 100" in capsys.readouterr().err


def test_minutes_decide_on_the_draws_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.wpq").write_text(COUNT)
    assert main(["audit", str(tmp_path / "p.wpq"), "--minutes", "0.001"]) == 0
    assert "2 by exact scores" in capsys.readouterr().out
