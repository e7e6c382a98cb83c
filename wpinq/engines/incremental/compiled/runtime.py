"""The fixed part of a generated module, as text: the array of words, arithmetic on words, sorting and random numbers.

All state is one array of 64-bit words, so that undoing is writing words back. Its first words are those named here;
then come the headers of tables (see `table_text`).
"""

from __future__ import annotations

STATUS, LOG, LOG_START, LOG_END, SCORE = range(5)
HEADERS = 64
PARAMETERS, PARAMETERS_EACH = 5, 3
"""Where the parameters of outputs begin, and for each: its price within the domain and outside, and the width."""
MISSED, UNCHECKED = HEADERS - 1, HEADERS - 2
SLOTS, MASK, ROWS, STRIDE, COUNT, FREE, CAP, LIVE = range(8)
HEADER_WORDS = 8
LOG_FULL, NEGATIVE, NOT_UNIT, MISSING, UNSTEADY = range(1, 6)
DUST = 1e-12
GROWTH = 2.0**22
"""How far a norm n may grow at once, to m: records change before it does, so `m²/n` comes and goes, and takes digits of
`m` with it, 1e-9 of them where `m² = GROWTH · n · max(1, m)`."""

_CONSTANTS = {
    name: globals()[name]
    for name in (
        *("STATUS", "LOG", "LOG_START", "LOG_END", "SCORE", "MISSED", "UNCHECKED"),
        *("SLOTS", "MASK", "ROWS", "STRIDE", "COUNT", "FREE", "CAP", "LIVE"),
        *("LOG_FULL", "NEGATIVE", "NOT_UNIT", "MISSING", "UNSTEADY", "DUST", "GROWTH"),
    )
}

PREFIX = "\n".join(f"{name} = {value!r}" for name, value in _CONSTANTS.items())

PRELUDE = """
from math import exp, isfinite

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

OPTIONS = {"error_model": "numpy", "nogil": True}
INNER = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INNERS, ENTRIES = [], []


def inner(signature):
    def decorate(function):
        INNERS.append((njit(**INNER)(function), signature))
        return INNERS[-1][0]

    return decorate


def entry(signature):
    def decorate(function):
        ENTRIES.append((njit(cache=True, no_cfunc_wrapper=True, **OPTIONS)(function), signature))
        return ENTRIES[-1][0]

    return decorate


def compile_inner():
    for function, signature in INNERS:
        function.compile(signature)
        function.disable_compile()


def compile_entries():
    for function, signature in ENTRIES:
        function.compile(signature)
        function.disable_compile()
M32 = 0xFFFFFFFF
ONE = np.uint64(1)


@intrinsic
def load(typing, array, at):
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return types.int64(array, types.int64), generate


@intrinsic
def save(typing, array, at, value):
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store(arguments[2], builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def as_float(typing, word):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def as_word(typing, number):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _fits(operation):
    @intrinsic
    def fits(typing, a, b):
        def generate(context, builder, signature, arguments):
            both = getattr(builder, operation)(arguments[0], arguments[1])
            return builder.not_(builder.extract_value(both, 1))

        return types.boolean(types.int64, types.int64), generate

    return fits


add_fits = _fits("sadd_with_overflow")
subtract_fits = _fits("ssub_with_overflow")
multiply_fits = _fits("smul_with_overflow")

"""

FUNCTIONS = '''
@njit(**OPTIONS)
def divides(a, b):
    return b != 0 and not (b == -1 and a == -9223372036854775807 - 1)


@njit(**OPTIONS)
def floor_divide(a, b):
    return a // b if divides(a, b) else 0


@njit(**OPTIONS)
def modulo(a, b):
    return 0 if b == 0 or b == -1 else a % b


@njit(**OPTIONS)
def truncate(number):
    return np.int64(number) if -9.223372036854775808e18 <= number < 9.223372036854775808e18 else 0


@njit(**OPTIONS)
def loss(difference, width):
    size = abs(difference)
    return size * size / (2.0 * width) if size < width else size - 0.5 * width


@njit(**OPTIONS)
def mix(h, word):
    h = (h ^ word) * -7046029254386353131
    return h ^ ((h >> 32) & M32)


@njit(**OPTIONS)
def mix_too(h, word):
    h = (h ^ word) * -4417276706812531889
    return h ^ ((h >> 29) & M32)


@njit(**OPTIONS)
def plus(a, b):
    return a + b


@njit(**OPTIONS)
def range_end(start, stop, limit):
    if stop <= start:
        return start
    return stop if np.uint64(stop) - np.uint64(start) <= np.uint64(limit) else start + limit


@njit(**OPTIONS)
def settle(weight):
    return 0.0 if abs(weight) < DUST else weight


@njit(**OPTIONS)
def sort_down(weights, rows):
    """Sort by weight, largest first: a heap sort, so that no order of arrival is slow."""
    n = len(weights)
    for start in range(n // 2 - 1, -1, -1):
        sift(weights, rows, start, n)
    for end in range(n - 1, 0, -1):
        weights[0], weights[end] = weights[end], weights[0]
        rows[0], rows[end] = rows[end], rows[0]
        sift(weights, rows, 0, end)


@njit(**OPTIONS)
def sift(weights, rows, root, end):
    while True:
        child = 2 * root + 1
        if child >= end:
            return
        if child + 1 < end and weights[child + 1] < weights[child]:
            child += 1
        if weights[root] <= weights[child]:
            return
        weights[root], weights[child] = weights[child], weights[root]
        rows[root], rows[child] = rows[child], rows[root]
        root = child


@njit(**OPTIONS)
def draw(seeds):
    """xoroshiro128+ (Blackman and Vigna): the top 53 bits as a number in [0, 1)."""
    s0, s1 = seeds[0], seeds[1]
    result = s0 + s1
    s1 ^= s0
    seeds[0] = ((s0 << np.uint64(24)) | (s0 >> np.uint64(40))) ^ s1 ^ (s1 << np.uint64(16))
    seeds[1] = (s1 << np.uint64(37)) | (s1 >> np.uint64(27))
    return np.float64(result >> np.uint64(11)) * 1.1102230246251565e-16
'''
