"""The first line of each docstring is one sentence of at most 90 characters, for all of wpinq."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 90
TWO_SENTENCES = re.compile(r"[\w`)]\. [A-Z`]")


def first_lines(text: str) -> Iterator[tuple[int, str]]:
    """The first line of each docstring of a module, with the number of its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found = ast.get_docstring(node)
            if found:
                yield node.body[0].lineno, found.splitlines()[0]


def faults(line: str) -> list[str]:
    """The rules that a first line breaks."""
    found = []
    if len(line) > LONGEST:
        found.append(f"{len(line)} characters, more than {LONGEST}")
    if not line.endswith("."):
        found.append("no full stop at its end")
    if TWO_SENTENCES.search(line):
        found.append("two sentences")
    return found


def test_a_long_an_open_and_a_double_first_line_are_found() -> None:
    assert faults("The norm of a dataset.") == []
    assert faults("The sum of the weights, in `w`, and 1.5 times the count.") == []
    assert faults("x" * LONGEST + ".") == ["91 characters, more than 90"]
    assert faults("The norm of a dataset") == ["no full stop at its end"]
    assert faults("The norm. Never negative.") == ["two sentences"]
    source = '"""A module."""\nclass A:\n    """A class.\n\n    More. And more.\n    """\n'
    source += '    def b(self):\n        """A method"""\n'
    assert list(first_lines(source)) == [(1, "A module."), (3, "A class."), (8, "A method")]


def test_the_first_line_of_each_docstring_is_one_short_sentence() -> None:
    files = sorted((ROOT / "wpinq").rglob("*.py"))
    assert len(files) > 200
    found = [
        f"{path.relative_to(ROOT)}:{number}: {', '.join(broken)}: {line}"
        for path in files
        for number, line in first_lines(path.read_text(encoding="utf-8"))
        if (broken := faults(line))
    ]
    assert not found, "\n".join(found)
