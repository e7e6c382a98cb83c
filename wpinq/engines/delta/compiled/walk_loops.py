"""The loops of walks over the tables of a generated module.

The loop of a `SwapWalk` or an `EdgeWalk`: an extra entry point of a module of tables, made from the table of edges,
that of their changes, the changes of outputs, and the routine that applies changes.

A proposal is evaluated, and kept with probability `min(1, ratio · exp(power · (score before − score after)))`. The
ratio says how much likelier the reverse of the proposal is to be proposed. A step for which a table is full is not
done, and takes nothing from the random numbers.

`tallies` counts proposals that were evaluated, those accepted, and steps done; then, where their number changes,
the edges, and whether there is no room for one more.
"""

from __future__ import annotations

from collections.abc import Sequence

from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.adjacency import graph
from wpinq.engines.delta.compiled.hash_table import undo
from wpinq.engines.delta.compiled.hash_tables.arena import HashTable

_DRAW = rt.call(rt.draw, "seeds")
_UNDO = rt.call(undo, "load(state, LOG_START)")

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

_COMMON = {"labels": rt.INT64_ROWS, "seeds": rt.UINT64S, "tallies": rt.INT64S, "symmetric": rt.INT64, "steps": rt.INT64}
_GRAPH = {array: rt.ARRAYS[array] for array in graph.SWAPPED}


def _begin(outputs: Sequence[HashTable]) -> rt.Routine:
    lines = [*(f"    {table.clear()}" for table in outputs), "    return as_float(load(state, SCORE))"]
    return rt.Routine("begin", {rt.STATE: rt.INT64S}, rt.FLOAT64, lines)


def _record(table: HashTable, u: str, v: str) -> list[str]:
    return [f"labels[{end}, {i}]" for end in (u, v) for i in range(table.width // 2)]


def _has_edge(kept: HashTable) -> rt.Routine:
    lines = ["    u, v = min(u, v), max(u, v)", f"    return {kept.find(_record(kept, 'u', 'v'))} != 0"]
    arguments = {rt.STATE: rt.INT64S, "labels": rt.INT64_ROWS, "u": rt.UINT32, "v": rt.UINT32}
    return rt.Routine("has_edge", arguments, rt.BOOLEAN, lines)


def _change_edge(moved: HashTable) -> rt.Routine:
    gather = [moved.gather(_record(moved, *ends), "weight") for ends in ("uv", "vu")]
    lines = ["    u, v = min(u, v), max(u, v)", f"    {gather[0]}", "    if symmetric != 0:", f"        {gather[1]}"]
    types = {"labels": rt.INT64_ROWS, "symmetric": rt.INT64, "u": rt.UINT32, "v": rt.UINT32, "weight": rt.FLOAT64}
    return rt.Routine("change_edge", {rt.STATE: rt.INT64S, **types}, lines=lines)


def _changed(change: rt.Routine, pair: str, weight: str) -> str:
    return rt.call(change, "labels", "symmetric", *pair, weight)


def swap_loop(kept: HashTable, moved: HashTable, outputs: Sequence[HashTable], process: rt.Routine) -> list[rt.Routine]:
    """The loop of a `SwapWalk`, and what it calls."""
    begin, change = _begin(outputs), _change_edge(moved)
    arguments = {**_GRAPH, rt.STATE: rt.INT64S, **_COMMON, "power": rt.FLOAT64, "closing": rt.FLOAT64}
    text = f"""\
    next_ = np.uint32(1)
    marks[:, :] = 0
    mark = np.uint32(0)
    done = 0
    while done < steps:
        first, second = seeds[0], seeds[1]
        done += 1
        drawn, a, b, p, q, i, j = {rt.call_by_name(graph.draw_ends)}
        if not drawn:
            continue
        mark = np.uint32(mark + next_)
        {rt.call_by_name(graph.mark_neighbours, vertex="a", side="0")}
        if marks[q, 0] == mark:
            continue
        {rt.call_by_name(graph.mark_neighbours, vertex="p", side="1")}
        if marks[b, 1] == mark:
            continue
        ratio = 1.0
        if closing > 0.0:
            {rt.call_by_name(graph.list_common, vertex="b", side="np.uint64(0)")}
            {rt.call_by_name(graph.list_common, vertex="q", side="np.uint64(1)")}
            ratio = {rt.call_by_name(graph.chances)}
        before = {rt.call(begin)}
        {_changed(change, "ab", "-1.0")}
        {_changed(change, "pq", "-1.0")}
        {_changed(change, "aq", "1.0")}
        {_changed(change, "pb", "1.0")}
        {rt.call(process)}
{_DECIDED}\
            {rt.call_by_name(graph.exchange)}
    tallies[2] += done"""
    return [begin, change, rt.Routine("swap_chunk", arguments, lines=text.split("\n"), entry=True)]


def edge_loop(kept: HashTable, moved: HashTable, outputs: Sequence[HashTable], process: rt.Routine) -> list[rt.Routine]:
    """The loop of an `EdgeWalk`, and the routines that it calls.

    Edges stand in the first `tallies[3]` rows. With probability `changing` it adds or removes one, either with
    probability 1/2; else it replaces one. A pair to add is drawn uniformly out of n² ordered ones and refused where it
    is a loop or an edge. So of m edges a pair is added with density 1/n² · 2 · 1/2, and an edge removed with density
    1/m · 1/2. A replacement is as likely as its reverse.
    """
    begin, change, present = _begin(outputs), _change_edge(moved), _has_edge(kept)
    arguments = {rt.STATE: rt.INT64S, "edges": rt.UINT32_ROWS, **_COMMON, "power": rt.FLOAT64, "changing": rt.FLOAT64}
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
            if p == q or {rt.call(present, "labels", "p", "q")}:
                continue
        before = {rt.call(begin)}
        if removes:
            a, b = edges[i, 0], edges[i, 1]
            {_changed(change, "ab", "-1.0")}
        if adds:
            {_changed(change, "pq", "1.0")}
        {rt.call(process)}
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
    return [begin, change, present, rt.Routine("edge_chunk", arguments, lines=text.split("\n"), entry=True)]
