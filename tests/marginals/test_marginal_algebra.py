"""Least squares over views: against the dense pseudo-inverse, in every number that is told of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wpinq.errors import AnswersError, PlanError
from wpinq.inference.intervals import laplace_sum_survival, linear_half_widths
from wpinq.marginals.cells import Attributes, MeasuredView
from wpinq.marginals.planning import MarginalPlan
from wpinq.marginals.residual_basis import ConsistentMarginals, MarginalAlgebra

CASES = [
    ((3, 2, 4), [(0, 1), (0, 2), (1, 2)]),
    ((2, 3, 2, 3), [(0, 1), (2, 3), (0, 1, 2), (3,), ()]),
    ((2, 3, 2, 3), [(0, 1, 2, 3)]),
    ((2, 3, 2, 3), list(combinations(range(4), 3))),
    ((3, 1, 4), [(0,), (0, 2), (1, 2)]),
    ((3, 4), [(0,), (1,)]),
    ((5,), [(0,), ()]),
]


def matrix(sizes: tuple[int, ...], view: tuple[int, ...]) -> np.ndarray:
    """The sums of a view, a row a cell."""
    found = np.ones((1, 1))
    for i, size in enumerate(sizes):
        found = np.kron(found, np.eye(size) if i in view else np.ones((1, size)))
    return found


def views_within(views: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return sorted({s for view in views for k in range(len(view) + 1) for s in combinations(view, k)})


@pytest.mark.parametrize(("sizes", "views"), CASES)
def test_estimates_variances_and_coefficients_are_those_of_the_dense_pseudo_inverse(sizes, views) -> None:
    rng = np.random.default_rng(3)
    scales = rng.uniform(0.5, 3.0, len(views))
    inverse = np.linalg.pinv(np.vstack([matrix(sizes, v) / s for v, s in zip(views, scales, strict=True)]))
    counts = [rng.normal(size=tuple(sizes[i] for i in view)) for view in views]
    table = inverse @ np.concatenate([y.ravel() / s for y, s in zip(counts, scales, strict=True)])
    measured = [MeasuredView(v, y, s) for v, y, s in zip(views, counts, scales, strict=True)]
    found = ConsistentMarginals(measured, sizes)
    algebra = MarginalAlgebra(Attributes(sizes), views, scales.tolist())
    for view in views_within(views):
        rows = matrix(sizes, view)
        np.testing.assert_allclose(found.marginal(view).ravel(), rows @ table, rtol=0, atol=1e-13)
        coefficients = np.abs(rows @ inverse)  # of noise of scale 1: each row was divided by its own
        np.testing.assert_allclose(2 * (coefficients**2).sum(axis=1), algebra.variance(view), rtol=1e-12)
        kinds, repeats = algebra.kinds(view)
        assert (repeats == np.rint(repeats)).all()
        each = np.sort(np.repeat(kinds, repeats.astype(int)))
        for row in np.sort(coefficients, axis=1):
            np.testing.assert_allclose(each, row, rtol=0, atol=1e-13)


def test_both_ways_to_solve_agree_and_marginals_are_consistent(monkeypatch) -> None:
    sizes, views = (2,) * 9, [tuple(range(8)), (0, 8), (3, 4, 8)]
    rng = np.random.default_rng(0)
    measured = [MeasuredView(view, rng.normal(size=(2,) * len(view)), 1.0 + i) for i, view in enumerate(views)]
    found = ConsistentMarginals(measured, sizes)
    whole = found.marginal(views[0])  # 256 eigenspaces of 3 views: all at once
    assert not found._spaces
    pair = found.marginal((0, 1))
    assert found._spaces
    np.testing.assert_allclose(whole.sum(axis=tuple(range(2, 8))), pair, atol=1e-12)
    np.testing.assert_allclose(pair.sum(axis=1), found.marginal((0, 8)).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.marginal((3, 4)).sum(), found.marginal(()), atol=1e-12)


def test_noiseless_views_give_their_own_marginals_back() -> None:
    rng = np.random.default_rng(5)
    table = rng.integers(0, 1000, (7, 3, 11, 2)).astype(np.float64)
    views = [(0, 1, 2), (2, 3)]
    measured = [
        MeasuredView(view, table.sum(axis=tuple(i for i in range(4) if i not in view)), scale)
        for view, scale in zip(views, (2.0, 3.0), strict=True)
    ]
    found = ConsistentMarginals(measured, {"a": 7, "b": 3, "c": 11, "d": 2}, [("c", "a"), ("d",)])
    assert list(found) == [(3,), (0, 2)] and len(found) == 2
    np.testing.assert_allclose(found["a", "c"], table.sum(axis=(1, 3)), rtol=1e-13)
    np.testing.assert_allclose(found["d"], table.sum(axis=(0, 1, 2)), rtol=1e-13)
    with pytest.raises(KeyError):
        found["a"]
    with pytest.raises(PlanError, match=r"no view that is measured holds \('a', 'd'\)"):
        found.marginal(("a", "d"))
    with pytest.raises(AnswersError, match="array of shape"):
        ConsistentMarginals([MeasuredView((0, 1), np.zeros(6), 1.0)], (2, 3))


def test_no_array_of_inference_is_larger_than_the_largest_view(monkeypatch) -> None:
    largest = 0
    empty = np.empty_like

    def watched(values, *rest, **named):
        nonlocal largest
        largest = max(largest, values.size)
        return empty(values, *rest, **named)

    monkeypatch.setattr("wpinq.marginals.residual_basis.np.empty_like", watched)
    rng = np.random.default_rng(0)
    sizes = (50,) * 12  # 2.4e20 cells of the table
    views = list(combinations(range(12), 2))
    found = ConsistentMarginals([MeasuredView(v, rng.normal(size=(50, 50)), 1.0) for v in views], sizes)
    assert all(found[view].shape == (50, 50) for view in found)
    assert largest == 2500


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.999])
def test_repeats_of_scales_are_as_if_written_out(confidence: float) -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        scales, repeats = rng.uniform(0, 1, 7) ** 3 + 1e-3, rng.integers(0, 40, 7).astype(float)
        repeats[0] += 1
        each = np.repeat(scales, repeats.astype(int))
        (whole,) = linear_half_widths(each[:, None], confidence)
        (told,) = linear_half_widths(scales[:, None], confidence, repeats[:, None])
        assert told == pytest.approx(whole, rel=1e-7)
        assert laplace_sum_survival(scales, told, repeats) == pytest.approx((1 - confidence) / 2, abs=1e-7)


def test_repeats_that_are_none_are_refused() -> None:
    for repeats in (np.array([[-1.0]]), np.array([[np.nan]]), np.array([[0.0]]), np.ones((2, 1))):
        with pytest.raises(AnswersError):
            linear_half_widths(np.ones((1, 1)), 0.9, repeats)


def test_half_widths_of_all_kinds_cover_as_often_as_they_say() -> None:
    """With a fixed seed: 3,000 draws of 16 cells."""
    rng = np.random.default_rng(11)
    plan = MarginalPlan.of((4, 4, 3), {(0, 1): 2, (1, 2): 1, (0, 2): 1})
    scales, repeats = plan.algebra.kinds((0, 1))
    draws = 3000
    errors = np.empty((draws, 16))
    for row in errors:
        noise = rng.laplace(0, 1.0, plan.cells)
        row[:] = ConsistentMarginals(plan.measured_views(noise, 1.0), plan.attributes).marginal((0, 1)).ravel()
    assert errors.var() == pytest.approx(plan.algebra.variance((0, 1)), rel=0.05)
    for confidence in (0.5, 0.9, 0.99):
        (half,) = linear_half_widths(scales[:, None], confidence, repeats[:, None])
        assert (np.abs(errors) <= half).mean() == pytest.approx(confidence, abs=0.02)


@pytest.mark.parametrize(
    ("given", "view"),
    [((2, 3), (0, 0)), ((2, 3), (2,)), ((2, 3), ("a",)), ((2, 3), (True,)), ({"a": 2}, ("b",)), ((2, 3), 0)],
)
def test_what_is_no_view_is_refused(given, view) -> None:
    with pytest.raises(PlanError):
        Attributes.of(given).view(view)


@pytest.mark.parametrize("given", [(), (0,), (2.0,), {1: 2}, "abc", None, (True,)])
def test_what_are_no_attributes_is_refused(given) -> None:
    with pytest.raises(PlanError):
        Attributes.of(given)


def test_lists_of_views_are_checked() -> None:
    attributes = Attributes.of((2, 3, 4))
    assert attributes.views([(1, 0), ()]) == ((), (0, 1))
    assert attributes.views("singles") == ((0,), (1,), (2,))
    for wrong in ("all fours", [(0, 1), (1, 0)], [], "pairs"):
        with pytest.raises(PlanError):
            attributes.views(wrong)
    with pytest.raises(PlanError, match="of no more attributes"):
        Attributes.of((2, 3)).views("all triples")
