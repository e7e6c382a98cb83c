"""Marginals that public sizes show to be infeasible, and the order that suits synthetic rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from wpinq.errors import PlanError
from wpinq.marginals.attributes import View
from wpinq.marginals.measurement import cell_half_width
from wpinq.marginals.released import title_of
from wpinq.marginals.tabulation import MarginalTabulation
from wpinq.noise.epsilon import format_epsilon
from wpinq.noise.scales import laplace_scale
from wpinq.plan.properties import plan_properties

CONFIDENCE = 0.9
"""Of the intervals that decide."""
ASSUMED_RECORDS = 100_000
"""The number of records of a table of which none is given."""
_CELLS_PER_RECORD = 3
"""Pairs have less error than one-ways up to about this many cells for each record times epsilon (Adult, 4 to 14
attributes: 1 to 7, by the total variation of all pairs)."""


def choose_order(sizes: Sequence[int], epsilon: Fraction, records: float | None = None) -> int:
    """1 for one-way marginals or 2 for all pairs, whichever suits synthetic rows, from public numbers alone.

    Pairs of many cells share a small epsilon so thinly that a model is better off with the one-ways, as if attributes
    were independent.

    Parameters
    ----------
    sizes : sequence of int
        The public number of cells of each attribute.
    epsilon : Fraction
        Of all marginals together.
    records : float, optional
        About how many records there are: public, more than 0; 100,000 when left out.

    Examples
    --------
    >>> choose_order([100, 100, 16], Fraction(1)), choose_order([100, 100, 16], Fraction(1), records=1000)
    (2, 1)
    """
    cells = sum(one * other for one, other in combinations(sizes, 2))
    known = ASSUMED_RECORDS if records is None else _positive(records)
    return 2 if len(sizes) > 1 and cells <= _CELLS_PER_RECORD * known * epsilon else 1


def _positive(records: float) -> float:
    if not records > 0:
        raise PlanError(f"the number of records is a public number of more than 0, not {records!r}")
    return records


def infeasible_marginals(asked: MarginalTabulation, records: float) -> dict[str, str]:
    """The marginals that noise swamps, each with the reason.

    Checked are the wanted ones, each attribute by itself, and the total. One is infeasible where the 90 % interval of
    one of its cells is as wide as from none of the records to all of them.

    Parameters
    ----------
    asked : MarginalTabulation
        The marginals to be released.
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
    _positive(records)
    found = {}
    for view, half in _half_widths(asked).items():
        if 2 * half >= records:
            title = title_of(asked.measuring, view)
            what = f"a cell of {title}" if view else "the number of records"
            wide = f"as wide as from none of about {records:,.0f} records to all"
            found[title] = f"{what} is ± {half:,.0f} at 90 %, {wide}"
    return found


def _half_widths(asked: MarginalTabulation) -> dict[View, float]:
    """Of every view that is checked, the wanted ones first."""
    scale = laplace_scale(asked.epsilon, plan_properties(asked.measurement.plan).slack()) / float(asked.kind.factor)
    singles = [(place,) for view in asked.measuring.wanted for place in view]
    checked = dict.fromkeys([*asked.measuring.wanted, *singles, ()])
    return {view: cell_half_width(asked.measuring, view, scale, CONFIDENCE) for view in checked}


def refuse_infeasible_marginals(asked: MarginalTabulation, records: float) -> None:
    """Refuse marginals of which one is infeasible, before anything is spent.

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
    others = "" if len(found) == 1 else f", and {len(found) - 1} more are infeasible too"
    raise PlanError(
        f"{next(iter(found.values()))}{others}: nothing was spent. It takes an epsilon of {format_epsilon(more)} "
        "or more, fewer or coarser attributes, or a lower order"
    )
