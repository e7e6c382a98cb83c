"""What a plan reads beside the parts of partitions: where its rounding does not shrink with the part.

Releases over the parts of one partition pay for the largest of them, and one unit may change a little of many parts. So
what an engine rounds over a part must be in proportion to the part: then all parts together round no more than one
dataset. A step is *bounded* by a partition where it weighs no more than the parts of it that the plan reads, times the
paths to them. A partition that some step reads and is not bounded by has no share in its maximum from this plan: each
such release pays in full (`plan/demand.py`). The proof is in docs/proofs/partition.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache

from wpinq.expr.nodes import below_first, digest_of
from wpinq.plan.node import Node
from wpinq.plan.operator import PartsRead
from wpinq.plan.operators import Partition, Source
from wpinq.plan.stability import stability


def partition_of(node: Node) -> bytes:
    """What tells the partition of a part from others: the dataset that is split, and the key."""
    assert isinstance(node.operator, Partition)
    return digest_of("partition", node.inputs[0].digest, node.operator.key.digest)


@lru_cache(maxsize=1024)
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
    found: dict[bytes, PartsRead] = {}
    missed: set[bytes] = set()
    for node in below_first([root], lambda node: () if _is_cut(node) else node.inputs):
        operator = node.operator
        if isinstance(operator, Partition):
            own = frozenset((partition_of(node),))
            found[node.digest] = PartsRead(own, own, False)
            continue
        inputs = [found[child.digest] for child in node.inputs]
        read = frozenset[bytes]().union(*(below.read for below in inputs))
        bounding = operator.bounding(*inputs)
        missed |= read - bounding
        nonnegative = operator.nonnegative(*(below.nonnegative for below in inputs))
        found[node.digest] = PartsRead(read, bounding, nonnegative)
    return frozenset(missed)


def _is_cut(node: Node) -> bool:
    return isinstance(node.operator, (Source, Partition))


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
