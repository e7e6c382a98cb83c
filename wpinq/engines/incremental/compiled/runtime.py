"""The fixed part of a generated module, as text: tables, undo log and random numbers over one array of words.

All state is one array of 64-bit words, so that undoing is writing words back. A table has eight header words, a
block of slots (open addressing, linear probing; each slot a hash and a row number) and a block of rows (the words
of the record, then its weight, then what else the table keeps). Row 0 stands for no row. Tables that live longer
than a proposal are written through `put`, which logs; tables that gather changes are cleared instead.
A table or log that is full sets STATUS and stops writing: the proposal is undone, the array grown, and it is redone.
"""

from __future__ import annotations

STATUS, LOG, LOG_START, LOG_END, SCORE = range(5)
HEADERS = 16
MISSED = HEADERS - 1
SLOTS, MASK, ROWS, STRIDE, COUNT, FREE, CAP, LIVE = range(8)
HEADER_WORDS = 8
LOG_FULL, NEGATIVE, NOT_UNIT, MISSING = 1, 2, 3, 4
DUST = 1e-12

_CONSTANTS = {
    name: globals()[name]
    for name in (
        *("STATUS", "LOG", "LOG_START", "LOG_END", "SCORE", "MISSED"),
        *("SLOTS", "MASK", "ROWS", "STRIDE", "COUNT", "FREE", "CAP", "LIVE"),
        *("LOG_FULL", "NEGATIVE", "NOT_UNIT", "MISSING", "DUST"),
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

FIXED = '''
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
def put(A, at, value):
    log = load(A, LOG)
    if log >= load(A, LOG_END):
        if load(A, STATUS) == 0:
            save(A, STATUS, LOG_FULL)
        return
    save(A, log, at)
    save(A, log + 1, load(A, at))
    save(A, LOG, log + 2)
    save(A, at, value)


@njit(**OPTIONS)
def undo(A, mark):
    log = load(A, LOG)
    while log > mark:
        log -= 2
        save(A, load(A, log), load(A, log + 1))
    save(A, LOG, mark)


@njit(**OPTIONS)
def new_row(A, h):
    row = load(A, h + FREE)
    if row != 0:
        put(A, h + FREE, load(A, load(A, h + ROWS) + row * load(A, h + STRIDE)))
    else:
        row = load(A, h + COUNT) + 1
        if row >= load(A, h + CAP):
            if load(A, STATUS) == 0:
                save(A, STATUS, h)
            return 0
        put(A, h + COUNT, row)
    put(A, h + LIVE, load(A, h + LIVE) + 1)
    return row


@njit(**OPTIONS)
def place(A, h, tag, row):
    mask, slots = load(A, h + MASK), load(A, h + SLOTS)
    i = tag & mask
    while load(A, slots + i) != 0:
        i = (i + 1) & mask
    put(A, slots + i, (tag << 32) | row)


@njit(**OPTIONS)
def remove(A, h, tag, row):
    mask, slots = load(A, h + MASK), load(A, h + SLOTS)
    i = tag & mask
    while load(A, slots + i) & M32 != row:
        if load(A, slots + i) == 0:
            return
        i = (i + 1) & mask
    j = i
    while True:
        j = (j + 1) & mask
        slot = load(A, slots + j)
        if slot == 0:
            break
        if (j - ((slot >> 32) & mask)) & mask >= (j - i) & mask:
            put(A, slots + i, slot)
            i = j
    put(A, slots + i, 0)
    put(A, load(A, h + ROWS) + row * load(A, h + STRIDE), load(A, h + FREE))
    put(A, h + FREE, row)
    put(A, h + LIVE, load(A, h + LIVE) - 1)


@njit(**OPTIONS)
def row_at(A, h, row):
    return load(A, h + ROWS) + row * load(A, h + STRIDE)


@njit(**OPTIONS)
def link(A, h, row, at, ix, ix_row, k):
    """Put the row first in the list of an index entry; the links stand at `at` in a row, the head at k."""
    if row == 0 or ix_row == 0:
        return
    base, head_at = row_at(A, h, row), row_at(A, ix, ix_row) + k
    head = load(A, head_at)
    put(A, base + at, head)
    put(A, base + at + 1, 0)
    if head != 0:
        put(A, row_at(A, h, head) + at + 1, row)
    put(A, head_at, row)


@njit(**OPTIONS)
def unlink(A, h, row, at, ix, ix_row, k):
    """Take the row out of the list; whether the list is empty now."""
    base, head_at = row_at(A, h, row), row_at(A, ix, ix_row) + k
    following, before = load(A, base + at), load(A, base + at + 1)
    if before == 0:
        put(A, head_at, following)
    else:
        put(A, row_at(A, h, before) + at, following)
    if following != 0:
        put(A, row_at(A, h, following) + at + 1, before)
    return before == 0 and following == 0


@njit(**OPTIONS)
def clear(A, h):
    count = load(A, h + COUNT)
    if count == 0:
        return
    rows, stride, slots = load(A, h + ROWS), load(A, h + STRIDE), load(A, h + SLOTS)
    for row in range(1, 1 + count):
        save(A, slots + load(A, rows + row * stride + stride - 1), 0)
    save(A, h + COUNT, 0)


@njit(**OPTIONS)
def gathered_norm(A, h, k):
    total = 0.0
    for row in range(1, 1 + load(A, h + COUNT)):
        total += abs(as_float(load(A, row_at(A, h, row) + k)))
    return total


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


def of_width(width: int) -> str:
    """The table functions for records of so many words."""
    names = [f"c{i}" for i in range(width)]
    arguments = ", ".join(names)
    mixing = "\n".join(f"    h = (h ^ {name}) * -7046029254386353131\n    h ^= (h >> 32) & M32" for name in names)
    equal = " and ".join(f"load(A, b + {i}) == {name}" for i, name in enumerate(names))
    saves = "\n".join(f"    save(A, b + {i}, {name})" for i, name in enumerate(names))
    puts = "\n".join(f"    put(A, b + {i}, {name})" for i, name in enumerate(names))
    return f"""
@njit(**OPTIONS)
def hash_{width}({arguments}):
    h = 1442695040888963407
{mixing}
    return h & M32


@njit(**OPTIONS)
def find_{width}(A, h, {arguments}):
    tag = hash_{width}({arguments})
    mask, slots, rows, stride = load(A, h + MASK), load(A, h + SLOTS), load(A, h + ROWS), load(A, h + STRIDE)
    i = tag & mask
    while True:
        slot = load(A, slots + i)
        if slot == 0:
            return 0
        if (slot >> 32) & M32 == tag:
            b = rows + (slot & M32) * stride
            if {equal}:
                return slot & M32
        i = (i + 1) & mask


@njit(**OPTIONS)
def insert_{width}(A, h, {arguments}):
    row = new_row(A, h)
    if row == 0:
        return 0
    b = row_at(A, h, row)
{puts}
    place(A, h, hash_{width}({arguments}), row)
    return row


@njit(**OPTIONS)
def gather_{width}(A, h, {arguments}, weight):
    tag = hash_{width}({arguments})
    mask, slots, rows, stride = load(A, h + MASK), load(A, h + SLOTS), load(A, h + ROWS), load(A, h + STRIDE)
    i = tag & mask
    while True:
        slot = load(A, slots + i)
        if slot == 0:
            break
        if (slot >> 32) & M32 == tag:
            b = rows + (slot & M32) * stride
            if {equal}:
                save(A, b + {width}, as_word(as_float(load(A, b + {width})) + weight))
                return
        i = (i + 1) & mask
    row = load(A, h + COUNT) + 1
    if row >= load(A, h + CAP):
        if load(A, STATUS) == 0:
            save(A, STATUS, h)
        return
    save(A, h + COUNT, row)
    b = rows + row * stride
{saves}
    save(A, b + {width}, as_word(weight))
    save(A, b + stride - 1, i)
    save(A, slots + i, (tag << 32) | row)
"""
