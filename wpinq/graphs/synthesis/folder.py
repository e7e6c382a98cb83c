"""A run in a folder, its answers, options and chains, from which it can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wpinq.errors import WpinqError
from wpinq.graphs.synthesis.method import Method
from wpinq.graphs.synthesis.methods import find_method
from wpinq.graphs.synthesis.statistics import ALL_STATISTICS
from wpinq.graphs.synthesis.uncertainty import Interval, uncertainty_report
from wpinq.mcmc.checkpoint import CheckpointError, make_folder, write_atomically
from wpinq.mcmc.settings import Settings
from wpinq.measure.answers import Answers

FORMAT, FORMAT_VERSION = "wpinq synthesis run", 1
UNCERTAINTY_FORMAT = "wpinq synthesis uncertainty"
_RUN, _ANSWERS = "run.json", "answers"


@dataclass(frozen=True, slots=True)
class FittingOptions:
    """What a run was told beside its answers: enough to fit them again.

    Attributes
    ----------
    method, bucket, triad_share
        As for `find_method`.
    settings : Settings
        As for `synthesize`.
    outside, trace_statistics : bool
        As for `synthesize`.
    """

    method: str
    bucket: int
    triad_share: float | None
    settings: Settings
    outside: bool = False
    trace_statistics: bool = True

    def find(self) -> Method:
        """The method; PlanError where there is none such, or it does not go with the settings."""
        method = find_method(self.method, self.bucket, self.triad_share)
        method.check(self.settings)
        return method

    def to_json(self) -> dict[str, Any]:
        """The options as plain data."""
        return {**asdict(self), "settings": self.settings.to_json()}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> FittingOptions:
        """The options that plain data hold; ValueError or TypeError where they do not."""
        made = FittingOptions(**{**data, "settings": Settings.from_json(data["settings"])})
        numbers = type(made.bucket) is int and type(made.triad_share) in (int, float, type(None))
        flags = type(made.outside) is type(made.trace_statistics) is bool
        if not (isinstance(made.method, str) and numbers and flags):
            raise ValueError("not of this format")
        return made


def holds_run(folder: Path) -> bool:
    """Whether a run that can go on is in the folder."""
    return (folder / _RUN).exists()


def holds_answers(folder: Path) -> bool:
    """Whether answers were put into the folder."""
    return any((folder / _ANSWERS).glob("*.json"))


def prepare_folder(folder: Path) -> None:
    """Make the folder, which only its owner can open, and see that it can be written to.

    Raises
    ------
    CheckpointError
        When it cannot.
    """
    make_folder(folder)
    make_folder(folder / _ANSWERS)
    write_atomically(folder / "writable", b"")
    (folder / "writable").unlink()


def save_answers(folder: Path, name: str, table: Answers) -> None:
    """Put the answers of one measurement into a prepared folder."""
    write_atomically(folder / _ANSWERS / f"{name}.json", json.dumps(table.to_json()).encode())


def save_run(folder: Path, fitting: FittingOptions, answers: Mapping[str, Answers]) -> None:
    """Put a run into a prepared folder; once this returns, it can go on from there."""
    for name, table in answers.items():
        save_answers(folder, name, table)
    save_note(folder / _RUN, FORMAT, {"answers": list(answers), "told": fitting.to_json()})


def save_uncertainty(folder: Path, uncertainty: Mapping[str, Interval]) -> None:
    """Put into the folder what the answers tell of each statistic, before there is a graph."""
    save_note(
        folder / "uncertainty.json", UNCERTAINTY_FORMAT, uncertainty_report(uncertainty, dict.fromkeys(ALL_STATISTICS))
    )


def save_note(path: Path, kind: str, content: Mapping[str, Any], version: int = FORMAT_VERSION) -> None:
    """Write a JSON file that says what it is."""
    known = {"format": kind, "version": version, **content}
    write_atomically(path, json.dumps(known, indent=1).encode())


@contextmanager
def loaded_note(path: Path, kind: str, version: int = FORMAT_VERSION) -> Iterator[dict[str, Any]]:
    """What `save_note` wrote. Whatever fails while it is read, here or where it is used, is a CheckpointError."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if (known["format"], known["version"]) != (kind, version):
            raise CheckpointError("another version")
        yield known
    except (OSError, ValueError, KeyError, TypeError, AttributeError, WpinqError):
        raise CheckpointError(
            f"the run in {path.parent} cannot be read: it is damaged, or of another version"
        ) from None


def load_run(folder: Path) -> tuple[FittingOptions, dict[str, Answers]]:
    """The run in a folder.

    Raises
    ------
    CheckpointError
        When there is none, or it cannot be read.
    """
    if not holds_run(folder):
        raise CheckpointError(f"there is no run in {folder} that could go on")
    with loaded_note(folder / _RUN, FORMAT) as known:
        answers = {name: Answers.load(folder / _ANSWERS / f"{name}.json") for name in known["answers"]}
        return FittingOptions.from_json(known["told"]), answers
