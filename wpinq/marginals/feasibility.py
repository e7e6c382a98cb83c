"""Marginals that public sizes show to be hopeless: the interval of a cell spans from no record to all there are."""

from __future__ import annotations

import math
from fractions import Fraction

from wpinq.errors import PlanError
from wpinq.marginals.attributes import View
from wpinq.marginals.measurement import cell_half_width
from wpinq.marginals.released import title_of
from wpinq.marginals.tabulation import MarginalTabulation
from wpinq.noise.epsilon import format_epsilon
from wpinq.noise.scales import laplace_scale
from wpinq.plan.properties import plan_properties

CONFIDENCE = 0.9
"""Of the intervals that are looked at."""


def infeasible_marginals(asked: MarginalTabulation, records: float) -> dict[str, str]:
    """The marginals of which noise leaves nothing to be told, each with the reason.

    Looked at are the wanted ones, each attribute by itself, and the total. One is hopeless where the interval of 90 %
    of one of its cells is as wide as from none of the records to all of them.

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
    >>> infeasible_marginals(asked, records=100)["age"]
    'a cell of age is ± 230 at 90 %, as wide as from none of about 100 records to all'
    """
    if not records > 0:
        raise PlanError(f"the number of records is a public number of more than 0, not {records!r}")
    found = {}
    for view, half in _half_widths(asked).items():
        if 2 * half >= records:
            title = title_of(asked.measuring, view)
            what = f"a cell of {title}" if view else "the number of records"
            wide = f"as wide as from none of about {records:,.0f} records to all"
            found[title] = f"{what} is ± {half:,.0f} at 90 %, {wide}"
    return found


def _half_widths(asked: MarginalTabulation) -> dict[View, float]:
    """Of every view that is looked at, the wanted ones first."""
    scale = laplace_scale(asked.epsilon, plan_properties(asked.measurement.plan).slack()) / float(asked.kind.factor)
    singles = [(place,) for view in asked.measuring.wanted for place in view]
    looked_at = dict.fromkeys([*asked.measuring.wanted, *singles, ()])
    return {view: cell_half_width(asked.measuring, view, scale, CONFIDENCE) for view in looked_at}


def refuse_infeasible_marginals(asked: MarginalTabulation, records: float) -> None:
    """Refuse marginals of which one is hopeless; to be asked before anything is spent.

    Raises
    ------
    PlanError
        It names the marginal, and how much more epsilon it would take.
    """
    found = infeasible_marginals(asked, records)
    if not found:
        return
    widest = max(_half_widths(asked).values())
    # rounded up, so that what is named is enough
    more = Fraction(math.ceil(200 * widest / records), 100) * asked.epsilon
    others = "" if len(found) == 1 else f", and {len(found) - 1} more are as hopeless"
    raise PlanError(
        f"{next(iter(found.values()))}{others}: nothing was spent. It takes an epsilon of {format_epsilon(more)} "
        "or more, fewer or coarser attributes, or a lower order"
    )
