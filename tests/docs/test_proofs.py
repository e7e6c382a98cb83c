"""The proofs: a page an operator and every rewrite, whose tests are there and whose constants are those of the code."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from tests.engines.test_worst_rounding import DERIVED
from tests.support.parameters import for_each
from tests.support.roundings import ATTACKS
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.plan.operator import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
PROOFS = ROOT / "docs" / "proofs"
PAGES = sorted(PROOFS.glob("*.md"))
_SNAKE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CONTENT = re.compile(r"(?<=`)(tests/[\w/]+\.py)(?=`)")
_NAMED = re.compile(r"`(test_\w+)`")


def _page(operator: str) -> str:
    return (PROOFS / f"{_SNAKE.sub('_', operator).lower()}.md").read_text(encoding="utf-8")


@for_each("operator", ["Source", *REGISTRY])
def test_every_operator_has_a_proof_with_its_tests_and_who_read_it(operator: str) -> None:
    page = _page(operator)
    assert page.startswith(f"# Proof: {operator}")
    for words in ("**Stability.**", "**Rewrites.**", "**Tests.**"):
        assert words in page
    assert "*Read against the code*" in page
    assert _CONTENT.search(page)


@for_each("page", PAGES, ids=lambda page: page.stem)
def test_the_tests_that_a_proof_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = [ROOT / name for name in _CONTENT.findall(text)]
    assert [file.name for file in files if not file.exists()] == []
    held = "".join(file.read_text(encoding="utf-8") for file in files)
    assert [name for name in _NAMED.findall(text) if f"def {name}(" not in held] == []


def test_every_rewrite_has_its_argument() -> None:
    table, *arguments = (PROOFS / "rewrites.md").read_text(encoding="utf-8").split("\n## ")
    assert [rewrite.name for rewrite in REWRITES if f"`{rewrite.name}`" not in table] == []
    assert [rewrite.name for rewrite in REWRITES if not any(rewrite.name in argument for argument in arguments)] == []


def test_the_table_has_what_is_derived_and_allowed() -> None:
    """The figures of docs/proofs/rounding.md, to two decimals, from the code and from what the attacks are held to."""
    page = (PROOFS / "rounding.md").read_text(encoding="utf-8")
    for name in ("Select", "SelectMany", "GroupBy", "Join"):
        (row,) = re.findall(rf"^\| .*\[{name}\]\(.*$", page, re.M)
        allowed = row.rstrip("| ").rpartition("|")[2]
        assert Fraction(allowed.strip()) == round(Fraction(ATTACKS[name].query.plan.operator.rounding_units()), 2)
        reference, relational = DERIVED[name]
        derived = row.split("|")[2:4]
        assert sum(map(int, derived[0].replace("+", " ").split())) == reference
        assert float(derived[1].split(";")[0]) == pytest.approx(relational, abs=0.011)
