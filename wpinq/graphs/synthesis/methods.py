"""The synthesis methods by name; a new one is a `Method` and an entry in `METHODS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.graphs import recipes
from wpinq.graphs.synthesis import uncertainty
from wpinq.graphs.synthesis.directed import DIRECTED, Directed
from wpinq.graphs.synthesis.method import UNBOUNDED, Bounds, Estimates, Method, answered, spend, spend_without
from wpinq.graphs.synthesis.random_graphs import CCDF, SEQUENCE, fit_degrees, graphical, random_graph
from wpinq.graphs.synthesis.tags import Tagged
from wpinq.mcmc.proposal import Swaps
from wpinq.mcmc.target import Target
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.runtime.arrays import Integers

Recipe = Callable[[Query], Query]
Keys = Callable[[Integers], Iterable[Value]]

#: Of the whole epsilon, for the degrees: three tenths, of which the sequence takes a tenth (see `docs/graphs.md`).
SEED_SHARES = {CCDF: Fraction(27, 100), SEQUENCE: Fraction(3, 100)}
_FIRST_KEYS = 64
#: Of a node: a mean count that is surely less has no node of a higher degree above it, which would make it 1.
_TELLING = 0.5
_MOST_KEYS = 2**20


@dataclass(frozen=True)
class Fit:
    """A query to fit, from symmetric edges, with its public keys.

    The keys follow from fitted degrees; they are None if inferred. `tells` gives intervals of the graph's statistics
    from its answers.
    """

    recipe: Recipe
    keys: Keys | None
    tells: uncertainty.Tells = lambda *_: {}


@dataclass(frozen=True)
class DegreesThen(Method):
    """The paper's method: fit the degrees, draw a random graph that has them, and swap edges.

    The swaps go on until the queries come out as they were released (paper, section 5.1).

    Attributes
    ----------
    name : str
        Its name in reports.
    fits : mapping
        Name to query, one or several.
    triad_share : float
        See `Method`.
    """

    name: str
    fits: Mapping[str, Fit]
    triad_share: float = 0.0
    symmetric: bool = True

    def __post_init__(self) -> None:
        if not self.fits or {CCDF, SEQUENCE} & set(self.fits):
            raise PlanError(f"give one query or more to fit, not named {CCDF} or {SEQUENCE}")
        Swaps(triad_share=self.triad_share)  # refuses a share out of range, before anything is spent

    @property
    def shares(self) -> dict[str, Fraction]:  # type: ignore[override]
        left = (1 - sum(SEED_SHARES.values(), Fraction(0))) / len(self.fits)
        return {**SEED_SHARES, **dict.fromkeys(self.fits, left)}

    def measurements(
        self, source: Query, epsilon: EpsilonLike, split: Mapping[str, object] | None = None, bounds: Bounds = UNBOUNDED
    ) -> dict[str, Measurement]:
        degrees = None if bounds.degree is None else range(bounds.degree)
        nodes = None if bounds.nodes is None else range(bounds.nodes)
        wanted = {
            CCDF: recipes.degree_ccdf(source).noisy_count(1, degrees),
            SEQUENCE: recipes.degree_sequence(source).noisy_count(1, nodes),
        }
        wanted |= {name: fit.recipe(source).noisy_count(1) for name, fit in self.fits.items()}
        if split is None:  # the sequence only refines what the CCDF tells
            made = spend_without([SEQUENCE], wanted, epsilon, self.shares, bounds)
        else:
            made = spend(wanted, epsilon, split)
        for name, fit in self.fits.items():
            if fit.keys is None and made[name].domain is None:
                raise PlanError(f"{name} has no public keys that follow from its plan, and no rule for them")
        # two standard errors of the mean of n counts are 2·√2·scale/√n: so many counts are needed for `_TELLING`
        if bounds.degree is None and _MOST_KEYS // 2 * (_TELLING * float(made[CCDF].epsilon)) ** 2 < 8:
            raise PlanError(
                f"the epsilon of {CCDF} is too small to estimate the largest degree: give a public bound on the degree"
            )
        return made

    def keys(self, name: str, answers: Mapping[str, Answers], bounds: Bounds = UNBOUNDED) -> Iterable[Value]:
        """As `Method.keys`.

        Of the CCDF, keys 0, 1, … until the upper half of them shows, at two standard errors, less than half a node
        above them; of the sequence, as many as the CCDF shows nodes, and ten scales of its noise more.
        """
        if name == CCDF:
            return range(_ccdf_keys(answers.get(CCDF)))
        if name == SEQUENCE:
            ccdf = answers[CCDF]
            return range(max(1, math.ceil(ccdf[0] + 10 * ccdf.scale)))
        keys = self.fits[name].keys
        if keys is None:
            return super().keys(name, answers, bounds)
        return () if name in answers else keys(fit_degrees(answers))  # the degrees are what they were

    def estimate(self, answers: Mapping[str, Answers], nodes: int | None = None) -> Estimates:
        """As `Method.estimate`: degrees that some simple graph has, and the released answers to fit."""
        targets = [Target(answered(answers, name)) for name in self.fits]
        fitted = fit_degrees(answers)[:nodes]

        def intervals(rng: np.random.Generator) -> dict[str, uncertainty.Interval]:
            found = uncertainty.degree_intervals(answers[CCDF])
            for name, fit in self.fits.items():
                told = fit.tells(answers[name], fitted, found["largest_degree"].high, rng)
                found = {**told, **found}  # of two queries that tell of one statistic, the first
            return found

        return Estimates(targets, partial(random_graph, graphical(fitted)), intervals)


def _ccdf_keys(known: Answers | None) -> int:
    if known is None:
        return _FIRST_KEYS
    count = len(known)
    upper = np.asarray(known.values)[count // 2 :]
    error = 2 * math.sqrt(2 / len(upper)) * known.scale
    return count if float(upper.mean()) + error < _TELLING else 2 * count


def _triples(bucket: int) -> Keys:
    return lambda degrees: combinations_with_replacement(np.unique(degrees // bucket).tolist(), 3)


def _fits(bucket: int) -> dict[str, Fit]:
    """The queries to fit, by their short names."""
    triangles = partial(recipes.triangles_by_degree, bucket=bucket)
    return {
        "tbi": Fit(recipes.triangles_by_intersect, None, uncertainty.by_intersect),
        "tbd": Fit(triangles, _triples(bucket), partial(uncertainty.by_degree, bucket)),
        "jdd": Fit(
            recipes.joint_degrees, lambda d: product(np.unique(d).tolist(), repeat=2), uncertainty.by_joint_degrees
        ),
    }


#: What `wpinq synthesize` takes unless told.
DEFAULT_METHOD = "tags"

#: Methods beside those that `find_method` makes of the paper's queries: name to what makes it.
METHODS: dict[str, Callable[..., Method]] = {"tags": Tagged, DIRECTED: Directed}


def method_names() -> list[str]:
    """The names that `find_method` accepts, without sums."""
    return [*METHODS, *_fits(1)]


def find_method(name: str, bucket: int = 20, triad_share: float | None = None) -> Method:
    """A method by its name.

    Parameters
    ----------
    name : str
        `tbi` (triangles by intersect), `tbd` (triangles by degree), `jdd` (joint degrees), several with `+` between
        them, or another of `METHODS`.
    bucket : int
        The width of the buckets of degrees in `tbd`.
    triad_share : float, optional
        The share of proposals chosen to close a triangle, instead of the method's own.

    Raises
    ------
    PlanError
        When there is no such method.

    Examples
    --------
    >>> method = find_method("tbi+jdd")
    >>> for name, measurement in method.measurements(method.source(), epsilon=1).items():
    ...     print(name, float(measurement.epsilon))
    degree_ccdf 0.135
    degree_sequence 0.015
    tbi 0.0875
    jdd 0.0875
    """
    share: dict[str, Any] = {} if triad_share is None else {"triad_share": triad_share}
    if name in METHODS:
        return METHODS[name](**share)
    fits, parts = _fits(bucket), name.split("+")
    if len(set(parts)) < len(parts) or not set(parts) <= set(fits):
        known = ", ".join(method_names())
        raise PlanError(f"there is no method {name!r}; there are {known}, and sums such as tbi+jdd")
    return DegreesThen(name, {part: fits[part] for part in parts}, **share)
