"""Questions that public bounds show to be infeasible: noise exceeds every possible answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from wpinq.errors import PlanError
from wpinq.graphs.synthesis.method import Bounds, spend
from wpinq.graphs.synthesis.uncertainty import CONFIDENCE
from wpinq.measure.measurement import Measurement
from wpinq.plan.node import Node, upward
from wpinq.plan.operators import Source
from wpinq.sinks.graph_counts import TriangleCount
from wpinq.sinks.largest_degree import LargestDegree
from wpinq.sinks.sink import Stated


def infeasible(measurements: Mapping[str, Measurement], bounds: Bounds) -> dict[str, str]:
    """The measurements whose noise hides the most that a graph within the bounds could give, each with the reason.

    The most is the bound on the norm of the plan's output (`Operator.norm_bound`), with as many edges at the source as
    the bounds leave room for. Of a count of triangles it is as many as there is room for; of the largest degree, the
    bound on it. A measurement is infeasible where the noise of one number is more than that in a tenth of all draws:
    then an interval of 90 % never rules out that there is nothing.

    Parameters
    ----------
    measurements : mapping
        What is to be asked of the edges.
    bounds : Bounds
        Public. Without a bound on nodes nothing is infeasible.

    Returns
    -------
    dict
        Name to a reason, which holds public numbers alone.

    Notes
    -----
    Privacy cost: none, and nothing is looked at: it follows from plans and bounds.

    Examples
    --------
    >>> from wpinq.graphs.synthesis import Bounds, find_method
    >>> method = find_method("tags")
    >>> infeasible(method.measurements(method.source(), "0.01"), Bounds(nodes=20))["joint_degrees"]
    'joint_degrees of any graph of at most 20 nodes comes to less than 64, and the noise is ±1,476'
    """
    if bounds.nodes is None:
        return {}
    degree, edges, triangles = _most(bounds.nodes, bounds.degree)
    found = {}
    for name, measurement in measurements.items():
        sink, plan = measurement.sink, measurement.plan
        largest = {TriangleCount.name: triangles, LargestDegree.name: float(degree)}
        if sink.own_keys is None:
            most = float(_mass(plan, edges))
        elif sink.name in largest:
            most = largest[sink.name]
        else:
            continue
        noise = sink.error(plan, measurement.epsilon, measurement.domain, CONFIDENCE, Stated(width=0.0))
        if sink.name == TriangleCount.name:
            noise /= 2  # with LS_t = t for a graph without common neighbours; every graph has at least half of that
        if noise >= most:
            what = f"{name} of any graph of at most {bounds.nodes:,} nodes"
            found[name] = f"{what} comes to less than {most + 0.5:,.0f}, and the noise is ±{noise:,.0f}"
    return found


def spend_without(
    spare: Sequence[str],
    wanted: Mapping[str, Measurement],
    epsilon: object,
    shares: Mapping[str, object],
    bounds: Bounds,
) -> dict[str, Measurement]:
    """As `spend`, without those measurements that a method can do without and that are infeasible.

    The others get what they would have cost.
    """
    made = spend(wanted, epsilon, shares)
    out = infeasible({name: made[name] for name in spare}, bounds)
    left = {name: measurement for name, measurement in wanted.items() if name not in out}
    return spend(left, epsilon, {name: shares[name] for name in left})


def refuse_infeasible(measurements: Mapping[str, Measurement], bounds: Bounds) -> None:
    """Refuse measurements of which one is infeasible; to be asked before anything is spent.

    Raises
    ------
    PlanError
        It names the question and the bound.
    """
    for reason in infeasible(measurements, bounds).values():
        raise PlanError(f"{reason}: nothing was spent; it takes more epsilon or a larger share, or another question")


def _most(nodes: int, degree: int | None) -> tuple[int, Fraction, float]:
    """The largest degree, the most edges and the most triangles that a graph within the bounds has."""
    largest = nodes - 1 if degree is None else min(degree, nodes - 1)
    return largest, Fraction(nodes * largest, 2), nodes * largest * (largest - 1) / 6


def _mass(plan: Node, edges: Fraction) -> Fraction:
    """The most that a plan's output weighs, from so many protected units."""

    def of_step(node: Node, inputs: list[Fraction]) -> Fraction:
        if isinstance(node.operator, Source):
            return min(node.operator.cap, edges * Fraction(node.operator.unit_weight))
        return node.operator.norm_bound(*inputs)

    return upward(plan, of_step)[plan.digest]
