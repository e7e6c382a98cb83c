"""Instructions on machine words: what they mean, in Python. Compiled code has them from `intrinsics`."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.arrays import Integers

M32 = 0xFFFFFFFF
ONE = np.uint64(1)


def load(state: Integers, at: int) -> int:
    """The word at a place."""
    return int(state[at])


def save(state: Integers, at: int, value: int) -> None:
    """Write a word."""
    state[at] = wrapped(value)


def as_float(word: int) -> float:
    """The float of these bits."""
    return float(struct.unpack("<d", struct.pack("<q", wrapped(word)))[0])


def as_word(number: float) -> int:
    """The bits of a float."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def add_fits(a: int, b: int) -> bool:
    """Whether the sum fits into a word."""
    return _fits(int(a) + int(b))


def subtract_fits(a: int, b: int) -> bool:
    """Whether the difference fits into a word."""
    return _fits(int(a) - int(b))


def multiply_fits(a: int, b: int) -> bool:
    """Whether the product fits into a word."""
    return _fits(int(a) * int(b))


def wrapped(value: int) -> int:
    """The word that is left of an integer."""
    return (int(value) + 2**63) % 2**64 - 2**63


def _fits(value: int) -> bool:
    return wrapped(value) == value


CACHE_LINES = 256
"""Bytes on either side: a line is 64 or 128, and processors fetch two at a time."""


def apart(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that begins a cache line and shares none with another array: threads that write side by side slow each
    other down, and so does a row on more lines than it needs."""
    margin = CACHE_LINES // array.itemsize
    held = np.zeros(array.size + 2 * margin, dtype=array.dtype)
    first = -held.ctypes.data % CACHE_LINES // array.itemsize
    mine = held[first : first + array.size].reshape(array.shape)
    mine[...] = array
    return mine
