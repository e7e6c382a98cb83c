"""A request for marginals, as pure data: attributes, wanted views, a plan and one epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations
from typing import Any

from wpinq.errors import EpsilonError, PlanError, described
from wpinq.expr.trace import RecordFunction
from wpinq.marginals.cells import Attribute, AttributeCells, Attributes, CodedAttribute, View, attribute, weight_of
from wpinq.marginals.planning import MarginalPlan, Objective, check_objective, plan_marginals
from wpinq.marginals.released import CellCount, MarginalTables, cell_half_width, coded_plan, marginal_measurement
from wpinq.measure.answer_rows import aligned
from wpinq.measure.group import Compound
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike, format_epsilon
from wpinq.noise.laplace import laplace_scale
from wpinq.plan.node import Node, Planned
from wpinq.plan.properties import plan_properties
from wpinq.runtime.public import public
from wpinq.sinks.answer_kinds import Kind, kind_of_weights

#: The most attributes of a table.
ATTRIBUTES_LIMIT = 64

#: Views by the names of their attributes.
Views = Iterable[str | Iterable[str]]


@public
@dataclass(frozen=True, slots=True, repr=False)
class MarginalTabulation(Compound[MarginalTables]):
    """A request for marginals, which a session releases as `MarginalTables`.

    It is one measurement. Two are equal where the query, the attributes, the wanted and measured views, and epsilon
    are.

    Attributes
    ----------
    plan : Node
        The query whose records are counted.
    reading : str
        How to read its weights, where the query knows.
    coded : tuple of CodedAttribute
        The attributes, with how a record's cells are found.
    measuring : MarginalPlan
        The views that are wanted, and those that are measured, each with its share of a record's weight.
    epsilon : Fraction
        Of all marginals together.
    count : Measurement, optional
        The number of records, to be released before the views are chosen by it.
    """

    plan: Node
    reading: str
    coded: tuple[CodedAttribute, ...]
    measuring: MarginalPlan
    epsilon: Fraction
    measurement: Measurement = field(compare=False)
    note: str = field(compare=False, default="")
    count: Measurement | None = None

    @staticmethod
    def for_records(
        plan: Node, coded: tuple[CodedAttribute, ...], epsilon: Fraction, reading: str, records: float | None
    ) -> MarginalTabulation:
        """The marginals of a plan's records that `choose_marginals` chooses."""
        table = Attributes.of_cells(each.cells for each in coded)
        measuring = _planned(table, tuple(choose_marginals(table, epsilon, records).items()), "total")
        measurement = marginal_measurement(plan, coded, measuring, epsilon, reading)
        note = _choice(table, measuring.wanted, epsilon, records)
        return MarginalTabulation(plan, reading, coded, measuring, epsilon, measurement, note)

    @property
    def attributes(self) -> tuple[AttributeCells, ...]:
        """The cells of each attribute."""
        return tuple(each.cells for each in self.coded)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return (self.measurement,) if self.count is None else (self.measurement, self.count)

    @property
    def items(self) -> Mapping[str, Measurement]:
        many = len(self.measuring.measured)
        views = "1 view" if many == 1 else f"{many} views"
        if self.count is not None:
            return {"number of records": self.count, "marginals (chosen by it)": self.measurement}
        return {f"marginals ({views}, {self.measuring.cells:,} cells)": self.measurement}

    @property
    def stand_ins(self) -> Mapping[str, tuple[Measurement, Kind]]:
        """A measurement for each wanted marginal: all its cells have the same error."""
        kind = self.kind
        return {
            self.measuring.title(view): (replace(self.measurement, sink=CellCount(self.measuring, view)), kind)
            for view in self.measuring.wanted
        }

    @property
    def kind(self) -> Kind:
        """The kind of number, from the plan and the declarations alone."""
        return kind_of_weights(coded_plan(self.plan, self.coded))

    def scaled(self, epsilon: Callable[[Fraction], Fraction]) -> MarginalTabulation:
        made = replace(self.measurement, epsilon=epsilon(self.epsilon))
        count = self.count and replace(self.count, epsilon=epsilon(self.count.epsilon))
        return replace(self, epsilon=made.epsilon, measurement=made, count=count)

    def over(self, redeclared: Callable[[Node], Node]) -> MarginalTabulation:
        """The same over the sources of other plans."""
        made = replace(self.measurement, plan=redeclared(self.measurement.plan))
        count = self.count and replace(self.count, plan=redeclared(self.count.plan))
        return replace(self, plan=redeclared(self.plan), measurement=made, count=count)

    def read(self, released: Sequence[Any]) -> MarginalTables:
        """The marginals, from released answers."""
        return MarginalTables(self.attributes, self.measuring, *released)

    def __str__(self) -> str:
        lines = [f"Marginals of {len(self.coded)} attributes, epsilon {format_epsilon(self.epsilon)}"]
        lines += [f"  {line}" for line in aligned((cells.name, f"{cells.size} cells") for cells in self.attributes)]
        lines += [f"  {cells.note}" for cells in self.attributes if cells.note]
        lines += [f"  {self.note}"] if self.note else []
        lines.append(f"  wanted: {_listed([self.measuring.title(view) for view in self.measuring.wanted])}")
        pairs = zip(self.measuring.measured, self.measuring.shares, strict=True)
        shown = [f"{self.measuring.title(view)} ({share:.2g})" for view, share in pairs]
        return "\n".join([*lines, f"  measured, with their shares: {_listed(shown)}"])

    def __repr__(self) -> str:
        return f"<{self}>"


def tabulate_marginals(
    query: Planned,
    attributes: Iterable[RecordFunction | Attribute],
    order: int | None,
    epsilon: EpsilonLike,
    workload: Views | None = None,
    measure: Mapping[Any, object] | None = None,
    objective: Objective = "balanced",
    records: float | None = None,
) -> MarginalTabulation:
    """The marginals of a query's records: see `Query.marginals`.

    Without an order and a workload, `choose_marginals` chooses, and `note` says so.
    """
    coded = _bound(query.plan, attributes)
    table = Attributes.of_cells(each.cells for each in coded)
    spent, reading = parse_epsilon(epsilon), getattr(query, "reading", "")
    if order is None and workload is None:
        return MarginalTabulation.for_records(query.plan, coded, spent, reading, records)
    wanted = table.views(workload) if workload is not None else table.of_order(order)
    if measure is None:
        check_objective(objective)
        measuring = _planned(table, tuple((view, 1.0) for view in wanted), objective)
    elif objective == "balanced":
        measuring = _told(table, wanted, measure)
    else:
        raise PlanError("measure gives the measured marginals, and an objective plans them: leave out objective")
    measurement = marginal_measurement(query.plan, coded, measuring, spent, reading)
    return MarginalTabulation(query.plan, reading, coded, measuring, spent, measurement)


def _bound(plan: Node, given: object) -> tuple[CodedAttribute, ...]:
    if isinstance(given, (str, Attribute)) or not isinstance(given, Iterable):
        raise PlanError(
            'marginals are of a list of attributes: marginals(["city", wp.attribute("age", bins=[...])], ...)'
        )
    found: dict[str, CodedAttribute] = {}
    for each in given:
        made = each if isinstance(each, Attribute) else attribute(each)
        if made.name in found:
            raise PlanError(f"marginals: there are two attributes {made.name!r}; name one apart, with name=...")
        found[made.name] = made.bound(plan)
    if not 0 < len(found) <= ATTRIBUTES_LIMIT:
        raise PlanError(f"marginals are of 1 to {ATTRIBUTES_LIMIT} attributes, not {len(found)}")
    return tuple(found.values())


@lru_cache(maxsize=256)
def _planned(table: Attributes, weights: tuple[tuple[View, float], ...], objective: Objective) -> MarginalPlan:
    """The plan for wanted views with their weights: remembered, for it takes half a second."""
    return plan_marginals(table, dict(weights), objective)


def _choice(table: Attributes, chosen: tuple[View, ...], epsilon: Fraction, records: float | None) -> str:
    """What was chosen for synthetic rows, and why."""
    pairs = math.comb(len(table.sizes), 2)
    cells = [table.cells(view) for view in chosen if len(view) == 2]
    why = f"for about {records or ASSUMED_RECORDS:,.0f} records at epsilon {format_epsilon(epsilon)}, "
    why += f"noise outweighs pairs of more than {max(cells):,} cells" if cells else "noise outweighs pairs"
    if len(cells) == pairs:
        why = "noise outweighs none of them"
    return f"chosen: each attribute and {len(cells)} of {pairs} pairs; {why}"


def _told(table: Attributes, wanted: tuple[View, ...], measure: object) -> MarginalPlan:
    """The plan of the views that the user wants measured, with their shares.

    It is refused where they leave a wanted view open.
    """
    if not isinstance(measure, Mapping) or not measure:
        raise PlanError('measure gives each measured view its share: {("city", "sex"): 2, ("age",): 1}')
    given = {}
    for names, share in measure.items():
        view = table.view(names)
        try:
            given[view] = parse_epsilon(share)
        except EpsilonError:
            told = f"the share of the view {table.shown(view)} is a number of more than 0, not {described(share)}"
            raise PlanError(f"{told}: shares are divided by their sum") from None
    if len(given) < len(measure):
        raise PlanError("measure gives a view two shares: name each once")
    return MarginalPlan.of(table, given, wanted)


def _listed(words: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


# Marginals that public sizes show to be infeasible, and the order that suits synthetic rows.

#: Of the intervals that decide.
CONFIDENCE = 0.9
_RECORDS = "the number of records, a public number of more than 0,"
#: The number of records of a table of which none is given.
ASSUMED_RECORDS = 100_000
#: The noise of a pair, in total variation, that is as bad as independent attributes are.
#: Those are off by .07 to .1 (Adult, Fair), and a fit leaves about a sixth of the noise.
_BIAS = 0.35


def choose_marginals(attributes: Attributes, epsilon: Fraction, records: float | None = None) -> dict[View, float]:
    """The marginals to measure for synthetic rows with their weights, from public numbers alone.

    Every attribute by itself, and the pairs of the fewest cells: none, some or all.

    Parameters
    ----------
    attributes : Attributes
        The public number of cells of each.
    epsilon : Fraction
        Of all marginals together.
    records : float, optional
        About how many records there are: public or released before, more than 0; 100,000 when left out.

    Notes
    -----
    Noise moves n cells, measured with the share θ of N records, by `n / (2Nεθ)` in total variation. A pair is off by
    its noise and that of its attributes, or by β instead of its noise where it is not measured. The sum of squares over
    all pairs of d attributes is least for the best shares, `(Σ w^(2/3))³ + β² · (pairs not measured)`, where
    `w = n / (2Nε)` for a pair and `√(d − 1)` times that for an attribute. The number of pairs makes this least.

    A fit leaves of a pair's noise what has few rows and columns, `E = √(n_i n_j (n_i + n_j))` instead of n_i n_j. An
    attribute's noise is in all of its pairs, half of it since these tell of it too: `E = (d − 1) n_i / 2`. Weights are
    E / n, for the least `Σ E V` of variances V of cells. Privacy cost: none.

    Examples
    --------
    >>> table = Attributes((100, 100, 16, 2))
    >>> [view for view in choose_marginals(table, Fraction(1), records=1000) if len(view) == 2]
    [(2, 3)]
    """
    known = ASSUMED_RECORDS if records is None else weight_of(records, _RECORDS)
    noise = 1 / (2 * known * float(epsilon))
    others = len(attributes.sizes) - 1
    pairs = sorted(combinations(range(others + 1), 2), key=lambda pair: (attributes.cells(pair), pair))
    parts = [math.cbrt((attributes.cells(pair) * noise) ** 2) for pair in pairs]
    sums = accumulate(parts, initial=sum(math.cbrt(others * (size * noise) ** 2) for size in attributes.sizes))
    errors = [total**3 + _BIAS**2 * (len(pairs) - measured) for measured, total in enumerate(sums)]
    chosen = sorted(pairs[: errors.index(min(errors))])
    weights: dict[View, float] = {(place,): max(others, 1) / 2 for place in range(others + 1)}
    return weights | {pair: math.sqrt(sum(attributes.shape(pair)) / attributes.cells(pair)) for pair in chosen}


def refuse_infeasible_marginals(asked: MarginalTabulation, records: float) -> None:
    """Refuse marginals that noise swamps, before anything is spent.

    Checked are the wanted ones, each attribute by itself, and the total. One is infeasible where the 90 % interval of
    one of its cells is as wide as from none of the records to all of them.

    Parameters
    ----------
    asked : MarginalTabulation
        The marginals to be released.
    records : float
        The approximate number of records, from public knowledge; more than 0.

    Raises
    ------
    PlanError
        It names the marginal, and how much more epsilon it would take, by public numbers alone.

    Notes
    -----
    Privacy cost: none, because no data are read.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", age=int)
    >>> asked = people.marginals([wp.attribute("age", bins=range(0, 100, 10))], order=1, epsilon="0.01")
    >>> refuse_infeasible_marginals(asked, records=100)
    Traceback (most recent call last):
    ...
    wpinq.errors.PlanError: a cell of age is ± 230 at 90 %, too wide for about 100 records (1 other marginals ...
    """
    weight_of(records, _RECORDS)
    scale = laplace_scale(asked.epsilon, plan_properties(asked.measurement.plan).slack()) / float(asked.kind.factor)
    views = dict.fromkeys([*asked.measuring.wanted, *((i,) for view in asked.measuring.wanted for i in view), ()])
    halves = {view: cell_half_width(asked.measuring, view, scale, CONFIDENCE) for view in views}
    found = [view for view, half in halves.items() if 2 * half >= records]
    if not found:
        return
    what = f"a cell of {asked.measuring.title(found[0])}" if found[0] else "the number of records"
    # rounded up, so that what is named is enough
    more = Fraction(math.ceil(200 * max(halves.values()) / records), 100) * asked.epsilon
    others = "" if len(found) == 1 else f" ({len(found) - 1} other marginals are infeasible too)"
    raise PlanError(
        f"{what} is ± {halves[found[0]]:,.0f} at 90 %, too wide for about {records:,.0f} records{others}: nothing was "
        f"spent. Use an epsilon of {format_epsilon(more)} or more, fewer or coarser attributes, or a lower order"
    )
