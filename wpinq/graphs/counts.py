"""Counts of triangles, stars and 4-cliques, and the largest degree: one whole number each.

Queries release weights, and no weight is a count of triangles. These are no queries: they take the edges themselves,
and give an integer whose noise goes with how far one edge can move it: a count in the graph at hand, by the ladder
mechanism, and the largest degree in any graph.
"""

from __future__ import annotations

from fractions import Fraction

from wpinq.api.query import Query
from wpinq.graphs.recipes import check_edges
from wpinq.measure.measurement import ListedMeasurement
from wpinq.noise.epsilon import parse_epsilon
from wpinq.sinks.graph_counts import FourCliqueCount, LadderSink, StarCount, TriangleCount
from wpinq.sinks.largest_degree import LargestDegree


def triangle_count(edges: Query, epsilon: object, interval_share: object | None = None) -> ListedMeasurement:
    """The number of triangles, by the ladder mechanism.

    `Pr[x] ∝ exp(−ε·j/2)` for every integer x on rung j of the ladder of the graph: rung 0 is the count, and each
    further rung the next integers on either side, as many as one edge can change the count by in a graph j − 1 edges
    away.

    Parameters
    ----------
    edges : Query
        A source of edges with the fact "unit_weights", as it is or after `where`, `symmetrize`, `union` with its
        reverse. The graph has an edge {a, b} where (a, b) or (b, a) is there; loops are no edges.
    epsilon : number
        More than 0: what one edge costs, whichever way the plan puts both directions together.
    interval_share : number, optional
        The share of epsilon, between 0 and 1, that buys an interval: with it, the most neighbours that two vertices
        have in common are released too, with noise. Without it the answers have no interval, for how much noise there
        is depends on the graph.

    Returns
    -------
    Measurement
        Keys "count" and, with an interval, "common neighbours"; `value` is the count, at least 0. Privacy cost: ε times
        the unit weight of the source, and half of that where it is `symmetric`, for both records of an edge change
        together.

    Raises
    ------
    PlanError
        When a record of the source is not one edge of the graph; it says what to do.

    Notes
    -----
    Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao, SIGMOD 2015; `docs/proofs/ladder.md`.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=int, other=int, facts=["unit_weights"])
    >>> asked = triangle_count(friends, epsilon=1, interval_share=0.1)
    >>> print(wp.bill(asked))
    friends: 1
      protects one record, of weight 1
      promised of it: every record weighs exactly 1
      TriangleCount(1) changes by one edge a record: 1 x 1 = 1
    >>> clique = [(a, b) for a in range(40) for b in range(a)]
    >>> answers = wp.simulate(asked, {"friends": clique}, seed=1)
    >>> answers.value, answers.value_interval(0.95)[1] > 9880
    (9886.0, True)
    """
    return _counted(edges, TriangleCount(_share(interval_share)), epsilon)


def star_count(edges: Query, k: int, epsilon: object, interval_share: object | None = None) -> ListedMeasurement:
    """The number of k-stars, each a vertex with k of its neighbours, by the ladder mechanism.

    `Σ_v C(d_v, k)`, with the noise of `triangle_count` over the ladder of k-stars.

    Parameters
    ----------
    edges, epsilon, interval_share
        As for `triangle_count`; the second number of the answers is the highest degree.
    k : int
        From 2 to 20.

    Returns
    -------
    Measurement
        As for `triangle_count`.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=int, other=int, facts=["unit_weights"])
    >>> star = {"friends": [(0, leaf) for leaf in range(1, 101)]}
    >>> wp.simulate(star_count(friends, 2, epsilon=1), star, seed=1).value    # 4950, and noise
    5000.0
    """
    return _counted(edges, StarCount(_share(interval_share), k), epsilon)


def four_clique_count(edges: Query, epsilon: object, interval_share: object | None = None) -> ListedMeasurement:
    """The number of cliques of 4 vertices, by the ladder mechanism.

    Parameters
    ----------
    edges, epsilon, interval_share
        As for `triangle_count`.

    Returns
    -------
    Measurement
        As for `triangle_count`.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=int, other=int, facts=["unit_weights"])
    >>> clique = {"friends": [(a, b) for a in range(40) for b in range(a)]}
    >>> wp.simulate(four_clique_count(friends, epsilon=1), clique, seed=1).value    # 91390, and noise
    91952.0
    """
    return _counted(edges, FourCliqueCount(_share(interval_share)), epsilon)


def largest_degree(edges: Query, epsilon: object) -> ListedMeasurement:
    """The largest degree of the graph: how many neighbours the vertex has that has most.

    One edge moves it by at most 1, whatever the graph: double-geometric noise, `Pr[x] ∝ exp(−ε·|x − degree|)` for every
    integer x.

    Parameters
    ----------
    edges, epsilon
        As for `triangle_count`.

    Returns
    -------
    Measurement
        Key "largest degree"; `value` is the answer, at least 0, and its interval comes at no further cost, for the
        noise is public. Privacy cost: as for `triangle_count`.

    Raises
    ------
    PlanError
        When a record of the source is not one edge of the graph; it says what to do.

    Notes
    -----
    Source: Ghosh, Roughgarden, Sundararajan, STOC 2009, for the noise; `docs/proofs/ladder.md`.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=int, other=int, facts=["unit_weights"])
    >>> asked = largest_degree(friends, epsilon=1)
    >>> print(wp.accuracy(asked, half_width=5))
    measurement       kind       epsilon  ± at 95 %  costs      epsilon for ± 5
    LargestDegree(1)  statistic  1        3          friends 1  0.538174004
    >>> star = {"friends": [(0, leaf) for leaf in range(1, 101)]}
    >>> answers = wp.simulate(asked, star, seed=1)    # 100, and noise
    >>> answers.value, answers.value_interval(0.95)
    (101.0, (98.0, 104.0))
    """
    return _counted(edges, LargestDegree(), epsilon)


def _counted(edges: Query, sink: LadderSink, epsilon: object) -> ListedMeasurement:
    check_edges(edges)
    return ListedMeasurement(edges.plan, sink, parse_epsilon(epsilon), sink.own_keys, edges.reading)


def _share(given: object | None) -> Fraction | None:
    return None if given is None else parse_epsilon(given)
