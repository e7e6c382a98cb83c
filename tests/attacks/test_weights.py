"""Negative, huge and tiny weights: a unit that moves an output by more than it pays for, or that overflows or stops it.

The attack: weights of both signs cancel until a Join divides by next to nothing; weights near the largest or the least
float overflow, underflow or are absorbed beside others; a record weighs more than the unit that is billed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy
import pytest

import wpinq as wp
from tests.attacks.conftest import OnEngine
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties

ROWS = wp.source("rows", k=int, v=int, weights=True)

QUERIES: dict[str, Query] = {
    "Select": ROWS.select(lambda r: r.k),
    "SelectMany": ROWS.select_many(lambda r: [F.weighted(r.k, 1e-300), F.weighted(r.v, -1e300), F.weighted(0, 0.5)]),
    "Shave": ROWS.shave(0.75, limit=5).select(lambda p: p.index),
    "Join": ROWS.join(ROWS, lambda r: r.k, lambda s: s.k, lambda r, s: (r.v, s.v)),
    "GroupBy": ROWS.group_by(lambda r: r.k, lambda g: F.count(g)),
    "Union": ROWS.union(ROWS.where(lambda r: r.v > 1)),
    "Except": ROWS.difference(ROWS.select(lambda r: F.record(k=r.v, v=r.k))),
    "Intersect": ROWS.intersect(ROWS.concat(ROWS)),
}

DATA: dict[str, dict[Any, float]] = {
    "cancelling": {(1, 1): 1.0, (1, 2): -1.0, (1, 3): 2.0**-52, (2, 1): -(2.0**-52)},
    "least floats": {(1, 1): 5e-324, (1, 2): -5e-324, (2, 1): 2.2250738585072014e-308, (2, 2): 1e-320},
    "huge and tiny": {(1, 1): 2.0**29, (1, 2): 5e-324, (1, 3): -(2.0**28), (2, 1): 1e-200, (2, 2): 1.0},
    "all negative": {(1, 1): -1.0, (1, 2): -0.25, (2, 1): -(2.0**29)},
    "next to a power of two": {(1, 1): math.nextafter(0.75, 1), (1, 2): math.nextafter(1.5, 0), (2, 1): 3.75},
}


@pytest.mark.parametrize("name", QUERIES)
def test_no_weight_leaves_the_bound_of_its_rounding(engine: OnEngine, name: str) -> None:
    """The output is finite, and no further from the exact one than the certificate says, which the noise covers."""
    query = QUERIES[name]
    assert not engine.refuses(query)
    for given in DATA.values():
        found = engine(query, rows=given)
        exact = reference.evaluate(query.plan, {"rows": {r: Fraction(w) for r, w in given.items()}}, EXACT)
        assert all(math.isfinite(weight) and weight for weight in found.values())
        error = sum((abs(Fraction(found.get(r, 0.0)) - exact.get(r, 0)) for r in {*found, *exact}), Fraction(0))
        assert error <= plan_properties(query.plan).rounding_error


@pytest.mark.parametrize("name", QUERIES)
def test_a_unit_beside_any_weights_moves_no_more_than_is_billed(engine: OnEngine, name: str) -> None:
    """One unit more, up or down, split over records, beside weights that cancel or absorb it."""
    query = QUERIES[name]
    certificate = plan_properties(query.plan)
    billed = certificate.stability["rows"]
    for given in DATA.values():
        before = engine(query, rows=given)
        for record, change in (((1, 1), 1.0), ((1, 3), -1.0), ((7, 7), 1.0)):
            after_rows = {**given, record: given.get(record, 0.0) + change}
            moved_rows = abs(Fraction(after_rows[record]) - Fraction(given.get(record, 0.0)))
            after = engine(query, rows={r: w for r, w in after_rows.items() if w})
            keys = {*before, *after}
            moved = sum((abs(Fraction(after.get(r, 0.0)) - Fraction(before.get(r, 0.0))) for r in keys), Fraction(0))
            assert moved <= billed * moved_rows + 2 * certificate.rounding_error


@for_each(
    "weight",
    [
        math.nan,
        math.inf,
        -math.inf,
        1.0000000000000002,
        -1.5,
        1e308,
        10**400,
        "1",
        None,
        1j,
        numpy.float64("nan"),
        [1.0],
    ],
)
def test_a_weight_that_no_unit_has_is_refused_and_not_told(weight: Any) -> None:
    """More than the unit, or no number: refused as a whole, by position."""
    with wp.Session() as session:
        with pytest.raises(wp.SourceRejected) as refused:
            session.protect(ROWS, {(1, 1): 0.5, (1, 2): weight}, budget=1)
        assert refused.value.positions == (1,)
        assert "1.5" not in str(refused.value)
        assert "308" not in str(refused.value)


def test_weights_beyond_the_cap_are_refused_without_their_sum() -> None:
    """The cap is a promise of the declaration: rounding and noise rest on it. It is compared without rounding."""
    source = wp.source("few", int, cap=3, weights=True)
    for rows in ({1: 1.0, 2: 1.0, 3: 1.0, 4: 5e-324}, {1: -1.0, 2: -1.0, 3: -1.0, 4: -1.0}, [1, 2, 3, 4]):
        with wp.Session() as session:
            with pytest.raises(wp.SourceRejected) as refused:
                session.protect(source, rows, budget=1)
            assert "4" not in str(refused.value).replace("few", "")
    with wp.Session() as session:
        session.protect(source, {1: 1.0, 2: 1.0, 3: -1.0}, budget=1)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e300, 1.7976931348623157e308, -1e308])
def test_a_weighted_element_of_any_size_is_bounded_by_the_share(engine: OnEngine, scale: float) -> None:
    """What a function says that an element weighs is a share of the record: the output has no more than the record."""
    query = ROWS.select_many(lambda r: [F.weighted(r.k, scale), F.weighted(r.v, scale), F.weighted(0, 1.0)])
    found = engine(query, rows={(1, 2): 1.0, (1, 3): -0.5})
    assert sum(abs(Fraction(w)) for w in found.values()) <= Fraction(3, 2) + plan_properties(query.plan).rounding_error
