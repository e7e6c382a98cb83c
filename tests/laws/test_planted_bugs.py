"""The checks have teeth: each planted bug is a change of a line or two in the real code, and is caught.

A plant names the checks that catch it, and whether it breaks stability or only the meaning of an operator: both are
asserted. A plant whose line is no longer in the code fails, and must be written anew.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add, or_
from typing import Any

import pytest

from tests.support.algebra import check_law
from tests.support.bounds import wrong_bounds
from tests.support.floats import check_floats
from tests.support.operators import failing_tables
from tests.support.plans import OPERATORS
from tests.support.stability import check_stability
from wpinq.plan import arithmetic
from wpinq.plan.arithmetic import Arithmetic, Weights
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import (
    Concat,
    Except,
    GroupBy,
    Join,
    Partition,
    SelectMany,
    Shave,
    Source,
    Where,
    families,
    group_by,
)
from wpinq.plan.operators.families import Combination, Extreme
from wpinq.plan.properties import PlanProperties, plan_properties
from wpinq.plan.sensitivity.stability import stability

PLANS = 1_000
"""The most plans that are searched for a violation; the search stops at the first."""

STABLE_PLANS = 100
"""The plans on which a bug that changes only the meaning is seen to be stable."""


@dataclass(frozen=True)
class Plant:
    """A bug: where it is, the changes of the text there, the operators at the root of the plans that look for it."""

    name: str
    owner: Any
    function: str
    changes: tuple[tuple[str, str], ...]
    caught_by: tuple[str, ...]
    roots: tuple[str, ...] = OPERATORS
    replacement: Any = None

    @property
    def breaks_stability(self) -> bool:
        """Whether a unit of change can move the output by more than what is billed."""
        return "stability" in self.caught_by


CHECKS: dict[str, Callable[[Plant], bool]] = {
    "tables": lambda plant: not failing_tables(),
    "bounds": lambda plant: not wrong_bounds(),
    "stability": lambda plant: not check_stability(1, PLANS, plant.roots, until=1).violations,
    "floats": lambda plant: not check_floats(1, 200, plant.roots).violations,
    "linearity": lambda plant: not check_law("per_record_operators_are_linear", 1, 20).wrong,
    "shave inverse": lambda plant: not check_law("shave_is_undone_by_keeping_the_record", 1, 40).wrong,
    "join symmetry": lambda plant: not check_law("join_is_symmetric", 1, 40).wrong,
    "union and intersect": lambda plant: not check_law("union_and_intersect_add_up_to_concat", 1, 40).wrong,
}

CERTIFY = sys.modules["wpinq.plan.properties"]
"""The module, whose name its function takes."""

STABILITY = sys.modules["wpinq.plan.sensitivity.stability"]
DEMAND = sys.modules["wpinq.plan.demand"]

PATHS = "counts[child.digest] = counts.get(child.digest, 0) + counts[node.digest]"


def _positive_difference(self: Except, inputs: tuple[Weights, ...], arithmetic: Arithmetic) -> Weights:
    difference = Combination.evaluate(self, inputs, arithmetic)
    return {record: weight for record, weight in difference.items() if weight > 0}


def _uses_with_the_larger_of_a_concat(root: Node) -> dict[str, int]:
    counted: dict[bytes, Counter[str]] = {}
    for node in topological([root]):
        if isinstance(node.operator, Source):
            counted[node.digest] = Counter({node.operator.source: 1})
        else:
            inputs = [counted[child.digest] for child in node.inputs]
            larger = isinstance(node.operator, Concat)
            counted[node.digest] = reduce(or_ if larger else add, inputs)
    return counted[root.digest]


PLANTS = (
    Plant(
        "GroupBy without the half",
        group_by,
        "prefixes",
        (("(negated - last) / 2", "negated - last"), ("(following - last) / 2", "following - last")),
        ("tables", "stability"),
        ("GroupBy",),
    ),
    Plant(
        "GroupBy hands the reducer the order of weights",
        group_by,
        "prefixes",
        (("bisect_left(orders, order) if orders and order < orders[-1] else len(orders)", "len(orders)"),),
        ("tables", "stability"),
        ("GroupBy",),
    ),
    Plant(
        "GroupBy does not clip negative weights",
        GroupBy,
        "part_evaluator",
        (("if weight > 0", "if weight != 0"),),
        ("tables", "stability"),
        ("GroupBy",),
    ),
    Plant(
        "GroupBy clips by absolute value",
        GroupBy,
        "part_evaluator",
        (("placed(record, weight)", "placed(record, abs(weight))"), ("if weight > 0", "if weight != 0")),
        ("tables",),  # |w| moves no more than w does
        ("GroupBy",),
    ),
    Plant(
        "GroupBy lets the first of tied records stand for all, in order of arrival",
        GroupBy,
        "part_evaluator",
        (
            ("sorted(placed(record, weight) for", "sorted((placed(record, weight) for"),
            ("if weight > 0)", "if weight > 0), key=lambda item: item[0])"),
            ("for group, weight in prefixes(ordered):", "for i, (negated, _, _) in enumerate(ordered):"),
            (
                "    yield (key, reduce(group)), weight",
                "    if i == 0 or negated != ordered[i - 1][0]:\n"
                "                group = tuple(r for _, r in sorted((order, r) for _, order, r in ordered[: i + 1]))\n"
                "                following = next((item[0] for item in ordered[i:] if item[0] != negated), 0)\n"
                "                yield (key, reduce(group)), (following - negated) / 2",
            ),
        ),
        ("tables", "stability", "floats"),
        ("GroupBy",),
    ),
    Plant(
        "Join divided by Σw instead of Σ|w|",
        Join,
        "part_evaluator",
        (
            (
                "total([*map(abs, left.values()), *map(abs, right.values())])",
                "total([*left.values(), *right.values()]) or 1",
            ),
        ),
        ("tables", "stability"),
        ("Join",),
    ),
    Plant(
        "Join divided by the larger norm instead of the sum",
        Join,
        "part_evaluator",
        (
            (
                "total([*map(abs, left.values()), *map(abs, right.values())])",
                "max(total(map(abs, left.values())), total(map(abs, right.values())))",
            ),
        ),
        ("tables", "stability"),
        ("Join",),
    ),
    Plant(
        "Join not divided",
        Join,
        "part_evaluator",
        (("a * b / norm", "a * b"),),
        ("tables", "stability"),
        ("Join",),
    ),
    Plant(
        "Join divided by the left norm twice",
        Join,
        "part_evaluator",
        (("*map(abs, right.values())", "*map(abs, left.values())"),),
        ("tables", "stability", "join symmetry"),
        ("Join",),
    ),
    Plant(
        "Join on a fixed-point grid",
        Join,
        "part_evaluator",
        (("a * b / norm", "arithmetic.number(int(a * b / norm * 1024)) / 1024"),),
        ("tables", "stability"),
        ("Join",),
    ),
    Plant(
        "Join skips null keys",
        Join,
        "part_evaluator",
        (("if not left or not right:", "if key is None or not left or not right:"),),
        ("tables",),
        ("Join",),
    ),
    Plant(
        "Intersect over common keys only",
        Extreme,
        "record_evaluator",
        (
            (
                "((record, choose(left, right)),)",
                "((record, choose(left, right)),) if choose is max or left and right else ()",
            ),
        ),
        ("tables", "stability", "union and intersect"),
        ("Intersect",),
    ),
    Plant(
        "Union over common keys only",
        Extreme,
        "record_evaluator",
        (
            (
                "((record, choose(left, right)),)",
                "((record, choose(left, right)),) if choose is min or left and right else ()",
            ),
        ),
        ("tables", "stability", "union and intersect"),
        ("Union",),
    ),
    Plant(
        "Union as the sum",
        Extreme,
        "record_evaluator",
        (("choose(left, right)", "(left + right if choose is max else min(left, right))"),),
        ("tables", "union and intersect", "stability"),
        ("Union",),
    ),
    Plant(
        "Shave does not clamp widths",
        Shave,
        "_varying",
        (
            ("if left <= 0:\n", "if False:\n"),
            ("if width is not None and width > 0:", "if width is not None:"),
            ("left -= piece", "left -= Fraction(width)"),
            ("arithmetic.number(piece)", "arithmetic.number(max(0, piece))"),
        ),
        ("tables", "stability"),
        ("Shave",),
    ),
    Plant(
        "Shave stops at a zero width",
        Shave,
        "_varying",
        (("if width is not None and width > 0:", "if not width:\n                return\n            if width > 0:"),),
        ("tables",),
        ("Shave",),
    ),
    Plant(
        "Shave lets negative weights through",
        Shave,
        "_constant",
        (("if weight <= 0:\n", "if weight <= 0:\n            yield (record, 0), weight\n"),),
        ("tables",),  # the one piece moves as the weight does
        ("Shave",),
    ),
    Plant(
        "Shave rounds the last piece up",
        Shave,
        "_constant",
        (("yield (record, whole), rest", "yield (record, whole), width"),),
        ("tables", "stability", "shave inverse"),
        ("Shave",),
    ),
    Plant(
        "SelectMany without max(1, ·)",
        SelectMany,
        "images",
        (("max(Fraction(1), EXACT.total(map(abs, merged.values())))", "EXACT.total(map(abs, merged.values())) or 1"),),
        ("tables", "stability"),  # norms below 1 become 1, which is allowed
        ("SelectMany",),
    ),
    Plant(
        "SelectMany takes the norm before repeats are merged",
        SelectMany,
        "images",
        (
            ("pairs = ((item, Fraction(weight))", "pairs = list((item, Fraction(weight))"),
            ("EXACT.total(map(abs, merged.values()))", "EXACT.total(abs(weight) for _, weight in pairs)"),
        ),
        ("tables",),  # the norm can only be larger
        ("SelectMany",),
    ),
    Plant(
        "SelectMany does not divide weighted lists",
        SelectMany,
        "images",
        (("number(weight / norm)", "number(weight)"),),
        ("tables", "stability"),
        ("SelectMany",),
    ),
    Plant(
        "SelectMany does not divide lists",
        SelectMany,
        "images",
        (("(item, weight / norm) for", "(item, weight) for"),),
        ("tables", "stability"),
        ("SelectMany",),
    ),
    Plant(
        "SelectMany takes the norm of signed weights",
        SelectMany,
        "images",
        (("EXACT.total(map(abs, merged.values()))", "EXACT.total(merged.values())"),),
        ("tables", "stability"),
        ("SelectMany",),
    ),
    Plant(
        "Where keeps null predicates",
        Where,
        "images",
        (("if predicate(record) else", "if predicate(record) is not False else"),),
        ("tables",),
        ("Where",),
    ),
    Plant(
        "Select keeps the absolute weight",
        families.PerRecord,
        "evaluate",
        (("weight * coefficient", "abs(weight) * coefficient"),),
        ("tables", "linearity"),
        ("Select",),
    ),
    Plant(
        "the last of equal records wins",
        families,
        "accumulate",
        (("sums[record] = [held, weight]", "sums[record] = weight"),),
        ("tables", "stability"),
    ),
    Plant(
        "Except drops negative weights",
        Except,
        "evaluate",
        (),
        ("tables",),  # a clamp moves no more than what it clamps
        ("Except",),
        _positive_difference,
    ),
    Plant(
        "float sums in order of arrival",
        arithmetic,
        "FLOAT",
        (),
        ("floats",),
        replacement=arithmetic.Arithmetic("float", float, sum),
    ),
    Plant(
        "a shared node counted once",
        STABILITY,
        "paths_from",
        ((PATHS, "counts[child.digest] = max(counts.get(child.digest, 0), counts[node.digest])"),),
        ("bounds", "stability"),
    ),
    Plant(
        "a node that is both inputs counted once",
        STABILITY,
        "paths_from",
        (("for child in below(node):", "for child in dict.fromkeys(below(node)):"),),
        ("bounds", "stability"),
    ),
    Plant(
        "Concat counted as the larger of its inputs",
        PlanProperties,
        "stability",
        (),
        ("stability",),
        replacement=property(lambda certificate: _uses_with_the_larger_of_a_concat(certificate.root)),
    ),
    Plant(
        "partitions by different keys taken for one",
        DEMAND,
        "_part_key",
        (("split.digest, operator.key.digest, *own)", "split.digest, *own)"),),
        ("bounds", "stability"),
        ("Concat", "Except"),
    ),
    Plant(
        "parts of a partition told apart by how they are written",
        Partition,
        "__post_init__",
        (('object.__setattr__(self, "part", part)', "return"),),
        ("bounds",),
    ),
    Plant(
        "one part of a partition pays for itself only once",
        CERTIFY,
        "demand",
        (
            (
                "owed[alone] += max(held.values()) - largest",
                "owed[alone] = max(owed[alone], max(held.values()) - largest)",
            ),
        ),
        ("bounds", "stability"),
        ("Concat", "Except"),
    ),
    Plant(
        "rounding_error forgets paths",
        PlanProperties,
        "rounding_error",
        (("step.paths * step.rounding", "step.rounding"),),
        ("bounds",),
    ),
    Plant(
        "rounding_error forgets all but the root",
        PlanProperties,
        "rounding_error",
        (("in self.steps.values())", "in [self.output])"),),
        ("bounds",),
    ),
    Plant(
        "the norm bound of a Union is the larger one",
        Extreme,
        "norm_bound",
        (("sum(inputs, Fraction(0))", "max(inputs)"),),
        ("bounds", "floats"),
        ("Union",),
    ),
    Plant(
        "the norm bound of a Join is half of what it is",
        Join,
        "norm_bound",
        (("left * right / (left + right)", "left * right / (left + right) / 2"),),
        ("bounds", "floats"),
        ("Join",),
    ),
)

assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 15


@pytest.fixture(autouse=True)
def _no_certificate_is_remembered() -> Iterator[None]:
    plan_properties.cache_clear()
    CERTIFY._slack.cache_clear()
    stability.cache_clear()
    STABILITY._KNOWN.clear()
    yield
    plan_properties.cache_clear()
    CERTIFY._slack.cache_clear()
    stability.cache_clear()
    STABILITY._KNOWN.clear()


def plant_bug(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the bug in place of the real code."""
    bug = plant.replacement
    if bug is None:
        original = getattr(plant.owner, plant.function)
        original = original.func if isinstance(original, cached_property) else original
        text = textwrap.dedent(inspect.getsource(original))
        for old, new in plant.changes:
            assert text.count(old) == 1, f"the code has changed: write the plant anew ({old!r})"
            text = text.replace(old, new)
        defined: dict[str, Any] = {}
        exec(compile("from __future__ import annotations\n" + text, "planted", "exec"), original.__globals__, defined)
        bug = defined[plant.function]
    if isinstance(bug, cached_property):
        bug.__set_name__(plant.owner, plant.function)
    monkeypatch.setattr(plant.owner, plant.function, bug)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bug_is_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_bug(plant, monkeypatch)
    for check in plant.caught_by:
        assert not CHECKS[check](plant), f"{check} did not notice: {plant.name}"
    if not plant.breaks_stability:
        assert not check_stability(1, STABLE_PLANS, plant.roots, until=1).violations


@pytest.mark.parametrize(
    "check", [*sorted(CHECKS.keys() - {"stability"}), pytest.param("stability", marks=pytest.mark.long)]
)
def test_without_a_bug_every_check_passes(check: str) -> None:
    assert CHECKS[check](Plant("nothing", CERTIFY, "demand", (), (check,)))
