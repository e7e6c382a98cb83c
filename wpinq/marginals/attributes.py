"""The attributes of a table with their public sizes, and views over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

from wpinq.errors import AnswersError, PlanError
from wpinq.inference.checks import MOST_BINS, count_of, positive, sequence_of
from wpinq.runtime.arrays import Floats

View = tuple[int, ...]
"""The places of the attributes of a view, from 0, each once and ascending. () is the total."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredView:
    """A noisy marginal: what was released of a view, in units of counts.

    Attributes
    ----------
    view : tuple of int
        The attributes.
    counts : array
        An unbiased count of every cell, an axis an attribute, in the order of the view.
    scale : float
        The scale of the Laplace noise in each cell, more than 0: `1 / (θ · ε)` for a view of weight θ.
    """

    view: View
    counts: Floats
    scale: float

    @property
    def variance(self) -> float:
        """The variance of each cell's noise."""
        return 2 * self.scale**2


MOST_VIEWS = 2**16
"""The most views of a workload or a strategy."""
_ORDERS = {"singles": 1, "all pairs": 2, "all triples": 3}


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes by place, with names or without.

    Attributes
    ----------
    sizes : tuple of int
        The number of values of each, at least 1; values are 0 … size − 1.
    names : tuple of str, optional
        Their names, each once.

    Examples
    --------
    >>> attributes = Attributes.of({"age": 8, "city": 7})
    >>> attributes.view(("city", "age")), attributes.cells((0, 1)), attributes.shown((1,))
    ((0, 1), 56, "('city',)")
    """

    sizes: tuple[int, ...]
    names: tuple[str, ...] | None = None

    @staticmethod
    def of(given: Any) -> Attributes:
        """From sizes, or from names with sizes; PlanError for anything else."""
        if isinstance(given, Attributes):
            return given
        names = tuple(given) if isinstance(given, Mapping) else None
        sizes = sequence_of(list(given.values()) if isinstance(given, Mapping) else given, "sizes", PlanError)
        if not sizes:
            raise PlanError("marginals need one attribute at least: give sizes, or a dict from names to sizes")
        if names is not None and not all(isinstance(name, str) for name in names):
            raise PlanError("names of attributes are strings: {'age': 8, 'city': 7}")
        return Attributes(tuple(count_of(size, "a size", 1, MOST_BINS, PlanError) for size in sizes), names)

    def view(self, given: Any) -> View:
        """The view of some attributes, by place or by name and in any order; PlanError for what is none."""
        if self.names is not None and isinstance(given, str):
            given = (given,)
        places = [self._place(member) for member in sequence_of(given, "a view", PlanError)]
        if len(set(places)) < len(places):
            raise PlanError(f"the view {given!r} names an attribute twice: name each once")
        return tuple(sorted(places))

    def _place(self, member: Any) -> int:
        if self.names is not None and isinstance(member, str):
            if member in self.names:
                return self.names.index(member)
            raise PlanError(f"there is no attribute {member!r}: the attributes are {', '.join(self.names)}")
        if isinstance(member, bool) or not isinstance(member, int) or not 0 <= member < len(self.sizes):
            wanted = f"a place from 0 to {len(self.sizes) - 1}" + ("" if self.names is None else " or a name")
            raise PlanError(f"a view holds attributes, each {wanted}, not {member!r}")
        return member

    def views(self, given: Any) -> tuple[View, ...]:
        """Several views, ascending and each once, from a list of them or from words for all views of one order.

        Examples
        --------
        >>> Attributes.of([2, 2, 2]).views("all pairs")
        ((0, 1), (0, 2), (1, 2))
        """
        if isinstance(given, str):
            if given not in _ORDERS or _ORDERS[given] > len(self.sizes):
                raise PlanError(
                    f"views are a list, 'singles', 'all pairs' or 'all triples', of no more attributes than the "
                    f"{len(self.sizes)} there are; not {given!r}"
                )
            return tuple(combinations(range(len(self.sizes)), _ORDERS[given]))
        found = [self.view(each) for each in sequence_of(given, "views", PlanError)]
        if not found or len(found) > MOST_VIEWS:
            raise PlanError(f"give from 1 to {MOST_VIEWS} views, not {len(found)}")
        if len(set(found)) < len(found):
            raise PlanError("a view is listed twice: list each once, whatever the order of its attributes")
        return tuple(sorted(found, key=by_order))

    def shape(self, view: View) -> tuple[int, ...]:
        """The size of each attribute of a view."""
        return tuple(self.sizes[i] for i in view)

    def cells(self, view: Iterable[int]) -> int:
        """How many cells a view has."""
        return prod(self.sizes[i] for i in view)

    def named(self, view: View) -> tuple[Any, ...]:
        """A view by names, or by places where attributes have none."""
        return view if self.names is None else tuple(self.names[i] for i in view)

    def shown(self, view: View) -> str:
        """A view as a message has it."""
        return repr(self.named(view))


def weight_of(value: Any, what: str) -> float:
    """A finite number of more than 0, or PlanError."""
    try:
        return positive(value, what)
    except AnswersError as reason:
        raise PlanError(str(reason)) from None


def by_order(view: View) -> tuple[int, View]:
    """What views are sorted by: how many attributes they have, then which."""
    return len(view), view
