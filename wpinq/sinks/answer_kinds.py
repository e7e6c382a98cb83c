"""The kind of a released number: a count, a rescaled count, a weight, or a statistic.

A weight here is one that is no count. The kind follows from the plan and its sources' declarations alone, so it reveals
nothing of the data, and is the same whatever the notation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any

from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.domain import Counted
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import GroupBy, Join
from wpinq.plan.work import counted

#: The kinds of noisy weights, as tables and columns call them; a statistic has its own name.
COUNT, RESCALED, WEIGHT = "count", "rescaled count", "weight, not a count"


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The weight that one item adds to a record, by a formula of the record itself.

    Attributes
    ----------
    of : str
        What the items are, in the plural.
    formula : str
        What one adds, in the fields of the record.
    weight : function
        From a record to what one adds there; None of a record that no item has.
    """

    of: str
    formula: str
    weight: Callable[[Value], Fraction | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of number that a measurement releases.

    Attributes
    ----------
    name : str
        "count", "rescaled count", "weight, not a count", or that of a statistic, such as "mean".
    words : str
        The number in words; of a weight, the reason that it is no count.
    factor : Fraction
        What one of the things counted adds to a weight: 1 unless the count is rescaled. An answer divided by it is the
        count, and so are the ends of its interval.
    form : ClosedForm, optional
        Where the factor differs by the key: `at` gives that of one.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int, facts=["unit_weights"])
    >>> people.select(lambda p: p.city).noisy_count(epsilon=1).kind.name
    'count'
    >>> print(people.group_by(lambda p: p.city).noisy_count(epsilon=1).kind)
    number of groups of rows of people, each of weight 1/2
    """

    name: str
    words: str
    factor: Fraction = Fraction(1)
    form: ClosedForm | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.words}" if self.name == WEIGHT else self.words

    def read_as(self, reading: str) -> Kind:
        """The same in the words of a reading, if there is one; a weight keeps its reason."""
        words = f"{reading} ({self.words})" if self.name == WEIGHT else reading
        return replace(self, words=words) if reading else self

    def selection(self, listing: Any) -> str:
        """The selection of a `Listing` in words, its threshold in the things that are counted."""
        return str(replace(listing, above=float(Fraction(listing.above) / self.factor)).words)

    def at(self, key: Value) -> tuple[str, Fraction]:
        """The name of the kind of one answer, and what it is divided by."""
        if self.form is None:
            return self.name, self.factor
        factor = self.form.weight(key)
        return (WEIGHT, Fraction(1)) if factor is None else (self.name, factor)


@dataclass(frozen=True, slots=True)
class Stated:
    """Statements of the user about the data: public knowledge or guesses.

    They are never read from the data.

    Attributes
    ----------
    count : float or None
        How many things an average is over, more than 0: where its weights are no counts, their total.
    width : float or None
        Of the ladder of a count of subgraphs: the most neighbours that two vertices have in common, or for stars the
        highest degree.
    """

    count: float | None = None
    width: float | None = None


class NotStated(PlanError):
    """Something must be stated before an error can be given."""


#: Where plans with closed forms are known. It is imported where a plan may be one: graphs stand above measurements.
_CLOSED_FORMS = "wpinq.graphs.counts"


@lru_cache(maxsize=256)
def kind_of_weights(plan: Node) -> Kind:
    """The kind of a plan's weights, where these are released."""
    found = counted(plan)
    if isinstance(found, Counted):
        if found.factor == 1:
            return Kind(COUNT, f"number of {found.of}")
        return Kind(RESCALED, f"number of {found.of}, each of weight {found.factor}", found.factor)
    if {GroupBy, Join} <= {type(node.operator) for node in topological([plan])}:
        form: ClosedForm | None = import_module(_CLOSED_FORMS).closed_form(plan)
        if form is not None:
            return Kind(RESCALED, f"number of {form.of}, each of weight {form.formula}", form=form)
    return Kind(WEIGHT, f"{found.step} {found.reason}")
