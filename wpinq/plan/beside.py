"""What a plan reads beside the parts of partitions: where its rounding shrinks with the part, and where it does not.

Releases over the parts of one partition pay for the largest of them, and one unit may change a little of many parts. So
what an engine rounds over a part must be in proportion to the part: then all parts together round no more than one
dataset. A step is *bounded* by a partition where it weighs no more than the parts of it that the plan reads, times the
paths to them. Where some step of a plan reads a partition and is not bounded by it, the plan pays in full: it has no
share in the maximum of that partition, nor of those that this one lies in (`plan/demand.py`). The proof is in
docs/proofs/partition.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache

from wpinq.expr.nodes import digest_of
from wpinq.plan.node import Node, upward
from wpinq.plan.operator import PartsRead
from wpinq.plan.operators import Partition, Source
from wpinq.plan.stability import stability


def partition_of(node: Node) -> bytes:
    """What tells the partition of a part from others: the dataset that is split, and the key."""
    assert isinstance(node.operator, Partition)
    return digest_of("partition", node.inputs[0].digest, node.operator.key.digest)


@lru_cache(maxsize=1024)
def _reads(root: Node) -> Mapping[bytes, PartsRead]:
    return upward(root, _read_by)


def _read_by(node: Node, inputs: list[PartsRead]) -> PartsRead:
    nonnegative = node.operator.nonnegative(*(below.nonnegative for below in inputs))
    if isinstance(node.operator, Partition):  # what is below it is read by the dataset that is split
        own = frozenset((partition_of(node),))
        return PartsRead(own, own, frozenset(), nonnegative)
    read, missed = (frozenset[bytes]().union(*sets) for sets in ([b.read for b in inputs], [b.missed for b in inputs]))
    bounding = node.operator.bounding(*inputs)
    return PartsRead(read, bounding, missed | (read - bounding), nonnegative)


def unshared(root: Node) -> frozenset[bytes]:
    """The partitions right below a plan that do not bound all steps which read their parts.

    Examples
    --------
    >>> import wpinq as wp
    >>> people, other = wp.source("people", region=str), wp.source("other", region=str)
    >>> north = people.partition(lambda p: p.region, ["north"])["north"]
    >>> by_region = north.join(other, lambda a: a.region, lambda b: b.region)
    >>> [len(unshared(query.plan)) for query in (north, by_region, north.concat(other))]
    [0, 0, 1]
    """
    return _reads(root)[root.digest].missed


def masses_over_parts(root: Node) -> Mapping[bytes, Fraction]:
    """Bounds on the norms of the steps of a plan over parts, of which a step over a share of a part takes that share.

    They are the masses of the steps, but where a Join has sides over different partitions, or over none. It weighs up
    to `ab/(a + b)`, and with a share of a alone more than that share of it; but no more than that share of a.
    """
    reads = _reads(root)

    def of_step(node: Node, inputs: list[Fraction]) -> Fraction:
        mass = node.operator.mass(*inputs)
        sides = [(reads[child.digest].bounding, below) for child, below in zip(node.inputs, inputs, strict=True)]
        if len({bounding for bounding, _ in sides}) < 2:
            return mass
        return max(mass, *(below for bounding, below in sides if bounding))

    return upward(root, of_step)


def least_on_a_way(root: Node) -> Mapping[str, Fraction]:
    """How far a unit of each source moves a plan at least on one way through its partitions, as it is billed.

    A release pays for each way from its source to the root by itself: directly, or through the parts of a partition.
    What it rounds may fall to any of them.
    """
    least: dict[str, Fraction] = {}
    for name, moved in _ways(root):
        least[name] = min(moved, least.get(name, moved))
    return least


def _ways(root: Node) -> Iterator[tuple[str, Fraction]]:
    for cut, found in stability(root).items():
        if isinstance(cut.operator, Source):
            yield cut.operator.source, found.bound
        else:
            for name, moved in least_on_a_way(cut.inputs[0]).items():
                yield name, found.bound * moved
