"""Swaps after the walk, with degrees kept: of triangles, cores and components.

Triangles go where none may be, until clustering is as estimated, and come or go until their number is in its interval.
A walk by swaps leaves small parts by themselves, for few of its numbers tell of them. An edge {p, q} on a cycle and an
edge {a, b} of another component become {a, q} and {p, b}: the components are one, and where no edge of the two closes a
triangle, all triangles stay. The largest core is brought to a released one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.random import Generator

from wpinq.graphs.synthesis.random_graphs import import_igraph, local_clustering
from wpinq.runtime.arrays import Integers

#: Edges that are looked at for each swap, and where it is hard to find one.
_TRIES, _MORE = 64, 1024
#: Steps from a triangle to the edge that it is taken apart with: near, so that what is local stays so.
_STEPS = 4
#: The part of triangles that may lack and still be made here.
_LACKING = 0.02
#: Around a leaf, nodes that are looked at for another; and leaves in a row without one, after which the search ends.
_MOST_SEEN, _MOST_MISSED = 500, 200


def remove_triangles(edges: Integers, most: float, rng: Generator, *, count: bool = False) -> Integers:
    """The graph with triangles taken apart until the sum of its clustering is at most `most`.

    An edge {a, b} of a triangle and a near edge {p, q}, or one of another component, become {a, q} and {p, b}.
    Degrees stay, no other triangle is made, and what was connected still is, by the triangle's third node.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        A simple graph.
    most : float
        The sum of the clustering of all nodes to come down to.
    rng : Generator
        The random generator.
    count : bool
        Whether `most` is the number of triangles instead.

    Returns
    -------
    array of int64, shape (edges, 2)

    Examples
    --------
    >>> triangles = np.array([(3 * k + i, 3 * k + (i + 1) % 3) for k in range(5) for i in range(3)])
    >>> made = remove_triangles(triangles, 0.0, np.random.default_rng(1))
    >>> import_igraph().Graph(made.tolist()).cliques(3, 3)
    []
    """
    near = [set(row) for row in import_igraph().Graph(edges.tolist()).get_adjlist()]
    part = _components(edges)
    adds = [1 / 3 if count else 2 / max(len(row) * (len(row) - 1), 1) for row in near]
    order = rng.permutation(edges).tolist()
    left = sum(adds[c] for a, b in order for c in near[a] & near[b])
    for a, b in order:
        for attempt in range(2 * _TRIES):
            if left <= most or b not in near[a] or near[a].isdisjoint(near[b]):
                break
            p, q = order[int(rng.random() * len(order))]
            if attempt < _TRIES:
                q = a
                for _ in range(_STEPS):
                    p, q = q, sorted(near[q])[int(rng.random() * len(near[q]))]
            elif part[p] == part[a]:  # an edge from here to there would be a shortcut
                continue
            if q in near[p] and _may_join(near, a, q) and _may_join(near, p, b):
                left -= sum(adds[u] + adds[v] + adds[c] for u, v in ((a, b), (p, q)) for c in near[u] & near[v])
                _swap(near, a, b, p, q)
    return _edges_of(near)


def with_triangles(edges: Integers, low: float, high: float, rng: Generator) -> Integers:
    """The graph with its number of triangles brought into an interval, if it can.

    Above, they are taken apart as by `remove_triangles`. Below by up to a fiftieth, wedges are closed: more is for a
    walk to do. Of two neighbours a, b of a node, edges {a, x} and {b, y} that close no triangle become {a, b} and
    {x, y}. Swaps that close many triangles come first: few are needed, and clustering hardly changes. Degrees stay, and
    no triangle goes. The graph may fall apart.

    Parameters
    ----------
    edges, rng
        As for `remove_triangles`.
    low, high : float
        The ends of the interval of the number of triangles.

    Returns
    -------
    array of int64, shape (edges, 2)

    Examples
    --------
    >>> star = [(0, i) for i in range(1, 9)] + [(i, i + 8) for i in range(1, 9)]
    >>> others = [(3 * k + i, 3 * k + (i + 1) % 3) for k in range(10, 110) for i in range(3)]
    >>> made = with_triangles(np.array(star + others), 101, 102, np.random.default_rng(1))
    >>> len(import_igraph().Graph(made.tolist()).cliques(3, 3))
    101
    """
    lacking = low - local_clustering(np.bincount(edges.ravel()), edges)[0]
    if not 0 < lacking <= _LACKING * low:
        return edges if low - lacking <= high else remove_triangles(edges, high, rng, count=True)
    rows = import_igraph().Graph(edges.tolist()).get_adjlist()
    near, order = list(map(set, rows)), np.concatenate([edges, edges[:, ::-1]]).tolist()
    loose = [[x for x in row if near[a].isdisjoint(near[x])] for a, row in enumerate(rows)]
    for turn, i in enumerate(rng.integers(len(order), size=_STEPS * len(order))):
        if lacking <= 0:
            break
        a, c = order[i]
        b = rows[c][int(rng.random() * len(rows[c]))]
        more = len(near[a] & near[b])
        if a != b and b not in near[a] and more >= 4 ** (_STEPS - 1 - turn // len(order)):
            one, other = (  # once more, for swaps so far
                [x for x in loose[p] if x in near[p] and x not in near[q] and near[p].isdisjoint(near[x])]
                for p, q in ((a, b), (b, a))
            )
            way = next(((x, y) for x in one for y in other if y not in near[x]), None)
            if way and (more := more + len(near[way[0]] & near[way[1]])) <= lacking + high - low:
                _swap(near, a, *way, b)
                lacking -= more
    return _edges_of(near)


def _swap(near: list[set[int]], a: int, b: int, p: int, q: int) -> None:
    """The edges {a, b} and {p, q} become {a, q} and {p, b}."""
    for node, *ends in ((a, b, q), (b, a, p), (p, q, b), (q, p, a)):
        near[node] ^= {*ends}  # one goes, the other comes


def _edges_of(near: list[set[int]]) -> Integers:
    return np.array([(a, b) for a, row in enumerate(near) for b in row if a < b], dtype=np.int64).reshape(-1, 2)


def _may_join(near: list[set[int]], one: int, other: int) -> bool:
    """Whether an edge between two nodes is a new one, and closes no triangle."""
    return one != other and other not in near[one] and near[one].isdisjoint(near[other])


def with_core(edges: Integers, low: float, high: float, rng: Generator) -> Integers:
    """The graph with its largest core brought to at least `low` and at most `high`, if it can.

    Edges of a core above are swapped with edges outside, which costs triangles. Its nodes of lowest degree leave it
    first, which takes few swaps. Where no core is so large, some of the innermost nodes are joined: as many as lack the
    fewest edges, each two by one swap. Both ends of the interval are whole numbers.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        A simple graph.
    low, high : float
        The ends of the interval of the largest core.
    rng : Generator
        The random generator.

    Returns
    -------
    array of int64, shape (edges, 2)

    Examples
    --------
    >>> stars = [(hub, 14 + 30 * hub + leaf) for hub in range(14) for leaf in range(30)]
    >>> graph = np.array([*stars, *((500 + i, 500 + j) for i in range(12) for j in range(i))])
    >>> [max(import_igraph().Graph(with_core(graph, k, k, np.random.default_rng(1))).coreness()) for k in (8, 11, 13)]
    [8, 11, 13]
    """
    for _ in range(4):  # of nodes outside some get neighbours in the core, and may then be of one above
        graph = import_igraph().Graph(edges.tolist())
        near, cores = [set(row) for row in graph.get_adjlist()], np.array(graph.coreness())
        if cores.max() > high:
            _thin(near, edges, cores, int(high), rng)
        elif cores.max() < low:
            _thicken(near, cores, np.array(graph.degree()), int(low))
        edges = _edges_of(near)
    return edges


def _thin(near: list[set[int]], edges: Integers, cores: Integers, most: int, rng: Generator) -> None:
    """Swap edges between nodes in cores above `most` with edges outside.

    The node with the fewest neighbours left within goes first, once no more than `most` are left.
    """
    outside = rng.permutation(edges[(cores[edges] < most).all(axis=1)]).tolist()
    # of nodes of high degree first, as those of the core are
    spare = iter(sorted(outside, key=lambda edge: -min(len(near[node]) for node in edge)))
    degree = {a: sum(cores[b] > most for b in near[a]) for a in np.flatnonzero(cores > most).tolist()}
    while degree:
        a = min(degree, key=lambda node: degree[node])
        inner = sorted(near[a] & degree.keys(), key=lambda node: degree[node])
        for b in inner[: max(degree.pop(a) - most, 0)]:
            if way := next(((p, q) for p, q in spare if q not in near[a] and b not in near[p]), None):
                _swap(near, a, b, *way)
        degree |= {b: degree[b] - 1 for b in inner}


def _thicken(near: list[set[int]], cores: Integers, degrees: Integers, least: int) -> None:
    """Join nodes of the innermost cores, until some have `least` neighbours among themselves.

    Where degrees do not allow so many, it is as many as they allow.
    """
    least = min(least, int(np.minimum(np.arange(len(near)), -np.sort(-degrees)).max()))
    able = [node for node in np.lexsort((-degrees, -cores)).tolist() if degrees[node] >= least]
    groups = [set(able[: (least + 1) << k]) for k in range(9)]
    lack = min(({a: max(least - len(near[a] & own), 0) for a in own} for own in groups), key=lambda n: sum(n.values()))
    for a in sorted(lack, key=lambda node: -lack[node]):
        for b in sorted(lack.keys() - near[a] - {a}, key=lambda node: -lack[node]):
            ways = ((x, y) for x in near[a] - lack.keys() for y in near[b] - near[x] - lack.keys() - {x})
            if lack[a] > 0 and (way := next(ways, None)):
                _swap(near, a, *way, b)
                lack |= {a: lack[a] - 1, b: lack[b] - 1}


def split_components(edges: Integers, count: int, rng: Generator) -> Integers:
    """The graph with pairs of leaves split off until it has `count` components, if it can.

    Of two near leaves the edges {a, u} and {b, v} become {a, b} and {u, v}: near, so that no shortcut is made. Leaves
    at nodes of low degree come first, so that degrees hardly mix otherwise than before. No triangle is made.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        A simple graph.
    count : int
        The number of components to come up to.
    rng : Generator
        The random generator.

    Returns
    -------
    array of int64, shape (edges, 2)

    Examples
    --------
    >>> path = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    >>> split_components(path, 2, np.random.default_rng(1)).tolist()
    [[0, 5], [1, 2], [1, 4], [2, 3], [3, 4]]
    """
    left = count - len(set(_components(edges)[edges[:, 0]].tolist()))
    if left <= 0:
        return edges
    near = [set(row) for row in import_igraph().Graph(edges.tolist()).get_adjlist()]
    leaves = rng.permutation([a for a, row in enumerate(near) if len(row) == 1]).tolist()
    missed, alone = 0, set(leaves)
    at = [row & alone for row in near]  # the leaves at each node
    for a in sorted(leaves, key=lambda leaf: len(near[min(near[leaf])])):
        (u,) = near[a]
        if left <= 0 or missed > _MOST_MISSED:
            break
        if len(near[u]) == 1:  # a pair by itself
            continue
        if (found := _near_leaf(near, at, a, u)) is None:
            missed += 1
            continue
        b, v = found
        near[a], near[b], near[u], near[v] = {b}, {a}, near[u] ^ {a, v}, near[v] ^ {b, u}
        at[a], at[b], at[u], at[v] = {b}, {a}, at[u] - {a}, at[v] - {b}
        left, missed = left - 1, 0
    return _edges_of(near)


def _near_leaf(near: list[set[int]], leaves: list[set[int]], leaf: int, end: int) -> tuple[int, int] | None:
    """A leaf near another, and its neighbour, where the neighbours of the two may be joined."""
    seen, layer = {leaf}, {end}
    for _ in range(2 * _STEPS):
        seen |= layer
        for other in sorted(set[int]().union(*(leaves[node] for node in layer)) - seen):
            if _may_join(near, end, min(near[other])):
                return other, min(near[other])
        if len(seen) > _MOST_SEEN:
            break
        layer = set[int]().union(*(near[node] for node in layer)) - seen
    return None


def join_components(edges: Integers, count: int, rng: Generator, most: float = np.inf) -> Integers:
    """The graph with components joined until there are `count`, as far as edges on cycles allow.

    Of the possible swaps some are looked at, and the one taken exchanges ends of the most similar degrees, so that
    degrees hardly mix otherwise than before. Last are components in which each edge closes a triangle: of each one node
    is exchanged for another.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        A simple graph.
    count : int
        The number of components to come down to.
    rng : Generator
        The random generator.
    most : float
        While there are more, triangles are taken apart too, where no other edge is found on a cycle.

    Returns
    -------
    array of int64, shape (edges, 2)
        Its rows are in the order of before.

    Examples
    --------
    >>> squares = np.array([(4 * k + i, 4 * k + (i + 1) % 4) for k in range(5) for i in range(4)])
    >>> made = join_components(squares, 2, np.random.default_rng(1))
    >>> len(import_igraph().Graph(made.tolist()).connected_components())
    2
    """
    labels = _components(edges)[edges[:, 0]]
    return edges if len(np.unique(labels)) <= count else _Joiner(edges, labels, rng).joined(count, most)


def _components(edges: Integers) -> Integers:
    """The number of each node's component."""
    from scipy.sparse import coo_array, csgraph

    pairs = coo_array((np.ones(len(edges)), edges.T), (int(edges.max(initial=-1)) + 1,) * 2)
    return np.asarray(csgraph.connected_components(pairs, directed=False)[1])


class _Joiner:
    """The edges, those of them that are on a cycle, and their components."""

    def __init__(self, edges: Integers, labels: Integers, rng: Generator) -> None:
        self._edges, self._rng = edges.copy(), rng
        graph = import_igraph().Graph(edges.tolist())
        self._near, self._octave = [set(row) for row in graph.get_adjlist()], np.log2(np.maximum(graph.degree(), 1))
        # outside of a spanning tree: all of them together may go, and no part falls apart
        self._free = ~np.isin(np.arange(len(edges)), graph.spanning_tree(return_tree=False))
        order = np.argsort(labels, kind="stable")
        parts = sorted(np.split(order, np.flatnonzero(np.diff(labels[order])) + 1), key=len, reverse=True)
        # those with an open edge on a cycle first: they bring others along; cliques last
        self._parts = sorted(parts[1:], key=lambda part: sum(not self._open(some) for some in (self._own(part), part)))
        self._pool, self._count, self._failed = self._own(parts[0]), len(parts), set[int]()

    def joined(self, count: int, most: float) -> Integers:
        """The edges, once components are joined."""
        for part in self._parts:
            if self._count <= count:
                break
            own, others = self._own(part), self._open(self._pool, free=True)
            one = self._open(own) or self._open(part)
            if not one and self._exchange(part):
                self._count -= 1
                continue
            if self._count > most:  # any edge on a cycle will do
                others = others or self._open(self._pool, _MORE, free=True) or self._some(self._pool, _MORE, free=True)
                one = one or own[:1]
            if one and others:
                self._join(one[0], others)
                self._pool += [i for i in own if i != one[0]]
                self._count -= 1
        return self._edges

    def _own(self, part: Integers) -> list[int]:
        return list(map(int, part[self._free[part]]))

    def _some(self, among: Sequence[int] | Integers, count: int = _TRIES, *, free: bool = False) -> list[int]:
        places = self._rng.random(count if len(among) else 0)
        tries = sorted({int(among[int(place * len(among))]) for place in places})
        return [i for i in tries if self._free[i]] if free else tries

    def _open(self, among: Sequence[int] | Integers, count: int = _TRIES, *, free: bool = False) -> list[int]:
        """Some edges that close no triangle."""
        tries, near = self._some(among, count, free=free), self._near
        return [i for i, (a, b) in zip(tries, self._edges[tries].tolist(), strict=True) if near[a].isdisjoint(near[b])]

    def _exchange(self, part: Integers) -> bool:
        """Exchange the least node of a part for one in as large a clique of the largest component.

        Each takes the triangles of the other, so that clustering stays. Where there is no such node, one with as many
        edges that close no triangle is taken. One of low degree mixes degrees least.
        """
        near, (nodes, edges) = self._near, np.unique(self._edges[part], return_counts=True)
        u, count = int(nodes[np.argmin(edges)]), int(edges.min())
        tries = self._edges[self._some(self._pool, _MORE, free=True)].tolist() if count not in self._failed else []
        ways = sorted([*tries, *(way[::-1] for way in tries)], key=lambda way: len(near[way[0]]))
        for clique, (x, y) in [*product([True], ways), *product([False], {way[0]: way for way in ways}.values())]:
            ends = near[x] & near[y] | {y} if clique else {t for t in near[x] if near[x].isdisjoint(near[t])}
            if clique and (len(ends) != count or any(near[x] & near[t] != ends - {t} for t in ends)):
                continue
            at = self._at(x) if len(ends) >= count else []
            taken = [i for i in at if self._free[i] and not ends.isdisjoint(self._edges[i].tolist())][:count]
            if len(taken) == count:
                for i, j in zip(self._at(u), taken, strict=True):
                    t, z = sum(self._edges[i].tolist()) - u, sum(self._edges[j].tolist()) - x
                    self._edges[i], self._edges[j] = (t, x), (z, u)
                    _swap(near, t, u, z, x)
                self._free[taken[0]] = False
                return True
        self._failed.add(count)
        return False

    def _at(self, node: int) -> list[int]:
        return (np.flatnonzero(self._edges.ravel() == node) // 2).tolist()

    def _join(self, one: int, others: list[int]) -> None:
        """Swap an edge with the one of the others that has the most similar end."""
        (a, b), octave = self._edges[one], self._octave
        ways = [(i, *ends) for i in others for ends in (self._edges[i], self._edges[i, ::-1])]
        other, p, q = min(ways, key=lambda way: min(abs(octave[way[1]] - octave[a]), abs(octave[way[2]] - octave[b])))
        self._edges[one], self._edges[other] = (a, q), (p, b)
        _swap(self._near, a, b, p, q)
        if self._free[one]:
            self._pool.append(other)  # of the two edges, one joins, and one is on a cycle
        else:
            self._free[other] = False
        self._free[one] = False
