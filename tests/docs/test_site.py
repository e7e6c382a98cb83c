"""The site builds strictly: no warning, tutorials executed, every page in the contents, every public name shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wpinq as wp

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    built = subprocess.run(
        [*command, "--doctree-dir", str(folder / "trees"), str(ROOT / "docs"), str(folder / "html")],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


def test_every_page_is_built(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).exists()] == []


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "wpinq.html").read_text(encoding="utf-8")
    named = sorted(set(wp.__all__) - {"errors", "functions", "graphs", "histograms", "mcmc", "stats", "tables"})
    assert [name for name in [*named, "tables.synthesize"] if f'id="wpinq.{name}"' not in page] == []
    assert 'id="wpinq.graphs.synthesize"' in (site / "reference" / "graphs.html").read_text(encoding="utf-8")


def test_the_tutorials_show_what_their_cells_gave(site: Path) -> None:
    for source in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        page = (site / "tutorials" / source.with_suffix(".html").name).read_text(encoding="utf-8")
        assert page.count("cell_output") >= 3, source.name


def test_commands_in_tutorials_were_run(site: Path) -> None:
    """A shell command that is not found raises nothing in a notebook: its output tells."""
    assert "The ledger is intact" in (site / "tutorials" / "curator.html").read_text(encoding="utf-8")
    assert "id,city,sex,age,salary" in (site / "tutorials" / "people.html").read_text(encoding="utf-8")


def test_the_words_of_every_page_can_be_searched(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert '"tutorials/people"' in index
    assert "wavelet" in index
