"""Values of the record types: checking, canonical order, canonical bytes.

A value is a plain Python object: int, float, bool, str, None, and tuples for records and lists alike. Its type
is always at hand, so nothing is tagged. Dates, decimals and the like are ints and strings here.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from itertools import product, repeat
from operator import itemgetter
from typing import Any

from wpinq.expr import types

# Values of the logical types: what stands for them inside, the Python objects they are outside, and their text.
#
# Inside, a date is its days since 1970-01-01, a timestamp its microseconds since then in UTC, a time of day its
# microseconds since midnight, a duration its microseconds, a decimal the count of its last decimal, a category its
# string. Each way is exact, and what would not be is refused.

#: A record or a part of one: int, float, bool, str, None, or a tuple of values.
Value = Any

SECOND = 1_000_000
#: Microseconds of a day.
DAY = 86_400 * SECOND

_EPOCH, _TICK = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_FIRST_ORDINAL = _EPOCH.toordinal()
#: 0001-01-01 and 9999-12-31: what Python and every engine can say.
FIRST_DAY, LAST_DAY = 1 - _FIRST_ORDINAL, datetime.date.max.toordinal() - _FIRST_ORDINAL

#: The least and the greatest int that stands for a value; 64 bits for the other types.
RANGES: dict[types.Type, tuple[int, int]] = {
    types.DATE: (FIRST_DAY, LAST_DAY),
    types.TIMESTAMP: (FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1),
    types.TIME: (0, DAY - 1),
}
_YEARS = "the years 1 to 9999"
_RANGES_IN_WORDS = {types.DATE: _YEARS, types.TIMESTAMP: _YEARS, types.TIME: "a day"}

_PYTHON: dict[types.Type, Any] = {type_: python for python, type_ in types.PYTHON_TYPES.items()}


class UnfitValue(ValueError):
    """Raised for a value that is not of the type it should have.

    The message names the reason, never the value.
    """


def limits(type_: types.Type) -> tuple[int, int]:
    """The least and the greatest int that stands for a value of the type."""
    return RANGES.get(type_, (types.INT_MIN, types.INT_MAX))


def fit(value: Value, type_: types.Logical) -> Value:
    """The stored form of a value, where it has one; else UnfitValue."""
    if isinstance(type_, types.CategoryOf):
        if value in type_.known:
            return value
        raise UnfitValue("a value that is none of the declared categories")
    least, most = limits(type_)
    if not least <= value <= most:
        raise UnfitValue(f"a {type_} outside {_RANGES_IN_WORDS.get(type_, '64 bits')}")
    return value


def to_stored(value: Any, type_: types.Logical) -> Value:
    """The stored form of a Python value of a logical type, exactly; else UnfitValue.

    Timestamps with a zone are converted to UTC, those without are taken as they are. An int is a decimal; a datetime
    at midnight, without a zone, is a date, as data frames have no other.
    """
    if isinstance(type_, types.CategoryOf):
        if isinstance(value, str):
            return fit(str.__str__(value), type_)
    elif isinstance(type_, types.DecimalOf):
        if isinstance(value, Decimal) or (isinstance(value, int) and not isinstance(value, bool)):
            return fit(_units(value, type_.scale), type_)
        raise UnfitValue(f"a value that is not of type {type_} (a decimal.Decimal, or an int)")
    else:
        zone = getattr(value, "tzinfo", None)
        value = getattr(value, "asm8", value)  # of pandas, in UTC: it has moments that no difference of its own can say
        kind = _kind_of_numpy(value)
        if type_ == types.TIMESTAMP and (kind == "M" or isinstance(value, datetime.datetime)):
            return fit(_of_numpy(value) if kind else _microseconds(value), type_)
        if type_ == types.DATE and (kind == "M" or isinstance(value, datetime.datetime)):
            days, rest = divmod(_of_numpy(value) if kind else _microseconds(value), DAY)
            if rest == 0 and zone is None:
                return fit(days, type_)
            raise UnfitValue("a timestamp, where date is declared, that is not midnight without a zone")
        if type_ == types.DATE and isinstance(value, datetime.date):
            return value.toordinal() - _FIRST_ORDINAL
        if type_ == types.TIME and isinstance(value, datetime.time) and zone is None:
            return ((value.hour * 60 + value.minute) * 60 + value.second) * SECOND + value.microsecond
        if type_ == types.DURATION and (kind == "m" or isinstance(value, datetime.timedelta)):
            return fit(_of_numpy(value) if kind else value // _TICK, type_)
        without = " without a zone" if type_ == types.TIME else ""
        raise UnfitValue(f"a value that is not of type {type_} (a datetime.{_PYTHON[type_].__name__}{without})")
    raise UnfitValue(f"a value that is not of type {type_}")


def _kind_of_numpy(value: Any) -> str:
    """Numpy's kind of a moment, M, or a span, m; empty for all else.

    It is found by attributes.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind if kind in ("M", "m") and getattr(value, "ndim", None) == 0 else ""


def _of_numpy(value: Any) -> int:
    """The microseconds of a numpy moment or span, exactly.

    What overflows in numpy, without an error, or is finer than microseconds, is another value on the way back.
    """
    kind = value.dtype.kind
    noun = "moment" if kind == "M" else "duration"
    if value != value:
        raise UnfitValue(f"a missing {'timestamp' if kind == 'M' else noun}")
    unit = value.dtype.str[4:].strip("[]0123456789")
    if not unit:
        raise UnfitValue(f"a {noun} of numpy without a unit")
    if kind == "m" and unit in ("Y", "M"):
        raise UnfitValue("an interval of months, which are no duration")
    count = value.astype(f"{kind}8[us]")
    if count.astype(value.dtype) == value:
        return int(count.astype("i8"))
    if unit in ("ns", "ps", "fs", "as"):
        raise UnfitValue(f"a {noun} finer than microseconds")
    return (types.INT_MAX + 1) * DAY  # beyond every range


def _microseconds(value: datetime.datetime) -> int:
    return (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _TICK


def _units(value: Decimal | int, scale: int) -> int:
    """The number of units of `10**-scale` in a number, exactly."""
    if isinstance(value, int):
        return int(value) * int(10**scale)
    if not value.is_finite():
        raise UnfitValue("nan or infinity")
    if value and value.adjusted() + scale > 40:
        raise UnfitValue(f"a decimal({scale}) outside 64 bits")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    units = Decimal((sign, digits, exponent + scale)) if value else Decimal(0)
    whole = units.to_integral_value()
    if whole != units:
        raise UnfitValue(f"a number of more than {scale} decimals")
    return int(whole)


# --- outside ----------------------------------------------------------------------------------------------------------


def _timestamp(moment: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=moment)


def _decimal(units: int, scale: int) -> Decimal:
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))


def _python_of(type_: types.Logical) -> Callable[[Value], Value]:
    if isinstance(type_, types.DecimalOf):
        scale = type_.scale
        return lambda units: _decimal(units, scale)
    made: dict[types.Type, Callable[[Value], Value]] = {
        types.DATE: lambda days: datetime.date.fromordinal(days + _FIRST_ORDINAL),
        types.TIMESTAMP: _timestamp,
        types.TIME: lambda moment: _timestamp(moment).time(),
        types.DURATION: lambda length: datetime.timedelta(microseconds=length),
    }
    return made[type_]


def presenter(type_: types.Type) -> Callable[[Value], Value]:
    """The function that gives values of a type for people, dates and decimals as in Python."""
    if types.physical(type_) is type_ or isinstance(type_, types.CategoryOf):
        return lambda value: value
    if isinstance(type_, types.Logical):
        plain = _python_of(type_)
        return lambda value: None if value is None else plain(value)
    if isinstance(type_, types.ListOf):
        element = presenter(type_.element)
        return lambda value: None if value is None else tuple(map(element, value))
    assert isinstance(type_, types.TupleOf)
    parts = [presenter(element) for element in type_.elements]
    return lambda value: None if value is None else tuple(part(item) for part, item in zip(parts, value, strict=True))


# --- text -------------------------------------------------------------------------------------------------------------

_TEXTS: dict[types.Type, re.Pattern[str]] = {
    types.DATE: re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    types.TIMESTAMP: re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:[0-5]\d)?", re.ASCII),
    types.TIME: re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII),
    types.DURATION: re.compile(
        r"(-?)P(?=\d|T\d)(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,6}))?S)?)?", re.ASCII
    ),
}
_DECIMAL = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?", re.ASCII)
FORMS: dict[types.Type, str] = {
    types.DATE: "2024-02-29",
    types.TIMESTAMP: "2024-02-29T12:30:00, also with seconds' decimals and a zone: 2024-02-29T12:30:00.5+01:00",
    types.TIME: "12:30:00",
    types.DURATION: "P1DT2H30M, PT0.5S",
}


def parse(text: str, type_: types.Logical) -> Value:
    """The stored value of an ISO 8601 text; UnfitValue where it is not of the type."""
    if isinstance(type_, types.CategoryOf):
        return fit(text, type_)
    if isinstance(type_, types.DecimalOf):
        if _DECIMAL.fullmatch(text):
            return to_stored(Decimal(text), type_)
        raise UnfitValue(f"text that is not of type {type_} (digits, with a point before the decimals)")
    match, moment = _TEXTS[type_].fullmatch(text), None
    if match is not None and type_ == types.DURATION:
        return fit(_duration_of(match), type_)
    with suppress(ValueError):
        moment = match and _PYTHON[type_].fromisoformat(text)
    if moment is None:
        raise UnfitValue(f"text that is not of type {type_} ({FORMS[type_]})")
    return to_stored(moment, type_)


def decimals_of(text: str) -> int | None:
    """The number of decimals of a written number, or None where it is none."""
    return len(text.partition(".")[2]) if _DECIMAL.fullmatch(text) else None


def _duration_of(match: re.Match[str]) -> int:
    sign, days, hours, minutes, seconds, fraction = match.groups(default="")
    parts = [int(part[:20] if len(part) <= 20 else "9" * 20) if part else 0 for part in (days, hours, minutes, seconds)]
    whole = ((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3]
    total = whole * SECOND + int(fraction.ljust(6, "0"))
    return -total if sign else total


def to_text(value: Value, type_: types.Logical) -> str:
    """The text for `parse`: ISO 8601, the digits of a decimal, the string of a category."""
    if isinstance(type_, types.CategoryOf):
        return str(value)
    if isinstance(type_, types.DecimalOf):
        return f"{_decimal(value, type_.scale):f}"
    if type_ == types.DURATION:
        days, rest = divmod(abs(value), DAY)
        seconds, fraction = divmod(rest, SECOND)
        tail = f"{seconds}{f'.{fraction:06d}' if fraction else ''}S" if rest or not days else ""
        return f"{'-' * (value < 0)}P{f'{days}D' if days else ''}{'T' + tail if tail else ''}"
    text: str = _python_of(type_)(value).isoformat()
    return text


#: The kinds of plain parts, subclasses not among them.
_PLAIN = {bool, int, float, str, type(None)}


def normalize(value: object, type_: types.Type, logical: Callable[[Any, types.Logical], Value] = to_stored) -> Value:
    """The canonical form of a value.

    -0.0 becomes 0.0, lists become tuples, and ints widen to float fields.

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
    """A value already in canonical form, with stored dates and the like; else UnfitValue."""
    return normalize(value, type_, lambda part, logical: fit(normalize(part, logical.stored), logical))


def normalize_all(
    values: Sequence[Any], type_: types.Type, check: Callable[[object, types.Type], Value]
) -> list[Value] | None:
    """The canonical forms of many values, column by column, checking each distinct part once.

    Keys repeat few parts. None where this does not work: where parts are of several kinds (1, 1.0 and True are equal),
    not plain, or unfit.
    """
    kinds = set(map(type, values))
    if kinds == {tuple} and isinstance(type_, types.TupleOf):
        width = len(type_.elements)
        if set(map(len, values)) != {width} or not width:
            return None
        found = []
        for place, element in enumerate(type_.elements):
            checked = normalize_all(list(map(itemgetter(place), values)), element, check)
            if checked is None:
                return None
            found.append(checked)
        return list(zip(*found, strict=True))
    if len(kinds - {type(None)}) != 1 or not kinds <= _PLAIN:
        return None
    bare = type_.with_nullable(False)
    if kinds == {str} and bare == types.STR and all(map(str.isascii, values)):
        return list(values)
    if kinds == {int} and bare == types.INT and types.INT_MIN <= min(values) <= max(values) <= types.INT_MAX:
        return list(values)
    try:
        known = {value: check(value, type_) for value in set(values)}
    except UnfitValue:
        return None
    return list(map(known.__getitem__, values))


def order_key(value: Value) -> tuple[Any, ...]:
    """The sort key of values of one type: null first, then by value, then by position."""
    if value is None:
        return (0,)
    return (1, *map(order_key, value)) if isinstance(value, tuple) else (1, value)


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
    >>> from wpinq.expr.types import INT, STR, tuple_type
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


class CheckedKeys(tuple[Value, ...]):
    """Keys that were checked against one type, and are not checked again.

    Attributes
    ----------
    type : Type or None
        That type.
    """

    type: types.Type | None


@dataclass(frozen=True, eq=False)
class KeyPairs(Sequence[Value]):
    """All pairs of two sequences, in order, equal to the tuple that is made on demand.

    Attributes
    ----------
    factors : (sequence, sequence)
        The first and the second fields.
    type : Type or None
        The type that they were checked against.

    Examples
    --------
    >>> KeyPairs((("a", "b"), (1, 2)), None) == (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    True
    """

    factors: tuple[Sequence[Value], Sequence[Value]]
    type: types.Type | None

    @cached_property
    def _pairs(self) -> tuple[Value, ...]:
        return tuple(product(*self.factors))

    def __len__(self) -> int:
        return len(self.factors[0]) * len(self.factors[1])

    def __getitem__(self, place: Any) -> Any:
        return self._pairs[place]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._pairs)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and key in self._pairs

    def __eq__(self, other: object) -> bool:
        return self is other or self._pairs == (other._pairs if isinstance(other, KeyPairs) else other)

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __repr__(self) -> str:
        return repr(self._pairs)


def code_factors(keys: Sequence[Value], type_: types.Type) -> tuple[list[bytes], list[bytes]]:
    """Heads and tails: the codes of the keys are each head with each tail, in order.

    No head begins with another, for a canonical form shows where it ends.

    Examples
    --------
    >>> from wpinq.expr.types import INT
    >>> code_factors([7], INT)
    ([b'i\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07'], [b''])
    """
    if not isinstance(keys, KeyPairs):
        return canonical_bytes_of(keys, type_), [b""]
    assert isinstance(type_, types.TupleOf)
    (firsts, seconds), (first, second) = keys.factors, type_.elements
    return canonical_bytes_of(firsts, first, _tuple_head(type_)), canonical_bytes_of(seconds, second)


def canonical_bytes_of(values: Sequence[Value], type_: types.Type, before: bytes = b"") -> list[bytes]:
    """The `canonical_bytes` of many canonical values, each after some bytes.

    Each distinct part is written once.
    """
    if isinstance(type_, types.ListOf):
        return [before + canonical_bytes(value, type_) for value in values]
    if isinstance(type_, types.TupleOf) and type_.elements and values and None not in values:
        columns = [canonical_bytes_of([*map(itemgetter(i), values)], each) for i, each in enumerate(type_.elements)]
        return list(map(b"".join, zip(repeat(before + _tuple_head(type_)), *columns, strict=False)))
    different = dict.fromkeys(values)  # in their order: codes side by side in memory are joined sooner
    if type_ == types.STR and None not in different:
        texts = [value.encode("utf-8") for value in different]
        heads = {size: before + _str_head(size) for size in {*map(len, texts)}}
        codes = [heads[len(text)] + text for text in texts]
    elif type_ == types.INT and None not in different:
        codes = [*map(partial(struct.Struct(f">{len(before)}scq").pack, before, b"i"), different)]
    else:
        plain = _BYTES.get(type_) if None not in different else None
        codes = [*map(before.__add__, map(plain or partial(canonical_bytes, type_=type_), different))]
    if len(codes) == len(values):
        return codes
    known = dict(zip(different, codes, strict=True))
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
        if type_.element in _BYTES and not type_.element.nullable:  # the column of a table: its type is checked once
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
    return _str_head(len(text)) + text


def _str_head(size: int) -> bytes:
    return b"s" + struct.pack(">I", size)


_DOUBLE = struct.Struct(">d").pack
_BYTES: dict[types.Type, Callable[[Value], bytes]] = {
    types.STR: _str_bytes,
    types.FLOAT: lambda value: b"f" + _DOUBLE(value + 0.0),
    types.INT: partial(struct.Struct(">cq").pack, b"i"),
    types.BOOL: lambda value: b"b1" if value else b"b0",
}
