"""Untrusted mode in a session: what is admitted and answered, and what is refused before anything is paid."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.support.confined import TWO_SOURCES, told
from tests.support.parameters import for_each

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are confined by means of Linux")

SINKS = """
numbers = wp.source("numbers", int, records_at_most=1000, cap=10000, facts=["unit_weights"])
edges = wp.source("edges", a=int, b=int, records_at_most=100, keys_at_most={"a": 10}, cap=1000)
EACH = [
    numbers.select(lambda x: x % 2).noisy_count(1),
    numbers.select(lambda x: x % 2).geometric_count(1),
    numbers.noisy_sum(1, lambda x: x, 0, 10),
    numbers.noisy_average(1, lambda x: x, 0, 10),
    numbers.median(1, range(0, 1000, 100)),
    numbers.most_common(1, range(10)),
    numbers.noisy_count_above(1, range(1000), above=9),
    numbers.noisy_count_above(1, range(1000), above=5),
    edges.join(edges, lambda x: x.b, lambda y: y.a, lambda x, y: (x.a + y.b) % 2).noisy_count(1, over=[0, 1]),
]
"""


def test_every_sink_that_is_taken_answers_from_a_child_as_it_does_without() -> None:
    found = told(
        SINKS
        + """
def answered(session):
    session.protect(numbers, list(range(500)), budget=10**6)
    session.protect(edges, [(i % 10, i // 10) for i in range(50)], budget=10**6)
    return [list(map(float, session.release(each).values)) for each in EACH]

with opened(limits=wp.Limits(memory="20GB")) as session:
    confined = answered(session)
with wp.Session() as session:
    plain = answered(session)
tell(confined=confined, plain=plain)
"""
    )
    # Sixty times the scale of the noise, which is 1 of counts, and of the two that make an average, and 10 of the sum.
    for confined, plain, within in zip(found["confined"], found["plain"], [60, 60, 600, 60], strict=False):
        assert confined == pytest.approx(plain, abs=within)
    assert all(map(len, found["confined"][:6]))
    assert [len(each) for each in found["confined"][4:6]] == [10, 10]


def test_a_child_reads_a_relation_that_is_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JE_ARROW_MALLOC_CONF", "background_thread:false")  # as the message says where it is refused
    found = told(
        """
import duckdb
people = wp.source("people", a=int, t=str, records_at_most=30000, cap=30000)
asked = people.select(lambda r: r.t).noisy_count(1, over=["t0", "t1", "none"])
with opened(limits=wp.Limits(memory="40GB", seconds=900)) as session:
    with duckdb.connect() as connection:
        number = "CASE WHEN i % 20 = 0 THEN i + 1 ELSE i END"  # some rows are equal
        rows = connection.sql(f"SELECT {number} AS a, 't' || ({number} % 2) AS t FROM range(30000) AS x(i)")
        session.protect(people, rows, budget=10)
        del rows  # which keeps its database and the threads of that
    tell(counts=list(map(float, session.release(asked).values)))
"""
    )
    assert found["counts"] == pytest.approx([13_500, 16_500, 0], abs=60)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("graphs.triangle_count(edges, 1)", "has no TriangleCount"),
        ("wp.source('unbounded', int).noisy_count(1, over=[1])", "records_at_most of unbounded"),
        ("wide.shave(0.001).noisy_count(1, over=[(1, 0)])", "a smaller cap for wide"),
        ("numbers.select(lambda x: x % 9).noisy_count(1, over=range(10**6))", "split the keys"),
    ],
)
def test_what_has_no_bound_within_the_limits_is_refused_before_the_debit(asked: str, words: str) -> None:
    found = told(
        f"""
numbers = wp.source("numbers", int, records_at_most=1000, cap=10000)
wide = wp.source("wide", int, records_at_most=1000)
edges = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
asked = {asked}
with opened() as session:
    for source in (numbers, wide, wp.source("unbounded", int)):
        session.protect(source, [1], budget=1)
    session.protect(edges, [(1, 2)], budget=1)
    seen = outcome(lambda: session.release(asked))
    tell(seen=seen, spent=[str(session.spent(name)) for name in ("numbers", "wide", "unbounded")])
"""
    )
    assert found["seen"][0] == "PlanError"
    assert words in found["seen"][1]
    assert found["spent"] == ["0", "0", "0"]


def test_a_release_refuses_more_keys_at_once_than_the_limits_take_and_answers_fewer() -> None:
    found = told(
        TWO_SOURCES
        + """
with opened() as session:
    protected(session)
    handle = session.release(numbers.noisy_count(1))
    tell(many=outcome(lambda: handle.at(range(10**6))), few=outcome(lambda: handle.at(range(10))))
"""
    )
    assert found["many"][0] == "PlanError"
    assert "split the keys" in found["many"][1]
    assert found["few"][0] == "answers"


def test_data_with_a_record_larger_than_the_limits_take_are_refused_when_they_are_protected() -> None:
    found = told(
        """
texts = wp.source("texts", t=str, items=list[int], n=int | None, records_at_most=10, cap=100)
seen = []
for row in (("x" * 50, [1], 1), ("x" * 51, [1], 1), ("", list(range(30)), 1), ("", [1], None)):
    with opened(limits=wp.Limits(max_record_bytes=50)) as session:
        def protect():
            session.protect(texts, [("short", [1, 2], 1), row], budget=1)
            return session.release(texts.select(lambda r: F.length(r.t) % 2).noisy_count(.1, over=[0]))
        seen.append(outcome(protect)[:2])
tell(seen=seen)
"""
    )["seen"]
    assert [kind for kind, _ in found] == ["answers", "SourceRejected", "SourceRejected", "answers"]
    assert all("Limits(max_record_bytes=...)" in words for kind, words in found if kind == "SourceRejected")


def test_a_process_with_another_thread_is_refused_before_the_debit_and_told_what_to_do() -> None:
    found = told(
        TWO_SOURCES
        + """
import threading
with opened() as session:
    protected(session)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    seen = outcome(lambda: session.release(asked))
    stop.set()
    thread.join()
    tell(seen=seen, spent=str(session.spent("numbers")), after=outcome(lambda: session.release(asked)))
"""
    )
    assert found["seen"][0] == "SessionError"
    assert "without other threads" in found["seen"][1]
    assert (found["spent"], found["after"][0]) == ("0", "answers")


def test_sessions_are_forked_after_their_data_are_protected_and_each_child_releases(tmp_path: Path) -> None:
    found = told(
        TWO_SOURCES
        + f"""
session = opened({str(tmp_path / "ledger")!r})
protected(session)
ends = []
for number in range(3):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        seen = outcome(lambda: session.release(numbers.select(lambda x: x % 2).noisy_count(number + 1)))
        os.write(writing, json.dumps(seen).encode())
        os._exit(0)
    os.close(writing)
    ends.append((child, reading))
seen = [json.loads(os.read(reading, 10000)) for _, reading in ends]
for child, _ in ends:
    os.waitpid(child, 0)
after = outcome(lambda: session.release(asked))
tell(seen=seen, after=after, spent=str(session.spent("numbers")))
"""
    )
    assert [each[0] for each in [*found["seen"], found["after"]]] == ["answers"] * 4
    assert found["spent"] == "6"  # what a child paid for is replayed


@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_engines_of_which_no_bounds_were_measured_are_refused(engine: str) -> None:
    with pytest.raises(wp.PlanError, match='untrusted mode needs engine="duckdb"'):
        wp.Session(engine=engine, sandbox=wp.Limits())


@for_each(
    "options",
    [
        {"seconds": 0}, {"seconds": float("nan")}, {"seconds": True}, {"safety_factor": 0.5}, {"grace_seconds": -1},
        {"require_restrictions": 1},
        {"max_record_bytes": 0}, {"max_record_bytes": 1.5}, {"memory": "much"}, {"memory": 10**9}, {"memory": "50%"},
    ],
)  # fmt: skip
def test_limits_that_are_none_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(wp.SessionError, match=f"Limits: {next(iter(options))}"):
        wp.Limits(**options)


def test_untrusted_mode_shows_no_steps() -> None:
    with pytest.raises(wp.SessionError, match="shows no steps"):
        wp.Session(sandbox=wp.Limits(), progress=True)
    with pytest.raises(wp.SessionError, match="takes limits"):
        wp.Session(sandbox=True)


def test_a_process_that_ignores_its_children_is_refused() -> None:
    found = told(
        TWO_SOURCES
        + """
with opened() as session:
    protected(session)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    tell(seen=[outcome(lambda: session.release(asked)), outcome(opened)], spent=str(session.spent("numbers")))
"""
    )
    assert all("SIGCHLD" in words for _, words, *_ in found["seen"])
    assert found["spent"] == "0"


@pytest.mark.long
def test_the_clock_waits_for_its_moment() -> None:
    from wpinq.kernel.sandbox.process import Clock

    clock = Clock()
    began = clock.now()
    clock.sleep_until(began - 1)
    clock.sleep_until(began + 0.02)
    assert clock.now() >= began + 0.02
