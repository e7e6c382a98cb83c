"""The routines of a walk by swaps over neighbour lists, around the terms of its plans.

Rows that are changed to see what a swap is worth are put back. The four ends of a swap are distinct, so the common
neighbours of a pair that is removed lose no other edge to it. Of those of a pair that is added, the ones that the swap
cuts off are left out.

Outputs are numbered. The additions of a swap are gathered in `delta` at the places `touched`, and in `acc` where the
place is known beforehand. A row of an edge changes by the additions of vertices. Most rows are far from the bound up to
which they count, and rows are far apart in memory: those are changed where the swap is accepted, and not read before.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.adjacency import graph
from wpinq.engines.delta.compiled.adjacency.graph import COMMON, EDGES, MARKS, NEIGHBOURS, STARTS
from wpinq.engines.delta.compiled.routine import LANES, ONE, fixed, inlined
from wpinq.engines.delta.compiled.values import Dictionary, Writer
from wpinq.engines.delta.evaluator import loss

if typing.TYPE_CHECKING:
    from wpinq.engines.delta.compiled.modules import fetch

# what swaps leave as it is: labels and records by vertex, the words of their tags, norms; the first vertex of all those
# that are alike, which is looked up for each: few of the records are read then, so they stay at hand
LABELS, PLACES, TAGS = rt.arrays(labels=rt.INT64_ROWS, places=rt.UINT64_ROWS, tags=rt.UINT32S)
AMOUNTS, SIZES, WORDS = rt.arrays(amounts=rt.FLOAT64S, sizes=rt.INT64S, words=rt.INT64_ROWS)
INVERSES, TWINS = rt.arrays(inverses=rt.FLOAT64_ROWS, twins=rt.UINT32S)
# of two vertices each: the tags of their records, so many, the sums by place among them, and in the last row by tag
SUMS, LISTED, SPANS = rt.arrays(sums=rt.FLOAT64_ROWS, listed=rt.UINT64_ROWS, spans=rt.UINT64S)
# the rows of edges, and what vertices add to them
ROWS, FRESH, SPARE = rt.arrays(rows=rt.FLOAT64_ROWS, fresh=rt.FLOAT64_ROWS, spare=rt.FLOAT64_ROWS)
WEIGHTS, SHARES, ROW_STARTS = rt.arrays(weights=rt.FLOAT64_ROWS, shares=rt.FLOAT64_ROWS, row_starts=rt.INT64S)
ASIDE, HELD_EDGES = rt.arrays(aside=rt.UINT32S, held_edges=rt.UINT64S)
TIGHT, _ = rt.arrays(tight=rt.BOOLEANS, limits=rt.FLOAT64S)
# outputs, and what a swap adds to them
MAPS, OFFSETS, ACC_AT = rt.arrays(maps=rt.INT64S, offsets=rt.INT64S, acc_at=rt.INT64S)
ACC, DELTA, CURRENT = rt.arrays(acc=rt.FLOAT64S, delta=rt.FLOAT64S, current=rt.FLOAT64S)
COUNTS, TOUCHED, STAMPS = rt.arrays(counts=rt.INT64S, touched=rt.INT64S, stamps=rt.UINT32S)
GOALS, PRICES, WIDTHS = rt.arrays(goals=rt.FLOAT64S, prices=rt.FLOAT64S, widths=rt.FLOAT64S)


#: The vertices a, b, p and q.
FourVertices = Annotated[tuple[Any, Any, Any, Any], "UniTuple(uint32, 4)"]

# --- changes of a swap: outputs, and the rows of edges ----------------------------------------------------------------


@inlined
def add_output(o: rt.Uint64, amount: rt.Float64, stamp: rt.Uint32, on: rt.Arrays) -> None:
    """Add to what a swap adds to an output."""
    if on.stamps[o] != stamp:
        on.stamps[o] = stamp
        on.delta[o] = 0.0
        on.touched[np.uint64(on.counts[0])] = o
        on.counts[0] += 1
    on.delta[o] += amount


@fixed
def settle_sums(stamp: rt.Uint32, on: rt.Arrays) -> None:
    """Add to the outputs what was gathered by places known beforehand."""
    for r in range(len(on.acc)):
        if on.acc[r] != 0.0 and on.acc_at[r] >= 0:
            add_output(np.uint64(on.acc_at[r]), on.acc[r], stamp, on)


@inlined
def sum_tags(
    side: rt.Uint64, number: rt.Int64, u: rt.Uint32, x: rt.Uint32, of_u: rt.Float64, of_x: rt.Float64, on: rt.Arrays
) -> None:
    """Sum the records of u and x by tag; one that is listed twice has 0 at its second place."""
    n = np.uint64(0)
    for vertex, share in ((u, of_u), (x, of_x)):
        for k in range(on.places[number, vertex], on.places[number, vertex + ONE]):
            t = np.uint64(on.tags[k])
            on.listed[side, n] = t
            n += np.uint64(on.sums[2, t] == 0.0)
            on.sums[2, t] += share * on.amounts[k]
    for r in range(n):
        t = on.listed[side, r]
        on.sums[side, r] = on.sums[2, t]
        on.sums[2, t] = 0.0
    on.spans[side] = n


@inlined
def mark_places(vertex: rt.Uint32, side: rt.Int64, mark: rt.Uint32, on: rt.Arrays) -> None:
    """Mark the neighbours of a vertex, with twice the place of each, and 1 if it is tight."""
    first = on.starts[vertex]
    for k in range(first, on.starts[vertex + ONE]):
        on.marks[on.neighbours[k], side] = np.uint64(mark) + np.uint64(on.tight[k]) + 2 * (np.uint64(k) - first)


@inlined
def add_row(
    source: rt.Float64Rows, m: rt.Uint64, target: rt.Float64Rows, n: rt.Uint64, sign: rt.Float64, rest: rt.Float64
) -> None:
    """Add a row to `rest` of another, in blocks: compiled loops of one length are no loops."""
    for r in range(np.uint64(0), np.uint64(source.shape[1]), LANES):
        for s in range(LANES):
            target[n, r + s] = rest * target[n, r + s] + sign * source[m, r + s]


@fixed
def tighten(edge: rt.Uint64, tight_now: rt.Boolean, on: rt.Arrays) -> None:
    """Note, in the lists of its ends, whether the row of an edge is tight."""
    for end in range(2):
        v = on.edges[edge, end]
        for k in range(on.starts[v], on.starts[v + ONE]):
            on.tight[k] = tight_now if on.ids[k] == edge else on.tight[k]


@inlined
def is_tight(edge: rt.Uint64, on: rt.Arrays) -> rt.Boolean:
    """Whether a swap can bring the row of an edge to its bound; if not, it counts as it is."""
    beyond = False
    for r in range(on.rows.shape[1]):
        beyond |= on.rows[edge, r] > on.limits[r]
    return beyond


@inlined
def change_row(
    k: rt.Uint64, vertex: rt.Uint32, sign: rt.Float64, kept: rt.Boolean, mark: rt.Uint32, on: rt.Arrays
) -> None:
    """Add what a vertex adds to the row of the edge at a place of a list, or take it away.

    Unless the change is to be kept, a copy of the row is put aside.
    """
    edge, n = np.uint64(on.ids[k]), np.uint64(on.counts[1])
    if not kept and on.aside[edge] != mark:
        on.aside[edge], on.held_edges[n] = mark, edge
        add_row(on.rows, edge, on.spare, n, 1.0, 0.0)
        on.counts[1] += 1
    add_row(on.weights, np.uint64(on.twins[vertex]), on.rows, edge, sign, 1.0)
    if kept and is_tight(edge, on) != on.tight[k]:
        tighten(edge, not on.tight[k], on)


@inlined
def change_rows(ends: FourVertices, side: rt.Uint64, kept: rt.Boolean, mark: rt.Uint32, on: rt.Arrays) -> None:
    """Change the rows at common neighbours of the pairs that a vertex loses and wins.

    The vertex is b, or q on the other side. A pair is the vertex and another. The neighbours of the one that is lost
    are marked by `mark_places` on `side`, those of the one that is won on the other side. `other` is the vertex that
    the swap parts from the one that is won. So an edge wins one vertex at most, and loses one.

    Unless the changes are to be kept, the new row is summed in `fresh`, and last in it what all rows together change
    by that are not tight: few are, so most rows are not read.
    """
    won_side, losses, wins = ONE - side, 0.0, 0.0
    a, b, p, q = ends
    near, lost, won, other = (b, a, p, q) if side == 0 else (q, p, a, b)
    for listed in range(on.common[side, 0] if kept else 0):  # rows far apart in memory, all at once
        k = on.common[side, listed + ONE]
        fetch(on.rows, np.uint64(on.ids[k]))
        for marked, far in ((side, lost), (won_side, won)):
            at = on.marks[on.neighbours[k], marked]
            if at >= mark:
                fetch(on.rows, np.uint64(on.ids[on.starts[far] + (at - mark >> ONE)]))
    for listed in range(on.common[side, 0]):
        k = on.common[side, listed + ONE]
        w = on.neighbours[k]
        loses = on.marks[w, side] >= mark
        gains = on.marks[w, won_side] >= mark and w != lost and w != other
        if gains and not kept:
            add_row(on.weights, np.uint64(on.twins[w]), on.fresh, won_side, 1.0, 1.0)
        exact = kept or on.tight[k] or (loses and on.marks[w, side] - mark & ONE)
        if not (exact or (gains and on.marks[w, won_side] - mark & ONE)):
            losses += np.float64(loses)
            wins += np.float64(gains)
            continue
        if loses:
            change_row(k, lost, -1.0, kept, mark, on)
            change_row(on.starts[lost] + (on.marks[w, side] - mark >> ONE), near, -1.0, kept, mark, on)
        if gains:
            change_row(k, won, 1.0, kept, mark, on)
            change_row(on.starts[won] + (on.marks[w, won_side] - mark >> ONE), near, 1.0, kept, mark, on)
    for vertex, number in ((near, wins - losses), (won, wins), (lost, -losses)):
        add_row(on.weights, np.uint64(on.twins[vertex]), on.fresh, ONE + ONE, number, 1.0)


@fixed
def sum_rows(edge: rt.Uint64, mark: rt.Uint32, on: rt.Arrays) -> None:
    """Sum the row of an edge over common neighbours: those of its first end are marked."""
    v = on.edges[edge, 1]
    for k in range(on.starts[v], on.starts[v + ONE]):
        w = on.neighbours[k]
        if on.marks[w, 0] == mark:
            add_row(on.weights, np.uint64(on.twins[w]), on.rows, edge, 1.0, 1.0)


# --- the routines around the terms ------------------------------------------------------------------------------------


@dataclass
class TermLines:
    """The lines of terms, by shape.

    The shapes: an edge (u, v), products of (u − x) and (v − y), a triangle (u, v, w), a vertex v of a row, and a row.
    """

    edges: list[str] = field(default_factory=list)
    products: list[str] = field(default_factory=list)
    triangles: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    closes: list[str] = field(default_factory=list)


def label(vertex: str) -> str:
    """The name of the label of a vertex."""
    return rt.name("l" + rt.spelled(vertex))


def routine(spelling: str, given: Mapping[str, str], lines: Sequence[str], **options: object) -> rt.Routine:
    """A routine of these arguments and of the arrays that its lines name.

    Labels of vertices are looked up.
    """
    vertices = [rt.name(argument) for argument, type_ in given.items() if type_ == rt.UINT32]
    used = set(rt.names_in(*lines))
    looked_up = [f"    {label(v)} = {LABELS}[{v}, 0]" for v in vertices if label(v) in used]
    if looked_up:
        used.add(LABELS)
    arguments = {rt.name(argument): type_ for argument, type_ in given.items()}
    shared = {rt.name(array): type_ for array, type_ in rt.ARRAYS.items()}
    arguments |= {array: type_ for array, type_ in shared.items() if array in used and array not in arguments}
    return rt.Routine(spelling, arguments, lines=[*looked_up, *lines], **options)  # type: ignore[arg-type]


class WalkRoutines:
    """The routines of a walk, without what serves terms that are not there."""

    def __init__(self, terms: TermLines) -> None:
        change = {"sign": rt.FLOAT64, "stamp": rt.UINT32}
        self.all: list[rt.Routine] = []
        edge = self._part("change_edge", {"u": rt.UINT32, "v": rt.UINT32, **change}, terms.edges)
        ends = [("u", "v", "1.0"), ("u", "y", "-lost"), ("x", "v", "-lost"), ("x", "y", "lost")]
        each = [f"    {rt.call_by_name(edge, u=u, v=v, sign=sign)}" for u, v, sign in ends if edge is not None]
        four = {**dict.fromkeys("uxvy", rt.UINT32), "lost": rt.FLOAT64, "stamp": rt.UINT32}
        self._edges = self._part("change_edges", four, terms.products + each)
        triangle = {"u": rt.UINT32, "v": rt.UINT32, "w": rt.UINT32, **change}
        self._triangle = self._part("change_triangle", triangle, terms.triangles)
        self._weigh = self._part("weigh", {"v": rt.UINT32}, terms.weights)
        several = {"rows": rt.FLOAT64_ROWS, "first": rt.UINT64, "count": rt.UINT64, "sign": rt.FLOAT64}
        each = ["    for e in range(first, first + count):", *(f"    {line}" for line in terms.closes)]
        self._close = self._part("close", several, each if terms.closes else [])
        if self._weigh is not None:
            called = rt.call_by_name(self._weigh, v="np.uint32(n)")
            each = [f"for n in range(len({WEIGHTS})):", f"    {called}"]
            self._entry("weigh_vertices", {}, lambda writer: writer.line(*each))
        self._entry("evaluate", {}, self._evaluate)
        loss_of = rt.call(loss, f"{CURRENT}[o] - {GOALS}[o]", f"{WIDTHS}[o]")
        losses = ["for o in range(len(losses)):", f"    losses[o] = {loss_of}"]
        self._entry("measure_losses", {"losses": rt.FLOAT64S}, lambda writer: writer.line(*losses))
        given = {"seeds": rt.UINT64S, "tallies": rt.INT64S, "steps": rt.INT64}
        given |= {"power": rt.FLOAT64, "closing": rt.FLOAT64}
        self._entry("walk", given, self._walk)

    def _part(self, spelling: str, given: Mapping[str, str], lines: list[str]) -> rt.Routine | None:
        if not lines:
            return None
        self.all.append(routine(spelling, given, lines))
        return self.all[-1]

    def _entry(self, spelling: str, given: Mapping[str, str], write: Callable[[Writer], None]) -> None:
        writer = Writer(Dictionary())
        write(writer)
        self.all.append(routine(spelling, given, writer.lines, entry=True))

    def _evaluate(self, writer: Writer) -> None:
        line = writer.line
        line("stamp, mark = np.uint32(1), np.uint32(0)", f"{MARKS}[:, :] = 0", f"{STAMPS}[:] = 0")
        line(f"{ACC}[:] = 0.0", f"{CURRENT}[:] = 0.0", f"{COUNTS}[0] = 0")
        if self._close is not None:
            line(f"{ROWS}[:, :] = 0.0", f"{TIGHT}[:] = False")
        with writer.block(f"for i in range(np.uint64(len({EDGES}))):"):
            line(f"u, v = {EDGES}[i, 0], {EDGES}[i, 1]", *self._changes("uuvv", "0.0", "stamp"))
            if self._triangle is not None or self._close is not None:
                line("mark = np.uint32(mark + ONE)", rt.call_by_name(graph.mark_neighbours, vertex="u", side="0"))
            if self._triangle is not None:
                with writer.block(f"for k in range({STARTS}[v], {STARTS}[v + ONE]):"):
                    line(f"w = {NEIGHBOURS}[k]")
                    writer.when(
                        f"{MARKS}[w, 0] == mark and w > u and w > v", rt.call_by_name(self._triangle, sign="1.0")
                    )
            if self._close is not None:
                line(rt.call_by_name(sum_rows, edge="i"))
                writer.when(rt.call_by_name(is_tight, edge="i"), rt.call_by_name(tighten, edge="i", tight_now="True"))
        if self._close is not None:
            line(self._closing(ROWS, "0", f"len({EDGES})", "1.0"))
        line(rt.call_by_name(settle_sums))
        line(f"for n in range({COUNTS}[0]):", f"    {CURRENT}[{TOUCHED}[n]] = {DELTA}[{TOUCHED}[n]]")

    def _walk(self, writer: Writer) -> None:
        line = writer.line
        line("evaluated = accepted = 0", "mark = np.uint32(0)", f"{MARKS}[:, :] = 0", f"{STAMPS}[:] = 0")
        aside = [] if self._close is None else [f"{ASIDE}[:] = 0"]
        line(f"most = {rt.call_by_name(graph.most_chances)}", f"stride = np.uint32(2 * {COMMON}.shape[1])", *aside)
        with writer.block("for _ in range(steps):"):
            self._propose(writer)
            line(*self._changes("apqb", "1.0", "mark"))
            # all is lost or won at the neighbours of b and q that are neighbours of a or p
            listed = [rt.call_by_name(graph.list_common, vertex=v, side=f"np.uint64({n})") for n, v in enumerate("bq")]
            writer.when("closing > 0.0" if self._triangle is None and self._close is None else "True", *listed)
            self._change_triangles(writer, "b", "a", "p", "q")
            self._change_triangles(writer, "q", "p", "a", "b")
            self._change_rows(writer)
            line(rt.call_by_name(settle_sums, stamp="mark"), "evaluated += 1")
            self._judge(writer)
            # most exchanges are refused whatever the chances, so these are computed where they decide
            ratio = rt.call_by_name(graph.chances)
            writer.when("closing > 0.0", f"likely = likely * {ratio} if level < likely * most else 0.0")
            kept = [f"for n in range({COUNTS}[0]):", f"    {CURRENT}[{TOUCHED}[n]] += {DELTA}[{TOUCHED}[n]]"]
            kept += [] if self._close is None else _both_sides("True")
            kept.append(f"at_a, at_b, at_p, at_q = {rt.call_by_name(graph.exchange)}")
            if self._close is not None:
                for n, (edge, first, last) in enumerate([("i", "a", "q"), ("j", "p", "b")]):
                    found = rt.call_by_name(is_tight, edge=edge)
                    kept.append(rt.call(add_row, FRESH, f"np.uint64({n})", ROWS, edge, "1.0", "0.0"))
                    kept.append(f"{TIGHT}[at_{first}] = {TIGHT}[at_{last}] = {found}")
            writer.when("level < likely", "accepted += 1", *kept)
        line("tallies[0] += evaluated", "tallies[1] += accepted", "tallies[2] += steps")

    def _propose(self, writer: Writer) -> None:
        """Draw an exchange; the neighbours of a and p are marked after it."""
        mark = graph.mark_neighbours if self._close is None else mark_places
        writer.line(f"drawn, a, b, p, q, i, j = {rt.call_by_name(graph.draw_ends)}")
        writer.when("not drawn", "continue")
        writer.line("mark = np.uint32(mark + stride)", *(f"fetch({NEIGHBOURS}, {STARTS}[{vertex}])" for vertex in "bq"))
        for vertex, side, far in (("a", "0", "q"), ("p", "1", "b")):
            writer.line(rt.call_by_name(mark, vertex=vertex, side=side))
            writer.when(f"{MARKS}[{far}, {side}] >= mark", "continue")
        writer.line(*([] if self._close is None else [f"fetch({ROWS}, i)", f"fetch({ROWS}, j)"]))
        # the edge that the next step draws first is fetched meanwhile
        following = f"np.uint64({rt.call_by_name(rt.next_draw)} * len({EDGES}))"
        writer.line(f"level = {rt.call_by_name(rt.draw)}", f"fetch({EDGES}, {following})")
        # a loop: numba's slices cost more than a step
        writer.line(f"{COUNTS}[0] = 0", f"for r in range(len({ACC})):", f"    {ACC}[r] = 0.0")

    def _judge(self, writer: Writer) -> None:
        """How likely the swap is to be accepted by what it does to the score."""
        before, after = (rt.call(loss, each, f"{WIDTHS}[o]") for each in ("before", f"before + {DELTA}[o]"))
        writer.line("worse = 0.0")
        with writer.block(f"for n in range(np.uint64({COUNTS}[0])):"):
            writer.line(f"o = np.uint64({TOUCHED}[n])", f"before = {CURRENT}[o] - {GOALS}[o]")
            writer.line(f"worse += {PRICES}[o] * ({after} - {before})")
        writer.line("likely = exp(min(700.0, -power * worse))")

    def _changes(self, ends: str, lost: str, stamp: str) -> list[str]:
        """Change edges in both directions: (u − x) · (v − y), for the ends u, x, v and y."""
        ways = [dict(zip("uxvy", way, strict=True)) for way in (ends, ends[2:] + ends[:2])]
        return [rt.call_by_name(self._edges, **way, lost=lost, stamp=stamp) for way in ways if self._edges is not None]

    def _change_triangles(self, writer: Writer, near: str, lost: str, won: str, other: str) -> None:
        """Change the triangles at common neighbours of the pairs that a vertex loses and wins."""
        if self._triangle is None:
            return
        row = int(near == "q")
        with writer.block(f"for n in range({COMMON}[{row}, 0]):"):
            writer.line(f"w = {NEIGHBOURS}[{COMMON}[{row}, n + ONE]]")
            cut = f" and w != {lost} and w != {other}"
            for far, side, sign, more in ((lost, row, "-1.0", ""), (won, 1 - row, "1.0", cut)):
                called = rt.call_by_name(self._triangle, u=far, v=near, sign=sign, stamp="mark")
                writer.when(f"{MARKS}[w, {side}] >= mark{more}", called)

    def _change_rows(self, writer: Writer) -> None:
        if self._close is None:
            return
        line = writer.line
        line(f"for r in range({FRESH}.shape[1]):", f"    {FRESH}[0, r] = {FRESH}[1, r] = {FRESH}[2, r] = 0.0")
        line(f"{COUNTS}[1] = 0", *_both_sides("False"), f"held = np.uint64({COUNTS}[1])")
        line(*(self._closing(*rows, "-1.0") for rows in ((ROWS, "i", "1"), (ROWS, "j", "1"), (SPARE, "0", "held"))))
        with writer.block("for n in range(held):"):
            line(self._closing(ROWS, f"{HELD_EDGES}[n]", "1", "1.0"))
            line(rt.call(add_row, SPARE, "np.uint64(n)", ROWS, f"{HELD_EDGES}[n]", "1.0", "0.0"))
        line(self._closing(FRESH, "0", "2", "1.0"))
        line(f"for r in range({FRESH}.shape[1]):", f"    {ACC}[len({ACC}) - {FRESH}.shape[1] + r] += {FRESH}[2, r]")

    def _closing(self, rows: str, first: str, count: str, sign: str) -> str:
        assert self._close is not None
        span = {"first": f"np.uint64({first})", "count": f"np.uint64({count})"}
        return rt.call_by_name(self._close, rows=rows, sign=sign, **span)


def _both_sides(kept: str) -> list[str]:
    """The calls for b and for q, at whose neighbours all rows change."""
    return [rt.call_by_name(change_rows, ends="(a, b, p, q)", side=f"np.uint64({n})", kept=kept) for n in range(2)]
