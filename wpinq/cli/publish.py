"""`wpinq publish`: the releases of an epoch of a series, in a folder with one file an epoch."""

from __future__ import annotations

import argparse
import datetime
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from wpinq.api.series import Series
from wpinq.cli import arguments
from wpinq.cli.output import checked_output, write_answers
from wpinq.data.files import parquet_files
from wpinq.engines.contract import find_engine
from wpinq.errors import EvaluationFailed, SourceRejected, UsageError
from wpinq.expr.epochs import Epoch
from wpinq.kernel.session import Session
from wpinq.mcmc.settings import write_atomically
from wpinq.measure.bill import Bill
from wpinq.measure.group import waits_for_keys
from wpinq.noise.epsilon_text import format_epsilon

#: What stands for the label of an epoch in the path of the data.
PLACE = "{epoch}"

#: What stands for the digest of data where there is no file.
_MISSING = "missing\n"

#: The file of an epoch whose data were refused, or whose evaluation failed: the same for every reason.
FAILED = b"There is no release of this epoch.\n"


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("publish", help="release an epoch of a series into a folder, once, as from cron")
    made.add_argument("program", type=Path, metavar="PROGRAM.wpq")
    made.add_argument("--series", metavar="NAME", help="the series; only needed where the program has several")
    made.add_argument("--epoch", required=True, metavar="LABEL", help="the value of the program's parameter `epoch`")
    path = f"the data of each epoch, with {PLACE} in the path; an epoch without a file has no rows"
    made.add_argument("--data", required=True, metavar="PATH", help=path)
    arguments.add_ledger_place(made)
    put = "the folder of published files, one an epoch; of several releases, a folder of each"
    made.add_argument("--folder", type=Path, required=True, metavar="FOLDER", help=put)
    made.add_argument("--format", choices=("csv", "parquet"), default="csv", help="of the files (default: csv)")
    state = "the version of the data of an epoch; corrected data are a new version, and pay anew (default: 1)"
    made.add_argument("--data-version", action="append", default=[], metavar="LABEL=VERSION", help=state)
    moment = "put files in place at this moment in UTC, such as 2026-11-28T06:00: a moment after the work would tell"
    made.add_argument("--at", metavar="TIME", type=datetime.datetime.fromisoformat, help=moment)
    value = "the value of another parameter of the program"
    made.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help=value)
    arguments.add_engine(made)
    made.add_argument("--memory-limit", metavar="SIZE", help="the memory of duckdb, such as 2GB")
    made.set_defaults(command=publish, records_at_most=[])


def publish(options: argparse.Namespace) -> None:
    """The command."""
    options.param = [*options.param, f"epoch={options.epoch}"]
    program = arguments.load_program(options)
    known = {name: query for name, query in program.sources.items() if isinstance(query, Series)}
    name = options.series or next(iter(known), "")
    if name not in known or (len(known) > 1 and options.series is None):
        raise UsageError(f"--series names a series of the program; it has {', '.join(known) or 'none'}")
    series, asked = known[name], program.releases
    series.calendar.number(options.epoch)
    bill = Bill(asked)
    epochs = [source.epoch for source in bill.sources.values() if source.epoch is not None]
    if not asked or len(epochs) < len(bill.sources) or {epoch.series for epoch in epochs} != {name}:
        raise UsageError(f"the program releases epochs of {name}, and nothing else: {name}.Epoch(epoch)")
    if any(map(waits_for_keys, asked.values())):
        raise UsageError("a release without public keys cannot be published: write NoisyCount(1, over: [...])")
    for measurement in bill.measurements:
        find_engine(options.engine).check(measurement.plan)
    arguments.check_covered(bill, {each.source: series.calendar.each or 0 for each in epochs}, "budget_each of {}")
    versions = arguments.pairs(options.data_version, "--data-version")
    files = {}
    for each in asked:
        folder = options.folder / each if len(asked) > 1 else options.folder
        folder.mkdir(parents=True, exist_ok=True)
        files[each] = checked_output(folder / f"{options.epoch}.{options.format}", "--folder")
    print(f"The bill:\n{bill}\n", flush=True)
    head, limit = options.expected_head, options.memory_limit
    failed = options.folder / f"{options.epoch}.failed"
    with Session(options.ledger, expected_head=head, engine=options.engine, memory_limit=limit) as session:
        try:
            with ExitStack() as stack:
                for epoch in sorted(epochs, key=lambda each: each.label):
                    version = versions.get(epoch.label, "1")
                    data = stack.enter_context(_data(options.data, epoch, version))
                    session.protect(series, data, epoch=epoch.label, version=version)
            answers: dict[str, Any] = session.release(asked)
        except (SourceRejected, EvaluationFailed):
            _wait(options.at)
            if not any(path.exists() for path in files.values()):  # which were published before
                write_atomically(failed, FAILED)
            raise
        head, costs = session.head(), session.debited()
    _wait(options.at)
    for each, path in files.items():
        write_answers(answers[each], path)
    failed.unlink(missing_ok=True)
    spent = ", ".join(f"{format_epsilon(cost)} of {account}" for account, cost in costs.items() if cost)
    print(f"Spent {spent or 'nothing'}\nHead of the ledger: {head}", flush=True)


@contextmanager
def _data(pattern: str, epoch: Epoch, version: str) -> Iterator[str | list[Any]]:
    """The data of an epoch, held to one content under one version, in every process.

    The SHA-256 is kept beside the data, readable by their owner alone: it is a function of the data, so no ledger has
    it.
    """
    if PLACE not in pattern:
        raise UsageError(f'--data has {PLACE} where the label of an epoch stands: --data "views/{PLACE}.parquet"')
    path, folder = pattern.replace(PLACE, epoch.label), Path(pattern.partition(PLACE)[0] + "x").parent
    try:
        os.listdir(folder)
        note = os.open(folder / f".{epoch.series}.{epoch.label}.read", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        raise UsageError(f"--data: {folder} is no folder in which files can be read and written") from None
    with os.fdopen(note, "r+") as notes:
        fcntl.flock(notes, fcntl.LOCK_EX)
        found = _digest(path)
        lines = notes.read().splitlines(keepends=True)  # a line without its end was never written whole
        read = dict(line.rsplit(" ", 1) for line in lines if " " in line and line.endswith("\n"))
        if read.get(version, found) != found:
            raise SourceRejected(
                f"{path} differs from what was read under version {version!r}: give corrected data a new version"
            )
        if version not in read:
            notes.write(f"\n{version} {found}")
            notes.flush()
            os.fsync(notes.fileno())
        yield [] if found == _MISSING and not os.path.lexists(path) else path
        if _digest(path) != found:
            raise SourceRejected(f"{path} changed while it was read: write it elsewhere, and rename it into place")


def _digest(path: str) -> str:
    """SHA-256 over the files of a path, with the end of a line."""
    digest = hashlib.sha256()
    try:
        for file in parquet_files(Path(path)) or [Path(path)]:
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    except (FileNotFoundError, SourceRejected) as refused:
        if not getattr(refused, "missing", True):  # which leaves open what files there are
            raise
        return _MISSING
    except OSError:
        raise SourceRejected(f"{path} cannot be read: check its rights") from None
    return f"{digest.hexdigest()}\n"


def _wait(until: datetime.datetime | None) -> None:
    """Wait for a moment, in UTC if it has no zone; a late file tells of the work."""
    moment = until if until is None or until.tzinfo else until.replace(tzinfo=datetime.UTC)
    left = (moment - datetime.datetime.now(datetime.UTC)).total_seconds() if moment else 0.0
    if left < 0:
        arguments.tell("wpinq: the moment of --at is over: that this file is late tells of the work")
    time.sleep(max(left, 0.0))
