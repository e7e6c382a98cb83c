"""Attributes as the command line says them: `age:int=bins:0,18,30,65`, `city=Oslo,Bergen`, `smoker`."""

from __future__ import annotations

import csv
import datetime
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from wpinq.commands.exits import UsageError
from wpinq.errors import WpinqError
from wpinq.expr import library
from wpinq.expr.logical_values import parse, presenter
from wpinq.expr.near_names import suggest
from wpinq.expr.scalars import BOOL, CATEGORIES_LIMIT, DATE, FLOAT, INT, STR, TIME, CategoryOf, Logical, Type, decimal
from wpinq.tables.attribute_codes import Attribute, attribute

SHAPE = "NAME[:TYPE][?][=bins:0,18,65 or =Oslo,Bergen]"
_TYPES: dict[str, Type] = {type_.name: type_ for type_ in (INT, FLOAT, STR, DATE, TIME)}
_PYTHON: dict[Type, Any] = {INT: int, FLOAT: float, STR: str, DATE: datetime.date, TIME: datetime.time}
_DECIMAL = re.compile(r"decimal\((\d+)\)")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")


def read_attribute(given: str, fields: dict[str, Type], closed: Sequence[str]) -> Attribute:
    """An attribute, for a source with these fields.

    Parameters
    ----------
    given : str
        As on the command line. The type says how a text is read: what cannot be read so is null. With `?` behind
        it, null has a cell of its own, and else it counts among all others.
    fields : dict
        Column to type.
    closed : sequence of str
        The attributes without a cell of all others.

    Raises
    ------
    UsageError
        When it makes no sense: nothing is read or spent yet.
    """
    head, _, written = given.partition("=")
    missing, head = head.endswith("?"), head.removesuffix("?")
    name, _, typed = head.partition(":")
    if name not in fields:
        raise UsageError(
            f"--attribute {given}: the file has no column {name!r} that can be declared; {suggest(name, fields)}"
        )
    kept = fields[name].with_nullable(False)
    type_ = _type(typed, given) if typed else kept
    if written.startswith("bins:") and type_ == STR:
        raise UsageError(
            f"--attribute {given}: say what the column holds: {name}:int={written} or {name}:float={written}"
        )
    column: Any = name if type_ == kept else partial(_cast, name, _annotation(type_))
    cells: dict[str, Any] = {}
    if written.startswith("bins:"):
        cells["bins"] = _values(written.removeprefix("bins:"), type_, given)
    elif written:
        cells["categories"] = _values(written, type_, given)
    elif type_ != BOOL and not isinstance(type_, CategoryOf):
        raise UsageError(
            f"--attribute {given}: the values of a column of type {type_} are not public: give bins or categories, "
            f"{SHAPE}"
        )
    try:
        return attribute(column, name=name, missing=missing, other=name not in closed, **cells)
    except WpinqError as error:
        raise UsageError(f"--attribute {given}: {error}") from None


def _cast(name: str, type_: Any, record: Any) -> Any:
    return library.cast(record[name], type_)


def _type(word: str, given: str) -> Type:
    if word in _TYPES:
        return _TYPES[word]
    scale = _DECIMAL.fullmatch(word)
    if scale is None:
        known = [*_TYPES, "decimal(2)"]
        raise UsageError(f"--attribute {given}: there is no type {word!r} to read a column as; {suggest(word, known)}")
    return decimal(int(scale[1]))


def _annotation(type_: Type) -> Any:
    return _PYTHON.get(type_, type_)


def _values(text: str, type_: Type, given: str) -> list[Any]:
    """Values with commas between; those with commas inside stand in double quotes, and `0..14` are all ints between."""
    found: list[Any] = []
    try:
        items = next(csv.reader([text], strict=True), [])
    except csv.Error:
        raise UsageError(
            f"--attribute {given}: values stand on one line with commas between, those with commas or quotes inside "
            'in double quotes, as Oslo,"Rome, Italy"'
        ) from None
    for item in items:
        between = _RANGE.fullmatch(item) if type_ == INT else None
        if between is not None:
            first, last = map(int, between.groups())
            if not 0 <= last - first < CATEGORIES_LIMIT:
                raise UsageError(f"--attribute {given}: {item} is no range of at most {CATEGORIES_LIMIT:,} ints")
            found += range(first, last + 1)
            continue
        try:
            found.append(_value(item, type_))
        except (ValueError, ArithmeticError):
            raise UsageError(f"--attribute {given}: {item!r} is no {type_}") from None
    return found


def _value(text: str, type_: Type) -> Any:
    if type_ == INT:
        return int(text)
    if type_ == FLOAT:
        return float(text)
    if type_ == BOOL:
        return {"false": False, "true": True}[text.lower()]
    if isinstance(type_, Logical) and not isinstance(type_, CategoryOf):
        return presenter(type_)(parse(text, type_))
    return text
