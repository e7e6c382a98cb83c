"""The fixed text of a walk by swaps over neighbour lists, and the functions around what `loop` writes."""

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
    **dict.fromkeys(["amounts", "acc", "delta", "current", "goals", "prices", "event_signs", "totals"], "float64[::1]"),
    **dict.fromkeys(["a", "b", "p", "q", "u", "v", "w", "h", "mark", "stamp"], "uint32"),
    **dict.fromkeys(["i", "j", "e"], "uint64"),
    **dict.fromkeys(["sign", "real_power", "real_closing"], "float64"),
    **dict.fromkeys(["which", "steps", "edge_count"], "int64"),
}
_RESULTS = {"draw": "float64", "chances": "float64"}
_BOUND = re.compile(r"\s*([gpv]\d+) = ")
_WORD = re.compile(r"\b[a-z]\d+\b")
_HEAD = re.compile(r"^def (\w+)\(([^)]*)\)", re.M)
_ARITHMETIC = ("divides", "floor_divide", "modulo", "truncate", "range_end")
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


def walk(
    edges: Sequence[str], triangles: Sequence[str], weights: Sequence[str], closes: Sequence[str], constants: int
) -> list[str]:
    """The functions of the walk itself, without what serves terms that are not there."""
    made = []
    tri = weigh = close = ""
    if triangles:
        made.append(tri := function("triangles", ["u", "v", "w", "sign", "stamp"], triangles, "uvw"))
    if closes:
        made.append(weigh := function("weigh", ["v"], weights, "v"))
        made.append(close := function("close", ["rows", "e", "sign"], closes))
        lines = ["    for n in range(len(weights)):", "        v = np.uint32(n)", f"        {call(weigh)}"]
        made.append(function("weighed", ["weights"], lines))
    made.append(settle := function("settled", ["stamp"], _lines(_SETTLED)))
    ends = labelled("            ", pruned(edges), "uv")
    made.append(function("whole", [], _whole(ends, tri, close, settle)))
    made.append(function("walk", ["seeds", "tallies", "steps", "real_power", "real_closing"],
                         _walk(ends, tri, close, settle)))  # fmt: skip
    return [text.replace("@CONSTANTS@", str(constants)) for text in made]


_EACH = "for r in range(rows.shape[1]):"


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _indented(indent: str, *lines: str) -> list[str]:
    return [indent + line for line in lines]


_SETTLED = """
    for r in range(len(acc)):
        if acc[r] != 0.0 and acc_at[r] >= 0:
            o = acc_at[r]
            if stamps[o] != stamp:
                stamps[o] = stamp
                delta[o] = 0.0
                touched[counts[0]] = o
                counts[0] += 1
            delta[o] += acc[r]
"""

_ALL_EDGES = """
    next_ = np.uint32(1)
    stamp = next_
    mark = np.uint32(0)
    sign = 1.0
    marks[:, :] = 0
    stamps[:] = 0
    acc[:] = 0.0
    current[:] = 0.0
    counts[0] = 0
"""


def _whole(ends: list[str], tri: str, close: str, settle: str) -> list[str]:
    lines = [*_lines(_ALL_EDGES), *(["    rows[:, :] = 0.0"] if close else [])]
    if ends or tri or close:
        lines += ["    for i in range(np.uint64(len(edges))):"]
    if ends:
        lines += _indented("        ", "for n in range(2):", "    u, v = edges[i, n], edges[i, 1 - n]")
        lines += ends
    if tri or close:
        lines += _indented(
            "        ",
            "u, v = edges[i, 0], edges[i, 1]",
            "mark = np.uint32(mark + next_)",
            "for k in range(starts[u], starts[u + ONE]):",
            "    marks[neighbours[k], 0] = mark",
            "for k in range(starts[v], starts[v + ONE]):",
            "    w = neighbours[k]",
            "    if marks[w, 0] == mark:",
            *(_indented("        ", "if w > u and w > v:", f"    {call(tri)}") if tri else []),
            *(
                _indented("        ", "for r in range(rows.shape[1]):", "    rows[i, r] += weights[w, r]")
                if close
                else []
            ),
        )
    if close:
        lines += _indented("    ", "for e in range(np.uint64(len(edges))):", f"    {call(close)}")
    lines += _indented(
        "    ", call(settle), "for n in range(counts[0]):", "    current[touched[n]] = delta[touched[n]]"
    )
    return lines


_BEGUN = """
    next_ = np.uint32(1)
    edge_count = len(edges)
    evaluated = accepted = 0
    marks[:, :] = 0
    stamps[:] = 0
    mark = np.uint32(0)
"""

_ENDS = """
        for n in range(8):
            if n < 2:
                u, v, sign = a, b, -1.0
            elif n < 4:
                u, v, sign = p, q, -1.0
            elif n < 6:
                u, v, sign = a, q, 1.0
            else:
                u, v, sign = p, b, 1.0
            if n & 1:
                u, v = v, u
"""

_ROWS = """
        CLOSE(rows, i, -1.0)
        CLOSE(rows, j, -1.0)
        held = 0
        for n in range(events):
            e, sign = np.uint64(event_edges[n]), event_signs[n]
            if edge_stamps[e] != stamp:
                edge_stamps[e] = stamp
                held_edges[held] = e
                for r in range(rows.shape[1]):
                    spare[held, r] = rows[e, r]
                held += 1
                CLOSE(rows, e, -1.0)
            v = event_vertices[n]
            for r in range(rows.shape[1]):
                rows[e, r] += sign * weights[v, r]
        for n in range(held):
            e = np.uint64(held_edges[n])
            CLOSE(rows, e, 1.0)
        CLOSE(fresh, np.uint64(0), 1.0)
        CLOSE(fresh, np.uint64(1), 1.0)
"""

_DECIDED = """
        worse = 0.0
        for n in range(counts[0]):
            o = touched[n]
            before = current[o] - goals[o]
            worse += prices[o] * (abs(before + delta[o]) - abs(before))
        evaluated += 1
        likely = exp(min(700.0, -real_power * worse))
        if real_closing > 0.0:
            likely *= chances(a, b, p, q, starts, neighbours, marks, mark, edge_count, real_closing)
        if likely >= 1.0 or draw(seeds) < likely:
            accepted += 1
            for n in range(counts[0]):
                current[touched[n]] += delta[touched[n]]
            exchange(a, b, p, q, i, j, edges, starts, neighbours, ids)
"""

_KEPT = """
            for r in range(rows.shape[1]):
                rows[i, r] = fresh[0, r]
                rows[j, r] = fresh[1, r]
        else:
            for n in range(held):
                e = np.uint64(held_edges[n])
                for r in range(rows.shape[1]):
                    rows[e, r] = spare[n, r]
"""


def _walk(ends: list[str], tri: str, close: str, settle: str) -> list[str]:
    lines = [*_lines(_BEGUN), *(["    edge_stamps[:] = 0"] if close else []), "    for _ in range(steps):"]
    lines += [*_lines(proposals.drawn(keep_ids=bool(close)))]
    lines += _indented("        ", "stamp = mark", "counts[0] = 0", "for r in range(len(acc)):", "    acc[r] = 0.0")
    if ends:
        lines += [*_lines(_ENDS), *ends]
    if close:
        lines += _indented("        ", "events = 0", "for r in range(rows.shape[1]):", "    fresh[0, r] = 0.0",
                           "    fresh[1, r] = 0.0")  # fmt: skip
    if tri or close:
        lines += _around("b", ("a", 0), ("p", 1), "w != a and w != q", tri, bool(close))
        lines += _around("q", ("p", 1), ("a", 0), "w != b and w != p", tri, bool(close))
    if close:
        closed = re.sub(r"CLOSE\((\w+), (.*), (-?1.0)\)", lambda m: call(close, rows=m[1], e=m[2], sign=m[3]), _ROWS)
        lines += _lines(closed)
    lines += [f"        {call(settle)}", *_lines(_DECIDED), *(_lines(_KEPT) if close else [])]
    return [*lines, "    tallies[0] += evaluated", "    tallies[1] += accepted", "    tallies[2] += steps"]


def _around(near: str, lost: tuple[str, int], won: tuple[str, int], cut: str, tri: str, rows: bool) -> list[str]:
    """The common neighbours of the pair that is lost at a vertex, and of the pair that it wins.

    A pair is the vertex and another, with the side on which the neighbours of that one are marked.
    """
    lines = _indented("        ", f"for k in range(starts[{near}], starts[{near} + ONE]):", "    w = neighbours[k]")
    for (far, side), sign, more in ((lost, -1, ""), (won, 1, f" and {cut}")):
        lines.append(f"            if marks[w, {side}] == mark{more}:")
        inside = []
        if tri:
            inside.append(call(tri, u=far, v=near, sign=f"{sign}.0"))
        if rows:
            for edge, vertex in (("ids[k]", far), (f"found[w, {side}]", near)):
                inside += [f"event_edges[events] = {edge}", f"event_vertices[events] = {vertex}",
                           f"event_signs[events] = {sign}.0", "events += 1"]  # fmt: skip
            if more:
                inside += [_EACH, f"    fresh[{side}, r] += weights[w, r]"]
        lines += _indented("                ", *inside)
    return lines


def module(functions: Sequence[str]) -> str:
    """The text of the module."""
    wanted = ("draw", "chances", "turn", "exchange", *_ARITHMETIC)
    helpers = [part for part in split(runtime.FIXED + proposals.FUNCTIONS) if head(part)[0] in wanted]
    return "\n\n\n".join([f"{runtime.PREFIX}\n{runtime.PRELUDE}", *map(_signed, [*helpers, *functions])]) + "\n"


def _signed(made: str) -> str:
    name, arguments = head(made)
    if name in _ARITHMETIC:
        return signed(made)
    types = ", ".join(_TYPES[argument] for argument in arguments)
    kind = "entry" if name in ENTRIES else "inner"
    result = "float64" if name.startswith("part_") else _RESULTS.get(name, "void")
    return f'@{kind}("{result}({types})")\n' + made[made.index("def ") :]
