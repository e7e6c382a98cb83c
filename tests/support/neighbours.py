"""Two neighbouring datasets for a plan, built by hand, and how far the plan moves between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import wpinq as wp
from tests.support import moves
from wpinq.api.query import Query
from wpinq.plan.node import topological
from wpinq.plan.operators import Source

Data = Mapping[Any, Fraction | int | float | str]


@dataclass(frozen=True)
class Neighbours:
    """A plan and two neighbours in its source `rows`; its other sources stand still.

    Attributes
    ----------
    rows, change : mapping
        The dataset, and the weights that are added to it: one step of the source, of any size.
    others : mapping
        The datasets of the other sources.
    part : str
        What of the move is looked at: its total, its increase or its decrease.
    """

    query: Query
    rows: Data
    change: Data
    others: Mapping[str, Data] = field(default_factory=dict)
    part: str = "total"

    @property
    def size(self) -> Fraction:
        """The distance of the neighbours."""
        return sum((abs(Fraction(weight)) for weight in self.change.values()), Fraction(0))

    def outputs(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """What the plan gives for either."""
        near = {record: Fraction(weight) for record, weight in self.rows.items()}
        for record, weight in self.change.items():
            near[record] = near.get(record, Fraction(0)) + Fraction(weight)
        before, after = (
            wp.evaluate(self.query, {"rows": rows, **self.others}, exact=True) for rows in (self.rows, near)
        )
        return dict(before.items()), dict(after.items())

    @property
    def moves(self) -> Fraction:
        """How far the output moves for each unit of distance."""
        gained, lost = moves.norms(moves.difference(*self.outputs()))
        return {"total": gained + lost, "increase": gained, "decrease": lost}[self.part] / self.size

    @property
    def bound(self) -> Fraction:
        """What is said of that: what is billed, where it is the total."""
        if self.part == "total":
            return self.query.stability()["rows"]
        root = self.query.plan
        (plan,) = (
            p for p in moves.followed(root) if isinstance(p.cut.operator, Source) and p.cut.operator.source == "rows"
        )
        return max(
            sum((getattr(move, self.part) for move in way.moved[root.digest].change.atoms.values()), Fraction(0))
            / way.weight
            for way in plan.ways
        )

    def broken(self) -> list[str]:
        """Where a step of the plan moves further than is said of it."""
        root = self.query.plan
        names = {n.digest: n.operator.source for n in topological([root]) if isinstance(n.operator, Source)}
        exact = {
            name: {r: Fraction(w) for r, w in data.items()} for name, data in {**self.others, "rows": self.rows}.items()
        }
        near = dict(exact["rows"])
        for record, weight in self.change.items():
            near[record] = near.get(record, Fraction(0)) + Fraction(weight)
        found: list[str] = []
        for plan in moves.followed(root):
            if names.get(plan.cut.digest) != "rows":
                continue
            states = ({**exact, "rows": data} for data in (exact["rows"], near))
            before, after = (
                moves.outputs(plan.steps, {digest: state[name] for digest, name in names.items()}, math.inf)
                for state in states
            )
            assert before is not None and after is not None
            record, weight = next(iter(self.change.items()))
            loop = len(plan.ways) > 1 and record[0] == record[1]
            unit = moves.unit_values(plan.cut.type, record)
            found += [
                what for what, _ in moves.broken(plan, plan.ways[loop and -1], unit, Fraction(weight), before, after)
            ]
        return found
