"""Random plans whose data are made worse step by step, uphill: the bounds stand, and many are nearly reached."""

from fractions import Fraction

import pytest

from tests.support.climbing import climb
from tests.support.parameters import tenth

PLANS, TRIES = 15, 60


@pytest.mark.parametrize("seed", tenth([0, 2], 2))
def test_no_data_found_uphill_move_a_plan_further(seed: int) -> None:
    climbed = climb(seed, PLANS, TRIES)
    assert len(climbed.ratios) == PLANS
    assert not climbed.faults
    assert max(climbed.ratios.values()) <= 1
    assert sum(ratio >= Fraction(9, 10) for ratio in climbed.ratios.values()) >= PLANS // 10
