"""Two-stage histograms: buckets of bins that are alike are chosen first, and then counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from wpinq.api.query import Query
from wpinq.errors import BudgetExceeded, PlanError
from wpinq.expr.trace import UserFunction
from wpinq.histograms.strategies.bucketed import Bucketed
from wpinq.histograms.strategies.identity import Identity
from wpinq.histograms.strategies.strategy import Mechanism, bins_of
from wpinq.histograms.workload import check_domain_size
from wpinq.inference.checks import positive
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import format_epsilon, parse_epsilon
from wpinq.runtime.arrays import Floats
from wpinq.sinks.buckets import Buckets

FEWEST, MOST = 100, 15_000
"""The total weight times epsilon between which two stages were seen to pay (docs/histograms.md)."""


class Releasing(Protocol):
    """What releases measurements: a session."""

    def remaining(self, source: str) -> Fraction: ...
    def release(self, measurements: Any, *, fresh: bool = ..., label: str | None = ...) -> Any: ...


@dataclass(frozen=True)
class TwoStageHistogram:
    """What two stages released, and the histogram.

    Attributes
    ----------
    buckets : Answers
        Of the first stage: its `value` lists the bins where buckets begin.
    answers : Answers
        Of the second: noisy counts of the buckets, or of a tree over them.
    strategy : Bucketed
        What infers the histogram from them.
    histogram : numpy array of float64, shape (bins,)
        The estimate, non-negative where the data are declared to be.
    """

    buckets: Answers
    answers: Answers
    strategy: Bucketed
    histogram: Floats


@dataclass(frozen=True)
class TwoStage:
    """Choose buckets of bins that are alike with a share of epsilon; count these with the rest; spread them evenly.

    The first stage draws a partition by a Gibbs law over the tree of halves (`query.buckets`), the second counts
    its buckets one by one or in the tree of least expected error (`Bucketed`).

    **When it pays.** On data that are nearly flat or in blocks, with a total weight times epsilon from about 100 to
    15,000: up to 12 times less error than `choose`. Elsewhere it loses, two to three times in the mean and in single
    cases twenty times: where that product is less, the first stage sees nothing and merges all; where it is more,
    buckets hide what noise no longer does. So it is an option, and `choose` with its non-negative estimates the
    default. Whether it suits is a public judgement, made on an earlier release or on what is known of the data:
    `advice` says what is known of the sizes, and `run` tries it on a public guess.

    Parameters
    ----------
    domain : int
        The number of bins, at most 2²⁰.
    share : number
        The share of epsilon for the first stage, between 0 and 1.
    split : number
        The chance with which a node of the tree is split before anything is known. Less merges more.
    penalty : number
        What a bucket costs in the first stage, in units of the noise of the second, 1/ε₂; more than 0.

    Notes
    -----
    Privacy cost: epsilon in sum, for either stage is billed as its own measurement and what the second asks depends on
    the first through what was released alone. The first stage that was published with DAWA (Li, Hay, Miklau, Wang,
    PVLDB 7(5), 2014) puts no noise on single bins, and loses more than it claims: 2.6 times on four bins. This is
    another, with a proof: docs/proofs/buckets.md.

    Examples
    --------
    >>> import wpinq as wp
    >>> ages = wp.source("ages", int, facts=["whole_weights"])
    >>> two = TwoStage(128)
    >>> print(two.bill(ages, epsilon=0.5))
    ages: 0.5
      protects one record, of weight 1
      promised of it: every record weighs a whole number, of rows that are equal to it
      buckets: Buckets(0.1) uses it once: 0.1 x 1 = 0.1
      counts: NoisyCount(0.4) uses it once: 0.4 x 1 = 0.4
    >>> with wp.Session() as session:
    ...     session.protect(ages, [age for age in range(32, 64) for _ in range(40)], budget=1)
    ...     released = two.release(session, ages, epsilon=0.5)
    ...     session.remaining("ages")
    Fraction(1, 2)
    >>> len(released.histogram), bool((released.histogram >= 0).all())
    (128, True)
    """

    domain: int
    share: Any = Fraction(1, 5)
    split: Any = Fraction(1, 2)
    penalty: Any = Fraction(1)

    def __post_init__(self) -> None:
        check_domain_size(self.domain)
        for name in ("share", "split", "penalty"):
            object.__setattr__(self, name, parse_epsilon(getattr(self, name)))
        if not self.share < 1:
            raise PlanError("share is that of the first stage, between 0 and 1: try 0.2")
        Buckets(self.domain, self.penalty, self.split)

    def epsilons(self, epsilon: object) -> tuple[Fraction, Fraction]:
        """What each stage is given of epsilon, exactly."""
        whole = parse_epsilon(epsilon)
        return whole * self.share, whole * (1 - self.share)

    def measure_buckets(self, source: Query, epsilon: object, bin: UserFunction | None = None) -> Measurement:
        """The first stage, for the epsilon of both.

        Parameters
        ----------
        source : Query
            Any query.
        epsilon : number
            Of both stages: this one costs `share` of it times the uses of each source.
        bin : function, optional
            From a record to its bin; left out where records are bins. Bins outside of the domain are left out.
        """
        first, second = self.epsilons(epsilon)
        return bins_of(source, bin, self.domain).buckets(first, self.domain, self.penalty / second, self.split)

    def bill(self, source: Query, epsilon: object, bin: UserFunction | None = None) -> Bill:
        """What both stages cost, before either: the second costs the same whatever the buckets."""
        counts = Identity(self.domain).measure(source, self.epsilons(epsilon)[1], bin)
        return Bill({"buckets": self.measure_buckets(source, epsilon, bin), "counts": counts})

    def bucketed(self, buckets: Answers, workload: Any = None) -> Bucketed:
        """The strategy of the second stage, from the answers of the first; its `measure` takes `epsilons(ε)[1]`.

        Parameters
        ----------
        buckets : Answers
            Of `measure_buckets`.
        workload : Workload or matrix, optional
            What the histogram is wanted for; all ranges when left out.
        """
        sink = buckets.measurement.sink if isinstance(buckets, Answers) else None
        if not isinstance(sink, Buckets) or sink.bins != self.domain:
            raise PlanError(f"give the answers of measure_buckets, of buckets over {self.domain} bins")
        return Bucketed(self.domain, buckets.value, workload=workload)

    def run(
        self,
        release: Callable[[Measurement], Answers],
        source: Query,
        epsilon: object,
        bin: UserFunction | None = None,
        workload: Any = None,
        mechanism: Mechanism = "laplace",
    ) -> TwoStageHistogram:
        """Both stages, one after the other, by whatever releases a measurement.

        Parameters
        ----------
        release : callable
            From a measurement to its answers: `session.release`, or `lambda m: wp.simulate(m, guess, seed)` to
            try it on a public guess.
        source, epsilon, bin
            As for `measure_buckets`.
        workload : Workload or matrix, optional
            As for `bucketed`.
        mechanism : {"laplace", "geometric", "automatic"}
            The noise of the second stage.

        Examples
        --------
        >>> import wpinq as wp
        >>> ages, guess = wp.source("ages", int), {"ages": [age for age in range(32, 64) for _ in range(40)]}
        >>> two = TwoStage(128)
        >>> two.run(lambda m: wp.simulate(m, guess, seed=1), ages, epsilon=1).buckets.value
        (0, 32, 48, 64, 96)
        """
        promised = self.bill(source, epsilon, bin)
        first = self.measure_buckets(source, epsilon, bin)
        buckets = release(first)
        strategy = self.bucketed(buckets, workload)
        second = strategy.measure(source, self.epsilons(epsilon)[1], bin, mechanism)
        billed = Bill([first, second])
        if any(billed[account] > cost for account, cost in promised.items()):
            raise PlanError("the second stage would cost more than was billed: nothing was released of it")
        answers = release(second)
        return TwoStageHistogram(buckets, answers, strategy, strategy.infer(answers))

    def release(
        self,
        session: Releasing,
        source: Query,
        epsilon: object,
        bin: UserFunction | None = None,
        workload: Any = None,
        mechanism: Mechanism = "laplace",
        *,
        label: str | None = None,
        on_bill: Callable[[Bill], None] | None = None,
    ) -> TwoStageHistogram:
        """Release both stages from a session, if its budgets cover both.

        Parameters
        ----------
        session : Session
            That protects the sources.
        source, epsilon, bin, workload, mechanism
            As for `run`.
        label : str, optional
            Written beside both debits.
        on_bill : callable, optional
            Told the bill of both stages before the first is released.

        Raises
        ------
        BudgetExceeded
            When the budgets do not cover both: nothing is spent. Where the ledger holds both already, `run` with
            `session.release` answers from there.

        Notes
        -----
        Privacy cost: `bill`, debited stage by stage. If the second fails, the first stays paid and replays.
        """
        promised = self.bill(source, epsilon, bin)
        if on_bill is not None:
            on_bill(promised)
        for account, cost in promised.in_turn().items():
            left = session.remaining(account)
            if left < cost:
                raise BudgetExceeded(
                    f"both stages cost {account} {format_epsilon(cost)}, each debit rounded up to whole billionths, "
                    f"and {format_epsilon(left)} is left: nothing was spent; where both were released before, "
                    "run(session.release, …) has them"
                )
        return self.run(lambda m: session.release(m, label=label), source, epsilon, bin, workload, mechanism)

    def advice(self, total: float, epsilon: object) -> str:
        """Whether two stages can pay for data of about this total weight, as far as that tells; a public figure.

        Parameters
        ----------
        total : float
            The total weight, of public knowledge or a guess, never looked up.
        epsilon : number
            Of both stages.

        Examples
        --------
        >>> print(TwoStage(4096).advice(9_400, 0.01))
        94 = total x epsilon: too little, the first stage would merge nearly all bins; take choose(...)
        """
        signal = positive(total, "a total weight") * float(parse_epsilon(epsilon))
        said = f"{signal:.4g} = total x epsilon: "
        if signal < FEWEST:
            return said + "too little, the first stage would merge nearly all bins; take choose(...)"
        if signal > MOST:
            return said + "so much that buckets hide more than noise does; take choose(...)"
        return (
            said + "two stages pay where the data are nearly flat or in blocks, and lose elsewhere: try run on a guess"
        )
