"""The stability of a plan: a sharp bound on its output's move per unit, from its source up.

A plan is cut where budgets are kept: at its sources, and at the parts of partitions, each of which is then a dataset
of any weights. From a cut to the root the change of every step is found by its operator's rule; the bound is the least
of what these prove and of the number of paths. Proofs: docs/proofs/stability.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from wpinq.expr.nodes import below_first
from wpinq.plan.node import Node, paths_from, upward
from wpinq.plan.operator import InputChange
from wpinq.plan.operators import Join, Partition, Source
from wpinq.plan.operators.join import RATIO
from wpinq.plan.sensitivity.change import ONE, UNKNOWN, Change, ChangeBounds, added, any_record
from wpinq.plan.sensitivity.closed_wedges import BY_FORM, closed_wedges
from wpinq.plan.sensitivity.weights import NO_WEIGHT_BOUND, KnownProportions, with_itself


@dataclass(frozen=True, slots=True)
class Stability:
    """The most that the root moves per unit of weight at a cut.

    Attributes
    ----------
    paths : int
        How often the plan uses the cut: the number of paths from the root to it.
    bound : Fraction
        The most that the root moves: never more than `paths`, and more than 0.
    rules : tuple of str
        The rules that make the bound less than the paths, in words for bills.
    """

    paths: int
    bound: Fraction
    rules: tuple[str, ...] = ()


NOTHING_MOVES = added([])


@lru_cache(maxsize=4096)
def stability(root: Node) -> Mapping[Node, Stability]:
    """The most that a plan's root moves per unit of weight at each cut.

    Parameters
    ----------
    root : Node
        The plan.

    Returns
    -------
    mapping
        Each cut, a source or a part of a partition with nothing but operators between it and the root, to its bound.

    Notes
    -----
    Privacy cost: none. It depends on the plan and the declarations of its sources alone.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> paths = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    >>> meeting = edges.join(edges, lambda x: x.dst, lambda y: y.dst)
    >>> [(found.paths, str(found.bound)) for query in (paths, meeting) for found in stability(query.plan).values()]
    [(2, '2'), (2, '3/2')]
    """
    steps = list(below_first([root], _below))
    paths = paths_from(root, _below)
    signs = upward(root, lambda node, inputs: node.operator.nonnegative(*inputs))
    return {node: _from_cut(node, paths[node.digest], steps, signs) for node in steps if _is_cut(node)}


def _is_cut(node: Node) -> bool:
    return isinstance(node.operator, (Source, Partition))


def _below(node: Node) -> tuple[Node, ...]:
    """The inputs of a step; none for a cut."""
    return () if _is_cut(node) else node.inputs


def _from_cut(cut: Node, paths: int, steps: list[Node], signs: Mapping[bytes, bool]) -> Stability:
    """The least of what the rules prove, with ratios of joins and without, and of the paths."""
    joins = any(isinstance(node.operator, Join) for node in steps)
    bound, rules = _bound(cut, steps, signs, ratios=joins)
    if RATIO in rules:  # a step that is sharper may leave a later one less sharp
        plain, known = _bound(cut, steps, signs, ratios=False)
        # Not below 1, where noise is widened for rounding by more the less a plan moves: it was released without.
        bound = max(bound, min(plain, Fraction(1)))
        if plain <= bound:
            bound, rules = plain, known
    if not 0 < bound < paths:
        return Stability(paths, Fraction(paths))
    return Stability(paths, bound, tuple(sorted(rules)))


def _bound(
    cut: Node, steps: list[Node], signs: Mapping[bytes, bool], *, ratios: bool
) -> tuple[Fraction, frozenset[str]]:
    """The largest over the ways in which the cut changes by one step, a unit of its weight."""
    bound, rules = Fraction(0), frozenset[str]()
    for way, (change, weight) in enumerate(_ways(cut)):
        moved = _moved(_Way(cut, way, change, ratios), steps, signs)
        bound, rules = max(bound, moved.total / weight), rules | moved.rules
    return bound, rules


@lru_cache(maxsize=256)
def _ways(cut: Node) -> tuple[tuple[Change, Fraction], ...]:
    """The ways in which a cut changes by one step, each with the weight of that step."""
    if isinstance(cut.operator, Source):
        return cut.operator.steps()
    return ((added([(any_record("unit", cut.type), ONE)]), Fraction(1)),)


@dataclass(frozen=True, slots=True)
class _Way:
    """A step at a cut, by its number, while all other cuts stay unchanged.

    `ratios` is whether rule R is used.
    """

    cut: Node
    number: int
    change: Change
    ratios: bool


#: Digest of a cut, way of its change, use of ratios, digest of a step -> what is known there: plans of a batch share
#: most steps.
_KNOWN: dict[tuple[bytes, int, bool, bytes], InputChange] = {}

_KNOWN_LIMIT = 8192


def _moved(way: _Way, steps: list[Node], signs: Mapping[bytes, bool]) -> Change:
    """The change of the root by one step at a cut."""
    if len(_KNOWN) > _KNOWN_LIMIT:
        _KNOWN.clear()
    found: dict[bytes, InputChange] = {}
    for node in steps:
        key = way.cut.digest, way.number, way.ratios, node.digest
        moved = _KNOWN.get(key)
        if moved is None:
            moved = _KNOWN[key] = _at(node, found, signs[node.digest], way)
        found[node.digest] = moved
    return found[steps[-1].digest].change


def _at(node: Node, found: Mapping[bytes, InputChange], nonnegative: bool, way: _Way) -> InputChange:
    """Known facts of one step, and of those below it before.

    Bounds on weights, and forms, are of use only where steps are of whole records of weight 1.
    """
    below = tuple(found[child.digest] for child in _below(node))
    of_cut = way.change if node == way.cut else NOTHING_MOVES
    of_node = of_cut if _is_cut(node) else node.operator.change(*below)
    exact = isinstance(way.cut.operator, Source) and way.cut.operator.exact
    weight_bound = NO_WEIGHT_BOUND
    if exact:
        of_node = _by_form(node, of_node, found, way.cut)
    if exact and nonnegative and not isinstance(node.operator, Partition):
        weight_bound = node.operator.weight_bound(*(moved.weight_bound for moved in below))
    proportions: KnownProportions = ()
    if way.ratios and nonnegative:
        known = () if _is_cut(node) else node.operator.proportions(*below)
        proportions = with_itself(known, node.digest, node.type, of_node)
    return InputChange(of_node, nonnegative, weight_bound, proportions)


def _by_form(node: Node, change: Change, found: Mapping[bytes, InputChange], cut: Node) -> Change:
    """The change of a step, or less where the form of the plan below it allows."""
    form = closed_wedges(node)
    if form is None or form.source != cut:
        return change
    most = form.of_both_ends + form.of_closing(found[form.closing.digest].change)
    if most >= change.total:
        return change
    gain, loss = (sum(getattr(move, part) for move in change.atoms.values()) for part in ("increase", "decrease"))
    return added([(UNKNOWN, ChangeBounds.of(min(gain, most), min(loss, most), most))], change.rules | {BY_FORM})
