"""`wpinq statement`: an allow-list of fields, which shows no constant and no person by itself."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import wpinq as wp
from tests.support.forging import without_triggers
from wpinq.cli.main import main
from wpinq.cli.statement import OPTIONAL, statement
from wpinq.kernel.ledger import chain
from wpinq.kernel.ledger.chain import Entry
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.sinks.sink import SINKS

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("statement.json")
PEOPLE = wp.source("people", town=str, age=int, unit="one <b>row</b>", facts=["unit_weights"])
ROWS = [("York", 30), ("Hull", 40), ("York", 50)]
SECRET, NUMBER = "zzsecret", 7654321
VIEWS = wp.series(
    "views",
    {"page": str, "day": datetime.date},
    every="day",
    on="day",
    start="2026-01-01",
    person="user",
    at_most=2,
    budget_each=2,
)


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of one day, a minute apart."""
    minutes = iter(range(10**6))
    start = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    clock = SimpleNamespace(now=lambda zone: start + datetime.timedelta(minutes=next(minutes)))
    monkeypatch.setattr(chain, "datetime", SimpleNamespace(datetime=clock, UTC=datetime.UTC))


def secrets() -> dict[str, Any]:
    """Measurements whose constants an analyst typed, in every place where one can stand."""
    towns = PEOPLE.select(lambda p: p.town)
    marked = PEOPLE.where(lambda p: (p.town == SECRET) & (p.age != NUMBER))
    return {
        SECRET: marked.select(lambda p: p.town).noisy_count(1, over=["York", SECRET]),
        "shave": towns.shave(0.7654321).select(lambda p: p.index).noisy_count(1, over=[NUMBER]),
        "parts": towns.partition(lambda t: t, [SECRET, "York"])[SECRET].noisy_count(1, over=[SECRET]),
        "names": PEOPLE.select(lambda p: wp.functions.record(**{SECRET: p.age})).noisy_count(1),
        "sum": PEOPLE.noisy_sum(1, lambda p: p.age, 0, NUMBER),
        "mean": PEOPLE.noisy_average(1, lambda p: p.age, 0, NUMBER),
        "quantile": PEOPLE.select(lambda p: p.age).quantile(epsilon=1, q="0.7654321", candidates=[1, NUMBER]),
        "common": towns.most_common(1, ["York", SECRET]),
        "above": towns.noisy_count_above(1, [SECRET, "York"], above=float(NUMBER)),
        "table": PEOPLE.by("town", keys=[SECRET]).agg(age=wp.median("age", range(NUMBER, NUMBER + 3)), epsilon=1),
    }


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.db"
    with wp.Session(path) as session:
        session.protect(PEOPLE, ROWS, budget=90, version="1")
        ages = PEOPLE.where(lambda p: p.age > 18).select(lambda p: p.town)
        session.release(ages.noisy_count("0.5", over=["York", "Hull"]), label="<script>one</script>")
        pairs = PEOPLE.join(PEOPLE, lambda p: p.town, lambda p: p.town)
        session.release([pairs.noisy_count(1), PEOPLE.geometric_count(1, over=ROWS[:1]), PEOPLE.noisy_count(1)])
    return path


def stated(capsys: pytest.CaptureFixture[str], path: object, *options: str) -> Any:
    assert main(["statement", str(path), *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_statement_of_a_ledger_is_as_recorded(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = stated(capsys, ledger, "--data-version", "people=2026-01")
    with Ledger(ledger, create=False) as opened:
        assert made["administrative"].pop("head") == opened.head()
    assert made["administrative"].pop("wpinq") == wp.__version__
    assert made == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_a_field_that_ledgers_get_later_is_in_no_statement(ledger: Path) -> None:
    class Later(Ledger):
        def entries(self) -> Iterator[Entry]:
            for each in super().entries():
                yield dataclasses.replace(each, content=each.content | {"later": SECRET})

        def plans(self, analyst: str | None = None) -> dict[int, dict[str, str]]:
            return {
                entry: {digest: json.dumps(json.loads(plan) | {"later": SECRET}) for digest, plan in found.items()}
                for entry, found in super().plans(analyst).items()
            }

    with Ledger(ledger) as now, Later(ledger) as later:
        assert SECRET in str([*later.entries()]) and SECRET in str(later.plans())
        made = statement(later, [*OPTIONAL], {})
        assert made == statement(now, [*OPTIONAL], {})
    assert SECRET not in json.dumps(made)


def test_constants_are_in_no_statement_without_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "l.db", tmp_path / "page.html"
    with wp.Session(path) as session:
        session.protect(PEOPLE, ROWS, budget=90, version="1")
        for name, measurement in secrets().items():
            session.release({name: measurement}, label=f"{SECRET} {NUMBER}")
    traces = re.compile(f"{SECRET}|{NUMBER}|{float(NUMBER):.2e}|0[.]7654|{float(NUMBER):.3g}")
    shown = json.dumps(stated(capsys, path, "--page", str(page)))
    assert traces.findall(shown) == traces.findall(page.read_text()) == []
    assert '"Where (age, town) of 1"' in shown.replace("2: ", "")
    found = traces.findall(json.dumps(stated(capsys, path, "--include", "constants")))
    assert {SECRET, str(NUMBER)} <= {*found}


def test_the_page_escapes_labels_and_units(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = ledger.with_name("page.html")
    stated(capsys, ledger, "--page", str(page))
    assert "script" not in page.read_text()
    stated(capsys, ledger, "--page", str(page), "--include", "labels")
    shown = page.read_text()
    assert "&lt;script&gt;one" in shown and "one &lt;b&gt;row" in shown
    assert "<script" not in shown and "<b>row" not in shown
    assert "do not publish it unread" in shown


def test_the_losses_of_one_person_over_a_series_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "l.db"
    with wp.Session(path) as session:
        for day in ("2026-01-01", "2026-01-02"):
            session.protect(VIEWS, [], epoch=day, version="1")
            session.release(VIEWS.epoch(day).select(lambda v: v.page).noisy_count("0.25", over=["home"]))
    deployment = stated(capsys, path)["deployment"]
    sums = {each["account"]: each["privacy_parameters"]["epsilon"] for each in deployment["privacy_loss"]}
    assert sums == {"views:*": 1.0, "views:2026-01-01": 0.5, "views:2026-01-02": 0.5}
    words = {each["account"]: each["privacy_unit_details"] for each in deployment["privacy_loss"]}
    assert words["views:*"].startswith("one person in all epochs of views")
    assert "over other epochs of views the losses of one person add up" in words["views:2026-01-01"]
    assert {each["account"]: each["privacy_budget"] for each in deployment["privacy_loss"]}["views:*"] is None
    assert [each["source"] for each in deployment["dp_variant"]["data_domain"]] == [
        "views", "views:2026-01-01", "views:2026-01-02",
    ]  # fmt: skip


def test_analysts_acts_suspensions_and_times_are_options(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wp.Session(ledger) as session:
        session.protect(PEOPLE, ROWS, budget=90, version="1")
        session.set_budget("people", 5, analyst="alice")
        session.analyst("alice").release(PEOPLE.noisy_count(2, over=ROWS[:1]))
        session.analyst("alice").release(PEOPLE.noisy_count(1))  # which the source paid before
    with Ledger(ledger) as opened:
        opened.suspend(["people"])
        opened.record_act("admit", "bob", actor="carol")
    made = stated(capsys, ledger)
    assert not re.search("alice|bob|carol|curator|suspend|script|T12", json.dumps(made["administrative"]))
    assert "alice" not in json.dumps(made)
    assert len(made["deployment"]["implementation"]["mechanisms"]) == 3
    assert main(["statement", str(ledger), *(f"--include={part}" for part in OPTIONAL)]) == 0
    out, err = capsys.readouterr()
    assert err.splitlines() == [f"wpinq: the statement shows {words}" for words in OPTIONAL.values()]
    whole = json.loads(out)
    releases = whole["deployment"]["implementation"]["mechanisms"]
    assert [sorted(each["charges"]) for each in releases[2:]] == [["people"], ["people@alice"], ["people@alice"]]
    assert {each["analyst"] for each in releases} == {"", "alice"}
    assert releases[0]["label"] == "<script>one</script>" and releases[0]["date"].startswith("2026-01-02T12:")
    acts = [(each["act"], each["target"], each["actor"]) for each in whole["administrative"]["acts"]]
    assert acts == [
        ("open account", "people", "curator"),
        ("open account", "people@alice", "curator"),
        ("suspend", "people", ""),
        ("admit", "bob", "carol"),
    ]
    (only,) = stated(capsys, ledger, "--include", "suspensions")["administrative"]["acts"]
    assert only == {"date": "2026-01-02", "act": "suspend", "target": "people", "actor": ""}


def test_an_empty_ledger_has_an_empty_statement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger(tmp_path / "l.db").close()
    deployment = stated(capsys, tmp_path / "l.db", "--page", str(tmp_path / "page.html"))["deployment"]
    assert deployment["privacy_loss"] == deployment["implementation"]["mechanisms"] == []
    assert deployment["basic"] == {"publication_date": None}
    assert "There is no release yet" in (tmp_path / "page.html").read_text()


def test_a_ledger_that_was_edited_has_no_statement(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with without_triggers(ledger) as connection:
        connection.execute("UPDATE accounts SET spent = 0")
    page = ledger.with_name("page.html")
    assert main(["statement", str(ledger), "--page", str(page)]) == 6
    out, err = capsys.readouterr()
    assert out == "" and "tampered" in err and not page.exists()


def test_what_cannot_be_stated_is_refused(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["statement", str(ledger)]
    assert main([*asked, "--data-version", "poeple=1"]) == 2
    assert "no source 'poeple'; it has people" in capsys.readouterr().err
    assert main([*asked, "--page", str(ledger)]) == 2
    assert main([*asked, "--page", str(ledger.with_name("no") / "page.html")]) == 2
    assert main([*asked, "--expected-head", f"9:{'0' * 64}"]) == 6
    with pytest.raises(SystemExit, match="2"):
        main([*asked, "--include", "plans"])
    assert capsys.readouterr().out == ""
    assert main(["ledger", "verify", str(ledger)]) == 0


def test_the_sums_are_those_of_the_head(ledger: Path) -> None:
    class Busy(Ledger):
        def verify(self) -> None:
            super().verify()
            with wp.Session(ledger) as session:
                session.protect(PEOPLE, ROWS, budget=90, version="1")
                session.release(PEOPLE.noisy_count(3, over=ROWS[:1]))

    with Ledger(ledger) as now, Busy(ledger) as busy:
        before = statement(now, (), {})
        assert statement(busy, (), {}) == before != statement(now, (), {})


def test_a_ledger_that_continues_another_states_its_sum_and_plans(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "carry", str(ledger), str(ledger.with_name("next.db"))]) == 0
    capsys.readouterr()
    before, after = (stated(capsys, path)["deployment"] for path in (ledger, ledger.with_name("next.db")))
    assert after["privacy_loss"] == before["privacy_loss"]
    (carried,) = after["implementation"]["mechanisms"]
    assert carried["date"] is None and carried["charges"] == {}
    assert sorted(each["sink"] for each in carried["measurements"]) == ["GeometricCount", *["NoisyCount"] * 3]
    assert {each["answers"] for each in carried["measurements"]} == {None}


def test_a_plan_of_another_version_is_null_and_its_charge_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.cli.test_ledger_copies import Pricing, declared_account

    with Ledger(tmp_path / "l.db") as made:
        made.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=10**9)])
        for digest, plan in (("m", SECRET.format), ("n", lambda digest: '{"plan": [1]}'), ("o", None)):
            made.debit({digest: SECRET}, lambda new, parts_of: Pricing({"edges": 10**6}, {}), plan=plan)
    made_of = stated(capsys, tmp_path / "l.db", "--page", str(tmp_path / "page.html"))
    assert SECRET not in json.dumps(made_of)
    releases = made_of["deployment"]["implementation"]["mechanisms"]
    assert [each["measurements"] for each in releases] == [[{"plan": None, "answers": 0}]] * 3
    assert [each["charges"] for each in releases] == [{"edges": 0.001}] * 3


def test_a_ledger_in_postgresql_has_the_same_statement(
    ledger: Path, postgres_ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = stated(capsys, ledger)
    assert main(["ledger", "copy", str(ledger), postgres_ledger]) == 0
    capsys.readouterr()
    assert stated(capsys, postgres_ledger)["deployment"] == before["deployment"]


def test_every_sink_names_its_noise_and_a_proof() -> None:
    for sink in SINKS.values():
        words, proof = sink.noise
        assert words and (ROOT / "docs" / "proofs" / f"{proof}.md").is_file()
