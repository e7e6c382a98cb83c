"""Values of the record types: checking, canonical order, canonical bytes.

A value is a plain Python object: int, float, bool, str, None, and tuples for records and lists alike. Its type
is always at hand, so nothing is tagged. Dates, decimals and the like are ints and strings here (`logical_values`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from wpinq.expr import types
from wpinq.expr.logical_values import UnfitValue as UnfitValue
from wpinq.expr.logical_values import Value as Value
from wpinq.expr.logical_values import fit, to_stored

_PLAIN = {bool, int, float, str, type(None)}
"""The kinds of plain parts, subclasses not among them."""


def normalize(value: object, type_: types.Type, logical: Callable[[Any, types.Logical], Value] = to_stored) -> Value:
    """The canonical form of a value: -0.0 becomes 0.0, lists become tuples, ints widen to float fields.

    Parts of a logical type are made canonical by `logical`: from Python's dates and decimals, unless it says otherwise.

    Raises
    ------
    UnfitValue
        When the value is not of the type. Only the reason is named, never the value.
    """
    if value is None:
        if type_.nullable:
            return None
        raise UnfitValue(f"null where {type_} is declared (declare it as `T | None` to allow null)")
    if isinstance(type_, (types.ListOf, types.TupleOf)):
        return _normalize_sequence(value, type_, logical)
    if isinstance(type_, types.Logical):
        return logical(value, type_)
    name = getattr(type_, "name", None)  # comparing types takes longer than all the rest
    if name == types.BOOL.name:
        if isinstance(value, bool):
            return value
    elif name == types.INT.name:
        if isinstance(value, int) and not isinstance(value, bool):
            if types.INT_MIN <= value <= types.INT_MAX:
                return int(value)
            raise UnfitValue("an integer outside 64 bits")
    elif name == types.FLOAT.name:
        return _normalize_float(value)
    elif name == types.STR.name and isinstance(value, str):
        return _normalize_str(value)
    raise UnfitValue(f"a value that is not of type {type_}")


def _normalize_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnfitValue("a value that is not of type float")
    try:
        number = float(value)
    except OverflowError:
        raise UnfitValue("a number outside the range of float") from None
    if not math.isfinite(number):
        raise UnfitValue("nan or infinity")
    if isinstance(value, int) and int(number) != value:
        raise UnfitValue("an integer that float cannot represent exactly")
    return number + 0.0  # -0.0 + 0.0 is 0.0


def _normalize_str(value: str) -> str:
    if not value.isascii() and any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise UnfitValue("a string with a lone surrogate")
    return str.__str__(value)


def _normalize_sequence(
    value: object, type_: types.ListOf | types.TupleOf, logical: Callable[[Any, types.Logical], Value]
) -> Value:
    if not isinstance(value, (tuple, list)):
        raise UnfitValue(f"a value that is not of type {type_}")
    if isinstance(type_, types.ListOf):
        if type_.bound is not None and len(value) > type_.bound:
            raise UnfitValue(f"a list of more than {type_.bound} elements")
        return tuple(normalize(item, type_.element, logical) for item in value)
    if len(value) != len(type_.elements):
        raise UnfitValue(f"a record that does not have {len(type_.elements)} fields")
    return tuple(normalize(item, element, logical) for item, element in zip(value, type_.elements, strict=True))


def check_canonical(value: object, type_: types.Type) -> Value:
    """A value that should be in canonical form already, what stands for dates and the like included; or UnfitValue."""
    return normalize(value, type_, _check_stored)


def _check_stored(value: Any, type_: types.Logical) -> Value:
    return fit(normalize(value, type_.stored), type_)


def normalize_all(
    values: Sequence[Any], type_: types.Type, check: Callable[[object, types.Type], Value]
) -> list[Value] | None:
    """The canonical forms of many values, column by column, each different part looked at once: keys repeat few parts.

    None where that cannot be told: where parts are of several kinds (1, 1.0 and True are equal), not plain, or unfit.
    """
    kinds = set(map(type, values))
    if kinds == {tuple} and isinstance(type_, types.TupleOf):
        width = len(type_.elements)
        if set(map(len, values)) != {width} or not width:
            return None
        found = []
        for place, element in enumerate(type_.elements):
            checked = normalize_all([value[place] for value in values], element, check)
            if checked is None:
                return None
            found.append(checked)
        return list(zip(*found, strict=True))
    if len(kinds - {type(None)}) != 1 or not kinds <= _PLAIN:
        return None
    try:
        known = {value: check(value, type_) for value in set(values)}
    except UnfitValue:
        return None
    return list(map(known.__getitem__, values))


def order_key(value: Value) -> tuple[Any, ...]:
    """The key that sorts values of one type in canonical order: null first, then by value, then by position."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, *(order_key(item) for item in value))
    return (1, value)


def canonical_bytes(value: Value, type_: types.Type) -> bytes:
    """The one byte form of a typed value: equal bytes exactly when type and value are equal.

    Every part is tagged with its type and lists with their length, so `1`, `1.0` and `True` differ and no two
    values share a form. This form keys noise and replay.
    """
    parts: list[bytes] = []
    _write(value, type_, parts)
    return b"".join(parts)


def from_canonical_bytes(form: bytes, type_: types.Type) -> Value:
    """The value that has this byte form, of this type; ValueError or the like where none has it.

    Examples
    --------
    >>> from wpinq.expr.types import tuple_type
    >>> from_canonical_bytes(canonical_bytes((7, "seven"), tuple_type([INT, STR])), tuple_type([INT, STR]))
    (7, 'seven')
    """
    value, end = _read(form, 0, type_)
    if end != len(form):
        raise ValueError("there is more than one value")
    return value


def _read(form: bytes, at: int, type_: types.Type) -> tuple[Value, int]:
    tag, at = form[at : at + 1], at + 1
    if tag == b"n":
        return None, at
    if tag == b"d":
        at = _read(form, at, types.STR)[1]  # the name of the logical type
        assert isinstance(type_, types.Logical)
        return _read(form, at, type_.stored)
    if tag == b"b":
        return form[at : at + 1] == b"1", at + 1
    if tag in (b"i", b"f"):
        (number,) = struct.unpack_from(">q" if tag == b"i" else ">d", form, at)
        return number, at + 8
    (size,) = struct.unpack_from(">I", form, at)
    at += 4
    if tag == b"s":
        return form[at : at + size].decode("utf-8"), at + size
    assert isinstance(type_, (types.TupleOf, types.ListOf))
    items = []
    for i in range(size):
        item, at = _read(form, at, type_.elements[i] if isinstance(type_, types.TupleOf) else type_.element)
        items.append(item)
    return tuple(items), at


def canonical_bytes_of(values: Sequence[Value], type_: types.Type) -> list[bytes]:
    """What `canonical_bytes` gives of each of many canonical values; each different part is written once."""
    if isinstance(type_, types.ListOf):
        return [canonical_bytes(value, type_) for value in values]
    if isinstance(type_, types.TupleOf) and type_.elements and values and None not in values:
        parts = zip(*values, strict=True)
        columns = [canonical_bytes_of(part, element) for part, element in zip(parts, type_.elements, strict=True)]
        return list(map(b"".join, zip(repeat(_tuple_head(type_)), *columns, strict=False)))
    different = set(values)
    plain = _BYTES.get(type_) if None not in different else None
    known = {value: canonical_bytes(value, type_) if plain is None else plain(value) for value in different}
    return list(map(known.__getitem__, values))


def _tuple_head(type_: types.TupleOf) -> bytes:
    return b"t" + struct.pack(">I", len(type_.elements))


def _write(value: Value, type_: types.Type, parts: list[bytes]) -> None:
    if value is None:
        parts.append(b"n")
    elif isinstance(type_, types.TupleOf):
        parts.append(_tuple_head(type_))
        for item, element in zip(value, type_.elements, strict=True):
            _write(item, element, parts)
    elif isinstance(type_, types.ListOf):
        parts.append(b"l" + struct.pack(">I", len(value)))
        if type_.element in _BYTES and not type_.element.nullable:  # the column of a table: one look at its type
            parts.extend(map(_BYTES[type_.element], value))
        else:
            for item in value:
                _write(item, type_.element, parts)
    else:
        if isinstance(type_, types.Logical):
            name = "category" if isinstance(type_, types.CategoryOf) else type_.name
            parts.append(b"d" + _str_bytes(name))
            type_ = type_.stored
        parts.append(_BYTES[type_](value))


def _str_bytes(value: str) -> bytes:
    text = value.encode("utf-8")
    return b"s" + struct.pack(">I", len(text)) + text


_DOUBLE, _QUAD = struct.Struct(">d").pack, struct.Struct(">q").pack
_BYTES: dict[types.Type, Callable[[Value], bytes]] = {
    types.STR: _str_bytes,
    types.FLOAT: lambda value: b"f" + _DOUBLE(value + 0.0),
    types.INT: lambda value: b"i" + _QUAD(value),
    types.BOOL: lambda value: b"b1" if value else b"b0",
}
