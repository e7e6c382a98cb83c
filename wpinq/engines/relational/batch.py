"""Plans that are evaluated together: what they have in common is made once, and stays until the last that reads it.

Each plan keeps its own program, so that its weights have the bits that they have when it is evaluated alone: they
depend on the plan and on the data, never on the company. What that leaves to share is tables of equal names, and
partial sums (`Script.partly_summed`), which are exact, of every step that several steps or outputs read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from wpinq.engines.relational.blocks.block import Block
from wpinq.engines.relational.programs import Plan
from wpinq.engines.relational.running import unmade
from wpinq.engines.relational.sql.dialect import Dialect
from wpinq.plan.node import Node, topological

SHARED_USES = 3
"""How many must read a step for it to be partly summed: two may each be better off with what their filters leave."""

AT_ONCE = 64
"""How many plans are added up in one statement."""


def shared_steps(roots: Sequence[Node]) -> frozenset[bytes]:
    """The steps, by digest, that several other steps or outputs of some plans read."""
    users: dict[bytes, set[bytes]] = {root.digest: {b"output"} for root in roots}
    for node in topological(roots):
        for child in node.inputs:
            users.setdefault(child.digest, set()).add(node.digest)
    return frozenset(digest for digest, by in users.items() if len(by) >= SHARED_USES)


class Batch:
    """Plans that are yet to be evaluated, and which tables they want.

    Parameters
    ----------
    roots : sequence of Node
        The plans; one that is evaluated twice is there twice.
    """

    def __init__(self, roots: Sequence[Node]) -> None:
        self._waiting = Counter(roots)
        self._steps = {root: frozenset(_steps(root)) for root in self._waiting}
        self._shared = shared_steps(roots)
        self._met = Counter(step for steps in self._steps.values() for step in steps)
        self._wants: dict[Node, frozenset[str]] = {}
        self._wanted: Counter[str] = Counter()
        self._making = False
        self._alike: dict[Block, list[Node]] | None = None

    def __contains__(self, root: Node) -> bool:
        return root in self._waiting

    def plan(self, root: Node) -> Plan:
        """One of the plans, with the steps that it shares."""
        return Plan(root, shared=self._shared & self._steps[root])

    def read_often(self, dialect: Dialect) -> frozenset[str]:
        """The tables that several statements or outputs of these plans read."""
        readers: dict[str, set[object]] = {}
        for root in self._steps:
            compiled = self.plan(root).program(dialect)
            reading = [(statement.creates, statement.reads) for statement in compiled.statements]
            for reader, tables in [*reading, (root, compiled.reads)]:
                for table in tables:
                    readers.setdefault(table, set()).add(reader)
        return frozenset(table for table, by in readers.items() if len(by) > 1)

    def alike(self, root: Node) -> list[Plan]:
        """One of the plans, and some to come that add up the same rows by the same columns."""
        if self._alike is None:
            self._alike = {}
            for other in self._steps:
                added = self.plan(other).program().added
                if added is not None:
                    self._alike.setdefault(added.block, []).append(other)
        added = self.plan(root).program().added
        roots = [] if added is None else self._alike[added.block]
        others = [other for other in roots if other != root and other in self._waiting]
        return [self.plan(root), *map(self.plan, others[: AT_ONCE - 1])]

    def begin(self, root: Node) -> None:
        """One of the plans is evaluated. What it makes may be wanted, until all is known of it."""
        self._waiting[root] -= 1
        if not self._waiting[root]:
            del self._waiting[root]
            self._met.subtract(self._steps[root])
            self._wanted.subtract(self._wants.pop(root, ()))
        self._making = any(self._met[step] > 0 for step in self._steps[root])

    def end(self, stands: Callable[[str], bool]) -> None:
        """It was: now it is known what the others read of what stands."""
        self._making = False
        for root in self._waiting:
            if root in self._wants:
                continue
            compiled = self.plan(root).program()
            statements = {statement.creates: statement for statement in compiled.statements}
            needed = unmade(compiled.reads, statements, stands)
            self._wants[root] = frozenset(
                (*compiled.reads, *(table for name in needed for table in statements[name].reads))
            )
            self._wanted.update(self._wants[root])

    def wants(self, table: str) -> bool:
        """Whether a table is to stay that nobody reads now."""
        return self._making or self._wanted[table] > 0


def _steps(root: Node) -> Iterator[bytes]:
    """The steps of a plan that are no sources, by digest."""
    return (node.digest for node in topological([root]) if node.inputs)
