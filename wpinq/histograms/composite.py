"""Workloads made of others: products over several attributes, and several workloads as one."""

from __future__ import annotations

from math import prod

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import PlanError
from wpinq.histograms.workload import Workload, check_domain_size
from wpinq.inference.axes import along_axes, flat_product


class Kronecker(Workload):
    """Products of one query over each of several attributes: `W_1 ⊗ W_2 ⊗ …`.

    Bins and queries are numbered with the last attribute fastest.

    Examples
    --------
    >>> from wpinq.histograms import Bins, Prefixes
    >>> Kronecker(Prefixes(2), Bins(3))
    <Kronecker: 6 queries over 6 bins>
    """

    def __init__(self, *factors: Workload) -> None:
        if not factors or not all(isinstance(factor, Workload) for factor in factors):
            raise PlanError("a Kronecker workload needs a workload for each attribute")
        self.factors = factors
        self.sizes = tuple(factor.domain for factor in factors)
        self.domain = check_domain_size(prod(self.sizes))
        self.queries = prod(factor.queries for factor in factors)

    def answer(self, histogram: Floats) -> Floats:
        return along_axes(histogram, ((factor.domain, factor.answer) for factor in self.factors))

    def transpose(self, answers: Floats) -> Floats:
        return along_axes(answers, ((factor.queries, factor.transpose) for factor in self.factors))

    def gram(self, vectors: Floats) -> Floats:
        return along_axes(vectors, ((factor.domain, factor.gram) for factor in self.factors))

    def gram_diagonal(self) -> Floats:
        return flat_product(factor.gram_diagonal() for factor in self.factors)


class Stacked(Workload):
    """Several workloads over the same bins as one: their queries one after another.

    Examples
    --------
    >>> from wpinq.histograms import Bins, Prefixes
    >>> Stacked(Bins(3), Prefixes(3)).queries
    6
    """

    def __init__(self, *workloads: Workload) -> None:
        if not workloads or not all(isinstance(workload, Workload) for workload in workloads):
            raise PlanError("a stack of workloads needs one workload at least")
        if len({workload.domain for workload in workloads}) > 1:
            raise PlanError("the workloads of a stack must be over the same bins")
        self.workloads = workloads
        self.domain = workloads[0].domain
        self.queries = sum(workload.queries for workload in workloads)

    def answer(self, histogram: Floats) -> Floats:
        return np.concatenate([workload.answer(histogram) for workload in self.workloads])

    def transpose(self, answers: Floats) -> Floats:
        parts = np.split(np.asarray(answers), np.cumsum([workload.queries for workload in self.workloads])[:-1])
        pairs = zip(self.workloads, parts, strict=True)
        return np.asarray(sum(workload.transpose(part) for workload, part in pairs))

    def gram(self, vectors: Floats) -> Floats:
        return np.asarray(sum(workload.gram(vectors) for workload in self.workloads))

    def gram_diagonal(self) -> Floats:
        return np.asarray(sum(workload.gram_diagonal() for workload in self.workloads))
