"""Measuring a table's pairs along a spanning tree that the data choose: one bill, then round after round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, cast

from wpinq.api.query import Query
from wpinq.errors import BudgetExceeded
from wpinq.expr.trace import UserFunction
from wpinq.histograms.strategies.marginals import Marginals, codes_of
from wpinq.marginals.adaptive_tree import PENALTY, SHARES, AdaptiveTree
from wpinq.marginals.attributes import Attributes, MeasuredView, View
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import ListedMeasurement, Measurement
from wpinq.noise.epsilon import format_epsilon


class Spending(Protocol):
    """What a tree is measured with: a `Session`, or what stands for one on public data."""

    def release(self, measurements: ListedMeasurement, *, label: str | None = None) -> Answers:
        """The answers of one measurement, which is paid for."""

    def remaining(self, source: str) -> Fraction:
        """What is left of the budget of an account."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTree:
    """What was released of a table along a spanning tree of its pairs.

    Attributes
    ----------
    attributes : Attributes
        Of the table.
    views : tuple of MeasuredView
        The one-way marginals by place, and the pairs of the tree.
    edges : tuple of views
        The pairs in the order in which they were chosen.
    answers : tuple of Answers
        All that was released: the one-ways, a choice each round, the pairs.
    """

    attributes: Attributes
    views: tuple[MeasuredView, ...]
    edges: tuple[View, ...]
    answers: tuple[Answers, ...]


def tree_bill(
    source: Query,
    attributes: Any,
    epsilon: object,
    *,
    bin: UserFunction | None = None,
    shares: Sequence[object] = SHARES,
    penalty: object = PENALTY,
) -> Bill:
    """What `measure_tree` costs, round by round: known before anything is measured, and whatever is chosen.

    Parameters are those of `measure_tree`.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", age=int, city=int, job=int)
    >>> print(tree_bill(people, {"age": 8, "city": 7, "job": 5}, epsilon=1))
    people: 1
      protects one record, of weight 1
      one-way marginals: NoisyCount(0.6) uses it once: 0.6 x 1 = 0.6
      choice of pair 1 of 2: MostDistant(0.05) uses it once: 0.05 x 1 = 0.05
      choice of pair 2 of 2: MostDistant(0.05) uses it once: 0.05 x 1 = 0.05
      2 pairs: NoisyCount(0.3) uses it once: 0.3 x 1 = 0.3
    """
    return Bill(_Rounds(source, AdaptiveTree.of(attributes, epsilon, shares, penalty), bin).stand_ins())


def measure_tree(
    session: Spending,
    source: Query,
    attributes: Any,
    epsilon: object,
    *,
    bin: UserFunction | None = None,
    shares: Sequence[object] = SHARES,
    penalty: object = PENALTY,
    resume: bool = False,
    on_bill: Callable[[Bill], None] | None = None,
) -> MeasuredTree:
    """The one-way marginals of a table, and the pairs along a spanning tree that the data choose.

    For wide tables, where most pairs are mostly noise. One-ways first; then d − 1 choices, each of the pair between two
    components with a high `‖m_ab − m_a · m_b / N‖₁ − γ · n_a n_b (d − 1)/ε_pairs`; then the chosen pairs. Shares of a
    record's weight go as n^(1/3) of a view's cells.

    Parameters
    ----------
    session : Session
        That protects the source.
    source : Query
        Any query.
    attributes : sequence of int, or dict from names to sizes
        The public number of values of each attribute, from 0 on; two attributes at least. All pairs together have at
        most 2²⁰ cells.
    epsilon : number
        For all of it.
    bin : function, optional
        From a record to its value of each attribute, a record of ints. Left out, the fields that the attributes are
        named after, or where they have no names the record itself. Values outside of the sizes leave a record out.
    shares : three numbers
        Of epsilon: for the one-ways, for all choices, and for the pairs.
    penalty : number
        γ: how much of the noise that a pair will have is taken off its distance. 0 chooses by distance alone.
    resume : bool
        Whether this goes on with a measurement that was interrupted, over the same version of the data: what the ledger
        holds of it replays for nothing, so less than the whole bill need be left.
    on_bill : callable, optional
        Told the whole bill before anything is spent.

    Returns
    -------
    MeasuredTree
        For `wpinq.marginals.models.fit(measured.views, measured.attributes, model="tree")`.

    Raises
    ------
    PlanError, EpsilonError
        Where attributes, records, epsilon, shares and penalty do not fit each other. Nothing is spent.
    BudgetExceeded
        When what is left does not cover the whole bill. Nothing is spent.
    EvaluationFailed
        When the engine failed after a debit. What was released before stays in the ledger: see `resume`.

    Notes
    -----
    Privacy cost: epsilon times the uses of each source times its unit weight, as the bill says: releases add up, also
    where one was chosen by the answers of another, and what each round costs is fixed beforehand. Nothing but answers
    decides what is asked next. Proof: `docs/proofs/most_distant.md`.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", age=int, city=int, job=int)
    >>> rows = [(i % 3, i % 2, i % 2) for i in range(3000)]
    >>> with wp.Session() as session:
    ...     session.protect(people, rows, budget=2)
    ...     measured = measure_tree(session, people, {"age": 3, "city": 2, "job": 2}, epsilon=2)
    ...     session.spent("people")
    Fraction(2, 1)
    >>> (1, 2) in measured.edges, [one.view for one in measured.views][:3]
    (True, [(0,), (1,), (2,)])
    """
    rounds = _Rounds(source, AdaptiveTree.of(attributes, epsilon, shares, penalty), bin)
    bill = Bill(rounds.stand_ins())
    if on_bill is not None:
        on_bill(bill)
    if not resume:
        _check_budgets(session, bill)
    return rounds.release(session)


class _Rounds:
    """What is asked for, one measurement after another."""

    def __init__(self, source: Query, tree: AdaptiveTree, bin: UserFunction | None) -> None:
        self.tree = tree
        self.codes = codes_of(source, bin, tree.attributes)

    def stand_ins(self) -> dict[str, Measurement]:
        """Measurements of the same cost: which pairs are chosen and compared with what changes none."""
        tree, sizes = self.tree, self.tree.attributes.sizes
        path = [(i, i + 1) for i in range(tree.rounds)]
        choices = {
            f"choice of pair {i + 1} of {tree.rounds}": self.choice(tree.even(i + 1), path[:i])
            for i in range(tree.rounds)
        }
        pairs = "1 pair" if len(sizes) == 2 else f"{tree.rounds} pairs"
        last = self.marginals(tree.pair_shares(path), tree.epsilons[2])[1]
        return {"one-way marginals": self.one_ways()[1], **choices, pairs: last}

    def release(self, session: Spending) -> MeasuredTree:
        """All of it: each round asks by the answers of those before."""
        tree = self.tree
        strategy, asked = self.one_ways()
        answers = [session.release(asked, label="one-way marginals")]
        measured = strategy.measured(answers[0])
        fitted = tree.one_ways(measured)
        edges: list[View] = []
        while len(edges) < tree.rounds:
            label = f"choice of pair {len(edges) + 1} of {tree.rounds}"
            answers.append(session.release(self.choice(fitted, edges), label=label))
            edges.append(answers[-1].value)
        strategy, asked = self.marginals(tree.pair_shares(edges), tree.epsilons[2])
        answers.append(session.release(asked, label="the chosen pairs"))
        return MeasuredTree(tree.attributes, (*measured, *strategy.measured(answers[-1])), tuple(edges), tuple(answers))

    def one_ways(self) -> tuple[Marginals, ListedMeasurement]:
        """Every one-way marginal."""
        return self.marginals(self.tree.one_way_shares, self.tree.epsilons[0])

    def choice(self, fitted: Sequence[Any], edges: Sequence[View]) -> ListedMeasurement:
        """The next edge."""
        return self.codes.most_distant(
            self.tree.epsilons[1], self.tree.attributes.sizes, self.tree.candidates(fitted, edges)
        )

    def marginals(self, shares: dict[View, float], epsilon: Fraction) -> tuple[Marginals, ListedMeasurement]:
        """Views with their shares of one use."""
        strategy = Marginals(self.tree.attributes.sizes, shares=shares)
        return strategy, cast(ListedMeasurement, strategy.measure(self.codes, epsilon))  # a strategy lists its keys


def _check_budgets(session: Spending, bill: Bill) -> None:
    """Refuse, while nothing is spent, what the budgets do not cover to its end."""
    for account, cost in bill.in_turn().items():
        left = session.remaining(account)
        if left < cost:
            raise BudgetExceeded(
                f"the tree costs {account} {format_epsilon(cost)} in all, each debit rounded up to whole billionths, "
                f"and {format_epsilon(left)} is left: nothing was spent; ask for less epsilon, or write resume=True to "
                "go on with one that was interrupted"
            )
