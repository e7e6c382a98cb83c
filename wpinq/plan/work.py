"""Public numbers of a plan: the unit of its weights, bounds on its records, and its work.

All follow from public bounds, and no bill and no noise depends on them; engines rely on equal weights. Rows are those
of the plan's own steps. An engine that joins several tables at once may use another join order, and make other rows; it
mostly makes fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter
from typing import TypeVar

from wpinq.expr.nodes import Lambda
from wpinq.expr.types import TupleOf
from wpinq.expr.work import work
from wpinq.plan.domain import Counted, NoCount, RowBounds, Sized, Sizes, both, times
from wpinq.plan.lowering import redeclared
from wpinq.plan.node import Node, sources, topological, upward
from wpinq.plan.operators import Source
from wpinq.plan.sensitivity.weights import NO_WEIGHT_BOUND, WeightBound


@dataclass(frozen=True, slots=True)
class _KnownWeights:
    """The known facts of a step's weights: unit, sign and bound."""

    counted: Counted | NoCount
    nonnegative: bool
    bound: WeightBound

    @property
    def of_each(self) -> Fraction | None:
        """The weight of every record, where the plan proves one."""
        found = self.counted
        return found.factor if self.nonnegative and isinstance(found, Counted) and found.even else None


#: Bounds on the rows of a step, and its norm as far as the number of records of its sources bounds it.
_Rows = tuple[RowBounds, Fraction]

#: Of steps by digest: plans of a batch share most of them.
_WEIGHTS: dict[bytes, _KnownWeights] = {}
_ROWS: dict[bytes, _Rows] = {}

#: The most steps of either.
_REMEMBERED = 8192

T = TypeVar("T")


def _upward(root: Node, known: dict[bytes, T], of_step: Callable[[Node, list[T]], T]) -> dict[bytes, T]:
    """The known results of each step, or new ones from a function of the step."""

    def of_known(node: Node, inputs: list[T]) -> T:
        if node.digest not in known:
            if len(known) >= _REMEMBERED:
                known.clear()
            known[node.digest] = of_step(node, inputs)
        return known[node.digest]

    return upward(root, of_known)


def _weights(root: Node) -> dict[bytes, _KnownWeights]:
    return _upward(root, _WEIGHTS, _weights_of)


def _weights_of(node: Node, inputs: list[_KnownWeights]) -> _KnownWeights:
    operator, bounds = node.operator, [below.bound for below in inputs]
    nonnegative = operator.nonnegative(*(below.nonnegative for below in inputs))
    bound = operator.weight_bound(*bounds) if nonnegative else NO_WEIGHT_BOUND
    things = [below.counted for below in inputs if isinstance(below.counted, Counted)]
    broken = (below.counted for below in inputs if isinstance(below.counted, NoCount))
    found = next(broken) if len(things) < len(inputs) else operator.counted(*things)
    if isinstance(found, Counted) and nonnegative:
        one_of_one = all(below.even for below in things) and operator.disjoint_images(*bounds)
        found = replace(found, even=found.even or bound.largest == found.factor or one_of_one)
    return _KnownWeights(found, nonnegative, bound)


def counted(root: Node) -> Counted | NoCount:
    """The unit that a plan's output weights count, or the step at which they stop to be counts.

    With the factor of the unit, or the reason.

    Where a weight is at least the factor and at most a bound of the same size, each record is one thing.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> items = wp.source("items", group=int, facts=["unit_weights"])
    >>> counted(items.group_by(lambda r: r.group, lambda g: F.count(g)).plan)
    Counted(factor=Fraction(1, 2), of='groups of rows of items', even=True)
    """
    return _weights(root)[root.digest].counted


def equal_weights(root: Node) -> Mapping[bytes, Fraction]:
    """The weight of every record of a step, by digest, for steps with one proven weight.

    It holds for all data.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> edges = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
    >>> both = edges.concat(edges.select(lambda e: F.record(src=e.dst, dst=e.src)))
    >>> [str(weight) for weight in equal_weights(both.plan).values()]
    ['1', '1', '1']
    """
    found = ((digest, known.of_each) for digest, known in _weights(root).items())
    return {digest: weight for digest, weight in found if weight is not None}


def row_bounds(root: Node) -> Mapping[bytes, RowBounds]:
    """Bounds on a step's records and handled rows, by digest, from the declarations."""
    weights = _weights(root)

    def of_step(node: Node, inputs: list[_Rows]) -> _Rows:
        operator, below = node.operator, []
        for child, (rows, norm_bound) in zip(node.inputs, inputs, strict=True):
            known = weights[child.digest]
            below.append(Sized(rows, norm_bound, known.bound.largest, known.of_each is not None, known.nonnegative))
        rows = operator.rows(*below)
        if isinstance(operator, Source):  # at most so many records of weight 1
            most = rows.records if operator.exact else None
            return rows, operator.cap if most is None else min(operator.cap, Fraction(most))
        return rows, operator.norm_bound(*(norm_bound for _, norm_bound in inputs))

    return {digest: rows for digest, (rows, _) in _upward(root, _ROWS, of_step).items()}


@dataclass(frozen=True, slots=True)
class StepWork:
    """The most work of one step.

    Attributes
    ----------
    node : Node
        The step.
    rows : int or None
        The rows that it makes or reads; None where no declaration bounds them.
    steps : int or None
        The values and code points that its functions handle, in multiples of the values of a record, and a step for
        each row.
    calls : int
        The calls that its functions are written of.
    """

    node: Node
    rows: int | None
    steps: int | None
    calls: int


@dataclass(frozen=True, slots=True)
class PlanWork:
    """The most work of a plan.

    Attributes
    ----------
    rows, steps : int or None
        Of all steps; None where one of them is not bounded.
    dominant : StepWork
        The step that takes most; where some are not bounded, the first of those.
    unbounded : tuple of str
        The sources that declare no bound on their records.
    each : tuple of StepWork
        Every step, inputs before users.
    """

    rows: int | None
    steps: int | None
    dominant: StepWork
    unbounded: tuple[str, ...]
    each: tuple[StepWork, ...]


def plan_work(root: Node) -> PlanWork:
    """The work of a plan, from its functions and what its sources declare of their records.

    Parameters
    ----------
    root : Node
        The plan.

    Returns
    -------
    PlanWork
        Bounds for all data that the sources may have.

    Notes
    -----
    Privacy cost: none. It depends on the plan and the declarations of its sources alone.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int, records_at_most=1000, keys_at_most={"src": 50})
    >>> paths = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    >>> found = plan_work(paths.plan)
    >>> found.dominant.node.operator.name, found.dominant.rows, found.rows
    ('Join', 52000, 53000)
    """
    rows = row_bounds(root)
    steps = [_of_step(node, rows) for node in topological([root])]
    unknown = [step for step in steps if step.steps is None]
    total, taken = sum(step.rows or 0 for step in steps), sum(step.steps or 0 for step in steps)
    sources = (step.node.operator for step in steps if isinstance(step.node.operator, Source))
    unbounded = tuple(one.source for one in sources if one.sizes is None or one.sizes.records is None)
    if unknown:
        return PlanWork(None, None, unknown[0], unbounded, tuple(steps))
    return PlanWork(total, taken, max(steps, key=lambda step: step.steps or 0), unbounded, tuple(steps))


def _of_step(node: Node, rows: Mapping[bytes, RowBounds]) -> StepWork:
    handled = rows[node.digest].handled
    steps, calls = handled, 0
    for function in functions_of(node, rows):
        taken = work(function.function, tuple(node.inputs[i].unit_growth.text for i in function.of))
        steps, calls = both(steps, times(function.often, taken.steps)), calls + taken.calls
    return StepWork(node, handled, steps, calls)


@dataclass(frozen=True, slots=True)
class FunctionOfStep:
    """A function of a step.

    Attributes
    ----------
    function : Lambda
        The function.
    of : tuple of int
        The inputs of the step that its arguments come from.
    once : bool
        Whether it is called once for each record of its one input, else for each row that the step handles.
    often : int or None
        The most calls; None where no declaration bounds them.
    """

    function: Lambda
    of: tuple[int, ...]
    once: bool
    often: int | None


def functions_of(node: Node, rows: Mapping[bytes, RowBounds]) -> Iterator[FunctionOfStep]:
    """The functions of a step, and their calls."""
    for parameter in node.operator.parameters:
        function = getattr(node.operator, parameter.name, None)
        if parameter.kind in ("function", "widths") and isinstance(function, Lambda):
            once = len(parameter.of) == 1 and not parameter.group
            often = rows[node.inputs[parameter.of[0]].digest].records if once else rows[node.digest].handled
            yield FunctionOfStep(node.operator.bounded_function(function), parameter.of, once, often)


def steps_of_both_sides(root: Node, source: str) -> tuple[str, ...]:
    """The operators that read a source on both sides, by name: these use it more than once.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> steps_of_both_sides(edges.join(edges, lambda x: x.dst, lambda y: y.src).plan, "edges")
    ('Join',)
    """

    def reads(node: Node, inputs: list[bool]) -> bool:
        return any(inputs) or (isinstance(node.operator, Source) and node.operator.source == source)

    read = upward(root, reads)
    both = (node for node in topological([root]) if len(node.inputs) == 2 and all(read[n.digest] for n in node.inputs))
    return tuple(sorted({node.operator.name for node in both}))


# The declaration that would bound a plan better: public, as all of this is.

#: The number of fields of a source that are tried for a declaration that helps.
FIELDS_TRIED = 32


def advice(plan: Node, seconds: Callable[[Node], float]) -> str:
    """The remedy for a plan beyond its limits: the declaration that could lower it most.

    Each declaration is taken as small as can be.

    Parameters
    ----------
    plan : Node
        The plan.
    seconds : callable
        The bound on the time of a plan; infinity where there is none.
    """
    costs = ((seconds(other), words) for words, other in _declared_otherwise(plan))
    least, words = min(costs, key=itemgetter(0), default=(math.inf, ""))
    return f"{words}, or simplify the plan" if least < seconds(plan) / 2 else "simplify the plan, or split the keys"


def _declared_otherwise(plan: Node) -> Iterator[tuple[str, Node]]:
    """The plan over each source with one declaration more, and what it is called."""
    for name, source in sources([plan]).items():
        sizes = source.sizes or Sizes()
        fields = source.record.names if isinstance(source.record, TupleOf) else ()
        for field in [field for field in fields if field is not None][:FIELDS_TRIED]:
            keys = {names: most for names, most in sizes.keys if names != (field,)} | {(field,): 1}
            declared = replace(source, sizes=Sizes(sizes.records, tuple(sorted(keys.items()))))
            yield f"declare a smaller keys_at_most of {field} for {name}", _with(plan, name, declared)
        if sizes.records is not None and Fraction(source.cap) > sizes.records:
            declared = replace(source, cap=Fraction(sizes.records))
            yield f"declare a smaller cap for {name}", _with(plan, name, declared)


def _with(plan: Node, name: str, declared: Source) -> Node:
    return redeclared(plan, lambda source: declared if source.source == name else source)
