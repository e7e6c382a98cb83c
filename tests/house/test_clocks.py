"""No test looks at the clock: what it would measure is how busy the machine is. No test of the default suite sleeps."""

from __future__ import annotations

import ast
import contextlib
import re
from pathlib import Path

import pytest

from tests.support.processor import bounded_work

TESTS = Path(__file__).resolve().parents[1]
TOLD = {TESTS / "audit" / "hours.py", TESTS / "stability" / "__main__.py"}
"""Times that programs print: of an audit, of debits that waited, of a search. Nothing fails by them."""

_CLOCK = re.compile(r"\b(time\.(time|monotonic|perf_counter|process_time)(_ns)?|(datetime|date)\.(now|today))\(\)")


def test_no_test_measures_time_that_passes() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{number}"
        for path in sorted(TESTS.rglob("*.py"))
        if path not in TOLD
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if _CLOCK.search(line)
    ]
    assert found == [], "count the work, or set a limit by tests.support.processor"


def test_a_clock_is_found() -> None:
    assert all(map(_CLOCK.search, ("time.time" + "()", "time.perf_counter_ns" + "()", "time.monotonic" + "() + 60")))
    assert _CLOCK.search("time.process_time" + "()")


@pytest.mark.parametrize("caught", [OSError, ZeroDivisionError])
def test_work_without_end_fails_even_where_the_body_catches_the_error(caught: type[Exception]) -> None:
    with pytest.raises(TimeoutError, match="processor time"), bounded_work(0.05), contextlib.suppress(caught):
        while True:
            pass


_IMPORTED = re.compile(r"^from tests\.[\w.]+ import (\([^)]*\)|.*)$", re.MULTILINE)
_SLEEP = re.compile(r"\bsleep\((?!0\))")


Function = ast.FunctionDef | ast.AsyncFunctionDef


def sleeping(text: str, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """The functions and methods of a module that sleep, or use one of these or of those that are known to."""
    found, size = set(known), -1
    lines = text.splitlines()
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, Function)]
    bodies = {node: "\n".join(lines[node.body[0].lineno - 1 : node.end_lineno]) for node in nodes}
    while len(found) > size:
        size = len(found)
        uses = re.compile("|".join([_SLEEP.pattern, *(rf"\b{name}\(" for name in found)]))
        found |= {node.name for node, body in bodies.items() if uses.search(body)}
    return frozenset(found)


def sleepers(text: str, known: frozenset[str] = frozenset()) -> list[str]:
    """The tests of a module that sleep, themselves or by a helper, and are not left to the long suite."""
    imported = {name for names in _IMPORTED.findall(text) for name in re.findall(r"\w+", names)} & known
    if not imported and not _SLEEP.search(text):
        return []
    tree = ast.parse(text)
    if any(isinstance(node, ast.Assign) and "mark.long" in ast.unparse(node.value) for node in tree.body):
        return []
    asleep = sleeping(text, frozenset(imported))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    left = [test for test in tests if not any("mark.long" in ast.unparse(d) for d in test.decorator_list)]
    return [test.name for test in left if test.name in asleep]


def test_no_test_of_the_default_suite_sleeps() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py") if path != Path(__file__)}
    helpers = frozenset[str]().union(
        *(sleeping(t) for p, t in texts.items() if not p.name.startswith("test_") and _SLEEP.search(t))
    )
    assert {path.name: found for path, text in texts.items() if (found := sleepers(text, helpers))} == {}


def test_a_sleeper_is_found() -> None:
    text = "def test_a():\n    sleep" + "(0)\n\ndef test_b():\n    time.sleep" + "(1)\n"
    assert sleepers(text) == ["test_b"]
    assert sleepers("def wait():\n    sleep" + "(1)\n\ndef test_c():\n    wait()\n") == ["test_c"]
    assert sleepers("from tests.a import wait\ndef test_d():\n    wait()\n", frozenset({"wait"})) == ["test_d"]
    assert sleepers("pytestmark = pytest.mark.long\n" + text) == []
    assert sleepers(text.replace("def test_b", "@pytest.mark.long\ndef test_b")) == []
