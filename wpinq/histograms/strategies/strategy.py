"""What a histogram strategy is: a query program, whose cost the plan bills, and an inference over its answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from wpinq.answers import Answers
from wpinq.errors import AnswersError, PlanError
from wpinq.expr import functions as wp
from wpinq.expr.types import INT
from wpinq.expr.values import Value
from wpinq.histograms.inference.arrays import Floats, vector
from wpinq.histograms.inference.intervals import linear_half_width
from wpinq.histograms.inference.nonnegative import nonnegative_least_squares, project_tree
from wpinq.histograms.inference.tree import Tree
from wpinq.histograms.workload import Workload, as_workload
from wpinq.measurement import Measurement
from wpinq.privacy.epsilon import parse_epsilon
from wpinq.query import Query

Function = Callable[..., Any]
Element = tuple[Any, Any]
"""A record that a bin gives weight to, and the coefficient, both as a lambda would write them."""

_BLOCK = 128


class Strategy(ABC):
    """A query program over a protected source and an inference over its answers.

    Attributes
    ----------
    domain : int
        The number of bins.
    """

    domain: int

    @property
    @abstractmethod
    def sensitivity(self) -> Fraction:
        """What a released weight is multiplied by to give an answer; the noise is that over ε in the answers.

        It equals the classical sensitivity of the strategy's queries.
        """

    @property
    @abstractmethod
    def keys(self) -> tuple[Value, ...]:
        """The public records that are released, in the order of the answers."""

    @property
    def size(self) -> int:
        """The number of answers."""
        return len(self.keys)

    @abstractmethod
    def query(self, source: Query, bin: Function | None = None) -> Query:
        """The query program over any query whose records `bin` maps to 0 … domain − 1; other bins are left out."""

    @abstractmethod
    def infer(self, answers: Any) -> Any:
        """The estimate, from Answers of `measure` or from a vector of noisy answers in the order of `keys`."""

    def measure(self, source: Query, epsilon: object, bin: Function | None = None) -> Measurement:
        """The measurement to release: the query over the strategy's public keys.

        Parameters
        ----------
        source : Query
            Any query.
        epsilon : number
            More than 0. Privacy cost: ε times the uses of each source, as the plan's bill says.
        bin : function, optional
            From a record to its bin; left out where records are bins.
        """
        return self.query(source, bin).noisy_count(epsilon, over=self.keys)

    def noise_scale(self, answers: Any, epsilon: object = None) -> float:
        """The scale of the Laplace noise in `answers_of(answers)`: that of Answers, or sensitivity over ε."""
        scale = answers.scale if isinstance(answers, Answers) else float(1 / parse_epsilon(epsilon))
        return scale * float(self.sensitivity)

    def answers_of(self, answers: Any) -> Floats:
        """Released weights as answers to the strategy's queries: times the sensitivity. A vector stays as it is."""
        if not isinstance(answers, Answers):
            return vector(answers, "the noisy answers", self.size)
        values = answers.values if answers.keys == self.keys else answers.at(self.keys)
        return np.asarray(values * float(self.sensitivity), dtype=np.float64)


def bins_of(source: Query, bin: Function | None, domain: int) -> Query:
    """The query of each record's bin, those outside of the domain left out; PlanError when bins are no ints."""
    if not isinstance(source, Query):
        raise PlanError(f"a strategy is a program over a query, not over a {type(source).__name__}")
    bins = source if bin is None else source.select(bin)
    if bins.plan.type != INT:
        raise PlanError(f"bins must be integers 0 to {domain - 1}, not {bins.plan.type}: give bin=lambda record: …")
    return bins.where(lambda x: (x >= 0) & (x < domain))


class LinearStrategy(Strategy):
    """A strategy whose queries are the rows of a matrix A, inferred by a linear estimate.

    Everything here takes and gives vectors along the first axis; further axes are further vectors.
    """

    @abstractmethod
    def elements(self, bin: Any) -> list[Element]:
        """The column of A of a bin: records with their coefficients, as a lambda over the bin would write them.

        Every bin's coefficients have the norm `sensitivity`, or less where the sensitivity is 1.
        """

    @abstractmethod
    def apply(self, histogram: Floats) -> Floats:
        """`A x`: the noiseless answers."""

    @abstractmethod
    def transpose(self, answers: Floats) -> Floats:
        """`Aᵀ y`."""

    @abstractmethod
    def estimate(self, answers: Floats) -> Floats:
        """The unbiased estimate of the histogram, linear in the answers: `A⁺ y`."""

    @abstractmethod
    def coefficients(self, queries: Floats) -> Floats:
        """What the estimate of each query takes of each answer: `(A⁺)ᵀ w`."""

    def query(self, source: Query, bin: Function | None = None) -> Query:
        """The query program: `SelectMany(bin → its column of A)`. Every record's weight goes to its bin's column.

        Parameters
        ----------
        source : Query
            Any query.
        bin : function, optional
            From a record to its bin, an int; left out where records are bins. Bins outside 0 … domain − 1 and null
            are left out.

        Returns
        -------
        Query
            A record for each row of A. Uses of the source: 1.

        Raises
        ------
        PlanError
            When bins are not integers.
        """
        bins = bins_of(source, bin, self.domain)
        return bins.select_many(lambda x: [wp.weighted(key, weight) for key, weight in self.elements(x)])

    def infer(self, answers: Any, nonnegative: Literal["top down", "least squares"] | None = None) -> Floats:
        """The histogram.

        Parameters
        ----------
        answers : Answers or array-like
            Answers of `measure`, or noisy answers `A x + noise` in the order of `keys`.
        nonnegative : {"top down", "least squares"}, optional
            Keep the counts at 0 or more: "top down" makes a binary tree over the unbiased estimate non-negative from
            the root on, so that long ranges keep their sums; "least squares" solves the constrained problem, which
            adds up to a large bias on long ranges of empty bins. Without either the estimate is unbiased.

        Returns
        -------
        numpy array of float64
            One count a bin.

        Raises
        ------
        AnswersError
            When the answers are not of this strategy.

        Notes
        -----
        Privacy cost: none, it is post-processing.
        """
        numbers = self.answers_of(answers)
        if nonnegative == "least squares":
            from scipy.sparse.linalg import LinearOperator

            shape = (len(numbers), self.domain)
            operator = LinearOperator(shape, matvec=self.apply, rmatvec=self.transpose, dtype=np.float64)
            return nonnegative_least_squares(operator, numbers, tolerance=1e-6)
        estimate = self.estimate(numbers)
        if nonnegative == "top down":
            tree = Tree.uniform(self.domain, 2)
            return project_tree(tree, tree.totals(estimate))[-1]
        if nonnegative is not None:
            raise AnswersError(f"nonnegative is 'top down', 'least squares' or None, not {nonnegative!r}")
        return estimate

    def expected_error(self, workload: Any, epsilon: object) -> float:
        """The expected total squared error of a workload, exact and known before anything is spent.

        `2 · sensitivity² / ε² · ‖W A⁺‖_F²`, the sum over the queries of the variance of each estimate.

        Parameters
        ----------
        workload : Workload or matrix
            The queries; a matrix has one row a query.
        epsilon : number
            More than 0; what a source used once pays.

        Returns
        -------
        float
            Divide by `workload.queries` for the mean squared error a query. Non-negativity and rounding are not
            in it: they depend on the data.

        Raises
        ------
        PlanError
            When the workload is over another domain.
        EpsilonError
            When epsilon is not a positive number.

        Notes
        -----
        Privacy cost: none. Source: Li et al., PODS 2010, proposition 6. (The slack for floating point, below 1e-6,
        is left out.)

        Examples
        --------
        >>> from wpinq.histograms import Identity, Bins
        >>> Identity(4).expected_error(Bins(4), epsilon=1)
        8.0
        """
        spent = parse_epsilon(epsilon)
        return 2 * float(self.sensitivity / spent) ** 2 * self.squared_norm(as_workload(workload, self.domain))

    def squared_norm(self, workload: Workload) -> float:
        """`‖W A⁺‖_F²`, by columns of the smaller side."""
        total = 0.0
        if workload.queries < self.domain:
            for start in range(0, workload.queries, _BLOCK):
                block = _unit(workload.queries, start)
                total += float((self.coefficients(workload.transpose(block)) ** 2).sum())
            return total
        for start in range(0, self.domain, _BLOCK):
            block = _unit(self.domain, start)
            total += float((workload.gram(block) * self.estimate(self.coefficients(block))).sum())
        return total

    def interval(
        self, answers: Any, query: Any, confidence: float = 0.95, epsilon: object = None
    ) -> tuple[float, float]:
        """The exact interval around the estimate of one linear query.

        Parameters
        ----------
        answers : Answers or array-like
            As for `infer`.
        query : array-like
            One coefficient a bin: 1 in a range and 0 elsewhere, for example.
        confidence : float
            Strictly between 0 and 1.
        epsilon : number, optional
            That of the measurement, where the answers are a vector; Answers know their scale.

        Returns
        -------
        lower, upper : float
            The interval holds the true answer with this probability, whatever the data.

        Notes
        -----
        Privacy cost: none. The estimate is a sum of independent Laplace noises with public coefficients.
        """
        wanted = vector(query, "the query", self.domain)
        scales = np.abs(self.coefficients(wanted)) * self.noise_scale(answers, epsilon)
        middle = float(wanted @ self.infer(answers))
        half = linear_half_width(scales, confidence)
        return middle - half, middle + half


def _unit(size: int, start: int) -> Floats:
    width = min(_BLOCK, size - start)
    block = np.zeros((size, width))
    block[np.arange(start, start + width), np.arange(width)] = 1.0
    return block
