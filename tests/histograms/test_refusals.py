"""Bad input to public functions: an error of wpinq that says what is wrong, and never another."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import histograms as h
from wpinq.errors import AnswersError, PlanError, WpinqError
from wpinq.inference.checks import MOST_BINS, MOST_RECORDS

people = wp.source("people", int)
persons = wp.source("persons", group=int, place=int)
TREE = h.Tree([[2]])
LEVELS = h.HierarchicalCounts(TREE, [2, 2], 3)
NOISY = [[np.ones(3)], [np.ones(3), np.ones(3)]]
COUNTS = h.CountOfCounts(4, 4)
TWO = h.Product(h.Identity(2), h.Identity(2))


def places(record):
    return record.place


def same(values):
    return values


LISTS = {
    "a tree": h.Tree,
    "split": TREE.split,
    "totals": TREE.totals,
    "zero_subtrees": lambda x: h.zero_subtrees(TREE, x),
    "project_tree": lambda x: h.project_tree(TREE, x),
    "round_tree": lambda x: h.round_tree(TREE, x),
    "tree_least_squares": lambda x: h.tree_least_squares(TREE, x),
    "mean_consistency": lambda x: h.mean_consistency(TREE, x),
    "consistent_sizes": lambda x: h.consistent_sizes(TREE, x),
    "match_sizes": lambda x: h.match_sizes([1, 2], x),
    "methods": lambda x: h.HierarchicalCounts(TREE, [2, 2], 3, x),
    "groups": lambda x: h.HierarchicalCounts(TREE, x, 3),
    "epsilons": lambda x: LEVELS.measure(persons, x, places, places),
    "answers of the levels": LEVELS.infer,
    "answers of a level": lambda x: LEVELS.answers_of(1, x),
    "numbers of groups": COUNTS.answers_from,
    "numbers of groups to compare": lambda x: h.earth_movers_distance(x, [1]),
    "workload": lambda x: h.Identity(2).expected_error(x, 1),
}


@for_each("bad", [None, 5, "ab", ["a", "b"], [None, None], [[1], [1, "2"]], [[1j], [1]], object], ids=str)
@for_each("name", LISTS)
def test_lists_that_are_none(name, bad):
    with pytest.raises(WpinqError):
        LISTS[name](bad)


@pytest.mark.parametrize("fit", [h.zero_subtrees, h.tree_least_squares, h.mean_consistency])
def test_trees_that_are_none(fit):
    for bad in (None, [[2]], "tree"):
        with pytest.raises(AnswersError, match="Tree"):
            fit(bad, [[1.0], [0.5, 0.5]])
    with pytest.raises(AnswersError, match="Tree"):
        h.consistent_sizes(None, [[[1, 2]], [[1], [2]]])


def test_strings_are_no_numbers():
    for call in (
        lambda: h.range_sums(["1", "2"], [0], [1]),
        lambda: h.Identity(2).infer(["1", "2"]),
        lambda: h.project_tree(TREE, [["1"], ["1", "0"]]),
        lambda: h.Matrix([["1", "2"]]),
        lambda: h.project_to_total([1.0], "1"),
    ):
        with pytest.raises(WpinqError, match="number"):
            call()


def test_integers_that_python_does_not_print():
    for call in (
        lambda: h.Identity(-(10**5000)),
        lambda: h.quantile([1.0], 10**5000),
        lambda: h.bootstrap([1.0], same, same, 10**5000),
    ):
        with pytest.raises(WpinqError, match="more than 100 digits"):
            call()


SEEDED = {
    "simulated_error": lambda seed: h.simulated_error(h.Identity(2), h.Bins(2), 1, [1, 1], seed=seed),
    "simulated_sorted_error": lambda seed: h.simulated_sorted_error(h.Sorted(2), 1, [1, 1], seed=seed),
    "simulated_distance": lambda seed: h.simulated_distance(COUNTS, 1, [0, 4, 0, 0, 0], seed=seed),
    "optimise": lambda seed: h.optimise(h.Bins(4), seed=seed),
    "bootstrap": lambda seed: h.bootstrap([1.0], same, same, 1.0, seed=seed),
}


@for_each("seed", [None, -1, 0.5, "1", [1], True])
@for_each("name", SEEDED)
def test_seeds_that_are_none(name, seed):
    with pytest.raises(WpinqError, match="a seed must be"):
        SEEDED[name](seed)


def test_strategies_of_another_kind_are_refused_by_simulations():
    for call in (
        lambda: h.simulated_error(h.Sorted(2), h.Bins(2), 1, [1, 1]),
        lambda: h.simulated_sorted_error(h.Identity(2), 1, [1, 1]),
        lambda: h.simulated_distance(None, 1, [1, 1]),
    ):
        with pytest.raises(PlanError, match="this simulates"):
            call()


PAIR = np.array(["laplace", "top down"])
NAMES = {
    "mechanism": lambda x: h.Identity(2).measure(people, 1, mechanism=x),
    "mechanism of a choice": lambda x: h.choose(h.Bins(2), 1, candidates=[h.Identity(2)], mechanism=x, source=people),
    "nonnegative": lambda x: h.Identity(2).infer([1.0, 1.0], x),
    "nonnegative of a tree": lambda x: h.Hierarchical(2).infer([2.0, 1.0, 1.0], x),
    "method": lambda x: h.CountOfCounts(2, 2, x),
    "p": lambda x: h.CountOfCounts(2, 2, p=x),
    "p of sorted counts": lambda x: h.Sorted(2).infer([1.0, 1.0], x),
}


@for_each("bad", [PAIR, np.array([1, 2]), ["laplace"], "other", True, 1.5], ids=str)
@for_each("name", NAMES)
def test_names_and_norms_that_are_none(name, bad):
    with pytest.raises(WpinqError):
        NAMES[name](bad)


def test_levels_and_functions_of_counts_over_locations():
    for level in (2, -1, True, None, "0"):
        for call in (LEVELS.keys, lambda level: LEVELS.answers_of(level, NOISY[0])):
            with pytest.raises(PlanError, match="a level is"):
                call(level)
    for group, location in ((None, places), (places, 5)):
        with pytest.raises(PlanError, match="functions"):
            LEVELS.measure(persons, [1, 1], group, location)
    with pytest.raises(PlanError, match="candidates"):
        h.choose(h.Bins(2), 1, candidates=5)


def test_numbers_of_groups_are_integers_of_their_sum():
    for bad in ([0, 4, 0, 0], [0, 3, 0, 0, 0], [-1, 5, 0, 0, 0], [0.5, 3.5, 0, 0, 0]):
        with pytest.raises(AnswersError, match="numbers of groups"):
            COUNTS.answers_from(bad)


def test_bootstraps_of_other_than_functions_to_finite_numbers():
    for answers, infer in (
        (None, same),
        (same, 5),
        (lambda x: "a", same),
        (lambda x: None, same),
        (same, lambda x: None),
        (same, lambda x: x * math.nan),
        (same, lambda x: [1.0, 2.0, 3.0]),
    ):
        with pytest.raises(AnswersError):
            h.bootstrap([1.0, 2.0], answers, infer, 1.0)


# --- sizes ----------------------------------------------------------------------------------------------------------

SIZED = {
    "Identity": h.Identity,
    "Sorted": h.Sorted,
    "Hierarchical": h.Hierarchical,
    "branching": lambda n: h.Hierarchical(4, n),
    "Wavelet": h.Wavelet,
    "AllRanges": h.AllRanges,
    "Bins": h.Bins,
    "leaves": lambda n: h.Tree.uniform(n, 2),
    "branching of a tree": lambda n: h.Tree.uniform(4, n),
    "children": lambda n: h.Tree([[n]]),
    "children together": lambda n: h.Tree([[2], [n - 1, 1]]),
    "largest": lambda n: h.CountOfCounts(4, n),
    "groups": lambda n: h.CountOfCounts(n, 4, "unattributed"),
    "records": lambda n: h.bayes_count(1.0, n, 0.5, 1.0),
    "sums": lambda n: h.optimise(h.Bins(2), sums=n),
    "domain": lambda n: h.choose(h.Bins(4), 1, domain=n),
}


@for_each("size", [MOST_BINS + 1, 2**62, 2**63, 2**64, 10**30], ids=str)
@for_each("name", SIZED)
def test_sizes_beyond_the_limit_are_refused_at_once(name, size):
    with pytest.raises(WpinqError, match=r"at most|too many|number of children"):
        SIZED[name](size)


def test_products_beyond_the_limit_are_refused():
    half = 2**16
    with pytest.raises(PlanError, match="at most"):
        h.Product(h.Identity(half), h.Identity(half))
    with pytest.raises(PlanError, match="at most"):
        h.Kronecker(h.Bins(2**22), h.Bins(2**22), h.Bins(2**22))
    with pytest.raises(PlanError, match="too many"):
        h.AllRanges(half).answer(np.zeros(half))


def test_groups_and_records_are_counted_as_far_as_floats_count():
    assert h.CountOfCounts(MOST_RECORDS, 2).infer([0.0, 0.0]).tolist() == [0, 0, MOST_RECORDS]
    with pytest.raises(PlanError, match="at most"):
        h.CountOfCounts(MOST_RECORDS + 1, 2)
    with pytest.raises(AnswersError, match="too many to list"):
        h.CountOfCounts(MOST_RECORDS, 2).sizes([0.0, 0.0], 1)
    with pytest.raises(PlanError, match="at most"):
        h.HierarchicalCounts(TREE, [2**62, 2**62], 2)
    with pytest.raises(AnswersError, match="at most"):
        h.round_to_total([1e30], 10**30)
    with pytest.raises(AnswersError, match="no integers apart"):
        h.round_tree(TREE, [[2e30], [1e30, 1e30]])
