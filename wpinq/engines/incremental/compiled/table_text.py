"""The text of tables: open addressing over one array of words, written through an undo log.

A table has eight header words, a block of slots (linear probing; each slot a hash and a row number) and a block of rows
(the words of the record, then its weight, then what else the table keeps). Row 0 stands for no row. Tables that live
longer than a proposal are written through `put`, which logs; tables that gather changes are cleared instead.
A table or log that is full sets STATUS and stops writing: the proposal is undone, the array grown, and it is redone.
"""

from __future__ import annotations

FUNCTIONS = '''
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
