"""The notebooks of the examples run from top to bottom."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.ipynb")))
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "data", tmp_path / "data")
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert all(cell.outputs for cell in notebook.cells if cell.cell_type == "code")


def test_there_are_two() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {"graph", "people"}
