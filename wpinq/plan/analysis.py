"""What a plan costs and how far its floats may stray: static, from the plan alone.

Cost is linear: a demand of epsilon at the root flows down to the sources, adding up along every path. Demands
on the parts of one Partition do not add up: the dataset that was split owes the largest of them, for one
unit of change lies in one part. Counts are exact rationals, so a node shared two hundred levels deep is billed in
microseconds for what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from wpinq.expr.nodes import digest_of
from wpinq.plan.node import Node, topological
from wpinq.plan.operator import Operator
from wpinq.plan.operators import (
    Concat,
    Except,
    GroupBy,
    Intersect,
    Join,
    Partition,
    Select,
    SelectMany,
    Shave,
    Source,
    Union,
    Where,
)

UNIT_ROUNDOFF = Fraction(1, 2**53)

SUM_ROUNDOFFS = Fraction(33, 32)
"""What adding up equal records may round: one roundoff a sum, and 1/32 for grids and for terms of second order."""

_ROUNDOFFS: Mapping[type[Operator], Fraction] = {
    Source: Fraction(0),  # it is what was given
    Where: Fraction(0),  # a weight stays or goes
    Partition: Fraction(0),
    Union: Fraction(0),  # a maximum is one of its arguments
    Intersect: SUM_ROUNDOFFS,  # so is a minimum, but an engine may put it together from parts
    Concat: SUM_ROUNDOFFS,
    Except: SUM_ROUNDOFFS,
    Select: SUM_ROUNDOFFS,
    SelectMany: 2 + SUM_ROUNDOFFS,  # the share of an element, and its product with the weight
    GroupBy: 1 + SUM_ROUNDOFFS,  # the difference of two weights; a half of it is exact
    Join: 7 + SUM_ROUNDOFFS,  # a product, a sum of norms, a quotient: 3; norms: 3, and 1 for their grid
}

PARTITION_SLACK = Fraction(1, 2**12)
"""The least widening of noise over parts of a partition: see `slack`."""

PartKey = tuple[str, str]
"""A part of a partition, as the ledger knows it: digest of the partition, digest of the part."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a batch of releases asks: epsilon times uses for each source, and the new demand on each part.

    Attributes
    ----------
    sources : dict
        Source name to epsilon times uses, before the unit weight.
    parts : dict
        Cumulative demand on each part that the batch touches, counting what earlier batches asked of it.
    nodes : dict
        The demand that reaches each node, by digest.
    """

    sources: dict[str, Fraction]
    parts: dict[PartKey, Fraction]
    nodes: dict[bytes, Fraction]


def demand(
    roots: Sequence[tuple[Node, Fraction]],
    earlier: Callable[[str], Mapping[str, Fraction]] = lambda partition: {},
    scope: Callable[[Node], str] = lambda split: "",
) -> Demand:
    """The demand of a batch of releases, each a root and its epsilon.

    Parameters
    ----------
    roots : sequence of (Node, Fraction)
        What is released, and with which epsilon.
    earlier : callable
        For the digest of a partition, the demand on each part in earlier batches. The batch owes only the
        increase of the maximum.
    scope : callable
        For a dataset that is split, what tells apart the versions of the data below it.
    """
    reaching: dict[bytes, Fraction] = {}
    waiting: dict[bytes, dict[str, dict[str, Fraction]]] = {}
    by_source: dict[str, Fraction] = {}
    parts: dict[PartKey, Fraction] = {}
    for root, epsilon in roots:
        reaching[root.digest] = reaching.get(root.digest, Fraction(0)) + epsilon
    for node in reversed(list(topological(root for root, _ in roots))):
        owed = reaching.get(node.digest, Fraction(0))
        for partition, asked in waiting.pop(node.digest, {}).items():
            held = dict(earlier(partition))
            largest = max(held.values(), default=Fraction(0))
            for part, epsilon in asked.items():
                held[part] = held.get(part, Fraction(0)) + epsilon
                parts[partition, part] = held[part]
            owed += max(held.values()) - largest
        reaching[node.digest] = owed
        operator = node.operator
        if isinstance(operator, Source):
            by_source[operator.source] = by_source.get(operator.source, Fraction(0)) + owed
        elif isinstance(operator, Partition):
            (split,) = node.inputs
            partition = digest_of("partition", scope(split), split.digest, operator.key.digest).hex()
            asked = waiting.setdefault(split.digest, {}).setdefault(partition, {})
            part = operator.part.digest.hex()
            asked[part] = asked.get(part, Fraction(0)) + owed
        else:
            for child in node.inputs:
                reaching[child.digest] = reaching.get(child.digest, Fraction(0)) + owed
    return Demand(by_source, parts, reaching)


def uses(root: Node) -> dict[str, int]:
    """How often a plan uses each source: what one unit of change there can move the output by."""
    return {name: int(count) for name, count in demand([(root, Fraction(1))]).sources.items()}


def path_counts(root: Node) -> dict[bytes, int]:
    """The number of paths from the root to each node."""
    counts = {root.digest: 1}
    for node in reversed(list(topological([root]))):
        for child in node.inputs:
            counts[child.digest] = counts.get(child.digest, 0) + counts[node.digest]
    return counts


def masses(root: Node, source_mass: Callable[[Source], Fraction] = lambda source: source.cap) -> dict[bytes, Fraction]:
    """A bound on the norm of every node's output, from bounds on the sources' (their caps)."""
    bounds: dict[bytes, Fraction] = {}
    for node in topological([root]):
        if isinstance(node.operator, Source):
            bounds[node.digest] = source_mass(node.operator)
        else:
            bounds[node.digest] = node.operator.mass(*(bounds[child.digest] for child in node.inputs))
    return bounds


def roundoffs(operator: Operator) -> Fraction:
    """How many roundoffs of the mass of its output, in norm, every engine keeps an operator's own rounding within.

    An engine may round a sum later than at the operator that calls for it, after steps that only drop records; it must
    not round it twice. The remainder of a division is exact, so a Shave by one width rounds nothing; where widths
    are given per record, pieces are rounded once, or put on a grid and rounded twice.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> roundoffs(numbers.where(lambda x: x > 0).plan.operator), roundoffs(numbers.concat(numbers).plan.operator)
    (Fraction(0, 1), Fraction(33, 32))
    """
    if isinstance(operator, Shave):
        return Fraction(0) if isinstance(operator.widths, float) else Fraction(3)
    return _ROUNDOFFS[type(operator)]


def rounding_error(root: Node) -> Fraction:
    """A bound on the norm of (float output − exact output): `Σ_v paths(v) · roundoffs(v) · 2⁻⁵³ · M(v)`.

    Exact operators are 1-Lipschitz, so what one operator rounds reaches the root once per path, unamplified.
    """
    counts, bounds = path_counts(root), masses(root)
    steps = ((node.digest, roundoffs(node.operator)) for node in topological([root]))
    total = sum((counts[digest] * constant * bounds[digest] for digest, constant in steps), Fraction(0))
    return UNIT_ROUNDOFF * total


def slack(root: Node, readouts: int = 0, *, exact: bool = False) -> Fraction:
    """The relative widening η of the noise that covers rounding: `2 · e(root) / unit_weight`.

    `readouts` counts further numbers computed from the root's output before noise, each exactly and rounded once. With
    `exact`, outputs are put back on a lattice, and there is no rounding to cover but that of other parts.

    Two neighbours' float outputs differ by at most `uses · d + 2 e(root)` in norm for sources at distance d; with
    d at least the unit weight and uses at least 1 that is at most `uses · d · (1 + η)`.

    Releases over parts of one partition pay for the largest of them only, and one part may round more than another. So
    where a plan has up to n > 0 Partitions on a path, η' takes the place of η, with H = 2⁻¹² and
    `1 + η' = (1 + H) · max(1, 2ⁿ⁺¹ η / H)`: rounding then takes no more than a share H of what is paid, whatever the
    parts. `docs/privacy.md` has the proof.
    """
    nodes = list(topological([root]))
    weights = [node.operator.unit_weight for node in nodes if isinstance(node.operator, Source)]
    readout_error = readouts * SUM_ROUNDOFFS * UNIT_ROUNDOFF * masses(root)[root.digest]
    widening = Fraction(0) if exact else 2 * (rounding_error(root) + readout_error) / min(weights)
    depth: dict[bytes, int] = {}
    for node in nodes:
        below = max((depth[child.digest] for child in node.inputs), default=0)
        depth[node.digest] = below + isinstance(node.operator, Partition)
    if depth[root.digest]:
        return (1 + PARTITION_SLACK) * max(Fraction(1), (2 << depth[root.digest]) * widening / PARTITION_SLACK) - 1
    return widening


def weight_left(root: Node) -> dict[bytes, Fraction]:
    """The most weight that a source of one record of weight 1 leaves at each node."""
    return masses(root, lambda source: Fraction(1))
