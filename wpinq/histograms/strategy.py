"""The interface of histogram strategies: a query program, and inference over its answers.

The plan bills the cost of the program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import AnswersError, EpsilonError, PlanError, described
from wpinq.expr.trace import UserFunction
from wpinq.expr.types import INT
from wpinq.expr.values import Value
from wpinq.histograms.workload import Stacked, Workload, as_workload, check_domain_size
from wpinq.inference.checks import blocks, is_one_of, units, vector
from wpinq.inference.intervals import Noise
from wpinq.inference.least_squares import project_tree
from wpinq.inference.tree import Tree
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.noise.geometric import lattice_scale
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.runtime.arrays import Floats, Integers

# --- the noise of a strategy's answers --------------------------------------------------------------------------------

#: Laplace noise; double-geometric noise on the lattice that the plan proves; that where it can be, and else Laplace.
Mechanism = Literal["laplace", "geometric", "automatic"]


def noisy(query: Query, epsilon: EpsilonLike, keys: Iterable[Value], mechanism: Mechanism) -> Measurement:
    """The noisy count or the geometric count of a query over public keys.

    "automatic" is "geometric" where the plan proves a lattice, and evaluation in floats is exact on it. It looks at the
    plan and at epsilon alone, so that the choice tells nothing of the data. Both cost the same privacy; the promise of
    GeometricCount is for neighbours with outputs on the same lattice. PlanError for "geometric" where the plan
    proves none: it names the step that breaks it.

    Examples
    --------
    >>> import wpinq as wp
    >>> bins = wp.source("bins", int, facts=["unit_weights"])
    >>> noisy(bins, 1, [0, 1], "automatic").sink
    GeometricCount(step=Fraction(1, 1))
    >>> noisy(wp.source("weights", int, weights=True), 1, [0, 1], "automatic").sink
    NoisyCount()
    """
    check_mechanism(mechanism)
    if mechanism == "geometric" or (mechanism == "automatic" and _fits(query.plan, parse_epsilon(epsilon))):
        return query.geometric_count(epsilon, over=keys)
    return query.noisy_count(epsilon, over=keys)


def check_mechanism(mechanism: object) -> None:
    """PlanError for what is no mechanism."""
    if not is_one_of(mechanism, ("laplace", "geometric", "automatic")):
        raise PlanError(f"a mechanism is 'laplace', 'geometric' or 'automatic', not {described(mechanism)}")


def _fits(plan: Node, epsilon: Fraction) -> bool:
    """Whether a session would release the plan with double-geometric noise."""
    certificate = plan_properties(plan)
    if certificate.lattice is None:
        return False
    try:
        lattice_scale(certificate, epsilon)
    except EpsilonError:
        return False
    return True


def noise_of(known: Any, sensitivity: Fraction, keys: tuple[Value, ...] | None = None) -> Noise:
    """The noise in released weights times a sensitivity.

    Parameters
    ----------
    known : Answers, Measurement or number
        Answers, whose scale is certified; the measurement to be released, whose scale is `1/ε` but for what a release
        adds for floating point; or the epsilon of Laplace noise.
    sensitivity : Fraction
        The factor of a weight.
    keys : tuple, optional
        What a measurement must be over, or PlanError. AnswersError for sinks that count nothing.

    Examples
    --------
    >>> import wpinq as wp
    >>> bins = wp.source("bins", int, facts=["unit_weights"])
    >>> noise_of(bins.geometric_count(0.5, over=[0]), Fraction(3)), noise_of(0.5, Fraction(3))
    (Noise(scale=6.0, step=3.0), Noise(scale=6.0, step=None))
    """
    if not isinstance(known, (Answers, Measurement)):
        return Noise(float(sensitivity / parse_epsilon(known)))
    sink = known.measurement.sink if isinstance(known, Answers) else known.sink
    if not sink.per_key:
        raise AnswersError(f"a strategy's answers are of NoisyCount or GeometricCount, not of {sink.name}")
    if isinstance(known, Measurement) and keys is not None and known.domain != keys:
        raise PlanError("the measurement has other keys than this strategy: pass the result of its own `measure`")
    step = None if sink.lattice is None else float(sensitivity * sink.lattice)
    if isinstance(known, Answers):
        return Noise(known.scale * float(sensitivity), step)
    return Noise(float(sensitivity / known.epsilon), step)


class Strategy(ABC):
    """A query program over a protected source and an inference over its answers.

    Attributes
    ----------
    domain : int
        The number of bins.

    Notes
    -----
    Only what `measure` gives costs privacy, once released. All else reads released answers, or none.

    `answers` are Answers of `measure`, or noisy numbers in the order of `keys`. Answers know their noise. For numbers,
    `epsilon` gives it: a number for Laplace noise, or the result of `measure`. Raises, everywhere: AnswersError
    when answers are not the strategy's, EpsilonError when an epsilon is not a positive number, PlanError when another
    parameter is out of range.
    """

    domain: int

    def __post_init__(self) -> None:
        check_domain_size(self.domain)

    @property
    def sensitivity(self) -> Fraction:
        """The factor from a released weight to an answer; the noise scale is this factor / ε.

        It equals the classical sensitivity of the strategy's queries; 1, unless a strategy says otherwise.
        """
        return Fraction(1)

    @property
    @abstractmethod
    def keys(self) -> tuple[Value, ...]:
        """The public records that are released, in the order of the answers."""

    @property
    def size(self) -> int:
        """The number of answers."""
        return len(self.keys)

    @abstractmethod
    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program; `bin` maps records to 0 … domain − 1.

        Other bins are left out.
        """

    @abstractmethod
    def infer(self, answers: Any) -> Any:
        """The estimate, from answers."""

    def measure(
        self, source: Query, epsilon: EpsilonLike, bin: UserFunction | None = None, mechanism: Mechanism = "laplace"
    ) -> Measurement:
        """The measurement to release: the query over the strategy's public keys.

        Parameters
        ----------
        source : Query
            Any query.
        epsilon : number
            More than 0. Privacy cost: ε times the uses of each source, as the plan's bill says.
        bin : function, optional
            From a record to its bin; left out where records are bins.
        mechanism : {"laplace", "geometric", "automatic"}
            "geometric" is double-geometric noise on the lattice that the plan proves, of less variance; its guarantee
            is for neighbours with outputs on the same lattice. "automatic" is that where the plan proves one,
            and Laplace noise elsewhere.

        Raises
        ------
        PlanError
            When bins are not of the right type; for "geometric", when the plan proves no lattice: it names the step
            that breaks it.

        Examples
        --------
        >>> import wpinq as wp
        >>> from wpinq.histograms import Identity
        >>> people = wp.source("people", age=int, facts=["unit_weights"])
        >>> Identity(100).measure(people, 0.1, bin=lambda p: p.age, mechanism="geometric").sink
        GeometricCount(step=Fraction(1, 1))
        """
        return noisy(self.query(source, bin), epsilon, self.keys, mechanism)

    def noise(self, answers: Any = None, epsilon: object = None) -> Noise:
        """The distribution of the noise in `answers_of`: `scale`, `step` and `variance`.

        `step` is None for Laplace noise.

        PlanError when a measurement is over other keys than the strategy's.
        """
        known = answers if isinstance(answers, Answers) else epsilon
        return noise_of(known, self.sensitivity, self.keys if isinstance(known, Measurement) else None)

    def answers_of(self, answers: Any) -> Floats:
        """The answers to the strategy's queries: released weights times the sensitivity.

        A vector stays as it is.
        """
        if not isinstance(answers, Answers):
            return vector(answers, "the noisy answers", self.size)
        return np.asarray(self.weights_at(answers, self.keys) * float(self.sensitivity), dtype=np.float64)

    @staticmethod
    def weights_at(answers: Answers, keys: tuple[Value, ...]) -> Floats:
        """The released weights of some keys, in their order."""
        return answers.values if answers.keys == keys else answers.at(keys)


def checked_query(source: object) -> Query:
    """The query, if it is one, or PlanError."""
    if not isinstance(source, Query):
        raise PlanError(f"a strategy is a program over a query, not over a {type(source).__name__}")
    return source


def bins_of(source: Query, bin: UserFunction | None, domain: int) -> Query:
    """The query of each record's bin, without those outside of the domain.

    PlanError when bins are no ints.
    """
    bins = checked_query(source) if bin is None else checked_query(source).select(bin)
    if bins.plan.type != INT:
        raise PlanError(f"bins must be integers 0 to {domain - 1}, not {bins.plan.type}: give bin=lambda record: …")
    return bins.where(lambda x: (x >= 0) & (x < domain))


# --- linear strategies: the rows of a matrix, whose estimates, errors and intervals are known exactly -----------------

#: A record that a bin gives weight to, and how much, both as a lambda would write them.
Coefficient = tuple[Any, Any]

#: How an estimate is made non-negative; "declared" where the plan of its answers proves that the histogram is.
Nonnegative = Literal["declared", "top down"] | None

_ROW_SPACE = 1e-7


class LinearStrategy(Strategy):
    """A strategy whose queries are the rows of a matrix A, inferred by a linear estimate.

    Everything here takes and gives vectors along the first axis; further axes are further vectors. A workload is a
    `Workload` or a matrix with one row a query, over the strategy's domain: PlanError elsewhere.
    """

    @abstractmethod
    def elements(self, bin: Any) -> list[Coefficient]:
        """The column of A of a bin: records with coefficients, as a lambda over the bin writes them.

        Every bin's weights have the norm `norm`. Where columns of A differ in norm, records that are not released
        take what is lacking.
        """

    @property
    def norm(self) -> Fraction:
        """The norm of every list of `elements`, at least 1.

        It is the sensitivity, or a power of two times that.
        """
        return self.sensitivity

    @abstractmethod
    def apply(self, histogram: Floats) -> Floats:
        """`A x`: the noiseless answers."""

    @abstractmethod
    def transpose(self, answers: Floats) -> Floats:
        """`Aᵀ y`."""

    # A strategy defines the last of these, or the other two.

    def estimate(self, answers: Floats) -> Floats:
        """The unbiased estimate of the histogram, linear in the answers: `A⁺ y`."""
        return self.solve(self.transpose(answers))

    def coefficients(self, queries: Floats) -> Floats:
        """The coefficient of each answer in the estimate of each query: `(A⁺)ᵀ w`."""
        return self.apply(self.solve(queries))

    def solve(self, vectors: Floats) -> Floats:
        """`(AᵀA)⁻¹ w`."""
        return self.estimate(self.coefficients(vectors))

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program `SelectMany(bin → its column of A)`.

        Every record's weight goes to its bin's column.

        Parameters
        ----------
        source : Query
            Any query. Uses of it: 1.
        bin : function, optional
            From a record to its bin, an int; left out where records are bins. Bins outside 0 … domain − 1 and null
            are left out.

        Raises
        ------
        PlanError
            When bins are not integers.
        """
        return bins_of(source, bin, self.domain).select_many(lambda x: listed(self.elements(x)))

    @property
    def passes(self) -> int:
        """The number of SelectMany steps above the histogram in the query program."""
        return 1

    def declared_nonnegative(self, answers: Any) -> bool:
        """Whether the plan of Answers proves that no bin weighs less than 0.

        It follows from the declarations of the sources.

        A source of rows says so, and one of weights with the fact "nonnegative". Never found from data; False for
        numbers without a plan.

        Examples
        --------
        >>> import wpinq as wp
        >>> from wpinq.histograms import Wavelet
        >>> strategy = Wavelet(4)
        >>> for weights in (True, False):
        ...     ages = wp.source("ages", int, weights=weights)
        ...     answers = wp.simulate(strategy.measure(ages, 1), {"ages": [1, 1, 3]}, seed=1)
        ...     strategy.declared_nonnegative(answers)
        False
        True
        """
        return isinstance(answers, Answers) and proves_nonnegative(answers.plan, self.passes)

    def infer(self, answers: Any, nonnegative: Nonnegative = None) -> Floats:
        """The histogram, with one count for each bin.

        Parameters
        ----------
        answers : Answers or array-like
            Answers of `measure`, or noisy answers `A x + noise` in the order of `keys`.
        nonnegative : {"declared", "top down"}, optional
            Keep the counts at 0 or more: "top down" makes a binary tree over the unbiased estimate non-negative from
            the root on, so that long ranges keep their sums. "declared" is "top down" where the sources of the
            answers declare what makes the histogram non-negative (`declared_nonnegative`). Without any the estimate
            is unbiased.
        """
        nonnegative = declared_or(self, answers, nonnegative)
        estimate = self.estimate(self.answers_of(answers))
        if nonnegative is None:
            return estimate
        if not is_one_of(nonnegative, ("top down",)):
            raise AnswersError(f"nonnegative is 'declared', 'top down' or None, not {described(nonnegative)}")
        tree = Tree.uniform(self.domain, 2)
        return project_tree(tree, tree.totals(estimate))[-1]

    def expected_error(self, workload: Any, epsilon: object) -> float:
        """The expected total squared error of a workload, exact and known before anything is spent.

        `v · ‖W A⁺‖_F²`, the sum over the queries of the variance of each estimate, v that of one answer:
        `2 · sensitivity² / ε²` for Laplace noise, and `2αs²/(1 − α)²` with `α = exp(−εg)` for double-geometric noise
        on the lattice g, whose steps in the answers are `s = sensitivity · g`.

        Parameters
        ----------
        workload : Workload or matrix
            The queries.
        epsilon : number or Measurement
            More than 0, what a source used once pays, for Laplace noise; or what `measure` gave, for its noise.

        Returns
        -------
        float
            Divide by `workload.queries` for the mean squared error a query. Non-negativity and rounding are not
            in it: they depend on the data.

        Notes
        -----
        Source: Li et al., PODS 2010, proposition 6. (The slack for floating point, below 1e-6, is left out.)

        Examples
        --------
        >>> from wpinq.histograms import Identity, Bins
        >>> Identity(4).expected_error(Bins(4), epsilon=1)
        8.0
        >>> import wpinq as wp
        >>> bins = wp.source("bins", int, facts=["unit_weights"])
        >>> round(Identity(4).expected_error(Bins(4), Identity(4).measure(bins, 1, mechanism="geometric")), 4)
        7.3654
        """
        return self.noise(epsilon=epsilon).variance * self.squared_norm(self.check(workload))

    @property
    def complete(self) -> bool:
        """Whether the answers determine every bin, so that every workload lies in the row space."""
        return True

    def check(self, workload: Any) -> Workload:
        """The workload, if it lies in the row space, `W A⁺ A = W`; PlanError if not.

        Examples
        --------
        >>> from wpinq.histograms import MatrixMechanism
        >>> MatrixMechanism([[1, 1]]).check([[2, 2]])
        <Matrix: 1 queries over 2 bins>
        """
        wanted = as_workload(workload, self.domain)
        if self.complete:
            return wanted
        if isinstance(wanted, Stacked):
            for part in wanted.workloads:
                self.check(part)
            return wanted
        size = max(float(wanted.gram_diagonal().sum()), 1e-300)
        outside = 0.0
        if wanted.queries < self.domain:
            for rows in wanted.row_blocks():
                outside += float(((rows - self.transpose(self.coefficients(rows))) ** 2).sum())
        else:  # trace of (I − A⁺A) WᵀW
            for start, stop in blocks(self.domain):
                unit = units(self.domain, start, stop)
                outside += float(((unit - self.estimate(self.apply(unit))) * wanted.gram(unit)).sum())
        if outside > _ROW_SPACE * size:
            raise PlanError(
                "the strategy does not determine every query of the workload: add queries to it until the workload "
                "lies in its row space (the rows of the identity always do)"
            )
        return wanted

    def squared_norm(self, workload: Workload) -> float:
        """`‖W A⁺‖_F²`: part by part, by ranges where both sides allow it, else by columns.

        The columns are of the smaller side.
        """
        if isinstance(workload, Stacked):
            return sum(self.squared_norm(part) for part in workload.workloads)
        ranges = workload.ranges()
        if ranges is not None:
            variances = [self.range_variances(starts, stops) for starts, stops in ranges]
            if all(found is not None for found in variances):
                return float(sum(found.sum() for found in variances if found is not None))
        total = 0.0
        if workload.queries < self.domain:
            for rows in workload.row_blocks():
                total += float((self.coefficients(rows) ** 2).sum())
            return total
        for start, stop in blocks(self.domain):
            unit = units(self.domain, start, stop)
            total += float((workload.gram(unit) * self.solve(unit)).sum())
        return total

    def range_variances(self, starts: Integers, stops: Integers) -> Floats | None:
        """The variance of the estimate of each range, in units of that of one answer.

        None without a quick way.
        """
        return None

    def intervals(
        self, answers: Any, workload: Any, confidence: float = 0.95, epsilon: object = None
    ) -> tuple[Floats, Floats]:
        """The interval around the estimate of each query of a workload: exact for Laplace noise.

        For double-geometric noise it is never too narrow: the narrowest one for sums of equal answers, and for others
        wider by less than 1 % of a standard deviation to either side (see `geometric_half_widths`).

        Parameters
        ----------
        answers : Answers or array-like
            As for `infer`.
        workload : Workload or matrix
            The queries.
        confidence : float
            Strictly between 0 and 1; of each interval by itself.
        epsilon : number or Measurement, optional
            Where the answers are a vector.

        Returns
        -------
        lower, upper : numpy arrays of float64
            Each interval holds its true answer with this probability, double-geometric noise with at least that,
            whatever the data.

        Notes
        -----
        An estimate's error is a sum of independent noises with public coefficients. A thousand ranges of 4,096 bins
        take 0.1 to 0.6 s; with double-geometric noise of an ε up to 1 those of trees and wavelets take 3 to 7 s, of
        ε = 10 up to 23 s.

        Examples
        --------
        >>> from wpinq.histograms import Identity, Bins
        >>> lower, upper = Identity(2).intervals([5.0, 7.0], Bins(2), confidence=0.9, epsilon=1)
        >>> lower.round(3), upper.round(3)
        (array([2.697, 4.697]), array([7.303, 9.303]))
        """
        wanted = self.check(workload)
        noise, middle = self.noise(answers, epsilon), wanted.answer(self.infer(answers))
        halves = []
        for rows in wanted.row_blocks():
            coefficients, half = self.coefficients(rows), np.zeros(rows.shape[1])
            some = coefficients.any(axis=0)  # an empty range is 0, for sure
            if some.any():
                half[some] = noise.half_widths(coefficients[:, some], confidence)
            halves.append(half)
        return middle - np.concatenate(halves), middle + np.concatenate(halves)

    def interval(
        self, answers: Any, query: Any, confidence: float = 0.95, epsilon: object = None
    ) -> tuple[float, float]:
        """The interval around the estimate of one linear query, as `intervals` gives it.

        `query` has one coefficient a bin: 1 in a range and 0 elsewhere, for example.
        """
        wanted = vector(query, "the query", self.domain)
        lower, upper = self.intervals(answers, wanted[None, :], confidence, epsilon)
        return float(lower[0]), float(upper[0])


def proves_nonnegative(plan: Node, passes: int = 0) -> bool:
    """Whether a plan proves that no weight of the histogram below it is negative.

    `passes` is the number of SelectMany above the histogram.
    """
    for _ in range(passes):
        if plan.operator.name != "SelectMany":
            return False
        (plan,) = plan.inputs
    return plan_properties(plan).output.nonnegative


def declared_or(strategy: LinearStrategy, answers: Any, nonnegative: Any, otherwise: Any = AnswersError) -> Any:
    """The meaning of "declared" for these answers; other values of `nonnegative` as they are.

    `otherwise` is for numbers that have no plan.
    """
    if not is_one_of(nonnegative, ("declared",)):
        return nonnegative
    if isinstance(answers, Answers):
        return "top down" if strategy.declared_nonnegative(answers) else None
    if otherwise is AnswersError:
        raise AnswersError(
            "numbers without a plan declare nothing: give nonnegative='top down' where no count can be below 0, or "
            "leave it out for unbiased estimates"
        )
    return otherwise


def listed(elements: list[Coefficient]) -> list[Any]:
    """The list for a SelectMany: the records by themselves where all weigh 1.

    Engines do these faster.
    """
    if all(isinstance(weight, float) and weight == 1 for _, weight in elements):
        return [key for key, _ in elements]
    return [F.weighted(key, weight) for key, weight in elements]


# --- every bin by itself ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity(LinearStrategy):
    """Every bin by itself, L: `Select(bin)`, with sensitivity 1.

    Best for bins one by one; the noise of a range grows with its length.

    Parameters
    ----------
    domain : int
        The number of bins.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", age=int)
    >>> strategy = Identity(100)
    >>> strategy.query(people, bin=lambda p: p.age).uses()
    {'people': 1}
    """

    passes: ClassVar[int] = 0
    domain: int

    @property
    def keys(self) -> tuple[Value, ...]:
        return tuple(range(self.domain))

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: `Select(bin)`, without bins outside of the domain.

        Uses of the source: 1.
        """
        return bins_of(source, bin, self.domain)

    def elements(self, bin: Any) -> list[Coefficient]:
        return [(bin, 1.0)]

    def apply(self, histogram: Floats) -> Floats:
        return np.asarray(histogram, dtype=np.float64)

    def transpose(self, answers: Floats) -> Floats:
        return self.apply(answers)

    def solve(self, vectors: Floats) -> Floats:
        return self.apply(vectors)

    def squared_norm(self, workload: Workload) -> float:
        return float(workload.gram_diagonal().sum())
