"""The registry, the methods of Query, the words of the text language and the pages of docs/operators correspond."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import wpinq as wp
from wpinq.plan.operator import REGISTRY
from wpinq.query import Query

ROOT = Path(__file__).resolve().parents[2]
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))

NO_OPERATOR = {"read_as"}
"""Methods of Query that give a query and are no operator."""

IN_TEXT = {
    "Concat": ("a.Concat(b)", lambda a, b: a.concat(b)),
    "Except": ("a.Except(b)", lambda a, b: a.difference(b)),
    "GroupBy": ("a.GroupBy(r => r.x, g => count(g))", lambda a, b: a.group_by(lambda r: r.x, lambda g: wp.count(g))),
    "Intersect": ("a.Intersect(b)", lambda a, b: a.intersect(b)),
    "Join": ("a.Join(b, r => r.x, s => s.y)", lambda a, b: a.join(b, lambda r: r.x, lambda s: s.y)),
    "Partition": ("a.Partition(r => r.x, 3)", lambda a, b: a.partition(lambda r: r.x, [3])[3]),
    "Select": ("a.Select(r => r.x)", lambda a, b: a.select(lambda r: r.x)),
    "SelectMany": ("a.SelectMany(r => [r.x, r.y])", lambda a, b: a.select_many(lambda r: [r.x, r.y])),
    "Shave": ("a.Shave(0.5)", lambda a, b: a.shave(0.5)),
    "Union": ("a.Union(b)", lambda a, b: a.union(b)),
    "Where": ("a.Where(r => r.x < r.y)", lambda a, b: a.where(lambda r: r.x < r.y)),
}


def test_the_pages_are_up_to_date() -> None:
    assert GENERATE["stale"](GENERATE["pages"]()) == []


def test_check_finds_a_changed_a_missing_and_a_surplus_page(tmp_path: Path) -> None:
    copy = tmp_path / "docs"
    (copy / "operators").mkdir(parents=True)
    (tmp_path / "wpinq").symlink_to(ROOT / "wpinq")
    (copy / "generate.py").write_text((ROOT / "docs" / "generate.py").read_text(encoding="utf-8"), encoding="utf-8")
    for name, content in GENERATE["pages"]().items():
        (copy / "operators" / name).write_text(content, encoding="utf-8")
    (copy / "operators" / "where.md").unlink()
    (copy / "operators" / "sort.md").write_text("no operator", encoding="utf-8")
    with (copy / "operators" / "join.md").open("a", encoding="utf-8") as page:
        page.write("a word more\n")
    check = subprocess.run([sys.executable, copy / "generate.py", "--check"], capture_output=True, text=True)
    assert check.returncode == 1
    assert re.findall(r"operators/(\w+)\.md is stale", check.stderr) == ["join", "sort", "where"]
    assert subprocess.run([sys.executable, copy / "generate.py"]).returncode == 0
    assert subprocess.run([sys.executable, copy / "generate.py", "--check"]).returncode == 0


def test_a_page_for_each_operator() -> None:
    pages = {path.name for path in (ROOT / "docs" / "operators").glob("*.md")} - {"index.md"}
    assert pages == {GENERATE["file_name"](operator) for operator in REGISTRY.values()}
    for operator in REGISTRY.values():
        page = (ROOT / "docs" / "operators" / GENERATE["file_name"](operator)).read_text(encoding="utf-8")
        assert page.splitlines()[2] == f"# {operator.name}"


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


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_method_takes_the_parameters_of_its_operator(name: str) -> None:
    operator = REGISTRY[name]
    declared = {("keys" if p.kind == "constant" else p.name): p.optional for p in operator.parameters}
    signature = list(inspect.signature(getattr(Query, operator.method)).parameters.values())[1:]
    assert {p.name: p.default is not p.empty for p in signature} == declared


def test_a_text_example_for_each_operator() -> None:
    assert IN_TEXT.keys() == REGISTRY.keys()


@pytest.mark.parametrize("name", sorted(IN_TEXT))
def test_the_text_word_and_the_method_give_one_plan(name: str) -> None:
    text, chain = IN_TEXT[name]
    program = wp.parse(f"source a(x: int, y: int); source b(x: int, y: int); var q = {text};")
    built = chain(wp.source("a", x=int, y=int), wp.source("b", x=int, y=int))
    assert program["q"] == built
    assert built.plan.operator.name == name


@pytest.mark.parametrize("word", ["Source", "Filter", "Difference", "select", "ReadAs"])
def test_a_word_that_is_no_operator_is_refused(word: str) -> None:
    with pytest.raises(wp.LanguageError):
        wp.parse(f"source a(x: int); var q = a.{word}(r => r.x);")
