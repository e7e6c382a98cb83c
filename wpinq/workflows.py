"""Whole jobs, from protected data to synthetic data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wpinq.api.query import Query
from wpinq.data import EdgeList
from wpinq.engines.contract import DEFAULT_ENGINE
from wpinq.expr.trace import RecordFunction
from wpinq.expr.values import Value
from wpinq.graphs.synthesis.method import UNBOUNDED, Bounds, Method, refuse_infeasible
from wpinq.kernel.release import Release
from wpinq.kernel.session import Session
from wpinq.marginals.cells import Attribute
from wpinq.marginals.released import MarginalTables
from wpinq.marginals.report import marginal_report
from wpinq.marginals.synthetic_rows import FittedTable, SyntheticRows
from wpinq.marginals.tabulation import MarginalTabulation, Views, choose_order, refuse_infeasible_marginals
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon_text import EpsilonLike

# The measurement of a protected graph for synthesis: bill, debit and answers.


def measure_graph(
    graph: object,
    method: Method,
    epsilon: EpsilonLike,
    *,
    node: type = int,
    split: Mapping[str, object] | None = None,
    bounds: Bounds = UNBOUNDED,
    ledger: str | os.PathLike[str] | None = None,
    budget: EpsilonLike | None = None,
    version: str | None = None,
    engine: str = DEFAULT_ENGINE,
    on_bill: Callable[[Bill], None] | None = None,
    on_step: Callable[[str], None] | None = None,
    on_answers: Callable[[str, Answers], None] | None = None,
) -> dict[str, Answers]:
    """Measure a graph by a method, and close the session of the graph.

    The simple undirected graph is protected: repeated and reversed edges count once, and loops are left out. The bill
    is known before the file is read. All measurements are debited together before the graph is evaluated. The session
    is closed before the function returns.

    Parameters
    ----------
    graph : object
        A file, a graph object or edges, as `EdgeList` takes them; or an `EdgeList`, which may name columns.
    method : Method
        The method of measurement.
    epsilon : number
        The whole cost, to one undirected edge.
    node : {int, str}
        The type of the nodes.
    split : mapping, optional
        The share of epsilon for each measurement, instead of the method's own.
    bounds : Bounds
        Public bounds on the graph.
    ledger : path, optional
        Where budgets are kept; None records nothing beyond this call.
    budget : number, optional
        The budget of the source "edges" in the ledger; by default epsilon.
    version : str, optional
        See `Session.protect`: the same measurements of the same version replay for free.
    engine : str
        The engine of the queries.
    on_bill : callable, optional
        Told the bill before anything is read.
    on_step : callable, optional
        Told the name of each step before it runs; times depend on the data.
    on_answers : callable, optional
        Given the answers of a measurement as they come, before the next is evaluated, to keep what was paid for
        whatever happens next. Where more keys follow from its answers, it is given the same measurement again with all.

    Returns
    -------
    dict
        Name to Answers, for `wpinq.graphs.synthesize`.

    Raises
    ------
    PlanError, EpsilonError
        When method, epsilon, shares and bounds do not fit each other, or the bounds show that a question is infeasible
        (`graphs.synthesis.feasibility`). Nothing is spent.
    SourceRejected
        When the graph is no sound edge list. Nothing is spent.
    BudgetExceeded
        When the budget does not cover the bill. Nothing is spent.
    EvaluationFailed
        When an engine failed after the debit. With a ledger and a version, the same call goes on from what the
        ledger holds.

    Notes
    -----
    Privacy cost: epsilon for one undirected edge, as the bill says. Keys are public: bounds, or what follows from
    answers. Source: paper, section 5.1.

    Examples
    --------
    >>> from wpinq.graphs.synthesis import Bounds, find_method
    >>> ring = [(i, (i + 1) % 9) for i in range(9)]
    >>> answers = measure_graph(ring, find_method("tbi"), epsilon=2, bounds=Bounds(nodes=12, degree=8))
    >>> [(name, len(table)) for name, table in answers.items()]
    [('degree_ccdf', 8), ('degree_sequence', 12), ('tbi', 1)]
    """
    source = method.source(node)
    measurements = method.measurements(source, epsilon, split, bounds)
    refuse_infeasible(measurements, bounds)
    if on_bill is not None:
        on_bill(Bill(measurements))
    with Session(ledger, engine=engine, on_step=on_step) as session:
        session.protect(
            source, _records(graph, method, node), budget=epsilon if budget is None else budget, version=version
        )
        # Paid for together and evaluated one by one: without its keys, a measurement waits to be asked for them.
        # A choice and an integer of the whole graph have no keys to be asked for.
        waiting = [replace(m, domain=None) if m.sink.per_key else m for m in measurements.values()]
        found = dict(zip(measurements, session.release(waiting), strict=True))
        answers: dict[str, Answers] = {}
        for name in sorted(found, key=lambda name: isinstance(found[name], Release)):  # what is there already first
            for table in _as_they_come(name, measurements[name], found[name], method, answers, bounds):
                answers[name] = table
                if on_answers is not None:
                    on_answers(name, table)
        return {name: answers[name] for name in measurements}


def _records(graph: object, method: Method, node: type) -> list[tuple[Any, Any]]:
    """The records of a simple undirected graph, as the method's source holds them."""
    given = graph if isinstance(graph, EdgeList) else EdgeList(graph)
    edges = replace(given, directed=False, loops="drop", duplicates="drop").edges(node)
    return edges + [(b, a) for a, b in edges] if method.symmetric else edges


def _as_they_come(
    name: str,
    measurement: Measurement,
    found: Answers | Release,
    method: Method,
    answers: Mapping[str, Answers],
    bounds: Bounds,
) -> Iterator[Answers]:
    """The answers of a measurement over its public keys, or over those that the method derives.

    Derived keys are released round by round, as long as there are more.
    """
    if isinstance(found, Answers):
        yield found
    elif measurement.domain is not None:
        yield found.at(measurement.domain)
    else:
        asked: dict[Value, None] = {}
        while more := dict.fromkeys(key for key in method.keys(name, answers, bounds) if key not in asked):
            asked |= more
            yield found.at(asked)
        if not asked:
            yield found.at(asked)


# Synthetic rows of a table: the marginals to measure, and the rows that fit the measured ones.


def plan_table(
    query: Query,
    attributes: Iterable[RecordFunction | Attribute],
    epsilon: EpsilonLike,
    *,
    order: int | None = None,
    workload: Views | None = None,
    records: float | None = None,
) -> MarginalTabulation:
    """The marginals to measure for synthetic rows: one-ways or pairs, by public numbers.

    Parameters
    ----------
    query : Query
        The records to synthesize.
    attributes, epsilon, workload
        As for `Query.marginals`.
    order : int, optional
        The number of attributes of each marginal. Left out, `choose_order` decides.
    records : float, optional
        About how many records there are: public, not looked up. It decides between the orders, and marginals that it
        shows to be infeasible are refused.

    Returns
    -------
    MarginalTabulation
        For `Session.release`.

    Raises
    ------
    PlanError
        As for `Query.marginals`, or where a marginal is infeasible.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", sex=wp.category("f", "m"), smokes=bool)
    >>> plan_table(people, ["sex", "smokes"], epsilon=1).measuring.wanted
    ((0, 1),)
    >>> plan_table(people, ["sex", "smokes"], epsilon="0.001", records=500, order=1)
    Traceback (most recent call last):
    ...
    wpinq.errors.PlanError: a cell of sex is ...
    """
    attributes = list(attributes)
    asked = query.marginals(attributes, 1 if order is None else order, epsilon=epsilon, workload=workload)
    if order is None and workload is None:
        chosen = choose_order(asked.measuring.attributes.sizes, asked.epsilon, records)
        if chosen > 1:
            asked = query.marginals(attributes, chosen, epsilon=epsilon)
    if records is not None:
        refuse_infeasible_marginals(asked, records)
    return asked


@dataclass(frozen=True, slots=True)
class SyntheticTable:
    """Rows drawn from a joint model of released marginals.

    Attributes
    ----------
    model : FittedTable
        The model that fits the marginals.
    rows : SyntheticRows
        Drawn from the model.
    report : dict
        The bill, the errors and the permitted uses, as plain data: see `marginal_report`.
    """

    model: FittedTable
    rows: SyntheticRows
    report: dict[str, Any]


def synthesize_table(
    marginals: MarginalTables,
    model: str = "mixture",
    *,
    count: int | None = None,
    copies: int | None = None,
    seed: int = 0,
) -> SyntheticTable:
    """Fit a joint model to released marginals and draw rows from it, at no privacy cost.

    Parameters
    ----------
    marginals : MarginalTables
        The released marginals.
    model : {"mixture", "tree", "full table"}
        See `wpinq.marginals.models.fit`.
    count : int, optional
        The number of rows; the noisy number of records when left out.
    copies : int, optional
        The number of weighted rows for each record, instead of whole rows.
    seed : int
        The seed of the fit and the draw.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", sex=wp.category("f", "m"), smokes=bool)
    >>> asked = plan_table(people, ["sex", "smokes"], epsilon=1)
    >>> marginals = wp.simulate(asked, {"people": [("f", True)] * 300 + [("m", False)] * 500}, seed=1)
    >>> made = synthesize_table(marginals, count=10)
    >>> len(made.rows), made.report["bill"]
    (10, {'people': '1'})
    """
    fitted = marginals.fit(model, seed=seed)
    rows = fitted.rows(count, seed=seed) if copies is None else fitted.weighted_rows(copies, seed=seed)
    return SyntheticTable(fitted, rows, marginal_report(marginals, fitted, rows))
