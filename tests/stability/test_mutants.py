"""The tests have teeth: errors planted in the rules are found, by random plans or by data built for them."""

from itertools import chain

import pytest

from tests.stability.test_traps import TRAPS
from tests.support.ends import broken_ends
from tests.support.mutants import MUTANTS, Mutant, planted
from tests.support.nasty import attack
from tests.support.reached import REACHED

CASES = 8_000


def found_out(seed: int) -> bool:
    """Whether a step moves further than is said of it: on data that reach the rules, in traps, on random plans."""
    built = (case() for case in REACHED)
    traps = (trap().data for trap in TRAPS if trap.__name__ != "wide_keys")  # which takes its time
    try:
        return (
            bool(attack(seed, 1_000, first=True).faults)
            or any(data.broken() for data in chain(built, traps))
            or broken_ends()
            or bool(attack(seed + 1, CASES, first=True).faults)
        )
    except AssertionError:  # one term stands for two values
        return True


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_an_error_in_a_rule_is_found(mutant: Mutant) -> None:
    with planted(mutant):
        assert found_out(5)


def test_there_are_enough_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 15
