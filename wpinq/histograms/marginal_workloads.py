"""Workloads that are marginals: stacks of products of bins and totals, told by their Gram matrices.

The queries of one attribute are marginal where `WᵀW = a·I + b·11ᵀ`: bins have (1, 0), a total has (0, 1). A product of
such is, in what its error depends on, the marginals of all subsets of its attributes, with the products of a inside
and of b outside as weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np

from wpinq.errors import PlanError
from wpinq.histograms.composite import Kronecker, Stacked
from wpinq.histograms.workload import Bins, Matrix, Ranges, Workload
from wpinq.marginals.attributes import MOST_VIEWS
from wpinq.marginals.measured_views import View

_LARGEST_GRAM = 1 << 20
"""Numbers of answers to all unit vectors, where a Gram matrix is looked at as such."""
_EQUAL = 1e-9


def flattened(workload: Workload) -> Iterator[Workload]:
    """The parts of a stack, and of stacks in it; another workload by itself."""
    if isinstance(workload, Stacked):
        for part in workload.workloads:
            yield from flattened(part)
    else:
        yield workload


def marginal_weights(workload: Workload) -> tuple[tuple[int, ...], dict[View, float]] | None:
    """The sizes of the attributes, and the weight of each marginal that a stack of products stands for.

    `‖W A⁺‖²` is the sum over the marginals of their weight times the variance of their cells. None for a workload that
    is no stack of two products or more, over the same attributes, of bins and totals.

    Examples
    --------
    >>> total = Matrix([[1, 1, 1]])
    >>> marginal_weights(Stacked(Kronecker(Bins(2), total), Kronecker(Bins(2), Bins(3))))
    ((2, 3), {(0,): 1.0, (0, 1): 1.0})
    """
    parts = [part for part in flattened(workload) if isinstance(part, Kronecker)]
    if not isinstance(workload, Stacked) or len(parts) < len(list(flattened(workload))):
        return None
    if len({part.sizes for part in parts}) > 1 or len(parts[0].sizes) < 2:
        return None
    found: dict[View, float] = {}
    for part in parts:
        factors = [_factor(factor) for factor in part.factors]
        known = [factor for factor in factors if factor is not None]
        if len(known) < len(factors):
            return None
        # 1 where the attribute is inside
        choices = [[j for j, weight in enumerate((outside, inside)) if weight] for inside, outside in known]
        if prod(map(len, choices)) + len(found) > MOST_VIEWS:
            raise PlanError(f"the workload stands for more than {MOST_VIEWS} marginals: ask for fewer")
        for chosen in product(*choices):
            view = tuple(i for i, inside in enumerate(chosen) if inside)
            weight = prod(pair[0] if inside else pair[1] for pair, inside in zip(known, chosen, strict=True))
            found[view] = found.get(view, 0.0) + weight
    return (parts[0].sizes, found) if found else None


def _factor(workload: Workload) -> tuple[float, float] | None:
    """The a and b of one attribute's queries, both at least 0; None where they are not marginal."""
    size = workload.domain
    if isinstance(workload, Stacked):
        pairs = [_factor(part) for part in workload.workloads]
        known = [pair for pair in pairs if pair is not None]
        return (sum(a for a, _ in known), sum(b for _, b in known)) if len(known) == len(pairs) else None
    if isinstance(workload, Bins):
        return (1.0, 0.0) if size > 1 else (0.0, 1.0)
    if workload.queries == 1 and isinstance(workload, (Ranges, Matrix)):
        row = workload.gram_diagonal()
        signs = workload.answer(np.ones(size))[0] ** 2
        alike = row.max() - row.min() <= _EQUAL * row.max() and abs(signs - size**2 * row[0]) <= _EQUAL * signs
        return (0.0, float(row[0])) if alike and row[0] > 0 else None
    if size * max(size, workload.queries) > _LARGEST_GRAM:
        return None
    gram = workload.gram(np.eye(size))
    apart = float(gram[0, 1]) if size > 1 else float(gram[0, 0])
    same = float(gram[0, 0]) - apart
    if np.abs(gram - apart - same * np.eye(size)).max() > _EQUAL * np.abs(gram).max():
        return None
    slack = _EQUAL * float(np.abs(gram).max())
    if apart < -slack or same < -slack:
        return None
    return (same if same > slack else 0.0, apart if apart > slack else 0.0)
