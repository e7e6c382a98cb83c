"""Nothing that a session says, raises, logs, warns of or prints may hold what is protected."""

from __future__ import annotations

import logging
import pathlib
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pandas
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.kernel.prepare import PreparedMeasurement


def spilling(kind: type[BaseException]) -> Callable[..., Any]:
    """An engine that says all it knows when it fails."""

    def evaluate(root: object, data: Any, *rest: object) -> None:
        try:
            raise KeyError(f"inner {data}")
        except KeyError as inner:
            raise kind(f"outer {data}") from inner

    return evaluate


@pytest.mark.parametrize("kind", [ValueError, MemoryError, RecursionError, StopIteration, wp.PlanError, OverflowError])
@pytest.mark.parametrize("sink", ["count", "release", "median"])
def test_a_failing_engine_says_nothing(
    session: wp.Session,
    visits: wp.Query,
    secret: Any,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    kind: type[Exception],
    sink: str,
) -> None:
    monkeypatch.setattr(session._engine, "evaluate", spilling(kind))
    amounts = visits.select(lambda v: v.amount)
    texts = []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            if sink == "median":
                session.release(amounts.median(1, [1, 2]))
            elif sink == "count":
                session.release(amounts.noisy_count(1, over=[1]))
            else:
                handle = session.release(amounts.noisy_count(1))
                handle[1]
            pytest.fail("an engine failed in silence")
        except wp.EvaluationFailed as error:
            assert type(error) is wp.EvaluationFailed
            assert (error.__cause__, error.__context__) == (None, None)
            assert sys.exc_info()[1] is error
            shown = traceback.TracebackException.from_exception(error, capture_locals=True)  # what debuggers print
            texts += [str(error), repr(error.args), repr(vars(error)), traceback.format_exc(), "".join(shown.format())]
            here, frame = sys._getframe(), error.__traceback__
            while frame is not None:
                if frame.tb_frame is not here:  # this test knows the secret
                    texts.append(repr(frame.tb_frame.f_locals))
                    texts += [repr(vars(v)) for v in frame.tb_frame.f_locals.values() if hasattr(v, "__dict__")]
                frame = frame.tb_next
    printed = capfd.readouterr()
    texts += [printed.out, printed.err, caplog.text, *(str(w.message) for w in warned)]
    assert not any(secret.in_text(text) for text in texts)


def test_a_mechanism_that_fails_says_nothing(
    session: wp.Session, visits: wp.Query, secret: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        session._engine, "evaluate", lambda *_: {secret.number: float("inf"), 1: secret.weight, 2: float("nan")}
    )
    amounts = visits.select(lambda v: v.amount)
    messages = set()
    for measurement in (amounts.noisy_count(1, over=[secret.number, 1]), amounts.most_common(1, [1, 2])):
        with pytest.raises(wp.EvaluationFailed) as caught:
            session.release(measurement)
        messages.add(str(caught.value))
        shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        assert repr(secret.weight)[:12] not in "".join(shown.format())
    monkeypatch.setattr(session._engine, "evaluate", spilling(ValueError))
    with pytest.raises(wp.EvaluationFailed) as caught:
        session.release(amounts.noisy_count(2, over=[1]))
    assert {str(caught.value)} == messages  # which of the steps failed could depend on the data


def test_no_message_of_a_refused_budget_depends_on_the_data(visits: wp.Query) -> None:
    messages = set()
    for data in ([], [("a", 1)], [("b", 2)] * 500):
        with wp.Session() as session:
            session.protect(visits, data, budget=1)
            for measurement in (visits.noisy_count(2, over=[]), visits.noisy_count(2, over=[("a", 1)])):
                with pytest.raises(wp.BudgetExceeded) as caught:
                    session.release(measurement)
                messages.add(str(caught.value))
    assert len(messages) == 1


def test_what_lies_about_is_not_shown(session: wp.Session, visits: wp.Query, secret: Any) -> None:
    asked = visits.noisy_count(1)
    handle = session.release(asked)
    table = session.release(visits.select(lambda v: v.amount).noisy_count(1, over=[1, 2]))
    held = session._protected["visits"]
    things = [session, handle, table, held, asked, visits, session.bill(asked), session._ledger, handle._answer]
    contents = [cell.cell_contents for cell in handle._answer.__closure__]
    prepared = next(content for content in contents if isinstance(content, PreparedMeasurement))
    for thing in [*things, prepared]:
        for text in (repr(thing), str(thing), f"{thing}"):
            assert not secret.in_text(text)
    assert not secret.in_text(repr(vars(session)))
    assert not secret.in_text(repr(list(session._ledger.entries())))
    assert repr(session) == "<Session protecting visits>"


@pytest.mark.parametrize(
    "data",
    [
        {"bad": lambda s: [(s.word, s.number), (s.word, "no number")]},
        {"bad": lambda s: {(s.word, s.number): 1.5}},
        {"bad": lambda s: {(s.word, s.number): s.word}},
        {"bad": lambda s: [(s.word, s.number * 10**12)]},
        {"bad": lambda s: [(s.word, None)]},
        {"bad": lambda s: [{"who": s.word, "amount": s.word}]},
        {"bad": lambda s: [[s.word]]},
        {"bad": lambda s: [s.word]},
    ],
    ids=range(8),
)
def test_a_rejection_names_positions_and_no_values(
    session: wp.Session, visits: wp.Query, secret: Any, data: dict[str, Callable[[Any], Any]]
) -> None:
    offered = data["bad"](secret)
    with pytest.raises(wp.SourceRejected) as caught:
        session.protect(visits, offered, budget=1000)
    assert caught.value.positions
    assert not secret.in_text("".join(traceback.format_exception(caught.value)))
    assert not secret.in_text(repr(vars(caught.value)))


def test_a_rejected_file_is_not_quoted(session: wp.Session, visits: wp.Query, secret: Any, tmp_path: Any) -> None:
    path = pathlib.Path(tmp_path) / "visits.csv"
    for text in (
        f"who,amount\n{secret.word},{secret.word}\n",
        f"{secret.word},other\n1,2\n",
        f'who,amount\n"{secret.word}',
    ):
        path.write_text(text)
        with pytest.raises(wp.SourceRejected) as caught:
            session.protect(visits, path, budget=1000)
        assert not secret.in_text("".join(traceback.format_exception(caught.value)))


def test_steps_are_the_same_whatever_the_data(visits: wp.Query) -> None:
    grouped = visits.group_by(lambda v: v.who, lambda g: F.count(g)).shave(0.5)
    joined = visits.join(grouped, lambda v: v.amount, lambda g: g.index, lambda v, g: v.amount)
    heard = []
    for data in ([], [("a", 0)], [(str(i), i % 3) for i in range(300)]):
        steps: list[str] = []
        with wp.Session(on_step=steps.append) as session:
            session.protect(visits, data, budget=100)
            session.release(
                [joined.noisy_count(1, over=[0]), joined.median(1, [0, 1]), grouped.noisy_count(1, over=[])]
            )
        heard.append(steps)
    assert heard[0] == heard[1] == heard[2]
    assert {"Source", "GroupBy", "Shave", "Join"} == set(heard[0])


def test_no_record_makes_an_evaluation_fail() -> None:
    """Totality: a record on which a function is undefined gives null, never an error, which would tell of it."""
    source = wp.source("odd", i=int, x=float | None, s=str, items=list[int])
    data = [
        (i, x, s, items)
        for i in (0, -(2**63), 2**63 - 1)
        for x in (None, 0.0, 1e308, -5e-324)
        for s in ("", "1e999", "-0", "9" * 400)
        for items in ([], [0], [2**62] * 3)
    ]
    queries = [
        source.select(lambda r: r.i // (r.i - r.i)),
        source.select(lambda r: r.i % r.i * r.i - r.i + r.i),
        source.select(lambda r: r.x / r.x + r.x * 1e308),
        source.select(lambda r: F.cast(r.s, int)),
        source.select(lambda r: F.floor(F.cast(r.s, float))),
        source.select(lambda r: F.substring(r.s, r.i, r.i)),
        source.select(lambda r: F.element(r.items, r.i)),
        source.select(lambda r: F.sum(r.items)),
        source.select(lambda r: F.max(r.items)),
        source.select(lambda r: F.bucket(r.i, 7)),
        source.select(lambda r: F.absolute(-r.i)),
        source.where(lambda r: r.x < r.x / 0.0).select(lambda r: r.i),
        source.select_many(lambda r: F.range(r.i, r.i + 3, limit=5)),
        source.select_many(lambda r: [F.weighted(r.i, r.x), F.weighted(1, r.x * 1e300)]),
        source.shave(lambda r: [r.x, r.x]).select(lambda p: p.index),
        source.group_by(lambda r: r.x, lambda g: F.sum(g, lambda r: r.i)),
    ]
    with wp.Session() as session:
        session.protect(source, data, budget=1000)
        for query in queries:
            assert len(session.release(query.noisy_count(1, over=[None]))) == 1


COLUMN = pandas.Series([98765.4321, 98765.4321], name="salary")
HELD = {"Rumpelstilzchen": 98765.4321}
PEOPLE = wp.source("people", city=str, salary=float, facts=["unit_weights"])


@for_each("data", [COLUMN, COLUMN.to_frame(), COLUMN.tolist(), HELD], ids=["series", "frame", "list", "dict"])
@for_each(
    "mistaken",
    [
        lambda data: PEOPLE.noisy_sum(1, data, 0, 10),
        lambda data: PEOPLE.noisy_average(1, data, 0, 10),
        lambda data: PEOPLE.noisy_sum(1, lambda p: p.salary, 0, data),
        lambda data: PEOPLE.select(data),
        lambda data: PEOPLE.where(data),
        lambda data: PEOPLE.concat(data),
        lambda data: wp.source("people", data),
        lambda data: wp.source("people", salary=data),
        lambda data: wp.fit_to_budget([PEOPLE.noisy_count(1)], [data]),
        lambda data: wp.accuracy([data]),
        lambda data: wp.bill([data]),
        lambda data: wp.Session().bill([data]),
        lambda data: wp.Session().release([data]),
        lambda data: wp.Session().release(PEOPLE.noisy_count(1), label=data),
        lambda data: wp.Session().protect(data, PEOPLE, budget=1),
        lambda data: wp.Session().protect(PEOPLE, [], budget=data),
    ],
)
def test_data_in_the_wrong_place_are_not_shown(mistaken: Callable[[Any], object], data: Any) -> None:
    """A column of a frame where a function, a type or a measurement belongs: its kind is told, and no more."""
    with pytest.raises(wp.WpinqError) as refused:
        mistaken(data)
    assert "98765" not in str(refused.value)
    assert "Rumpel" not in str(refused.value)
