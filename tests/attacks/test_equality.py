"""Equality tricks: records that are equal in one place and not in another, so that one unit counts twice.

The attack: `True == 1 == 1.0` in Python, `0.0 == -0.0` and `nan != nan` in floats, "a" = "A" or "a " = "a" in
databases, one letter in two encodings. Where steps, engines or the ledger disagree on what is one record, a key has two
noises, or a Join meets what a GroupBy holds apart. Equality is that of canonical bytes, everywhere.
"""

from __future__ import annotations

import decimal
import fractions
from typing import Any

import numpy
import pytest

import wpinq as wp
from tests.attacks.conftest import OnEngine
from wpinq import functions as F

FLOATS = wp.source("floats", float)
MIXED = wp.source("mixed", i=int, x=float, b=bool, s=str)


def test_both_zeros_are_one_record(engine: OnEngine) -> None:
    """A zero with a sign that a function makes is the zero without."""
    data = {-1.0: 1.0, 0.0: 1.0, 2.0: 1.0}
    zeros = FLOATS.select(lambda x: x * 0.0)
    assert {repr(record): weight for record, weight in engine(zeros, floats=data).items()} == {"0.0": 3.0}
    met = zeros.join(FLOATS, lambda z: z, lambda x: x, lambda z, x: x)
    assert set(engine(met, floats=data)) == {0.0}
    told = FLOATS.select(lambda x: 1.0 / (x * 0.0))
    assert engine(told, floats=data) == {None: 3.0}


def test_nulls_are_one_record_and_meet_in_joins(engine: OnEngine) -> None:
    """Null is a value: grouped once, joined with itself, of one part; no third truth value."""
    source = wp.source("maybe", key=int | None, n=int)
    data = {(None, 1): 1.0, (None, 2): 1.0, (3, 3): 1.0}
    assert engine(source.group_by(lambda r: r.key, lambda g: F.count(g)), maybe=data) == {(None, 2): 0.5, (3, 1): 0.5}
    met = source.join(source, lambda r: r.key, lambda r: r.key, lambda a, b: (a.n, b.n))
    assert set(engine(met, maybe=data)) == {(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)}
    missing = source.where(lambda r: r.key == None)  # noqa: E711 - as users write it
    there = source.where(lambda r: ~(r.key == None))  # noqa: E711 - as users write it
    assert engine(missing.concat(there), maybe=data) == data
    assert engine(source.partition(lambda r: r.key, [None, 3])[None].select(lambda r: r.n), maybe=data) == {
        1: 1.0,
        2: 1.0,
    }


def test_numbers_of_other_types_are_other_records(engine: OnEngine) -> None:
    """1, 1.0 and true are equal to Python, and three records in three plans."""
    data = {(1, 1.0, True, "1"): 1.0}
    for field, kind in (("i", int), ("x", float), ("b", bool), ("s", str)):
        (record,) = engine(MIXED.select(lambda r, field=field: getattr(r, field)), mixed=data)
        assert type(record) is kind


@pytest.mark.parametrize(
    ("type_", "forms"),
    [
        (float, [1, 1.0, numpy.float32(1), numpy.int8(1)]),
        (int, [2, numpy.int64(2), numpy.uint8(2)]),
        (str, ["a", numpy.str_("a")]),
        (bool, [True, numpy.bool_(True)]),
        (wp.decimal(2), [decimal.Decimal("1.5"), decimal.Decimal("1.50")]),
        (tuple[int, float], [(1, 2), [1, 2.0], (numpy.int32(1), numpy.float64(2))]),
    ],
)
def test_one_record_in_several_forms_has_one_answer(type_: Any, forms: list[Any]) -> None:
    """Asked for as an int, a float, a number of numpy or a list: the noise is one, so that it cannot be averaged."""
    source = wp.source("rows", type_)
    with wp.Session() as session:
        session.protect(source, [forms[0]], budget=1)
        handle = session.release(source.noisy_count(1))
        assert len({handle[form] for form in forms}) == 1
        assert session.release(source.noisy_count(1, over=forms[:1])).value == handle[forms[-1]]
        assert session.spent("rows") == 1


@pytest.mark.parametrize(
    ("type_", "other"),
    [
        (int, 1.0),
        (int, True),
        (bool, 1),
        (str, b"a"),
        (float, fractions.Fraction(1)),
        (str, 1),
        (float, True),
        (int, "1"),
    ],
)
def test_a_key_that_is_only_equal_to_python_is_refused(type_: type, other: Any) -> None:
    """It would be found where Python compares, and not where a database does."""
    source = wp.source("rows", type_)
    with wp.Session() as session:
        session.protect(source, [], budget=1)
        with pytest.raises(wp.PlanError):
            session.release(source.noisy_count(1, over=[other]))
        assert session.spent("rows") == 0


def test_rows_in_several_forms_add_up_to_one_unit_and_no_more() -> None:
    """A row in two forms is the same record twice: its weights add up, and no unit is exceeded unseen."""
    source = wp.source("rows", float, facts=["unit_weights"])
    for rows in ([0.0, -0.0], [1, 1.0], [numpy.float32(0.5), 0.5]):
        with wp.Session() as session, pytest.raises(wp.SourceRejected):
            session.protect(source, rows, budget=1)
    words = wp.source("words", str, facts=["unit_weights"])
    with wp.Session() as session:
        session.protect(words, ["é", "e\u0301", "a", "A", "a ", "ß", "ss"], budget=1)


def test_a_mapping_cannot_hold_one_record_twice() -> None:
    """Keys that differ to Python and are one record: refused, not added up beyond the unit."""
    source = wp.source("rows", tuple[int, float])
    with wp.Session() as session, pytest.raises(wp.SourceRejected):
        session.protect(source, {(1, 0.5): 1.0, (numpy.int64(1), "x"): 1.0}, budget=1)

    class Apart(float):
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    with wp.Session() as session, pytest.raises(wp.SourceRejected):
        session.protect(wp.source("floats", float), {Apart(1): 1.0, Apart(1): 1.0}, budget=1)
