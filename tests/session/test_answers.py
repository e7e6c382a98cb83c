"""Answers and Releases: what they say, what they refuse, and files of answers."""

from __future__ import annotations

import copy
import json
import operator
import pathlib
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.cli.output import answers_table
from wpinq.sinks.choose import Choose
from wpinq.sinks.clamped import NoisyAverage, NoisySum

# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def answers(session: wp.Session, edges: wp.Query) -> wp.Answers:
    return session.release(edges.read_as("count the edges").noisy_count(0.5, over=[(1, 2), (2, 3), (9, 9)]))


def test_answers_read_like_a_table(answers: wp.Answers) -> None:
    assert answers.keys == tuple(answers) == ((1, 2), (2, 3), (9, 9))
    assert len(answers) == 3
    assert answers[(2, 3)] == answers[[2, 3]] == answers.values[1]
    assert list(answers.at([(9, 9), (1, 2)])) == [answers.values[2], answers.values[0]]
    assert dict(answers.items()) == dict(zip(answers.keys, map(float, answers.values), strict=True))
    low, high = answers.interval((1, 2), 0.9)
    assert (low + high) / 2 == pytest.approx(answers[(1, 2)])
    assert (high - low) / 2 == pytest.approx(answers.scale * np.log(10))
    assert answers.epsilon == Fraction(1, 2)
    for unknown in ((3, 1), (1, 3)):
        with pytest.raises(wp.AnswersError, match="not among those released"):
            answers[unknown]
    with pytest.raises(wp.PlanError, match="keys are of type"):
        answers["text"]
    with pytest.raises(wp.AnswersError, match="3 keys"):
        _ = answers.value
    for confidence in (0.0, 1.0, -1.0, 2.0):
        with pytest.raises(wp.AnswersError):
            answers.interval((1, 2), confidence)


@pytest.mark.parametrize("clone", [lambda a: a, copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_answers_do_not_change(answers: wp.Answers, clone: Callable[[wp.Answers], wp.Answers]) -> None:
    same = clone(answers)
    assert list(same.values) == list(answers.values)
    with pytest.raises(ValueError, match="read-only"):
        same.values[0] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        same.values.setflags(write=True)
    with pytest.raises(AttributeError):
        same.scale = 0.0


def test_answers_are_not_the_array_that_they_were_made_of(answers: wp.Answers) -> None:
    given = np.array([1.0, 2.0, 3.0])
    made = wp.Answers(answers.measurement, 1.0, given)
    given[0] = 9.0
    assert list(made.values) == [1.0, 2.0, 3.0]
    with pytest.raises(wp.AnswersError, match="3 keys need as many values"):
        wp.Answers(answers.measurement, 1.0, given[:2])


def test_answers_of_a_deep_plan_can_be_pickled(session: wp.Session, edges: wp.Query) -> None:
    query = edges.select(lambda e: e.src)
    for _ in range(2000):
        query = query.where(lambda n: n > 0)
    made = session.release(query.noisy_count(0.001, over=[1]))
    assert pickle.loads(pickle.dumps(made)).plan == made.plan


OWN = ["estimate", "low", "high", "kind"]


def test_frames_have_a_column_for_each_field_and_say_what_the_numbers_are(
    answers: wp.Answers, session: wp.Session, people: wp.Query
) -> None:
    frame = answers.to_pandas(0.9)
    assert list(frame.columns) == ["src", "dst", *OWN]
    assert frame["src"].tolist() == [1, 2, 9]
    assert frame["estimate"].tolist() == list(answers.values)
    assert list(zip(frame["low"], frame["high"], strict=True)) == [answers.interval(key, 0.9) for key in answers]
    assert set(frame["kind"]) == {"count"}
    assert frame.attrs["kind"] == answers.to_arrow().schema.metadata[b"kind"].decode() == "count the edges"
    for other in (answers.to_polars(0.9), answers.to_arrow(0.9)):
        assert other.to_pandas().equals(frame)
    bare = session.release(people.select(lambda p: p.age).noisy_count(1, over=[30]))
    assert list(bare.to_pandas().columns) == ["key", *OWN]
    average = session.release(people.noisy_average(1, lambda p: p.age, 0, 100))
    (row,) = average.rows()
    assert (row.key, row.estimate, (row.low, row.high)) == ((), average.value, average.value_interval())
    assert average.to_polars().row(0) == (average.value, *average.value_interval(), "mean")
    common = session.release(people.most_common(1, [("n", 30)]))
    assert common.to_arrow().to_pylist() == [
        {"estimate": {"region": "n", "age": 30}, "low": None, "high": None, "kind": "most common"}
    ]


def test_fields_of_keys_keep_their_names(session: wp.Session, people: wp.Query) -> None:
    named = people.select(lambda p: F.record(kind=p.age, answer_kind=p.region, inner=(p.age, [p.region])))
    table = session.release(named.noisy_count(1, over=[(1, "n", (2, ["a"])), None])).to_arrow()
    assert table.column_names == ["kind", "answer_kind", "inner", "estimate", "low", "high", "answer_answer_kind"]
    assert table["kind"].to_pylist() == [1, None]
    assert table["inner"].to_pylist() == [{"field_0": 2, "field_1": ["a"]}, None]


def test_a_rescaled_count_is_the_weight_over_its_factor() -> None:
    rows = wp.source("rows", key=int, value=int, facts=["unit_weights"])
    groups = rows.group_by(lambda r: r.key).select(lambda g: "groups")
    made = wp.Answers(groups.noisy_count(1, over=["groups"]), 1.0, np.array([3.5]))
    (row,) = made.rows(0.9)
    assert (row.estimate, row.kind) == (7.0, "rescaled count")
    assert (row.low, row.high) == pytest.approx([2 * end for end in made.interval("groups", 0.9)])
    assert made["groups"] == made.value == 3.5
    assert made.to_json()["kind"] == {
        "name": "rescaled count",
        "words": "number of groups of rows of rows, each of weight 1/2",
        "factors": "1/2",
    }
    assert "'groups': 7 (" in repr(made)
    assert "number of groups of rows of rows, each of weight 1/2" in repr(made)


def test_files_of_before_say_the_kind_too() -> None:
    rows = wp.source("rows", int, facts=["unit_weights"])
    data = wp.Answers(rows.noisy_count(1, over=[1]), 1.0, np.array([3.5])).to_json()
    forged = {**data, "kind": {"name": "statistic", "words": "anything", "factors": "1"}}
    del data["kind"]
    assert wp.Answers.from_json(data).kind.name == wp.Answers.from_json(forged).kind.name == "count"


def test_a_table_shows_rows_intervals_kinds_and_what_it_leaves_out(answers: wp.Answers) -> None:
    made = wp.Answers(answers.measurement, 2.0, np.array([1.25, -2.5, 1000.0]))
    assert answers_table("edges", made, rows=2) == (
        "edges: NoisyCount(0.5)\n"
        "  src  dst  estimate  95 % interval  kind\n"
        "  1    2        1.25  -4.74 to 7.24  count\n"
        "  2    3       -2.50  -8.49 to 3.49  count\n"
        "  … 1 more keys: --rows 0 prints all, --json and --save keep all\n"
        "  count the edges"
    )
    assert "more keys" not in answers_table("edges", made, rows=0)
    simulated = wp.Answers(answers.measurement, 2.0, made.values, simulated=True)
    assert "SIMULATED: protects nothing" in answers_table("edges", simulated)
    assert "SIMULATED: protects nothing" in repr(simulated)


# --- files ------------------------------------------------------------------------------------------------------------

KINDS: list[tuple[Any, list[Any]]] = [
    (int, [0, -(2**63), 2**63 - 1, None]),
    (float, [0.0, -0.0, 1.0, 0.1, 5e-324, -1.7976931348623157e308]),
    (bool, [True, False]),
    (str, ["", "ä\u0000\U0001f600", "1", "null", None]),
    (list[int], [(), (1,), (1, 2, 3)]),
    (int | None, [None, 0]),
    ({"a": {"b": float | None, "c": list[str]}}, [((1.0, ("x",)),), ((None, ()),)]),
    (tuple[int, tuple[bool, str]], [(1, (True, "x"))]),
]


@pytest.mark.parametrize(("schema", "keys"), KINDS, ids=lambda value: str(value)[:20])
def test_a_file_gives_back_every_type_of_key(tmp_path: pathlib.Path, schema: Any, keys: list[Any]) -> None:
    source = wp.source("records", schema)
    with wp.Session() as session:
        session.protect(source, [], budget=1)
        saved = session.release(source.noisy_count(1, over=keys))
    saved.save(tmp_path / "answers.json")
    loaded = wp.Answers.load(tmp_path / "answers.json")
    assert repr(loaded.keys) == repr(saved.keys)
    assert loaded.values.tobytes() == saved.values.tobytes()
    assert (loaded.scale, loaded.epsilon, loaded.plan) == (saved.scale, saved.epsilon, saved.plan)
    assert loaded.measurement.digest == saved.measurement.digest
    assert loaded.to_json() == saved.to_json()


def sinks(session: wp.Session, people: wp.Query) -> dict[str, wp.Answers]:
    ages = people.select(lambda p: p.age)
    return {
        "count": session.release(ages.read_as("a reading").noisy_count("1/3", over=[30, 40])),
        "sum": session.release(people.noisy_sum(1, lambda p: p.age, -1, 50)),
        "average": session.release(people.noisy_average(1, lambda p: p.age, 0, 100)),
        "median": session.release(ages.quantile(epsilon=1, q="1/3", candidates=[30, 40])),
        "common": session.release(ages.most_common(1, [30, 40])),
        "nothing": session.release(ages.noisy_count(1, over=[])),
        "simulated": wp.simulate(ages.noisy_count(1, over=[30]), {"people": [("n", 30)]}, seed=1),
    }


def test_a_file_gives_back_every_sink(session: wp.Session, people: wp.Query, tmp_path: pathlib.Path) -> None:
    for name, saved in sinks(session, people).items():
        saved.save(tmp_path / name)
        loaded = wp.Answers.load(tmp_path / name)
        assert loaded.to_json() == saved.to_json()
        assert loaded.measurement == saved.measurement
        assert loaded.simulated == (name == "simulated")
        assert answers_table(name, loaded) == answers_table(name, saved)
        if name not in ("count", "nothing"):
            assert loaded.value == saved.value


def test_a_loaded_measurement_replays(session: wp.Session, people: wp.Query, tmp_path: pathlib.Path) -> None:
    saved = session.release(people.noisy_average(1, lambda p: p.age, 0, 100))
    saved.save(tmp_path / "answers")
    again = session.release(wp.Answers.load(tmp_path / "answers").measurement)
    assert (list(again.values), session.spent("people")) == (list(saved.values), 1)


FOREIGN = ["", "{", "[]", "null", "3", '"text"', "{}", '{"format": "wpinq answers", "version": 1}', "[" * 100_000]


@for_each("text", FOREIGN, ids=range(len(FOREIGN)))
def test_a_foreign_file_is_refused(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(wp.AnswersError) as caught:
        wp.Answers.load(tmp_path / "file")
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_what_cannot_be_read_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "binary"):
        with pytest.raises(wp.AnswersError):
            wp.Answers.load(path)


def deep(levels: int) -> Any:
    data: Any = {"scalar": "int"}
    for _ in range(levels):
        data = {"list": data, "bound": None}
    return data


CHANGES: list[tuple[str, Any]] = [
    ("version", 2),
    ("format", "other"),
    ("epsilon", "0"),
    ("epsilon", "-1"),
    ("epsilon", float("inf")),
    ("epsilon", "nan"),
    ("scale", -1.0),
    ("scale", float("nan")),
    ("scale", 10**400),
    ("scale", "x"),
    ("values", [1.0]),
    ("values", [1.0, float("nan")]),
    ("values", [1.0, 10**400]),
    ("values", [[1.0, 2.0]]),
    ("values", ["a", "b"]),
    ("values", None),
    ("keys", [30, 30]),
    ("keys", [30, "x"]),
    ("keys", [30]),
    ("keys", 5),
    ("sink", {"name": "Other"}),
    ("sink", {"name": "NoisyCount", "extra": 1}),
    ("sink", {"name": "NoisySum", "lower": 0.0, "upper": 1.0}),
    ("sink", {"name": "NoisySum", "lower": "a", "upper": "b"}),
    ("sink", {"name": "NoisyAverage", "lower": 0.0, "upper": 1.0}),
    ("sink", {"name": "Choose", "score": "weight", "quantile": None}),
    ("sink", {"name": "Choose", "score": "quantile", "quantile": "1000000"}),
    ("sink", {"name": "Choose", "score": "quantile", "quantile": float("inf")}),
    ("sink", []),
    ("plan", {}),
    ("plan.digest", "00"),
    ("plan.nodes", []),
    ("plan.nodes.0.operator", "Steal"),
    ("plan.nodes.0.arguments.source", {"value": "other"}),
    ("plan.nodes.0.arguments.unit_weight", {"fraction": "1/0"}),
    ("plan.nodes.0.arguments.record", {"type": {"scalar": "object"}}),
    ("plan.nodes.0.arguments.record", {"type": deep(5000)}),
    ("plan.nodes.1.inputs", [1]),
    ("plan.nodes.1.inputs", [0, 0]),
]


@pytest.mark.parametrize(("place", "value"), CHANGES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CHANGES)])
def test_a_changed_file_is_refused(session: wp.Session, people: wp.Query, place: str, value: Any) -> None:
    saved = session.release(people.select(lambda p: p.age).noisy_count("1/3", over=[30, 40]))
    data = json.loads(json.dumps(saved.to_json()))
    assert wp.Answers.from_json(data).to_json() == saved.to_json()
    *path, last = (int(step) if step.isdigit() else step for step in place.split("."))
    target = data
    for step in path:
        target = target[step]
    target[last] = value
    with pytest.raises(wp.AnswersError):
        wp.Answers.from_json(data)


@for_each(
    "make",
    [
        lambda: Choose("quantile", Fraction(5)),
        lambda: Choose("quantile", Fraction(-1)),
        lambda: Choose("quantile", Fraction(0)),
        lambda: Choose("quantile"),
        lambda: Choose("weight", Fraction(1, 2)),
        lambda: Choose("other"),
        lambda: Choose("quantile", 0.5),
        lambda: NoisySum(0.0, float("inf")),
        lambda: NoisySum(1.0, 0.0),
        lambda: NoisyAverage(float("nan"), 0.0),
    ],
)
def test_a_sink_whose_sensitivity_is_unknown_cannot_be_made(make: Callable[[], object]) -> None:
    with pytest.raises(wp.PlanError):
        make()


# --- releases ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def release(session: wp.Session, edges: wp.Query) -> wp.Release:
    made = session.release(edges.noisy_count(0.5))
    assert isinstance(made, wp.Release)
    return made


def test_a_release_answers_for_any_key_and_remembers(release: wp.Release) -> None:
    table = release.at([(1, 2), (777, 777)])
    assert isinstance(table, wp.Answers)
    assert table.keys == ((1, 2), (777, 777))
    assert (release[(1, 2)], release[[777, 777]]) == tuple(table.values)
    assert len(release.at([])) == 0
    assert release.at(iter([(1, 2), (1, 2)])).keys == ((1, 2),)
    assert release[{"dst": 2, "src": 1}] == release[(1, 2)]
    for wrong in ("text", (1, 2, 3), (1, "2"), (1.0, 2.0), (True, 1), (2**63, 0)):
        with pytest.raises(wp.PlanError, match="cannot be released"):
            release[wrong]


def test_keys_may_come_from_numpy(session: wp.Session, edges: wp.Query) -> None:
    nodes = edges.select(lambda e: e.src)
    answers = session.release(nodes.noisy_count(1, over=np.arange(4)))
    assert answers.keys == (0, 1, 2, 3)
    assert {type(key) for key in answers.keys} == {int}
    assert answers[np.int64(2)] == answers[2]
    for wrong in (np.float64(1.0), np.bool_(True), np.datetime64("2020-01-01")):
        with pytest.raises(wp.PlanError):
            nodes.noisy_count(1, over=[wrong])


def test_a_text_is_not_a_list_of_keys(session: wp.Session, people: wp.Query) -> None:
    regions = people.select(lambda p: p.region)
    for ask in (regions.noisy_count(1), regions.most_common):
        with pytest.raises(wp.PlanError, match="a list of keys"):
            session.release(ask).at("north") if isinstance(ask, wp.Measurement) else ask(1, "north")


REFUSED: list[Callable[[Any], object]] = [
    len,
    iter,
    list,
    bool,
    reversed,
    lambda r: (1, 2) in r,
    lambda r: r == r,
    lambda r: r != 3,
    lambda r: r.keys,
    lambda r: r.values,
    lambda r: r.items,
    pickle.dumps,
    copy.copy,
    copy.deepcopy,
]


@pytest.mark.parametrize("act", REFUSED, ids=range(len(REFUSED)))
def test_a_release_does_not_tell_which_keys_there_are(release: wp.Release, act: Callable[[Any], object]) -> None:
    with pytest.raises(wp.SessionError):
        act(release)


def test_a_release_has_no_other_way_in(release: wp.Release) -> None:
    for act in (hash, operator.length_hint, sorted, lambda r: r < r):
        with pytest.raises((TypeError, wp.SessionError)):
            act(release)
    with pytest.raises(AttributeError):
        release.extra = 1
    assert repr(release) == "<Release of NoisyCount(0.5): query with release[key] or release.at(keys)>"


@pytest.mark.parametrize("act", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_session_cannot_be_copied(session: wp.Session, act: Callable[[Any], object]) -> None:
    with pytest.raises(wp.SessionError):
        act(session)


def test_above_lists_the_keys_that_stand_out_and_keeps_their_answers() -> None:
    numbers = wp.source("numbers", int, unit_weight=100)
    answers = wp.simulate(numbers.noisy_count(1, over=range(50)), {"numbers": {3: 100, 7: 90}}, seed=2)
    listed = answers.above(40)
    assert listed.keys == (3, 7)
    assert listed[7] == answers[7]
    assert listed.simulated
    choice = wp.simulate(numbers.most_common(1, range(5)), {"numbers": {3: 100}}, seed=2)
    with pytest.raises(wp.AnswersError, match="above a threshold"):
        choice.above(0)


def test_above_a_number_that_is_no_float() -> None:
    numbers = wp.source("numbers", int, unit_weight=100)
    answers = wp.simulate(numbers.noisy_count(1, over=range(50)), {"numbers": {3: 100, 7: 90}}, seed=2)
    assert len(answers.above(10**400)) == 0
    assert len(answers.above(-(10**400))) == 50
    listed = wp.simulate(numbers.noisy_count_above(1, range(50), above=20), {"numbers": {3: 100, 7: 90}}, seed=2)
    just_below = Fraction(listed[3]) - Fraction(1, 10**30)  # the nearest float is the value, which is not above itself
    assert 3 not in listed.above(just_below).keys
