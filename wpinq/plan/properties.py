"""The properties of a plan that follow from it and its sources' declarations, in one pass.

All code that prices, explains, prepares or compiles a plan reads them. Each operator states its own part
(`plan/operator.py`); here the parts are combined, inputs before users, and remembered.

None of them is measured: they hold for every dataset that the sources may have. The facts that sources declare are
printed on every bill, because they narrow the neighbours that the guarantee covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import attrgetter
from types import MappingProxyType

from wpinq.errors import PlanError
from wpinq.plan.arithmetic import SUM_ROUNDING_UNITS, UNIT_ROUNDOFF, NoLattice
from wpinq.plan.demand import demand, least_on_a_way, norm_bounds_over_parts
from wpinq.plan.domain import Domain, Inference
from wpinq.plan.node import Node, paths_from, sources, topological, upward
from wpinq.plan.operators import Partition, Source
from wpinq.plan.sensitivity.stability import stability

#: The least widening of noise over parts of a partition: see `PlanProperties.slack`.
PARTITION_SLACK = Fraction(1, 2**12)


@dataclass(frozen=True, slots=True)
class StepProperties:
    """The certain properties of the output of one step.

    Attributes
    ----------
    node : Node
        The step.
    paths : int
        The number of paths from the root to it.
    norm_bound : Fraction
        A bound on its norm, from the caps of the sources.
    weight_left : Fraction
        The same, for sources of norm 1 (or their cap, if that is less): the most that one record of weight 1 leaves
        here when it is alone.
    rounding : Fraction
        A bound on the norm of what an engine rounds here, in unit roundoffs.
    nonnegative : bool
        Whether no record can have a negative weight.
    splits : int
        The most Partitions on a path from here to a source.
    """

    node: Node
    paths: int
    norm_bound: Fraction
    weight_left: Fraction
    rounding: Fraction
    nonnegative: bool
    splits: int


@dataclass(frozen=True)
class PlanProperties:
    """The certain properties of a plan: each part is found on first use, once.

    Attributes
    ----------
    root : Node
        The plan.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> items = wp.source("items", group=int, facts=["unit_weights"])
    >>> certificate = plan_properties(items.group_by(lambda r: r.group, lambda g: F.count(g)).plan)
    >>> dict(certificate.uses), certificate.lattice, certificate.output.nonnegative
    ({'items': 1}, Fraction(1, 2), True)
    """

    root: Node

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """The declarations of its sources by name; PlanError when one name is declared in two ways."""
        return MappingProxyType(sources([self.root]))

    @cached_property
    def uses(self) -> Mapping[str, int]:
        """The number of paths from each source; parts of one partition count once."""
        counts = demand([(self.root, Fraction(1))], rate=attrgetter("paths")).sources
        return MappingProxyType({name: int(count) for name, count in counts.items()})

    @cached_property
    def stability(self) -> Mapping[str, Fraction]:
        """The largest change of the output for one unit of weight in each source; bills use it.

        It is no more than `uses`.
        """
        return MappingProxyType(demand([(self.root, Fraction(1))]).sources)

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """The rules that make `stability` less than `uses`, of the root and of split datasets."""
        splits = [node.inputs[0] for node in topological([self.root]) if isinstance(node.operator, Partition)]
        found = (stability(root).values() for root in (self.root, *splits))
        return tuple(sorted({rule for cuts in found for cut in cuts for rule in cut.rules}))

    @cached_property
    def steps(self) -> Mapping[bytes, StepProperties]:
        """Digest to step, inputs before users, the root last.

        PlanError where a step's norm has no bound to work with, or its operator leaves undone what is needed here.
        """
        found = upward(self.root, lambda node, inputs: _step(node, inputs, self.paths[node.digest]))
        return MappingProxyType(found)

    @cached_property
    def paths(self) -> Mapping[bytes, int]:
        """The number of paths from the root to each step, by digest."""
        return MappingProxyType(paths_from(self.root))

    @property
    def output(self) -> StepProperties:
        """The certain properties of the root."""
        return self.steps[self.root.digest]

    @cached_property
    def rounding_error(self) -> Fraction:
        """A bound on the norm of (float output − exact output).

        It is `Σ_v paths(v) · rounding_units(v) · 2⁻⁵³ · M(v)`. Exact operators are 1-Lipschitz, so the rounding of one
        operator reaches the root once per path, unamplified.
        """
        return UNIT_ROUNDOFF * sum((step.paths * step.rounding for step in self.steps.values()), Fraction(0))

    def slack(self, readouts: int = 0, *, exact: bool = False) -> Fraction:
        """The relative widening η of the noise that covers rounding.

        It is `2 · e(root) / (unit_weight · min(1, stability))`. `readouts` counts further numbers computed from the
        root's output before noise, each exactly and rounded once. With `exact`, outputs are put back on a lattice, and
        there is no rounding to cover but that of other parts.

        Two neighbours' float outputs differ by at most `S · d + 2 e(root)` in norm for sources at distance d, S the
        stability. One unit moves its source by d of at most the unit weight w, and is billed S · w, however little it
        moves; the difference is at most `S · w · (1 + η)`. Above a stability of 1 nothing is gained by a smaller η.

        Releases over parts of one partition pay for the largest of them only, and one part may round more than another.
        So where a plan has up to n > 0 Partitions on a path, η' takes the place of η, with H = 2⁻¹² and
        `1 + η' = (1 + H) · max(1, 2ⁿ⁺¹ η / H)`: rounding then takes no more than a share H of what is paid, whatever
        the parts. The least way from a source to the root takes the place of S: docs/proofs/partition.md has the proof.
        """
        return _slack(self, readouts, exact)

    @property
    def lattice(self) -> Fraction | None:
        """The largest number that the plan proves to divide every output weight, or None.

        Sources of rows have 1. Join divides by norms of the data: none.
        """
        return None if isinstance(self._lattice, NoLattice) else self._lattice

    def require_lattice(self) -> Fraction:
        """The lattice of the output; PlanError names the step that breaks it.

        Examples
        --------
        >>> import wpinq as wp
        >>> plan_properties(wp.source("items", group=int, weights=True).plan).require_lattice()
        Traceback (most recent call last):
        ...
        wpinq.errors.PlanError: no lattice of weights is proven: Source(items) is declared with weights=True; \
leave that out where data are rows, or use Laplace noise
        """
        found = self._lattice
        if isinstance(found, NoLattice):
            raise PlanError(f"no lattice of weights is proven: {found.step} {found.reason}, or use Laplace noise")
        return found

    @cached_property
    def _lattice(self) -> Fraction | NoLattice:
        def of_step(node: Node, inputs: list[Fraction | NoLattice]) -> Fraction | NoLattice:
            whole = [found for found in inputs if not isinstance(found, NoLattice)]
            broken = (found for found in inputs if isinstance(found, NoLattice))
            return next(broken) if len(whole) < len(inputs) else node.operator.lattice(*whole)

        return upward(self.root, of_step)[self.root.digest]

    @cached_property
    def domain(self) -> Domain | None:
        """Every record that the output can have, in canonical order of construction, or None."""
        inference = Inference()
        return upward(self.root, lambda node, inputs: node.operator.domain(inference, *inputs))[self.root.digest]


@lru_cache(maxsize=4096)  # a table is thousands of plans, and each is priced, prepared and run
def plan_properties(root: Node) -> PlanProperties:
    """The certificate of a plan.

    Parameters
    ----------
    root : Node
        The plan.

    Returns
    -------
    PlanProperties
        One and the same for equal plans, while it is remembered.

    Notes
    -----
    Privacy cost: none. It depends on the plan and the declarations of its sources alone.
    """
    return PlanProperties(root)


@lru_cache(maxsize=4096)
def _slack(certificate: PlanProperties, readouts: int, exact: bool) -> Fraction:
    root, splits, moved = certificate.root, certificate.output.splits, least_on_a_way(certificate.root)
    norms = norm_bounds_over_parts(root) if splits else {d: step.norm_bound for d, step in certificate.steps.items()}
    least = min(source.unit_weight * min(Fraction(1), moved[name]) for name, source in certificate.sources.items())
    rounded = readouts * SUM_ROUNDING_UNITS * norms[root.digest]
    rounded += sum(step.paths * step.node.operator.rounding_units() * norms[d] for d, step in certificate.steps.items())
    widening = Fraction(0) if exact else 2 * UNIT_ROUNDOFF * rounded / least
    if not splits:
        return widening
    return (1 + PARTITION_SLACK) * max(Fraction(1), (2 << splits) * widening / PARTITION_SLACK) - 1


def _step(node: Node, inputs: list[StepProperties], paths: int) -> StepProperties:
    operator = node.operator
    norm_bound = operator.norm_bound(*(below.norm_bound for below in inputs))
    weight_left = operator.norm_bound(*(below.weight_left for below in inputs))
    return StepProperties(
        node,
        paths,
        norm_bound,
        min(norm_bound, Fraction(1)) if isinstance(operator, Source) else weight_left,
        operator.rounding_units() * norm_bound,
        operator.nonnegative(*(below.nonnegative for below in inputs)),
        max((below.splits for below in inputs), default=0) + isinstance(operator, Partition),
    )
