"""Records as columns of 64-bit words.

A record is its leaves side by side: an int as it is, a bool as 0 or 1, a float by its bits, a string or a list by its
number in a dictionary. What may be null has a word before it that says whether it is there; where it is not, all its
words are 0. So two records of one type are equal exactly when their words are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.expr.types import BOOL, FLOAT, INT, NULL, STR, ListOf, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Weight


def width(type_: Type) -> int:
    """How many words a record of the type takes.

    Examples
    --------
    >>> from wpinq.expr.types import INT, tuple_type
    >>> width(tuple_type([INT, INT.with_nullable()]))
    3
    """
    if isinstance(type_, TupleOf):
        return type_.nullable + sum(width(element) for element in type_.elements)
    if type_ == NULL:
        return 1
    if type_ not in (INT, FLOAT, BOOL, STR) and not isinstance(type_, ListOf):
        raise CannotCompile(f"records with a {type_} have no fixed width")
    return 1 + type_.nullable


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Records of one type as words, a row each, and their weights."""

    words: Integers
    weights: Floats


class Dictionary:
    """Strings and lists by number, in order of first use; and the memos of functions of them (see `memo`)."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._values: list[Value] = []
        self.memos: dict[object, Any] = {}

    def number(self, value: Value) -> int:
        """The number of a string or a list, a new one if need be."""
        key = repr(value)  # tells 1, 1.0 and True apart, in lists too
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._values)
            self._values.append(value)
        return known

    def encode(self, value: Value, type_: Type) -> list[int]:
        """The words of a record."""
        words: list[int] = []
        self._encode(value, type_, words)
        return words

    def rows(self, weights: Mapping[Value, Weight], type_: Type) -> Rows:
        """Records and their weights as words."""
        return Rows(self.encode_all(list(weights), type_), np.array([*map(float, weights.values())], dtype=np.float64))

    def encode_all(self, records: Sequence[Value], type_: Type) -> Integers:
        """The words of records, a row each."""
        parts = type_.elements if isinstance(type_, TupleOf) and not type_.nullable else ()
        if parts and all(part == INT and not part.nullable for part in parts):  # as they are: a million in a second
            return np.array(records, dtype=np.int64).reshape(len(records), len(parts))
        encoded = np.array([self.encode(record, type_) for record in records], dtype=np.int64)
        return encoded.reshape(len(records), width(type_))

    def _encode(self, value: Value, type_: Type, words: list[int]) -> None:
        if type_.nullable:
            words.append(int(value is not None))
        if type_ == NULL:
            return
        if value is None:
            words.extend([0] * (width(type_) - 1))
        elif isinstance(type_, TupleOf):
            for item, element in zip(value, type_.elements, strict=True):
                self._encode(item, element, words)
        elif type_ == FLOAT:
            words.append(struct.unpack("<q", struct.pack("<d", value + 0.0))[0])
        else:
            numbered = type_ == STR or isinstance(type_, ListOf)
            words.append(self.number(value) if numbered else int(value))

    def decode(self, words: Sequence[int], type_: Type) -> Value:
        """The record of these words."""
        return self.decode_side_by_side(words, [type_])[0]

    def decode_side_by_side(self, words: Sequence[int], types: Sequence[Type]) -> list[Value]:
        """The records of these words, one of each type."""
        left = iter(words)
        return [self._decode(left, type_) for type_ in types]

    def decode_all(self, words: Integers, type_: Type) -> list[Value]:
        """The records of rows of words."""
        return [self.decode(row, type_) for row in words.tolist()]

    def _decode(self, words: Iterator[int], type_: Type) -> Value:
        present = not type_.nullable or next(words) != 0
        if type_ == NULL:
            return None
        if isinstance(type_, TupleOf):
            items = tuple(self._decode(words, element) for element in type_.elements)
            return items if present else None
        word = int(next(words))
        if not present:
            return None
        if type_ == FLOAT:
            return struct.unpack("<d", struct.pack("<q", word))[0]
        if type_ == STR or isinstance(type_, ListOf):
            return self._values[word]
        return bool(word) if type_ == BOOL else word
