"""Kernels: for each operator, the change of its output by a change of its inputs.

Operators that are linear in the weights hold no state. A keyed operator holds its inputs by key and, where a
change touches a key, emits what the key's output is now less what it was: the one rule that needs no proof beyond
the operator's own meaning. Join has a second rule for keys whose norm did not change, which is the rule of a
random walk on graphs (paper, section 4.3 and appendix B). GroupBy keeps each group in order of weight, and emits the
prefixes that change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from functools import singledispatch
from operator import itemgetter
from typing import Any

from sortedcontainers import SortedList

from wpinq.errors import PlanError
from wpinq.expr.compile import compile_lambda
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, Weight, Weights, accumulate
from wpinq.plan.operator import Combination, Keyed, Operator, PerRecord
from wpinq.plan.operators import GroupBy, Join
from wpinq.plan.operators.group_by import Placed, placed, prefixes

_ABSENT, _ADDED, _REMOVED = object(), object(), object()


class Journal:
    """An undo log of dictionaries and sorted lists: a proposal is taken back exactly, bit by bit."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, Hashable, Any]] = []

    def put(self, table: dict[Any, Any], key: Hashable, value: Any) -> None:
        """Set an entry; None removes it."""
        self._undo.append((table, key, table.get(key, _ABSENT)))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

    def add(self, ordered: SortedList, item: Hashable) -> None:
        """Put an item into a sorted list."""
        self._undo.append((ordered, item, _ADDED))
        ordered.add(item)

    def remove(self, ordered: SortedList, item: Hashable) -> None:
        """Take an item out of a sorted list."""
        self._undo.append((ordered, item, _REMOVED))
        ordered.remove(item)

    def commit(self) -> None:
        """Forget how to go back."""
        self._undo.clear()

    def rollback(self) -> None:
        """Go back to the last commit."""
        while self._undo:
            held, key, value = self._undo.pop()
            if value is _ADDED:
                held.remove(key)
            elif value is _REMOVED:
                held.add(key)
            elif value is _ABSENT:
                held.pop(key, None)
            else:
                held[key] = value


DUST = 1e-12
"""A float weight that changes cancel down to less than this is taken as 0. Exact arithmetic has no dust."""


class Kernel(ABC):
    """The incremental form of one operator."""

    @abstractmethod
    def push(self, changes: tuple[Weights, ...]) -> Weights:
        """Take the changes of the inputs; give the change of the output."""

    def size(self) -> int:
        """How many records of state are held."""
        return 0


@singledispatch
def kernel(operator: Operator, arithmetic: Arithmetic, journal: Journal) -> Kernel:
    """The kernel of an operator."""
    raise PlanError(f"the incremental engine has no rule for {operator.name}")


class _LinearKernel(Kernel):
    """The change of the output is the operator applied to the change of the input."""

    def __init__(self, operator: PerRecord | Combination, arithmetic: Arithmetic, journal: Journal) -> None:
        self._operator, self._arithmetic = operator, arithmetic

    def push(self, changes: tuple[Weights, ...]) -> Weights:
        return self._operator.evaluate(changes, self._arithmetic)


KeyPart = tuple[Weights, ...]


class _KeyedKernel(Kernel):
    """Recompute the keys that a change touches: emit new − old."""

    def __init__(self, operator: Keyed, arithmetic: Arithmetic, journal: Journal) -> None:
        self._keys = operator.keys()
        self._evaluate_part = operator.part_evaluator(arithmetic)
        self._arithmetic, self._journal = arithmetic, journal
        self._parts: dict[Value, KeyPart] = {}

    def push(self, changes: tuple[Weights, ...]) -> Weights:
        touched: dict[Value, KeyPart] = {}
        for position, (weights, key) in enumerate(zip(changes, self._keys, strict=True)):
            for record, weight in weights.items():
                touched.setdefault(key(record), tuple({} for _ in self._keys))[position][record] = weight
        emitted = (output for key, change in touched.items() for output in self._change_part(key, change))
        return accumulate(emitted, self._arithmetic)

    def size(self) -> int:
        return sum(len(weights) for part in self._parts.values() for weights in part)

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
    if weight == 0 or (isinstance(weight, float) and abs(weight) < DUST):
        return None
    return weight


class _JoinKernel(_KeyedKernel):
    """Where a key's norm stays: `(a·B + A·b + a·b) / norm` for changes a and b, and not the whole product."""

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
    """Each group is kept heaviest first. Prefixes that hold no record whose place changed, or all of them, stay."""

    def __init__(self, operator: GroupBy, arithmetic: Arithmetic, journal: Journal) -> None:
        super().__init__(operator, arithmetic, journal)
        self._reduce = compile_lambda(operator.reduce)
        self._groups: dict[Value, SortedList] = {}

    def _change_part(self, key: Value, change: KeyPart) -> Iterator[tuple[Value, Weight]]:
        part = self._part(key)
        (held,), (changed,) = part, change
        gone = [placed(record, held[record]) for record in changed if held.get(record, 0) > 0]
        self._apply(key, part, change)
        come = [placed(record, held[record]) for record in changed if held.get(record, 0) > 0]
        if not gone and not come:
            return
        group = self._groups.get(key)
        if group is None:
            group = SortedList()
            self._journal.put(self._groups, key, group)
        moved = sorted([*gone, *come])
        most = moved[-1] if {record for *_, record in gone} == {record for *_, record in come} else None
        start = group.bisect_left(moved[0])
        last = group[start - 1][0] if start else 0
        first = sorted(group[:start], key=itemgetter(1))
        for members, weight in self._prefixes(group, start, most, first, last):
            yield (key, self._reduce(members)), -weight
        for item in gone:
            self._journal.remove(group, item)
        for item in come:
            self._journal.add(group, item)
        for members, weight in self._prefixes(group, start, most, first, last):
            yield (key, self._reduce(members)), weight
        if not group:
            self._journal.put(self._groups, key, None)

    def _prefixes(
        self, group: SortedList, start: int, most: Placed | None, first: list[Placed], last: Weight
    ) -> Iterator[tuple[tuple[Value, ...], Weight]]:
        """Those that may change: from the one that ends before `start`, whose next record may be another, to `most`."""
        stop = len(group) if most is None else group.bisect_right(most)
        following = group[stop][0] if stop < len(group) else 0
        return prefixes(group.islice(start, stop), first, last, following)


kernel.register(PerRecord, _LinearKernel)
kernel.register(Combination, _LinearKernel)
kernel.register(Keyed, _KeyedKernel)
kernel.register(Join, _JoinKernel)
kernel.register(GroupBy, _GroupByKernel)
