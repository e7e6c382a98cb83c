"""A peer of the choice of marginals: a spanning tree of pairs that the data choose, with noise from numpy.

A share of epsilon measures every attribute by itself. Then d − 1 rounds each add the pair between two components whose
marginal is farthest from the product of its attributes', less half of the noise that the pair will have. The rest
measures the chosen pairs. All answers are fitted by exact belief propagation.

Source: McKenna, Miklau and Sheldon, *Winning the NIST contest*, Journal of Privacy and Confidentiality 11(3), 2021, for
a tree chosen by this distance; the penalty and the shares were found for pure epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from histograms_data import Array

from wpinq.inference.least_squares import project_to_total
from wpinq.marginals.cells import Attributes, MeasuredView, View
from wpinq.marginals.joint_model import FitTarget, mirror_descent, systematic

SHARES = (0.6, 0.1, 0.3)
PENALTY = 0.5
STEPS = 400

Measure = Callable[[dict[View, float], float, np.random.Generator], list[MeasuredView]]


def measured_tree(
    sizes: Sequence[int], truth: dict[View, Array], measure: Measure, epsilon: float, seed: int
) -> list[MeasuredView]:
    """The answers, of single attributes and of the chosen pairs."""
    random = np.random.default_rng(seed)
    first, choosing, last = (share * epsilon for share in SHARES)
    singles = measure({(i,): size ** (1 / 3) for i, size in enumerate(sizes)}, first, random)
    precisions = np.array([1 / (each.variance * each.counts.size) for each in singles])
    total = max(1.0, float(precisions @ [each.counts.sum() for each in singles] / precisions.sum()))
    known = [project_to_total(each.counts, total) for each in singles]
    component, edges, rounds = list(range(len(sizes))), [], len(sizes) - 1
    for _ in range(rounds):
        between = [(a, b) for a, b in truth if component[a] != component[b]]
        scores = [
            np.abs(truth[a, b] - np.outer(known[a], known[b]) / total).sum()
            - PENALTY * sizes[a] * sizes[b] * rounds / last
            for a, b in between
        ]
        # exponential noise makes the choices of permute-and-flip; a score and another move by 1 each, apart
        edge = between[int(np.argmax(scores + random.exponential(2 * rounds / choosing, len(between))))]
        edges.append(edge)
        component = [component[edge[0]] if each == component[edge[1]] else each for each in component]
    return singles + measure({(a, b): (sizes[a] * sizes[b]) ** (1 / 3) for a, b in edges}, last, random)


def tree_rows(views: Sequence[MeasuredView], sizes: Sequence[int], seed: int) -> Array:
    """As many rows as the noisy total, from the tree that was fitted to answers."""
    target = FitTarget.of(views, Attributes(tuple(sizes)), None)
    edges = [each.view for each in target.views if len(each.view) == 2]
    parents, order = _rooted(len(sizes), edges)

    def given(potentials: Sequence[Array]) -> list[Array]:
        single, pair = [np.zeros(size) for size in sizes], {}
        for each, potential in zip(target.views, potentials, strict=True):
            if len(each.view) == 1:
                single[each.view[0]] = single[each.view[0]] + potential
            else:
                a, b = each.view
                pair.update({b: potential} if parents[b] == a else {a: potential.T})
        found: list[Array] = [np.zeros((1, 1))] * len(sizes)
        for place in reversed(order):
            logits = single[place][None] + pair.get(place, 0.0)
            top = logits.max(axis=1)
            weights = np.exp(logits - top[:, None])
            found[place] = weights / weights.sum(axis=1, keepdims=True)
            if (above := parents[place]) is not None:
                single[above] = single[above] + top + np.log(weights.sum(axis=1))
        return found

    def beliefs(potentials: list[Array]) -> list[Array]:
        shares, singles = given(potentials), [np.ones(1)] * len(sizes)
        for place in order:
            above = parents[place]
            singles[place] = shares[place][0] if above is None else singles[above] @ shares[place]
        found = []
        for each in target.views:
            a, b = each.view if len(each.view) == 2 else (None, None)
            if a is None:
                found.append(singles[each.view[0]])
            else:
                down = parents[b] == a
                found.append(singles[a][:, None] * shares[b] if down else (singles[b][:, None] * shares[a]).T)
        return found

    shares = given(mirror_descent(target, beliefs, STEPS).potentials)
    random = np.random.default_rng(seed)
    rows = np.empty((max(1, round(target.total)), len(sizes)), dtype=np.int64)
    for place in order:
        above = parents[place]
        groups = np.zeros(len(rows), dtype=np.int64) if above is None else rows[:, above]
        for value, share in enumerate(shares[place]):
            group = np.flatnonzero(groups == value)
            if len(group):
                rows[group, place] = random.permutation(systematic(share, len(group), random))
    return rows


def _rooted(attributes: int, edges: Sequence[View]) -> tuple[list[int | None], list[int]]:
    """The attribute above each, from the first one down, and all of them after that above."""
    parents: list[int | None] = [None] * attributes
    order = [0]
    for place in order:
        for edge in edges:
            if place in edge and (other := sum(edge) - place) not in order:
                parents[other] = place
                order.append(other)
    return parents, order
