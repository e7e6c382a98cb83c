"""Float evaluation stays within its documented distance of the exact one, whatever the order of the input."""

import pytest

from tests.support.floats import check_floats
from tests.support.parameters import tenth


@pytest.mark.parametrize("seed", tenth(range(4), 4))
def test_floats_keep_their_promises(seed: int) -> None:
    findings = check_floats(seed, plans=200)
    assert not findings.rounding
    assert not findings.order
    assert not findings.norm_bound
    assert not findings.slack
    assert findings.largest > 0.001  # the bound is not so wide that nothing could break it
    assert findings.slack_trials >= 25
