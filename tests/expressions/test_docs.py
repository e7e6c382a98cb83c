"""The examples of the reference of expressions run, and it names every function."""

from __future__ import annotations

import re
from pathlib import Path

from wpinq.expr.catalogue import FUNCTIONS
from wpinq.expr.definition import LIST_LIMIT, TEXT_LIMIT
from wpinq.expr.derived.enumeration import SUBSET_LIMIT
from wpinq.expr.derived.rearranging import SORT_LIMIT
from wpinq.expr.types import PARTS_LIMIT, TYPE_DEPTH_LIMIT, VALUES_LIMIT

PAGE = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text(encoding="utf-8")


def test_the_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) >= 4


def test_every_function_is_on_the_page() -> None:
    written = {"to_int": "cast", "to_float": "cast", "to_str": "cast"}
    missing = [name for name in FUNCTIONS if name != "list" and f"wp.{written.get(name, name)}" not in PAGE]
    assert not missing


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    for limit in (PARTS_LIMIT, VALUES_LIMIT, LIST_LIMIT, TEXT_LIMIT):
        assert f"{limit:,}" in PAGE
    assert f"nests\nat most {TYPE_DEPTH_LIMIT} deep" in PAGE
    assert f"up to {SORT_LIMIT} fields" in PAGE
    assert f"k at most {SUBSET_LIMIT}" in PAGE
