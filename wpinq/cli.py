"""The command line: run a text program under budgets, explain it, look after a ledger.

Of the values in protected data it prints released answers only. The bill is printed before anything runs, and the
command line is checked before a ledger is made or data are read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from wpinq.answers import Answers
from wpinq.bill import Bill
from wpinq.commands import synthesize
from wpinq.commands.errors import NotSaved, UsageError
from wpinq.display.explain import explain_plan
from wpinq.display.table import answers_table
from wpinq.engines.choice import DEFAULT_ENGINE, ENGINES, find_engine
from wpinq.errors import (
    BudgetExceeded,
    EvaluationFailed,
    LanguageError,
    LedgerError,
    SourceRejected,
    WpinqError,
)
from wpinq.ingest import EdgeList
from wpinq.ingest.source import format_of
from wpinq.language import Program, parse
from wpinq.privacy.epsilon import budget_to_nano, format_epsilon, from_nano, parse_epsilon
from wpinq.privacy.ledger import Ledger
from wpinq.release import Release
from wpinq.session import Session

EXIT_CODES: tuple[tuple[type[WpinqError], int], ...] = (
    (UsageError, 2),
    (BudgetExceeded, 3),
    (SourceRejected, 4),
    (EvaluationFailed, 5),
    (LedgerError, 6),
    (LanguageError, 7),
    (NotSaved, 8),
)
"""What the process ends with, by error; 1 is any other error of ours."""

_EDGE_OPTIONS: dict[str, dict[str, Any]] = {
    "directed": {"directed": True},
    "undirected": {"directed": False},
    "keep-loops": {"loops": "keep"},
    "drop-loops": {"loops": "drop"},
    "refuse-loops": {"loops": "refuse"},
    "keep-duplicates": {"duplicates": "keep"},
    "drop-duplicates": {"duplicates": "drop"},
    "refuse-duplicates": {"duplicates": "refuse"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = options.command
    try:
        command(options)
    except WpinqError as error:
        print(f"wpinq: {error}", file=sys.stderr)
        return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)
    except KeyboardInterrupt:
        print("wpinq: interrupted; what was debited stays spent", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="wpinq", description="Differentially private queries over weighted datasets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a text program on protected data, under budgets")
    run.add_argument("program", type=Path, metavar="PROGRAM.wpq")
    run.add_argument("--source", action="append", default=[], metavar="NAME=FILE", help="the data of a source")
    run.add_argument("--budget", action="append", default=[], metavar="NAME=EPSILON", help="the budget of a source")
    run.add_argument(
        "--ledger", type=Path, required=True, metavar="FILE", help="where budgets are kept; made if absent"
    )
    run.add_argument(
        "--edge-list",
        action="append",
        default=[],
        metavar="NAME=OPTION,...",
        help=f"how to read the edge list of a source, directed or undirected at least: {', '.join(_EDGE_OPTIONS)}",
    )
    run.add_argument(
        "--data-version",
        action="append",
        default=[],
        metavar="NAME=VERSION",
        help="your word for this state of the data: the same measurement of the same version replays for free",
    )
    _add_parameters(run)
    _add_engine(run)
    run.add_argument("--memory-limit", metavar="SIZE", help="of duckdb, such as 2GB; beyond it, it spills to disk")
    run.add_argument("--threads", type=int, metavar="N", help="of duckdb; all there are unless given")
    run.add_argument("--json", action="store_true", help="print answers, bill and budgets as JSON")
    run.add_argument("--save", type=Path, metavar="FOLDER", help="save the answers of each measurement there")
    run.add_argument(
        "--rows", type=int, default=20, metavar="N", help="rows of a table to print, 0 for all (default 20)"
    )
    run.add_argument(
        "--progress", action="store_true", help="name the steps on stderr, with times, which tell of the data"
    )
    run.set_defaults(command=_run)

    explain = commands.add_parser("explain", help="show plans, bills and expected accuracy; no data")
    explain.add_argument("program", type=Path, metavar="PROGRAM.wpq")
    _add_parameters(explain)
    _add_engine(explain)
    explain.set_defaults(command=_explain)

    budget = commands.add_parser("budget", help="show or change the budgets in a ledger")
    budget.add_argument("ledger", type=Path, metavar="LEDGER")
    budget.add_argument("--set", action="append", default=[], metavar="NAME=EPSILON", help="change a budget, on record")
    budget.add_argument("--history", action="store_true", help="list every entry")
    budget.add_argument("--verify", action="store_true", help="check the ledger's hash chain and sums first")
    budget.add_argument("--json", action="store_true", help="print as JSON")
    budget.set_defaults(command=_budget)
    synthesize.add_parser(commands)
    return parser


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=list(ENGINES), default=DEFAULT_ENGINE, help=f"default: {DEFAULT_ENGINE}")


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", help="the value of a program's parameter"
    )


# --- run --------------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> None:
    if options.rows < 0:
        raise UsageError("--rows is at least 0, which prints all")
    program = _load(options)
    measurements = program.measurements
    if not measurements:
        raise UsageError("the program releases nothing; end a query with NoisyCount(epsilon, over: ...)")
    for name, measurement in measurements.items():
        if measurement.domain is None:
            raise UsageError(f"{name} has no public keys; write NoisyCount(epsilon, over: range(0, 100)) or the like")
    files, budgets = _pairs(options.source, "--source"), _pairs(options.budget, "--budget")
    edge_lists, versions = _pairs(options.edge_list, "--edge-list"), _pairs(options.data_version, "--data-version")
    bill, data = Bill(measurements), {}
    for given in (files, budgets, edge_lists, versions):
        for name in given:
            if name not in program.sources:
                raise UsageError(f"the program has no source {name!r}; it has {', '.join(program.sources) or 'none'}")
    for name in bill:
        if name not in files or name not in budgets:
            raise UsageError(f"the program uses {name}: give --source {name}=FILE and --budget {name}=EPSILON")
        budget_to_nano(parse_epsilon(budgets[name]))
        data[name] = _data(name, files[name], edge_lists.get(name))
    for measurement in measurements.values():
        find_engine(options.engine).check(measurement.plan)
    new = _is_new(options.ledger)
    if options.save is not None:
        _prepare_folder(options.save)
    if not options.json:
        print(f"The bill:\n{bill}\n\nEngine: {options.engine}.\n")
    limits = {"memory_limit": options.memory_limit, "threads": options.threads}
    with Session(options.ledger, engine=options.engine, on_step=_progress(options), **limits) as session:
        if new:
            print(f"new ledger: {options.ledger}", file=sys.stderr)
        for name in bill:
            session.protect(program.sources[name], data[name], budget=budgets[name], version=versions.get(name))
        released = dict(zip(measurements, session.release(list(measurements.values())), strict=True))
        remaining = {name: session.remaining(name) for name in bill}
    answers = {name: _as_answers(item) for name, item in released.items()}
    try:
        if options.json:
            print(json.dumps(_run_as_json(bill, answers, remaining), indent=1), flush=True)
        else:
            _print_answers(answers, remaining, budgets, options.rows)
    finally:  # also when the reader of the output went away: the answers are paid for
        if options.save is not None:
            _save(answers, options.save)


def _is_new(ledger: Path) -> bool:
    """Whether a ledger is to be made. An empty file is none: taking it for one would give back what was spent."""
    try:
        if ledger.stat().st_size > 0 or not ledger.is_file():
            return False
    except FileNotFoundError:
        return True
    except OSError:
        return False  # opening it says why
    raise LedgerError(f"{ledger} is empty, and no ledger: put the ledger back, or remove the file to start a new one")


def _prepare_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        raise UsageError(f"--save: cannot write to {folder}; name a folder that can be written to") from None


def _print_answers(
    answers: Mapping[str, Answers], remaining: Mapping[str, Fraction], budgets: Mapping[str, str], rows: int
) -> None:
    for name, table in answers.items():
        print(answers_table(name, table, rows))
        print()
    for name, left in remaining.items():
        print(f"Remaining budget of {name}: {format_epsilon(left)} of {budgets[name]}", flush=True)


def _save(answers: Mapping[str, Answers], folder: Path) -> None:
    unsaved = []
    for name, table in answers.items():
        try:
            table.save(folder / f"{name}.json")
        except OSError:
            unsaved.append(name)
    if unsaved:
        raise NotSaved(f"cannot write to {folder}, so not saved: {', '.join(unsaved)}; keep what was printed")


def _as_answers(released: Answers | Release) -> Answers:
    assert isinstance(released, Answers)  # every measurement has a domain, checked before anything ran
    return released


def _run_as_json(bill: Bill, answers: Mapping[str, Answers], remaining: Mapping[str, Fraction]) -> dict[str, Any]:
    return {
        "bill": {name: str(cost) for name, cost in bill.items()},
        "answers": {name: table.to_json() for name, table in answers.items()},
        "remaining": {name: str(left) for name, left in remaining.items()},
    }


def _progress(options: argparse.Namespace) -> Callable[[str], None] | None:
    if not options.progress:
        return None
    start = time.monotonic()
    return lambda step: print(f"[{time.monotonic() - start:7.1f} s] {step}", file=sys.stderr)


def _data(name: str, file: str, options: str | None) -> object:
    path = Path(file)
    if not path.exists() or path.is_dir() or not os.access(path, os.R_OK):
        raise UsageError(f"--source {name}: there is no file {path} that can be read")
    if options is None:
        if format_of(path) in (".csv", ".parquet"):
            return path
        raise UsageError(
            f"{path} is no csv or parquet file by its name; if it is an edge list, say what an edge is: "
            f"--edge-list {name}=directed or --edge-list {name}=undirected"
        )
    chosen: dict[str, Any] = {}
    for option in map(str.strip, options.split(",")):
        if option not in _EDGE_OPTIONS:
            raise UsageError(f"--edge-list has no option {option!r}; it has {', '.join(_EDGE_OPTIONS)}")
        if chosen.keys() & _EDGE_OPTIONS[option].keys():
            raise UsageError(f"--edge-list {name}: {option!r} decides what another option has decided; keep one")
        chosen |= _EDGE_OPTIONS[option]
    if "directed" not in chosen:
        raise UsageError(f"--edge-list {name} must say what an edge is: directed or undirected")
    return EdgeList(path, **chosen)


# --- explain and budget -----------------------------------------------------------------------------------------


def _explain(options: argparse.Namespace) -> None:
    program = _load(options)
    for name, measurement in program.measurements.items():
        print(f"== {name}: {measurement.description}\n")
        print(explain_plan(measurement.plan, measurement.epsilon, measurement.reading, options.engine))
        print()
    if program.measurements:
        print(f"The bill of all, released together:\n{Bill(program.measurements)}")
        return
    for name, query in program.queries.items():
        print(f"== {name}\n\n{explain_plan(query.plan, engine=options.engine)}\n")


def _budget(options: argparse.Namespace) -> None:
    budgets = {name: budget_to_nano(parse_epsilon(text)) for name, text in _pairs(options.set, "--set").items()}
    with Ledger(options.ledger, create=False) as ledger:
        if options.verify:
            ledger.verify()
        for name, budget in budgets.items():
            ledger.set_budget(name, budget)
        accounts = ledger.accounts()
        history = [entry for entry in ledger.entries() if entry.kind != "answers"] if options.history else []
    if options.json:
        print(
            json.dumps(
                {
                    "accounts": [
                        {
                            "source": account.name,
                            "unit": account.unit,
                            "unit_weight": str(account.unit_weight),
                            "budget": str(from_nano(account.budget)),
                            "spent": str(from_nano(account.spent)),
                            "remaining": str(from_nano(account.remaining)),
                        }
                        for account in accounts
                    ],
                    "history": [
                        {
                            "sequence": entry.sequence,
                            "time": entry.time,
                            "kind": entry.kind,
                            "source": entry.source,
                            "amount": str(from_nano(entry.amount)),
                            "description": entry.description,
                        }
                        for entry in history
                    ],
                },
                indent=1,
            )
        )
        return
    for account in accounts:
        print(
            f"{account.name}: spent {format_epsilon(from_nano(account.spent))} of "
            f"{format_epsilon(from_nano(account.budget))}, {format_epsilon(from_nano(account.remaining))} remaining; "
            f"protects {account.unit}"
        )
    for entry in history:
        amount = format_epsilon(from_nano(entry.amount))
        print(f"  {entry.sequence} {entry.time} {entry.kind} {entry.source} {amount} {entry.description}".rstrip())
    if options.verify:
        print("The ledger is whole: its hash chain and its sums hold.")


# --- shared -----------------------------------------------------------------------------------------------------


def _load(options: argparse.Namespace) -> Program:
    path: Path = options.program
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{path} cannot be read as a text program") from None
    return parse(text, _pairs(options.parameter, "--parameter"), name=str(path))


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} takes NAME=VALUE, not {item!r}")
        if name in pairs:
            raise UsageError(f"{option} {name} is given twice")
        pairs[name] = value
    return pairs
