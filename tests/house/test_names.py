"""One word for one thing: no class or alias of a folder has the name of another, and no import is a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import grimp

import wpinq as wp

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "wpinq").rglob("*.py"))


def defined(tree: ast.Module) -> Iterator[str]:
    """The classes of a module and its aliases: capitalised names that are assigned, and are no constants."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id.lstrip("_")
            if name[:1].isupper() and not name.isupper() and "_" not in name:
                yield name


def test_no_class_or_alias_has_two_meanings_in_a_folder() -> None:
    places: dict[tuple[Path, str], list[str]] = defaultdict(list)
    for path in MODULES:
        for name in defined(ast.parse(path.read_text(encoding="utf-8"))):
            places[path.parent, name].append(path.name)
    assert {name: found for (_, name), found in places.items() if len(found) > 1} == {}


def test_an_exported_class_has_a_name_of_its_own() -> None:
    meanings: dict[str, set[int]] = defaultdict(set)
    for package in (wp, wp.graphs, wp.histograms, wp.mcmc):
        for name in dir(package):
            value = getattr(package, name)
            if name[0] != "_" and isinstance(value, type) and value.__module__.startswith("wpinq"):
                meanings[name].add(id(value))
    assert len(meanings) > 40
    assert [name for name, found in meanings.items() if len(found) > 1] == []


def test_the_package_shows_few_names_and_loads_each_when_it_is_used() -> None:
    names = [name for name in dir(wp) if name[0] != "_"]
    assert len(names) <= 65
    assert all(getattr(wp, name) is not None for name in names)
    loaded = "import sys, wpinq; print(*(name for name in sys.modules if name.startswith(('wpinq.', 'numpy'))))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that import one another, directly or by way of others."""
    reached: dict[str, set[str]] = {}
    for module in imports:
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            for below in imports[waiting.pop()] - seen:
                seen.add(below)
                waiting.append(below)
        reached[module] = seen
    found = {frozenset({m for m in seen if module in reached[m]}) for module, seen in reached.items() if module in seen}
    return [set(circle) for circle in found]


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_no_modules_import_one_another() -> None:
    graph = grimp.build_graph("wpinq", include_external_packages=False, cache_dir=None)
    assert circles({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}) == []
