"""The SQL of Spark, with the same bits of weights and records as DuckDB.

What differs, beside names:

- Spark has no 128-bit integers. Integers are added and multiplied as decimals of 38 digits, which hold every sum and
  product of two 64-bit integers exactly.
- Sums on the grid (`sums`), below `2^126`, are taken in three parts, two of 32 bits and what is above, each a sum of
  64-bit integers, and turned into a float as DuckDB does it: `_total`. Partial sums are one decimal. A key of more than
  `2^31` rows could overflow a part; Spark refuses that, and the evaluation fails with the constant message.
- A float is never cast to a decimal, which Spark does by way of its shortest text.
- Integers that become texts, texts that become numbers, and code points are as in DuckDB; regular expressions are
  Java's, matched against the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wpinq.engines.sql.dialect import STANDARD, TEXTS, Dialect, Unsupported

_WIDE = "DECIMAL(38,0)"
_TWO_64 = f"{2**64}BD"


def _wide(value: str) -> list[str]:
    """A float without fraction as integers: two of at most `2^31` in size, and the rest.

    Each is exact: what rounding to a multiple of `2^32` leaves over has no more digits than the float.
    """
    middle = f"rint({value} * {2.0**-32!r}D)"
    high = f"rint({middle} * {2.0**-32!r}D)"
    low = f"{value} - {middle} * 4294967296D"
    return [f"CAST({part} AS BIGINT)" for part in (low, f"{middle} - {high} * 4294967296D", high)]


def _sums(values: Sequence[str]) -> list[str]:
    """The sums of the parts of one or several values a row."""
    wide = [_wide(f"rint({value})") for value in values]
    return [f"sum({' + '.join(parts)})" for parts in zip(*wide, strict=True)]


def _total(low: str, middle: str, high: str) -> str:
    """The sum of values from the sums of their parts, as `_float` makes it, without decimals."""
    middle = f"({middle} + shiftright({low}, 32))"
    upper = f"({high} + shiftright({middle}, 32))"
    lower, missing = (
        f"CAST({sign}{middle} & 4294967295L AS DOUBLE) * 4294967296D + CAST({sign}{low} & 4294967295L AS DOUBLE)"
        for sign in ("", "~")
    )
    return f"CASE WHEN {upper} = -1 THEN -({missing}) - 1D ELSE {lower} + CAST({upper} AS DOUBLE) * {2.0**64!r}D END"


def _float(total: str) -> str:
    """A 128-bit integer, as a decimal, turned into a float as DuckDB does.

    With its halves, `upper · 2^64 + lower`, the float is the sum of both as floats, or `-(2^64 - 1 - lower) - 1` where
    upper is -1.
    """
    lower = f"pmod({total}, {_TWO_64})"
    return (
        f"CASE WHEN {total} < 0 AND {total} >= -{_TWO_64} THEN -CAST(-1 - {total} AS DOUBLE) - 1D "
        f"ELSE CAST({lower} AS DOUBLE) + CAST(({total} - {lower}) / {_TWO_64} AS DOUBLE) * {2.0**64!r}D END"
    )


def _joined(parts: Sequence[str]) -> str:
    """The integer of which these are the parts, as a decimal."""
    terms = [f"CAST({part} AS {_WIDE}) * {2 ** (32 * number)}BD" for number, part in enumerate(parts)]
    return f"({' + '.join(terms)})"


#: The texts in `templates.toml`, and those that are made.
_TEMPLATES = {**STANDARD, **TEXTS["spark"], "to_grid": _joined(_wide("rint({0})")), "from_grid": _float("{0}")}


def type_in_spark(generic: str) -> str:
    """The name of a type that `shape.type_name` gives."""
    if generic.endswith("[]"):
        return f"ARRAY<{type_in_spark(generic[:-2])}>"
    if generic.startswith("STRUCT("):
        fields = [field.split(" ", 1) for field in _fields(generic[len("STRUCT(") : -1])]
        return f"STRUCT<{', '.join(f'{name}: {type_in_spark(inner)}' for name, inner in fields)}>"
    return {"VARCHAR": "STRING", "INTEGER": "INT"}.get(generic, generic)


def _fields(inside: str) -> list[str]:
    """The parts of a list between commas that are in no parentheses."""
    parts, depth = [""], 0
    for sign in inside:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


_NULL = re.compile(r"CAST\(NULL AS (.*)\)")


@dataclass(frozen=True, eq=False)
class SparkDialect(Dialect):
    """Spark's SQL, with ANSI mode on."""

    def own(self, text: str) -> str:
        raise Unsupported(f"there is no text for {text!r} in the SQL of spark")

    def type_name(self, generic: str) -> str:
        return type_in_spark(generic)

    def grid_sum(self, values: Sequence[str]) -> str:
        return _total(*_sums(values))

    def grid_part(self, values: Sequence[str]) -> str:
        return _joined(_sums(values))

    def grid_whole(self, part: str) -> str:
        return f"transform(array(sum({part})), t -> {_float('t')})[0]"  # where it is written once

    def list_of(self, items: Sequence[str]) -> str:
        return f"array({', '.join(items)})"

    def literal(self, text: str) -> str:
        found = _NULL.fullmatch(text)
        return f"CAST(NULL AS {type_in_spark(found[1])})" if found else text

    def struct(self, parts: Mapping[str, str]) -> str:
        return f"named_struct({', '.join(f'{name!r}, {text}' for name, text in parts.items())})"

    def field(self, text: str, name: str) -> str:
        return f"({text}).{name}"

    def unnest(self, lists: Mapping[str, str]) -> str:
        if len(lists) == 1:
            ((name, text),) = lists.items()
            return f"explode({text}) AS {name}"
        return f"inline(arrays_zip({', '.join(lists.values())})) AS ({', '.join(lists)})"

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def text_literal(self, text: str) -> str:
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def table(self, numbers: Sequence[str], type_name: str) -> str:
        return f"from_json('[{', '.join(numbers)}]', '{type_in_spark(type_name)}')"


SPARK = SparkDialect("spark", _TEMPLATES, "{name} -> {body}", frozenset(("float_list_sum",)), sorts=False)
