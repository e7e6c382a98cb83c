"""The cost of a batch of releases to its sources: static, from the plans alone.

Cost is linear: a demand of epsilon at a root is a demand on every cut below it, a source or a part of a partition, as
often as one unit of weight there can move the root (`plan/sensitivity/stability.py`). Demands on the parts of one
Partition do not add up: the dataset that was split owes the largest of them, for one unit of change is spread over its
parts. It is a root in turn. Where a plan adds other data to a part, its rounding does not shrink with the part, and its
demands do add up to those of other plans. Numbers are exact rationals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter

from wpinq.expr.epochs import over_all
from wpinq.expr.nodes import digest_of
from wpinq.plan.node import Node, topological, upward
from wpinq.plan.operator import PartsRead
from wpinq.plan.operators import Join, Partition, Source
from wpinq.plan.sensitivity.stability import Stability, stability

# What a plan reads besides the parts of partitions: where its rounding shrinks with the part, and where it does not.
#
# Releases over the parts of one partition pay for the largest of them, and one unit may change a little of many parts.
# So what an engine rounds over a part must be in proportion to the part: then all parts together round no more than one
# dataset. A step is *bounded* by a partition where it weighs no more than the parts of it that the plan reads, times
# the paths to them. Where some step of a plan reads a partition and is not bounded by it, the plan pays in full: it has
# no share in the maximum of that partition, nor of those that this one lies in.
# The proof is in docs/proofs/partition.md.


def partition_of(node: Node) -> bytes:
    """The identity of a part's partition: the dataset that is split, and the key."""
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
    dominating = node.operator.dominating_partitions(*inputs)
    return PartsRead(read, dominating, missed | (read - dominating), nonnegative)


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


def norm_bounds_over_parts(root: Node) -> Mapping[bytes, Fraction]:
    """Bounds on the norms of the steps of a plan over parts, which scale with a share of a part.

    A step over a share of a part takes that share of its bound. The bounds are the norm bounds of the steps, but where
    a Join has sides over different partitions, or over none. It weighs up to `ab/(a + b)`, and with a share of a alone
    more than that share of it; but no more than that share of a.
    """
    reads = _reads(root)

    def of_step(node: Node, inputs: list[Fraction]) -> Fraction:
        norm_bound = node.operator.norm_bound(*inputs)
        sides = [(reads[child.digest].dominating, below) for child, below in zip(node.inputs, inputs, strict=True)]
        if len({partitions for partitions, _ in sides}) < 2:
            return norm_bound
        return max(norm_bound, *(below for partitions, below in sides if partitions))

    return upward(root, of_step)


def least_on_a_way(root: Node) -> Mapping[str, Fraction]:
    """The least billed move of a plan, per unit of each source, over ways through partitions.

    A release pays for each way from its source to the root by itself: directly, or through the parts of a partition.
    Its rounding may fall to any of them.
    """
    least: dict[str, Fraction] = {}
    for cut, found in stability(root).items():
        source = cut.operator.source if isinstance(cut.operator, Source) else None
        for name, moved in least_on_a_way(cut.inputs[0]).items() if source is None else [(source, Fraction(1))]:
            least[name] = min(found.bound * moved, least.get(name, found.bound * moved))
    return least


#: A part of a partition, as the ledger knows it: digest of the partition, digest of the part.
PartKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand of a batch of releases: epsilon times uses for each source and each part.

    Attributes
    ----------
    sources : dict
        Source name to epsilon times uses, before the unit weight.
    parts : dict
        Cumulative demand on each part that the batch touches, including that of earlier batches.
    """

    sources: dict[str, Fraction]
    parts: dict[PartKey, Fraction]


def demand(
    roots: Sequence[tuple[Node, Fraction]],
    earlier: Callable[[str], Mapping[str, Fraction]] = lambda partition: {},
    scope: Callable[[Node], str] = lambda split: "",
    rate: Callable[[Stability], Fraction] = attrgetter("bound"),
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
        From a dataset that is split to the versions of the data below it, as text.
    rate : callable
        The demand on a cut for each epsilon: the sharp bound, or the number of paths.
    """
    reaching, by_source = defaultdict[bytes, Fraction](Fraction), defaultdict[str, Fraction](Fraction)
    asked_of: dict[bytes, dict[bytes, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    waiting: dict[bytes, dict[tuple[str, bytes], dict[str, Fraction]]] = defaultdict(dict)
    parts: dict[PartKey, Fraction] = {}
    parted: list[Node] = []
    for root, epsilon in roots:
        cuts = stability(root)
        if any(isinstance(cut.operator, Partition) for cut in cuts):
            reaching[root.digest] += epsilon
            parted.append(root)
            continue
        for cut, found in cuts.items():  # straight to the sources: no step between has a budget of its own
            assert isinstance(cut.operator, Source)
            by_source[cut.operator.source] += epsilon * rate(found)
    for node in reversed(list(topological(parted))):
        owed = defaultdict[bytes, Fraction](Fraction)  # by the plan that pays in full, and together for all others
        if node.digest in reaching:
            owed[b""] = reaching[node.digest]
        for (partition, alone), asked in waiting[node.digest].items():
            held = dict(earlier(partition))
            largest = max(held.values(), default=Fraction(0))
            for part, epsilon in asked.items():
                held[part] = parts[partition, part] = held.get(part, Fraction(0)) + epsilon
            owed[alone] += max(held.values()) - largest
        for alone, amount in owed.items():
            payer = alone or (node.digest if unshared(node) else b"")
            for cut, found in stability(node).items():
                asked_of[cut.digest][payer] += amount * rate(found)
        operator = node.operator
        for alone, asked_here in asked_of[node.digest].items():
            if isinstance(operator, Source):
                by_source[operator.source] += asked_here
                continue
            assert isinstance(operator, Partition)
            partition, part = _part_key(node, operator, scope, alone)
            waiting[node.inputs[0].digest].setdefault((partition, alone), defaultdict(Fraction))[part] += asked_here
    return Demand(dict(by_source), parts)


def _part_key(node: Node, operator: Partition, scope: Callable[[Node], str], alone: bytes) -> PartKey:
    """The part as the ledger knows it.

    For a plan that pays in full, it is a part of a partition of that plan's own.
    """
    (split,) = node.inputs
    own = (alone,) if alone else ()
    partition = digest_of("partition", scope(split), split.digest, operator.key.digest, *own)
    return partition.hex(), operator.part.digest.hex()


def charges(asked: Mapping[str, Fraction], declared: Mapping[str, Source]) -> dict[str, Fraction]:
    """The cost of a demand on sources to their accounts: the sum of demand x unit weight.

    The sum is over the sources of an account. The tables of one account are about the same people, and one person may
    be in each, at the full unit weight. The largest of them would bill less than that person loses. A Partition has
    split one dataset, and its maximum is in the demand already: parts of two datasets are never one.

    Parameters
    ----------
    asked : mapping
        `Demand.sources`: source name to epsilon times uses.
    declared : mapping
        The sources by name.
    """
    owed = defaultdict[str, Fraction](Fraction)
    for name, source in declared.items():
        if name in asked:
            owed[source.account] += asked[name] * source.unit_weight
            if source.epoch is not None and source.person is not None:  # of one person over all epochs
                owed[over_all(source.epoch.series)] += asked[name] * source.unit_weight
    return dict(owed)


JOIN_OF_PEOPLE = "a Join of tables of one person divides weights: declare them as tables of one wp.people"


def joins_tables(plan: Node, account: str) -> bool:
    """Whether a plan joins two sources of one account with its ids among their fields."""

    def tables(node: Node) -> set[str]:
        ours = (source for source in node.sources if source.account == account)
        return {s.source for s in ours if s.person is not None and s.person.column in getattr(s.row, "names", ())}

    joins = (node for node in topological([plan]) if isinstance(node.operator, Join))
    return any(len(tables(node)) > 1 and all(map(tables, node.inputs)) for node in joins)
