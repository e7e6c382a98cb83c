"""The measuring half of `wpinq synthesize`: noted in the folder, saved as it comes, taken up again after any end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wpinq.commands.arguments import is_new
from wpinq.commands.exits import tell
from wpinq.errors import EvaluationFailed, WpinqError
from wpinq.graph_measuring import measure_graph
from wpinq.graphs.synthesis.folder import (
    FittingOptions,
    holds_answers,
    loaded_note,
    prepare_folder,
    save_answers,
    save_note,
    save_run,
)
from wpinq.graphs.synthesis.method import Bounds
from wpinq.ingest import EdgeList
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.synthesis.checkpoint import CheckpointError
from wpinq.synthesis.settings import MOST_STEPS, STEPS_AN_EDGE, Settings

FORMAT, FORMAT_VERSION = "wpinq synthesis measuring", 6
"""The version rises when methods come to measure something else for the same words: what a ledger holds of the former
would not replay, and going on would pay anew."""
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
    columns: tuple[str, str] | None = None

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> MeasuringOptions:
        """What `asdict` gave; ValueError or TypeError when it is not."""
        made = MeasuringOptions(**data)
        words = (made.graph, made.epsilon, made.engine, *(made.split or {}).values())
        ends = made.columns or ()
        optional = [word for word in (made.ledger, made.budget, made.version, *ends) if word is not None]
        numbers = [number for number in (made.nodes, made.degree) if number is not None]
        right = all(isinstance(word, str) for word in (*words, *optional)) and all(type(n) is int for n in numbers)
        if not right or len(ends) not in (0, 2) or made.node not in _NODES:
            raise ValueError("not of this format")
        return made


def is_measuring(folder: Path) -> bool:
    """Whether the folder holds a run that ended while it measured."""
    return (folder / _NOTE).exists()


def measure(measuring: MeasuringOptions, fitting: FittingOptions, folder: Path, notice: str = "") -> dict[str, Answers]:
    """Measure into a folder, from which the run can go on whatever happens once this has begun.

    The bill is printed when all is checked that can be without the graph, and a notice on stderr.

    Raises
    ------
    WpinqError
        As `measure_graph`. Where nothing can have been spent, the folder holds no run afterwards.
    """
    fitting.find()
    prepare_folder(folder)
    save_note(folder / _NOTE, FORMAT, {"asked": asdict(measuring), "told": fitting.to_json()}, FORMAT_VERSION)
    paid: set[str] = set()
    try:
        return _measure(measuring, fitting, folder, paid, notice)
    except (WpinqError, OSError) as error:
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
    with loaded_note(folder / _NOTE, FORMAT, FORMAT_VERSION) as known:
        measuring, fitting = MeasuringOptions.from_json(known["asked"]), FittingOptions.from_json(known["told"])
    if measuring.ledger is None or measuring.version is None:
        raise CheckpointError(
            f"the run in {folder} ended while it measured, and only with --ledger and --data-version could it go on; "
            "the answers it came to are kept there: measure anew with another --folder"
        )
    notice = ""
    if is_new(Path(measuring.ledger)):
        if holds_answers(folder):
            raise CheckpointError(
                f"the ledger {measuring.ledger} is not there, and a new one would pay again for what was measured: "
                "put it back, or measure anew with another --folder"
            )
        notice = f"new ledger: {measuring.ledger}"
    return fitting, _measure(measuring, fitting, folder, set(), notice)


def _measure(
    measuring: MeasuringOptions, fitting: FittingOptions, folder: Path, paid: set[str], notice: str
) -> dict[str, Answers]:
    method = fitting.find()

    def on_bill(bill: Bill) -> None:
        print(f"The bill:\n{bill}\n\n{_plan(fitting.settings)}\n", flush=True)
        asked = {label.partition(":")[0] for label, _ in bill.listed}
        for name in () if measuring.split else [name for name in method.shares if name not in asked]:
            print(f"Not asked: {name}, which no graph of so few nodes has enough of to stand out of the noise.\n")
        if notice:
            tell(notice)

    def on_answers(name: str, table: Answers) -> None:
        paid.add(name)
        save_answers(folder, name, table)

    answers = measure_graph(
        EdgeList(measuring.graph, columns=measuring.columns),
        method,
        measuring.epsilon,
        node=_NODES[measuring.node],
        split=measuring.split,
        bounds=Bounds(measuring.nodes, measuring.degree),
        ledger=measuring.ledger,
        budget=measuring.budget,
        version=measuring.version,
        engine=measuring.engine,
        on_bill=on_bill,
        on_step=paid.add,  # steps run after the debit
        on_answers=on_answers,
    )
    save_run(folder, fitting, answers)
    (folder / _NOTE).unlink(missing_ok=True)
    return answers


def _plan(settings: Settings) -> str:
    by_edges = f"{STEPS_AN_EDGE} steps for each edge of the seed graph, at most {MOST_STEPS:,}, fewer at rest"
    each = by_edges if settings.steps is None else f"{settings.steps:,} steps"
    return f"Then {'one chain of' if settings.chains == 1 else f'{settings.chains} chains, each of'} {each}."
