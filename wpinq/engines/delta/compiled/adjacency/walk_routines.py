"""The routines of a walk by swaps over neighbour lists, around the terms of its plans.

Nothing is written before a swap is accepted, and of the rows that it touches only copies are changed. The four
ends of a swap are distinct, so the common neighbours of a pair that is removed lose no other edge to it. Of those of a
pair that is added, the ones that the swap cuts off are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.adjacency import proposals
from wpinq.engines.delta.compiled.values import Dictionary, Writer
from wpinq.engines.delta.evaluator import loss

ARRAYS: dict[str, str] = {}
"""The arrays of a walk, by name, and their types: what a routine takes of them is what its lines hold."""


def _array(spelling: str, type_: str) -> str:
    ARRAYS[rt.name(spelling)] = type_
    return rt.name(spelling)


# the graph, see `state.Graph`
EDGES, MARKS = (_array(each, rt.UINT32_ROWS) for each in ("edges", "marks"))
STARTS, LABELS = _array("starts", rt.UINT64S), _array("labels", rt.INT64_ROWS)
NEIGHBOURS, IDS = _array("neighbours", rt.UINT32S), _array("ids", rt.UINT32S)
COMMON = _array("common", rt.UINT64_ROWS)
# what swaps leave as it is: records by vertex, the words of their tags, norms
PLACES, TAGS, AMOUNTS = _array("places", rt.UINT64_ROWS), _array("tags", rt.UINT32S), _array("amounts", rt.FLOAT64S)
SIZES, WORDS, INVERSES = _array("sizes", rt.INT64S), _array("words", rt.INT64_ROWS), _array("inverses", rt.FLOAT64_ROWS)
# the rows of edges, and what vertices add to them
ROWS, FRESH, SPARE = (_array(each, rt.FLOAT64_ROWS) for each in ("rows", "fresh", "spare"))
WEIGHTS, SHARES = _array("weights", rt.FLOAT64_ROWS), _array("shares", rt.FLOAT64_ROWS)
ROW_STARTS, EVENTS = _array("row_starts", rt.INT64S), _array("events", rt.UINT32_ROWS)
HELD_EDGES = _array("held_edges", rt.UINT64S)
# outputs, and what a swap adds to them
MAPS, OFFSETS, ACC_AT = (_array(each, rt.INT64S) for each in ("maps", "offsets", "acc_at"))
ACC, DELTA, CURRENT = (_array(each, rt.FLOAT64S) for each in ("acc", "delta", "current"))
COUNTS, TOUCHED, STAMPS = _array("counts", rt.INT64S), _array("touched", rt.INT64S), _array("stamps", rt.UINT32S)
GOALS, PRICES, WIDTHS = (_array(each, rt.FLOAT64S) for each in ("goals", "prices", "widths"))


@dataclass
class TermLines:
    """The lines of terms, by shape.

    The shapes: an edge (u, v), a triangle (u, v, w), a vertex v of a row, and the row of an edge.
    """

    edges: list[str] = field(default_factory=list)
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
    arguments |= {array: type_ for array, type_ in ARRAYS.items() if array in used and array not in arguments}
    return rt.Routine(spelling, arguments, lines=[*looked_up, *lines], **options)  # type: ignore[arg-type]


class WalkRoutines:
    """The routines of a walk, without what serves terms that are not there."""

    def __init__(self, terms: TermLines) -> None:
        change = {"sign": rt.FLOAT64, "stamp": rt.UINT32}
        self.all: list[rt.Routine] = []
        self._edge = self._part("change_edge", {"u": rt.UINT32, "v": rt.UINT32, **change}, terms.edges)
        triangle = {"u": rt.UINT32, "v": rt.UINT32, "w": rt.UINT32, **change}
        self._triangle = self._part("change_triangle", triangle, terms.triangles)
        self._weigh = self._part("weigh", {"v": rt.UINT32}, terms.weights)
        several = {"rows": rt.FLOAT64_ROWS, "first": rt.UINT64, "count": rt.UINT64, "sign": rt.FLOAT64}
        each = ["    for e in range(first, first + count):", *(f"    {line}" for line in terms.closes)]
        self._close = self._part("close", several, each if terms.closes else [])
        if self._weigh is not None:
            self._entry("weigh_vertices", {}, self._weigh_vertices)
        self._entry("evaluate", {}, self._evaluate)
        self._entry("measure_losses", {"losses": rt.FLOAT64S}, self._measure_losses)
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

    def _weigh_vertices(self, writer: Writer) -> None:
        assert self._weigh is not None
        writer.line(f"for n in range(len({WEIGHTS})):", f"    {rt.call_by_name(self._weigh, v='np.uint32(n)')}")

    def _measure_losses(self, writer: Writer) -> None:
        measured = rt.call(loss, f"{CURRENT}[o] - {GOALS}[o]", f"{WIDTHS}[o]")
        writer.line("for o in range(len(losses)):", f"    losses[o] = {measured}")

    def _evaluate(self, writer: Writer) -> None:
        line = writer.line
        line("stamp, mark = np.uint32(1), np.uint32(0)", f"{MARKS}[:, :] = 0", f"{STAMPS}[:] = 0")
        line(f"{ACC}[:] = 0.0", f"{CURRENT}[:] = 0.0", f"{COUNTS}[0] = 0")
        if self._close is not None:
            line(f"{ROWS}[:, :] = 0.0")
        with writer.block(f"for i in range(np.uint64(len({EDGES}))):"):
            line(f"u, v = {EDGES}[i, 0], {EDGES}[i, 1]", *self._changes("u", "v", "1.0", "stamp"))
            if self._triangle is not None or self._close is not None:
                line("mark = np.uint32(mark + np.uint32(1))")
                line(rt.call_by_name(proposals.mark_neighbours, vertex="u", side="0"))
            if self._triangle is not None:
                with writer.block(f"for k in range({STARTS}[v], {STARTS}[v + ONE]):"):
                    line(f"w = {NEIGHBOURS}[k]")
                    called = rt.call_by_name(self._triangle, sign="1.0")
                    writer.when(f"{MARKS}[w, 0] == mark and w > u and w > v", called)
            if self._close is not None:
                line(rt.call_by_name(proposals.sum_rows, edge="i"))
        if self._close is not None:
            line(self._closing(ROWS, "0", f"len({EDGES})", "1.0"))
        line(rt.call_by_name(proposals.settle_sums))
        line(f"for n in range({COUNTS}[0]):", f"    {CURRENT}[{TOUCHED}[n]] = {DELTA}[{TOUCHED}[n]]")

    def _walk(self, writer: Writer) -> None:
        line = writer.line
        line("evaluated = accepted = 0", "mark = np.uint32(0)", f"{MARKS}[:, :] = 0", f"{STAMPS}[:] = 0")
        line(f"most = {rt.call_by_name(proposals.most_chances)}")
        places = "1" if self._close is None else f"{COMMON}.shape[1] + len({SPARE})"
        line(f"stride = np.uint32({places})")
        with writer.block("for _ in range(steps):"):
            self._propose(writer)
            for u, v, sign in (("a", "b", "-1.0"), ("p", "q", "-1.0"), ("a", "q", "1.0"), ("p", "b", "1.0")):
                line(*self._changes(u, v, sign, "mark"))
            self._list_common(writer)
            self._change_triangles(writer, "b", ("a", 0), ("p", 1), "q")
            self._change_triangles(writer, "q", ("p", 1), ("a", 0), "b")
            self._change_rows(writer)
            line(rt.call_by_name(proposals.settle_sums, stamp="mark"), "evaluated += 1")
            self._judge(writer)
            line(f"level = {rt.call_by_name(rt.draw)}")
            # most exchanges are refused whatever the chances, so these are computed where they decide
            ratio = rt.call_by_name(proposals.chances)
            writer.when("closing > 0.0", f"likely = likely * {ratio} if level < likely * most else 0.0")
            kept = [f"for n in range({COUNTS}[0]):", f"    {CURRENT}[{TOUCHED}[n]] += {DELTA}[{TOUCHED}[n]]"]
            if self._close is not None:
                kept += [_copied(FRESH, "0", ROWS, "i"), _copied(FRESH, "1", ROWS, "j")]
                kept += ["for n in range(held):", f"    {_copied(SPARE, 'n', ROWS, f'{HELD_EDGES}[n]')}"]
            kept.append(rt.call_by_name(proposals.exchange))
            writer.when("level < likely", "accepted += 1", *kept)
        line("tallies[0] += evaluated", "tallies[1] += accepted", "tallies[2] += steps")

    def _propose(self, writer: Writer) -> None:
        """Draw an exchange; the neighbours of a and p are marked after it."""
        mark = proposals.mark_neighbours if self._close is None else proposals.mark_places
        writer.line(f"drawn, a, b, p, q, i, j = {rt.call_by_name(proposals.draw_ends)}")
        writer.when("not drawn", "continue")
        writer.line("mark = np.uint32(mark + stride)")
        for vertex, side, far in (("a", "0", "q"), ("p", "1", "b")):
            writer.line(rt.call_by_name(mark, vertex=vertex, side=side))
            writer.when(f"{MARKS}[{far}, {side}] >= mark", "continue")
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

    def _changes(self, u: str, v: str, sign: str, stamp: str) -> list[str]:
        if self._edge is None:
            return []
        return [rt.call_by_name(self._edge, u=one, v=other, sign=sign, stamp=stamp) for one, other in ((u, v), (v, u))]

    def _list_common(self, writer: Writer) -> None:
        """List the neighbours of b and of q that are neighbours of a or p.

        All that is lost or won is at these.
        """
        listed = [rt.call_by_name(proposals.list_common, vertex=v, side=f"np.uint64({n})") for n, v in enumerate("bq")]
        if self._triangle is None and self._close is None:
            writer.when("closing > 0.0", *listed)
        else:
            writer.line(*listed)

    def _change_triangles(
        self, writer: Writer, near: str, lost: tuple[str, int], won: tuple[str, int], other: str
    ) -> None:
        """Change the triangles at the common neighbours of the pairs that a vertex loses and wins.

        See `note_events`.
        """
        if self._triangle is None:
            return
        row = lost[1]
        with writer.block(f"for n in range({COMMON}[{row}, 0]):"):
            writer.line(f"w = {NEIGHBOURS}[{COMMON}[{row}, n + ONE]]")
            cut = f" and w != {lost[0]} and w != {other}"
            for (far, side), sign, more in ((lost, "-1.0", ""), (won, "1.0", cut)):
                called = rt.call_by_name(self._triangle, u=far, v=near, sign=sign, stamp="mark")
                writer.when(f"{MARKS}[w, {side}] >= mark{more}", called)

    def _change_rows(self, writer: Writer) -> None:
        if self._close is None:
            return
        line = writer.line
        line(f"for r in range({FRESH}.shape[1]):", f"    {FRESH}[0, r] = {FRESH}[1, r] = 0.0")
        line(f"{COUNTS}[1] = {COUNTS}[2] = 0")
        for near, lost, won, other, sides in (("b", "a", "p", "q", "01"), ("q", "p", "a", "b", "10")):
            ends = {"near": near, "lost": lost, "won": won, "other": other}
            lost_side, won_side = (f"np.uint64({side})" for side in sides)
            line(rt.call_by_name(proposals.note_events, lost_side=lost_side, won_side=won_side, **ends))
        line(f"held = np.uint64({COUNTS}[2])")
        line("for n in range(held):", f"    {_copied(ROWS, f'{HELD_EDGES}[n]', SPARE, 'n')}")
        line(*(self._closing(*rows, "-1.0") for rows in ((ROWS, "i", "1"), (ROWS, "j", "1"), (SPARE, "0", "held"))))
        slot, vertex, won = (f"{EVENTS}[n, {column}]" for column in range(3))
        given = f"np.uint64({vertex})", SPARE, f"np.uint64({slot})", f"1.0 if {won} else -1.0"
        line(f"for n in range(np.uint64({COUNTS}[1])):", f"    {rt.call(proposals.add_row, WEIGHTS, *given)}")
        line(self._closing(SPARE, "0", "held", "1.0"), self._closing(FRESH, "0", "2", "1.0"))

    def _closing(self, rows: str, first: str, count: str, sign: str) -> str:
        assert self._close is not None
        span = {"first": f"np.uint64({first})", "count": f"np.uint64({count})"}
        return rt.call_by_name(self._close, rows=rows, sign=sign, **span)


def _copied(source: str, m: str, target: str, n: str) -> str:
    """The code that copies a row."""
    return rt.call(proposals.copy_row, source, f"np.uint64({m})", target, f"np.uint64({n})")
