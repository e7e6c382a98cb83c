"""Values out of public candidates in each group: as exact as by themselves, one debit, intervals that hold."""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.choice_laws import permute_and_flip
from tests.support.parameters import for_each
from wpinq.api.simulate import PublicOutput
from wpinq.noise import permute_and_flip as sampler
from wpinq.noise.exact_bernoulli import Coin
from wpinq.noise.permute_and_flip import select_each
from wpinq.sinks.choose import Choose
from wpinq.tables.choices import Quantiles

THINGS = wp.source("things", group=int, value=int | None, kind=str, weights=True)
GROUPS = range(4)


def things(seed: int, size: int = 200) -> dict[Any, float]:
    draw = random.Random(seed)
    rows = {}
    for _ in range(size):
        value = None if draw.random() < 0.05 else draw.choice([draw.randrange(40), 10, 25])
        rows[draw.randrange(3), value, draw.choice("abc")] = draw.uniform(0.1, 1)
    return rows


@for_each("candidates", [range(5, 30), [30, 3, 7, 25, 3, 10], [10], [10, 25]], ids=str)
@for_each("q", ["1/2", "0.9", "1/3"])
def test_without_noise_each_group_gets_the_candidate_of_the_best_score(candidates: Any, q: str) -> None:
    rows, epsilon = things(3), 10**6
    asked = THINGS.by("group", keys=GROUPS).agg(
        q=wp.quantile("value", q, candidates), c=wp.most_common("value", candidates), epsilon=epsilon
    )
    table = wp.simulate(asked, {"things": rows}, seed=1)
    ordered = sorted(set(candidates))
    for group in (0, 1, 2):
        held: Counter[Any] = Counter()
        for (of, value, _), weight in rows.items():
            held[value] += Fraction(weight) * (of == group)
        row, output = table[group], PublicOutput(held)
        scores = dict(zip(ordered, Choose("quantile", Fraction(q)).scores(output, ordered), strict=True))
        assert scores[row["q"].estimate] == pytest.approx(max(scores.values()), abs=1e-3)
        assert row["q"].low <= row["q"].estimate <= row["q"].high
        assert held[row["c"].estimate] == max(held[candidate] for candidate in ordered)


def test_null_and_categories_are_candidates_where_there_is_no_order() -> None:
    source = wp.source("rows", a=int, b=int | None, c=wp.category("x", "y", "z"))
    rows = [(0, None, "z")] * 20 + [(0, 5, "y")] * 9 + [(1, 7, "x")] * 9
    asked = source.by("a", keys=[0, 1]).agg(
        b=wp.most_common("b", [7, None, 5]),
        c=wp.most_common("c", ["z", "x"]),
        t=wp.stats.top_k("b", 2, [5, None, 7]),
        epsilon=99,
    )
    columns = wp.simulate(asked, {"rows": rows}, seed=1).to_columns()
    assert (columns["b"], columns["c"]) == ([None, 7], ["z", "x"])
    assert (columns["t_1"], columns["t_2"][0]) == ([None, 7], 5)
    with pytest.raises(wp.PlanError, match="null is in no order"):
        source.agg(m=wp.median("b", [None, 1]), epsilon=1)


@for_each("engine", ["duckdb", "reference"])
def test_a_table_of_choices_is_one_measurement_and_one_debit(engine: str) -> None:
    asked = THINGS.by("group", keys=GROUPS).agg(m=wp.median("value", range(40)), epsilon=1)
    assert len(asked.measurements) == 1
    with wp.Session(engine=engine) as session:
        session.protect(THINGS, things(1), budget=2)
        table = session.release(asked)
        assert session.remaining("things") == 1
        again = session.release(THINGS.by("group", keys=[1, 9]).agg(m=wp.median("value", range(40)), epsilon=1))
        assert again[1] == table[1]
        assert session.remaining("things") == 1


def test_listed_groups_have_choices_in_the_same_call() -> None:
    rows = [(group, group % 7, "a") for group in (3, 500, 99_000) for _ in range(400)] + [(7, 1, "a")]
    asked = THINGS.by("group", keys=wp.integers(0, 99_999), above=40).agg(
        n=wp.count(), m=wp.median("value", range(10)), s=wp.stats.quantiles("value", [0.1, 0.9], range(10)), epsilon=3
    )
    with wp.Session() as session:
        session.protect(THINGS, rows, budget=3)
        table = session.release(asked)
    assert table.keys == (3, 500, 99_000)
    assert [cell.estimate for cell in table["m"].values()] == [3, 3, 6]
    assert list(table[3]) == ["n", "m", "s_10", "s_90"]


def test_a_policy_hides_small_groups_with_all_of_their_aggregates() -> None:
    rows = [(0, 5, "a")] * 200 + [(1, 5, "a")] * 2
    by = THINGS.by("group", keys=[0, 1])
    asked = by.agg(n=wp.count(), m=wp.median("value", range(10)), epsilon=20, k_rule=11)
    assert asked == THINGS.by("group", keys=[0, 1], above=11).agg(
        n=wp.count(), m=wp.median("value", range(10)), epsilon=20
    )
    table = wp.simulate(asked, {"things": rows}, seed=1)
    assert table.keys == (0,)
    assert table.kinds["n"].endswith("selected above 11")
    with pytest.raises(wp.AnswersError, match="was not listed"):
        table.row(1)


# --- the draw ---------------------------------------------------------------------------------------------------------


@for_each("margin", [2.0**-40, 0.2], ids=["by floats", "by digits"])
@for_each("whole", [np.int64, object], ids=["int64", "integers"])
def test_bulk_choices_have_the_law_of_permute_and_flip(margin: float, whole: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sampler, "_MARGIN", margin)
    scores, size = [0, 10, 20, 25, 20], 4000
    expected = permute_and_flip([score / 10 for score in scores], 1.3)
    given = np.tile(np.array(scores), (size, 1)).astype(whole)
    found = np.bincount(select_each(given, Fraction(13), os.urandom), minlength=5)
    assert (np.abs(found - size * expected) < 5.5 * np.sqrt(size * expected * (1 - expected))).all()


def test_the_digits_of_a_coin_are_those_of_its_chance() -> None:
    for top in (0, 1, 7, 30, 222, 9999):
        t = Fraction(top, 10)
        if t < 32:
            assert abs(sampler._chances(np.array([float(t)]))[0] - math.exp(-t)) < 2.0**-48
        assert abs(Coin(t, logistic=False).leading(32) - 2.0**32 * math.exp(-t)) <= 1
    for first, heads in ((2**32 - 1, False), (0, True)):
        assert Coin(Fraction(5), logistic=False).decide(first, 32, os.urandom) is heads
    tape = [b"\xff\xff"]
    assert Coin(Fraction(50), logistic=False).decide(0, 32, lambda size: tape.pop()) is False
    assert Coin(Fraction(0), logistic=False).decide(2**32 - 1, 32, os.urandom)


def test_weights_beyond_floats_of_scores_are_chosen_by_their_exact_scores() -> None:
    asked = THINGS.by("group", keys=[0, 1]).agg(c=wp.most_common("value", [1, 2]), epsilon=1)
    rows = {(0, 1, "a"): 1e-300, (0, 2, "a"): 1e8, (1, 1, "a"): 2.0**29, (1, 2, "a"): 2.0**-29}
    assert wp.simulate(asked, {"things": rows}, seed=1).to_columns()["c"] == [2, 1]


# --- intervals --------------------------------------------------------------------------------------------------------

KINDS: dict[str, Any] = {
    "even": lambda rng, size: rng.integers(0, 100, size),
    "normal": lambda rng, size: np.clip(rng.normal(50, 15, size), 0, 99).astype(int),
    "skewed": lambda rng, size: np.minimum(rng.exponential(8, size), 99).astype(int),
    "two values": lambda rng, size: np.where(rng.random(size) < 0.5, 20, 80),
    "off the candidates": lambda rng, size: rng.integers(-50, 300, size),
}


def covered(kind: str, draws: int, rows: int, epsilon: float) -> dict[str, float]:
    """The share of groups whose interval holds the statistic of the group."""
    rng = np.random.default_rng(5)
    values = KINDS[kind](rng, (draws, rows))
    source = wp.source("rows", group=int, value=int)
    asked = source.by("group", keys=range(draws)).agg(
        m=wp.median("value", range(100)),
        q=wp.quantile("value", 0.9, range(0, 100, 7)),
        s=wp.stats.quantiles("value", [0.25, 0.5, 0.75], range(0, 100, 3)),
        t=wp.stats.top_k("value", 3, range(0, 100, 5)),
        d=wp.count_distinct("value"),
        epsilon=5 * epsilon,
    )
    data = list(zip(np.repeat(np.arange(draws), rows).tolist(), values.ravel().tolist(), strict=True))
    columns = wp.simulate(asked, {"rows": data}, seed=7).to_columns()
    ordered = np.sort(values, axis=1)
    found = {}
    for name, q, last in (("m", 0.5, 99), ("q", 0.9, 98), ("s_25", 0.25, 99), ("s_50", 0.5, 99), ("s_75", 0.75, 99)):
        at = [min(rows - 1, math.ceil(q * rows) - 1), min(rows - 1, math.floor(q * rows))]  # both are quantiles
        ends = np.clip(ordered[:, at], 0, last)
        low, high = np.array(columns[f"{name}_low"]), np.array(columns[f"{name}_high"])
        found[name] = float(((low <= ends[:, 1]) & (ends[:, 0] <= high)).mean())
    distinct = np.array([len(set(row)) for row in values.tolist()])
    found["d"] = float(((np.array(columns["d_low"]) <= distinct) & (distinct <= np.array(columns["d_high"]))).mean())
    held = []
    for rank in (1, 2, 3):
        chosen = np.array(columns[f"t_{rank}"])
        counts = (values == chosen[:, np.newaxis]).sum(axis=1)
        held.append((np.array(columns[f"t_{rank}_count_low"]) <= counts) & (counts <= columns[f"t_{rank}_count_high"]))
    found["t"] = float(np.logical_and.reduce(held).mean())
    return found


@for_each("kind", KINDS)
def test_intervals_hold_as_often_as_they_say(kind: str) -> None:
    assert min(covered(kind, 150, 60, 0.5).values()) >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 150)


@pytest.mark.long
@for_each("kind", KINDS)
@for_each("rows", [20, 500])
def test_intervals_hold_in_two_thousand_draws(kind: str, rows: int) -> None:
    assert min(covered(kind, 2000, rows, 0.5).values()) >= 0.935


def test_a_set_of_quantiles_takes_the_way_of_less_error() -> None:
    assert Quantiles("value", range(100), ["1/2"]).chosen
    assert not Quantiles("value", range(100), ["1/4", "1/2", "3/4"]).chosen
    assert Quantiles("value", range(4000), ["1/4", "1/2", "3/4"]).chosen
    rank: dict[str, float] = {}
    rng = np.random.default_rng(3)
    values = rng.integers(0, 400, (60, 200))
    data = {"rows": list(zip(np.repeat(np.arange(60), 200).tolist(), values.ravel().tolist(), strict=True))}
    source = wp.source("rows", group=int, value=int)
    for name, qs in (("choices", ["1/2"]), ("count", [Fraction(i, 20) for i in range(1, 20)])):
        asked = source.by("group", keys=range(60)).agg(s=wp.stats.quantiles("value", qs, range(400)), epsilon=1)
        assert len(asked.measurements) == 1
        chosen = np.array(wp.simulate(asked, data, seed=1).to_columns()["s_50"])[:, np.newaxis]
        rank[name] = float(np.abs((values < chosen).sum(axis=1) - 100).mean())
    assert rank["choices"] < rank["count"] / 3


def test_the_same_confidence_or_less_keeps_the_ends_of_a_choice_and_more_takes_all_candidates() -> None:
    asked = THINGS.by("group", keys=[0]).agg(m=wp.median("value", range(40)), epsilon=9)
    table = wp.simulate(asked, {"things": things(1)}, seed=1)
    given, less, more = (table.row(0, confidence)["m"] for confidence in (0.95, 0.8, 0.99))
    assert given == less
    assert (more.low, more.high) == (0, 39)


def test_quantiles_of_one_name_are_refused() -> None:
    """One of the columns would be shown under the name of the next."""
    for wrong in ([0.25, 0.2500000000001, 0.75], []):
        with pytest.raises(wp.PlanError, match="apart in ten digits"):
            wp.stats.quantiles("value", wrong, range(7))


@for_each("q", [0, 1, -1, 1.5, math.nan, None, True, "x", 1e-300])
def test_a_wrong_quantile_is_said_to_be_one(q: Any) -> None:
    for ask in (
        lambda: wp.quantile("value", q, range(7)),
        lambda: wp.stats.quantiles("value", [q], range(7)),
        lambda: THINGS.select("group").quantile(epsilon=1, q=q, candidates=range(7)),
    ):
        with pytest.raises(wp.PlanError, match="a quantile lies between 0 and 1"):
            ask()


def test_a_median_of_bools_is_written_as_one() -> None:
    asked = THINGS.agg(big=wp.median(lambda t: t.group > 1, [False, True]), epsilon=1)
    table = wp.simulate(asked, {"things": {(3, 1, "a"): 100.0}}, seed=1)
    assert "true (true to true)" in str(table), str(table)
