"""The functions of a module of a walk over neighbour lists: their arguments, types and calls, and its entry points."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from wpinq.engines.incremental.compiled import proposals, runtime
from wpinq.engines.incremental.compiled.order import signed, split

_TYPES = {
    **dict.fromkeys(["edges", "marks", "found"], "uint32[:, ::1]"),
    **dict.fromkeys(["neighbours", "ids", "tags", "edge_stamps", "stamps"], "uint32[::1]"),
    **dict.fromkeys(["places"], "uint64[:, ::1]"),
    **dict.fromkeys(["starts", "seeds"], "uint64[::1]"),
    **dict.fromkeys(["labels", "words", "records"], "int64[:, ::1]"),
    **dict.fromkeys(
        ["sizes", "maps", "offsets", "row_at", "acc_at", "counts", "touched", "held_edges", "tallies"], "int64[::1]"
    ),
    **dict.fromkeys(["event_edges", "event_vertices"], "uint32[::1]"),
    **dict.fromkeys(["inverses", "rows", "spare", "fresh", "weights", "shares"], "float64[:, ::1]"),
    **dict.fromkeys(
        ["amounts", "acc", "delta", "current", "goals", "prices", "widths", "event_signs", "totals"], "float64[::1]"
    ),
    **dict.fromkeys(["a", "b", "p", "q", "u", "v", "w", "h", "mark", "stamp"], "uint32"),
    **dict.fromkeys(["i", "j", "e"], "uint64"),
    **dict.fromkeys(["sign", "real_power", "real_closing"], "float64"),
    **dict.fromkeys(["which", "steps", "edge_count"], "int64"),
}
_RESULTS = {"draw": "float64", "chances": "float64"}
_BOUND = re.compile(r"\s*([gpv]\d+) = ")
_WORD = re.compile(r"\b[a-z]\d+\b")
_HEAD = re.compile(r"^def (\w+)\(([^)]*)\)", re.M)
_ARITHMETIC = ("divides", "floor_divide", "modulo", "truncate", "range_end", "loss")
ENTRIES = ("parts", "records_of", "weighed", "whole", "walk")

ARRAYS = [name for name, type_ in _TYPES.items() if "[" in type_]


def function(name: str, arguments: Sequence[str], lines: Sequence[str], vertices: str = "") -> str:
    """A function of these arguments and of all arrays that its lines name; labels of vertices are looked up."""
    body = labelled("    ", pruned(lines), vertices) or ["    pass"]
    text = "\n".join(body)
    arrays = [array for array in ARRAYS if array not in arguments and re.search(rf"\b{array}\b", text)]
    return f"@njit\ndef {name}({', '.join([*arguments, *arrays])}):\n{text}"


def pruned(lines: Sequence[str]) -> list[str]:
    """The lines without names that no other line uses."""
    held = list(lines)
    while True:
        named = [_BOUND.match(line) for line in held]
        words = Counter(word for line in held for word in _WORD.findall(line))
        kept = [line for line, found in zip(held, named, strict=True) if found is None or words[found.group(1)] > 1]
        if len(kept) == len(held):
            return held
        held = kept


def labelled(indent: str, lines: Sequence[str], vertices: str) -> list[str]:
    """The lines, after those that look up the labels that they name."""
    used = [vertex for vertex in vertices if any(re.search(rf"\bl{vertex}\b", line) for line in lines)]
    return [*(f"{indent}l{vertex} = labels[{vertex}, 0]" for vertex in used), *lines]


def head(made: str) -> tuple[str, list[str]]:
    """The name and the arguments of a function."""
    found = _HEAD.search(made)
    assert found is not None
    return found.group(1), [argument.strip() for argument in found.group(2).split(",")]


def call(made: str, **given: str) -> str:
    """The call of a function that was made: what is not given stands under its own name."""
    name, arguments = head(made)
    return f"{name}({', '.join(given.get(argument, argument) for argument in arguments)})"


def entries(
    parts: Sequence[Sequence[str]], sites: Sequence[tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]]
) -> tuple[list[str], list[int], list[int]]:
    """The parts of norms, vertex by vertex, and the words of what sites pass on, tag by tag; with an entry for each.

    Also the number by which each part and each site goes: that of the first of its like.
    """
    made: list[str] = []
    numbers: dict[tuple[str, ...], int] = {}
    lines = ["    for n in range(len(totals)):", "        v = np.uint32(n)"]
    for number, part in enumerate(parts):
        body = ("    total = 0.0", *renamed(part), "    return total")
        if numbers.setdefault(body, number) == number:
            made.append(function(f"part_{number}", ["v"], body, "v"))
            lines += [f"        if which == {number}:", f"            totals[n] = {call(made[-1])}"]
    if parts:
        made.append(function("parts", ["which", "totals"], lines))
    chosen = []
    same = [numbers[("    total = 0.0", *renamed(part), "    return total")] for part in parts]
    bodies: dict[tuple[str, ...], int] = {}
    like = []
    for number, (lists, bound, words) in enumerate(sites):
        body = tuple(_records(lists, bound, words))
        like.append(bodies.setdefault(body, number))
        if like[-1] == number:
            made.append(function(f"records_{number}", ["records"], body))
            chosen += [f"    if which == {number}:", f"        {call(made[-1])}"]
    made.append(function("records_of", ["which", "records"], chosen))
    return made, same, like


def renamed(lines: Sequence[str]) -> list[str]:
    """The lines with their own names numbered in order, so that like texts are alike."""
    names: dict[str, str] = {}
    return [_WORD.sub(lambda m: names.setdefault(m[0], f"{m[0][0]}{len(names)}"), line) for line in lines]


def _records(lists: tuple[int, ...], bound: tuple[str, ...], words: tuple[str, ...]) -> list[str]:
    lines = ["    n = 0"]
    indent = "    "
    for place, held in enumerate(lists):
        lines.append(f"{indent}for t_{place} in range(sizes[{2 * held}]):")
        indent += "    "
    lines += [indent + line.strip() if line.startswith("    ") else line for line in bound]
    lines += [f"{indent}records[n, {place}] = {word}" for place, word in enumerate(words)]
    lines.append(f"{indent}n += 1")
    return renamed(lines)


def module(functions: Sequence[str]) -> str:
    """The text of the module."""
    wanted = ("draw", "chances", "turn", "exchange", *_ARITHMETIC)
    helpers = [part for part in split(runtime.FUNCTIONS + proposals.FUNCTIONS) if head(part)[0] in wanted]
    return "\n\n\n".join([f"{runtime.PREFIX}\n{runtime.PRELUDE}", *map(_signed, [*helpers, *functions])]) + "\n"


def _signed(made: str) -> str:
    name, arguments = head(made)
    if name in _ARITHMETIC:
        return signed(made)
    types = ", ".join(_TYPES[argument] for argument in arguments)
    kind = "entry" if name in ENTRIES else "inner"
    result = "float64" if name.startswith("part_") else _RESULTS.get(name, "void")
    return f'@{kind}("{result}({types})")\n' + made[made.index("def ") :]
