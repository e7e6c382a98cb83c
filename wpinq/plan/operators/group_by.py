"""GroupBy: a function of the records that share a key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import Type, record_type
from wpinq.expr.values import Value, order_key
from wpinq.plan.arithmetic import SUM_ROUNDING_UNITS, Arithmetic, Weight, Weights
from wpinq.plan.domain import KEYS_LIMIT, Counted, Domain, Inference, NoCount, RowBounds, Sized, both, kept, times
from wpinq.plan.operator import InputChange, Parameter, Parameters, function_type, register
from wpinq.plan.operators.families import Keyed
from wpinq.plan.sensitivity import change as changes
from wpinq.plan.sensitivity.change import UNKNOWN, Change, ChangeBounds, Term, added, any_record, applied, matching
from wpinq.plan.sensitivity.weights import WeightBound, followed


@register
@dataclass(frozen=True, slots=True)
class GroupBy(Keyed):
    """Collect the records of each key and reduce every prefix of them, heaviest first.

    Each prefix is reduced to one record.

    Per key, with records ordered so that weights do not increase, `x_0, x_1, …`, and `A(x_n) = 0`:
    `out((key, reduce({x_0 … x_i}))) += (A(x_i) − A(x_{i+1})) / 2`   (paper, section 2.5)

    Records of unit weight give one output a key, of weight 1/2. The reducer gets a group as a list in canonical
    order, never in order of weight, so its result is a function of the set. Negative weights count as 0.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> degrees = edges.group_by(lambda e: e.src, lambda group: F.count(group))
    >>> wp.evaluate(degrees, {"edges": {(1, 2): 1.0, (1, 3): 1.0, (2, 1): 1.0}})
    WeightedDataset({(1, 2): 0.5, (2, 1): 0.5})
    """

    name: ClassVar[str] = "GroupBy"
    method: ClassVar[str] = "group_by"
    parameters: ClassVar[Parameters] = (
        Parameter("key", "function"),
        Parameter("reduce", "function", group=True, optional=True),
    )
    stability: ClassVar[str] = (
        "a change of one weight by w that keeps the order moves two outputs by w/2 each; others are sums of such"
    )

    key: Lambda
    reduce: Lambda

    def output_type(self, *inputs: Type) -> Type:
        return record_type({"key": function_type(self.name, self.key), "val": function_type(self.name, self.reduce)})

    def norm_bound(self, *inputs: Fraction) -> Fraction:
        return inputs[0] / 2

    def rounding_units(self) -> Fraction:
        return 1 + SUM_ROUNDING_UNITS  # the difference of two weights; a half of it is exact

    def nonnegative(self, *inputs: bool) -> bool:
        return True  # negative weights count as 0

    def lattice(self, *inputs: Fraction) -> Fraction:
        return inputs[0] / 2

    def counted(self, *inputs: Counted) -> Counted | NoCount:
        (things,) = inputs
        if not things.even:
            return NoCount(self.name, "gives an output for each weight in a group; use shave before it to count groups")
        return Counted(things.factor / 2, f"groups of {things.of}", even=True)  # one output a key, which it contains

    def group(self, below: RowBounds) -> int | None:
        """The most records of one group."""
        return below.at_key(matching(self.key, any_record("key", self.key.core.type)))

    def rows(self, *inputs: Sized) -> RowBounds:
        (below,) = inputs
        parts = any_record("key", self.key.core.type)
        group = self.group(below.rows)
        records = any_record("field", self.key.core.parameters[0].type)
        a_key = followed(below.rows.a_key, records, changes.record((applied(self.key, [records]), UNKNOWN)))
        outputs = 1 if below.even else group  # one for each weight in a group, and no more than it has records
        if outputs is not None:
            a_key[frozenset([(0,)])] = outputs
            leaves = frozenset((0, *path) for path, part in parts.paths(KEYS_LIMIT) if not part.fields)
            if len(leaves) == len(list(parts.leaves())):  # fewer would not distinguish keys
                a_key[leaves] = outputs
        # every prefix of a group is read, of one weight the group alone
        looked_at = below.rows.records if below.even else times(below.rows.records, group)
        return RowBounds(below.rows.records, kept(a_key), both(below.rows.records, looked_at))

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return inference.product([inference.of_function(self.key, inputs), inference.of_function(self.reduce, [None])])

    def change(self, *inputs: InputChange) -> Change:
        (below,) = inputs
        rules = set(below.change.rules)
        limit = below.weight_bound.largest

        def of_key(key: Term, move: ChangeBounds) -> tuple[Term, ChangeBounds]:
            # A record that moves gives half of it to its own prefix, and takes that half from the one before.
            half = move.total / 2
            if key.known and limit is not None and limit / 2 < half:
                rules.add(HALF_A_KEY)
                half = limit / 2
            return changes.record((key, UNKNOWN)), ChangeBounds.of(half, half, move.total)

        atoms = [of_key(key, move) for key, move in below.change.by(lambda term: applied(self.key, [term]))]
        return added(atoms, rules)

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        (below,) = inputs
        if below.largest is None:
            return WeightBound()
        half = below.largest / 2  # what the prefixes of a key weigh together: half of the heaviest record
        return WeightBound(half, {frozenset([(0,)]): half})

    def keys(self) -> tuple[Callable[[Value], Value], ...]:
        return (compile_lambda(self.key),)

    def part_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        reduce = compile_lambda(self.reduce)

        def evaluate_part(key: Value, part: Weights) -> Iterable[tuple[Value, Weight]]:
            ordered = sorted(placed(record, weight) for record, weight in part.items() if weight > 0)
            for group, weight in prefixes(ordered):
                yield (key, reduce(group)), weight

        return evaluate_part


HALF_A_KEY = "at most half a record for each key (M)"

#: A record of positive weight: less its weight, its key in canonical order, itself. Sorted, the heaviest is first.
Placed = tuple[Weight, tuple[Any, ...], Value]


def placed(record: Value, weight: Weight) -> Placed:
    """The record as it is sorted within its group."""
    return -weight, order_key(record), record


def prefixes(
    rest: Iterable[Placed], first: Iterable[Placed] = (), last: Weight = 0, following: Weight = 0
) -> Iterator[tuple[tuple[Value, ...], Weight]]:
    """The prefixes that end with the records of `first` or later, and their weights.

    Each prefix is in canonical order.

    `first` is in canonical order and `rest` heaviest first. What follows `first`, which ends with `last`, is `rest`,
    and what follows `rest` is `following`: both less a weight, 0 for none.
    """
    orders, members = [order for _, order, _ in first], [record for _, _, record in first]
    for negated, order, record in rest:
        if negated != last and members:
            yield tuple(members), (negated - last) / 2
        place = bisect_left(orders, order) if orders and order < orders[-1] else len(orders)
        orders.insert(place, order)  # two lists, not a sorted container: nearly all the time goes into the tuples
        members.insert(place, record)
        last = negated
    if following != last and members:
        yield tuple(members), (following - last) / 2
