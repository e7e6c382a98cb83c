"""The text of the proposals of walks by swaps, which generated loops share.

A plain proposal draws two edges {a, b}, {p, q}, the second in either direction, and exchanges ends: {a, q}, {p, b}.
A closing proposal draws a wedge a-h-q, by an edge in either direction and a neighbour of h, then a neighbour b of a
and a neighbour p of q: the same exchange makes the edge {a, q}, which closes the wedge.

Both kinds can propose one and the same exchange, so the Metropolis-Hastings ratio is that of the mixture. Of all
proposals let γ be closing. Out of m edges, an exchange is then proposed with density

    (1 − γ) / m²  +  γ / m · ( Σ_w 1/d_w / (d_a d_q)  +  Σ_w 1/d_w / (d_p d_b) )

where the sums go over the common neighbours w of the ends of each pair that is added, those left out that lose an
edge of the wedge. The reverse exchange adds the two pairs that are removed here, whose common neighbours no edge of
the exchange touches; degrees stay.
"""

from __future__ import annotations

_DRAWN = """
        i = np.uint64(draw(seeds) * edge_count)
        if real_closing > 0.0 and draw(seeds) < real_closing:
            h, a = edges[i, 0], edges[i, 1]
            if draw(seeds) < 0.5:
                h, a = a, h
            q = neighbours[starts[h] + np.uint64(draw(seeds) * (starts[h + ONE] - starts[h]))]
            k = starts[a] + np.uint64(draw(seeds) * (starts[a + ONE] - starts[a]))
            b, i = neighbours[k], np.uint64(ids[k])
            k = starts[q] + np.uint64(draw(seeds) * (starts[q + ONE] - starts[q]))
            p, j = neighbours[k], np.uint64(ids[k])
            if b == h or p == h:
                continue
        else:
            j = np.uint64(draw(seeds) * edge_count)
            turned = draw(seeds) < 0.5
            a, b = edges[i, 0], edges[i, 1]
            p, q = edges[j, 0], edges[j, 1]
            if turned:
                p, q = q, p
        if a == q or p == b or a == p or b == q:
            continue
        mark = np.uint32(mark + next_)
        for k in range(starts[a], starts[a + ONE]):
            marks[neighbours[k], 0] = mark@HELD_0@
        if marks[q, 0] == mark:
            continue
        for k in range(starts[p], starts[p + ONE]):
            marks[neighbours[k], 1] = mark@HELD_1@
        if marks[b, 1] == mark:
            continue
"""


def drawn(keep_ids: bool) -> str:
    """Draws an exchange; `continue` where it is none. The neighbours of a and p are marked after it.

    `keep_ids` is whether `found` is to have the number of the edge to each of them.
    """
    text = _DRAWN.strip("\n")
    for side in ("0", "1"):
        kept = f"\n            found[neighbours[k], {side}] = ids[k]" if keep_ids else ""
        text = text.replace(f"@HELD_{side}@", kept)
    return text


FUNCTIONS = '''
@njit(**OPTIONS)
def chances(a, b, p, q, starts, neighbours, marks, mark, edge_count, real_closing):
    """How much likelier the reverse of an exchange is to be proposed than the exchange itself."""
    added_aq = added_pb = removed_ab = removed_pq = 0.0
    for k in range(starts[b], starts[b + ONE]):
        w = neighbours[k]
        inverse = 1.0 / np.float64(starts[w + ONE] - starts[w])
        if marks[w, 0] == mark:
            removed_ab += inverse
        if marks[w, 1] == mark and w != a and w != q:
            added_pb += inverse
    for k in range(starts[q], starts[q + ONE]):
        w = neighbours[k]
        inverse = 1.0 / np.float64(starts[w + ONE] - starts[w])
        if marks[w, 1] == mark:
            removed_pq += inverse
        if marks[w, 0] == mark and w != b and w != p:
            added_aq += inverse
    d_a, d_b = np.float64(starts[a + ONE] - starts[a]), np.float64(starts[b + ONE] - starts[b])
    d_p, d_q = np.float64(starts[p + ONE] - starts[p]), np.float64(starts[q + ONE] - starts[q])
    plain = (1.0 - real_closing) / edge_count
    forward = plain + real_closing * (added_aq / (d_a * d_q) + added_pb / (d_p * d_b))
    reverse = plain + real_closing * (removed_ab / (d_a * d_b) + removed_pq / (d_p * d_q))
    return reverse / forward


@njit(**OPTIONS)
def turn(a, b, q, i, starts, neighbours, ids):
    """Put q where b stands among the neighbours of a; the edge there is i now."""
    k = starts[a]
    while neighbours[k] != b:
        k += ONE
    neighbours[k] = q
    ids[k] = i


@njit(**OPTIONS)
def exchange(a, b, p, q, i, j, edges, starts, neighbours, ids):
    """Edge i becomes {a, q}, edge j becomes {p, b}."""
    turn(a, b, q, i, starts, neighbours, ids)
    turn(b, a, p, j, starts, neighbours, ids)
    turn(p, q, b, j, starts, neighbours, ids)
    turn(q, p, a, i, starts, neighbours, ids)
    edges[i, 0], edges[i, 1] = a, q
    edges[j, 0], edges[j, 1] = p, b
'''
