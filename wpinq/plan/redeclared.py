"""Plans over sources that promise more, or less, than they were declared with: the same queries of the same data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wpinq.plan.node import Node, upward
from wpinq.plan.operators.source import Source


def with_facts(root: Node, facts: Callable[[Source], frozenset[str]]) -> Node:
    """The plan over the same sources with other facts; the plan itself where they are the same.

    Parameters
    ----------
    root : Node
        The plan.
    facts : callable
        From a source to the facts that it is to promise.

    Raises
    ------
    PlanError
        When a source cannot promise them: `Source.check` says it before anything is billed.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> simple = with_facts(edges.plan, lambda source: frozenset({"unit_weights", "simple"}))
    >>> simple.operator.facts
    ('simple', 'unit_weights')
    """

    def redeclared(node: Node, inputs: list[Node]) -> Node:
        operator = node.operator
        if isinstance(operator, Source):
            promised = tuple(sorted(facts(operator)))
            return node if promised == operator.facts else Node(replace(operator, facts=promised))
        same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
        return node if same else Node(operator, tuple(inputs))

    return upward(root, redeclared)[root.digest]
