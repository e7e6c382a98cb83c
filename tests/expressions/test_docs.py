"""The examples of the reference of expressions run, and it names every function."""

from __future__ import annotations

import re
from pathlib import Path

import wpinq as wp
from wpinq.expr.declare import IN_PYTHON
from wpinq.expr.definition import LIST_LIMIT, TEXT_LIMIT
from wpinq.expr.functions.composites import SORT_LIMIT, SUBSET_LIMIT
from wpinq.expr.types import PARTS_LIMIT, TYPE_DEPTH_LIMIT, VALUES_LIMIT

PAGE = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text(encoding="utf-8")


def test_the_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) >= 4


def test_the_page_names_every_function_and_no_other() -> None:
    assert set(re.findall(r"\bF\.([a-z_]+)", PAGE)) == IN_PYTHON.keys()
    assert {name for name in re.findall(r"\bwp\.([a-z_]+)", PAGE) if not hasattr(wp, name)} == set()


def test_every_function_has_a_docstring() -> None:
    assert [name for name, function in IN_PYTHON.items() if not function.__doc__] == []


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    for limit in (PARTS_LIMIT, VALUES_LIMIT, LIST_LIMIT, TEXT_LIMIT):
        assert f"{limit:,}" in PAGE
    assert f"nested at most {TYPE_DEPTH_LIMIT} deep" in PAGE
    assert f"up to {SORT_LIMIT} fields" in PAGE
    assert f"k at most {SUBSET_LIMIT}" in PAGE
