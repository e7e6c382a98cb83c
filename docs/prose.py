"""A check of the pages' prose: words in all, the mean length of sentences, and the longest ones.

The build of the site runs it, and fails above the limits. `python docs/prose.py` prints the twenty longest sentences.
Proofs are left aside. Code, tables and headings hold no sentences, but their words count, as `wc -w` counts them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORDS, MEAN, LONGEST, SHOWN = 45_000, 17.0, 35, 20
"""The most words of all pages, of a sentence in the mean, and of one sentence; and the number of sentences shown."""

_CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.S | re.M)
_BLOCK = re.compile(r"^\s*(?:[-*]|\d+\.)\s+", re.M)
_END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[A-Z`\"(*_\[0-9])")


def pages(folder: Path = HERE) -> list[Path]:
    """The pages that are checked, by name."""
    found = (path.relative_to(folder) for path in folder.rglob("*.md"))
    return sorted(folder / path for path in found if path.parts[0] not in ("_build", "proofs"))


def sentences(text: str) -> list[str]:
    """The sentences of a page of Markdown; a piece of code, a formula or a link is as many words as it shows."""
    text = re.sub(r"\A---\n.*?^---$", "", text, flags=re.S | re.M)
    text = re.sub(r"^(\||#|\$\$|\(|:::).*$", "\n", _CODE.sub("\n\n", text), flags=re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "Code", text))
    found = []
    for block in re.split(r"\n\s*\n", _BLOCK.sub("\n\n", text)):
        found += [" ".join(each.split()) for each in _END.split(block) if re.search("[a-z]", each)]
    return found


def faults(folder: Path = HERE) -> list[str]:
    """The limits that the pages break, each in a line."""
    found = [(len(each.split()), path, each) for path in pages(folder) for each in sentences(path.read_text("utf-8"))]
    words = sum(len(path.read_text("utf-8").split()) for path in pages(folder))
    mean = sum(length for length, *_ in found) / max(len(found), 1)
    said = [f"{words:,} words, of {WORDS:,}"] if words > WORDS else []
    said += [f"{mean:.1f} words a sentence, of {MEAN}"] if mean > MEAN else []
    longest = sorted(found, key=lambda each: -each[0])
    said += [f"{path.relative_to(folder)}: {n} words: {each}" for n, path, each in longest[:SHOWN] if n > LONGEST]
    print(f"{len(pages(folder))} pages, {words:,} words, {len(found):,} sentences of {mean:.1f} words")
    print(*(f"{n:3} {path.relative_to(folder)}: {each}" for n, path, each in longest[:SHOWN]), sep="\n")
    return said


if __name__ == "__main__":
    sys.exit("\n".join(faults(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)) or 0)
