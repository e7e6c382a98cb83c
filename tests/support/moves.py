"""Each step of a plan held to what the rules say of it, in exact arithmetic, as one cut changes by one step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from wpinq.expr.definition import primitive_named
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, below_first
from wpinq.expr.types import TupleOf, Type
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.node import Node, upward
from wpinq.plan.operator import InputChange
from wpinq.plan.operators import Join, Source
from wpinq.plan.sensitivity import change, stability
from wpinq.plan.sensitivity.change import Change, ChangeBounds, Path, Term
from wpinq.plan.sensitivity.weights import WeightBound, ratio_of

Weights = Mapping[Any, Fraction]

RECORDS_LIMIT = 400
"""Larger outputs are not worth their time."""

_UNTOLD = object()
"""The value of a term that holds a closure, which is not worked out here: it matches anything."""

Said = dict[bytes, list[tuple[Expr, list[Term]]]]
"""What each term of a call stands for: every call that was given that term, with the terms of its arguments."""


@contextmanager
def overheard() -> Iterator[Said]:
    """What stands behind the terms that are made meanwhile."""
    said: Said = {}
    whole = change._of_expression

    def listening(expression: Expr, variables: dict[int, Term], found: dict[bytes, Term]) -> Term:
        term = whole(expression, variables, found)
        if isinstance(expression, Constant):
            said.setdefault(term.digest, []).append((expression, []))
        elif isinstance(expression, Call) and term.known and not term.fields and expression.name != "record":
            arguments = [found[argument.digest] for argument in expression.arguments]
            if not (expression.name == "field" and arguments[0].fields):
                calls = said.setdefault(term.digest, [])
                if (expression, arguments) not in calls:
                    calls.append((expression, arguments))
        return term

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change, "_of_expression", listening)
        yield said


class Values:
    """The values of terms, given those of the unit's fields: AssertionError where one term has two values."""

    def __init__(self, said: Said, unit: Mapping[bytes, Any]) -> None:
        self.said = said
        self.known = dict(unit)

    def of(self, term: Term) -> Any:
        if term.digest in self.known:
            return self.known[term.digest]
        if term.fields:
            value: Any = tuple(self.of(part) for part in term.fields)
            if _UNTOLD in value:
                value = _UNTOLD
        else:
            given = [self._called(*call) for call in self.said.get(term.digest, [])]
            value = given[0] if given else _UNTOLD
            assert all(repr(other) == repr(value) for other in given), "one term, two values"
        self.known[term.digest] = value
        return value

    def _called(self, expression: Expr, arguments: Sequence[Term]) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        assert isinstance(expression, Call)
        values = [self.of(argument) for argument in arguments]
        if _UNTOLD in values or any(isinstance(argument, Lambda) for argument in expression.arguments):
            return _UNTOLD
        return primitive_named(expression.name).implement(expression.attributes)(*values)

    def matches(self, term: Term, value: Any) -> bool:
        """Whether a record can be one that a term stands for."""
        if term.fields:
            return (
                isinstance(value, tuple)
                and len(value) == len(term.fields)
                and all(map(self.matches, term.fields, value))
            )
        if not term.known:
            return True
        found = self.of(term)
        return found is _UNTOLD or bool(found == value)


def unit_values(type_: Type, record: Any, path: Path = ()) -> dict[bytes, Any]:
    """The values of the fields of a unit, as `any_record` names them."""
    if isinstance(type_, TupleOf) and not type_.nullable:
        parts = zip(type_.elements, record, strict=True)
        return {k: v for i, (t, r) in enumerate(parts) for k, v in unit_values(t, r, (*path, i)).items()}
    return {change.any_record("unit", type_, path=path).digest: record}


@dataclass(frozen=True)
class Way:
    """One way in which a cut changes by a step: what the rules say of every step of the plan."""

    weight: Fraction
    moved: Mapping[bytes, InputChange]
    said: Said


@dataclass(frozen=True)
class Followed:
    """A plan and one of its cuts.

    Attributes
    ----------
    steps : list of Node
        From the cuts to the root.
    ways : list of Way
        Of a symmetric source two: a pair, and a loop.
    bound : Fraction
        What is claimed of the root, for each unit of weight.
    """

    cut: Node
    steps: list[Node]
    ways: list[Way]
    bound: Fraction


def followed(root: Node) -> list[Followed]:
    """A plan from each of its cuts."""
    steps = list(below_first([root], stability._below))
    signs = upward(root, lambda node, inputs: node.operator.nonnegative(*inputs))
    found = []
    for cut, claimed in stability.stability.__wrapped__(root).items():
        ways = []
        for number, (step, weight) in enumerate(steps_of(cut)):
            way = stability._Way(cut, number, step, ratios=True)
            moved: dict[bytes, InputChange] = {}
            with overheard() as said:
                for node in steps:
                    moved[node.digest] = stability._at(node, moved, signs[node.digest], way)
            ways.append(Way(weight, moved, said))
        found.append(Followed(cut, steps, ways, claimed.bound))
    return found


def steps_of(cut: Node) -> Sequence[tuple[Change, Fraction]]:
    """The ways in which a cut changes."""
    if isinstance(cut.operator, Source):
        return cut.operator.steps()
    return (
        (
            Change({change.any_record("unit", cut.type): ChangeBounds(Fraction(1), Fraction(0), Fraction(1))}),
            Fraction(1),
        ),
    )


def outputs(
    steps: Sequence[Node], cuts: Mapping[bytes, Weights], limit: float = RECORDS_LIMIT
) -> dict[bytes, Weights] | None:
    """The output of every step, from the datasets at the cuts; None where there are too many records."""
    found: dict[bytes, Weights] = {}
    for node in steps:
        if node.digest in cuts:
            found[node.digest] = {record: weight for record, weight in cuts[node.digest].items() if weight}
        else:
            found[node.digest] = node.operator.evaluate(tuple(dict(found[i.digest]) for i in node.inputs), EXACT)
            if len(found[node.digest]) > limit:
                return None
    return found


def difference(before: Weights, after: Weights) -> dict[Any, Fraction]:
    """What changed, record by record."""
    zero = Fraction(0)
    changed = {record: after.get(record, zero) - before.get(record, zero) for record in {**before, **after}}
    return {record: weight for record, weight in changed.items() if weight}


def norms(change: Mapping[Any, Fraction]) -> tuple[Fraction, Fraction]:
    """What is gained and lost in all."""
    gained = sum((weight for weight in change.values() if weight > 0), Fraction(0))
    lost = sum((-weight for weight in change.values() if weight < 0), Fraction(0))
    return gained, lost


def broken(
    plan: Followed, way: Way, unit: Mapping[bytes, Any], size: Fraction, before: Mapping[bytes, Weights], after: Any
) -> Iterator[tuple[str, Node]]:
    """Where a step moves further than is said of it, as the cut gains `size` times a step: what, and the step."""
    values = Values(way.said, unit)
    for node in plan.steps:
        moved = way.moved[node.digest]
        changed = difference(before[node.digest], after[node.digest])
        if changed and (gone := exceeded(changed, moved.change.atoms, size, values)):
            yield gone, node
        if isinstance(node.operator, Join):
            sides = [way.moved[child.digest] for child in node.inputs]
            if any(out_of_ratio(node, sides, data) for data in (before, after)):
                yield "ratio", node
        for data in (before[node.digest], after[node.digest]):
            if moved.nonnegative and any(weight < 0 for weight in data.values()):
                yield "sign", node
            if heavier(data, moved.weight_bound) or misplaced(data, moved.weight_bound, plan.steps, (before, after)):
                yield "ceiling", node
    root = plan.steps[-1].digest
    step = plan.cut.digest
    far = sum(norms(difference(before[step], after[step])))
    if sum(norms(difference(before[root], after[root]))) > plan.bound * far:
        yield "bound", plan.steps[-1]


def exceeded(
    changed: Mapping[Any, Fraction], atoms: Mapping[Term, ChangeBounds], size: Fraction, values: Values
) -> str | None:
    """Whether a change is a sum of the atoms: what falls on records of no other atoms is no more than these allow."""
    by_atoms: dict[frozenset[Term], list[Fraction]] = {}
    for record, weight in changed.items():
        matching = frozenset(term for term in atoms if values.matches(term, record))
        if not matching:
            return "record"
        by_atoms.setdefault(matching, [Fraction(0), Fraction(0)])[weight < 0] += abs(weight)
    groups = list(by_atoms)
    chosen = {frozenset().union(*some) for n in range(1, 4) for some in combinations(groups, n)} if groups else set()
    chosen.add(frozenset(atoms))
    for some in chosen:
        gained = sum((sums[0] for of, sums in by_atoms.items() if of <= some), Fraction(0))
        lost = sum((sums[1] for of, sums in by_atoms.items() if of <= some), Fraction(0))
        allowed = [atoms[term] for term in some]
        if gained > size * sum(move.increase for move in allowed):
            return "increase"
        if lost > size * sum(move.decrease for move in allowed):
            return "decrease"
        if gained + lost > size * sum(move.total for move in allowed):
            return "total"
    return None


def out_of_ratio(node: Node, sides: Sequence[InputChange], data: Mapping[bytes, Weights]) -> bool:
    """Whether the sides of a Join are not in the ratio at some key that is said of them at all."""
    operator = node.operator
    assert isinstance(operator, Join)
    ratio = ratio_of(*(side.proportions for side in sides), operator._keys)
    if ratio is None:
        return False
    balance: dict[Any, Fraction] = {}
    shares = ratio.left, -ratio.right
    for child, key, share in zip(node.inputs, operator.keys(), shares, strict=True):
        for record, weight in data[child.digest].items():
            at = key(record)
            balance[at] = balance.get(at, Fraction(0)) + share * weight
    return any(balance.values())


def heavier(data: Weights, weight_bound: WeightBound) -> bool:
    """Whether weights exceed what is said of them."""
    if weight_bound.largest is not None and any(weight > weight_bound.largest for weight in data.values()):
        return True
    for fields, bound in weight_bound.a_key.items():
        sums: dict[Any, Fraction] = {}
        for record, weight in data.items():
            key = tuple(_field(record, path) for path in sorted(fields))
            sums[key] = sums.get(key, Fraction(0)) + weight
        if any(weight > bound for weight in sums.values()):
            return True
    return False


def misplaced(
    data: Weights, weight_bound: WeightBound, steps: Sequence[Node], states: Sequence[Mapping[bytes, Weights]]
) -> bool:
    """Whether it holds a record that is not in the source of which it is said to be a part, in that direction."""
    if weight_bound.oriented is None:
        return False
    name, turned = weight_bound.oriented
    (source,) = (n.digest for n in steps if isinstance(n.operator, Source) and n.operator.source == name)
    return not any(all((r[::-1] if turned else r) in state[source] for r in data) for state in states)


def _field(record: Any, path: Path) -> Any:
    for place in path:
        record = record[place]
    return record
