"""The text of the inner loops of random walks over the tables of a generated module.

What is proposed is evaluated, and kept with probability `min(1, ratio · exp(pow · (score before − score after)))`, the
ratio being how much likelier the reverse of the proposal is to be proposed. A step for which a table is full is not
done, and takes nothing from the random numbers.

`tallies` counts proposals that were evaluated, those accepted, and steps done; then, where their number changes, the
edges, and whether there is no room for one more.
"""

from __future__ import annotations

from dataclasses import dataclass

from wpinq.engines.incremental.compiled import proposals
from wpinq.engines.incremental.compiled.tables import Table

_SWAPS = """
@njit
def swap_chunk(@GRAPH@, A, labels, seeds, tallies, symmetric, steps, real_pow, real_closing):
    edge_count = len(edges)
    next_ = np.uint32(1)
    marks[:, :] = 0
    mark = np.uint32(0)
    done = 0
    while done < steps:
        first, second = seeds[0], seeds[1]
        done += 1
@DRAWN@
        ratio = 1.0
        if real_closing > 0.0:
            ratio = chances(a, b, p, q, starts, neighbours, marks, mark, edge_count, real_closing)
        before = begin(A)
        change_edge(A, labels, symmetric, a, b, -1.0)
        change_edge(A, labels, symmetric, p, q, -1.0)
        change_edge(A, labels, symmetric, a, q, 1.0)
        change_edge(A, labels, symmetric, p, b, 1.0)
        process(A)
@DECIDED@
            exchange(a, b, p, q, i, j, edges, starts, neighbours, ids)
    tallies[2] += done
"""

_EDGES = """
@njit
def edge_chunk(A, edges, labels, seeds, tallies, symmetric, steps, real_pow, real_changing):
    edge_count, vertices = tallies[3], len(labels)
    pairs = 0.5 * np.float64(vertices) * np.float64(vertices)
    done = 0
    while done < steps:
        first, second = seeds[0], seeds[1]
        done += 1
        adds = removes = True
        ratio = 1.0
        if real_changing > 0.0 and draw(seeds) < real_changing:
            adds = draw(seeds) < 0.5
            removes = not adds
            ratio = pairs / (edge_count + 1.0) if adds else edge_count / pairs
        if adds and not removes and edge_count == len(edges):
            seeds[0], seeds[1] = first, second
            done -= 1
            tallies[4] = 1
            break
        if removes and edge_count == 0:
            continue
        i = np.uint64(draw(seeds) * edge_count) if removes else np.uint64(edge_count)
        a = b = p = q = np.uint32(0)
        if adds:
            p, q = np.uint32(draw(seeds) * vertices), np.uint32(draw(seeds) * vertices)
            if p == q or has_edge(A, labels, p, q):
                continue
        before = begin(A)
        if removes:
            a, b = edges[i, 0], edges[i, 1]
            change_edge(A, labels, symmetric, a, b, -1.0)
        if adds:
            change_edge(A, labels, symmetric, p, q, 1.0)
        process(A)
@DECIDED@
            if not removes:
                edge_count += 1
            if adds:
                edges[i, 0], edges[i, 1] = p, q
            else:
                edge_count -= 1
                edges[i, 0], edges[i, 1] = edges[edge_count, 0], edges[edge_count, 1]
    tallies[2] += done
    tallies[3] = edge_count
"""

_DECIDED = """
        if load(A, STATUS) != 0:
            undo(A, load(A, LOG_START))
            seeds[0], seeds[1] = first, second
            done -= 1
            break
        tallies[0] += 1
        likely = ratio * exp(min(700.0, real_pow * (before - as_float(load(A, SCORE)))))
        if not draw(seeds) < likely:
            undo(A, load(A, LOG_START))
        else:
            tallies[1] += 1
            save(A, LOG, load(A, LOG_START))
"""

GRAPH = "edges, starts, neighbours, ids, marks"


@dataclass(frozen=True, slots=True)
class Walk:
    """Which walk a module is for: the name of its source of edges, and whether that is one by swaps."""

    source: str
    swaps: bool


def loop(swaps: bool, source: Table, changes: Table, moved: list[Table]) -> list[str]:
    """The loop of a `SwapWalk` or an `EdgeWalk` on a source of edges, and what it calls.

    An `EdgeWalk` holds edges in the first `tallies[3]` rows. With probability `real_changing` it adds or removes one,
    either with probability 1/2; else it replaces one. A pair to add is drawn uniformly out of n² ordered ones and
    refused where it is a loop or an edge. So of m edges a pair is added with density 1/n² · 2 · 1/2 and an edge
    removed with density 1/m · 1/2, and a replacement is as likely as its reverse.
    """
    half, width = source.width // 2, source.width

    def record(u: str, v: str) -> str:
        return ", ".join(f"labels[{end}, {i}]" for end in (u, v) for i in range(half))

    begin = ["    " + f"clear(A, {table.name})" for table in moved]
    texts = [
        _SWAPS.replace("@GRAPH@", GRAPH).replace("@DRAWN@", proposals.drawn(keep_ids=False)) if swaps else _EDGES,
        "@njit\n" + "\n".join(["def begin(A):", *begin, "    return as_float(load(A, SCORE))"]),
        f"""
@njit
def has_edge(A, labels, u, v):
    u, v = min(u, v), max(u, v)
    return find_{width}(A, {source.name}, {record("u", "v")}) != 0
""",
        f"""
@njit
def change_edge(A, labels, symmetric, u, v, weight):
    u, v = min(u, v), max(u, v)
    gather_{width}(A, {changes.name}, {record("u", "v")}, weight)
    if symmetric != 0:
        gather_{width}(A, {changes.name}, {record("v", "u")}, weight)
""",
    ]
    return [text.replace("@DECIDED@", _DECIDED.strip("\n")) for text in texts]
