"""The common shape of all input, one column per field, and checks of Python values.

Values of a column are brought to its declared type. A column whose Python types already prove the declared type is
checked at C speed. Only one that does not is walked value by value, which finds the positions and the reasons of what
is unfit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from wpinq.data.kinds import proposed_field
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.declarations import ID, IDS, INT_ID, NO_ID, STR_ID
from wpinq.expr.types import BOOL, FLOAT, INT, INT_MAX, INT_MIN, STR, ListOf, TupleOf, Type
from wpinq.expr.values import UnfitValue, Value, normalize

#: Python values.
ColumnValues = Sequence[Any]

#: Position of an unfit row, from 0 -> the reason, which never holds a value.
Faults = dict[int, str]

_PYTHON_TYPES: dict[Type, type] = {BOOL: bool, INT: int, FLOAT: float, STR: str}
NO_BOOL = "an integer that is neither 0 nor 1, where bool is declared"
OWN_CODE_FAILS = "a value whose own code fails when it is read"
#: The numpy dtype kinds whose scalars mean the same as a Python bool, int, float or str.
PLAIN_KINDS = "biufU"


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a record type: one per field, or a single one for bare values."""

    names: tuple[str | None, ...]
    types: tuple[Type, ...]
    bare: bool

    @classmethod
    def of(cls, type_: Type) -> Layout:
        if not isinstance(type_, TupleOf) or type_.nullable:
            return cls((None,), (type_,), True)
        if not type_.elements:
            raise PlanError("a source needs at least one field: declare what its records hold")
        return cls(type_.names, type_.elements, False)

    def label(self, index: int) -> str:
        """How messages call a field."""
        if self.bare:
            return "value"
        name = self.names[index]
        return f"field {index}" if name is None else f"field {name!r}"

    def pick(self, available: Sequence[object], what: str) -> list[int]:
        """Where the columns of a table stand: by name where every field has one, else by place."""
        if any(name is None for name in self.names):
            if len(available) != len(self.names):
                raise SourceRejected(
                    f"{what} has {len(available)} columns where the declared type has {len(self.names)} without "
                    "names: offer just these columns, in order"
                )
            return list(range(len(self.names)))
        missing = [name for name in self.names if name not in available]
        if missing:
            if missing == [name for name, kind in zip(self.names, self.types, strict=True) if kind in IDS]:
                raise SourceRejected(
                    f"{what} has no column named {missing[0]!r}, which the source declares as the ids of people: offer "
                    f"it too, or name the column that holds them, as in wp.source(..., person={missing[0]!r})"
                )
            field = proposed_field(str(missing[0]), "first_name")
            raise SourceRejected(
                f"{what} has no column named {', '.join(map(repr, missing))}: rename its columns, or say which holds a "
                f'field, as wp.source(..., columns={{"{field}": "..."}}) (a csv or tsv file starts with column names)'
            )
        doubled = [name for name in self.names if list(available).count(name) > 1]
        if doubled:
            raise SourceRejected(f"{what} has several columns named {', '.join(map(repr, doubled))}: keep one")
        return [list(available).index(name) for name in self.names]

    def typed(self, columns: Sequence[ColumnValues], faults: Faults, notes: Sequence[str] = ()) -> list[list[Value]]:
        """The columns in canonical form; what is unfit is added to `faults`, and stands as None."""
        return [
            normalize_column(column, type_, faults, self.label(i) + (notes[i] if notes else ""))
            for i, (column, type_) in enumerate(zip(columns, self.types, strict=True))
        ]


def normalize_column(column: ColumnValues, type_: Type, faults: Faults, label: str) -> list[Value]:
    """The values of a column in canonical form.

    An unfit one is added to `faults` and stands as None.
    """
    proven = _proven_list(column, type_)
    if proven is not None:
        return proven
    values: list[Value] = []
    for position, value in enumerate(column):
        try:
            values.append(canonical_value(value, type_))
        except UnfitValue as reason:
            faults.setdefault(position, f"{label}: {reason}")
            values.append(None)
    return values


def canonical_value(value: Any, type_: Type) -> Value:
    """The canonical form of a value of Python's or numpy's, as all doors for data take it.

    Raises
    ------
    UnfitValue
        When the value is not of the type. Only the reason is named, never the value.
    """
    try:
        given = plain(value, type_, bits=True)
        return _identified(given, type_) if type_ in IDS else normalize(given, type_)
    except UnfitValue:
        raise
    except Exception:  # of the value's own code, whose words may quote it
        pass
    raise UnfitValue(OWN_CODE_FAILS)


def _identified(value: object, type_: Type) -> Value:
    """The id of a person.

    Where no type is declared it is text, and that of 1 and that of "1" are two.
    """
    if value is None:
        raise UnfitValue(NO_ID)
    kind = INT if isinstance(value, int) else STR
    declared = INT if type_ == INT_ID else STR if type_ == STR_ID else kind
    if isinstance(value, bool) or not isinstance(value, (int, str)) or kind != declared:
        raise UnfitValue(f"a value that is not of type {type_}")
    return f"{kind} {normalize(value, kind)}" if type_ == ID else normalize(value, kind)


def _proven_list(column: Sequence[Any], type_: Type) -> list[Value] | None:
    """The values of a list whose Python types prove the type, or None."""
    kinds = set(map(type, column))
    with_null = type_.nullable and type(None) in kinds
    if with_null:
        kinds.remove(type(None))
    if not kinds <= {_PYTHON_TYPES.get(type_)}:
        return None
    present = [value for value in column if value is not None] if with_null else column
    if type_ == INT and present and not (min(present) >= INT_MIN and max(present) <= INT_MAX):
        return None
    if type_ == FLOAT:
        sound = all(map(math.isfinite, present))
        return [None if value is None else value + 0.0 for value in column] if sound else None
    if type_ == STR:
        try:
            "".join(present).encode()
        except UnicodeEncodeError:
            return None
    return list(column)


def unwrap(value: Any) -> Any:
    """The Python value of a numpy scalar, and the fields of a structured one; else the value.

    Told by attributes, so that numpy need not be imported. Dates stay as they are: `item()` makes them integers.
    """
    dtype = getattr(value, "dtype", None)
    if dtype is None or getattr(value, "ndim", None) != 0:
        return value
    if getattr(dtype, "names", None):
        return [value[name] for name in dtype.names]
    if getattr(value, "mask", None) is not None and value.mask:  # a masked value of numpy is one that is missing
        return None
    if dtype.kind in "mM" and value != value:  # not a time, which is how a missing one is written
        return None
    return value.item() if dtype.kind in PLAIN_KINDS else value


def plain_row(value: Any, type_: TupleOf) -> Any:
    """An array row as the list of its values, or a row with field names as a mapping.

    Other values stay as they are. Fields are named by a series of pandas, and by named tuples, rows of Spark and
    structured values of numpy. They are read by place where the type has no names.
    """
    series = getattr(value, "ndim", None) == 1 and hasattr(value, "dtype") and hasattr(value, "to_dict")
    names = None if None in type_.names and not series else _names(value)
    if names is not None:
        if any(names.count(name) > 1 for name in type_.names):
            raise UnfitValue("a record with several fields of one name")
        if isinstance(value, tuple) or series:
            return dict(zip(names, list(value), strict=True))
        return {name: value[name] for name in names}
    if getattr(value, "ndim", None) != 1 or not hasattr(value, "dtype"):
        return unwrap(value)
    with suppress(Exception):  # it is foreign, and its words may quote values; what it is then is refused
        return list(value)
    return value


def _names(value: Any) -> list[Any] | None:
    """The names that a row has for its values itself."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
        return list(names) if isinstance(names, (tuple, list)) and len(names) == len(value) else None
    if getattr(value, "ndim", None) == 1 and hasattr(value, "dtype"):
        return list(value.index) if hasattr(value, "to_dict") and hasattr(value, "index") else None
    structured = getattr(getattr(value, "dtype", None), "names", None)
    return list(structured) if structured and getattr(value, "ndim", None) == 0 else None


def plain(value: Any, type_: Type, bits: bool = False) -> object:
    """The value with numpy scalars, subclasses of plain kinds and records by name made plain.

    With `bits`, 0 and 1 are the bools that data frames and files mean by them.
    """
    value = plain_row(value, type_) if isinstance(type_, TupleOf) else unwrap(value)
    if isinstance(value, str):
        return str.__str__(value)  # str() of a str-based Enum would be its name
    if isinstance(value, int) and not isinstance(value, bool):
        value = int.__int__(value)
        if bits and type_ == BOOL and value not in (0, 1):
            raise UnfitValue(NO_BOOL)
        return value == 1 if bits and type_ == BOOL else value
    if isinstance(type_, ListOf) and (isinstance(value, (list, tuple)) or hasattr(value, "dtype")):
        return [plain(item, type_.element, bits) for item in value]
    if isinstance(type_, TupleOf):
        if isinstance(value, Mapping):
            value = by_name(value, type_)
        if isinstance(value, (list, tuple)) and len(value) == len(type_.elements):
            return [plain(item, element, bits) for item, element in zip(value, type_.elements, strict=True)]
    return value


def by_name(row: Mapping[Any, object], type_: TupleOf) -> tuple[object, ...]:
    """A record given by field name, in the order of the type, without fields that it lacks."""
    for name in type_.names:
        if name is None:
            raise UnfitValue("a record by field name where the fields have no names")
        if name not in row:
            raise UnfitValue(f"a record without the field {name!r}")
    return tuple(row[name] for name in type_.names)
