"""What once went wrong where no other test looked: ties, mixed words of the interpreter, unchecked targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

import wpinq as wp
from tests.incremental import research
from tests.incremental.interpreted import interpret
from tests.incremental.test_compiled_swaps import graph
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.engines.delta.compiled import CannotCompile, CompiledEvaluator, EdgeWalk, Goal, SwapWalk, routine
from wpinq.engines.delta.compiled.hash_tables.evaluator import MOST_OUTPUTS
from wpinq.engines.delta.compiled.routine import PRELUDE
from wpinq.engines.delta.evaluator import loss
from wpinq.errors import PlanError

PLAN = research.closed_by_intersect(research.EDGES).plan
START = graph(5, 10, 22)
WALKS: dict[str, Callable[[list[Goal]], SwapWalk | EdgeWalk]] = {
    "lists": lambda targets: SwapWalk(targets, "edges", START, symmetric=False, seed=3),
    "tables": lambda targets: SwapWalk(targets, "edges", START, symmetric=False, seed=3, virtual=False),
    "edges": lambda targets: EdgeWalk(targets, "edges", START, range(-7, 21, 3), symmetric=False, seed=3, changing=0.0),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_decision_takes_one_draw_however_a_tie_rounds(interpreted_modules: None, name: str) -> None:
    """Differences of 1e-13 are kept like none, but a draw that only some of them took would turn what follows."""
    even, rounded = (WALKS[name]([Goal(PLAN, price, {0: 0.0, 1: 0.0, 2: 0.0})]) for price in (0.0, 1e-13))
    for _ in range(5):
        steps = even.run(12, 1.0), rounded.run(12, 1.0)
        assert even.edges == rounded.edges
    assert steps[0].accepted == steps[0].evaluated == steps[1].accepted > 10
    assert rounded.progress.score > 0


@pytest.mark.parametrize("name", ["mix", "mix_too"])
def test_words_are_mixed_alike_in_64_bits_and_interpreted(name: str) -> None:
    mixed, words = vars(interpret(PRELUDE))[name], getattr(routine, name)
    rng = Random(name)
    edges = [0, 1, -1, 2**61 + 2, 2**63 - 1, -(2**63)]
    pairs = [(a, b) for a in edges for b in edges]
    pairs += [(rng.randrange(-(2**63), 2**63), rng.randrange(-(2**63), 2**63)) for _ in range(200)]
    with np.errstate(over="ignore"):
        assert [mixed(a, b) for a, b in pairs] == [int(words(np.int64(a), np.int64(b))) for a, b in pairs]


def test_groups_whose_members_hash_alike_are_told_apart(interpreted_modules: None) -> None:
    """Of Python's integers, 3 and 2**61 + 2 have one hash."""
    query = wp.source("s", int).group_by(lambda x: 0, lambda g: F.collect(g))
    engine = CompiledEvaluator([query.plan], {"s": {3: 1.0}})
    assert engine.outputs == [{(0, (3,)): 0.5}]
    engine.propose({"s": {3: -1.0, 2**61 + 2: 1.0}})
    assert engine.outputs == [{(0, (2**61 + 2,)): 0.5}]


@for_each("name", WALKS)
@for_each(("price", "width"), [(-1.0, 0.0), (math.inf, 0.0), (1.0, -0.5), (1.0, math.nan)])
def test_walks_refuse_prices_and_widths_that_are_no_loss(name: str, price: float, width: float) -> None:
    with pytest.raises(PlanError, match="must be finite and at least 0"):
        WALKS[name]([Goal(PLAN, price, {0: 1.0}, width=width)])


def test_without_a_width_the_loss_is_the_absolute_value_to_the_last_bit() -> None:
    sizes = np.random.default_rng(1).normal(size=200) * 10.0 ** np.linspace(-300, 300, 200)
    assert [loss(size, 0.0) for size in sizes.tolist()] == np.abs(sizes).tolist()


def test_as_many_plans_as_may_be_keep_their_losses_apart(interpreted_modules: None) -> None:
    """What the last one costs stands in the words next to those of what is missing, and of what is not checked."""
    numbers = wp.source("s", int)
    counted = [numbers.select(lambda x, i=i: x % (i + 2)).plan for i in range(MOST_OUTPUTS)]
    plans = [numbers.group_by(lambda x: 0, lambda g: F.sum(F.collect(g))).select(lambda p: p.val).plan, *counted]
    with pytest.raises(CannotCompile, match=f"at most {MOST_OUTPUTS} plans"):
        CompiledEvaluator(plans, {"s": {}})
    goals = [Goal(plan, 0.5 + n, {1: 2.0, 99: 1.0}, n % 2 == 0, 0.3 * n) for n, plan in enumerate(plans[:-1])]
    engine = CompiledEvaluator(plans[:-1], {"s": {}}, goals=goals)
    for changes in ({1: 1.0, 3: 1.0}, {4: 1.0}, {3: -1.0, 90: 0.5}):
        engine.propose({"s": changes})
        engine.commit()
        expected = 0.0
        for n, output in enumerate(engine.outputs):
            beyond = [weight for record, weight in output.items() if record not in (1, 99)] if n % 2 == 0 else []
            differences = [output.get(1, 0.0) - 2.0, output.get(99, 0.0) - 1.0, *beyond]
            expected += (0.5 + n) * sum(loss(difference, 0.3 * n) for difference in differences)
        assert engine.score == pytest.approx(expected, abs=1e-9)
