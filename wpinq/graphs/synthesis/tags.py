"""The default method: degrees, closed wedges and joint degrees by tag.

Everything that the figures of a graph need of it follows from three curves: how many nodes have a degree, how
clustered they are, and how degrees mix along edges. Each has a measurement that carries a large signal for its uses
(see `wpinq.graphs.tags`), an estimate under a smooth prior (see `estimates`), and a part in the graph that the walk
begins from (see `random_graphs`). Two numbers more have a say: the largest degree in where degrees end, and the count
of triangles in the clustering where it is near. The walk then fits the closed wedges and the joint degrees that the
estimates give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from wpinq.api.query import Query
from wpinq.errors import AnswersError
from wpinq.expr.values import Value
from wpinq.graphs import tags
from wpinq.graphs.counts import component_count, largest_core, largest_degree, triangle_count
from wpinq.graphs.synthesis import degree_sequence, estimates, method, uncertainty
from wpinq.graphs.synthesis.common_neighbours import close_cycles
from wpinq.graphs.synthesis.families import SeedTargets, likeliest_graph
from wpinq.graphs.synthesis.method import COMPONENTS, COUNT, LOST, TOP, UNBOUNDED, Bounds, Estimates, Method, answered
from wpinq.graphs.synthesis.random_graphs import clique_graph, graphical
from wpinq.graphs.tags import tag_weights, wedge_weights
from wpinq.inference.least_squares import single_blas_thread
from wpinq.mcmc.proposal import Swaps
from wpinq.mcmc.target import Target
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan.node import topological
from wpinq.runtime.arrays import Floats
from wpinq.sinks.answer_kinds import Stated
from wpinq.sinks.graph_counts import COUNT as COUNTED, TriangleCount

# --- triangles, clustering and assortativity, by draws of the curves --------------------------------------------------

# The estimates are curves under a smooth prior. A bootstrap from the most likely curve shows how far noise moves an
# estimate, and not how far the prior holds it from a truth that is not smooth. On small graphs such intervals hold the
# truth in 0 to 75 % of runs. So it is the curve that is drawn, each bend and reach as often as it is likely.
#
# Clustering is drawn by importance (`ClusteringCurves.drawn`). Mixing has too many variables for that. Its normal
# approximation is moved so that its median is the estimate: the exponential of a draw mixes degrees
# more than the estimate does.

CURVES = "smoothing bias in the estimated degrees, or closed wedges that an edge has no room for"
MIXED = "smoothing bias in the estimated degree mixing"
_FIELD_DRAWS, _NULL_DRAWS = 200, 50_000
#: The doubt of all closed wedges alike, in logarithms: of degrees, and of wedges that are cut, which errs by .3 to 1 %
#: on most graphs.
_DOUBT = 0.008
_SURE = 1e-12
#: Rounds: what is left of the difference in the rows is far below the noise.
_BALANCING = 12


def clustering_intervals(
    curves: estimates.ClusteringCurves,
    nodes: int,
    rng: Generator,
    none: bool = False,
    doubt: Floats = estimates.NO_DOUBT,
) -> dict[str, uncertainty.Interval]:
    """Of triangles and average clustering.

    A logistic curve is nowhere 0 or 1, so that no draw is. Where the answers do not rule out that no wedge is closed,
    or that all are, the interval goes that far: where the sum of squared deviations exceeds that of the best curve by
    no more than if noise alone, wherever it has the sign that a curve could follow, had been followed.

    Parameters
    ----------
    curves : ClusteringCurves
        The most likely curves, given the answers.
    nodes : int
        The number of nodes.
    rng : Generator
        For the draws.
    none : bool
        Whether no triangle is the estimate: then it is not ruled out.
    doubt : array of shape (draws, degrees)
        As for `ClusteringCurves.drawn`.
    """
    if not len(curves.there):  # and no wedge: whether that is so of the secret graph these answers do not say
        return {
            "triangles": uncertainty.Interval(0.0, np.inf, True, CURVES),
            "average_clustering": uncertainty.Interval(0.0, 1.0, True, CURVES),
        }
    shares = curves.drawn(rng, doubt)
    off = np.exp(_DOUBT * rng.standard_normal(len(shares)))
    wedges = curves.nodes * curves.there * (curves.there - 1) / 2
    best = min(_misses(curves, share) for share in curves.shares)
    most = _followed(int((curves.adds > 0).any(axis=0).sum()))
    nothing, every = (_misses(curves, np.full(len(wedges), share)) - best < most for share in (0.0, 1.0))
    found = {}
    for name, counts in (("triangles", wedges / 3), ("average_clustering", curves.nodes / nodes)):
        low, high = np.quantile(off * (shares @ counts), [uncertainty.TAIL, 1 - uncertainty.TAIL])
        low, high = 0.0 if none or nothing else low, counts.sum() if every else min(high, counts.sum())
        found[name] = uncertainty.Interval.of_count(low, high, CURVES)
    return found


def drawn_mixings(
    classes: estimates.DegreeClasses, fields: Sequence[estimates.Field], rng: Generator
) -> list[list[Floats]]:
    """For each reach the most likely mixing, and draws: of each reach as many as it is likely."""
    return [
        [
            estimates.balanced(fields[place].mixed(fields[place].likeliest + off), classes.stubs, _BALANCING)
            for off in (0.0, *estimates.normal_draws(fields[place].curvature, count, rng).T)
        ]
        for place, count in estimates.by_likelihood(estimates.reach_evidence(fields), rng, _FIELD_DRAWS)
    ]


def chance_factors(classes: estimates.DegreeClasses, mixings: Iterable[Sequence[Floats]]) -> Floats:
    """Factors of the share of wedges closed by chance, by draw and degree; 1 in the median."""
    drawn = np.array([estimates.random_clustering(classes, mixing) for _, *some in mixings for mixing in some])
    return np.asarray(drawn / np.maximum(np.median(drawn, axis=0), _SURE))


def mixing_interval(classes: estimates.DegreeClasses, mixings: Iterable[Sequence[Floats]]) -> uncertainty.Interval:
    """Of assortativity, the correlation of the degrees of the ends of edges, by draws."""
    degrees = classes.degrees.astype(np.float64)
    stubs, mean = degrees.sum(), classes.stub_mean(np.arange(classes.degrees.max() + 1.0))
    middle = (degrees**2).sum() / stubs
    variance = (degrees**3).sum() / stubs - middle**2
    if variance < _SURE * middle**2:  # of nodes that all have one degree there is none
        return uncertainty.Interval(-1.0, 1.0, True, MIXED)
    draws = []
    for some in mixings:
        estimate, *drawn = (np.array([mean @ mixing @ mean for mixing in some]) / stubs - middle**2) / variance
        draws += list(drawn - np.median(drawn) + estimate)
    low, high = np.clip(np.quantile(draws, [uncertainty.TAIL, 1 - uncertainty.TAIL]), -1, 1)
    return uncertainty.Interval(float(low), float(high), bool(high - low > uncertainty.WIDE), MIXED)


@lru_cache(maxsize=64)
def _followed(numbers: int) -> float:
    """The 95 % quantile of `Σ max(0, n)²` over Laplace variables of standard deviation 1."""
    noise = np.random.default_rng(0).laplace(scale=np.sqrt(0.5), size=(_NULL_DRAWS, numbers))
    return float(np.quantile((np.maximum(noise, 0) ** 2).sum(axis=1), 1 - uncertainty.TAIL))


def _misses(curves: estimates.ClusteringCurves, share: Floats) -> float:
    """The sum of the squares of what the numbers are off, in deviations."""
    return float((((share @ curves.adds - curves.closed) / curves.deviation) ** 2).sum())


MASS, CLOSED, JOINT, PAIRS = "degree_mass", "closed_wedges", "joint_degrees", "pair_slices"
#: The number of edges, which is measured where a split has a share for it: masses add up to it as exactly. So is the
#: largest core: a tenth of ε = 1 gives noise of ±23, and walks come nearer by themselves where cores are small.
EDGES = "edge_count"
#: Degrees beyond this public number are cut off in tags, unless a bound is given.
LARGEST = 2**13
_PERCENT = {MASS: 14, TOP: 12, CLOSED: 36, JOINT: 23, PAIRS: 5, COUNT: 7, COMPONENTS: 3}
#: How often edges are made up for that no simple graph has room for at its highest degrees.
_EDGE_ROUNDS = 3
#: Limits of the slices of pairs.
_SLICES = (0.0, *(2.0**-k for k in range(9, 0, -1)))
#: Degrees up to this one have a tag each, by which degrees are told apart that many nodes share.
_ONE_BY_ONE = 16
#: More than any degree.
ANY = 2**64
#: In parts of 1/64: how much closed wedges may weigh on one edge under each tag. Many pairs have several neighbours of
#: low degree in common, few have many of a degree above 128. A clique needs a quarter at most, and that where its
#: nodes' degrees are the limit of a tag.
_ROOM = (40, 20, 15, 15, 14, 5, 3)
#: In parts of 1/64: how much of their weight closed wedges keep under each tag. They weigh least in the lowest, where
#: most nodes are. So an edge moves them by 125/64, and not by 11/4.
_WEIGHTS = (64, 40)
#: The natural logarithm of the odds against no triangle in a graph with cycles, and the most triangles of random graphs
#: of its degrees for there to be a chance of none. Where there may be no cycle, the odds are those of none against any
#: number up to that of edges, as far as the answers tell it.
_CYCLES, _FEW = 2.0, 10.0
#: Scales of its noise by which an answer rules out one component, where degrees have too few leaves for so many.
_FAR = 8.0
#: The share of normal noise that is within one standard deviation.
_WITHIN = 0.68


@dataclass(frozen=True, slots=True)
class SmoothedTarget(Target):
    """A target with estimates in place of the answers that they were made from.

    Attributes
    ----------
    smoothed : mapping
        The estimate for each key of the answers.

    Notes
    -----
    Privacy cost: none; estimates follow from answers.
    """

    smoothed: Mapping[Value, float] = field(default_factory=dict)

    @property
    def width(self) -> float:
        """The scale of the noise: the last of a difference below it is worth little."""
        return self.answers.scale

    @property
    def noise(self) -> float:
        """Not a number: how far the measured dataset is from an estimate nobody knows."""
        return math.nan

    @property
    def values(self) -> dict[Value, float]:
        """The estimate for each key of the domain."""
        return dict(self.smoothed)


@dataclass(frozen=True)
class Tagged(Method):
    """Measure degrees, and wedges and joint degrees by tag; begin from a graph of cliques.

    Wedges are closed ones.

    Attributes
    ----------
    name : str
        Its name in reports.
    triad_share : float
        See `Method`.
    stops_at_noise : bool
        What it fits are estimates. Against the answers, the graph that the walk begins from is at the noise level as a
        rule, with triangles still to be fitted.
    """

    name: str = "tags"
    triad_share: float = 0.95
    symmetric: bool = False
    stops_at_noise: ClassVar[bool] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        Swaps(triad_share=self.triad_share)  # refuses a share out of range, before anything is spent

    @property
    def shares(self) -> dict[str, Fraction]:  # type: ignore[override]
        """The shares of epsilon, of which there is one for each measurement."""
        return {name: Fraction(percent, 100) for name, percent in _PERCENT.items()}

    def measurements(
        self, source: Query, epsilon: EpsilonLike, split: Mapping[str, object] | None = None, bounds: Bounds = UNBOUNDED
    ) -> dict[str, Measurement]:
        """As `Method.measurements`.

        A split without a share for the largest degree, pairs, triangles or components leaves that out. So do bounds
        that show it to be infeasible, unless a split has a share for it. The others get its cost. The number of edges
        and the largest core are measured where a split has a share for them: of most graphs noise hides the latter.
        """
        wanted = self.wanted(source, source, LARGEST if bounds.degree is None else bounds.degree)
        if split is None:
            wanted = {name: wanted[name] for name in self.shares}
            return method.spend_without((TOP, PAIRS, COUNT, COMPONENTS), wanted, epsilon, self.shares, bounds)
        own = {EDGES} - set(self.shares)  # of directed graphs the number of pairs is needed
        left_out = ({TOP, PAIRS, COUNT, COMPONENTS, method.CORE} | own) - set(split)
        return method.spend({name: asked for name, asked in wanted.items() if name not in left_out}, epsilon, split)

    def wanted(self, source: Query, counted: Query, largest: int) -> dict[str, Measurement]:
        """The measurements of undirected edges, and by ladders of `counted`, their source."""
        fine, coarse = fine_limits(largest), coarse_limits(largest)
        closed = _closed_wedges(source, coarse)
        pairs = combinations_with_replacement(range(len(fine) - 1), 2)
        by_degree = degree_limits(largest)
        return {
            MASS: tags.degree_mass_by_tag(source, by_degree).noisy_count(1, range(len(by_degree) - 1)),
            TOP: largest_degree(counted, 1),
            CLOSED: closed.noisy_count(1, range(len(coarse) - 1)),
            JOINT: tags.joint_degrees_by_tag(source, fine).noisy_count(1, pairs),
            PAIRS: tags.pair_slices(source, _SLICES).noisy_count(1, range(len(_SLICES) - 1)),
            COUNT: triangle_count(counted, 1),
            COMPONENTS: component_count(counted, 1),
            EDGES: source.select(lambda e: 0).geometric_count(1, [0]),
            method.CORE: largest_core(counted, 1),
        }

    def estimate(self, answers: Mapping[str, Answers], nodes: int | None = None) -> Estimates:
        """As `Method.estimate`: degrees first, then clustering by degree and mixing of degrees.

        The largest degree, pairs, triangles, components and core are not needed: answers without are estimated without.

        The targets are the estimates of clustering and mixing. The answers themselves are noise where there is little
        to count, and a walk that fits them undoes the start. Within the scale of the noise it is the square of a
        difference that counts. With absolute differences alone a search gives one number up whole, of triangles at high
        degrees, say, for many small gains elsewhere.
        """
        with single_blas_thread():
            return self._estimate(answers, nodes)

    def _estimate(self, answers: Mapping[str, Answers], nodes: int | None) -> Estimates:
        mass, top = answered(answers, MASS), answers.get(TOP)
        limits = degree_limits(ANY)[: len(mass) + 1]
        _check_version(MASS, mass, partial(tags.degree_mass_by_tag, limits=limits))
        highest = None if top is None else degree_sequence.NoisyLargest(float(top.value), top.scale)
        spread = degree_intervals(mass, limits, top)
        if EDGES in answers:
            spread["edges"] = count_interval(answers[EDGES], 0)
        if method.CORE in answers:  # with two edges it is at least 1
            spread["largest_core"] = count_interval(answers[method.CORE], "largest core", 1)
        held, parts = spread["edges"], answers.get(COMPONENTS)
        low, high = (math.inf, math.inf) if parts is None else parts.value_interval(uncertainty.CONFIDENCE)
        if parts is not None and nodes is None:  # of public nodes, those without an edge are components too
            spread["components"] = uncertainty.Interval.of_count(max(low, 1.0), max(high, 1.0))
        # where one component is not ruled out, it is likelier than as many as noise makes of it
        wanted = None if parts is None else round(float(parts.value)) if low > 1 else 1
        fitted_degrees = degree_sequence.estimate_degrees(_values(mass), mass.scale, limits, highest)
        degrees = np.sort(fitted_degrees)[-(nodes or 0) :]
        for _ in range(_EDGE_ROUNDS):  # so many components need edges, one for each other node
            tree = held.low if wanted is None else min(int((degrees > 0).sum()) - wanted, int(held.high))
            filled = degree_sequence.with_edges(degrees, max(held.low, tree), held.high)
            degrees = graphical(np.minimum(filled, fitted_degrees.max()))  # none is above the largest
        if degrees.sum() < 4:
            raise AnswersError(LOST)
        classes = estimates.DegreeClasses.of(np.sort(degrees[degrees > 0]))
        if parts is not None and nodes is None and (degrees == 1).sum() / 2 < low - 1 < _FAR * parts.scale:
            spread["components"] = replace(spread["components"], low=1.0)  # too few leaves to split off so many
        closed, joint = answered(answers, CLOSED), answered(answers, JOINT)
        coarse, largest = coarse_limits(ANY)[: len(closed) + 1], int(degrees.max())
        for name, value in {"nodes": len(classes.degrees), "largest_degree": largest}.items():  # as the made graph has
            own = spread[name]
            spread[name] = replace(own, low=min(own.low, float(value)), high=max(own.high, float(value)))
        _check_version(CLOSED, closed, partial(_closed_wedges, limits=coarse))
        wedges = wedge_weights(coarse, largest) * _each(_WEIGHTS, len(closed))
        usual, most = (_count(answers.get(COUNT), common) for common in (largest / 2, largest))
        cycles = held.low - spread["nodes"].high + low, held.high - spread["nodes"].low + high
        excess = (degrees * (degrees - 1)).sum() / degrees.sum()
        none = -_CYCLES if excess**3 / 6 <= _FEW else -math.inf
        if cycles[0] <= 0:
            none = math.log(degrees.sum() / (cycles[1] - cycles[0]))
        tagged = tag_weights(fine_limits(2 ** (1 + max(int(j) for _, j in joint.keys))), largest, whole=True)
        shares = classes.stub_mean(tagged / np.maximum(np.arange(largest + 1), 1)[:, None])
        weights = np.zeros((shares.shape[1],) * 2)
        for pair, weight in joint.items():
            weights[pair] = weight
        fields = estimates.fit_fields(classes, shares, weights, joint.scale)
        mixing = estimates.estimate_mixing(classes, fields)
        chance = estimates.random_clustering(classes, mixing)
        clustered = classes.degrees, wedges, _values(closed), closed.scale
        clustering = estimates.estimate_clustering(*clustered, usual, none, chance)
        fitted = (clustering[classes.degrees] * classes.degrees * (classes.degrees - 1) / 2) @ wedges[classes.degrees]
        mixed = estimates.joint_weights(mixing, shares)
        targets = [
            SmoothedTarget(closed, smoothed=dict(zip(closed.keys, fitted.tolist(), strict=True))),
            SmoothedTarget(joint, smoothed={pair: float(mixed[pair]) for pair in joint.keys}),
        ]

        def intervals(rng: np.random.Generator) -> dict[str, uncertainty.Interval]:
            with single_blas_thread():
                curves = estimates.ClusteringCurves.of(*clustered, most, chance)
                mixings = drawn_mixings(classes, fields, rng)
                number, none = nodes or len(classes.degrees), not clustering.any()
                doubt = chance_factors(classes, mixings)[:, curves.there]
                found = spread | clustering_intervals(curves, number, rng, none, doubt)
                return found | {"assortativity": mixing_interval(classes, mixings)}

        curves = classes, clustering, mixing
        seed: Callable[[Generator], Any] = partial(clique_graph, *curves)
        finish = None
        if PAIRS in answers:
            pairs = answers[PAIRS]
            _check_version(PAIRS, pairs, partial(tags.pair_slices, limits=_SLICES))
            walked = shares, mixed, joint.scale, wedges, fitted, closed.scale
            seed = partial(likeliest_graph, SeedTargets(*curves, *walked, _SLICES, _values(pairs), pairs.scale))
            finish = partial(close_cycles, limits=_SLICES, slices=_values(pairs), scale=pairs.scale)
        return Estimates(targets, seed, intervals, wanted, float(clustering[classes.degrees].sum()), finish)


def count_interval(answers: Answers, key: Value, least: int = 0) -> uncertainty.Interval:
    """Of a whole number that is at least `least`, from its noisy one."""
    off = answers.measurement.sink.half_width(answers.scale, uncertainty.CONFIDENCE)
    return uncertainty.Interval.of_count(max(answers[key] - off, least), max(answers[key] + off, least))


def degree_intervals(mass: Answers, limits: Sequence[int], top: Answers | None) -> dict[str, uncertainty.Interval]:
    """Intervals of the numbers of nodes and edges and of the largest degree, from half masses.

    Half masses are of degree; half of the lowest is the number of nodes. The largest degree has its own answer as a
    rule; masses tell far less of it.
    """
    doubled, scale, terms = 2 * _values(mass), 2 * mass.scale, [1] * len(mass)
    if top is None:
        largest = uncertainty.largest_degree_interval(limits, doubled, scale, terms)
    else:
        largest = uncertainty.Interval.of_count(*top.value_interval(uncertainty.CONFIDENCE))
    return {
        "nodes": uncertainty.nodes_interval(float(doubled[0]), scale),
        "edges": uncertainty.edges_interval(doubled, scale, terms),
        "largest_degree": largest,
    }


def degree_limits(largest: int) -> list[int]:
    """Limits of tags 0, 1, 2, …, 16, 20, 25, 32, … up to the first that is at least `largest`.

    Examples
    --------
    >>> degree_limits(20)[-3:]
    [15, 16, 20]
    """
    found = [*range(min(max(largest, 1), _ONE_BY_ONE) + 1)]
    while found[-1] < largest:
        found.append(round(_ONE_BY_ONE * 2 ** ((len(found) - _ONE_BY_ONE) / 3)))
    return found


def _closed_wedges(source: Query, limits: Sequence[int]) -> Query:
    places = len(limits) - 1
    return tags.closed_wedges_by_tag(source, limits, _each(_ROOM, places), _each(_WEIGHTS, places))


def _check_version(name: str, answers: Answers, asked: Callable[[Query], Query]) -> None:
    """Refuse answers to another question of this name: what they say would be read wrong."""
    plan = answers.measurement.plan
    (source,) = (node for node in topological([plan]) if not node.inputs)
    if asked(Query(source)).plan != plan:
        raise AnswersError(f"{name} was measured with other limits or weights than this version uses: measure again")


def fine_limits(largest: int) -> list[int]:
    """Limits of tags 0, 2, 4, 8, … up to the first that is no less than the largest degree.

    Examples
    --------
    >>> fine_limits(20)
    [0, 2, 4, 8, 16, 32]
    """
    return [0, *(2**k for k in range(1, max(2, math.ceil(math.log2(max(largest, 2))) + 1)))]


def coarse_limits(largest: int) -> list[int]:
    """Limits of tags 0, 2, 8, 32, … up to the first that is no less than the largest degree.

    Examples
    --------
    >>> coarse_limits(20)
    [0, 2, 8, 32]
    """
    found = [0, 2]
    while found[-1] < largest:
        found.append(4 * found[-1])
    return found


def _each(parts: Sequence[int], places: int) -> list[float]:
    """Parts of 1/64 for each of so many tags, the last for all that are left."""
    return [part / 64 for part in [*parts, *[parts[-1]] * (places - len(parts))][:places]]


def _count(answers: Answers | None, common: float) -> estimates.Known:
    """The released number of triangles, if any, and its deviation.

    The deviation is for a graph in which no two nodes have more than `common` neighbours in common. That number is not
    released, but the largest degree has an estimate. It is an upper bound, on which intervals rest. On the graphs of
    the benchmark the number is .20 to .92 of it: estimates take half.
    """
    if answers is None:
        return None
    sink = answers.measurement.sink
    if sink.identity() != TriangleCount().identity():
        raise AnswersError(f"{COUNT} must be a count of triangles by graphs.triangle_count")
    return float(answers[COUNTED]), sink.error(answers.plan, answers.epsilon, None, _WITHIN, Stated(width=common))


def _values(answers: Answers) -> Floats:
    return np.asarray(answers.values, dtype=np.float64)
