"""Equations between queries that hold whatever the data, in exact arithmetic."""

import pytest

from tests.support.algebra import LAWS, check_law

CASES = 100


@pytest.mark.parametrize("name", LAWS)
def test_law(name: str) -> None:
    findings = check_law(name, seed=4, cases=CASES)
    assert findings.wrong == 0
    assert findings.equations >= CASES / 2
    assert findings.inhabited >= findings.equations / 3
