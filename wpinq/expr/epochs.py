"""Epochs: a declared calendar, and the rows that belong to each of its periods.

A row belongs to the epoch that its declared column names, and to no other. Which epochs exist follows from the
calendar, never from data. Periods are half open and in UTC: `[start, start of the next)`, in whole microseconds.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import PlanError
from wpinq.expr.declarations import Person
from wpinq.expr.types import DATE, STR, TIMESTAMP, Scalar, TupleOf, Type, check_field_name
from wpinq.expr.values import Value

#: The periods of a calendar, each with a label; weeks are those of ISO 8601.
CALENDARS = {"hour": "2026-11-27T05", "day": "2026-11-27", "week": "2026-W48", "month": "2026-11", "year": "2026"}

#: It stands between a series and an epoch, in the names of sources and accounts, and is in no other name.
SEPARATOR = ":"

#: The most labels of a series, each of whose accounts declares all of them, and the most epochs of a window.
EPOCH_LIMIT = 1_024

_UNIX, _TICK = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
_DAY = 86_400_000_000
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch of a series, or, without a label, the template of all its epochs.

    Attributes
    ----------
    series : str
        The name of the series.
    every : str or tuple of str
        A period of `CALENDARS`, or the labels of all epochs in order.
    start : str
        The label of the first epoch.
    on : str
        The field that says to which epoch a row belongs: its time or day, or the label itself.
    label : str
        The epoch, as `2026-11-27`, `2026-11-27T05`, `2026-W48`, `2026-11` or `2026`; empty for the template.
    distinct : str
        A field of which each value counts once for a person of an epoch.
    strict : bool
        Whether rows outside of the epoch refuse the data, instead of being left out.
    each, total : Fraction, optional
        The budget of each epoch, and of one person over all epochs; no part of a plan.
    """

    series: str
    every: str | tuple[str, ...]
    start: str
    on: str
    label: str = ""
    distinct: str = ""
    strict: bool = False
    each: Fraction | None = field(default=None, compare=False, repr=False)
    total: Fraction | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_field_name(self.series)
        listed, first = isinstance(self.every, tuple), self.every[:1] == (self.start,)
        sound = first and all(isinstance(each, str) and _LABEL.fullmatch(each) for each in self.every)
        if listed and not (sound and len({*self.every}) == len(self.every) <= EPOCH_LIMIT):
            raise PlanError(f"series {self.series!r}: up to {EPOCH_LIMIT:,} labels, all different, from the start on")
        if not listed and self.every not in CALENDARS:
            raise PlanError(f"series {self.series!r}: every is one of {', '.join(CALENDARS)}, or all labels")
        if not listed and _moment(str(self.every), _index(str(self.every), self.start)) <= _UNIX:
            raise PlanError(f"series {self.series!r}: the first epoch begins after 1970")  # databases round towards it
        if not (isinstance(self.strict, bool) and isinstance(self.on, str) and isinstance(self.distinct, str)):
            raise PlanError(f"series {self.series!r}: strict is True or False, on and distinct name fields")
        for each in (self.start, self.label or self.start):
            self.number(each)

    def check(self, source: str, account: str, row: Type, columns: tuple[str, ...], person: Person | None) -> None:
        """Refuse a template where an epoch is needed, and a declaration that does not fit the rows.

        Columns are layout, and no part of an account. If epochs could read `on` from different columns, one row could
        be in two of them.
        """
        if not self.label:
            raise PlanError(f"{self.series!r} is a series: name an epoch, as {self.series}.epoch({self.start!r})")
        if source != self.source or account != source:
            raise PlanError(f"series {self.series!r}: an epoch has its own name and account")
        fields = dict(zip(row.names, row.elements, strict=True)) if isinstance(row, TupleOf) else {}
        kind = fields.get(self.on)
        if kind not in ((STR,) if isinstance(self.every, tuple) else (TIMESTAMP, DATE, STR)):
            raise PlanError(f"series {self.series!r}: on names the field of a time, datetime or date, or a label, str")
        if columns and columns[[*fields].index(self.on)] != self.on:
            raise PlanError(f"series {self.series!r}: the field of `on` has the name of its column, in all epochs")
        if kind == DATE and self.every == "hour":
            raise PlanError(f"series {self.series!r}: a date is in no hour; declare the field of `on` as datetime")
        if self.distinct and not (person is not None and isinstance(fields.get(self.distinct), Scalar)):
            raise PlanError(f"series {self.series!r}: distinct names a field of single values, of people's rows")

    @property
    def source(self) -> str:
        """The name of its source and account, or of the series for the template."""
        return f"{self.series}{SEPARATOR}{self.label}" if self.label else self.series

    def number(self, label: str) -> int:
        """The number of an epoch, from 1."""
        if not isinstance(label, str) or _LABEL.fullmatch(label) is None:
            raise PlanError(f"series {self.series!r}: a label is up to 64 ASCII letters, digits, '_', '.' and '-'")
        if isinstance(self.every, tuple):
            number = self.every.index(label) + 1 if label in self.every else 0
        else:
            number = _index(self.every, label) - _index(self.every, self.start) + 1
        if number < 1:
            raise PlanError(f"series {self.series!r}: {label!r} is no epoch: the first is {self.start!r}")
        return number

    def labels(self, first: int, last: int) -> Sequence[str]:
        """The labels of the epochs of some numbers, both included."""
        if isinstance(self.every, tuple):
            return self.every[first - 1 : last]
        start = _index(self.every, self.start) - 1
        return [_text(self.every, _moment(self.every, start + number)) for number in range(first, last + 1)]

    def bounds(self, kind: Type) -> tuple[int, int]:
        """The first value of a time or day in the epoch, and the first one after it."""
        assert isinstance(self.every, str)
        index = _index(self.every, self.label)
        start, end = ((_moment(self.every, at) - _UNIX) // _TICK for at in (index, index + 1))
        return (start // _DAY, end // _DAY) if kind == DATE else (start, end)

    def condition(self, term: str, kind: Type) -> str:
        """Whether a stored value is in the epoch, as SQL; null, and so no, for null."""
        if kind == STR:
            return f"({term}) = '{self.label}'"
        first, end = self.bounds(kind)
        return f"({term}) BETWEEN {first} AND {end - 1}"

    def holds(self, value: Value, kind: Type) -> bool:
        """Whether a stored value is in the epoch."""
        if kind == STR or not isinstance(value, int):
            return bool(value == self.label)
        first, end = self.bounds(kind)
        return first <= value < end

    @property
    def words(self) -> str:
        """The calendar and the rule, as declarations have them."""
        every = self.every if isinstance(self.every, str) else f"label of {', '.join(self.every)}"
        rule = f"{f', distinct {self.distinct}' if self.distinct else ''}{', strict' if self.strict else ''}"
        return f"every {every} from {self.start} on {self.on}{rule}"


def over_all(series: str) -> str:
    """The account of one person over all epochs of a series; `*` is in no label."""
    return f"{series.partition(SEPARATOR)[0]}{SEPARATOR}*"


def _moment(every: str, index: int) -> datetime.datetime:
    """The start of a period, by its number since the year 1, which began on a Monday."""
    if every in ("month", "year"):
        year, month = divmod(index, 12 if every == "month" else 1)
        return datetime.datetime(1 + year, 1 + month, 1)
    return datetime.datetime(1, 1, 1) + index * datetime.timedelta(**{f"{every}s": 1})


def _text(every: str, moment: datetime.datetime) -> str:
    if every == "week":
        return "{:04d}-W{:02d}".format(*moment.isocalendar()[:2])
    return moment.isoformat()[: len(CALENDARS[every])]


@lru_cache(maxsize=4096)  # a total reads the names of all its nodes
def _index(every: str, label: str) -> int:
    """The number of a period since the year 1, from its label."""
    with suppress(ValueError, OverflowError):
        if every == "week":
            moment = datetime.datetime.fromisocalendar(int(label[:4]), int(label[6:]), 1)
        else:
            moment = datetime.datetime.fromisoformat(label + "0001-01-01T00"[len(label) :])
        days, year = moment.toordinal() - 1, moment.year - 1
        whole = {"hour": days * 24 + moment.hour, "day": days, "week": days // 7, "month": year * 12 + moment.month - 1}
        index = whole.get(every, year)
        if _text(every, _moment(every, index)) == label and _moment(every, index + 1):
            return index
    raise PlanError(f"{label!r} is no {every} in UTC: write it as {CALENDARS[every]}")
