"""Rows in columns, as SQL: in canonical bytes and in canonical order, as `expr.values` has both in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wpinq.columns.flat import column_names, type_name
from wpinq.expr.types import BOOL, FLOAT, INT, NULL, STR, CategoryOf, ListOf, Logical, TupleOf, Type

_NULL = "'6E'"


@dataclass(frozen=True, slots=True)
class Words:
    """How a database says what two databases say differently; `{}` stands for a value."""

    once: str
    bits: str
    octets: str
    hash: str
    copies: str
    mapped: str
    """A function of `{1}`, `{2}`, of each element of a list, `{0}`; the texts that it gives are joined."""
    length: str
    listed: Callable[[Type], str]


def canonical_hex(type_: Type, words: Words) -> str:
    """The canonical bytes (`expr.values`) of the record in `c0`, `c1`, …, in hexadecimal capitals."""
    return _flat_hex(iter(column_names(type_)), type_, words)


def _flat_hex(leaves: Iterator[str], type_: Type, words: Words) -> str:
    if not isinstance(type_, TupleOf):
        return _packed_hex(next(leaves), type_, words, 0)
    there = next(leaves) if type_.nullable else None
    parts = [_tag("t", str(len(type_.elements))), *(_flat_hex(leaves, element, words) for element in type_.elements)]
    return _or_null(there, " || ".join(parts))


def _packed_hex(term: str, type_: Type, words: Words, level: int) -> str:
    if isinstance(type_, TupleOf):
        fields = [_packed_hex(f"{term}.f{i}", item, words, level) for i, item in enumerate(type_.elements)]
        return _or_null(f"{term} IS NOT NULL", " || ".join([_tag("t", str(len(fields))), *fields]))
    if isinstance(type_, ListOf):
        item = f"y{level}"
        items = words.mapped.format(term, item, _packed_hex(item, type_.element, words, level + 1))
        return _or_null(f"{term} IS NOT NULL", f"{_tag('l', words.length.format(term))} || {items}")
    if type_ == NULL:
        return _NULL
    if isinstance(type_, Logical):
        name = ("category" if isinstance(type_, CategoryOf) else type_.name).encode()
        stored = _packed_hex(term, type_.stored.with_nullable(False), words, level)
        tag = f"'64' || {_tag('s', str(len(name)))} || '{name.hex().upper()}'"
        return _or_null(f"{term} IS NOT NULL", f"{tag} || {stored}")
    said: dict[Type, str] = {
        INT: f"'69' || lpad(hex({term}), 16, '0')",
        FLOAT: f"'66' || lpad(hex({words.bits.format(term)}), 16, '0')",
        BOOL: f"CASE WHEN {term} THEN '6231' ELSE '6230' END",
        STR: f"{_tag('s', words.octets.format(term))} || hex({term})",
    }
    return _or_null(f"{term} IS NOT NULL", said[type_])


def _tag(letter: str, count: str) -> str:
    return f"'{letter.encode().hex().upper()}' || lpad(hex(CAST({count} AS BIGINT)), 8, '0')"


def _or_null(there: str | None, text: str) -> str:
    return f"({text})" if there is None else f"(CASE WHEN {there} THEN {text} ELSE {_NULL} END)"


# --- lists of rows in canonical order --------------------------------------------------------------------------------


def _packed_row(leaves: Iterator[str], type_: Type, struct: Callable[[Sequence[str], Type], str]) -> str:
    """A row as one value, packed as `columns.flat` packs what stands in lists."""
    if not isinstance(type_, TupleOf):
        return next(leaves)
    there = next(leaves) if type_.nullable else None
    packed = struct([_packed_row(leaves, element, struct) for element in type_.elements], type_)
    return packed if there is None else f"CASE WHEN {there} THEN {packed} ELSE NULL END"


def _order_keys(leaves: Iterator[str], type_: Type) -> Sequence[str]:
    """What sorts rows in canonical order, each null first."""
    if not isinstance(type_, TupleOf):
        return [_order_key(next(leaves), type_, 0)]
    there = [next(leaves)] if type_.nullable else []
    return there + [key for element in type_.elements for key in _order_keys(leaves, element)]


def _order_key(term: str, type_: Type, level: int) -> str:
    """What sorts as a packed value does. In lists and structs DuckDB has null last: there it is told apart first."""
    if isinstance(type_, ListOf):
        item = f"z{level}"
        return f"list_transform({term}, lambda {item}: {_inside(item, type_.element, level + 1)})"
    if isinstance(type_, TupleOf):
        fields = [f"f{i} := {_inside(f'{term}.f{i}', element, level)}" for i, element in enumerate(type_.elements)]
        return f"struct_pack({', '.join(fields) or 'f := true'})"
    return term


def _inside(term: str, type_: Type, level: int) -> str:
    return f"struct_pack(t := {term} IS NOT NULL, v := {_order_key(term, type_, level)})"


def _listed(type_: Type) -> str:
    names = column_names(type_)
    keys = ", ".join(f"{key} ASC NULLS FIRST" for key in _order_keys(iter(names), type_))
    return f"list({_packed_row(iter(names), type_, _struct)} ORDER BY {keys})"


def _struct(parts: Sequence[str], type_: Type) -> str:
    fields = ", ".join(f"f{i} := {part}" for i, part in enumerate(parts))
    return f"CAST(struct_pack({fields or 'f := true'}) AS {type_name(type_)})"


def _listed_in_spark(type_: Type) -> str:
    """Spark sorts in canonical order: it has null first, in structs and lists too."""
    return f"sort_array(collect_list({_packed_row(iter(column_names(type_)), type_, _struct_in_spark)}))"


def _struct_in_spark(parts: Sequence[str], type_: Type) -> str:
    fields = [f"'f{i}', {part}" for i, part in enumerate(parts)] or ["'f', true"]
    return f"named_struct({', '.join(fields)})"


def _bits_in_spark() -> str:
    """The bits of a finite float `{}`, as a 64-bit integer, by arithmetic that is exact.

    Spark has no function for it but a call of Java's, which it runs in no function over a list. The logarithm may miss
    the exponent by one, which the mantissa shows; Java's powers of two are exact. Below the least exponent the mantissa
    is below 1, and the sum is that of a subnormal.
    """
    exponent = "greatest(least(coalesce(floor(log2(v)), -1022L), 1023L), -1022L)"
    mantissa = "d.v * pow(2D, -({}))"

    def number(e: str) -> str:
        return f"({e} + 1022L) * {2**52}L + CAST({mantissa.format(e)} * {2**52}D AS BIGINT)"

    found = (
        f"CASE WHEN {mantissa.format('d.e')} >= 2D THEN {number('(d.e + 1L)')} "
        f"WHEN {mantissa.format('d.e')} < 1D AND d.e > -1022L THEN {number('(d.e - 1L)')} ELSE {number('d.e')} END"
    )
    sized = f"transform(array(abs({{0}})), v -> named_struct('v', v, 'e', {exponent}))"
    return f"(CASE WHEN {{0}} < 0D THEN shiftleft(1L, 63) ELSE 0L END + get(transform({sized}, d -> {found}), 0))"


DUCKDB = Words(
    once="MATERIALIZED",
    bits="CAST(CAST({} AS BIT) AS BIGINT)",
    octets="strlen({})",
    hash="sha256({})",
    copies="unnest(range(1, {} + 1))",
    mapped="array_to_string(list_transform({0}, lambda {1}: {2}), '')",
    length="len({})",
    listed=_listed,
)
SPARK = Words(
    once="",  # tables are held before they are asked
    bits=_bits_in_spark(),
    octets="octet_length({})",
    hash="sha2({}, 256)",
    copies="explode(sequence(1L, {}))",
    mapped="array_join(transform({0}, {1} -> {2}), '')",
    length="size({})",
    listed=_listed_in_spark,
)
