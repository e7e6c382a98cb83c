"""The evaluator: plans over one public candidate, changed by proposals that can be undone.

Its meaning is one equation: after any history of proposals, each output equals a fresh evaluation of its plan on
the candidate as it is. Over Fractions that holds exactly; over floats up to drift, which `resynchronize` ends.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import islice
from operator import itemgetter
from typing import Annotated, Any

from wpinq.errors import PlanError
from wpinq.expr.compile import compile_lambda
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weight, Weights, accumulate
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node, topological
from wpinq.plan.operator import Operator
from wpinq.plan.operators import GroupBy, Join
from wpinq.plan.operators.families import Combination, Keyed, PerRecord
from wpinq.plan.operators.group_by import Placed, placed, prefixes
from wpinq.plan.operators.source import Source

# Kernels: for each operator, the change of its output by a change of its inputs.
#
# Operators that are linear in the weights hold no state. A keyed operator holds its inputs by key and, where a
# change touches a key, emits what the key's output is now less what it was: the one rule that needs no proof beyond
# the operator's own meaning. Join has a second rule for keys whose norm did not change, which is the rule of a
# random walk on graphs (paper, section 4.3 and appendix B). GroupBy keeps each group in order of weight, and emits the
# prefixes that change.

_ABSENT = object()


class Journal:
    """An undo log of dictionaries, which takes back a proposal bit by bit."""

    def __init__(self) -> None:
        self._undo: list[tuple[dict[Any, Any], Hashable, Any]] = []

    def put(self, table: dict[Any, Any], key: Hashable, value: Any) -> None:
        """Set an entry; None removes it."""
        self._undo.append((table, key, table.get(key, _ABSENT)))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

    def commit(self) -> None:
        """Forget how to go back."""
        self._undo.clear()

    def rollback(self) -> None:
        """Go back to the last commit."""
        while self._undo:
            table, key, value = self._undo.pop()
            if value is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = value


#: A float weight that changes cancel down to less than this is taken as 0. Exact arithmetic has no dust.
DUST = 1e-12


#: The incremental form of one operator: from the changes of the inputs, the change of the output.
Kernel = Callable[[tuple[Weights, ...]], Weights]


@singledispatch
def kernel(operator: Operator, arithmetic: Arithmetic, journal: Journal) -> Kernel:
    """The kernel of an operator."""
    raise PlanError(f"the incremental engine has no rule for {operator.name}")


@kernel.register(PerRecord)
@kernel.register(Combination)
def _linear_kernel(operator: PerRecord | Combination, arithmetic: Arithmetic, journal: Journal) -> Kernel:
    """The change of the output is the operator applied to the change of the input."""
    return lambda changes: operator.evaluate(changes, arithmetic)


KeyPart = tuple[Weights, ...]


class _KeyedKernel:
    """Recompute the keys that a change touches: emit new − old."""

    def __init__(self, operator: Keyed, arithmetic: Arithmetic, journal: Journal) -> None:
        self._keys = operator.keys()
        self._evaluate_part = operator.part_evaluator(arithmetic)
        self._arithmetic, self._journal = arithmetic, journal
        self._parts: dict[Value, KeyPart] = {}

    def __call__(self, changes: tuple[Weights, ...]) -> Weights:
        touched: dict[Value, KeyPart] = {}
        for position, (weights, key) in enumerate(zip(changes, self._keys, strict=True)):
            for record, weight in weights.items():
                touched.setdefault(key(record), tuple({} for _ in self._keys))[position][record] = weight
        emitted = (output for key, change in touched.items() for output in self._change_part(key, change))
        return accumulate(emitted, self._arithmetic)

    def _change_part(self, key: Value, change: KeyPart) -> Iterator[tuple[Value, Weight]]:
        part = self._part(key)
        for record, weight in self._evaluate_part(key, *part):
            yield record, -weight
        self._apply(key, part, change)
        yield from self._evaluate_part(key, *part)

    def _part(self, key: Value) -> KeyPart:
        part = self._parts.get(key)
        if part is None:
            part = tuple({} for _ in self._keys)
            self._journal.put(self._parts, key, part)
        return part

    def _apply(self, key: Value, part: KeyPart, change: KeyPart) -> None:
        for held, changed in zip(part, change, strict=True):
            for record, weight in changed.items():
                self._journal.put(held, record, settle(held.get(record, 0) + weight))
        if not any(part):
            self._journal.put(self._parts, key, None)


def settle(weight: Weight) -> Weight | None:
    """The weight, or None where it is 0 or, for a float, dust that cancellation left."""
    return None if weight == 0 or (isinstance(weight, float) and abs(weight) < DUST) else weight


class _JoinKernel(_KeyedKernel):
    """The change of a Join, without the whole product where a key's norm stays.

    It is `(a·B + A·b + a·b) / norm` for changes a and b.
    """

    def __init__(self, operator: Join, arithmetic: Arithmetic, journal: Journal) -> None:
        super().__init__(operator, arithmetic, journal)
        self._result = compile_lambda(operator.result)

    def _change_part(self, key: Value, change: KeyPart) -> Iterator[tuple[Value, Weight]]:
        part = self._part(key)
        if not self._keeps_norm(part, change):
            yield from super()._change_part(key, change)
            return
        (left, right), (left_change, right_change) = part, change
        norm = self._arithmetic.total([*map(abs, left.values()), *map(abs, right.values())])
        yield from self._product(left_change, right, norm)
        yield from self._product(left, right_change, norm)
        yield from self._product(left_change, right_change, norm)
        self._apply(key, part, change)

    def _product(self, left: Weights, right: Weights, norm: Weight) -> Iterable[tuple[Value, Weight]]:
        result = self._result
        return ((result(x, y), a * b / norm) for x, a in left.items() for y, b in right.items())

    def _keeps_norm(self, part: KeyPart, change: KeyPart) -> bool:
        shifts = [
            abs(settle(held.get(record, 0) + weight) or 0) - abs(held.get(record, 0))
            for held, changed in zip(part, change, strict=True)
            for record, weight in changed.items()
        ]
        return any(part) and self._arithmetic.total(shifts) == 0


class _GroupByKernel(_KeyedKernel):
    """The change of a GroupBy, whose groups are kept heaviest first.

    Prefixes with no record whose place changed, or with all such records, stay.
    """

    def __init__(self, operator: GroupBy, arithmetic: Arithmetic, journal: Journal) -> None:
        super().__init__(operator, arithmetic, journal)
        self._reduce = compile_lambda(operator.reduce)
        self._groups: dict[Value, list[Placed]] = {}

    def _change_part(self, key: Value, change: KeyPart) -> Iterator[tuple[Value, Weight]]:
        part = self._part(key)
        (held,), (changed,) = part, change
        gone = [placed(record, held[record]) for record in changed if held.get(record, 0) > 0]
        self._apply(key, part, change)
        come = [placed(record, held[record]) for record in changed if held.get(record, 0) > 0]
        if not gone and not come:
            return
        before = self._groups.get(key, [])
        after = before.copy()
        for item in gone:
            del after[bisect_left(after, item)]
        for item in come:
            insort(after, item)
        self._journal.put(self._groups, key, after or None)
        moved = sorted([*gone, *come])
        most = moved[-1] if {record for *_, record in gone} == {record for *_, record in come} else None
        start = bisect_left(before, moved[0])
        last = before[start - 1][0] if start else 0
        first = sorted(before[:start], key=itemgetter(1))
        # the first prefix that may change ends before `start`: its next record may be another
        for group, sign in ((before, -1), (after, 1)):
            stop = len(group) if most is None else bisect_right(group, most)
            following = group[stop][0] if stop < len(group) else 0
            for members, weight in prefixes(islice(group, start, stop), first, last, following):
                yield (key, self._reduce(members)), sign * weight


kernel.register(Keyed, _KeyedKernel)
kernel.register(Join, _JoinKernel)
kernel.register(GroupBy, _GroupByKernel)


class CannotCompile(PlanError):
    """A plan, or numba itself, is out of the compiled engine's reach.

    The message names the step and the reason.

    The python engine (`wpinq.engines.delta.Evaluator`) runs every plan; a caller that falls back to it shows
    this message.
    """


Datasets = Mapping[str, Mapping[Value, Weight]]


class Evaluator:
    """Several plans over one candidate, their shared steps computed once.

    Parameters
    ----------
    plans : sequence of Node
        The plans to keep up to date.
    candidate : mapping
        For each source name, record to weight. Public: a synthetic dataset, never a protected one.
    arithmetic : Arithmetic
        `FLOAT` or `EXACT`.
    goals : sequence of Goal, optional
        One for each plan, to score the outputs by.

    Attributes
    ----------
    score : float
        What the outputs cost by the goals, the pending proposal included.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> degrees = edges.group_by(lambda e: e.src, lambda group: F.count(group))
    >>> evaluator = Evaluator([degrees.plan], {"edges": {(1, 2): 1.0, (1, 3): 1.0}})
    >>> evaluator.propose({"edges": {(1, 4): 1.0}})
    [{(1, 2): -0.5, (1, 3): 0.5}]
    >>> evaluator.rollback()
    >>> evaluator.outputs
    [{(1, 2): 0.5}]
    """

    def __init__(
        self,
        plans: Sequence[Node],
        candidate: Datasets,
        arithmetic: Arithmetic = FLOAT,
        *,
        goals: Sequence[Goal] | None = None,
    ) -> None:
        self._plans, self._goals = tuple(plans), goals or [Goal(plan, 0.0, {}) for plan in plans]
        self._order = list(topological(plans))
        self._arithmetic = arithmetic
        self._sources = {node.operator.source for node in self._order if isinstance(node.operator, Source)}
        self.score = self._committed = 0.0
        self._load(candidate)

    @property
    def outputs(self) -> list[Weights]:
        """The output of each plan on the candidate as it is, a pending proposal included."""
        return [dict(output) for output in self._outputs]

    @property
    def candidate(self) -> dict[str, Weights]:
        """The candidate as it is, a pending proposal included."""
        return {name: dict(weights) for name, weights in self._candidate.items()}

    def propose(self, changes: Datasets) -> list[Weights]:
        """Change the candidate, and return the change of each plan's output.

        The proposal is pending until commit or rollback.

        Parameters
        ----------
        changes : mapping
            For each source name, record to change of weight. Proposals add up until one of the two.
        """
        check_sources(changes, self._sources)
        moved: dict[bytes, Weights] = {}
        for node in self._order:
            operator = node.operator
            if isinstance(operator, Source):
                moved[node.digest] = self._change_source(operator.source, changes.get(operator.source, {}))
            else:
                inputs = tuple(moved[child.digest] for child in node.inputs)
                moved[node.digest] = self._kernels[node.digest](inputs) if any(inputs) else {}
        answers = [moved[plan.digest] for plan in self._plans]
        moved_score = 0.0
        for goal, output, change in zip(self._goals, self._outputs, answers, strict=True):
            for record, weight in change.items():
                before = output.get(record, 0)
                self._journal.put(output, record, settle(before + weight))
                if goal.outside or record in goal.values:
                    value = goal.values.get(record, 0.0)
                    moved_score += goal.cost(before + weight - value) - goal.cost(before - value)
        self.score += moved_score
        return answers

    def commit(self) -> None:
        """Keep the pending proposals."""
        self._journal.commit()
        self._committed = self.score

    def rollback(self) -> None:
        """Take the pending proposals back, exactly."""
        self._journal.rollback()
        self.score = self._committed

    def resynchronize(self) -> None:
        """Evaluate the candidate afresh and commit, which ends the drift of float weights."""
        self._load(self.candidate)

    def _load(self, candidate: Datasets) -> None:
        self._journal = Journal()
        self._kernels: dict[bytes, Kernel] = {
            node.digest: kernel(node.operator, self._arithmetic, self._journal)
            for node in self._order
            if not isinstance(node.operator, Source)
        }
        self._candidate: dict[str, Weights] = {name: {} for name in self._sources}
        self._outputs: list[Weights] = [{} for _ in self._plans]
        self.propose(candidate)
        self.score = math.fsum(goal.score(output) for goal, output in zip(self._goals, self._outputs, strict=True))
        self.commit()

    def _change_source(self, name: str, changes: Mapping[Value, Weight]) -> Weights:
        held = self._candidate[name]
        moved = {record: self._arithmetic.number(weight) for record, weight in changes.items() if weight != 0}
        for record, weight in moved.items():
            self._journal.put(held, record, settle(held.get(record, 0) + weight))
        return moved


def check_sources(changes: Iterable[str], known: Collection[str]) -> None:
    """Refuse changes of a source that no plan uses."""
    for name in changes:
        if name not in known:
            raise PlanError(f"no plan uses a source {name!r}; they use {', '.join(sorted(known))}")


# Goals: the answers that the output of a plan is to fit, and the loss of a difference.


def loss(difference: Annotated[float, "float64"], width: Annotated[float, "float64"]) -> Annotated[float, "float64"]:
    """The absolute value, rounded at its corner: `u²/(2w)` where |u| < w, else `|u| − w/2`.

    An infinite width w stands for the difference u itself, a linear term.

    Source: Huber, Ann. Math. Stat. 1964. The compiled engine takes its source as it stands.

    Examples
    --------
    >>> [loss(u, 1.0) for u in (-3.0, 1.0, 0.5)], [loss(u, 0.0) for u in (-3.0, 1.0, 0.5)]
    ([2.5, 0.5, 0.125], [3.0, 1.0, 0.5])
    >>> loss(-3.0, math.inf)
    -3.0
    """
    size = abs(difference)
    if size >= width:
        return size - 0.5 * width
    return size * size / (2.0 * width) if width < 1e308 else difference


@dataclass(frozen=True, slots=True)
class Goal:
    """A term of a walk's score: `epsilon · Σ_x loss(Q(x) − values[x])`, to be small.

    The sum is over the domain, the keys of `values`.

    `outside` is whether weight on records outside the domain counts too, against 0; `width` is that of `loss`, which is
    the absolute value without one. With an infinite width the term is linear, and its price has either sign.
    """

    plan: Node
    epsilon: float
    values: Mapping[Value, float]
    outside: bool = False
    width: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", physical_plan(self.plan))

    def check(self) -> None:
        """Raise PlanError where the price or the width of a distance is negative or not finite."""
        if not math.isfinite(self.epsilon) or (self.width != math.inf and not self.epsilon >= 0 <= self.width):
            raise PlanError(
                f"the price of a unit of distance and the width must be finite and at least 0, "
                f"not {self.epsilon!r} and {self.width!r}"
            )

    def cost(self, difference: float) -> float:
        """What a difference costs: `epsilon · loss`."""
        return self.epsilon * loss(difference, self.width)

    def score(self, output: Mapping[Value, float]) -> float:
        """What all the differences of an output cost."""
        distance = math.fsum(self.cost(output.get(record, 0.0) - value) for record, value in self.values.items())
        if self.outside:
            distance += math.fsum(self.cost(weight) for record, weight in output.items() if record not in self.values)
        return distance
