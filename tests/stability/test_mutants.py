"""The tests have teeth: errors planted in the rules are found, by random plans or by data built for them."""

from collections.abc import Callable

import pytest

from tests.stability.test_traps import TRAPS
from tests.support.ends import broken_ends
from tests.support.mutants import MUTANTS, Mutant, planted
from tests.support.nasty import attack
from tests.support.parameters import for_each
from tests.support.reached import REACHED

FINDERS: dict[str, Callable[[], object]] = {
    "plans 5": lambda: attack(5, 1_000, first=True).faults,
    "plans 6": lambda: attack(6, 8_000, first=True).faults,
    "ends": broken_ends,
    **{case.__name__: lambda case=case: case().broken() for case in REACHED},
    **{trap.__name__: lambda trap=trap: trap().data.broken() for trap in TRAPS},
}
"""By name: random plans of a seed, both ends of closed wedges, data that reach a rule, and traps."""

FOUND_BY = {
    "a list of something unknown is known": "sorted_keys",
    "a key says what is in a record that may be null": "nullable_fields",
    "shares of a list as if it were not cut": "cut_lists",
    "a join's records are those that changed": "many_keys",
    "an unknown key is one key": "many_keys",
    "edges twice weigh what edges weigh": "twice",
    "of two sides a key weighs what the heavier does": "either_side",
    "edges and their reverse are edges": "both_directions",
    "a key is known by one of its fields": "part_of_a_key",
    "bounds on weights that may be negative": "below_zero",
    "half of a GroupBy is forgotten": "many_keys",
    "a GroupBy only gains": "many_keys",
    "a reducer's value is known": "many_keys",
    "weights of 1 without the fact": "join_gives_back",
    "edges are simple without the fact": "plans 6",
    "an edge in both directions is never a loop": "symmetric_loop",
    "a symmetric edge is one record": "symmetric_pair",
    "what is taken away is added": "join_gives_back",
    "what falls on records of one form falls on one": "join_at_one_key",
    "an unknown key is a known one": "many_keys",
    "weights below zero join as others do": "below_zero",
    "a scale stands still": "join_at_one_key",
    "a scale takes nothing away": "join_at_one_key",
    "a scale gives nothing back": "join_gives_back",
    "of two sides of any sign the larger": "join_of_any_sign",
    "negative shares": "shares_of_either_sign",
    "weights of the record are 1": "shares_that_rows_decide",
    "a norm below 1 is made 1": "shares_of_small_weights",
    "elements of weights that are not known keep apart what is gained and lost": "shares_that_rows_decide",
    "two bounds a key: the smaller": "plans 6",
    "two weights: the larger": "twice",
    "what merges keeps its weight": "below_zero",
    "a bound outlives its key": "plans 6",
    "both sides at records of one form: the larger": "union_of_unknown_records",
    "an Intersect moves as one side does": "intersect_at_two_records",
    "a piece has a known number": "join_gives_back",
    "a constant is its type": "part_of_a_key",
    "both pieces of a pair hold its first": "join_of_any_sign_at_two_keys",
    "a null key is a record": "nullable_fields",
    "one key in a ratio: all keys": "two_ratios",
    "what is beside a ratio is part of it": "beside_a_ratio",
    "an edge closes wedges for nothing": "closed_for_nothing",
    "closed wedges of pairs come and go in the same records": "pairs_of_closed_wedges",
    "pairs of neighbours gain nothing": "closed_wedges_by_form",
    "what closes under an unknown tag weighs the least that any does": "closed_under_any_tag",
    "what closes under no tag weighs the most that any tag does": "closed_under_no_tag",
    "what closes weighs what it would under the tag before": "closed_under_the_heavier_tag",
    "what a tag becomes is set off, gain against loss": "closed_wedges_of_both_signs",
    "the form of one end": "closed_wedges_by_form",
    "the tags below are empty": "ends",
    "a tag moves most where it begins": "ends",
    "nothing moves beyond the last limit": "ends",
    "keys that are not known are the same": "plans 6",
    "each side takes its own share": "sides_in_one_ratio",
    "the scale of a ratio moves half as far": "join_at_one_key",
    "a scale that grows adds": "sides_in_one_ratio",
    "pairs descend with the weight of one side": "sides_in_one_ratio",
    "a ratio of weights that may be negative": "plans 6",
    "what is put together descends as the first does": "beside_a_ratio",
    "paths alone, counted once": "join_of_any_sign",
    "half a way": "join_of_any_sign",
}
"""The first of these that finds an error; where none is named, the first random plans do."""


def found_out(finder: str) -> bool:
    """Whether a step moves further than is said of it."""
    try:
        return bool(FINDERS[finder]())
    except AssertionError:  # one term stands for two values
        return True


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_an_error_in_a_rule_is_found(mutant: Mutant) -> None:
    with planted(mutant):
        assert found_out(FOUND_BY.get(mutant.name, "plans 5")), "another finder may: see FINDERS"


@for_each("finder", [*sorted({*FOUND_BY.values()} - {"plans 6"})])
def test_without_an_error_nothing_is_found(finder: str) -> None:
    assert not found_out(finder)


def test_there_are_enough_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 15
