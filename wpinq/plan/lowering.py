"""Plans over other sources: of physical types, for engines, or with other declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from operator import is_
from typing import Any

from wpinq.expr.nodes import Call, Constant, Lambda
from wpinq.expr.types import Type, physical
from wpinq.plan.domain import Sizes
from wpinq.plan.node import Node, upward
from wpinq.plan.operator import Operator
from wpinq.plan.operators.source import Source


@lru_cache(maxsize=1024)
def physical_plan(root: Node) -> Node:
    """The plan that gives the same records as ints and strings.

    It is the plan itself where all records are such.

    The sources keep their names: the data need the same translation.

    Examples
    --------
    >>> import datetime
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> visits = wp.source("visits", day=datetime.date)
    >>> print(physical_plan(visits.select(lambda v: F.truncate(v.day, "month")).plan).type)
    int
    """
    return over(root, _erased)


def over(root: Node, changed: Callable[[Operator], Operator]) -> Node:
    """The plan with changed operators; a step stays where it and its inputs are unchanged."""

    def again(node: Node, inputs: list[Node]) -> Node:
        operator = changed(node.operator)
        same = operator is node.operator and all(map(is_, inputs, node.inputs))
        return node if same else Node(operator, tuple(inputs))

    return upward(root, again)[root.digest]


def _erased(operator: Operator) -> Operator:
    changed: dict[str, Any] = {}
    for item in fields(operator):  # type: ignore[arg-type]  # every operator is a dataclass
        value = getattr(operator, item.name)
        plain = _plain(value)
        if plain is not value:
            changed[item.name] = plain
    if isinstance(operator, Source) and changed:
        changed["schema"] = repr(changed["record"])
    return replace(operator, **changed) if changed else operator  # type: ignore[type-var]


def _plain(value: Any) -> Any:
    if isinstance(value, Lambda):
        return _plain_function(value)
    if isinstance(value, Constant):
        return value.core
    return physical(value) if isinstance(value, Type) else value


def _plain_function(function: Lambda) -> Lambda:
    """The function on physical records, from those of its argument to those of its result.

    It is known by its core only.
    """
    core = function.core
    same = all(map(is_, core.parameters, function.parameters))
    if same and physical(function.type) is function.type:
        return function
    body = Call(core.type, "core", core.parameters, (function.digest.hex(),), core.body)
    return Lambda(core.type, core.level, core.parameters, body)


# Plans over sources that declare more, or less, than before: the same queries of the same data.


def with_facts(root: Node, facts: Callable[[Source], frozenset[str]]) -> Node:
    """The plan over the same sources with other facts; the plan itself where they are the same.

    Parameters
    ----------
    root : Node
        The plan.
    facts : callable
        From a source to the facts that it is to declare.

    Raises
    ------
    PlanError
        When a source cannot declare them: `Source.check` says it before anything is billed.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> simple = with_facts(edges.plan, lambda source: frozenset({"unit_weights", "simple"}))
    >>> simple.operator.facts
    ('simple', 'unit_weights')
    """

    return redeclared(root, lambda source: replace(source, facts=tuple(sorted(facts(source)))))


def with_records_at_most(root: Node, records: Mapping[str, int]) -> Node:
    """The plan with bounds on the records of some sources, otherwise declared as before.

    Parameters
    ----------
    root : Node
        The plan.
    records : mapping
        Name of a source to the most records that it may have.

    Raises
    ------
    PlanError
        When a number is no bound.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int, keys_at_most={"src": 50})
    >>> with_records_at_most(edges.plan, {"edges": 1000}).operator.sizes.words
    ('at most 1,000 records', 'at most 50 records with one src')
    """

    def bounded(source: Source) -> Source:
        if source.source not in records:
            return source
        keys = () if source.sizes is None else source.sizes.keys
        return replace(source, sizes=Sizes(records[source.source], keys))

    return redeclared(root, bounded)


def redeclared(root: Node, declared: Callable[[Source], Source]) -> Node:
    """The plan over sources that are declared otherwise, by a function of each."""

    def again(operator: Operator) -> Operator:
        source = declared(operator) if isinstance(operator, Source) else operator
        return operator if source == operator else source

    return over(root, again)
