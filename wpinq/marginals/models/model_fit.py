"""The fit of a joint model to noisy marginals, and the intervals of its marginals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import confidence_of, count_of, is_one_of, sequence_of
from wpinq.inference.laplace_sums import linear_half_widths
from wpinq.marginals.attributes import Attributes, MeasuredView, View
from wpinq.marginals.models.joint_model import FitTarget, JointModel, check_table, fit_full_table, stopping_ratio
from wpinq.marginals.models.mixture import fit_mixture
from wpinq.marginals.models.tree_model import Forest, fit_tree
from wpinq.marginals.residual_basis import ConsistentMarginals, MarginalAlgebra
from wpinq.runtime.arrays import Floats

_STEPS = {"mixture": 1000, "tree": 400, "full table": 1000}
_COMPONENTS, _MEMBERS = 50, 4


def check_model(model: str, attributes: Attributes, views: Sequence[View]) -> None:
    """Refuse, before anything is measured, a model that cannot be fitted to these views of a table.

    Examples
    --------
    >>> check_model("tree", Attributes((2, 2, 2)), [(0, 1), (1, 2)])
    """
    if not is_one_of(model, _STEPS):
        raise AnswersError(f"a model is one of {', '.join(map(repr, _STEPS))}, not {model!r}")
    if model == "tree":
        Forest.of(attributes, views)
    elif model == "full table":
        check_table(attributes)


def fit(
    views: Sequence[MeasuredView],
    attributes: Any,
    model: str = "mixture",
    *,
    stop: float | None = None,
    steps: int | None = None,
    components: int | None = None,
    members: int | None = None,
    seed: int = 0,
) -> JointModel:
    """A distribution over all records whose marginals are close to noisy ones: non-negative, and one with another.

    It minimises `½ Σ_a ‖m_a − y_a‖² / (2 b_a²)` over the distributions of a model, from the product of the fitted
    single marginals on, and stops before it follows the noise.

    Parameters
    ----------
    views : sequence of MeasuredView
        Noisy marginals y_a, with Laplace noise of scale b_a.
    attributes : Attributes, sizes, or dict from names to sizes
        The attributes of the table.
    model : str
        "mixture", of products: any number of attributes, any views. "tree": views of at most two attributes whose
        pairs close no circle. "full table": at most 2²⁰ cells; slow, and what the others are held to.
    stop : float, optional
        The loss to stop at, over what is expected of the truth: more than 0. When left out, `stopping_ratio`.
    steps : int, optional
        The most steps: 1000, of a tree 400.
    components, members : int, optional
        Of a mixture: how many products each of its members has, and how many members, each from its own random start,
        are put together as one mixture: 50 and 4.
    seed : int
        Of a mixture's random starts; the others have none. The same seed gives the same model.

    Raises
    ------
    AnswersError
        When views, or options, do not fit the model.

    Notes
    -----
    No privacy cost: it reads released numbers only. Time and error are in `docs/joint_models.md`.

    Examples
    --------
    >>> import numpy as np
    >>> pair = MeasuredView((0, 1), np.array([[60.0, -2.0], [1.0, 41.0]]), scale=1.0)
    >>> found = fit([pair], {"a": 2, "b": 2}, "full table")
    >>> bool(found.marginal(("a", "b")).min() >= 0), found.marginal("a").sum().round()
    (True, np.float64(100.0))
    """
    given = sequence_of(views, "measured views")
    if not all(isinstance(each, MeasuredView) for each in given):
        raise AnswersError("measured views are MeasuredView(view, counts, scale): read them off a strategy's answers")
    table = Attributes.of(attributes)
    check_model(model, table, [each.view for each in given])
    if model != "mixture" and (components, members) != (None, None):
        raise AnswersError(f"components and members are of mixtures, a {model} has none: leave them out")
    most = count_of(_STEPS[model] if steps is None else steps, "the steps of a fit", 1)
    target = FitTarget.of(given, table, stop)
    found: JointModel
    if model == "tree":
        found = fit_tree(target, most)
    elif model == "full table":
        found = fit_full_table(target, most)
    else:
        found = fit_mixture(
            target,
            count_of(_COMPONENTS if components is None else components, "the components of a mixture", 1, 2**16),
            count_of(_MEMBERS if members is None else members, "the members of a mixture", 1, 2**10),
            most,
            count_of(seed, "a seed", 0),
        )
    found.options = {"model": model, "stop": stop, "steps": steps, "components": components, "members": members}
    return found


# --- intervals --------------------------------------------------------------------------------------------------------

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
