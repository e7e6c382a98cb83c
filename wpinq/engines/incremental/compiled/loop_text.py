"""The text of a walk by swaps over neighbour lists, around what `loop` writes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wpinq.engines.incremental.compiled import proposals
from wpinq.engines.incremental.compiled.loop_functions import call, function, labelled, pruned


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
            worse += prices[o] * (loss(before + delta[o], widths[o]) - loss(before, widths[o]))
        evaluated += 1
        likely = exp(min(700.0, -real_power * worse))
        if real_closing > 0.0:
            likely *= chances(a, b, p, q, starts, neighbours, marks, mark, edge_count, real_closing)
        if draw(seeds) < likely:
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
