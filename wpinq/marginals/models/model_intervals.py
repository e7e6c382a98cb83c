"""Intervals around a joint model's marginals, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from wpinq.arrays import Floats
from wpinq.inference.checks import confidence_of, count_of
from wpinq.inference.laplace_sums import linear_half_widths
from wpinq.marginals.marginal_algebra import MarginalAlgebra
from wpinq.marginals.measured_views import MeasuredView, View
from wpinq.marginals.models.fit_target import stopping_ratio
from wpinq.marginals.models.joint_model import JointModel
from wpinq.marginals.models.model_fit import fit
from wpinq.marginals.residuals import ConsistentMarginals

BOOTSTRAP = "parametric bootstrap"
EXACT = "exact, of least squares"
_ROUGHER = 0.7
_UNLIKELY = 3.0
"""Standard deviations by which a model may be farther from least squares than its re-estimates are from theirs."""


@dataclass(frozen=True, slots=True, eq=False)
class MarginalIntervals:
    """Intervals around the counts of one view.

    Attributes
    ----------
    view : tuple of int
        The attributes.
    estimate, lower, upper : arrays
        An axis an attribute. The estimate is the model's marginal; that of least squares where the interval is exact.
    method : str
        "parametric bootstrap", approximate, or "exact, of least squares", where the bootstrap would not cover.
    from_model_only : bool
        Whether no measured view holds these attributes: then nothing but the model says how they go together.
    """

    view: View
    estimate: Floats
    lower: Floats
    upper: Floats
    method: str
    from_model_only: bool

    @property
    def label(self) -> str:
        """What the intervals rest on, to be shown with them."""
        return f"{self.method}; follows from the model only" if self.from_model_only else self.method


def marginal_intervals(
    model: JointModel, views: Sequence[Any], confidence: float = 0.9, draws: int = 50, seed: int = 0
) -> dict[View, MarginalIntervals]:
    """Intervals around marginals of a fitted model.

    A rougher model is taken for the truth: one of the same kind that was fitted farther, to 0.7 times the loss, for
    what was stopped early is smoother than the truth is. Noise of the same law is added to its measured views, and the
    model is fitted again as it was. The half-width of a cell's interval is `z · √(mean of (re-estimate − truth)²)`, z
    the quantile of the normal law, so that what early stopping bends counts too.

    A model can be farther off than its own re-estimates are: what it cannot express is not in them. So each view that
    was measured is compared with least squares, which is unbiased. Where the two are farther apart than is likely from
    the re-estimates, by 3 standard deviations of that distance, the exact interval of least squares is given instead,
    with its estimate, and `method` says so.

    Parameters
    ----------
    model : JointModel
        From `fit`.
    views : sequence
        The views that are wanted, measured or not.
    confidence : float
        Strictly between 0 and 1; of each cell by itself.
    draws : int
        How many re-estimates, at least 20: each costs as much as the fit.
    seed : int
        Of their noise and their starts.

    Returns
    -------
    dict
        For each view its `MarginalIntervals`.

    Notes
    -----
    Approximate but for the exact ones: `docs/joint_models.md` has measured coverages. No privacy cost.

    Examples
    --------
    >>> pair = MeasuredView((0, 1), np.array([[60.0, -2.0], [1.0, 41.0]]), scale=1.0)
    >>> model = fit([pair, MeasuredView((2,), np.array([70.0, 31.0]), scale=1.0)], (2, 2, 2), "full table")
    >>> found = marginal_intervals(model, [(0, 1), (1, 2)], draws=20)
    >>> found[(0, 1)].label
    'parametric bootstrap'
    >>> found[(1, 2)].label
    'parametric bootstrap; follows from the model only'
    """
    confidence = confidence_of(confidence)
    count_of(draws, "the draws of a bootstrap", 20)
    count_of(seed, "a seed", 0)
    wanted = model.attributes.views(views)
    estimates = {view: model.marginal(view) for view in wanted}
    supported = [view for view in wanted if model.supported(view)]
    unbiased = ConsistentMarginals(model.measured, model.attributes, supported)
    rougher = _rougher(model, seed)
    truth = {view: rougher.marginal(view) for view in wanted}
    apart = {view: float(((estimates[view] - unbiased[view]) ** 2).sum()) for view in supported}
    squares = {view: np.zeros_like(estimates[view]) for view in wanted}
    again: dict[View, list[float]] = {view: [] for view in supported}
    for answers, other in _re_estimates(model, rougher, draws, seed):
        least = ConsistentMarginals(answers, model.attributes, supported)
        for view in wanted:
            found = other.marginal(view)
            squares[view] += (found - truth[view]) ** 2 / draws
            if view in again:
                again[view].append(float(((found - least[view]) ** 2).sum()))
    intervals = {}
    for view in wanted:
        if view in again and apart[view] > np.mean(again[view]) + _UNLIKELY * np.std(again[view]):
            intervals[view] = _exact(model, view, unbiased[view], confidence)
        else:
            half = NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(squares[view])
            ends = np.maximum(estimates[view] - half, 0.0), estimates[view] + half
            intervals[view] = MarginalIntervals(view, estimates[view], *ends, BOOTSTRAP, not model.supported(view))
    return intervals


def _rougher(model: JointModel, seed: int) -> JointModel:
    """The same fit, stopped later."""
    stop = model.options["stop"] or stopping_ratio(model.measured, model.total)
    return fit(model.measured, model.attributes, **{**model.options, "stop": _ROUGHER * stop}, seed=seed)


def _re_estimates(
    model: JointModel, truth: JointModel, draws: int, seed: int
) -> Iterator[tuple[list[MeasuredView], JointModel]]:
    """Answers as that truth would give them, with noise; and the model fitted to them."""
    noiseless = [truth.marginal(each.view) for each in model.measured]
    for draw in range(draws):
        random = np.random.default_rng([seed, draw])
        answers = [
            MeasuredView(each.view, counts + random.laplace(0.0, each.scale, counts.shape), each.scale)
            for each, counts in zip(model.measured, noiseless, strict=True)
        ]
        yield answers, fit(answers, model.attributes, **model.options, seed=int(random.integers(2**31)))


def _exact(model: JointModel, view: View, estimate: Floats, confidence: float) -> MarginalIntervals:
    measured = model.measured
    algebra = MarginalAlgebra(model.attributes, [each.view for each in measured], [each.scale for each in measured])
    scales, repeats = algebra.kinds(view)
    half = float(linear_half_widths(scales[:, None], confidence, repeats[:, None])[0])
    return MarginalIntervals(view, estimate, estimate - half, estimate + half, EXACT, False)
