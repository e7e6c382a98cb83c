"""Each rule of the sharp bound is reached, or nearly: no smaller number would do."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from tests.support.neighbours import Neighbours
from tests.support.reached import REACHED

LEAST = Fraction(9, 10)


@pytest.mark.parametrize("case", REACHED, ids=lambda case: case.__name__)
def test_a_rule_is_nearly_reached(case: Callable[[], Neighbours]) -> None:
    found = case()
    assert LEAST * found.bound <= found.moves <= found.bound
    assert not found.broken()
