"""Values of the logical types: what stands for them inside, the Python objects they are outside, and their text.

Inside, a date is its days since 1970-01-01, a timestamp its microseconds since then in UTC, a time of day its
microseconds since midnight, a duration its microseconds, a decimal the count of its last decimal, a category its
string. Each way is exact, and what would not be is refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from wpinq.expr import types

Value = Any
"""A record or a part of one: int, float, bool, str, None, or a tuple of values."""

SECOND = 1_000_000
DAY = 86_400 * SECOND
"""Microseconds of a day."""

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_FIRST_ORDINAL = _EPOCH.toordinal()
FIRST_DAY, LAST_DAY = 1 - _FIRST_ORDINAL, datetime.date.max.toordinal() - _FIRST_ORDINAL
"""0001-01-01 and 9999-12-31: what Python and every engine can say."""

RANGES: dict[types.Type, tuple[int, int]] = {
    types.DATE: (FIRST_DAY, LAST_DAY),
    types.TIMESTAMP: (FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1),
    types.TIME: (0, DAY - 1),
}
"""The least and the greatest int that stands for a value; 64 bits for the other types."""

PYTHON_NAMES: dict[types.Type, str] = {
    types.DATE: "a datetime.date",
    types.TIMESTAMP: "a datetime.datetime",
    types.TIME: "a datetime.time without a zone",
    types.DURATION: "a datetime.timedelta",
}


class UnfitValue(ValueError):
    """A value is not of the type it should have. The message names the reason, never the value."""


def limits(type_: types.Type) -> tuple[int, int]:
    """The least and the greatest int that stands for a value of the type."""
    return RANGES.get(type_, (types.INT_MIN, types.INT_MAX))


def fit(value: Value, type_: types.Logical) -> Value:
    """What stands for a value, where it stands for one; else UnfitValue."""
    if isinstance(type_, types.CategoryOf):
        if value in type_.known:
            return value
        raise UnfitValue("a value that is none of the declared categories")
    least, most = limits(type_)
    if not least <= value <= most:
        beyond = (
            "the years 1 to 9999"
            if type_ in (types.DATE, types.TIMESTAMP)
            else "a day"
            if type_ == types.TIME
            else "64 bits"
        )
        raise UnfitValue(f"a {type_} outside {beyond}")
    return value


def to_stored(value: Any, type_: types.Logical) -> Value:
    """What stands for a Python value of a logical type, exactly; UnfitValue where nothing does.

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
        kind = _kind_of_numpy(value)
        if type_ == types.TIMESTAMP and (kind == "M" or isinstance(value, datetime.datetime)):
            return fit(_of_numpy(value) if kind else _microseconds(value), type_)
        if type_ == types.DATE and (kind == "M" or isinstance(value, datetime.datetime)):
            days, rest = divmod(_of_numpy(value) if kind else _microseconds(value), DAY)
            if rest == 0 and getattr(value, "tzinfo", None) is None:
                return fit(days, type_)
            raise UnfitValue("a timestamp, where date is declared, that is not midnight without a zone")
        if type_ == types.DATE and isinstance(value, datetime.date):
            return value.toordinal() - _FIRST_ORDINAL
        if type_ == types.TIME and isinstance(value, datetime.time) and value.tzinfo is None:
            return ((value.hour * 60 + value.minute) * 60 + value.second) * SECOND + value.microsecond
        if type_ == types.DURATION and (kind == "m" or isinstance(value, datetime.timedelta)):
            return fit(_of_numpy(value) if kind else _length(value), type_)
        raise UnfitValue(f"a value that is not of type {type_} ({PYTHON_NAMES[type_]})")
    raise UnfitValue(f"a value that is not of type {type_}")


def _kind_of_numpy(value: Any) -> str:
    """What numpy calls its moments, M, and its spans, m; empty of all else. Told by attributes."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind if kind in ("M", "m") and getattr(value, "ndim", None) == 0 else ""


def _of_numpy(value: Any) -> int:
    """The microseconds of a numpy moment or span, in Python's integers: numpy's own would overflow without a word."""
    noun = "moment" if value.dtype.kind == "M" else "duration"
    if value != value:
        raise UnfitValue(f"a missing {'timestamp' if noun == 'moment' else noun}")
    written = _NUMPY_UNIT.search(value.dtype.str)
    if written is None:
        raise UnfitValue(f"a {noun} of numpy without a unit")
    count, unit = int(value.astype("i8")) * int(written[1] or 1), written[2]
    if unit in _MONTHS:
        if noun == "duration":
            raise UnfitValue("an interval of months, which are no duration")
        # Outside the years that there are, any number beyond the range does.
        years, month = divmod(count * _MONTHS[unit], 12)
        year = 1970 + years
        within = datetime.MINYEAR <= year <= datetime.MAXYEAR
        return _length(datetime.datetime(year, month + 1, 1) - _EPOCH) if within else years * 366 * DAY
    if unit in _NUMPY_UNITS:
        return count * _NUMPY_UNITS[unit]
    whole, finer = divmod(count, _FINER[unit])
    if finer:
        raise UnfitValue(f"a {noun} finer than microseconds")
    return whole


_NUMPY_UNIT = re.compile(r"\[(\d*)([A-Za-z]+)\]$", re.ASCII)
_MONTHS = {"Y": 12, "M": 1}
_NUMPY_UNITS = {"W": 7 * DAY, "D": DAY, "h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 1000, "us": 1}
"""Microseconds of numpy's units."""
_FINER = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
"""Of its finer units, how many are a microsecond."""


def _microseconds(value: datetime.datetime) -> int:
    if value != value:  # what pandas has for a missing one is a datetime, and not itself
        raise UnfitValue("a missing timestamp")
    exact = getattr(value, "asm8", None)  # in UTC; pandas has moments that no difference of its own can say
    if exact is not None:
        return _of_numpy(exact)
    return _length(value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC))


def _length(value: datetime.timedelta) -> int:
    if value != value:
        raise UnfitValue("a missing duration")
    exact = getattr(value, "asm8", None)  # of pandas
    if exact is not None:
        return _of_numpy(exact)
    return int((value.days * 86_400 + value.seconds) * SECOND + value.microseconds)


def _units(value: Decimal | int, scale: int) -> int:
    """How often `10**-scale` goes into a number, exactly."""
    if isinstance(value, int):
        return int(value) * int(10**scale)
    if not value.is_finite():
        raise UnfitValue("nan or infinity")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + scale
    count: int = int(Decimal((0, digits, 0)))
    if count == 0:
        return 0
    if shift > 40 or len(digits) + shift > 40:
        raise UnfitValue(f"a decimal({scale}) outside 64 bits")
    power = int(10 ** min(abs(shift), len(digits) + 40))
    if shift < 0:
        count, rest = divmod(count, power)
        if rest:
            raise UnfitValue(f"a number of more than {scale} decimals")
    else:
        count *= power
    return -count if sign else count


# --- outside ----------------------------------------------------------------------------------------------------------


def _date(days: int) -> datetime.date:
    return datetime.date.fromordinal(days + _FIRST_ORDINAL)


def _timestamp(moment: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=moment)


def _duration(length: int) -> datetime.timedelta:
    return datetime.timedelta(microseconds=length)


def _decimal(units: int, scale: int) -> Decimal:
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))


def _python_of(type_: types.Logical) -> Callable[[Value], Value]:
    if isinstance(type_, types.DecimalOf):
        scale = type_.scale
        return lambda units: _decimal(units, scale)
    if isinstance(type_, types.CategoryOf):
        return str
    made: dict[types.Type, Callable[[Value], Value]] = {
        types.DATE: _date,
        types.TIMESTAMP: _timestamp,
        types.TIME: lambda moment: _timestamp(moment).time(),
        types.DURATION: _duration,
    }
    return made[type_]


def presenter(type_: types.Type) -> Callable[[Value], Value]:
    """How values of a type are shown to people: dates, decimals and their like as Python has them; others as is."""
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
    """What stands for the value that a text in ISO 8601 form says; UnfitValue where it says none of the type."""
    if isinstance(type_, types.CategoryOf):
        return fit(text, type_)
    if isinstance(type_, types.DecimalOf):
        if _DECIMAL.fullmatch(text):
            return to_stored(Decimal(text), type_)
        raise UnfitValue(f"text that is not of type {type_} (digits, with a point before the decimals)")
    match = _TEXTS[type_].fullmatch(text)
    if match is not None:
        try:
            if type_ == types.DURATION:
                return fit(_duration_of(match), type_)
            read: Any = {types.DATE: datetime.date, types.TIMESTAMP: datetime.datetime, types.TIME: datetime.time}[
                type_
            ]
            return to_stored(read.fromisoformat(text), type_)
        except UnfitValue:
            raise
        except ValueError:
            pass
    raise UnfitValue(f"text that is not of type {type_} ({FORMS[type_]})")


def decimals_of(text: str) -> int | None:
    """How many decimals a written number has, or None where it is none."""
    return len(text.partition(".")[2]) if _DECIMAL.fullmatch(text) else None


def _duration_of(match: re.Match[str]) -> int:
    sign, days, hours, minutes, seconds, fraction = match.groups(default="")
    parts = [int(part[:20] if len(part) <= 20 else "9" * 20) if part else 0 for part in (days, hours, minutes, seconds)]
    whole = ((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3]
    total = whole * SECOND + int(fraction.ljust(6, "0"))
    return -total if sign else total


def to_text(value: Value, type_: types.Logical) -> str:
    """The text that `parse` reads back: ISO 8601; the digits of a decimal; the string of a category."""
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
