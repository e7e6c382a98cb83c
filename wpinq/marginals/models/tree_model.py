"""Trees: every attribute depends on one other, and marginals come by exact belief propagation.

For measured views of at most two attributes whose pairs close no circle. Of all distributions with the pairs'
marginals, a tree's is that of the largest entropy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wpinq.errors import AnswersError
from wpinq.marginals.cells import Attributes, View
from wpinq.marginals.models.joint_model import MOST_CELLS, FitTarget, JointModel, mirror_descent, systematic
from wpinq.runtime.arrays import Floats, Integers


@dataclass(frozen=True, slots=True)
class Forest:
    """Attributes with the one each depends on: trees, one for each set of attributes that pairs connect.

    Attributes
    ----------
    parents : tuple of int or None
        For each attribute the one above it.
    order : tuple of int
        All attributes, each after the one above it.
    """

    parents: tuple[int | None, ...]
    order: tuple[int, ...]

    @staticmethod
    def of(attributes: Attributes, views: Sequence[View]) -> Forest:
        """From the views that were measured; AnswersError where their pairs close a circle, or one is larger.

        Examples
        --------
        >>> Forest.of(Attributes((2, 2, 2, 2)), [(0, 1), (1, 2), (3,)])
        Forest(parents=(None, 0, 1, None), order=(0, 1, 2, 3))
        """
        beside: list[set[int]] = [set() for _ in attributes.sizes]
        for view in views:
            if len(view) > 2:
                raise AnswersError(
                    f"a tree takes views of one or two attributes, not {attributes.shown(view)}: fit a mixture"
                )
            for place in view:
                beside[place].update(set(view) - {place})
        parents: list[int | None] = [None] * len(beside)
        order: list[int] = []
        for root in range(len(beside)):
            waiting = [] if root in order else [root]
            while waiting:
                place = waiting.pop()
                order.append(place)
                for child in sorted(beside[place] - {parents[place]}, reverse=True):
                    if child in order or child in waiting:
                        raise AnswersError(
                            "the pairs that were measured close a circle, a tree has none: fit a mixture"
                        )
                    parents[child] = place
                    waiting.append(child)
        return Forest(tuple(parents), tuple(order))

    def children(self, place: int) -> list[int]:
        """The attributes that depend on one directly."""
        return [child for child, parent in enumerate(self.parents) if parent == place]


@dataclass(eq=False, repr=False)
class TreeModel(JointModel):
    """A distribution in which every attribute depends on one other: `p(record) = Π_i p(record_i | record_parent(i))`.

    Attributes
    ----------
    forest : Forest
        Which depends on which.
    given : tuple of arrays
        For each attribute its shares given each value of the one above, of shape (size above, size); of roots, one row.
    singles : tuple of arrays
        The shares of each attribute's values.
    """

    forest: Forest
    given: tuple[Floats, ...]
    singles: tuple[Floats, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.singles = _singles(self.forest, self.given)

    def _shares(self, view: View) -> Floats:
        found, places = np.ones(1), []
        for root in (place for place in self.forest.order if self.forest.parents[place] is None):
            needed = self._needed(root, set(view))
            while root not in view and len(needed.get(root, [])) == 1:  # what is above the first fork does not matter
                (root,) = needed[root]
            if root not in needed:
                continue
            below, inner = self._below(root, set(view), needed)
            start = self.singles[root]
            here = (start[:, None] * below).ravel() if root in view else start @ below
            found = np.multiply.outer(found, here).ravel()
            places += [root, *inner] if root in view else inner
        shaped = found.reshape([self.attributes.sizes[place] for place in places])
        return np.asarray(shaped.transpose(np.argsort(places)) if places else shaped.reshape(()))

    def _needed(self, root: int, view: set[int]) -> dict[int, list[int]]:
        """For each attribute from a root down that the view is at or below, the children of which that holds too."""
        needed: dict[int, list[int]] = {}
        for place in reversed(self.forest.order):
            inside = [child for child in self.forest.children(place) if child in needed]
            if place in view or inside:
                needed[place] = inside
        return needed if root in needed else {}

    def _below(self, place: int, view: set[int], needed: dict[int, list[int]]) -> tuple[Floats, list[int]]:
        """The joint shares of the view's attributes below one, given each of its values; and these attributes."""
        found, places = np.ones((self.attributes.sizes[place], 1)), []
        for child in needed[place]:
            below, inner = self._below(child, view, needed)
            given = self.given[child]
            cells = found.size * below.shape[1] * (len(below) if child in view else 1)
            if cells > 2 * MOST_CELLS:
                raise AnswersError(
                    f"a marginal of a tree takes more than {2 * MOST_CELLS} cells on the way: ask for less"
                )
            below = (given[:, :, None] * below).reshape(len(given), -1) if child in view else given @ below
            found = (found[:, :, None] * below[:, None, :]).reshape(len(found), -1)
            places += [child, *inner] if child in view else inner
        return found, places

    def _rows(self, rows: int, random: np.random.Generator) -> Integers:
        found = np.empty((rows, len(self.given)), dtype=np.int64)
        for place in self.forest.order:
            above = self.forest.parents[place]
            groups = np.zeros(rows, dtype=np.int64) if above is None else found[:, above]
            members = np.argsort(groups, kind="stable")
            ends = np.searchsorted(groups[members], np.arange(len(self.given[place]) + 1))
            for value, shares in enumerate(self.given[place]):
                group = members[ends[value] : ends[value + 1]]
                if len(group):
                    found[group, place] = random.permutation(systematic(shares, len(group), random))
        return found


def fit_tree(target: FitTarget, steps: int) -> TreeModel:
    """The tree whose pairs are the measured ones."""
    measured = [each.view for each in target.views]
    forest = Forest.of(target.attributes, measured)

    def beliefs(potentials: list[Floats]) -> list[Floats]:
        given = propagate(target.attributes, forest, measured, potentials)
        singles = _singles(forest, given)
        return [_belief(forest, view, singles, given) for view in measured]

    found = mirror_descent(target, beliefs, steps)
    given = propagate(target.attributes, forest, measured, found.potentials)
    ratio = 2 * found.loss / target.cells
    return TreeModel(target.attributes, target.total, target.views, ratio, found.steps, forest, given)


def propagate(
    attributes: Attributes, forest: Forest, views: Sequence[View], potentials: Sequence[Floats]
) -> tuple[Floats, ...]:
    """Belief propagation: of each attribute its shares given the one above, under `p ∝ exp(Σ_a θ_a)`.

    Examples
    --------
    >>> forest = Forest.of(Attributes((2, 2)), [(0, 1)])
    >>> given = propagate(Attributes((2, 2)), forest, [(0, 1)], [np.log([[1.0, 3.0], [2.0, 2.0]])])
    >>> [table.round(6).tolist() for table in given]
    [[[0.5, 0.5]], [[0.25, 0.75], [0.5, 0.5]]]
    """
    single = [np.zeros(size) for size in attributes.sizes]
    pair: dict[int, Floats] = {}
    for view, potential in zip(views, potentials, strict=True):
        if len(view) == 1:
            single[view[0]] = single[view[0]] + potential
        elif view:
            first, second = view
            child, turned = (second, potential) if forest.parents[second] == first else (first, potential.T)
            pair[child] = pair[child] + turned if child in pair else turned
    given: list[Floats] = [np.zeros((1, 1))] * len(single)
    for place in reversed(forest.order):
        above = forest.parents[place]
        logits = single[place][None, :] if above is None else pair[place] + single[place]
        top = logits.max(axis=1)
        weights = np.exp(logits - top[:, None])
        sums = weights.sum(axis=1)
        given[place] = weights / sums[:, None]
        if above is not None:
            single[above] = single[above] + top + np.log(sums)
    return tuple(given)


def _singles(forest: Forest, given: Sequence[Floats]) -> tuple[Floats, ...]:
    """From the roots down, the shares of each attribute's values."""
    found: list[Floats] = [np.ones(1)] * len(given)
    for place in forest.order:
        above = forest.parents[place]
        found[place] = given[place][0] if above is None else found[above] @ given[place]
    return tuple(found)


def _belief(forest: Forest, view: View, singles: Sequence[Floats], given: Sequence[Floats]) -> Floats:
    if len(view) == 1:
        return singles[view[0]]
    first, second = view
    if forest.parents[second] == first:
        return singles[first][:, None] * given[second]
    return (singles[second][:, None] * given[first]).T
