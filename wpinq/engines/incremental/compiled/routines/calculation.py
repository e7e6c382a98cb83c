"""Arithmetic on words, and random numbers."""

from __future__ import annotations

import numpy as np

from wpinq.engines.incremental.compiled.routines.machine import M32
from wpinq.engines.incremental.compiled.routines.routine import Boolean, Float64, Int64, Uint64s, fixed
from wpinq.engines.incremental.loss import loss

fixed(loss)


@fixed
def divides(a: Int64, b: Int64) -> Boolean:
    return b != 0 and not (b == -1 and a == -9223372036854775807 - 1)


@fixed
def floor_divide(a: Int64, b: Int64) -> Int64:
    return a // b if divides(a, b) else 0


@fixed
def modulo(a: Int64, b: Int64) -> Int64:
    return 0 if b == 0 or b == -1 else a % b


@fixed
def truncate(number: Float64) -> Int64:
    return np.int64(number) if -9.223372036854775808e18 <= number < 9.223372036854775808e18 else 0  # type: ignore[return-value]


@fixed
def mix(h: Int64, word: Int64) -> Int64:
    h = (h ^ word) * -7046029254386353131
    return h ^ ((h >> 32) & M32)


@fixed
def mix_too(h: Int64, word: Int64) -> Int64:
    h = (h ^ word) * -4417276706812531889
    return h ^ ((h >> 29) & M32)


@fixed
def plus(a: Int64, b: Int64) -> Int64:
    return a + b


@fixed
def range_end(start: Int64, stop: Int64, limit: Int64) -> Int64:
    if stop <= start:
        return start
    return stop if np.uint64(stop) - np.uint64(start) <= np.uint64(limit) else start + limit


@fixed
def draw(seeds: Uint64s) -> Float64:
    """xoroshiro128+ (Blackman and Vigna): the top 53 bits as a number in [0, 1)."""
    s0, s1 = seeds[0], seeds[1]
    result = s0 + s1
    s1 ^= s0
    seeds[0] = ((s0 << np.uint64(24)) | (s0 >> np.uint64(40))) ^ s1 ^ (s1 << np.uint64(16))
    seeds[1] = (s1 << np.uint64(37)) | (s1 >> np.uint64(27))
    return np.float64(result >> np.uint64(11)) * 1.1102230246251565e-16
