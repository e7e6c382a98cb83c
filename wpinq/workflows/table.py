"""Synthetic rows of a table: the marginals to measure, and the rows that fit the measured ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wpinq.api.query import Query
from wpinq.expr.trace import RecordFunction
from wpinq.marginals.cells import Attribute
from wpinq.marginals.released import MarginalTables
from wpinq.marginals.report import marginal_report
from wpinq.marginals.synthetic_rows import FittedTable, SyntheticRows
from wpinq.marginals.tabulation import MarginalTabulation, Views, choose_order, refuse_infeasible_marginals


def plan_table(
    query: Query,
    attributes: Iterable[RecordFunction | Attribute],
    epsilon: object,
    *,
    order: int | None = None,
    workload: Views | None = None,
    records: float | None = None,
) -> MarginalTabulation:
    """The marginals to measure for synthetic rows: one-ways or all pairs, by public numbers alone.

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
    """Fit a joint model to released marginals and draw rows from it. It costs no privacy.

    Parameters
    ----------
    marginals : MarginalTables
        The released marginals.
    model : {"mixture", "tree", "full table"}
        See `wpinq.marginals.models.fit`.
    count : int, optional
        The number of rows; the noisy number of records when left out.
    copies : int, optional
        Draw so many weighted rows for each record instead.
    seed : int
        Of the fit and the draw.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", sex=wp.category("f", "m"), smokes=bool, facts=["whole_weights"])
    >>> asked = plan_table(people, ["sex", "smokes"], epsilon=1)
    >>> marginals = wp.simulate(asked, {"people": [("f", True)] * 300 + [("m", False)] * 500}, seed=1)
    >>> made = synthesize_table(marginals, count=10)
    >>> len(made.rows), made.report["bill"]
    (10, {'people': '1'})
    """
    fitted = marginals.fit(model, seed=seed)
    rows = fitted.rows(count, seed=seed) if copies is None else fitted.weighted_rows(copies, seed=seed)
    return SyntheticTable(fitted, rows, marginal_report(marginals, fitted, rows))
