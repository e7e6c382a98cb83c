"""Counts of subgraphs and components, the largest degree and core: one whole number each.

Queries release weights, and no weight is a count of triangles. These are no queries: they take the edges themselves,
and give an integer whose noise goes with how far one edge can move it: a count in the graph at hand, by the ladder
mechanism, and the others in any graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from typing import SupportsIndex

from wpinq.api.query import Query
from wpinq.errors import PlanError, described
from wpinq.expr.values import Value
from wpinq.graphs.recipes import check_edges, joint_degrees, squares_by_degree, triangles_by_degree
from wpinq.inference.checks import count_of
from wpinq.measure.measurement import ListedMeasurement
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan.domain import Counted
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import Concat, Partition, Select, Source, Where
from wpinq.plan.work import counted
from wpinq.sinks import graph_counts
from wpinq.sinks.answer_kinds import ClosedForm


def triangle_count(edges: Query, epsilon: EpsilonLike, interval_share: object | None = None) -> ListedMeasurement:
    """The number of triangles, by the ladder mechanism.

    `Pr[x] ∝ exp(−ε·j/2)` for every integer x on rung j of the ladder of the graph. Rung 0 is the count. Each further
    rung has the next integers on both sides, as many as the largest change of the count by one edge in a graph j − 1
    edges away.

    Parameters
    ----------
    edges : Query
        A source of edges with the fact "unit_weights", also after `where`, `symmetrize`, or `union` with its reverse.
        The graph has the edge {a, b} if (a, b) or (b, a) is present; loops are no edges.
    epsilon : number
        More than 0: the cost of one edge, for any way of combining both directions in the plan.
    interval_share : number, optional
        The share of epsilon, between 0 and 1, that buys an interval. It pays for a noisy maximum of the common
        neighbours of two vertices. Without it the answers have no interval, because the amount of noise depends on the
        graph.

    Returns
    -------
    Measurement
        A measurement with the keys "count" and, with an interval, "common neighbours"; `value` is the count, at least
        0. Privacy cost: ε times the unit weight of the source, and half of that if it is `symmetric`, because both
        records of an edge change together.

    Raises
    ------
    PlanError
        If a record of the source is not one edge of the graph; the message has a remedy.

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
      declared: every record weighs exactly 1
      TriangleCount(1), spent once for each edge: 1 x 1 = 1
    >>> clique = [(a, b) for a in range(40) for b in range(a)]
    >>> answers = wp.simulate(asked, {"friends": clique}, seed=1)
    >>> answers.value, answers.value_interval(0.95)[1] > 9880
    (9847.0, True)
    """
    return _counted(edges, graph_counts.TriangleCount(_share(interval_share)), epsilon)


def star_count(edges: Query, k: int, epsilon: EpsilonLike, interval_share: object | None = None) -> ListedMeasurement:
    """The number of k-stars (a vertex with k neighbours), by the ladder mechanism.

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
    4997.0
    """
    return _counted(edges, graph_counts.StarCount(_share(interval_share), k), epsilon)


def four_clique_count(edges: Query, epsilon: EpsilonLike, interval_share: object | None = None) -> ListedMeasurement:
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
    90708.0
    """
    return _counted(edges, graph_counts.FourCliqueCount(_share(interval_share)), epsilon)


def largest_degree(edges: Query, epsilon: EpsilonLike) -> ListedMeasurement:
    """The largest degree of the graph, as a noisy integer.

    One edge changes it by at most 1 in any graph, so the noise is double-geometric: `Pr[x] ∝ exp(−ε·|x − degree|)` for
    every integer x.

    Parameters
    ----------
    edges, epsilon
        As for `triangle_count`.

    Returns
    -------
    Measurement
        A measurement with the key "largest degree"; `value` is the answer, at least 0. Its interval is free, because
        the noise is public. Privacy cost: as for `triangle_count`.

    Raises
    ------
    PlanError
        If a record of the source is not one edge of the graph; the message has a remedy.

    Notes
    -----
    Source: Ghosh, Roughgarden, Sundararajan, STOC 2009, for the noise; `docs/proofs/ladder.md`.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=int, other=int, facts=["unit_weights"])
    >>> asked = largest_degree(friends, epsilon=1)
    >>> print(wp.accuracy(asked, half_width=5))
    measurement       kind            epsilon  ± at 95 %  costs      epsilon for ± 5
    LargestDegree(1)  largest degree  1        3          friends 1  0.538174004
    >>> star = {"friends": [(0, leaf) for leaf in range(1, 101)]}
    >>> answers = wp.simulate(asked, star, seed=1)    # 100, and noise
    >>> answers.value, answers.value_interval(0.95)
    (101.0, (98.0, 104.0))
    """
    return _counted(edges, graph_counts.LargestDegree(), epsilon)


def component_count(edges: Query, epsilon: EpsilonLike) -> ListedMeasurement:
    """The number of connected components of at least one edge, plus noise of public scale 1/ε.

    One edge changes it by at most 1 in any graph.

    Parameters
    ----------
    edges, epsilon
        As for `triangle_count`.

    Returns
    -------
    Measurement
        As for `largest_degree`, with the one key "components".

    Notes
    -----
    Source: `docs/proofs/ladder.md`.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=int, other=int, facts=["unit_weights"])
    >>> pairs = {"friends": [(2 * n, 2 * n + 1) for n in range(40)]}
    >>> wp.simulate(component_count(friends, epsilon=1), pairs, seed=1).value    # 40, and noise
    41.0
    """
    return _counted(edges, graph_counts.ComponentCount(), epsilon)


def largest_core(edges: Query, epsilon: EpsilonLike) -> ListedMeasurement:
    """The largest k for which some subgraph has all degrees ≥ k, plus noise of public scale 1/ε.

    One edge changes it by at most 1 in any graph.

    Parameters
    ----------
    edges, epsilon
        As for `triangle_count`.

    Returns
    -------
    Measurement
        As for `largest_degree`, with the one key "largest core".

    Notes
    -----
    Source: Seidman, Social Networks 1983, for cores; `docs/proofs/ladder.md`.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=int, other=int, facts=["unit_weights"])
    >>> clique = {"friends": [(a, b) for a in range(40) for b in range(a)]}
    >>> wp.simulate(largest_core(friends, epsilon=1), clique, seed=1).value    # 39, and noise
    40.0
    """
    return _counted(edges, graph_counts.LargestCore(), epsilon)


def _counted(edges: Query, sink: graph_counts.LadderSink, epsilon: EpsilonLike) -> ListedMeasurement:
    check_edges(edges)
    return ListedMeasurement(edges.plan, sink, parse_epsilon(epsilon), sink.own_keys, edges.reading)


def _share(given: object | None) -> Fraction | None:
    return None if given is None else parse_epsilon(given)


# Counts from released weights, where a recipe has a closed form, and the noise on them.
#
# A recipe with a closed form gives every item of a record (edge, triangle, square) the same weight, which the record
# itself tells. A released weight divided by it is an unbiased count, its noise divided likewise. All of this reads
# released numbers only and costs no privacy.
#
# A record is given as the degrees in it: as many integers as the name says, each no less than it can be (2 of a vertex
# of a triangle or square and of the middle of a path, 1 of the end of an edge), else PlanError.

#: What a node weighs in `nodes` and in `degrees`.
NODE_WEIGHT = Fraction(1, 2)


def path_weight(middle: SupportsIndex) -> Fraction:
    """The weight of a path in `paths`: `1/(2·d_b)` for a middle vertex of degree d_b.

    Examples
    --------
    >>> path_weight(3)
    Fraction(1, 6)
    """
    (degree,) = _degrees((middle,), 1, least=2, of="the middle of a path")
    return Fraction(1, 2 * degree)


def joint_degree_weight(degrees: Sequence[SupportsIndex]) -> Fraction:
    """The weight of one directed edge in `joint_degrees`: `1/(2 + 2·d_a + 2·d_b)`.

    Source: paper, equation (3).

    Examples
    --------
    >>> joint_degree_weight((1, 2))
    Fraction(1, 8)
    """
    a, b = _degrees(degrees, 2, least=1, of="an end of an edge")
    return Fraction(1, 2 + 2 * a + 2 * b)


def triangle_weight(degrees: Sequence[SupportsIndex]) -> Fraction:
    """The weight of a triangle in `triangles_by_degree` with `bucket=1`: `3/(x² + y² + z²)`.

    Source: paper, equation (4).

    Examples
    --------
    >>> triangle_weight((2, 2, 3))
    Fraction(3, 17)
    """
    x, y, z = _degrees(degrees, 3, least=2, of="a vertex of a triangle")
    return Fraction(3, x * x + y * y + z * z)


def square_weight(degrees: Sequence[SupportsIndex]) -> Fraction:
    """The weight of one square in `squares_by_degree`.

    `2/(f(b,c) + f(d,a)) + 2/(f(a,b) + f(c,d))` with `f(p, q) = p²(q − 1) + q²(p − 1)`   (after paper, equation (6))

    The degrees are in order around the square, in any of the eight ways to write it.

    Examples
    --------
    >>> square_weight((2, 2, 5, 7)), square_weight((2, 5, 2, 7))
    (Fraction(26, 1121), Fraction(2, 57))
    """
    a, b, c, d = _degrees(degrees, 4, least=2, of="a vertex of a square")

    def f(p: int, q: int) -> int:
        return p * p * (q - 1) + q * q * (p - 1)

    return Fraction(2, f(b, c) + f(d, a)) + Fraction(2, f(a, b) + f(c, d))


def nodes_from_weight(weight: float) -> float:
    """The number of nodes behind a weight released from `nodes` or `degrees`: its double.

    Examples
    --------
    >>> nodes_from_weight(2620.5)
    5241.0
    """
    return weight / float(NODE_WEIGHT)


def edges_from_joint_degrees(weight: float, degrees: Sequence[SupportsIndex]) -> float:
    """The number of directed edges behind a weight released from `joint_degrees`.

    It is `weight · (2 + 2·d_a + 2·d_b)`.

    For undirected edges between degrees i ≠ j average `(i, j)` and `(j, i)`; for i = j halve.

    Examples
    --------
    >>> edges_from_joint_degrees(0.25, (1, 2))
    2.0
    """
    return weight / float(joint_degree_weight(degrees))


def triangles_from_weight(weight: float, degrees: Sequence[SupportsIndex]) -> float:
    """The number of triangles behind a weight from `triangles_by_degree` with `bucket=1`.

    Examples
    --------
    >>> triangles_from_weight(0.5, (2, 2, 2))
    2.0
    """
    return weight / float(triangle_weight(degrees))


def squares_from_weight(weight: float, degrees: Sequence[SupportsIndex]) -> float:
    """The number of squares behind a weight released from `squares_by_degree`.

    Examples
    --------
    >>> squares_from_weight(0.5, (2, 2, 2, 2))
    2.0
    """
    return weight / float(square_weight(degrees))


def count_noise_scale(item_weight: Fraction, epsilon: EpsilonLike, uses: int = 1) -> Fraction:
    """The noise scale of a count that was rescaled from a weight: `uses / (ε · item_weight)`.

    The noise is Laplace noise.

    Parameters
    ----------
    item_weight : Fraction
        The weight of one item in its record, more than 0, such as `triangle_weight(record)`.
    epsilon : number
        More than 0: the epsilon of the NoisyCount or, with `uses`, the whole cost to the source.
    uses : int
        The uses of the source that epsilon pays for, from `query.uses()`; 1 for the epsilon of the NoisyCount.

    Returns
    -------
    Fraction
        The exact scale, without the slack of a session for floating-point error (at most about 10⁻⁶).

    Raises
    ------
    EpsilonError
        When epsilon is not a positive finite number.
    PlanError
        When item_weight is not more than 0, or uses is not an integer of at least 1.

    Notes
    -----
    From undirected edges this is the paper's Theorem 2, `6(x² + y² + z²)/ε` (18 uses), and at most its Theorem 3,
    `6(vx(v + x) + yz(y + z))/ε` for degrees v ≤ x ≤ y ≤ z (24 uses).

    Examples
    --------
    >>> count_noise_scale(triangle_weight((2, 3, 4)), epsilon=1, uses=18) == 6 * (2**2 + 3**2 + 4**2)
    True
    """
    count_of(uses, "uses", 1, error=PlanError)
    if not item_weight > 0:
        raise PlanError("item_weight must be more than 0: take it from triangle_weight(record) or its like")
    return uses / (parse_epsilon(epsilon) * Fraction(item_weight))


def _degrees(given: Sequence[SupportsIndex], count: int, least: int, of: str) -> list[int]:
    try:
        degrees = [operator.index(degree) for degree in given]
    except TypeError:
        degrees = []
    if len(degrees) != count or min(degrees) < least:
        number = "one integer" if count == 1 else f"{count} integers"
        raise PlanError(f"expected {number} of at least {least}: the degree of {of} is no less; got {described(given)}")
    return degrees


# --- recognition of plans with a closed form --------------------------------------------------------------------------


def closed_form(plan: Node) -> ClosedForm | None:
    """The weight that one item adds to each record of a plan, for recipes with a closed form.

    Filters and parts of such recipes have it, too; None for other plans.
    """
    while isinstance(plan.operator, (Where, Partition)):  # a record stays, with its weight, or goes
        plan = plan.inputs[0]
    for node in topological([plan]):
        for recipe, form in _forms(node):
            if recipe(Query(node)).plan == plan:
                return form
    return None


def _forms(edges: Node) -> Iterator[tuple[Callable[[Query], Query], ClosedForm]]:
    """The recipes whose closed form holds for these edges, if edges they are."""
    try:
        check_edges(Query(edges))
    except PlanError:
        return
    found = counted(edges)
    if isinstance(found, Counted) and found.even and found.factor == 1:
        yield joint_degrees, _JOINT_DEGREES
        made = _made_symmetric(edges)
        if made or (isinstance(edges.operator, Source) and "symmetric" in edges.operator.facts):
            yield triangles_by_degree, _TRIANGLES
        if made:  # of weight 1 also where both sides meet: the source is simple
            yield squares_by_degree, _SQUARES


def _made_symmetric(edges: Node) -> bool:
    """Whether they are some edges and the reverse of these, in whatever order and notation."""
    if not isinstance(edges.operator, Concat):
        return False
    return any(
        isinstance(other.operator, Select) and other.inputs == (once,) and other.operator.reverses
        for once, other in permutations(edges.inputs)
    )


def _known(weight: Callable[[Value], Fraction]) -> Callable[[Value], Fraction | None]:
    def at(key: Value) -> Fraction | None:
        try:
            return weight(key)
        except PlanError:  # degrees that no item can have
            return None

    return at


_JOINT_DEGREES = ClosedForm(
    "directed edges between these degrees whose reverse is there", "1/(2 + 2i + 2j)", _known(joint_degree_weight)
)
_TRIANGLES = ClosedForm("triangles of these degrees", "3/(x² + y² + z²)", _known(triangle_weight))
_SQUARES = ClosedForm(
    "squares of these degrees",
    "2/(f(b,c) + f(d,a)) + 2/(f(a,b) + f(c,d)), f(p,q) = p²(q−1) + q²(p−1),",
    _known(square_weight),
)
