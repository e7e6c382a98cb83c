"""The pairs that an audit draws from: every sink, on counts, fractions, absent keys, partitions and whole recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any

import wpinq as wp
from tests.audit import listed_numbers, noisy_choices, noisy_numbers
from tests.audit.pairs import Measuring, Pair
from tests.support.graph_queries import RECIPES, Measured, block_graph, source
from wpinq.graphs.counts import four_clique_count, largest_degree, star_count, triangle_count
from wpinq.measure.group import flattened

LISTED = 20_000
"""Keys of a listing."""

SIMPLE = source("unit_weights", "simple")
NUMBERS = wp.source("numbers", int, weights=True)
UNITS = wp.source("numbers", int, facts=["unit_weights"])
HEAVY = wp.source("numbers", int, unit_weight=2, weights=True)
SCORES = wp.source("scores", group=int, x=float, weights=True)
PEOPLE = wp.source("people", town=str, age=int)

GRAPHS: Mapping[str, tuple[bool, dict[str, Any]]] = {
    "degrees": (True, {"common": 0, "left": 1, "right": 1}),
    "degree sequence": (True, {"common": 0, "left": 0, "right": 0}),
    "degree ccdf": (True, {"common": 0, "left": 2, "right": 1}),
    "nodes": (False, {"common": 0, "left": 0, "right": 0}),
    "joint degrees": (False, {"common": 8, "left": 8, "right": 8}),
    "triangles by intersect": (False, {"common": 8, "left": 0, "right": 0}),
    "triangles by degree": (False, {"common": 8, "left": 0, "right": 0, "clique": True}),
    "squares by degree": (False, {"common": 8, "left": 0, "right": 0, "clique": True}),
    "closed wedges by tag": (False, {"common": 8, "left": 0, "right": 0}),
    "closed wedges by tag, a quarter of the second": (False, {"common": 8, "left": 0, "right": 0}),
    "joint degrees by tag": (False, {"common": 0, "left": 2, "right": 2}),
    "edges in paths": (False, {"common": 4, "left": 0, "right": 0, "clique": True}),
    "paths": (False, {"common": 0, "left": 4, "right": 4}),
}
"""For each recipe whether it moves all that the bill says, and the graph, to which the edge of 0 and 1 is added."""


def _units(records: Iterable[Any]) -> dict[Any, float]:
    return dict.fromkeys(records, 1.0)


def _numbers(name: str, measurements: Any, before: Mapping[Any, float], after: Mapping[Any, float]) -> Pair:
    asked = tuple(measurements) if isinstance(measurements, (list, tuple)) else (measurements,)
    return Pair(name, asked, {"numbers": before}, {"numbers": after}, True)


def of_numbers(epsilon: Fraction) -> list[Pair]:
    """Numbers with noise."""
    parts = NUMBERS.partition(lambda x: x % 2, [0, 1])
    grouped = NUMBERS.group_by(lambda x: x % 2)
    odd = NUMBERS.select(lambda x: x % 2)
    rows = {(0, 1.0): 1.0, (1, 2.5): 1.0}
    more = rows | {(0, 3.0): 1.0}
    groups = [(0, (2, 4)), (0, (2, 4, 6))]
    table = flattened([PEOPLE.by("town", keys=["a", "b"]).agg(rows=wp.count(), epsilon=epsilon)])
    return [
        _numbers("a count", NUMBERS.noisy_count(epsilon, over=[1]), {1: 3.0}, {1: 4.0}),
        _numbers("an absent key", NUMBERS.noisy_count(epsilon, over=[1]), {2: 1.0}, {1: 1.0, 2: 1.0}),
        _numbers("a fraction", odd.noisy_count(epsilon, over=[1]), {1: 0.3}, {1: 0.3, 3: 1.0}),
        _numbers("two keys", NUMBERS.noisy_count(epsilon, over=[1, 2]), {1: 0.25}, {1: 0.75, 2: 0.5}),
        _numbers("a source used twice", NUMBERS.concat(NUMBERS).noisy_count(epsilon, over=[1]), {}, {1: 1.0}),
        _numbers("a unit of weight 2", HEAVY.noisy_count(epsilon, over=[1]), {}, {1: 2.0}),
        _numbers("groups", grouped.noisy_count(epsilon, over=groups), _units([2, 4]), _units([2, 4, 6])),
        _numbers(
            "a record that changes its part",
            [part.noisy_count(epsilon, over=[2, 3]) for part in parts.values()],
            _units([2]),
            _units([3]),
        ),
        _numbers(
            "one measurement at several epsilons",
            [NUMBERS.noisy_count(epsilon * k, over=[1]) for k in (Fraction(1, 4), Fraction(3, 4))],
            {},
            {1: 1.0},
        ),
        _numbers("geometric, used twice", UNITS.concat(UNITS).geometric_count(epsilon, over=[1]), {}, {1: 1.0}),
        _numbers("geometric, absent", UNITS.geometric_count(epsilon, over=[1]), {}, {1: 1.0}),
        _numbers(
            "geometric, groups",
            UNITS.group_by(lambda x: x % 2).geometric_count(epsilon, over=groups),
            _units([2, 4]),
            _units([2, 4, 6]),
        ),
        Pair("a sum", (SCORES.noisy_sum(epsilon, lambda s: s.x, 0, 3),), {"scores": rows}, {"scores": more}, True),
        Pair(
            "an average",
            (SCORES.noisy_average(epsilon, lambda s: s.x, 0, 3),),
            {"scores": rows},
            {"scores": more},
            True,
        ),
        Pair(
            "a table by name",
            tuple(table),
            {"people": {("a", 30): 1.0}},
            {"people": {("a", 30): 2.0}},
            True,
        ),
    ]


def of_recipes(epsilon: Fraction) -> list[Pair]:
    """Whole recipes, over the keys that the pair moves."""
    found = []
    for name, (whole, blocks) in GRAPHS.items():
        measured = Measured(RECIPES[name](SIMPLE))
        graph = frozenset(block_graph(**blocks))
        outputs = measured.output(graph), measured.output(graph | {(0, 1)})
        keys = sorted({key for key in chain(*outputs) if outputs[0].get(key) != outputs[1].get(key)}, key=repr)
        asked = measured.query.noisy_count(epsilon, over=keys)
        after = {"edges": _units(sorted(graph | {(0, 1)}))}
        found.append(Pair(name, (asked,), {"edges": _units(sorted(graph))}, after, whole))
    return found


def of_choices(epsilon: Fraction) -> list[Pair]:
    """Choices, on pairs that move scores by their whole range."""
    two = [10, 30]
    skewed = dict.fromkeys([*range(8), 11, 12], 0.9)
    return [
        _numbers("most common", NUMBERS.most_common(epsilon, [0, 1]), {}, {0: 1.0}),
        _numbers("median", NUMBERS.median(epsilon, two), {20: 1.0}, {0: 1.0, 20: 1.0}),
        _numbers(
            "quantile 9 in 10",
            NUMBERS.quantile(epsilon=epsilon, q="0.9", candidates=two),
            skewed,
            skewed | {40: 1.0},
        ),
    ]


def of_ladders(epsilon: Fraction) -> list[Pair]:
    """Draws over whole graphs, whose worst pairs are far from the bound."""
    edges = {(0, 2): 1.0, (1, 2): 1.0, (1, 3): 1.0}
    pair = {"edges": edges}, {"edges": edges | {(0, 1): 1.0}}
    clique = _units([(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    cliques = {"edges": clique}, {"edges": clique | {(0, 1): 1.0}}
    return [
        Pair("a count of triangles", (triangle_count(SIMPLE, epsilon),), *pair, False),
        Pair("a count of 2-stars", (star_count(SIMPLE, 2, epsilon),), *pair, False),
        Pair("a count of 4-cliques", (four_clique_count(SIMPLE, epsilon),), *cliques, False),
        Pair("a largest degree", (largest_degree(SIMPLE, epsilon),), *pair, True),
    ]


def of_listings(epsilon: Fraction) -> list[Pair]:
    """Listings of absent keys and of present ones, and what is told of them when they are asked for after it."""
    keys = range(LISTED)
    after = {"numbers": _units(keys)}
    return [
        Pair("a listing", (NUMBERS.noisy_count_above(epsilon, keys, above=1),), {"numbers": {}}, after, True, LISTED),
        Pair(
            "a geometric listing",
            (UNITS.noisy_count_above(epsilon, keys, above=1, geometric=True),),
            {"numbers": {}},
            after,
            True,
            LISTED,
        ),
    ]


Kind = tuple[Callable[[Fraction], list[Pair]], Measuring, Fraction, int]

KINDS: dict[str, Kind] = {
    "numbers": (of_numbers, noisy_numbers.measure, Fraction(1, 2), 1),
    "listings": (of_listings, listed_numbers.measure, Fraction(1, 2), 1),
    "recipes": (of_recipes, noisy_numbers.measure, Fraction(2), 2),
    "choices": (of_choices, noisy_choices.measure, Fraction(1, 2), 2),
    "draws": (of_ladders, noisy_choices.measure, Fraction(2), 6),
}
"""What is asked, how it is measured, at which epsilon, and how much of the time a pair has, against the others."""
