"""What docs/architecture.md says of layers and of what must be trusted is so."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_of_the_layers_is_that_of_the_import_contract() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = page.split("```text\n")[1].split("```")[0].splitlines()
    drawn = " > ".join(re.split(" {2,}", row.strip())[0] for row in rows)
    assert layers_in(drawn) == layers_of_the_contract()
    swapped, moved = (
        drawn.replace("stats > tables", "tables > stats"),
        drawn.replace("api.query | kernel", "kernel > api.query"),
    )
    assert all(layers_in(wrong) != layers_of_the_contract() for wrong in (swapped, moved))


def layers_in(drawn: str) -> list[set[str]]:
    return [{f"wpinq.{module.strip()}" for module in layer.split("|")} for layer in drawn.split(">")]


def layers_of_the_contract() -> list[set[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (c["layers"] for c in contracts["contracts"] if c["name"] == "Imports point one way")
    return [{module.strip() for module in layer.split("|")} for layer in layers]


def test_what_the_page_says_is_imported_late_is() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^(\w+(?:, \w+)* and \w+) are imported inside functions, when first used", page, flags=re.M)
    late = {name.lower() for name in re.split(", | and ", named)}
    code = "import sys, wpinq; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"duckdb", "pyarrow"} < late
    assert not late & set(loaded)


def test_the_trusted_base_is_listed_and_within_its_limits() -> None:
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    tables = generate["trusted_tables"]()
    sums = {table["name"]: sum(lines for _, lines in rows) for table, rows in tables}
    assert {name: lines for name, lines in sums.items() if lines > limit_of(tables, name)} == {}
    assert sum(sums.values()) <= generate["TRUSTED"]["total"]
    assert generate["architecture"]() == (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def limit_of(tables: list[Any], name: str) -> int:
    return next(int(table["limit"]) for table, _ in tables if table["name"] == name)


def test_every_module_of_the_kernel_is_in_one_table_of_the_trusted_base() -> None:
    listed = [
        name
        for table, _ in runpy.run_path(str(ROOT / "docs" / "generate.py"))["trusted_tables"]()
        for name in table["files"]
    ]
    kernel = {
        path.relative_to(ROOT / "wpinq").with_suffix("").as_posix()
        for path in (ROOT / "wpinq" / "kernel").rglob("*.py")
        if path.name != "__init__.py"
    }
    assert kernel <= set(listed)
    assert len(listed) == len(set(listed))


def test_lines_of_code_leave_out_what_is_not_code(tmp_path: Path) -> None:
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    module = tmp_path / "module.py"
    module.write_text(
        '"""Words."""\nimport os\n\n# why\ndef f(x):\n    """More."""\n    return x  # it\n', encoding="utf-8"
    )
    assert generate["code_lines"](module) == 2


def test_the_files_that_pages_name_are_there() -> None:
    ours = {"/" + path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {
        (page.relative_to(ROOT).as_posix(), name)
        for page in pages
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8"))
        if not re.search("[A-Z]", name)  # NAME.py: to be made
    }
    assert len(named) > 50
    assert sorted((page, name) for page, name in named if not any(path.endswith(f"/{name}") for path in ours)) == []
