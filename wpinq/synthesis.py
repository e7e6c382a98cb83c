"""Synthetic graphs and tables, from protected data: measure, forget the data, fit.

`synthesize_graph` and `synthesize_table` do all of it; users call them `graphs.synthesize` and `tables.synthesize`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.api.query import Query
from wpinq.api.schema import schema
from wpinq.api.source import source
from wpinq.data import EdgeList, SourceData
from wpinq.engines.contract import DEFAULT_ENGINE, find_engine
from wpinq.errors import BudgetExceeded, PlanError, suggest
from wpinq.expr import build, types
from wpinq.expr.trace import RecordFunction
from wpinq.expr.values import Value
from wpinq.functions import cast
from wpinq.graphs.synthesis.fit import SyntheticGraph, fit_graph
from wpinq.graphs.synthesis.labels import labelled_measurements
from wpinq.graphs.synthesis.method import UNBOUNDED, Bounds, Method, refuse_infeasible
from wpinq.graphs.synthesis.methods import DEFAULT_METHOD, find_method
from wpinq.graphs.synthesis.public_nodes import PublicNodes
from wpinq.graphs.synthesis.random_graphs import import_igraph
from wpinq.inference.checks import count_of
from wpinq.kernel.release import Release
from wpinq.kernel.session import Session
from wpinq.marginals.cells import Attribute, attribute
from wpinq.marginals.joint_model import check_rows
from wpinq.marginals.models import check_model
from wpinq.marginals.released import MarginalTables
from wpinq.marginals.report import marginal_report
from wpinq.marginals.synthetic_rows import FittedTable, SyntheticRows
from wpinq.marginals.tabulation import MarginalTabulation, Views, refuse_infeasible_marginals, tabulate_marginals
from wpinq.mcmc.settings import Settings
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import from_nano, parse_budget, parse_epsilon
from wpinq.noise.epsilon_text import Epsilon, EpsilonLike
from wpinq.runtime.public import public

if TYPE_CHECKING:
    import pandas

Ledger = str | os.PathLike[str] | None


def _check_covered(bill: Bill, budget: EpsilonLike) -> None:
    """Refuse a budget below the bill before an account is opened, which keeps its first budget."""
    if not bill.times(dict.fromkeys(bill, from_nano(parse_budget(budget)))):
        costs = ", ".join(f"{account!r} needs {cost}" for account, cost in bill.items())
        raise BudgetExceeded(
            f"the budget does not cover the bill: {costs}; nothing was spent. Raise it, or lower epsilon"
        )


def synthesize_graph(
    graph: object,
    epsilon: EpsilonLike = 1,
    *,
    method: Method | str = DEFAULT_METHOD,
    node: type = int,
    nodes: object = None,
    labels: object = None,
    bounds: Bounds = UNBOUNDED,
    settings: Settings | None = None,
    seed: int | None = None,
    ledger: Ledger = None,
    budget: EpsilonLike | None = None,
    version: str | None = None,
    on_bill: Callable[[Bill], None] | None = None,
    progress: bool = False,
) -> SyntheticGraph:
    """A public synthetic graph from a protected one, in one call: `graphs.synthesize`.

    Parameters
    ----------
    graph : object
        A file, a graph of networkx or igraph, an array of edges, or an `EdgeList`: read as a simple undirected graph.
    epsilon : number
        The whole cost, to one undirected edge.
    method : str or Method
        The queries to fit besides degrees: "tags", "tbi", "tbd", "jdd", or several of the last three as "tbi+jdd".
    node : {int, str}
        The type of the nodes.
    nodes : names, path or PublicNodes, optional
        All nodes that may have an edge, from public knowledge and never from the graph. Their names are those of the
        synthetic graph. Edges with another end are refused as a whole.
    labels : mapping, sequence or str, optional
        The public label of each public node: by name, in the order of names, or the column of a csv file of nodes. The
        synthetic graph has about as many edges between two labels as the graph.
    bounds : Bounds
        Public bounds on the graph, `graphs.Bounds(nodes=1000)`, never taken from it.
    settings : Settings, optional
        Steps, chains and the like, `mcmc.Settings(steps=20_000)`.
    seed : int, optional
        The public seed of the fit, instead of that of the settings, 0. The noise has none.
    ledger : path, optional
        The ledger that records the cost; without one, nothing outlives this call.
    budget : number, optional
        The budget of the source "edges" in the ledger; epsilon by default.
    version : str, optional
        A name for this state of the graph: the same call repeats with the same noise, at no further cost.
    on_bill : callable, optional
        Called with the bill before anything is read, such as `print`.
    progress : bool
        Whether to show a progress bar for each chain.

    Returns
    -------
    SyntheticGraph
        With `to_networkx`, `to_igraph`, `to_pandas`, `write`, and intervals for the secret graph in `uncertainty`.

    Raises
    ------
    SourceRejected, PlanError, EpsilonError, BudgetExceeded
        When the graph, the options or the budget do not fit. Nothing is spent.
    AnswersError
        When igraph is missing, and nothing is spent; or when noise dominates the answers, which are paid for.
    EvaluationFailed
        When the evaluation failed after the debit.

    Notes
    -----
    Privacy cost: epsilon for one undirected edge. Its steps are `find_method`, `measure_graph` and `fit_graph`.

    Examples
    --------
    >>> ring = [(i, (i + 1) % 50) for i in range(50)]
    >>> made = synthesize_graph(ring, epsilon=20, method="tbi", settings=Settings(steps=100), bounds=Bounds(degree=9))
    >>> abs(len(made.edges) - 50) < 20
    True
    """
    chosen = find_method(method) if isinstance(method, str) else method
    settings = settings or Settings()
    settings = settings if seed is None else replace(settings, seed=seed)
    chosen.check(settings)
    import_igraph()  # both before anything is spent
    if labels is not None and nodes is None:
        raise PlanError("labels are of public nodes: give nodes=, all nodes that may have an edge")
    public = None if nodes is None else PublicNodes.of(nodes, node, labels)
    kept: dict[str, Any] = {"ledger": ledger, "budget": budget, "version": version}
    answers = measure_graph(graph, chosen, epsilon, node=node, nodes=public, bounds=bounds, on_bill=on_bill, **kept)
    return fit_graph(answers, chosen, settings, nodes=public, progress=progress)


# The measurement of a protected graph for synthesis: bill, debit and answers.


def measure_graph(
    graph: object,
    method: Method,
    epsilon: EpsilonLike,
    *,
    node: type = int,
    nodes: PublicNodes | None = None,
    split: Mapping[str, object] | None = None,
    bounds: Bounds = UNBOUNDED,
    ledger: Ledger = None,
    budget: EpsilonLike | None = None,
    version: str | None = None,
    engine: str = DEFAULT_ENGINE,
    on_bill: Callable[[Bill], None] | None = None,
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
    nodes : PublicNodes, optional
        All nodes that may have an edge. Their number bounds that of nodes.
    split : mapping, optional
        The share of epsilon for each measurement, instead of the method's own.
    bounds : Bounds
        Public bounds on the graph.
    ledger : path, optional
        Where budgets are kept; None records nothing beyond this call.
    budget : number, optional
        The budget of the source "edges" in the ledger; epsilon by default.
    version : str, optional
        See `Session.protect`: the same measurements of the same version replay for free.
    engine : str
        The engine of the queries.
    on_bill : callable, optional
        Told the bill before anything is read.
    on_answers : callable, optional
        Given the answers of a measurement as they come, before the next is evaluated, to keep what was paid for
        whatever happens next. Where more keys follow from its answers, it is given the same measurement again with all.

    Returns
    -------
    dict
        Name to Answers, for `wpinq.graphs.fit_graph`.

    Raises
    ------
    PlanError, EpsilonError
        When method, epsilon, shares and bounds do not fit each other, or the bounds show that a question is infeasible
        (`refuse_infeasible`). Nothing is spent.
    SourceRejected
        When the graph is no sound edge list, or has an end that is not among the public nodes. Nothing is spent.
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
    >>> from wpinq.graphs import Bounds
    >>> from wpinq.graphs.synthesis import find_method
    >>> ring = [(i, (i + 1) % 9) for i in range(9)]
    >>> answers = measure_graph(ring, find_method("tbi"), epsilon=2, bounds=Bounds(nodes=12, degree=8))
    >>> [(name, len(table)) for name, table in answers.items()]
    [('degree_ccdf', 8), ('degree_sequence', 12), ('tbi', 1)]
    """
    source = method.source(node, nodes)
    if nodes is not None:
        if bounds.nodes is not None:
            raise PlanError("public nodes bound their number by themselves: leave the bound on nodes out")
        bounds = replace(bounds, nodes=len(nodes))
    measurements = labelled_measurements(method, source, epsilon, split, bounds, nodes)
    refuse_infeasible(measurements, bounds)
    bill = Bill(measurements)
    if budget is not None:
        _check_covered(bill, budget)
    if on_bill is not None:
        on_bill(bill)
    with Session(ledger, engine=engine) as session:
        records = _records(graph, method, node, nodes)
        session.protect(source, records, budget=epsilon if budget is None else budget, version=version)
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


def _records(graph: object, method: Method, node: type, nodes: PublicNodes | None) -> EdgeList | list[tuple[Any, Any]]:
    """The records of a simple graph, directed or not, as the method's source holds them."""
    given = graph if isinstance(graph, EdgeList) else EdgeList(graph)
    simple = replace(given, directed=method.directed, loops="drop", duplicates="drop")
    if not method.symmetric and nodes is None:
        return simple
    edges = simple.edges(node)
    if nodes is not None:
        edges = nodes.numbered(edges)
        edges = edges if method.directed else [(min(edge), max(edge)) for edge in edges]
    return edges if not method.symmetric else edges + [(b, a) for a, b in edges]


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


@public
@dataclass(frozen=True, slots=True, repr=False)
class SyntheticTable:
    """Rows drawn from a joint model of released marginals.

    Attributes
    ----------
    marginals : MarginalTables
        The released marginals, with exact intervals.
    model : FittedTable
        The model that fits the marginals.
    rows : SyntheticRows
        Drawn from the model.
    report : dict
        The bill, the errors and the permitted uses, as plain data: see `marginal_report`.
    """

    marginals: MarginalTables
    model: FittedTable
    rows: SyntheticRows
    report: dict[str, Any]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas frame with the declared types.

        Privacy cost: none.
        """
        return self.rows.to_pandas()

    def __repr__(self) -> str:
        return repr(self.rows).replace("SyntheticRows", "SyntheticTable", 1)

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


def synthesize_table(
    data: SourceData,
    epsilon: EpsilonLike = 1,
    *,
    bins: Mapping[str, Iterable[object]] = {},
    categories: Mapping[str, Iterable[object]] = {},
    attributes: Iterable[RecordFunction | Attribute] = (),
    name: str | None = None,
    sample: object = None,
    unit: str | None = None,
    person: str | None = None,
    at_most: int | None = None,
    records: float | None = None,
    order: int | None = None,
    model: str = "mixture",
    count: int | None = None,
    seed: int = 0,
    ledger: Ledger = None,
    budget: EpsilonLike | None = None,
    version: str | None = None,
    on_bill: Callable[[Bill], None] | None = None,
) -> SyntheticTable:
    """Public synthetic rows of a protected table, in one call: `tables.synthesize`.

    The cells of columns are public: declare them without access to the data. Only names and types of columns are taken
    from the table. Columns without cells are left out.

    Parameters
    ----------
    data : object
        A table of pandas, polars, Arrow or DuckDB, a csv or parquet file, or a `wpinq.data.CsvFile`.
    epsilon : number
        Of all marginals together. A row costs it once, and a person `at_most` times.
    bins : mapping, optional
        Column to the ends of its bins, ascending. A text column is read as numbers or dates if its cells are such.
    categories : mapping, optional
        Column to its values, each with a cell. Any other value counts in one more cell, "other".
    attributes : iterable, optional
        Further columns, as for `Query.marginals`: `wp.attribute("city", categories=["Oslo"], other=False)`.
    name : str, optional
        Of the source in bills and ledgers; by default the name of the file, or "data".
    sample : object, optional
        A separate file or table of public or made rows, from which types of columns are taken, as for `wp.schema`.
    unit, person, at_most : optional
        The protected unit, as for `wp.source`; by default one row.
    records : float, optional
        About how many records there are, from public knowledge. Marginals that it shows to be infeasible are refused.
        Left out, a noisy count is released first, for a fiftieth of epsilon, if it decides on the pairs.
    order : int, optional
        The number of attributes of each marginal. By default public numbers decide: each attribute, and some pairs.
    model : {"mixture", "full table"}
        The model that is fitted.
    count : int, optional
        The number of rows; by default the noisy number of records.
    seed : int
        The public seed of the fit and the draw. The noise has none.
    ledger, version, on_bill : optional
        As for `graphs.synthesize`.
    budget : number, optional
        The budget of the source in the ledger; the bill by default.

    Returns
    -------
    SyntheticTable
        The released marginals, the model, the rows and their report.

    Raises
    ------
    PlanError, ExpressionError, EpsilonError, AnswersError, SourceRejected, BudgetExceeded
        When cells, options, data or the budget do not fit. Nothing is spent.
    EvaluationFailed
        When the evaluation failed after the debit. With a ledger and a version, the same call repeats what is paid.

    Notes
    -----
    Privacy cost: the bill. Its steps are `table_source`, `plan_table`, `measure_table` and `fit_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sex": ["f", "m"] * 400, "age": [30, 41, 52, 63] * 200})
    >>> made = synthesize_table(frame, epsilon=2, bins={"age": [0, 45, 90]}, categories={"sex": ["f", "m"]})
    >>> made.report["bill"], list(made.to_pandas().columns)
    ({'data': '2'}, ['sex', 'age'])
    """
    declared = table_source(data, name, sample=sample, unit=unit, person=person, at_most=at_most)
    given = [each if isinstance(each, Attribute) else attribute(each) for each in attributes]
    mapped = isinstance(bins, Mapping) and isinstance(categories, Mapping)
    if not mapped or not (given or bins or categories):
        raise PlanError(
            "declare the public cells of columns, without access to the data: "
            'bins={"age": [0, 18, 65]}, categories={"sex": ["f", "m"]}'
        )
    given += [attribute(column, bins=ends) for column, ends in bins.items()]
    given += [attribute(column, categories=values) for column, values in categories.items()]
    count_of(seed, "a seed", 0)  # before anything is spent
    places = {field: place for place, field in enumerate(_fields(declared.plan.type))}
    given.sort(key=lambda each: places.get(each.name, len(places)))  # in the order of the table
    asked = plan_table(declared, given, epsilon, order=order, records=records, model=model, count=count)
    if on_bill is not None:
        on_bill(asked.bill())
    marginals, _ = measure_table(declared, data, asked, ledger=ledger, budget=budget, version=version)
    return fit_table(marginals, model, count=count, seed=seed)


def table_source(data: object, name: str | None = None, *, sample: object = None, **of_unit: Any) -> Query:
    """The source of all columns that can be fields, each nullable, so that every row fits.

    All, and not the attributes alone: then any choice of these is asked of one account.

    Parameters
    ----------
    data : object
        A table or file, of which names and types of columns are taken: see `wp.schema`.
    name, sample : optional
        As for `wp.schema`.
    **of_unit
        `unit`, `person` and `at_most` as for `wp.source`, the unit by default one row or one person; None is no option.
    """
    found = schema(data, name, sample=sample)
    fields = {field: type_.with_nullable() for field, type_ in _fields(found.record).items()}
    if not fields:
        raise PlanError("the columns of a table need names: offer a frame, or a csv or parquet file")
    columns = {field: found.columns.get(field, field) for field in fields}
    told = {key: value for key, value in of_unit.items() if value is not None}
    if "person" not in told:
        told.setdefault("unit", "one row")
    else:
        person = told["person"] = columns.get(told["person"], told["person"])
        if person not in columns.values():
            raise PlanError(f"there is no column {person!r} of person ids; {suggest(person, columns.values())}")
        columns = {field: column for field, column in columns.items() if column != person}
    return source(found.name, {field: fields[field] for field in columns}, columns=columns, **told)


#: The number of records, where none is given, takes this part of epsilon: the choice needs it roughly.
_COUNTING = 50


def plan_table(
    query: Query,
    attributes: Iterable[RecordFunction | Attribute],
    epsilon: EpsilonLike,
    *,
    order: int | None = None,
    workload: Views | None = None,
    records: float | None = None,
    model: str = "mixture",
    count: int | None = None,
) -> MarginalTabulation:
    """The marginals to measure for synthetic rows, chosen by public numbers.

    Parameters
    ----------
    query : Query
        The records to synthesize.
    attributes, epsilon, workload
        As for `Query.marginals`. A text column whose cells are of another type is read as that type, else as null.
    order : int, optional
        The number of attributes of each marginal. Left out, each attribute is measured, and the pairs that are worth
        their noise: all where cells are few or records many, none where noise would drown them.
    records : float, optional
        About how many records there are, from public knowledge. It decides on the pairs, and marginals that it shows
        to be infeasible are refused. Left out, a noisy count decides, for a fiftieth of epsilon.
    model, count
        As for `fit_table`; what could not be fitted or drawn is refused.

    Returns
    -------
    MarginalTabulation
        For `Session.release`.

    Raises
    ------
    PlanError, AnswersError
        As for `Query.marginals`, or where a marginal is infeasible, or rows could not be made of it.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", sex=wp.category("f", "m"), smokes=bool)
    >>> plan_table(people, ["sex", "smokes"], epsilon=1).note
    'chosen: each attribute and 1 of 1 pairs; noise outweighs none of them'
    >>> plan_table(people, ["sex", "smokes"], epsilon="0.001", records=500, order=1)
    Traceback (most recent call last):
    ...
    wpinq.errors.PlanError: a cell of sex is ...
    """
    given = [_of_text(each, query.plan.type) if isinstance(each, Attribute) else each for each in attributes]
    total, spent = None, parse_epsilon(epsilon)
    if (order, workload, records) == (None, None, None):
        total = query.count(from_nano(parse_budget(spent / _COUNTING)))
        spent -= total.epsilon
    asked = replace(tabulate_marginals(query, given, order, spent, workload, records=records), count=total)
    if records is not None:
        refuse_infeasible_marginals(asked, records)
    check_model(model, asked.measuring.attributes)
    if count is not None:
        check_rows(count, len(given))
    return asked


def _fields(record: types.Type) -> dict[str, types.Type]:
    """The named fields of a record with their types."""
    named = zip(record.names, record.elements, strict=True) if isinstance(record, types.TupleOf) else ()
    return {name: type_ for name, type_ in named if name is not None}


def _of_text(given: Attribute, record: types.Type) -> Attribute:
    """An attribute of a text column with other cells than texts, which are read from the texts."""
    cells = (cell.item() if isinstance(cell, np.generic) else cell for cell in given.bins or given.categories or ())
    kinds = {build.constant(cell).type for cell in cells if cell is not None}
    type_ = types.FLOAT if kinds == {types.INT, types.FLOAT} else max(kinds, key=str, default=types.STR)
    column = given.column
    if not isinstance(column, str) or _fields(record).get(column, type_).with_nullable(False) != types.STR:
        return given
    return given if type_ in (types.STR, types.BOOL) else replace(given, column=read_as(column, type_))


def read_as(column: str, type_: types.Type) -> Callable[[Any], Any]:
    """A column as values of another type, null where a value is none of them."""
    python = next((each for each, meant in types.PYTHON_TYPES.items() if meant == type_), type_)
    return lambda record: cast(record[column], python)


def measure_table(
    declared: Query,
    data: SourceData,
    asked: MarginalTabulation,
    *,
    ledger: Ledger = None,
    budget: EpsilonLike | None = None,
    version: str | None = None,
    engine: str = DEFAULT_ENGINE,
    on_plan: Callable[[MarginalTabulation], object] = bool,
) -> tuple[MarginalTables, dict[str, Epsilon]]:
    """Measure marginals of a table and forget the table: they come with the remaining budgets.

    Where it holds a count of records, that is released first, and chooses the marginals.

    Parameters
    ----------
    declared, data
        The source, and its data.
    asked : MarginalTabulation
        The marginals of the source.
    ledger, budget, version, engine
        As for `measure_graph`; the budget is the bill by default.
    on_plan : callable, optional
        Told the marginals before they are paid for.

    Notes
    -----
    Privacy cost: the bill of `asked`.
    """
    find_engine(engine).check(asked.measurement.plan)
    bill = asked.bill()
    if budget is not None:
        _check_covered(bill, budget)
    if asked.count is None:
        on_plan(asked)
    with Session(ledger, engine=engine) as session:
        session.protect(declared, data, budget=sum(bill.values()) if budget is None else budget, version=version)
        records = None
        if asked.count is not None and (version is not None or session.affords(asked)):  # if not, all is refused
            records = session.release(asked.count)
            known = max(1.0, records.value / float(asked.kind.factor))
            asked = asked.for_records(asked.plan, asked.coded, asked.epsilon, asked.reading, known)
            on_plan(asked)
        return replace(session.release(asked), records=records), {each: session.remaining(each) for each in bill}


def fit_table(
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
    model : {"mixture", "full table"}
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
    >>> made = fit_table(marginals, count=10)
    >>> len(made.rows), made.report["bill"]
    (10, {'people': '1'})
    """
    fitted = marginals.fit(model, seed=seed)
    rows = fitted.rows(count, seed=seed) if copies is None else fitted.weighted_rows(copies, seed=seed)
    return SyntheticTable(marginals, fitted, rows, marginal_report(marginals, fitted, rows))
