"""Every page runs: its Python, its command lines, its links.

The blocks of one page run in order, in one namespace and one working directory:

- `python`: with `>>>` as doctests (ELLIPSIS is on, for noise), otherwise as plain code that must not raise;
- `console`: each `$ wpinq ...` runs, and what it prints is compared like a doctest; a last line `exit code N`
  stands for a code other than 0;
- a block whose info string names a file, such as `wpq degrees.wpq`, is written there;
- `r` and `typescript` are checked by `tests/service/test_other_languages.py`;
- a directive, such as `{code-cell}`, is run where the site is built (`test_site.py`).

Nothing can be skipped.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if path.exists())
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
FLAGS = doctest.ELLIPSIS
LANGUAGES = {"", "python", "console", "sh", "json", "text", "wpq", "toml", "r", "typescript"}
DIRECTIVES = {"{code-cell}", "{eval-rst}"}

_FENCE = re.compile(r"^(`{3,})(.*)$")
_LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
_MACHINE = re.compile(r"(?:/home/|/root\b|/tmp\b|/work/|/Users/|/var/folders|\b[A-Za-z]:\\)")

every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


@dataclass(frozen=True)
class Block:
    language: str
    file: str
    code: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, with the number of the line before their content."""
    fence, info, start, held = "", "", 0, []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _FENCE.match(line)
        if not fence and match:
            fence, info, start, held = match[1], match[2].strip(), number, []
        elif fence and line.rstrip() == fence:
            language, _, file = info.partition(" ")
            yield Block(language, file, "\n".join(held) + "\n", start)
            fence = ""
        elif fence:
            held.append(line)
    assert not fence, f"the block that opens on line {start} is never closed"


def prose(text: str) -> str:
    """A page without its blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "``", re.sub(r"^(`{3,}).*?^\1\s*$", "", text, flags=re.M | re.S))


def anchors(text: str) -> set[str]:
    """The anchors that the headings of a page make."""
    headings = re.findall(r"^#+ +(.*?)\s*$", re.sub(r"^(`{3,}).*?^\1\s*$", "", text, flags=re.M | re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def run_python(block: Block, namespace: dict[str, Any], page: str) -> None:
    if ">>>" not in block.code:
        exec(compile("\n" * block.line + block.code, page, "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(block.code, {}, page, page, block.line)
    test.globs = namespace
    failures = io.StringIO()
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=failures.write, clear_globs=False)
    if failures.getvalue():
        raise AssertionError(failures.getvalue())


def run_console(block: Block, page: str) -> None:
    from wpinq.cli.main import main

    for session in filter(None, re.split(r"^(?=\$ )", block.code, flags=re.M)):
        command, _, wanted = session.replace("\\\n", "").partition("\n")
        program, *arguments = shlex.split(command.removeprefix("$ "))
        assert program == "wpinq", f"{page}, line {block.line}: only wpinq can be run"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                code = main(arguments)
            except SystemExit as end:  # argparse
                code = int(end.code or 0)
        got = printed.getvalue() + (f"exit code {code}\n" if code else "")
        example = doctest.Example(command, wanted)
        checker = doctest.OutputChecker()
        if not checker.check_output(wanted, got, FLAGS):
            difference = checker.output_difference(example, got, FLAGS)
            raise AssertionError(f"{page}, line {block.line}: {command}\n{difference}")


def run_page(text: str, page: str) -> None:
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(text):
        if block.language in DIRECTIVES:
            continue
        if block.file:
            Path(block.file).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            run_python(block, namespace, page)
        elif block.language == "console":
            run_console(block, page)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory but for the examples of the project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@every_page
def test_examples_run(page: Path, desk: Path) -> None:
    run_page(page.read_text(encoding="utf-8"), page.name)


@every_page
def test_nothing_is_skipped(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "+SKIP" not in text
    for block in blocks(text):
        assert block.language in LANGUAGES | DIRECTIVES, f"line {block.line}: {block.language!r} is not checked"
        if ">>> " in block.code:
            assert block.language == "python", f"line {block.line}: Python that is not marked as such is not run"
        if block.code.startswith("$ wpinq"):
            assert block.language == "console", f"line {block.line}: a command not marked as console is not run"


@every_page
def test_relative_links_resolve(page: Path) -> None:
    for target in _LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{target} is not there"
        assert linked.is_relative_to(ROOT), f"{target} is outside of the project"
        if anchor:
            assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{target}: no such heading"


@every_page
def test_no_path_of_a_machine(page: Path) -> None:
    assert not _MACHINE.search(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\n1 / 0\n```\n",
        "```python\nx = 1\n```\n\n```python\n>>> x\n2\n```\n",
        "```console\n$ wpinq ledger show absent.db\nall is well\n```\n",
        "```python\n>>> 1 +\n2\n```\n",
    ],
    ids=["output", "exception", "shared namespace", "command", "syntax"],
)
def test_a_wrong_example_is_found(text: str, desk: Path) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run_page(text, "page")


def test_every_page_of_docs_is_in_the_contents() -> None:
    contents = (ROOT / "docs" / "contents.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?:root|file): (\S+)", contents))
    assert not [page for page in PAGES if page.parent == ROOT / "docs" and page.stem not in listed]
