"""Every family of attacks has tests that exist, and every file of attacks is of a family."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.attacks.families import FAMILIES

TESTS = Path(__file__).resolve().parents[1]


def named_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tests_of_a_family_are_there(family: str) -> None:
    for place in FAMILIES[family]:
        file, _, name = place.partition("::")
        found = named_in(TESTS / file)
        assert found, place
        assert not name or name in found, place


def test_every_file_of_attacks_is_of_a_family() -> None:
    named = {place.partition("::")[0] for places in FAMILIES.values() for place in places}
    here = {f"attacks/{path.name}" for path in (TESTS / "attacks").glob("test_*.py")}
    assert here - named == {"attacks/test_families.py"}
