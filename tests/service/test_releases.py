"""What analysts ask and get: programs and plans, own budgets, nothing of others'."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.service.conftest import Peopled
from tests.service.test_requests import told
from tests.support.service import COUNT
from wpinq.measure.measurement import measurement_to_json

EDGES = wp.source("edges", src=int, dst=int, unit="one edge", facts=["unit_weights"], records_at_most=100)


def remaining(peopled: Peopled, token: str) -> Fraction:
    (balance,) = peopled.service.ask("GET", "v1/remaining", token).json()
    return Fraction(balance["remaining"])


def spent_of_source(peopled: Peopled) -> Fraction:
    accounts = peopled.service.ask("GET", "v1/accounts", peopled.curator).json()
    return next(Fraction(each["spent"]) for each in accounts if each["account"] == "edges")


def test_a_source_is_told_with_its_declaration(peopled: Peopled) -> None:
    (source,) = peopled.service.ask("GET", "v1/sources", peopled.alice).json()
    assert wp.parse(source["declaration"]).sources["edges"] == EDGES
    assert {"account": "edges", "version": "first", "suspended": False, "unit": "one edge"}.items() <= source.items()


def test_a_program_is_explained_for_nothing(peopled: Peopled) -> None:
    before = remaining(peopled, peopled.alice)
    program = {"program": "parameter e = 0.1;" + COUNT.format(name="degrees", epsilon="e"), "parameters": {"e": "1/8"}}
    found = peopled.service.ask("POST", "v1/explain", peopled.alice, program).json()
    assert found["bill"] == {"edges": "0.125"}
    assert found["quote"] == {"edges": "0.125"}
    assert found["affords"] == int(before / Fraction(1, 8))
    (row,) = found["accuracy"]
    expected = wp.accuracy(EDGES.select(lambda e: e.src).noisy_count("1/8", over=[1, 2, 3]))[0]
    assert row["half_width"] == expected.half_width
    assert found["seconds"] > 0
    assert found["not_admitted"] == ""
    assert remaining(peopled, peopled.alice) == before
    assert "quote" not in {
        k
        for k, v in peopled.service.ask("POST", "v1/explain", peopled.curator, program).json().items()
        if v is not None
    }


def test_an_answer_is_replayed_to_another_who_pays_for_it_and_the_source_does_not(peopled: Peopled) -> None:
    service, program = peopled.service, COUNT.format(name="degrees", epsilon="0.25")
    spent, of_bob = spent_of_source(peopled), remaining(peopled, peopled.bob)
    first = service.release(peopled.alice, program, label="mine alone")
    assert first.status_code == 200, first.text
    answers = wp.Answers.from_json(first.json()["answers"]["degrees"]["data"])
    assert answers.keys == (1, 2, 3)
    assert answers.plan == EDGES.select(lambda e: e.src).plan
    (series,) = first.json()["answers"]["degrees"]["series"]
    assert [(row["estimate"], row["low"], row["high"]) for row in series["rows"]] == [
        (row.estimate, row.low, row.high) for row in answers.rows()
    ]
    assert spent_of_source(peopled) == spent + Fraction(1, 4)

    again = service.release(peopled.alice, program).json()
    assert again["answers"] == first.json()["answers"]
    assert spent_of_source(peopled) == spent + Fraction(1, 4)

    seen = service.ask("POST", "v1/explain", peopled.bob, {"program": program}).json()
    assert seen["quote"] == {"edges": "0.25"}  # as if nobody had asked
    others = service.release(peopled.bob, program).json()
    assert others["answers"] == first.json()["answers"]
    assert remaining(peopled, peopled.bob) == of_bob - Fraction(1, 4)
    assert spent_of_source(peopled) == spent + Fraction(1, 4)

    history = service.ask("GET", "v1/history", peopled.bob).json()
    assert [each["number"] for each in history] == list(range(1, len(history) + 1))
    assert all(each["account"] == "edges" and each["label"] != "mine alone" for each in history)
    assert "alice" not in service.ask("GET", "v1/history", peopled.bob).text
    assert service.ask("GET", "v1/history", peopled.alice).json()[-1]["label"] == "mine alone"


def test_fresh_noise_is_paid_for(peopled: Peopled) -> None:
    program, before = COUNT.format(name="degrees", epsilon="0.03"), remaining(peopled, peopled.alice)
    first = peopled.service.release(peopled.alice, program).json()
    fresh = peopled.service.release(peopled.alice, program, fresh=True).json()
    assert fresh["answers"]["degrees"]["data"]["values"] != first["answers"]["degrees"]["data"]["values"]
    assert remaining(peopled, peopled.alice) == before - Fraction(6, 100)


def test_histories_come_in_pages(peopled: Peopled) -> None:
    service = peopled.service
    service.release(peopled.alice, COUNT.format(name="x", epsilon="0.011"), label="first")
    service.release(peopled.alice, COUNT.format(name="x", epsilon="0.012"), label="second")
    for path, token in (("v1/history", peopled.alice), ("v1/events", peopled.curator)):
        found: list[dict[str, Any]] = []
        while page := service.ask("GET", f"{path}?after={found[-1]['number'] if found else 0}&limit=2", token).json():
            assert len(page) <= 2
            found += page
        assert found == service.ask("GET", path, token).json()
        labels = [each["label"] for each in found if each["label"] in ("first", "second")]
        assert (labels[0], labels[-1]) == ("first", "second")
        for wrong in ("after=-1", "limit=0", "limit=1001", f"after={2**62}", "after=first"):
            assert service.ask("GET", f"{path}?{wrong}", token).status_code == 400


def test_more_than_the_own_budget_is_refused_with_the_library_s_words(peopled: Peopled) -> None:
    before = remaining(peopled, peopled.alice)
    message = told(peopled.service.release(peopled.alice, COUNT.format(name="x", epsilon="5")), 409, "BudgetExceeded")
    assert "alice" in message
    assert "nothing was spent" in message
    assert remaining(peopled, peopled.alice) == before


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ('var x = read("/etc/passwd").NoisyCount(0.1, over: [1]);', "line 1, column 9"),
        (
            'source passwd(line: str) with file = "/etc/passwd"; var x = passwd.NoisyCount(0.1, over: ["a"]);',
            "no option",
        ),
        ('source people(name: str); var x = people.NoisyCount(0.1, over: ["a"]);', "no source `people`"),
        ("var x = people.NoisyCount(0.1, over: [1]);", "people"),
        ('var x = edges.Select(e => open("/etc/passwd")).NoisyCount(0.1, over: [1]);', "open"),
        ('var x = edges.Select(e => e.src).NoisyCount(0.1, over: "/etc/passwd");', "line 1"),
        ('var x = edges.Select(e => e.src).NoisyCount(0.1, over: read_csv("edges.txt"));', "line 1"),
        ("edges.txt", "line 1"),
        ("program.wpq", "name of a file"),
        (
            "source edges(src: int, dst: int); var x = edges.Select(e => 1).NoisyCount(0.1, over: [1]);",
            "declared otherwise",
        ),
        ("var x = edges.Select(e => e.src);", "nothing is released"),
        ("var x = edges.Select(e => e.src).NoisyCount(0.1);", "no public keys"),
        ("", "nothing is released"),
    ],
)
def test_a_program_reaches_declared_sources_and_nothing_else(peopled: Peopled, program: str, words: str) -> None:
    for path in ("v1/explain", "v1/release"):
        answer = peopled.service.ask("POST", path, peopled.alice, {"program": program})
        assert answer.status_code == 400, answer.text
        assert words in answer.json()["error"]["message"]
        assert "root:" not in answer.text


def test_a_program_may_repeat_the_declaration(peopled: Peopled) -> None:
    program = wp.unparse({"counts": EDGES.select(lambda e: e.src).noisy_count("0.02", over=[1, 2])})
    assert program.startswith("source edges(")
    assert peopled.service.release(peopled.alice, program).status_code == 200


def plans(**measurements: wp.Measurement) -> dict[str, Any]:
    return {"measurements": {name: measurement_to_json(each) for name, each in measurements.items()}}


def test_plans_are_taken_as_programs_are(peopled: Peopled) -> None:
    asked = plans(
        count=EDGES.select(lambda e: e.src).noisy_count("0.02", over=[1, 2]),
        total=EDGES.noisy_sum("0.02", lambda e: e.dst, 0, 10),
    )
    answer = peopled.service.ask("POST", "v1/release", peopled.alice, asked)
    assert answer.status_code == 200, answer.text
    found = {name: wp.Answers.from_json(each["data"]) for name, each in answer.json()["answers"].items()}
    assert found["count"].keys == (1, 2)
    assert isinstance(found["total"].value, float)
    (series,) = answer.json()["answers"]["total"]["series"]
    assert series["fields"] == []
    assert series["rows"][0]["low"] < series["rows"][0]["high"]


@pytest.mark.parametrize(
    "source",
    [
        wp.source("people", src=int, dst=int),
        wp.source("edges", src=int, dst=int),
        wp.source("edges", src=int, dst=int, unit="one edge", unit_weight="1/1000", weights=True, records_at_most=100),
        wp.source("edges", src=int, dst=int, unit="one edge", facts=["simple", "unit_weights"], records_at_most=1),
    ],
)
def test_plans_over_other_sources_are_refused(peopled: Peopled, source: wp.Query) -> None:
    asked = plans(x=source.select(lambda e: e.src).noisy_count("0.02", over=[1]))
    assert "here" in told(peopled.service.ask("POST", "v1/release", peopled.alice, asked), 400, "PlanError")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("plan"),
        lambda data: data.update(sink={"name": "Nothing"}),
        lambda data: data.update(epsilon="-1"),
        lambda data: data.update(epsilon="1e-9999999999"),
        lambda data: data.update(keys="abc"),
        lambda data: data.update(keys=None),
        lambda data: data["plan"].update(digest="00"),
        lambda data: data["plan"]["nodes"].append({"operator": "os.system", "arguments": {}, "inputs": []}),
        lambda data: data["plan"]["nodes"][1].update(inputs=[-1]),
    ],
)
def test_plans_that_are_none_are_refused(peopled: Peopled, change: Any) -> None:
    asked = plans(x=EDGES.select(lambda e: e.src).noisy_count("0.02", over=[1]))
    change(asked["measurements"]["x"])
    answer = peopled.service.ask("POST", "v1/release", peopled.alice, asked)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["kind"] in ("PlanError", "EpsilonError")


def test_what_no_bound_admits_is_refused_before_the_debit_and_told_while_one_types(peopled: Peopled) -> None:
    before = remaining(peopled, peopled.alice)
    many = ".Join(edges, x => 1, y => 1, (x, y) => x)" * 6
    program = f"var x = edges{many}.Select(e => 1).NoisyCount(0.001, over: [1]);"
    found = peopled.service.ask("POST", "v1/explain", peopled.alice, {"program": program}).json()
    assert found["seconds"] is None
    assert "untrusted mode" in found["not_admitted"]
    assert told(peopled.service.release(peopled.alice, program), 400, "PlanError") == found["not_admitted"]
    assert remaining(peopled, peopled.alice) == before


def test_tables_and_choices_have_series_for_people(peopled: Peopled) -> None:
    table = EDGES.by("src", keys=[1, 2]).agg(n=wp.count(), far=wp.mean("dst", 0, 10), epsilon="0.1")
    best = EDGES.select(lambda e: e.src).most_common("0.05", [1, 2, 3])
    program = wp.unparse({"table": table, "best": best})
    answer = peopled.service.release(peopled.alice, program)
    assert answer.status_code == 200, answer.text
    found = answer.json()["answers"]
    assert [series["title"] for series in found["table"]["series"]] == ["n", "far"]
    assert [row["key"] for row in found["table"]["series"][0]["rows"]] == [["1"], ["2"]]
    (row,) = found["best"]["series"][0]["rows"]
    assert row["estimate"] in (1, 2, 3)
    assert row["low"] is None
