"""Equations between queries that hold whatever the data, in exact arithmetic."""

import pytest

from tests.support.algebra import LAWS, check_law
from tests.support.parameters import sizes


@pytest.mark.parametrize("cases", sizes(50, 100))
@pytest.mark.parametrize("name", LAWS)
def test_law(name: str, cases: int) -> None:
    findings = check_law(name, seed=4, cases=cases)
    assert findings.wrong == 0
    assert findings.equations >= cases / 2
    assert findings.inhabited >= findings.equations / 3
