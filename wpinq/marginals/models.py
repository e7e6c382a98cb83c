"""The fit of a joint model to noisy marginals, and the intervals of its marginals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import AnswersError, described
from wpinq.inference.checks import confidence_of, count_of, is_one_of, sequence_of
from wpinq.inference.intervals import linear_half_widths
from wpinq.marginals import joint_model
from wpinq.marginals.cells import Attributes, MeasuredView, View
from wpinq.marginals.joint_model import FitTarget, FullTable as FullTable, JointModel as JointModel
from wpinq.marginals.residual_basis import ConsistentMarginals
from wpinq.runtime.arrays import Floats, Integers

# Mixtures of products: records are of a few hundred kinds, and within a kind attributes are independent.
#
# A marginal of two attributes is then one matrix product, and one of more a product of two matrices whose columns are
# products of a kind's shares. So a fit costs a few matrix products a step, whatever the size of the table.
#
# Source: Aydore et al., *Differentially Private Query Release Through Adaptive Projection*, ICML 2021, and Liu,
# Vietri and Wu, *Iterative Methods for Private Synthetic Data*, NeurIPS 2021: mixtures of products that are fitted by
# gradients.

_BITS = 30


def digital_net(points: int, dimensions: int) -> Integers:
    """A net of at least so many points in a cube of so many dimensions.

    Notes
    -----
    Source: Sobol', *On the distribution of points in a cube*, 1967.
    """
    from scipy.stats import qmc

    net = qmc.Sobol(dimensions, scramble=False, bits=_BITS).random_base2(max(0, (points - 1).bit_length()))
    return np.asarray(np.rint(net * 2**_BITS), dtype=np.int64)


def shifted_ranks(net: Integers, random: np.random.Generator) -> Integers:
    """The ranks in each dimension of the points of a net, after a random shift.

    Each rank from 0 on occurs once.

    Notes
    -----
    A shift adds the same random digits, without carry, to all points: it keeps the net's evenness, and every point by
    itself is uniform. Source: Owen, *Monte Carlo extension of quasi-Monte Carlo*, WSC 1998.

    Examples
    --------
    >>> ranks = shifted_ranks(digital_net(4, 2), np.random.default_rng(0))
    >>> np.sort(ranks, axis=0).tolist(), sorted(map(tuple, (ranks // 2).tolist()))
    ([[0, 0], [1, 1], [2, 2], [3, 3]], [(0, 0), (0, 1), (1, 0), (1, 1)])
    """
    order = np.argsort(net ^ random.integers(0, 2**_BITS, net.shape[1]), axis=0)
    return np.argsort(order, axis=0)


_STEP = 0.1
_FIRST_MOMENT, _SECOND_MOMENT = 0.9, 0.99
#: The standard deviation of the logarithms that kinds begin with, around the table's own shares.
_SPREAD = 0.5
_CENTRINGS = 8

#: Of each kind (first axis), the shares of an attribute's values, or of the cells of several attributes.
Shares = NDArray[Any]


@dataclass(eq=False, repr=False)
class MixtureModel(JointModel):
    """A mixture of products, the default model: `p(record) = 1/K Σ_k Π_i p_{k,i}(record_i)`.

    Attributes
    ----------
    shares : tuple of arrays
        For each attribute its shares in each kind, of shape (K, size).
    """

    shares: tuple[Floats, ...]

    def _shares(self, view: View) -> Floats:
        kinds = len(self.shares[0])
        parts = [self.shares[i] for i in view]
        if not parts:
            return np.ones(())
        cut = _cut([part.shape[1] for part in parts])
        left, right = product_of(parts[:cut]), product_of(parts[cut:], kinds)
        return np.asarray(left.T @ right / kinds).reshape(self.attributes.shape(view))

    def _rows(self, rows: int, random: np.random.Generator) -> Integers:
        kinds = len(self.shares[0])
        found = np.empty((rows, len(self.shares)), dtype=np.int64)
        kind = joint_model.systematic(np.full(kinds, 1 / kinds), rows, random)
        ends = np.searchsorted(kind, np.arange(kinds + 1))
        net = digital_net(-(-rows // kinds), len(self.shares))
        for k, (start, stop) in enumerate(pairwise(ends.tolist())):
            # which value meets which is the net's: pairs of attributes come out nearly as even as each by itself
            ranks = shifted_ranks(net[: stop - start], random)
            for i, shares in enumerate(self.shares):
                found[start:stop, i] = joint_model.systematic(shares[k], stop - start, random)[ranks[:, i]]
        return found


def fit_mixture(target: FitTarget, components: int, members: int, steps: int, seed: int) -> MixtureModel:
    """Several mixtures as one, each from its own random start.

    Differences from start to start average out.
    """
    found = [_MixtureFit(target, components, np.random.default_rng([seed, member])) for member in range(members)]
    taken = [member.run(steps) for member in found]
    parts = zip(*(member.shares(np.float64) for member in found), strict=True)
    shares = tuple(np.concatenate(of_one) for of_one in parts)
    model = MixtureModel(target.attributes, target.total, target.views, 0.0, max(taken), shares)
    left = sum(float(((model.marginal(each.view) - each.counts) ** 2).sum()) / each.variance for each in target.views)
    model.loss = left / target.cells
    return model


@dataclass(slots=True)
class _CutView:
    """A measured view in the units of a fit, cut into two groups of attributes.

    The units are counts over those of one kind.
    """

    left: View
    right: View
    counts: Shares
    weight: np.floating[Any]


class _MixtureFit:
    """The fit of one mixture, by Adam on the logarithms of the shares.

    Floats have 32 bits for speed.
    """

    def __init__(self, target: FitTarget, components: int, random: np.random.Generator, kind: Any = np.float32) -> None:
        sizes = target.attributes.sizes
        self.limit = target.limit
        ends = np.cumsum(sizes)
        self.places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        records = target.total / components
        self.cuts = []
        for measured in target.views:
            cut = _cut(target.attributes.shape(measured.view))
            left, right = measured.view[:cut], measured.view[cut:]
            counts = (measured.counts / records).reshape(target.attributes.cells(left), -1).astype(kind)
            self.cuts.append(_CutView(left, right, counts, kind(records**2 / measured.variance)))
        self.logits: Shares = np.hstack([_scattered(each, components, random) for each in target.singles]).astype(kind)

    def shares(self, kind: Any = None) -> list[Shares]:
        """Of each attribute, in each kind: `softmax` of its logarithms."""
        return [_softmax(self.logits[:, place].astype(kind or self.logits.dtype)) for place in self.places]

    def loss_and_gradient(self) -> tuple[float, Shares]:
        """The loss, and its derivatives by the logarithms."""
        shares = self.shares()
        slopes = [np.zeros_like(each) for each in shares]
        loss = 0.0
        for cut in self.cuts:
            left = product_of([shares[i] for i in cut.left])
            right = product_of([shares[i] for i in cut.right], len(left))
            gap = left.T @ right - cut.counts
            weighted = cut.weight * gap
            loss += float(np.vdot(gap, weighted)) / 2
            _spread(right @ weighted.T, cut.left, shares, slopes)
            _spread(left @ weighted, cut.right, shares, slopes)
        gradient = np.empty_like(self.logits)
        for place, share, slope in zip(self.places, shares, slopes, strict=True):
            gradient[:, place] = share * (slope - (share * slope).sum(axis=1, keepdims=True))
        return loss, gradient

    def run(self, steps: int) -> int:
        """Take steps until the loss is at the limit, and return their number.

        The last third of them are ever smaller.
        """
        first, second = np.zeros_like(self.logits), np.zeros_like(self.logits)
        for step in range(1, steps + 1):
            loss, gradient = self.loss_and_gradient()
            if loss <= self.limit:
                return step - 1
            first += (1 - _FIRST_MOMENT) * (gradient - first)
            second += (1 - _SECOND_MOMENT) * (gradient**2 - second)
            length = _STEP * min(1.0, 3 * (steps - step) / steps) / (1 - _FIRST_MOMENT**step)
            root = np.sqrt(second / (1 - _SECOND_MOMENT**step)) + 1e-12
            self.logits -= length * first / root
        return steps


def _scattered(shares: Floats, components: int, random: np.random.Generator) -> Floats:
    """Logarithms of shares, another in each kind, whose mean over the kinds is as given."""
    logits = np.log(shares) + _SPREAD * random.normal(size=(components, len(shares)))
    for _ in range(_CENTRINGS):
        logits += np.log(shares / _softmax(logits).mean(axis=0))
    return np.asarray(logits)


def _softmax(logits: Shares) -> Shares:
    """The shares of which these are the logarithms, but for a constant a row."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def product_of(parts: Sequence[Shares], kinds: int = 0) -> Shares:
    """The shares of the cells of several attributes within each kind, the last fastest.

    Without attributes there is 1 a kind.
    """
    if not parts:
        return np.ones((kinds, 1), dtype=np.float32)
    found = parts[0]
    for part in parts[1:]:
        found = (found[:, :, None] * part[:, None, :]).reshape(len(part), -1)
    return found


def _spread(slope: Shares, view: View, shares: list[Shares], slopes: list[Shares]) -> None:
    """Add what the derivatives by the cells of a group of attributes are by each of them."""
    if len(view) == 1:
        slopes[view[0]] += slope
    elif view:
        cut = _cut([shares[i].shape[1] for i in view])
        left, right = product_of([shares[i] for i in view[:cut]]), product_of([shares[i] for i in view[cut:]])
        cells = slope.reshape(len(left), left.shape[1], right.shape[1])
        _spread(np.matmul(cells, right[:, :, None])[:, :, 0], view[:cut], shares, slopes)
        _spread(np.matmul(left[:, None, :], cells)[:, 0, :], view[cut:], shares, slopes)


def _cut(sizes: Sequence[int]) -> int:
    """Where to cut some attributes into two groups so that the larger has the fewest cells."""
    return min(range(1, len(sizes)), key=lambda cut: max(prod(sizes[:cut]), prod(sizes[cut:])), default=1)


_MODELS = ("mixture", "full table")
_STEPS = 1000
_COMPONENTS, _MEMBERS = 50, 4


def check_model(model: str, attributes: Attributes) -> None:
    """Refuse a model that cannot be fitted to a table, before measuring.

    Examples
    --------
    >>> check_model("full table", Attributes((2, 2, 2)))
    """
    if not is_one_of(model, _MODELS):
        raise AnswersError(f"a model is 'mixture' or 'full table', not {described(model)}")
    if model == "full table":
        joint_model.check_table(attributes)


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
    """A consistent, non-negative distribution over all records, close to noisy marginals.

    It minimises `½ Σ_a ‖m_a − y_a‖² / (2 b_a²)` over the distributions of a model, from the product of the fitted
    single marginals on, and stops before it follows the noise.

    Parameters
    ----------
    views : sequence of MeasuredView
        Noisy marginals y_a, with Laplace noise of scale b_a.
    attributes : Attributes, sizes, or dict from names to sizes
        The attributes of the table.
    model : str
        "mixture", of products: any number of attributes, any views. "full table": at most 2²⁰ cells; slow, and what
        mixtures are held to.
    stop : float, optional
        The loss to stop at, over what is expected of the truth: more than 0. When left out, `stopping_ratio`.
    steps : int, optional
        The most steps: 1000.
    components, members : int, optional
        Of a mixture: how many products each of its members has, and how many members, each from its own random start,
        are put together as one mixture: 50 and 4.
    seed : int
        The seed of the random starts of a mixture; other models need none. Equal seeds give equal models.

    Raises
    ------
    AnswersError
        When views, or options, do not fit the model.

    Notes
    -----
    No privacy cost: it reads released numbers only. Time and error are in `docs/marginals.md`.

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
    check_model(model, table)
    if model != "mixture" and (components, members) != (None, None):
        raise AnswersError("components and members are of mixtures, a full table has none: leave them out")
    most = count_of(_STEPS if steps is None else steps, "the steps of a fit", 1)
    target = FitTarget.of(given, table, stop)
    found: JointModel
    if model == "full table":
        found = joint_model.fit_full_table(target, most)
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
#: Standard deviations by which a model may be farther from least squares than its re-estimates are from theirs.
_UNLIKELY = 3.0


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
        """The basis of the intervals, to be shown with them."""
        return f"{self.method}; determined by the model only" if self.from_model_only else self.method


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
        The number of re-estimates, at least 20; each takes as long as the fit.
    seed : int
        Of their noise and their starts.

    Returns
    -------
    dict
        For each view its `MarginalIntervals`.

    Notes
    -----
    Approximate but for the exact ones: `docs/marginals.md` has measured coverages. No privacy cost.

    Examples
    --------
    >>> pair = MeasuredView((0, 1), np.array([[60.0, -2.0], [1.0, 41.0]]), scale=1.0)
    >>> model = fit([pair, MeasuredView((2,), np.array([70.0, 31.0]), scale=1.0)], (2, 2, 2), "full table")
    >>> found = marginal_intervals(model, [(0, 1), (1, 2)], draws=20)
    >>> found[(0, 1)].label
    'parametric bootstrap'
    >>> found[(1, 2)].label
    'parametric bootstrap; determined by the model only'
    """
    confidence = confidence_of(confidence)
    count_of(draws, "the draws of a bootstrap", 20)
    count_of(seed, "a seed", 0)
    wanted = model.attributes.views(views)
    estimates = {view: model.marginal(view) for view in wanted}
    supported = [view for view in wanted if model.supported(view)]
    unbiased = ConsistentMarginals(model.measured, model.attributes, supported)
    # the same fit, stopped later
    stop = _ROUGHER * (model.options["stop"] or joint_model.stopping_ratio(model.measured, model.total))
    rougher = fit(model.measured, model.attributes, **{**model.options, "stop": stop}, seed=seed)
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
            scales, repeats = unbiased.algebra.kinds(view)
            exact = linear_half_widths(scales[:, None], confidence, repeats[:, None])
            ends = unbiased[view] - exact, unbiased[view] + exact
            intervals[view] = MarginalIntervals(view, unbiased[view], *ends, EXACT, False)
        else:
            half = NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(squares[view])
            ends = np.maximum(estimates[view] - half, 0.0), estimates[view] + half
            intervals[view] = MarginalIntervals(view, estimates[view], *ends, BOOTSTRAP, not model.supported(view))
    return intervals


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
