"""The default method: degrees, closed wedges by tag and joint degrees by tag; a graph of cliques; swaps towards both.

Everything that the figures of a graph need of it follows from three curves: how many nodes have a degree, how clustered
they are, and how degrees mix along edges. Each has a measurement that carries a large signal for its uses (see
`wpinq.graphs.tags`), an estimate under a smooth prior (see `estimates`), and a part in the graph that the walk begins
from (see `cliques`). The walk then fits the closed wedges and the joint degrees that the estimates give.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import AnswersError, PlanError
from wpinq.expr.values import Value
from wpinq.graphs import tags
from wpinq.graphs.limits import tag_weights, wedge_weights
from wpinq.graphs.synthesis.cliques import clique_graph
from wpinq.graphs.synthesis.degrees import graphical
from wpinq.graphs.synthesis.estimates import DegreeClasses, estimate_clustering, estimate_degrees, estimate_mixing
from wpinq.graphs.synthesis.estimates.mixing import joint_weights
from wpinq.graphs.synthesis.method import LOST, UNBOUNDED, Bounds, Edge, Method, spend
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.query import Query
from wpinq.synthesis.target import Target
from wpinq.synthesis.walks import Swaps

MASS, CCDF, CLOSED, JOINT = "degree_mass", "degree_ccdf", "closed_wedges", "joint_degrees"
LARGEST = 2**13
"""Degrees beyond this public number are cut off in tags, unless a bound is given."""
_STANDS_OUT, _LEAST_REACH = 5.0, 20.0
_JOINT_PRICE = 0.5
_TAGS_A_COPY = 4
"""Because the limits of coarse tags grow four-fold (see `closed_wedges_by_tag`)."""


@dataclass(frozen=True, slots=True)
class SmoothedTarget(Target):
    """A target with estimates in place of the answers that they were made from.

    Attributes
    ----------
    smoothed : mapping
        The estimate for each key of the answers.
    price : float
        What a unit of distance costs, in units of the epsilon of the answers.

    Notes
    -----
    Privacy cost: none; estimates follow from answers.
    """

    smoothed: Mapping[Value, float] = field(default_factory=dict)
    price: float = 1.0

    @property
    def epsilon(self) -> float:
        """The price of a unit of distance."""
        return self.price * float(self.answers.epsilon)

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
    """Measure degrees, closed wedges by tag and joint degrees by tag; begin from a graph of cliques.

    Attributes
    ----------
    name : str
        What reports call it.
    closing : float
        See `Method`.
    """

    name: str = "tags"
    closing: float = 0.4
    symmetric: bool = False
    stops_at_noise: ClassVar[bool] = False  # type: ignore[misc]
    """What it fits are estimates. Against the answers, the graph that the walk begins from is at the noise level as a
    rule, with triangles still to be fitted."""

    def __post_init__(self) -> None:
        Swaps(closing=self.closing)  # refuses a share out of range, before anything is spent

    @property
    def shares(self) -> dict[str, Fraction]:  # type: ignore[override]
        """Of the whole epsilon: a quarter for degrees, a fifth of it for their mass by tag; the rest about evenly."""
        return {MASS: Fraction(1, 20), CCDF: Fraction(1, 5), CLOSED: Fraction(2, 5), JOINT: Fraction(7, 20)}

    def measurements(
        self, source: Query, epsilon: object, split: Mapping[str, object] | None = None, bounds: Bounds = UNBOUNDED
    ) -> dict[str, Measurement]:
        largest = LARGEST if bounds.degree is None else bounds.degree
        fine, coarse = fine_limits(largest), coarse_limits(largest)
        copies = -(-len(coarse) // _TAGS_A_COPY)  # one tag less than limits, and one more for the lowest
        pairs = combinations_with_replacement(range(len(fine) - 1), 2)
        return spend(
            {
                MASS: (tags.degree_mass_by_tag(source, fine), range(len(fine) - 1)),
                CCDF: (tags.half_degree_ccdf(source), None if bounds.degree is None else range(bounds.degree)),
                CLOSED: (tags.closed_wedges_by_tag(source, coarse, copies), range(len(coarse) - 1)),
                JOINT: (tags.joint_degrees_by_tag(source, fine), list(pairs)),
            },
            epsilon,
            self.shares if split is None else split,
        )

    def keys(self, name: str, answers: Mapping[str, Answers], bounds: Bounds = UNBOUNDED) -> Iterable[Value]:
        """As `Method.keys`: of the CCDF, up to twice the limit of the highest tag whose mass stands out of noise."""
        if name != CCDF:
            raise PlanError(f"{name} has its keys from its measurement")
        mass = answers[MASS]
        limits = fine_limits(2 ** len(mass))
        seen = [limits[tag + 1] for tag, weight in mass.items() if weight > _STANDS_OUT * mass.scale]
        reach = 2 * max([*seen, math.ceil(_LEAST_REACH * mass.scale)], default=1)
        return range(min(reach, limits[-1]))

    def seed(self, answers: Mapping[str, Answers], rng: np.random.Generator) -> list[Edge]:
        classes = _classes(answers)
        mixing = _mixing(answers, classes)
        clustering = _clustering(answers, classes)
        edges = clique_graph(classes, clustering, mixing, rng)
        return [(a, b) for a, b in edges.tolist()]

    def targets(self, answers: Mapping[str, Answers], outside: bool = False) -> list[Target]:
        """As `Method.targets`: what the estimates of clustering and of mixing make of the answers.

        The answers themselves are noise where there is little to count, and a walk that fits them undoes the start.
        Within the scale of the noise it is the square of a difference that counts. With absolute differences alone a
        search gives one number up whole, of triangles at high degrees, say, for many small gains elsewhere. Joint
        degrees, of which there are many more and which a swap moves farther, cost half their epsilon.
        """
        classes = _classes(answers)
        return [
            SmoothedTarget(
                answers[name],
                outside,
                dict(zip(answers[name].keys, estimated.tolist(), strict=True)),
                price,
            )
            for name, estimated, price in (
                (CLOSED, _closed_wedges(answers, classes), 1.0),
                (JOINT, _joint_degrees(answers, classes), _JOINT_PRICE),
            )
        ]


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


def _values(answers: Mapping[str, Answers], name: str) -> Floats:
    if name not in answers:
        raise AnswersError(f"the answers lack {name!r}; there are {', '.join(answers) or 'none'}")
    return np.asarray(answers[name].values, dtype=np.float64)


def _classes(answers: Mapping[str, Answers]) -> DegreeClasses:
    mass, ccdf = _values(answers, MASS), 2 * _values(answers, CCDF)
    limits = fine_limits(2 ** len(mass))
    found = estimate_degrees(ccdf, 2 * answers[CCDF].scale, mass, answers[MASS].scale, limits)
    degrees = graphical(found)
    if degrees.sum() < 4:
        raise AnswersError(LOST)
    return DegreeClasses.of(np.sort(degrees[degrees > 0]))


def _tag_shares(classes: DegreeClasses, joint: Answers) -> Floats:
    limits = fine_limits(2 ** (1 + max(int(j) for _, j in joint.keys)))
    largest = int(classes.degrees.max())
    return classes.stub_mean(tag_weights(limits, largest) / np.maximum(np.arange(largest + 1), 1)[:, None])


def _mixing(answers: Mapping[str, Answers], classes: DegreeClasses) -> Floats:
    _values(answers, JOINT)
    shares = _tag_shares(classes, answers[JOINT])
    joint = np.zeros((shares.shape[1],) * 2)
    for pair, weight in answers[JOINT].items():
        joint[pair] = weight
    return estimate_mixing(classes, shares, joint, answers[JOINT].scale)


def _wedge_weights(answers: Mapping[str, Answers], classes: DegreeClasses) -> Floats:
    limits = coarse_limits(4 ** len(_values(answers, CLOSED)) // 2)
    return wedge_weights(limits, int(classes.degrees.max()))


def _clustering(answers: Mapping[str, Answers], classes: DegreeClasses) -> Floats:
    weights = _wedge_weights(answers, classes)
    return estimate_clustering(classes.degrees, weights, _values(answers, CLOSED), answers[CLOSED].scale)


def _closed_wedges(answers: Mapping[str, Answers], classes: DegreeClasses) -> Floats:
    degrees = classes.degrees
    closed = _clustering(answers, classes)[degrees] * degrees * (degrees - 1) / 2
    return np.asarray(closed @ _wedge_weights(answers, classes)[degrees])


def _joint_degrees(answers: Mapping[str, Answers], classes: DegreeClasses) -> Floats:
    joint = answers[JOINT]
    weights = joint_weights(_mixing(answers, classes), _tag_shares(classes, joint))
    return np.array([weights[pair] for pair in joint.keys])
