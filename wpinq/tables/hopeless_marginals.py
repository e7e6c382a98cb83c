"""Marginals that public sizes show to be hopeless: the noise of one cell is more than all the records there are."""

from __future__ import annotations

from fractions import Fraction

from wpinq.errors import PlanError
from wpinq.measure.epsilon import format_epsilon
from wpinq.measure.scales import laplace_scale
from wpinq.plan.certify import certify
from wpinq.tables.marginal_accuracy import cell_half_width
from wpinq.tables.marginal_tabulation import MarginalTabulation
from wpinq.tables.released_marginals import title_of

CONFIDENCE = 0.9
"""Of the intervals that are looked at."""


def hopeless_marginals(asked: MarginalTabulation, records: float) -> dict[str, str]:
    """The wanted marginals of which noise hides whatever a cell may hold, each with the reason.

    One is hopeless where the half-width of a cell's interval of 90 % is as large as the number of records: though all
    of them were in one cell, that it is not empty could not be told.

    Parameters
    ----------
    asked : MarginalTabulation
        What is to be asked.
    records : float
        How many records there are, roughly: public, more than 0, not looked up.

    Returns
    -------
    dict
        Title to a reason, which holds public numbers alone.

    Notes
    -----
    Privacy cost: none, and nothing is looked at.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", age=int, facts=["whole_weights"])
    >>> asked = people.marginals([wp.attribute("age", bins=range(0, 100, 10))], order=1, epsilon="0.01")
    >>> hopeless_marginals(asked, records=100)["age"]
    'a cell of age is ± 230 at 90 %, and there are about 100 records'
    """
    if not records > 0:
        raise PlanError(f"the number of records is a public number of more than 0, not {records!r}")
    scale = laplace_scale(asked.epsilon, certify(asked.measurement.plan).slack()) / float(asked.kind.factor)
    found = {}
    for view in asked.measuring.wanted:
        half = cell_half_width(asked.measuring, view, scale, CONFIDENCE)
        if half >= records:
            title = title_of(asked.measuring, view)
            found[title] = f"a cell of {title} is ± {half:,.0f} at 90 %, and there are about {records:,.0f} records"
    return found


def refuse_hopeless_marginals(asked: MarginalTabulation, records: float) -> None:
    """Refuse marginals of which one is hopeless; to be asked before anything is spent.

    Raises
    ------
    PlanError
        It names the marginal, and how much more epsilon it would take.
    """
    found = hopeless_marginals(asked, records)
    if not found:
        return
    scale = laplace_scale(asked.epsilon, certify(asked.measurement.plan).slack()) / float(asked.kind.factor)
    widest = max(cell_half_width(asked.measuring, view, scale, CONFIDENCE) for view in asked.measuring.wanted)
    more = Fraction(-int(-100 * widest / records // 1), 100) * asked.epsilon
    others = "" if len(found) == 1 else f", and {len(found) - 1} more are as hopeless"
    raise PlanError(
        f"{next(iter(found.values()))}{others}: nothing was spent. It takes more than epsilon {format_epsilon(more)}, "
        "fewer or coarser attributes, or a lower order"
    )
