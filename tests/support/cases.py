"""What the tests know of one operator: worked examples, its text and chain, plans of one step, and random arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import wpinq as wp
from wpinq.api.query import Query

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live


@dataclass(frozen=True)
class Table:
    """One worked example. Weights are anything that Fraction reads, such as "25/12"."""

    name: str
    query: Query
    data: Mapping[str, Mapping[Any, Any]]
    output: Mapping[Any, Any]

    def holds(self) -> bool:
        """Whether the query gives exactly this output."""
        data = {source: _exact(weights) for source, weights in self.data.items()}
        return wp.evaluate(self.query, data, exact=True) == _exact(self.output)


def _exact(weights: Mapping[Any, Any]) -> dict[Any, Fraction]:
    return {record: Fraction(weight) for record, weight in weights.items()}


@dataclass(frozen=True)
class OperatorCase:
    """One operator, in a file of its own under `tests/support/operators`: all tests of operators read it there.

    Attributes
    ----------
    name : str
        Of the operator.
    text, chain : str, callable
        One use of it on `a(x: int, y: int)` and `b` alike, as a text program says it and as a chain does.
    one_step : mapping
        Plans of this step alone over `HEAVY` and `HEAVY_TOO`, each rounded within what the operator declares.
    draw : callable
        A random use of it on a dataset of a plan under construction; None where what came out is of no use.
    tables : tuple of Table
        Inputs and outputs worked out by hand, each named by the operator first.
    """

    name: str
    text: str
    chain: Callable[[Query, Query], Query]
    one_step: Mapping[str, Query]
    draw: Callable[[Grower, Live], Live | None]
    tables: tuple[Table, ...]


HEAVY = wp.source("numbers", int, cap=2**30, weights=True)
HEAVY_TOO = wp.source("others", int, cap=2**30, weights=True)

numbers = wp.source("numbers", int, weights=True)
others = wp.source("others", int, weights=True)
words = wp.source("words", str, weights=True)
maybe = wp.source("maybe", int | None, weights=True)
pairs = wp.source("pairs", key=int | None, value=int, weights=True)
right = wp.source("right", key=int | None, value=int, weights=True)
lists = wp.source("lists", list[int], weights=True)

A = {1: "0.75", 2: 2, 3: 1}
B = {1: 3, 4: 2}
