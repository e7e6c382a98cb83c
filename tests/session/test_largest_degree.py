"""The largest degree: which plans it takes, what it costs, what is drawn and what becomes of it."""

from __future__ import annotations

import math
import pathlib
import pickle
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wpinq as wp
from tests.session.test_subgraph_counts import BOTH, GRAPH, HUGE, ONCE, PLANS, TIE, UNFIT
from tests.support.parameters import for_each
from wpinq import graphs
from wpinq.cli.main import main
from wpinq.display.explanation import explain_plan
from wpinq.errors import EpsilonError
from wpinq.language import parse
from wpinq.measure.measurement import Measurement
from wpinq.noise.ladder import draw_count
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.sinks import graph_counts
from wpinq.sinks.graph_ladders import degree_ladder, simple_graph

MIRRORED = [*GRAPH, *((b, a) for a, b in GRAPH)]
LARGEST = 7


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_over_one_source_costs_epsilon_an_edge(plan: str) -> None:
    triples = wp.source("edges", src=int, dst=int, unit_weight=3, facts=["unit_weights"])
    for source, unit in ((ONCE, 1), (BOTH, 1), (triples, 3)):
        asked = graphs.largest_degree(PLANS[plan](source), epsilon="0.3")
        assert dict(wp.bill(asked)) == {"edges": Fraction(3, 10) * unit}


def test_a_person_pays_for_each_row_and_a_symmetric_source_once_for_both() -> None:
    bill = wp.bill(graphs.largest_degree(TIE, epsilon="0.1"))
    assert str(bill) == (
        "ties: 0.7\n"
        "  protects one person, at most 7 rows, of weight 7\n"
        "  declared: every record weighs exactly 1\n"
        "  LargestDegree(0.1), spent once for each edge: 0.1 x 1 x 7 = 0.7"
    )
    assert "spent once for each edge, which is two records: 0.1 x 1/2 x 2 = 0.1" in str(
        wp.bill(graphs.largest_degree(BOTH, epsilon="0.1"))
    )


@for_each("case", UNFIT)
def test_what_one_record_does_not_decide_is_refused(case: str) -> None:
    make, why = UNFIT[case]
    with pytest.raises(wp.PlanError, match=why):
        graphs.largest_degree(make(), epsilon=1)


def test_what_is_asked_for_must_make_sense() -> None:
    for epsilon in (0, -1, float("nan"), True):
        with pytest.raises(EpsilonError):
            graphs.largest_degree(ONCE, epsilon)
    with pytest.raises(wp.PlanError, match="expected the query of"):
        graphs.largest_degree([(1, 2)], 1)
    sink = graphs.largest_degree(ONCE, 1).sink
    with wp.Session() as session:
        session.protect(ONCE, GRAPH, budget=10)
        for domain in (None, (), ("count",), ("largest degree", "highest degree")):
            with pytest.raises(wp.PlanError, match="keys of its own"):
                session.release(Measurement(ONCE.plan, sink, Fraction(1), domain))
        doubled = ONCE
        for _ in range(60):
            doubled = doubled.concat(doubled)
        with pytest.raises(EpsilonError, match="exact evaluation"):
            session.release(graphs.largest_degree(doubled, 1))
        assert session.spent("edges") == 0


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
@pytest.mark.parametrize(("source", "data"), [(ONCE, GRAPH), (BOTH, MIRRORED)], ids=["once", "both"])
def test_it_is_released_debited_and_replayed(source: wp.Query, data: Any, engine: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.db"
    asked = graphs.largest_degree(source, epsilon="0.5")
    with wp.Session(path, engine=engine) as session:
        session.protect(source, data, budget=10 * HUGE, version="one")
        exact = session.release(graphs.largest_degree(source, epsilon=HUGE))
        assert exact.value == exact["largest degree"] == LARGEST
        assert exact.value_interval(0.95) == (LARGEST, LARGEST)
        again = session.release(asked)
        assert (list(again.keys), again.scale) == (["largest degree"], 2.0)
        assert session.spent("edges") == HUGE + Fraction(1, 2)
    with wp.Session(path, engine=engine) as session:
        session.protect(source, data, budget=10 * HUGE, version="one")
        assert list(session.release(asked).values) == list(again.values)
        assert session.spent("edges") == HUGE + Fraction(1, 2)
        session.release(asked, fresh=True)
        assert session.spent("edges") == HUGE + 1
    with wp.Session(path) as session:
        assert session.spent("edges") == HUGE + 1


def test_answers_are_saved_and_read_back(tmp_path: pathlib.Path) -> None:
    answers = wp.simulate(graphs.largest_degree(ONCE, "0.3"), {"edges": GRAPH}, seed=3)
    answers.save(tmp_path / "highest.json")
    for kept in (wp.Answers.load(tmp_path / "highest.json"), pickle.loads(pickle.dumps(answers))):
        assert kept.to_json() == answers.to_json()
        assert kept.value_interval(0.9) == answers.value_interval(0.9)
        assert kept.measurement == answers.measurement
    (row,) = answers.rows()
    assert (row.estimate, (row.low, row.high), row.kind) == (answers.value, answers.value_interval(), "largest degree")
    data = answers.to_json()
    assert data["sink"] == {"name": "LargestDegree"}
    for change in (
        {"keys": ["count"]},
        {"sink": {"name": "LargestDegree", "interval_share": None}},
        {"sink": {"name": "TriangleCount", "interval_share": None}},
        {"plan": wp.simulate(UNLISTED.noisy_count(1, over=[(1, 2)]), {"edges": []}, seed=1).to_json()["plan"]},
    ):
        with pytest.raises(wp.AnswersError):
            wp.Answers.from_json({**data, **change})


UNLISTED = wp.source("edges", src=int, dst=int)


def test_what_fails_is_hidden_and_stays_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(records: object) -> None:
        raise MemoryError("a vertex of 405,740 edges is too much")

    monkeypatch.setattr(graph_counts, "simple_graph", exhausted)
    with wp.Session() as session:
        session.protect(ONCE, GRAPH, budget=1)
        with pytest.raises(wp.EvaluationFailed) as caught:
            session.release(graphs.largest_degree(ONCE, 1))
        assert "405" not in str(caught.value)
        assert session.remaining("edges") == 0


def test_no_repr_shows_it() -> None:
    assert repr(degree_ladder(simple_graph(GRAPH))).startswith("<wpinq.noise")


# --- what is drawn ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.2", "1", "3"])
def test_answers_have_the_law_of_the_closed_form(epsilon: str) -> None:
    """A chi-square of 4,000 seeded draws, the tails in one class each; `simulate` makes the same draws."""
    asked = graphs.largest_degree(ONCE, epsilon)
    scale = wp.simulate(asked, {"edges": GRAPH}, seed=0).scale
    assert scale == pytest.approx(1 / float(epsilon), rel=1e-12)
    assert Fraction(scale) * Fraction(epsilon) >= 1
    bytes_of, ladder = random.Random(epsilon).randbytes, degree_ladder(simple_graph(GRAPH))
    size, q = 4000, math.exp(-float(epsilon))
    last = next(k for k in range(100) if size * q ** (k + 2) / (1 + q) < 10)
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-last, last + 1)}
    law |= {s * (last + 1): q ** (last + 1) / (1 + q) for s in (-1, 1)}
    assert sum(law.values()) == pytest.approx(1)
    seen = Counter(max(-last - 1, min(last + 1, draw_count(ladder, scale, bytes_of) - LARGEST)) for _ in range(size))
    assert stats.chisquare([seen[k] for k in law], np.array([*law.values()]) * size).pvalue > 1e-4
    for seed in range(10):
        again = draw_count(ladder, scale, np.random.default_rng(seed).bytes)
        assert wp.simulate(asked, {"edges": GRAPH}, seed)["largest degree"] == again


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_intervals_cover_and_are_known_beforehand(confidence: float) -> None:
    """Of 1,000 draws with fixed seeds at a degree far from 0: as often as the law says, to within four deviations."""
    asked = graphs.largest_degree(ONCE, "0.25")
    star = [(0, leaf) for leaf in range(1, 101)]
    (expected,) = wp.accuracy(asked, confidence, half_width=30)
    chance = 1 - 2 * DoubleGeometric(4.0).survival(int(expected.half_width or 0))
    answers, ladder, bytes_of = (
        wp.simulate(asked, {"edges": star}, 1),
        degree_ladder(simple_graph(star)),
        random.Random(1),
    )
    low, high = answers.value_interval(confidence)
    assert answers.interval("largest degree", confidence) == (low, high)
    assert (high - low) / 2 == expected.half_width
    covered = 0
    for _ in range(1000):
        drawn = {"largest degree": float(draw_count(ladder, answers.scale, bytes_of.randbytes))}
        low, high = asked.sink.value_interval(drawn, answers.scale, confidence)
        covered += low <= 100 <= high
    assert confidence <= chance
    assert abs(covered - 1000 * chance) <= 4 * math.sqrt(1000 * chance * (1 - chance))
    least = expected.epsilon_for
    assert least is not None
    assert asked.sink.half_width(float(1 / least), confidence) <= 30


def test_nothing_is_below_zero() -> None:
    asked = graphs.largest_degree(ONCE, "0.1")
    drawn = [wp.simulate(asked, {"edges": []}, seed) for seed in range(60)]
    assert min(answers["largest degree"] for answers in drawn) < -10
    for answers in drawn:
        noisy = answers["largest degree"]
        assert answers.value == max(0, noisy)
        assert answers.value_interval() == (max(0, noisy - 30), max(0, noisy + 30))


# --- notations, the command line, and what is told beforehand ---------------------------------------------------------

TEXT = (
    'source edges(src: int, dst: int) with unit = "one edge", facts = [unit_weights];\n'
    "var a = edges.LargestDegree(0.5);\n"
    "var b = edges.Select(e => reverse(e)).Concat(edges).LargestDegree(0.25);\n"
)


def test_text_and_methods_are_equal() -> None:
    program = parse(TEXT)
    assert str(parse(str(program))) == str(program)
    assert [program[name] for name in "ab"] == [
        graphs.largest_degree(ONCE, 0.5),
        graphs.largest_degree(graphs.symmetrize(ONCE), 0.25),
    ]
    with pytest.raises(wp.LanguageError, match="unit_weights"):
        parse("source edges(src: int, dst: int);\nvar a = edges.LargestDegree(0.5);\n")
    with pytest.raises(wp.LanguageError, match="interval_share"):
        parse(TEXT.replace("(0.5)", "(0.5, interval_share: 0.1)"))


def test_the_command_line_explains_and_releases_it(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, rows, ledger = tmp_path / "highest.wpq", tmp_path / "edges.csv", tmp_path / "ledger.db"
    path.write_text(TEXT.replace("0.5", str(HUGE)))
    rows.write_text("src,dst\n" + "".join(f"{a},{b}\n" for a, b in GRAPH))
    assert main(["explain", str(path)]) == 0
    told = capsys.readouterr().out
    assert "An edge of the graph is one record of edges: a release costs epsilon x 1 x 1" in told
    assert "LargestDegree(0.25) adds double-geometric noise of scale 4 to the largest degree,\n" in told
    assert "Gives: largest degree." in told
    given = ["--source", f"edges={rows}", "--budget", f"edges={2 * HUGE}", "--data-version", "edges=1"]
    shown = []
    for _ in range(2):
        assert main(["run", str(path), *given, "--ledger", str(ledger)]) == 0
        shown.append(capsys.readouterr().out)
    assert "LargestDegree(0.25), spent once for each edge: 0.25 x 1 = 0.25" in shown[0]
    row = next(line for line in shown[0].splitlines() if line.endswith("  largest degree"))
    assert row.split() == [str(LARGEST), f"{LARGEST}", "to", f"{LARGEST}", "largest", "degree"]
    with wp.Session(ledger) as session:
        assert session.spent("edges") == HUGE + Fraction(1, 4)


@pytest.mark.parametrize("source", [ONCE, BOTH], ids=["once", "both"])
def test_the_noise_that_is_told_is_that_of_the_draw(source: wp.Query) -> None:
    asked = graphs.largest_degree(source, "0.3")
    half = wp.accuracy(asked)[0].half_width
    assert f"so 95 % of answers lie within {half:.4g} of it." in explain_plan(
        asked.plan, asked.epsilon, sink=asked.sink
    )
    low, high = wp.simulate(asked, {"edges": MIRRORED}, seed=1).interval("largest degree")
    assert high - low == 2 * (half or 0)
