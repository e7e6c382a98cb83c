"""What type checkers make of users' code: strict ones pass the README, the tutorials and the examples."""

from __future__ import annotations

import doctest
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_examples import ROOT, blocks

pytestmark = pytest.mark.long

SNIPPET = """
from collections.abc import Mapping
import wpinq as wp

people = wp.source("people", city=str, age=int)
with wp.Session() as session:
    session.protect(people, [("a", 1)], budget=10)
    cities = people.select(lambda p: p.city)
    listed = cities.noisy_count(0.1, over=["a"])
    table = people.by("city", keys=["a"]).agg(n=wp.count(), epsilon=0.1)
    one = session.release(listed)
    reveal_type(one)
    reveal_type(session.release(cities.noisy_count(0.1)))
    reveal_type(session.release([listed, people.noisy_sum(0.1, lambda p: p.age, 0, 99)]))
    reveal_type(session.release({"cities": listed}, label="by name"))
    reveal_type(session.release(people.select(lambda p: p.age).median(0.1, range(9))).value)
    reveal_type(session.release(table))
    reveal_type(session.release({"table": table}))
    reveal_type(session.release([table, table]))
    reveal_type(session.analyst("ann").release(table).row("a")["n"])
    reveal_type(session.release(people.by("city").agg(n=wp.count(), epsilon=0.1)))
    reveal_type(session.release(people.marginals([wp.attribute("age", bins=[0, 9])], epsilon=1)))
    reveal_type(session.release({"both": table, "one": listed}))
    several: list[wp.Measurement] = [listed]
    reveal_type(session.release(several))
    reveal_type(wp.simulate(table, {"people": [("a", 1)]}, seed=1))
    reveal_type(2 * wp.simulate(table, {"people": []}, seed=1).row("a")["n"] + 1)
    reveal_type((wp.col("age") + 1 >= 65) & (2 / wp.col("age") == 1))
    low, high = one.interval("a")
    reveal_type(session.remaining("people"))
    reveal_type(session.remaining("people") < "0.5")
    reveal_type(wp.__version__)
    reveal_type(session.history()[0].label)
reveal_type(wp.graphs.synthesize([(1, 2)], epsilon=1, seed=3))
reveal_type(wp.tables.synthesize("people.csv", epsilon=1, bins={"age": [0, 9]}).rows)
reveal_type(wp.schema("people.csv", sample="made.csv").python)
"""
ANSWERS, TABLE, ESTIMATE, EPSILON = "Answers", "Table", "Estimate", "Epsilon"
REVEALED = [
    *(ANSWERS, f"{ANSWERS} | Any", f"list[{ANSWERS}]", f"dict[str, {ANSWERS}]", "Any"),
    *(TABLE, f"dict[str, {TABLE}]", f"list[{TABLE}]", ESTIMATE, "Any", "MarginalTables", "dict[str, Any]"),
    *("list[Any]", TABLE, ESTIMATE, "Column", EPSILON, "bool", "str", "str"),
    *("SyntheticGraph", "SyntheticRows", "str"),
]

REFUSED = """
import wpinq as wp

people = wp.source("people", city=str, age=int)
people.count(epsilon=None)
people.count(epsilon=[1])
wp.Session().protect(people, 5, budget=1)
wp.Session().protect(people, [], budget=None)
wp.graphs.synthesize([(1, 2)], epsilon=[1])
wp.tables.synthesize(5)
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the Python of the README, the landing page and each tutorial, a file each; and of the examples."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for page in [ROOT / "README.md", ROOT / "docs/index.md", *ROOT.glob("docs/tutorials/*.md")]:
        cells = (block for block in blocks(page.read_text(encoding="utf-8")) if block.language in CELLS)
        code = "\n".join(_python(block.code) for block in cells)
        (folder / f"{page.stem}_page.py").write_text(code, encoding="utf-8")
    return folder


CELLS = ("python", "{code-cell}")


def _python(code: str) -> str:
    """The Python of a block: without outputs, options of the cell, and commands of the shell."""
    if ">>>" in code:
        return doctest.script_from_examples(code)
    plain = re.sub(r"^[:!%].*", "", code, flags=re.MULTILINE)
    return re.sub(r"= *!.*", "= list[str]()", plain)


def _mypy(*files: str) -> str:
    # a page's own functions may do without annotations
    allowed = [f"--disable-error-code={code}" for code in ("no-untyped-def", "no-untyped-call")]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", *allowed, *files]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout


def test_mypy_passes_pages_and_narrows_results(pages: Path, tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, encoding="utf-8")
    printed = _mypy(str(snippet), *map(str, pages.rglob("*.py")))
    assert "error" not in printed, printed
    revealed = re.findall(r'Revealed type is "(.*)"', printed)
    assert [re.sub(r"wpinq[\w.]*\.", "", each) for each in revealed] == REVEALED


def test_mypy_refuses_an_epsilon_and_data_of_no_fit(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(REFUSED, encoding="utf-8")
    assert re.findall(r":(\d+): error: Argument", _mypy(str(snippet))) == ["5", "6", "7", "8", "9", "10"]


def test_pyright_passes_pages(pages: Path) -> None:
    pytest.importorskip("pyright")
    settings = {"extraPaths": [str(ROOT)], "typeCheckingMode": "standard", "reportMissingImports": False}
    (pages / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(pages), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len([*pages.rglob("*.py")])
    assert found["summary"]["errorCount"] == 0, found["generalDiagnostics"]
