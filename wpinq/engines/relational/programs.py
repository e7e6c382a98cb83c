"""The programs of plans as far as they are known: compiled anew when a table turns out to have equal weights."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from wpinq.dataset import WeightRange
from wpinq.engines.relational.compiler import Compiled, compile_anew, compile_plan
from wpinq.engines.relational.rewrites import REWRITES
from wpinq.engines.relational.sql.dialect import DUCKDB, Dialect
from wpinq.engines.relational.sql.script import Equal, Rewrite
from wpinq.engines.relational.sql.written_steps import WrittenSteps
from wpinq.errors import PlanError
from wpinq.plan.node import Node

Found = Mapping[str, WeightRange]
"""The least and the greatest weight of tables: of those that stand, and of those that stood over the same data."""

HELD = 512
"""How many programs are remembered, those used last."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, the rewrites to make, its steps that others share, by digest, and whether it is asked for keys."""

    root: Node
    rewrites: tuple[Rewrite, ...] = REWRITES
    shared: frozenset[bytes] = frozenset()
    asked: bool = False


class Programs:
    """Programs by plan, each with the weights that were found so far.

    Weights that are found in protected data must not outlive them: `clear` when any of the data goes.
    """

    def __init__(self, dialect: Dialect = DUCKDB) -> None:
        self._dialect = dialect
        self._held: OrderedDict[Plan, _Settled] = OrderedDict()
        self._written = WrittenSteps()

    def __len__(self) -> int:
        return len(self._held)

    def clear(self) -> None:
        """Forget all of them."""
        self._held.clear()
        self._written.clear()

    def settled(self, plan: Plan, found: Found) -> Compiled:
        """The program of a plan with all weights that are known by now, of those that it leaves open."""
        held = self._held.pop(plan, None) or self._begun(plan, _equal(found, found))
        while new := _equal(held.compiled.open, found) - held.equal - held.refused:
            # all that is known at once: a table that the program names later may be among them
            known = _equal(found, found) - held.refused
            for equal in (held.equal | known, *(held.equal | {one} for one in sorted(new))):
                try:
                    held.compiled, held.equal = self._compiled(plan, equal), equal
                    break
                except PlanError:  # only the plan may be refused, never what the data are
                    pass
            else:
                held.refused |= new
        self._held[plan] = held
        while len(self._held) > HELD:
            self._held.popitem(last=False)
        return held.compiled

    def _begun(self, plan: Plan, known: Equal) -> _Settled:
        with contextlib.suppress(PlanError):
            return _Settled(self._compiled(plan, known), known)
        return _Settled(self._compiled(plan, frozenset()))

    def _compiled(self, plan: Plan, equal: Equal) -> Compiled:
        plain = (plan.root, plan.rewrites, equal, self._dialect, plan.shared, plan.asked)
        return compile_anew(*plain, self._written) if equal else compile_plan(*plain)


@dataclass(slots=True)
class _Settled:
    """A program, the equal weights that it was compiled with, and those with which it cannot be."""

    compiled: Compiled
    equal: Equal = frozenset()
    refused: Equal = frozenset()


def _equal(tables: Iterable[str], found: Found) -> Equal:
    """Which of some tables are known to have rows of one weight, and that weight."""
    ranges = ((table, found[table]) for table in tables if table in found)
    return frozenset((table, least) for table, (least, most) in ranges if least is not None and least == most)
