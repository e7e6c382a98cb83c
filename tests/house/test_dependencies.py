"""What pyproject.toml declares is used: libraries are imported where they are needed, tools are run."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.support.parameters import for_each

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

IMPORTERS = {"benchmarks": ("wpinq", "benchmarks", "examples"), "dev": ("tests",), "test": ("wpinq", "tests")}
"""Where the libraries of an extra may be imported; of all others and of the project itself, in the package only."""

TOOLS = {"pytest-xdist": "-n auto", "ruff": "ruff check", "mypy": "mypy", "import-linter": "lint-imports"}
"""What is run and not imported, with the words that run it."""

COMMANDS = {"tpchgen-cli": "benchmarks/tpch.py"}
"""Programs that are called by the file named."""


IMPORTED_AS = {"scikit-learn": "sklearn"}
"""Distributions whose package has another name, which may not be installed."""

SITE = {"ipykernel": "docs/tutorials/people.md"}
"""What builds the site is named in docs/conf.py, but for the kernel of the tutorials, which these name as python3."""


def declared() -> list[tuple[str, str]]:
    extras = PROJECT["optional-dependencies"]
    groups = {"": PROJECT["dependencies"], **extras}
    return [
        (extra, re.split(r"[<>=!~\[ ]", line)[0])
        for extra, lines in groups.items()
        for line in lines
        if not line.startswith("wpinq[")
    ]


def _called(function: ast.expr) -> str:
    return getattr(function, "attr", "") or getattr(function, "id", "")


@cache
def imported(folder: str) -> set[str]:
    """The top packages that the modules of a folder import, wherever in them."""
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                found.add(node.module.split(".")[0])
            elif isinstance(node, ast.Call) and node.args and "import" in _called(node.func):
                first = node.args[0]  # of importorskip, import_module
                found.update([str(first.value).split(".")[0]] if isinstance(first, ast.Constant) else [])
    return found


_installed = cache(packages_distributions)


def packages(distribution: str) -> set[str]:
    """The top packages that a distribution installs; its own name where it is not installed."""
    held = {package for package, names in _installed().items() if distribution in names}
    return held or {IMPORTED_AS.get(distribution, distribution.replace("-", "_"))}


@for_each(("extra", "distribution"), declared())
def test_what_is_declared_is_used(extra: str, distribution: str) -> None:
    if distribution in TOOLS:
        run = (ROOT / ".ci" / "run").read_text(encoding="utf-8") + (ROOT / "README.md").read_text(encoding="utf-8")
        assert TOOLS[distribution] in run
    elif extra == "docs":
        written = (ROOT / SITE.get(distribution, "docs/conf.py")).read_text(encoding="utf-8")
        assert "name: python3" in written if distribution in SITE else any(p in written for p in packages(distribution))
    elif distribution in COMMANDS:
        assert distribution in (ROOT / COMMANDS[distribution]).read_text(encoding="utf-8")
    else:
        importers = IMPORTERS.get(extra, ("wpinq",))
        assert packages(distribution) & {name for folder in importers for name in imported(folder)}
