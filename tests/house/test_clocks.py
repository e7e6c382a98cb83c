"""No test looks at the clock: what it would measure is how busy the machine is."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
AUDIT = TESTS / "audit" / "hours.py"
"""The time that an audit is given, and how long debits waited: both are told, and nothing fails by them."""

_CLOCK = re.compile(r"\b(time\.(time|monotonic|perf_counter)(_ns)?|(datetime|date)\.(now|today))\(\)")


def test_no_test_measures_time_that_passes() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{number}"
        for path in sorted(TESTS.rglob("*.py"))
        if path != AUDIT
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if _CLOCK.search(line)
    ]
    assert found == [], "processor time (time.process_time), or better a count of work, does not hang on other programs"


def test_a_clock_is_found() -> None:
    assert all(map(_CLOCK.search, ("time.time" + "()", "time.perf_counter_ns" + "()", "time.monotonic" + "() + 60")))
    assert not _CLOCK.search("time.process_time()")
