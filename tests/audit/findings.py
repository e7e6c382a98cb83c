"""What an audit found: a table for each part, what ran, and faults; written as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import wpinq

Cell = str | int | float


@dataclass
class Part:
    """One part of the audit.

    Attributes
    ----------
    name, about : str
        What `--only` calls it, and what it does.
    columns, rows
        A table of what was found.
    ran : dict
        How much of what ran.
    faults : list of str
        Each names the case, with the seed that has it again where there is one.
    processor : float
        Seconds of processor time, of processes that it started too.
    """

    name: str
    about: str
    columns: tuple[str, ...] = ()
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    ran: dict[str, Cell] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    processor: float = 0.0


def shown(cell: Cell) -> str:
    """A number as a table shows it."""
    if isinstance(cell, float):
        return f"{cell:.4g}" if cell < 1e-3 or cell >= 1e4 else f"{cell:.4f}".rstrip("0").rstrip(".")
    return f"{cell:,}" if isinstance(cell, int) else cell


def markdown(parts: Iterable[Part], seed: int) -> str:
    """The report."""
    parts = list(parts)
    faults = [f"- **{part.name}**: {fault}" for part in parts for fault in part.faults]
    total = sum(part.processor for part in parts)
    lines = [f"# Audit of wpinq {wpinq.__version__}", ""]
    lines += [f"Seed {seed}; {total:,.0f} s of processor time; {len(faults) or 'no'} faults.", "", *faults]
    for part in parts:
        lines += ["", f"## {part.name}", "", part.about, "", *section(part)]
    return "\n".join(lines) + "\n"


def section(part: Part) -> list[str]:
    """What ran and what was found, as lines of Markdown."""
    ran = "; ".join(f"{what}: {shown(count)}" for what, count in part.ran.items())
    lines = [f"Ran {ran}; {part.processor:,.0f} s of processor time; {len(part.faults) or 'no'} faults.", ""]
    if part.rows:
        lines += ["| " + " | ".join(part.columns) + " |", "|" + " --- |" * len(part.columns)]
        lines += ["| " + " | ".join(map(shown, row)) + " |" for row in part.rows]
    return lines


def into_page(part: Part, seed: int, page: Path) -> None:
    """What a part found in the place of what an earlier run did, between the two marks of the part on a page."""
    before, begins, rest = page.read_text(encoding="utf-8").partition(f"<!-- {part.name} -->\n")
    _, ends, after = rest.partition(f"<!-- end of {part.name} -->\n")
    if not (begins and ends):
        raise SystemExit(f"{page} has no place for {part.name}: <!-- {part.name} --> and <!-- end of {part.name} -->")
    said = [f"wpinq {wpinq.__version__}, seed {seed}. {part.about}", "", *section(part)]
    said += [f"- Fault: {fault}" for fault in part.faults]
    page.write_text(before + begins + "\n".join(said) + "\n" + ends + after, encoding="utf-8")


def write(parts: Iterable[Part], seed: int, folder: Path) -> None:
    """`audit.md` and `audit.json`, anew after each part, so that what ended is kept."""
    parts = list(parts)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "audit.md").write_text(markdown(parts, seed), encoding="utf-8")
    held = {"version": wpinq.__version__, "seed": seed, "parts": [asdict(part) for part in parts]}
    (folder / "audit.json").write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
