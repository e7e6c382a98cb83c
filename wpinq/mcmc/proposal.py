"""Random walks over candidates, with the ratio that Metropolis-Hastings needs.

A walk proposes a change x → y with probability q(x → y). The chain keeps it with probability
`min(1, q(y → x)/q(x → y) · exp(beta · (score(x) − score(y))))`, which makes `exp(−beta · score)` its stationary
distribution over the candidates that the walk can reach. A walk of your own needs `propose` and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from wpinq.errors import PlanError
from wpinq.expr.values import Value, order_key
from wpinq.runtime.arrays import Floats

_DUST = 1e-12


class Dataset(Mapping[Value, float]):
    """A public weighted dataset from which a record can be drawn in constant time.

    The order of the records is part of its state: a draw depends on it, so a chain that goes on from a checkpoint
    keeps it.

    Examples
    --------
    >>> dataset = Dataset({"a": 1.0, "b": 1.0, "c": 1.0})
    >>> dataset.change({"a": -1.0, "d": 2.0})
    >>> dict(dataset)
    {'c': 1.0, 'b': 1.0, 'd': 2.0}
    """

    def __init__(self, weights: Mapping[Value, float]) -> None:
        self._records = [record for record, weight in weights.items() if abs(weight) >= _DUST]
        self._places = {record: place for place, record in enumerate(self._records)}
        self._weights = {record: float(weights[record]) for record in self._records}

    def __getitem__(self, record: Value) -> float:
        return self._weights[record]

    def __contains__(self, record: object) -> bool:
        return record in self._weights

    def __iter__(self) -> Iterator[Value]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def draw(self, rng: np.random.Generator) -> Value:
        """A random record; all records have the same probability."""
        return self._records[int(rng.integers(len(self._records)))]

    def change(self, changes: Mapping[Value, float]) -> None:
        """Add changes to the weights; a record of weight 0 is removed."""
        for record, change in changes.items():
            weight = self._weights.get(record, 0.0) + change
            if abs(weight) >= _DUST:
                if record not in self._weights:
                    self._places[record] = len(self._records)
                    self._records.append(record)
                self._weights[record] = weight
            elif record in self._weights:
                del self._weights[record]
                place, last = self._places.pop(record), self._records.pop()
                if last != record:
                    self._records[place] = last
                    self._places[last] = place


#: Source name to dataset.
Candidate = Mapping[str, Dataset]


Changes = Mapping[str, Mapping[Value, float]]
Proposal = tuple[Changes, float]


class Walk(Protocol):
    """A rule for proposals."""

    def propose(self, rng: np.random.Generator, candidate: Candidate) -> Proposal | None:
        """A change of the candidate, drawn with `rng` alone, or None for no change.

        Returns
        -------
        (mapping, float) or None
            For each source, record to change of weight; and `ln(q(back)/q(there))`, 0 for a symmetric proposal.
        """


@dataclass(frozen=True)
class Swaps:
    """A walk that exchanges the ends of two edges and keeps every degree.

    Loops and edges that are there already are refused. All simple graphs with the given degrees are reached
    (Taylor 1981).

    Attributes
    ----------
    source : str
        The source of edges: records of two fields of one type, weight 1.
    symmetric : bool
        Whether it holds each undirected edge in both directions, or once, the smaller node first.
    triad_share : float
        The share, from 0 to below 1, of proposals that are chosen to close a triangle. The chain accounts for them
        (`wpinq.engines.delta.compiled.adjacency.graph` says how), so its stationary distribution is the same. They
        need the compiled walk: elsewhere all swaps are drawn uniformly, and the chain's note says so.
    places : array of shape (nodes, dimensions), optional
        The place of each node; nodes are numbers 0, 1, …, or texts of these. A swap that changes the number of edges
        longer than any reach is refused: the graph stays as large as it began.
    reach : array, optional
        Distances of places, rising.
    """

    source: str = "edges"
    symmetric: bool = True
    triad_share: float = 0.0
    places: Floats | None = field(default=None, repr=False, compare=False)
    reach: Floats | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.triad_share < 1:
            raise PlanError(f"the share of closing proposals lies from 0 to below 1, not at {self.triad_share!r}")

    def propose(self, rng: np.random.Generator, candidate: Candidate) -> Proposal | None:
        edges = candidate[self.source]
        if not len(edges):
            return None
        first, second = edges.draw(rng), edges.draw(rng)
        (a, b), (c, d) = first, second
        if not self.symmetric and rng.random() < 0.5:
            c, d = d, c
        new = [self._stored(a, d), self._stored(c, b)]
        if len({a, b, c, d}) < 4 or any(edge in edges for edge in new):
            return None
        if self._far(new) != self._far([first, second]):
            return None
        return {self.source: _moved([first, second], new, self.symmetric)}, 0.0

    def _far(self, edges: Iterable[Any]) -> list[int]:
        """The numbers of reaches that edges are longer than."""
        if self.places is None or self.reach is None:
            return []
        lengths = [math.dist(*self.places[[int(a), int(b)]]) for a, b in edges]
        return sorted(int(above) for above in np.searchsorted(self.reach, lengths))

    def _stored(self, a: Value, b: Value) -> tuple[Value, Value]:
        return (a, b) if self.symmetric else _canonical(a, b)


@dataclass(frozen=True)
class EdgeMoves:
    """A walk that moves an edge to any two nodes, and may add or remove one.

    To replace, an edge and a pair of nodes are drawn uniformly: a symmetric proposal. With probability `changing` an
    edge is added or removed instead, either with probability 1/2: one of the N pairs of nodes to add, one of the m
    edges to remove, drawn uniformly; `q(back)/q(there)` is `N/(m + 1)` for an addition, `m/N` for a removal. Pairs that
    are edges already are refused.

    Attributes
    ----------
    nodes : tuple
        The nodes that edges may lie between.
    changing : float
        From 0, where the number of edges stays, to 1, where edges are only added and removed.
    source, symmetric : str, bool
        As for `Swaps`.
    """

    nodes: tuple[Any, ...]
    changing: float = 0.0
    source: str = "edges"
    symmetric: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(dict.fromkeys(self.nodes)))
        if len(self.nodes) < 2:
            raise PlanError("a walk by moves of edges needs two nodes or more to put edges between")
        if not 0 <= self.changing <= 1:
            raise PlanError(f"the share of additions and removals lies between 0 and 1, not at {self.changing!r}")

    def propose(self, rng: np.random.Generator, candidate: Candidate) -> Proposal | None:
        edges = candidate[self.source]
        pairs = len(self.nodes) * (len(self.nodes) - 1) // 2
        count = len(edges) // 2 if self.symmetric else len(edges)
        adds = removes = True
        log_ratio = 0.0
        if self.changing and rng.random() < self.changing:
            adds = rng.random() < 0.5
            removes = not adds
        if removes and not count:
            return None
        if not (adds and removes):
            log_ratio = math.log(pairs / (count + 1) if adds else count / pairs)
        gone = [edges.draw(rng)] if removes else []
        new = [self._pair(rng)] if adds else []
        if any(edge in edges for edge in new):
            return None
        return {self.source: _moved(gone, new, self.symmetric)}, log_ratio

    def _pair(self, rng: np.random.Generator) -> tuple[Any, Any]:
        first, second = int(rng.integers(len(self.nodes))), int(rng.integers(len(self.nodes) - 1))
        return _canonical(self.nodes[first], self.nodes[second + (second >= first)])


@dataclass(frozen=True)
class ReplaceRecord:
    """Replace one record of any dataset by another of a finite domain.

    The number of records stays.

    A record is drawn uniformly among the distinct ones and gives up one unit of weight; a record of the domain, drawn
    uniformly, takes it. With s distinct records before and t after, `q(back)/q(there) = s/t`. The stationary
    distribution is over datasets: every multiset of records counts once, in however many orders it could be written.

    Attributes
    ----------
    source : str
        The source; its weights are whole numbers.
    domain : tuple
        The records that may be.
    """

    source: str
    domain: tuple[Value, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", tuple(dict.fromkeys(self.domain)))
        if len(self.domain) < 2:
            raise PlanError("records can be replaced over a domain of two or more")

    def propose(self, rng: np.random.Generator, candidate: Candidate) -> Proposal | None:
        records = candidate[self.source]
        if not len(records):
            return None
        gone, new = records.draw(rng), self.domain[int(rng.integers(len(self.domain)))]
        if gone == new:
            return None
        after = len(records) - (records[gone] == 1.0) + (new not in records)
        return {self.source: {gone: -1.0, new: 1.0}}, math.log(len(records) / after)


def _canonical(a: Value, b: Value) -> tuple[Value, Value]:
    return (a, b) if order_key(a) <= order_key(b) else (b, a)


def _moved(gone: Iterable[Any], new: Iterable[Any], symmetric: bool) -> dict[Value, float]:
    """The changes of weight when edges go and others come."""
    changes: dict[Value, float] = {}
    for edges, change in ((gone, -1.0), (new, 1.0)):
        for edge in edges:
            changes[edge] = change
            if symmetric:
                changes[edge[::-1]] = change
    return changes
