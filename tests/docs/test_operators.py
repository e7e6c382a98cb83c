"""The registry, the methods of Query, the words of the text language and docs/operators.md correspond."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import wpinq as wp
from tests.support.operators import CASES
from tests.support.parameters import for_each
from wpinq.api.query import Query
from wpinq.plan.operator import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))

NO_OPERATOR = {"read_as", "unnest", "with_columns"}
"""Methods of Query that give a query and are no operator."""

BY_NAME = {"select": {"function"}, "join": {"left_key", "right_key"}}
"""What need not be given to a method where columns are named instead."""


def test_the_page_is_up_to_date() -> None:
    assert GENERATE["stale"]({"operators.md": GENERATE["operators"]()}) == []


def test_check_finds_a_changed_and_a_missing_page(tmp_path: Path) -> None:
    copy = tmp_path / "docs"
    copy.mkdir()
    (tmp_path / "wpinq").symlink_to(ROOT / "wpinq")
    for name in ("generate.py", "trusted.toml"):
        (copy / name).write_text((ROOT / "docs" / name).read_text(encoding="utf-8"), encoding="utf-8")
    (copy / "architecture.md").write_text(GENERATE["architecture"](), encoding="utf-8")
    for content in (None, GENERATE["operators"]() + "a word more\n"):
        if content is not None:
            (copy / "operators.md").write_text(content, encoding="utf-8")
        check = subprocess.run([sys.executable, copy / "generate.py", "--check"], capture_output=True, text=True)
        assert check.returncode == 1
        assert re.findall(r"(\w+)\.md is stale", check.stderr) == ["operators"]
    assert subprocess.run([sys.executable, copy / "generate.py"]).returncode == 0
    assert subprocess.run([sys.executable, copy / "generate.py", "--check"]).returncode == 0


def test_a_section_for_each_operator() -> None:
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", page, re.M) == sorted(REGISTRY)


def test_a_fluent_method_for_each_operator() -> None:
    methods = {
        name
        for name, method in vars(Query).items()
        if inspect.isfunction(method)
        and not name.startswith("_")
        and inspect.signature(method).return_annotation in ("Query", "dict[Value, Query]")
        and method.__name__ == name  # `filter` is an alias of `where`
    }
    assert methods - NO_OPERATOR == {operator.method for operator in REGISTRY.values()}


@for_each("name", sorted(REGISTRY))
def test_a_method_takes_the_parameters_of_its_operator(name: str) -> None:
    operator = REGISTRY[name]
    declared = {("keys" if p.kind == "constant" else p.name): p.optional for p in operator.parameters}
    signature = list(inspect.signature(getattr(Query, operator.method)).parameters.values())[1:]
    taken = {p.name: p.default is not p.empty for p in signature if p.kind is p.POSITIONAL_OR_KEYWORD}
    told_otherwise = BY_NAME.get(operator.method, set())
    assert taken.keys() == declared.keys()
    assert {n: o for n, o in taken.items() if n not in told_otherwise} == {
        n: o for n, o in declared.items() if n not in told_otherwise
    }


@for_each("name", sorted(CASES))
def test_the_text_word_and_the_method_give_one_plan(name: str) -> None:
    case = CASES[name]
    program = wp.parse(f"source a(x: int, y: int); source b(x: int, y: int); var q = {case.text};")
    built = case.chain(wp.source("a", x=int, y=int), wp.source("b", x=int, y=int))
    assert program["q"] == built
    assert built.plan.operator.name == name


@pytest.mark.parametrize("word", ["Source", "Filter", "Difference", "select", "ReadAs"])
def test_a_word_that_is_no_operator_is_refused(word: str) -> None:
    with pytest.raises(wp.LanguageError):
        wp.parse(f"source a(x: int); var q = a.{word}(r => r.x);")
