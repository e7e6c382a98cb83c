"""Hash tables: open addressing over one array of words, written through an undo log.

A table has eight header words, a block of slots (linear probing; each slot a hash and a row number) and a block of rows
(the words of the record, then its weight, then what else the table keeps). Row 0 stands for no row. Tables that live
longer than a proposal are written through `put`, which logs; tables that gather changes are cleared instead.
A table or log that is full sets STATUS and stops writing: the proposal is undone, the array grown, and it is redone.

The array holds all state, so that undoing is writing words back. Its first words are named here; then come the headers.
"""

from __future__ import annotations

import typing
from functools import cache

from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.routine import M32, call, fixed, library

if typing.TYPE_CHECKING:
    from wpinq.engines.delta.compiled.modules import as_float, load, save

STATUS, LOG, LOG_START, LOG_END, SCORE = range(5)
HEADERS = 64
#: Where the parameters of outputs begin, and for each: its price within the domain and outside, and the width.
PARAMETERS, PARAMETERS_EACH = 5, 3
MISSED, UNCHECKED = HEADERS - 1, HEADERS - 2
SLOTS, MASK, ROWS, STRIDE, COUNT, FREE, CAP, LIVE = range(8)
HEADER_WORDS = 8
LOG_FULL, NEGATIVE, NOT_UNIT, MISSING, UNSTEADY = range(1, 6)
DUST = 1e-12
#: How far a norm n may grow at once, to m: records change before it does, so `m²/n` comes and goes, and takes digits of
#: `m` with it, 1e-9 of them where `m² = GROWTH · n · max(1, m)`.
GROWTH = 2.0**22

#: Those that routines name.
CONSTANTS = {
    name: value
    for name, value in list(globals().items())
    if name.isupper() and isinstance(value, (int, float)) and not name.startswith(("HEADER", "PARAMETERS", "M32"))
}


@fixed
def put(state: rt.Int64s, at: rt.Int64, value: rt.Int64) -> None:
    log = load(state, LOG)
    if log >= load(state, LOG_END):
        if load(state, STATUS) == 0:
            save(state, STATUS, LOG_FULL)
        return
    save(state, log, at)
    save(state, log + 1, load(state, at))
    save(state, LOG, log + 2)
    save(state, at, value)


@fixed
def undo(state: rt.Int64s, mark: rt.Int64) -> None:
    log = load(state, LOG)
    while log > mark:
        log -= 2
        save(state, load(state, log), load(state, log + 1))
    save(state, LOG, mark)


@fixed
def new_row(state: rt.Int64s, h: rt.Int64) -> rt.Int64:
    row = load(state, h + FREE)
    if row != 0:
        put(state, h + FREE, load(state, load(state, h + ROWS) + row * load(state, h + STRIDE)))
    else:
        row = load(state, h + COUNT) + 1
        if row >= load(state, h + CAP):
            if load(state, STATUS) == 0:
                save(state, STATUS, h)
            return 0
        put(state, h + COUNT, row)
    put(state, h + LIVE, load(state, h + LIVE) + 1)
    return row


@fixed
def place(state: rt.Int64s, h: rt.Int64, tag: rt.Int64, row: rt.Int64) -> None:
    mask, slots = load(state, h + MASK), load(state, h + SLOTS)
    i = tag & mask
    while load(state, slots + i) != 0:
        i = (i + 1) & mask
    put(state, slots + i, (tag << 32) | row)


@fixed
def remove(state: rt.Int64s, h: rt.Int64, tag: rt.Int64, row: rt.Int64) -> None:
    mask, slots = load(state, h + MASK), load(state, h + SLOTS)
    i = tag & mask
    while load(state, slots + i) & M32 != row:
        if load(state, slots + i) == 0:
            return
        i = (i + 1) & mask
    j = i
    while True:
        j = (j + 1) & mask
        slot = load(state, slots + j)
        if slot == 0:
            break
        if (j - ((slot >> 32) & mask)) & mask >= (j - i) & mask:
            put(state, slots + i, slot)
            i = j
    put(state, slots + i, 0)
    put(state, load(state, h + ROWS) + row * load(state, h + STRIDE), load(state, h + FREE))
    put(state, h + FREE, row)
    put(state, h + LIVE, load(state, h + LIVE) - 1)


@fixed
def row_at(state: rt.Int64s, h: rt.Int64, row: rt.Int64) -> rt.Int64:
    return load(state, h + ROWS) + row * load(state, h + STRIDE)


@fixed
def link(
    state: rt.Int64s, h: rt.Int64, row: rt.Int64, at: rt.Int64, ix: rt.Int64, ix_row: rt.Int64, k: rt.Int64
) -> None:
    """Put a row first in the list of an index entry.

    The links stand at `at` in a row, and the head at `k`.
    """
    if row == 0 or ix_row == 0:
        return
    base, head_at = row_at(state, h, row), row_at(state, ix, ix_row) + k
    head = load(state, head_at)
    put(state, base + at, head)
    put(state, base + at + 1, 0)
    if head != 0:
        put(state, row_at(state, h, head) + at + 1, row)
    put(state, head_at, row)


@fixed
def unlink(
    state: rt.Int64s, h: rt.Int64, row: rt.Int64, at: rt.Int64, ix: rt.Int64, ix_row: rt.Int64, k: rt.Int64
) -> rt.Boolean:
    """Take the row out of the list; whether the list is empty now."""
    base, head_at = row_at(state, h, row), row_at(state, ix, ix_row) + k
    following, before = load(state, base + at), load(state, base + at + 1)
    if before == 0:
        put(state, head_at, following)
    else:
        put(state, row_at(state, h, before) + at, following)
    if following != 0:
        put(state, row_at(state, h, following) + at + 1, before)
    return before == 0 and following == 0


@fixed
def clear(state: rt.Int64s, h: rt.Int64) -> None:
    count = load(state, h + COUNT)
    if count == 0:
        return
    rows, stride, slots = load(state, h + ROWS), load(state, h + STRIDE), load(state, h + SLOTS)
    for row in range(1, 1 + count):
        save(state, slots + load(state, rows + row * stride + stride - 1), 0)
    save(state, h + COUNT, 0)


@fixed
def gathered_norm(state: rt.Int64s, h: rt.Int64, k: rt.Int64) -> rt.Float64:
    """The sum of the absolute weights in a table that gathers, which stand at k in a row."""
    total = 0.0
    for row in range(1, 1 + load(state, h + COUNT)):
        total += abs(as_float(load(state, row_at(state, h, row) + k)))
    return total


@fixed
def settle(weight: rt.Float64) -> rt.Float64:
    return 0.0 if abs(weight) < DUST else weight


@fixed
def sift(weights: rt.Float64s, rows: rt.Int64s, root: rt.Int64, end: rt.Int64) -> None:
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


@fixed
def sort_down(weights: rt.Float64s, rows: rt.Int64s) -> None:
    """Sort by weight, largest first: a heap sort, so that no order of arrival is slow."""
    n = len(weights)
    for start in range(n // 2 - 1, -1, -1):
        sift(weights, rows, start, n)
    for end in range(n - 1, 0, -1):
        weights[0], weights[end] = weights[end], weights[0]
        rows[0], rows[end] = rows[end], rows[0]
        sift(weights, rows, 0, end)


def words_of(prefix: str, width: int) -> list[str]:
    """The names of the words of a record."""
    return [f"{prefix}{i}" for i in range(width)]


def _of_width(name: str, width: int, before: list[str], result: str, lines: str, weight: bool = False) -> rt.Routine:
    """A routine for records of so many words, whose lines may say RECORD."""
    words = words_of("c", width)
    arguments = {each: rt.INT64S if each == rt.STATE else rt.INT64 for each in (*before, *words)}
    if weight:
        arguments["weight"] = rt.FLOAT64
    text = lines.strip("\n").replace("RECORD", ", ".join(words))
    return library(rt.Routine(f"{name}_{width}", arguments, result, text.split("\n")))


def _each_word(text: str, width: int, between: str = "\n") -> str:
    return between.join(text.format(i=i, word=word) for i, word in enumerate(words_of("c", width)))


_PROBE = """
    tag = {hashed}
    mask, slots = load(state, h + MASK), load(state, h + SLOTS)
    rows, stride = load(state, h + ROWS), load(state, h + STRIDE)
    i = tag & mask
    while True:
        slot = load(state, slots + i)
        if slot == 0:
            {absent}
        if (slot >> 32) & M32 == tag:
            b = rows + (slot & M32) * stride
            if {equal}:
                {found}
        i = (i + 1) & mask
"""


def _probed(width: int, absent: str, found: str) -> str:
    hashed = call(hashing(width), *words_of("c", width))
    equal = _each_word("load(state, b + {i}) == {word}", width, " and ")
    return _PROBE.format(hashed=hashed, equal=equal, absent=absent, found=found)


@cache
def hashing(width: int) -> rt.Routine:
    """`hash(words)`."""
    mixing = _each_word("    h = (h ^ {word}) * -7046029254386353131\n    h ^= (h >> 32) & M32", width)
    return _of_width("hash", width, [], rt.INT64, f"    h = 1442695040888963407\n{mixing}\n    return h & M32")


@cache
def finding(width: int) -> rt.Routine:
    """`find(table, words)`: the row of a record, or 0."""
    return _of_width("find", width, [rt.STATE, "h"], rt.INT64, _probed(width, "return 0", "return slot & M32"))


@cache
def inserting(width: int) -> rt.Routine:
    """`insert(table, words)`: the row of a new record, or 0 where the table is full."""
    lines = f"""
    row = {call(new_row, "h")}
    if row == 0:
        return 0
    b = {call(row_at, "h", "row")}
{_each_word("    " + call(put, "b + {i}", "{word}"), width)}
    {call(place, "h", call(hashing(width), *words_of("c", width)), "row")}
    return row
"""
    return _of_width("insert", width, [rt.STATE, "h"], rt.INT64, lines)


@cache
def gathering(width: int) -> rt.Routine:
    """`gather(table, words, weight)`: add to the weight of a record in a table that gathers."""
    added = f"""save(state, b + {width}, as_word(as_float(load(state, b + {width})) + weight))
                return"""
    lines = f"""{_probed(width, "break", added)}
    row = load(state, h + COUNT) + 1
    if row >= load(state, h + CAP):
        if load(state, STATUS) == 0:
            save(state, STATUS, h)
        return
    save(state, h + COUNT, row)
    b = rows + row * stride
{_each_word("    save(state, b + {i}, {word})", width)}
    save(state, b + {width}, as_word(weight))
    save(state, b + stride - 1, i)
    save(state, slots + i, (tag << 32) | row)
"""
    return _of_width("gather", width, [rt.STATE, "h"], "void", lines, weight=True)
