"""Starting sets of views for the search of a plan: each determines every wanted view."""

from __future__ import annotations

from itertools import product

import numpy as np

from wpinq.marginals.objective import CountedWork, PlanErrors, ViewRows
from wpinq.runtime.arrays import Floats


def random_cover(
    errors: PlanErrors,
    wanted: ViewRows,
    attributes: int,
    most_cells: float,
    random: np.random.Generator,
    work: CountedWork,
) -> ViewRows:
    """Views of so many attributes that hold all wanted ones.

    Each grows from a wanted view that none holds yet, by the attribute with which it holds most of the others.
    """
    found: list[ViewRows] = []
    left = wanted.copy()
    while len(left):
        view = left[random.integers(len(left))].copy()
        while view.sum() < attributes:
            cells = np.exp(errors.logarithms + view @ errors.logarithms)
            further = np.flatnonzero(~view & (cells <= most_cells))
            if not len(further):
                break
            grown = np.repeat(view[None], len(further), axis=0)
            grown[np.arange(len(further)), further] = True
            held = (left.astype(np.float64) @ (~grown).astype(np.float64).T == 0).sum(axis=0)
            view = grown[np.argmax(held + random.random(len(further)))]
            work.done(30, 3 * left.size * len(further) / left.shape[1])
        found.append(view)
        left = left[(left & ~view).any(axis=1)]
        work.done(8, left.size)
    return distinct(np.array(found), np.ones(len(found)))[0]


def random_pool(
    errors: PlanErrors, most_cells: float, random: np.random.Generator, work: CountedWork
) -> tuple[ViewRows, Floats]:
    """Some of all views there are, with random shares that prefer some size: for a few attributes."""
    every = np.array(list(product((False, True), repeat=errors.wanted.shape[1])))
    every = every[every @ errors.logarithms <= np.log(most_cells) + 1e-9]
    share = random.choice([0.15, 0.3, 0.6])
    views = np.concatenate((every[random.random(len(every)) < share], errors.wanted))
    views, _ = distinct(views, np.ones(len(views)))
    work.done(100, 2 * every.size)
    preferred, strength = random.uniform(0, errors.logarithms.sum()), random.uniform(0, 0.5)
    shares = random.exponential(size=len(views)) * np.exp(-strength * np.abs(views @ errors.logarithms - preferred))
    return views, shares / shares.sum()


def disturbed(
    errors: PlanErrors,
    views: ViewRows,
    shares: Floats,
    attributes: int,
    most_cells: float,
    random: np.random.Generator,
    work: CountedWork,
) -> tuple[ViewRows, Floats]:
    """A plan without some of its views, and other views for what only these held."""
    dropped = random.choice(len(views), max(1, round(len(views) * random.uniform(0.1, 0.5))), replace=False)
    kept = np.ones(len(views), dtype=np.bool_)
    kept[dropped] = False
    rest = views[kept]
    left = errors.wanted
    if len(rest):
        left = left[(left.astype(np.float64) @ (~rest).astype(np.float64).T > 0).all(axis=1)]
    work.done(20, left.shape[0] * views.size)
    if not len(left):
        return rest, shares[kept] / shares[kept].sum()
    new = random_cover(errors, left, attributes, most_cells, random, work)
    freed = float(shares[~kept].sum()) / len(new)
    return distinct(np.concatenate((rest, new)), np.concatenate((shares[kept], np.full(len(new), freed))))


def distinct(views: ViewRows, shares: Floats) -> tuple[ViewRows, Floats]:
    """Every view once, where it is first, with the sum of its shares."""
    places: dict[bytes, int] = {}
    which = [places.setdefault(view.tobytes(), len(places)) for view in views]
    first = np.unique(which, return_index=True)[1]
    return views[first], np.bincount(which, shares).astype(np.float64)
