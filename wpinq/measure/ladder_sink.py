"""What the sinks have in common that take a plan for a graph and release an integer from a ladder: no weights.

The plan gives the edges, and is billed by edges: each pays epsilon.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import AnswersError
from wpinq.expr.types import STR, Type
from wpinq.expr.values import Value
from wpinq.ladders.rungs import Ladder
from wpinq.ladders.simple_graph import SimpleGraph
from wpinq.measure.edge_plans import edge_source, uses_of_an_edge
from wpinq.measure.sink import Sink
from wpinq.plan.certify import Certificate
from wpinq.plan.node import Node
from wpinq.plan.operators import Source


class LadderSink(Sink):
    """An integer near one that a graph has, by the ladder mechanism."""

    key_type: ClassVar[Type] = STR
    single: ClassVar[bool] = True
    key: ClassVar[str]
    """The key of the integer."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the answers: that of the integer, and that of the ladder's width where it is released too."""
        return (self.key,)

    @abstractmethod
    def ladder(self, graph: SimpleGraph) -> Ladder:
        """The ladder of a protected graph."""

    @abstractmethod
    def scales(self, certificate: Certificate, epsilon: Fraction) -> tuple[float, ...]:
        """The scale for each of the keys: of the rungs, and of the noise on the width."""

    def identity(self) -> tuple[bytes | str, ...]:
        return ("ladder", self.name)

    def check(self, plan: Node) -> None:
        edge_source(plan, self.name)

    def stability(self, plan: Node) -> Mapping[str, Fraction]:
        source = edge_source(plan, self.name).operator
        assert isinstance(source, Source)
        return {source.source: uses_of_an_edge(source)}

    def usage(self, plan: Node, source: str, word: str) -> tuple[str, str]:
        whole = self.stability(plan)[source] == 1
        return "changes by one edge " + ("a record" if whole else "for the two records of one"), ""

    def asked(self, plan: Node, epsilon: Fraction) -> tuple[Node, Fraction]:
        ((_, share),) = self.stability(plan).items()
        return edge_source(plan, self.name), epsilon * share

    def value(self, numbers: Mapping[Value, float]) -> Value:
        if tuple(numbers) != self.keys:
            raise AnswersError(f"the answers of {self.name} have the keys {', '.join(self.keys)}")
        return max(0.0, numbers[self.key])
