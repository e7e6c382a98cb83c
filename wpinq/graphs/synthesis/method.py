"""The interface of a synthesis method: measurements, estimates from answers, and a walk.

A method is pure: it makes measurements and reads answers. Who holds the graph (`wpinq.synthesis`) releases its
measurements; who holds the answers (`wpinq.graphs.fit_graph`, without any session) runs the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from wpinq.api.query import Query
from wpinq.api.source import source
from wpinq.errors import AnswersError, EpsilonError, PlanError
from wpinq.expr.values import Value
from wpinq.graphs.synthesis.public_nodes import PublicNodes
from wpinq.graphs.synthesis.uncertainty import CONFIDENCE, Intervals
from wpinq.inference.checks import count_of
from wpinq.mcmc.settings import Settings
from wpinq.mcmc.target import NO_NOISE_LEVEL, Target
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import NANO, parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan.node import Node, sources, upward
from wpinq.plan.operators import Source
from wpinq.runtime.arrays import Floats, Integers
from wpinq.sinks.answer_kinds import Stated

#: The name of the source of edges in ledgers and bills.
SOURCE = "edges"
#: The names of the measurements that are one number of the graph.
TOP, COUNT, COMPONENTS, CORE = "largest_degree", "triangle_count", "component_count", "largest_core"

#: The measurements of a method, by name.
Asked = Mapping[str, Measurement]
LOST = "the answers indicate fewer than two edges, because noise dominates them: use a larger epsilon"

_GRAIN = 10**12
#: Denominators that people can read.
_PLAIN = 10**6


@dataclass(frozen=True, slots=True)
class Bounds:
    """Public bounds on the graph; never take them from the graph.

    Attributes
    ----------
    nodes : int or None
        At least as many as there are nodes; None to go by the released degrees.
    degree : int or None
        At least the largest degree; None to go by the released degrees.
    """

    nodes: int | None = None
    degree: int | None = None

    def __post_init__(self) -> None:
        for name, bound in (("nodes", self.nodes), ("degree", self.degree)):
            if bound is not None:
                count_of(bound, f"the bound on {name}", 1, error=PlanError)


#: No bounds: all follows from answers.
UNBOUNDED = Bounds()


@dataclass(frozen=True, slots=True)
class SeedGraph:
    """A simple graph that a walk begins from.

    Attributes
    ----------
    edges : ndarray of int64, shape (edges, 2)
        Each edge once; the nodes are 0, 1, 2, ….
    places : ndarray of shape (nodes, dimensions), optional
        The place of each node, where the walk is to keep the numbers of edges that are longer than each reach.
    reach : ndarray
        Distances, rising.
    family : str
        How it was chosen, in words, where there was a choice.
    """

    edges: Integers
    places: Floats | None = None
    reach: Floats | None = None
    family: str = ""


@dataclass(frozen=True)
class Estimates:
    """The estimates of a method from answers, computed once in a run.

    Attributes
    ----------
    targets : sequence of Target
        The targets of the walk.
    seed : callable
        Gives the graph to begin from, or its edges, by the answers and the generator alone.
    intervals : callable
        The intervals of the statistics of the graph, by their names in `ALL_STATISTICS`; missing ones were not
        measured. The generator is for draws of noise, and public.
    components : int, optional
        How many components the graph is to have.
    clustering : float
        The sum of the clustering of all nodes that the graph is to have at most, where it may have no triangle.
    finish : callable, optional
        Swaps edges of a graph without places after the walk, by answers that the walk does not fit.
    direct : callable, optional
        Gives undirected edges their directions, where the graph is directed.
    """

    targets: Sequence[Target]
    seed: Callable[[np.random.Generator], SeedGraph | Integers]
    intervals: Intervals = lambda _: {}
    components: int | None = None
    clustering: float = np.inf
    finish: Callable[[Integers, np.random.Generator], Integers] | None = None
    direct: Callable[[Integers, np.random.Generator], Integers] | None = None


class Method(ABC):
    """A method of synthesis: its measurements, and the estimates from their answers.

    Attributes
    ----------
    name : str
        Its name in `--query` and reports.
    symmetric : bool
        Whether the source holds every edge in both directions, as the recipes of the paper want it, or once, the
        smaller node first. Either way the protected unit is one undirected edge.
    triad_share : float
        The share of the walk's proposals that are chosen to close a triangle, 0 to below 1.
    shares : mapping
        The default share of epsilon of each measurement, by the names in `measurements`. They add up to 1.
    directed : bool
        Whether the source holds directed edges, each of which is a unit.
    stops_at_noise : bool
        Whether the targets are answers as released, so that their noise says how near is near enough.
    """

    name: str
    symmetric: bool
    triad_share: float
    shares: Mapping[str, Fraction]
    directed: ClassVar[bool] = False
    stops_at_noise: bool = True

    def check(self, settings: Settings) -> None:
        """Refuse settings that do not fit the method; called before anything is spent.

        Raises
        ------
        PlanError
            When chains are to stop at a noise level that there is none of.
        """
        if settings.stop_at_noise is not None and not self.stops_at_noise:
            raise PlanError(f"{self.name} cannot stop at the noise level: {NO_NOISE_LEVEL}")

    def source(self, node: type = int, nodes: PublicNodes | None = None) -> Query:
        """The declaration of the protected edges, with nodes of type `int` or `str`, or public ones.

        Of public nodes it has the places, and the digest of their list.
        """
        node, among = (node, "") if nodes is None else (int, nodes.words)
        return edge_source(self.symmetric, node, among, self.directed)

    @abstractmethod
    def measurements(
        self, source: Query, epsilon: EpsilonLike, split: Mapping[str, object] | None = None, bounds: Bounds = UNBOUNDED
    ) -> dict[str, Measurement]:
        """The measurements by name; together they cost epsilon (see `spend`).

        Parameters
        ----------
        source : Query
            The result of `source`.
        epsilon : number
            The whole cost, of all measurements together, to one undirected edge.
        split : mapping, optional
            Shares by name instead of `shares`.
        bounds : Bounds
            Public bounds.

        Returns
        -------
        dict
            Name to measurement. One without a domain is released too, and `keys` says which of its keys to ask for.
        """

    def keys(self, name: str, answers: Mapping[str, Answers], bounds: Bounds = UNBOUNDED) -> Iterable[Value]:
        """The public keys to request from a measurement without a domain.

        Called for each such measurement in the order of `measurements`, again and again until it gives no key that
        was not asked for before; so keys may follow from answers, of this measurement too, and never from the data.

        Parameters
        ----------
        name : str
            The measurement.
        answers : mapping
            The answers so far: all of earlier measurements, and of this one the requested keys, none at first.
        bounds : Bounds
            Public bounds.

        Raises
        ------
        PlanError
            When all keys of the measurement are known beforehand, as they are unless a method says otherwise.
        """
        raise PlanError(f"{name} has its keys from its measurement")

    @abstractmethod
    def estimate(self, answers: Mapping[str, Answers], nodes: int | None = None) -> Estimates:
        """The estimates of the graph from all answers, computed once in a run.

        It may take long. With a public number of nodes, no more have an edge.

        Raises
        ------
        AnswersError
            When answers are missing, or too noisy for a graph.
        """


def answered(answers: Mapping[str, Answers], name: str) -> Answers:
    """The answers of that name; AnswersError where there are none."""
    if name not in answers:
        raise AnswersError(f"the answers lack {name!r}; there are {', '.join(answers) or 'none'}")
    return answers[name]


def edge_source(symmetric: bool, node: type = int, among: str = "", directed: bool = False) -> Query:
    """The declaration of protected edges: undirected, in both directions or one, or directed.

    The cost of a query is the same: symmetric edges are used half as often and their unit weighs twice.

    Parameters
    ----------
    symmetric : bool
        Whether each edge stands in both directions, `unit_weight=2`, or once, `unit_weight=1`.
    node : {int, str}
        The type of the nodes.
    among : str
        The public nodes in words, where every end of an edge is one.
    directed : bool
        Whether a unit is one directed edge.

    Examples
    --------
    >>> print(edge_source(True).bill(epsilon=0.1))
    edges: 0.2
      protects one undirected edge, of weight 2
      declared: (a, b) and (b, a) have the same weight
      declared: every record weighs exactly 1
      NoisyCount(0.1), spent once: 0.1 x 1 x 2 = 0.2
    """
    if node not in (int, str):
        raise PlanError("nodes are of type int or str")
    facts = ["unit_weights", "simple_digraph" if directed else "symmetric" if symmetric else "simple"]
    weight, kind = 2 if symmetric else 1, "directed" if directed else "undirected"
    unit = f"one {kind} edge" + (f" between two of {among}" if among else "")
    return source(SOURCE, src=node, dst=node, unit=unit, unit_weight=weight, facts=facts)


def spend(wanted: Asked, epsilon: EpsilonLike, shares: Mapping[str, object]) -> dict[str, Measurement]:
    """Measurements that together cost epsilon, each its share.

    The epsilon of a measurement is `share · epsilon / (distance · unit_weight)`, the distance being how far one unit
    moves its query (`Query.stability`). Ledgers charge whole nano-epsilon, rounded up: so epsilon is rounded down to a
    multiple of 1e-9 first, and that of a measurement to one of 1e-12. The charge of all is never more than epsilon.

    Parameters
    ----------
    wanted : mapping
        Name to measurement over one source, of whatever epsilon.
    epsilon : number
        The cost of all to one protected unit.
    shares : mapping
        For each name a number more than 0; they are scaled to add up to 1.

    Raises
    ------
    PlanError
        When the shares are not those of the measurements, or one is not over one source.
    EpsilonError
        When a share is not more than 0 or the epsilon less than 1e-9, or a share comes to less than 1e-12.

    Examples
    --------
    >>> edges = edge_source(symmetric=True)
    >>> ends = edges.select(lambda e: e.src)
    >>> wanted = {"ends": ends.noisy_count(1), "edges": edges.noisy_count(1, [(0, 1)])}
    >>> made = spend(wanted, 1, {"ends": 0.3, "edges": 0.7})
    >>> {name: float(measurement.epsilon) for name, measurement in made.items()}
    {'ends': 0.15, 'edges': 0.35}
    """
    if set(shares) != set(wanted):
        raise PlanError(f"give a share for each of {', '.join(wanted)}, and for nothing else")
    whole = _down(parse_epsilon(epsilon), NANO)
    if not whole:
        raise EpsilonError("ledgers charge whole nano-epsilon: give an epsilon of at least 1e-9")
    parts = {name: parse_epsilon(shares[name]) for name in wanted}
    total = sum(parts.values())
    made = {}
    for name, measurement in wanted.items():
        declared = sources([measurement.plan])
        if len(declared) != 1:
            raise PlanError(f"the query {name!r} is over {len(declared)} sources; a method measures one, the edges")
        ((used, declaration),) = declared.items()
        moved = measurement.sink.stability(measurement.plan)[used]
        price = whole * parts[name] / total / (moved * declaration.unit_weight)
        price = price if price.denominator <= _PLAIN else _down(price, _GRAIN)  # so that bills add up to what was asked
        if price <= 0:
            raise EpsilonError(f"the share of {name!r} leaves it an epsilon of less than 1e-12; raise its share")
        made[name] = replace(measurement, epsilon=price)
    return made


def _down(number: Fraction, grains: int) -> Fraction:
    """The largest multiple of 1/grains that is not more."""
    return Fraction(number.numerator * grains // number.denominator, grains)


# Questions that public bounds show to be infeasible: noise exceeds every possible answer.


def infeasible(measurements: Mapping[str, Measurement], bounds: Bounds) -> dict[str, str]:
    """The measurements whose noise exceeds the largest possible answer, each with the reason.

    The largest answer is over the graphs within the bounds. It is the bound on the norm of the plan's output
    (`Operator.norm_bound`), with as many edges at the source as the bounds leave room for. Of a count of triangles it
    is as many as there is room for; of the largest degree or core, the bound on degrees. A measurement is infeasible
    where the noise of one number is more than that in a tenth of all draws: then an interval of 90 % never rules out
    that there is nothing.

    Parameters
    ----------
    measurements : mapping
        The measurements of the edges.
    bounds : Bounds
        Public. Without a bound on nodes nothing is infeasible.

    Returns
    -------
    dict
        Name to a reason, which holds public numbers alone.

    Notes
    -----
    Privacy cost: none, because it follows from plans and bounds alone.

    Examples
    --------
    >>> from wpinq.graphs import Bounds
    >>> from wpinq.graphs.synthesis import find_method
    >>> method = find_method("tags")
    >>> infeasible(method.measurements(method.source(), "0.01"), Bounds(nodes=20))["joint_degrees"]
    'joint_degrees of any graph of at most 20 nodes is less than 64, and the noise is ±1,669'
    """
    if bounds.nodes is None:
        return {}
    degree = bounds.nodes - 1 if bounds.degree is None else min(bounds.degree, bounds.nodes - 1)
    edges, triangles = Fraction(bounds.nodes * degree, 2), bounds.nodes * degree * (degree - 1) / 6
    found = {}
    for name, measurement in measurements.items():
        sink, plan = measurement.sink, measurement.plan
        largest = {COUNT: triangles, TOP: float(degree), COMPONENTS: bounds.nodes / 2, CORE: float(degree)}
        if sink.own_keys is None:
            most = float(_mass(plan, edges))
        elif name in largest:
            most = largest[name]
        else:
            continue
        noise = sink.error(plan, measurement.epsilon, measurement.domain, CONFIDENCE, Stated(width=0.0))
        if name == COUNT:
            noise /= 2  # with LS_t = t for a graph without common neighbours; every graph has at least half of that
        if noise >= most:
            what = f"{name} of any graph of at most {bounds.nodes:,} nodes"
            found[name] = f"{what} is less than {most + 0.5:,.0f}, and the noise is ±{noise:,.0f}"
    return found


def spend_without(
    spare: Sequence[str], wanted: Asked, epsilon: EpsilonLike, shares: Mapping[str, object], bounds: Bounds
) -> dict[str, Measurement]:
    """As `spend`, without the infeasible measurements among those that a method can spare.

    The others get what they would have cost.
    """
    made = spend(wanted, epsilon, shares)
    out = infeasible({name: made[name] for name in spare}, bounds)
    left = {name: measurement for name, measurement in wanted.items() if name not in out}
    return spend(left, epsilon, {name: shares[name] for name in left})


def refuse_infeasible(measurements: Mapping[str, Measurement], bounds: Bounds) -> None:
    """Refuse infeasible measurements, before anything is spent.

    Raises
    ------
    PlanError
        It names the query and the bound.
    """
    for reason in infeasible(measurements, bounds).values():
        raise PlanError(f"{reason}: nothing was spent; use a larger epsilon or share, or another query")


def _mass(plan: Node, edges: Fraction) -> Fraction:
    """The most that a plan's output weighs, from so many undirected edges."""

    def of_step(node: Node, inputs: list[Fraction]) -> Fraction:
        if isinstance(node.operator, Source):
            both = 2 if "simple_digraph" in node.operator.facts else 1
            return min(node.operator.cap, both * edges * Fraction(node.operator.unit_weight))
        return node.operator.norm_bound(*inputs)

    return upward(plan, of_step)[plan.digest]
