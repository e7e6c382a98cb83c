"""Epochs of series as sources, and the nodes of running totals, which an epoch pays at once.

A node of a running total is a measurement over `2^level` epochs. The first node over an epoch pays, there, for one node
of each level: later ones find it paid. A share is for one node: a second node of the same level pays anew.

An epoch is charged, for each level of a tree, the larger of the paid share and the sum of what nodes of this level
cost it. So it pays at least what all nodes cost it, whatever a caller says of trees and levels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from wpinq.errors import PlanError
from wpinq.expr.nodes import digest_of
from wpinq.plan.demand import PartKey, charges
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import plan_properties

#: The parts of a share in the ledger: the paid one, and the sum of the nodes that took it.
PAID, TAKEN = "paid", "taken"

MOST_LEVELS = 32


@dataclass(frozen=True, slots=True)
class Prepaid:
    """The place of a measurement in a running total.

    Attributes
    ----------
    tree : str
        The identity of the running total: template, query, keys and epsilon.
    level : int
        The level of the node, over `2^level` epochs.
    levels : int
        The number of levels that each epoch owes.
    """

    tree: str
    level: int
    levels: int

    def __post_init__(self) -> None:
        sound = all(type(number) is int for number in (self.level, self.levels)) and isinstance(self.tree, str)
        if not sound or not 0 <= self.level < self.levels <= MOST_LEVELS:
            raise PlanError(f"a running total has 1 to {MOST_LEVELS} levels, and its nodes are in one of them")


def source_at(template: Source, label: str) -> Source:
    """The source of an epoch; PlanError where the template has none of that label."""
    if template.epoch is None or not label:
        raise PlanError(f"{template.source!r} is no series, or no epoch was named: declare it by wp.series")
    epoch = replace(template.epoch, label=str(label))
    return replace(template, source=epoch.source, epoch=epoch)


def prepaid_charges(
    nodes: Iterable[Any],
    earlier: Callable[[str], Mapping[str, Fraction]],
    parts: dict[PartKey, Fraction],
) -> dict[str, Fraction]:
    """What the accounts owe for nodes of running totals, beside what was paid for before.

    Parameters
    ----------
    nodes : iterable of measurements
        Those with `prepaid`.
    earlier : callable
        For the digest of a share, what the ledger has of it.
    parts : dict
        The new state of the shares, to which these are added.
    """
    owed = defaultdict[str, Fraction](Fraction)
    for node in nodes:
        place: Prepaid = node.prepaid
        for name, moved in node.sink.stability(node.plan).items():
            cost = moved * node.epsilon
            for level in range(place.levels):
                share = digest_of("prepaid", place.tree, name, str(level)).hex()
                held = {PAID: Fraction(0), TAKEN: Fraction(0), **earlier(share)}
                held |= {part: parts[share, part] for part in held if (share, part) in parts}
                before = max(held.values())
                held[PAID] = max(held[PAID], cost)
                held[TAKEN] += cost if level == place.level else 0
                parts |= {(share, part): demand for part, demand in held.items()}
                owed[name] += max(held.values()) - before
    return charges(owed, {name: s for node in nodes for name, s in plan_properties(node.plan).sources.items()})
