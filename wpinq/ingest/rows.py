"""Rows and mappings that are already Python objects."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from operator import itemgetter
from typing import Any

from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import UnfitValue, Value
from wpinq.ingest.rejection import Faults
from wpinq.ingest.typed_columns import Layout, by_name, unwrap


def records_of_rows(rows: Iterable[Any], type_: Type, faults: Faults) -> list[Value]:
    """The record of each row; what is unfit is added to `faults`."""
    layout = Layout.of(type_)
    rows = list(rows)
    if layout.bare:
        return layout.records([rows], faults)
    width = len(layout.types)
    if not (set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) <= {width}):
        assert isinstance(type_, TupleOf)
        rows = [_spread(row, type_, position, faults) for position, row in enumerate(rows)]
    return layout.records([list(map(itemgetter(i), rows)) for i in range(width)], faults)


def _spread(row: Any, type_: TupleOf, position: int, faults: Faults) -> Sequence[object]:
    width = len(type_.elements)
    row = unwrap(row)
    if hasattr(row, "dtype") and hasattr(row, "__len__"):
        row = list(row)
    try:
        if isinstance(row, Mapping):
            return by_name(row, type_)
        if not isinstance(row, (tuple, list)):
            raise UnfitValue(f"not a record: give a tuple, a list or a mapping with {width} fields")
        if len(row) != width:
            raise UnfitValue(f"a record that does not have {width} fields")
        return row
    except UnfitValue as reason:
        faults[position] = str(reason)
        return (None,) * width


def read_weights(weights: Iterable[object], unit_weight: Fraction, faults: Faults) -> list[float]:
    """The weights of the items of a mapping as floats; what is unfit is added to `faults`."""
    largest = largest_float(unit_weight)
    numbers: list[float] = []
    for position, weight in enumerate(weights):
        if type(weight) is float and abs(weight) <= largest:
            numbers.append(weight)
            continue
        try:
            numbers.append(_weight(weight, unit_weight))
        except UnfitValue as reason:
            faults.setdefault(position, str(reason))
            numbers.append(0.0)
    return numbers


def _weight(weight: Any, unit_weight: Fraction) -> float:
    weight = unwrap(weight)
    if isinstance(weight, bool) or not isinstance(weight, (int, float, Fraction)):
        raise UnfitValue("a weight that is not a real number (int, float or Fraction)")
    if isinstance(weight, float) and not math.isfinite(weight):
        raise UnfitValue("a weight that is nan or infinite")
    if abs(Fraction(weight)) > unit_weight:
        raise UnfitValue(
            f"a weight above the unit weight {unit_weight} (repeat the row, or declare a larger unit_weight)"
        )
    try:
        number = float(weight)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or Fraction(number) != Fraction(weight):
        raise UnfitValue("a weight that a 64-bit float cannot represent exactly")
    return number


def largest_float(bound: Fraction) -> float:
    """The largest float that is not above a positive bound, so that comparing with it is exact."""
    if bound >= Fraction(sys.float_info.max):
        return sys.float_info.max
    number = float(bound)
    return number if Fraction(number) <= bound else math.nextafter(number, 0.0)
