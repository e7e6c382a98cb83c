"""The measuring half of `wpinq synthesize`: noted in the folder, saved as it comes, taken up again after any end."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wpinq.commands.arguments import is_new
from wpinq.errors import EvaluationFailed, WpinqError
from wpinq.graph_measuring import measure_graph
from wpinq.graphs.synthesis.folder import FittingOptions, holds_answers, prepare_folder, save_answers, save_run
from wpinq.graphs.synthesis.method import Bounds
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.synthesis.checkpoint import CheckpointError, write_atomically
from wpinq.synthesis.settings import MOST_STEPS, STEPS_AN_EDGE

FORMAT, FORMAT_VERSION = "wpinq synthesis measuring", 1
_NOTE = "measuring.json"
_NODES: dict[str, type] = {"int": int, "str": str}


@dataclass(frozen=True, slots=True)
class MeasuringOptions:
    """What is to be measured, as the command line says it; see `measure_graph`. Paths are absolute."""

    graph: str
    epsilon: str
    node: str
    split: Mapping[str, str] | None
    nodes: int | None
    degree: int | None
    ledger: str | None
    budget: str | None
    version: str | None
    engine: str

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> MeasuringOptions:
        """What `asdict` gave; ValueError or TypeError when it is not."""
        asked = MeasuringOptions(**data)
        words = (asked.graph, asked.epsilon, asked.engine, *(asked.split or {}).values())
        optional = [word for word in (asked.ledger, asked.budget, asked.version) if word is not None]
        numbers = [number for number in (asked.nodes, asked.degree) if number is not None]
        right = all(isinstance(word, str) for word in (*words, *optional)) and all(type(n) is int for n in numbers)
        if not right or asked.node not in _NODES:
            raise ValueError("not of this format")
        return asked

    @property
    def replays(self) -> bool:
        """Whether a ledger gives back for free what was paid for."""
        return self.ledger is not None and self.version is not None


def is_measuring(folder: Path) -> bool:
    """Whether the folder holds a run that ended while it measured."""
    return (folder / _NOTE).exists()


def measure(asked: MeasuringOptions, told: FittingOptions, folder: Path, notice: str = "") -> dict[str, Answers]:
    """Measure into a folder, from which the run can go on whatever happens once this has begun.

    The bill is printed when all is checked that can be without the graph, and a notice on stderr.

    Raises
    ------
    WpinqError
        As `measure_graph`. Where nothing can have been spent, the folder holds no run afterwards.
    """
    told.find()
    prepare_folder(folder)
    known = {"format": FORMAT, "version": FORMAT_VERSION, "asked": asdict(asked), "told": told.to_json()}
    write_atomically(folder / _NOTE, json.dumps(known, indent=1).encode())
    paid: set[str] = set()
    try:
        return _measure(asked, told, folder, paid, notice)
    except (WpinqError, BrokenPipeError) as error:
        if not paid and not isinstance(error, EvaluationFailed):
            (folder / _NOTE).unlink(missing_ok=True)
        raise


def go_on_measuring(folder: Path) -> tuple[FittingOptions, dict[str, Answers]]:
    """Measure what a run asked for that ended while it measured. The ledger gives back what was paid for.

    Raises
    ------
    CheckpointError
        When no ledger can do that, or the note cannot be read.
    """
    try:
        known = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
        if (known["format"], known["version"]) != (FORMAT, FORMAT_VERSION):
            raise CheckpointError("another version")
        asked, told = MeasuringOptions.from_json(known["asked"]), FittingOptions.from_json(known["told"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, WpinqError):
        raise CheckpointError(f"the run in {folder} cannot be read: it is damaged, or of another version") from None
    if not asked.replays:
        raise CheckpointError(
            f"the run in {folder} ended while it measured, and only with --ledger and --data-version could it go on; "
            "the answers it came to are kept there: measure anew with another --folder"
        )
    notice = ""
    if asked.ledger is not None and is_new(Path(asked.ledger)):
        if holds_answers(folder):
            raise CheckpointError(
                f"the ledger {asked.ledger} is not there, and a new one would pay again for what was measured: put it "
                "back, or measure anew with another --folder"
            )
        notice = f"new ledger: {asked.ledger}"
    return told, _measure(asked, told, folder, set(), notice)


def _measure(
    asked: MeasuringOptions, told: FittingOptions, folder: Path, paid: set[str], notice: str = ""
) -> dict[str, Answers]:
    def on_bill(bill: Bill) -> None:
        print(f"The bill:\n{bill}\n\n{_plan(told)}\n", flush=True)
        if notice:
            print(notice, file=sys.stderr)

    def on_answers(name: str, table: Answers) -> None:
        paid.add(name)
        save_answers(folder, name, table)

    answers = measure_graph(
        asked.graph,
        told.find(),
        asked.epsilon,
        node=_NODES[asked.node],
        split=asked.split,
        bounds=Bounds(asked.nodes, asked.degree),
        ledger=asked.ledger,
        budget=asked.budget,
        version=asked.version,
        engine=asked.engine,
        on_bill=on_bill,
        on_step=paid.add,  # steps run after the debit
        on_answers=on_answers,
    )
    save_run(folder, told, answers)
    (folder / _NOTE).unlink(missing_ok=True)
    return answers


def _plan(told: FittingOptions) -> str:
    steps, chains = told.settings.steps, told.settings.chains
    by_edges = f"{STEPS_AN_EDGE} steps for each edge of the seed graph, at most {MOST_STEPS:,}"
    each = by_edges if steps is None else f"{steps:,} steps"
    return f"Then {'one chain of' if chains == 1 else f'{chains} chains, each of'} {each}."
