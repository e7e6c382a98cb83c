"""The inner loops of random walks over the tables of a generated module.

What is proposed is evaluated, and kept with probability `min(1, ratio · exp(power · (score before − score after)))`,
the ratio being how much likelier the reverse of the proposal is to be proposed. A step for which a table is full is not
done, and takes nothing from the random numbers.

`tallies` counts proposals that were evaluated, those accepted, and steps done; then, where their number changes, the
edges, and whether there is no room for one more.
"""

from __future__ import annotations

from dataclasses import dataclass

from wpinq.engines.incremental.compiled.neighbours.proposals import (
    chances,
    draw_ends,
    exchange,
    list_common,
    mark_neighbours,
)
from wpinq.engines.incremental.compiled.routines.calculation import draw
from wpinq.engines.incremental.compiled.routines.routine import (
    BOOLEAN,
    FLOAT64,
    INT64,
    INT64_ROWS,
    INT64S,
    STATE,
    UINT32,
    UINT32_ROWS,
    UINT32S,
    UINT64_ROWS,
    UINT64S,
    Routine,
    call,
)
from wpinq.engines.incremental.compiled.routines.store import undo
from wpinq.engines.incremental.compiled.tables.arena import HashTable

_DRAW = call(draw, "seeds")
_UNDO = call(undo, "load(state, LOG_START)")

_DECIDED = f"""\
        if load(state, STATUS) != 0:
            {_UNDO}
            seeds[0], seeds[1] = first, second
            done -= 1
            break
        tallies[0] += 1
        likely = ratio * exp(min(700.0, power * (before - as_float(load(state, SCORE)))))
        if not {_DRAW} < likely:
            {_UNDO}
        else:
            tallies[1] += 1
            save(state, LOG, load(state, LOG_START))
"""

_COMMON = {"labels": INT64_ROWS, "seeds": UINT64S, "tallies": INT64S, "symmetric": INT64, "steps": INT64}
_GRAPH = {"edges": UINT32_ROWS, "starts": UINT64S, "neighbours": UINT32S, "ids": UINT32S}
_GRAPH |= {"marks": UINT32_ROWS, "common": UINT64_ROWS}
_MARK = ["mark", "starts", "neighbours", "marks"]


@dataclass(frozen=True, slots=True)
class WalkLoops:
    """The loop of a `SwapWalk` or an `EdgeWalk` on a source of edges: extra entry points of a module of tables."""

    source: str
    swaps: bool

    def routines(self, kept: HashTable, moved: HashTable, outputs: list[HashTable], process: Routine) -> list[Routine]:
        """The loop, and what it calls."""
        begin = Routine("begin", {STATE: INT64S}, FLOAT64)
        begin.lines = [*(f"    {table.clear()}" for table in outputs), "    return as_float(load(state, SCORE))"]
        change = _change_edge(moved)
        if self.swaps:
            return [begin, change, _swap_chunk(begin, change, process)]
        present = _has_edge(kept)
        return [begin, change, present, _edge_chunk(begin, change, present, process)]


def _record(table: HashTable, u: str, v: str) -> list[str]:
    return [f"labels[{end}, {i}]" for end in (u, v) for i in range(table.width // 2)]


def _has_edge(kept: HashTable) -> Routine:
    found = kept.find(_record(kept, "u", "v"))
    arguments = {STATE: INT64S, "labels": INT64_ROWS, "u": UINT32, "v": UINT32}
    return Routine("has_edge", arguments, BOOLEAN, ["    u, v = min(u, v), max(u, v)", f"    return {found} != 0"])


def _change_edge(moved: HashTable) -> Routine:
    gathered = [moved.gather(_record(moved, *ends), "weight") for ends in ("uv", "vu")]
    lines = [
        "    u, v = min(u, v), max(u, v)",
        f"    {gathered[0]}",
        "    if symmetric != 0:",
        f"        {gathered[1]}",
    ]
    types = {"labels": INT64_ROWS, "symmetric": INT64, "u": UINT32, "v": UINT32, "weight": FLOAT64}
    return Routine("change_edge", {STATE: INT64S, **types}, lines=lines)


def _changed(change: Routine, pair: str, weight: str) -> str:
    return call(change, "labels", "symmetric", *pair, weight)


def _swap_chunk(begin: Routine, change: Routine, process: Routine) -> Routine:
    arguments = {**_GRAPH, STATE: INT64S, **_COMMON, "power": FLOAT64, "closing": FLOAT64}
    text = f"""\
    next_ = np.uint32(1)
    marks[:, :] = 0
    mark = np.uint32(0)
    done = 0
    while done < steps:
        first, second = seeds[0], seeds[1]
        done += 1
        drawn, a, b, p, q, i, j = {call(draw_ends, *["seeds", "closing", "edges", "starts", "neighbours", "ids"])}
        if not drawn:
            continue
        mark = np.uint32(mark + next_)
        {call(mark_neighbours, "a", "0", *_MARK)}
        if marks[q, 0] == mark:
            continue
        {call(mark_neighbours, "p", "1", *_MARK)}
        if marks[b, 1] == mark:
            continue
        ratio = 1.0
        if closing > 0.0:
            {call(list_common, "b", "np.uint64(0)", *_MARK, "common")}
            {call(list_common, "q", "np.uint64(1)", *_MARK, "common")}
            ratio = {call(chances, *"abpq", "mark", "closing", "edges", *_MARK[1:], "common")}
        before = {call(begin)}
        {_changed(change, "ab", "-1.0")}
        {_changed(change, "pq", "-1.0")}
        {_changed(change, "aq", "1.0")}
        {_changed(change, "pb", "1.0")}
        {call(process)}
{_DECIDED}\
            {call(exchange, *"abpqij", "edges", "starts", "neighbours", "ids")}
    tallies[2] += done"""
    return Routine("swap_chunk", arguments, lines=text.split("\n"), entry=True)


def _edge_chunk(begin: Routine, change: Routine, present: Routine, process: Routine) -> Routine:
    """Edges stand in the first `tallies[3]` rows.

    With probability `changing` it adds or removes one, either with probability 1/2; else it replaces one. A pair to add
    is drawn uniformly out of n² ordered ones and refused where it is a loop or an edge. So of m edges a pair is added
    with density 1/n² · 2 · 1/2 and an edge removed with density 1/m · 1/2, and a replacement is as likely as its
    reverse.
    """
    arguments = {STATE: INT64S, "edges": UINT32_ROWS, **_COMMON, "power": FLOAT64, "changing": FLOAT64}
    text = f"""\
    edge_count, vertices = tallies[3], len(labels)
    pairs = 0.5 * np.float64(vertices) * np.float64(vertices)
    done = 0
    while done < steps:
        first, second = seeds[0], seeds[1]
        done += 1
        adds = removes = True
        ratio = 1.0
        if changing > 0.0 and {_DRAW} < changing:
            adds = {_DRAW} < 0.5
            removes = not adds
            ratio = pairs / (edge_count + 1.0) if adds else edge_count / pairs
        if adds and not removes and edge_count == len(edges):
            seeds[0], seeds[1] = first, second
            done -= 1
            tallies[4] = 1
            break
        if removes and edge_count == 0:
            continue
        i = np.uint64({_DRAW} * edge_count) if removes else np.uint64(edge_count)
        a = b = p = q = np.uint32(0)
        if adds:
            p, q = np.uint32({_DRAW} * vertices), np.uint32({_DRAW} * vertices)
            if p == q or {call(present, "labels", "p", "q")}:
                continue
        before = {call(begin)}
        if removes:
            a, b = edges[i, 0], edges[i, 1]
            {_changed(change, "ab", "-1.0")}
        if adds:
            {_changed(change, "pq", "1.0")}
        {call(process)}
{_DECIDED}\
            if not removes:
                edge_count += 1
            if adds:
                edges[i, 0], edges[i, 1] = p, q
            else:
                edge_count -= 1
                edges[i, 0], edges[i, 1] = edges[edge_count, 0], edges[edge_count, 1]
    tallies[2] += done
    tallies[3] = edge_count"""
    return Routine("edge_chunk", arguments, lines=text.split("\n"), entry=True)
