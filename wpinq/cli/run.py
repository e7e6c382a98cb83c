"""`wpinq run`: the measurements of a text program, released together under budgets."""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from wpinq.api.people import tables_of
from wpinq.cli import arguments
from wpinq.cli.output import answers_table, output_files, write_answers
from wpinq.data import EdgeList, SourceData
from wpinq.data.source_files import EDGE_OPTIONS, as_option, source_data, tables_data
from wpinq.engines.contract import find_engine
from wpinq.errors import UsageError, WpinqError
from wpinq.kernel.ledger.postgres import LedgerURL
from wpinq.kernel.session import Session
from wpinq.marginals.released import MarginalTables
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.group import check_label, waits_for_keys
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.node import sources
from wpinq.tables.released import Table

#: What a release of a program gives.
RunResult = Answers | Table | MarginalTables


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("run", help="run a text program on protected data, under budgets")
    made.add_argument("program", type=Path, metavar="PROGRAM.wpq")
    by_name = partial(made.add_argument, action="append", default=[])
    by_name("--source", metavar="NAME=FILE", help="the data of a source")
    by_name("--budget", metavar="NAME=EPSILON", help="the budget of a source, or of an account")
    arguments.add_ledger_place(made)
    read = f"options for an edge source, one of them directed or undirected: {', '.join(EDGE_OPTIONS)}, comments=SIGNS"
    by_name("--edge-list", metavar="NAME=OPTION,...", help=read)
    ends = "the columns of an edge: names (default: the fields of the source), or positions in text, as 1,2"
    by_name("--columns", metavar="NAME=ONE,OTHER", help=ends)
    by_name("--delimiter", metavar="NAME=CHARACTER", help="the field separator of a csv file of any name")
    state = "a name for this version of the data; the same measurement of the same version replays at no cost"
    by_name("--data-version", metavar="NAME=VERSION", help=state)
    arguments.add_parameters(made)
    arguments.add_engine(made)
    spilled = "the memory of duckdb, such as 2GB; beyond it, duckdb spills to unnamed files"
    made.add_argument("--memory-limit", metavar="SIZE", help=spilled)
    made.add_argument("--threads", type=int, metavar="N", help="the threads of duckdb (default: all cores)")
    made.add_argument("--json", action="store_true", help="print answers, bill and budgets as JSON")
    made.add_argument("--save", type=Path, metavar="FOLDER", help="a folder for the answers of each measurement")
    by_file = "a file for the rows of a release: key fields, estimate, low, high, kind"
    by_name("--output", metavar="[NAME=]FILE.csv|.parquet", help=by_file)
    printed = "rows of a table to print, 0 for all (default 20)"
    made.add_argument("--rows", type=int, default=20, metavar="N", help=printed)
    named = "print steps and their times to stderr; times depend on the data"
    made.add_argument("--progress", action="store_true", help=named)
    noted = "stored unencrypted with the debit: at most 200 characters, not derived from the data"
    made.add_argument("--label", metavar="TEXT", help=noted)
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    arguments.check_stdout()
    label = check_label(options.label)
    if options.rows < 0:
        raise UsageError("--rows is at least 0, which prints all")
    program = arguments.load_program(options)
    asked = program.releases
    if not asked:
        raise UsageError("the program releases nothing; end a query with NoisyCount(epsilon, over: ...)")
    for name, one in asked.items():
        if waits_for_keys(one):
            raise UsageError(f"{name} has no public keys; write NoisyCount(epsilon, over: range(0, 100)) or the like")
    pairs = arguments.pairs
    files, budgets = pairs(options.source, "--source"), pairs(options.budget, "--budget")
    edge_lists, columns = pairs(options.edge_list, "--edge-list"), pairs(options.columns, "--columns")
    versions, delimiters = pairs(options.data_version, "--data-version"), pairs(options.delimiter, "--delimiter")
    data: dict[str, SourceData] = {}
    accounts = {declared.account for declared in sources(query.plan for query in program.sources.values()).values()}
    tables = {name: tables_of(query) for name, query in program.sources.items()}
    of_files = [file for name, each in tables.items() for file in ([f"{name}.{table}" for table in each] or [name])]
    told = {**edge_lists, **columns, **versions}
    read = {**files, **delimiters}
    for given, known in ((budgets, sorted(accounts)), (told, list(program.sources)), (read, of_files)):
        for name in given:
            if name not in known:
                what = "account" if given is budgets and name in program.sources else "source"
                raise UsageError(f"the program has no {what} {name!r}; it has {', '.join(known) or 'none'}")
    for name, source in Bill(asked).sources.items():
        if source.epoch is not None:
            raise UsageError(f"{source.epoch.series} is a series: wpinq publish releases its epochs")
        if (name not in files and not tables[name]) or source.account not in budgets:
            raise UsageError(
                f"the program uses {name}: give --source {name}=FILE and --budget {source.account}=EPSILON"
            )
        if tables[name]:
            of_edges = edge_lists.get(name), columns.get(name)
            data[name] = tables_data(name, tables[name], files, delimiters, as_option, of_edges)
            continue
        data[name] = source_data(name, files[name], edge_lists.get(name), columns.get(name), delimiters.get(name))
    program = program.promising({name: given.facts for name, given in data.items() if isinstance(given, EdgeList)})
    asked = program.releases
    bill = Bill(asked)
    for measurement in bill.measurements:
        find_engine(options.engine).check(measurement.plan)
    arguments.check_covered(bill, budgets, "--budget {}")
    outputs = output_files(options.output, asked)
    saved = {} if options.save is None else {name: options.save / f"{name}.json" for name in asked}
    read_files = map(Path, [*files.values(), *(each for each in options.sql if each.endswith(".sql"))])
    arguments.check_distinct([*saved.values(), *outputs.values()], [options.program, options.ledger, *read_files])
    new = options.expected_head is None and arguments.is_new(options.ledger)
    if options.save is not None:
        _prepare_folder(options.save)
    if not options.json:
        # Flushed: if it cannot be written, nothing is spent.
        print(f"The bill:\n{bill}\n\nEngine: {options.engine}.\n", flush=True)
    limits = {"memory_limit": options.memory_limit, "threads": options.threads}
    head, on_step = options.expected_head, _named_steps(options)
    with Session(options.ledger, expected_head=head, engine=options.engine, on_step=on_step, **limits) as session:
        if new:
            arguments.tell(f"new ledger: {options.ledger}")
        _check_left(session, bill, versions)
        for name, source in bill.sources.items():
            budget = budgets[source.account]
            session.protect(program.sources[name], data[name], budget=budget, version=versions.get(name))
        try:
            answers: dict[str, Any] = session.release(asked, label=label)  # all have public keys: it was checked
            remaining = {name: session.remaining(name) for name in bill}
            head = session.head()
        except (WpinqError, KeyboardInterrupt):
            if spent := _spent(session.debited()):
                arguments.tell(f"wpinq: this run spent {spent}")
            raise
        spent = _spent(session.debited()) or "nothing"
    replayed = all(name in versions for name in bill.sources)
    folder = None
    try:
        unwritten_files = _write_files(answers, saved, outputs)
        folder = None if unwritten_files else options.save
        if options.json:
            tables = {name: table.to_json() for name, table in answers.items()}
            costs, left = ({name: str(cost) for name, cost in costs.items()} for costs in (bill, remaining))
            print(json.dumps({"bill": costs, "answers": tables, "remaining": left, "head": head}, indent=1), flush=True)
        else:
            _print_answers(answers, remaining, budgets, options.rows)
            print(f"Head of the ledger: {head}", flush=True)
    except (OSError, KeyboardInterrupt) as error:  # paid for, so they are kept, whatever became of the output
        consequence = f"this run spent {spent}. {_kept(answers, folder, options.ledger, replayed)}"
        if isinstance(error, OSError):
            raise arguments.unwritten(error, consequence) from None
        arguments.tell(f"wpinq: {consequence}")
        raise
    if unwritten_files:
        again = _AGAIN if replayed else "Keep what was printed"
        raise arguments.NotSaved(f"not written: {', '.join(unwritten_files)}; this run spent {spent}. {again}")


def _check_left(session: Session, bill: Bill, versions: Mapping[str, str]) -> None:
    """Refuse a bill that the ledger has not left, before other accounts are opened.

    With a version, it may be paid already.
    """
    balances = session.balances()
    if {each.account for each in balances} >= {source.account for source in bill.sources.values()}:
        return  # no account is opened
    unpaid = {source.account for name, source in bill.sources.items() if name not in versions}
    left = {each.account: each.remaining for each in balances if each.account in unpaid}
    arguments.check_covered(bill, left, "the remaining budget of {}")


_AGAIN = "The same command repeats the same answers at no cost"


def _spent(debited: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{format_epsilon(epsilon)} of {name}" for name, epsilon in debited.items() if epsilon)


def _kept(answers: Mapping[str, RunResult], folder: Path | None, ledger: Path | LedgerURL, replayed: bool) -> str:
    """The way to answers that could not be printed: a folder of `--save`, or the ledger."""
    if folder is not None:
        return f"The answers are saved in {folder}"
    if replayed:
        return _AGAIN
    for number in itertools.count(1):  # never over those of an earlier run
        beside = ledger if isinstance(ledger, Path) else Path("ledger")
        folder = beside.with_name(f"{beside.name}.unprinted{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError:
            break
        if not _write_files(answers, {name: folder / f"{name}.json" for name in answers}, {}):
            return f"The answers are saved in {folder}"
        break
    return (
        f"The answers could not be saved in {folder} either, and are lost. With --data-version the same command "
        "repeats the same answers at no cost"
    )


def _prepare_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        raise UsageError(f"--save: cannot write to {folder}; name a folder that can be written to") from None


def _print_answers(
    answers: Mapping[str, RunResult], remaining: Mapping[str, Fraction], budgets: Mapping[str, str], rows: int
) -> None:
    for name, table in answers.items():
        if isinstance(table, Answers):
            print(answers_table(name, table, rows))
        else:
            print(f"{name}:\n{table.to_text(rows)}")
        print()
    for name, left in remaining.items():
        print(f"Remaining budget of {name}: {format_epsilon(left)} of {budgets[name]}", flush=True)


def _write_files(answers: Mapping[str, RunResult], saved: Mapping[str, Path], outputs: Mapping[str, Path]) -> list[str]:
    """Write answers to `--save` and `--output`; the result is the files that failed."""
    files = [(answers[name].save, path) for name, path in saved.items()]
    files += [(partial(write_answers, answers[name]), path) for name, path in outputs.items()]
    unwritten_files = []
    for write, path in files:
        try:
            write(path)
        except OSError:
            unwritten_files.append(str(path))
    return unwritten_files


def _named_steps(options: argparse.Namespace) -> Callable[[str], None] | None:
    if not options.progress:
        return None
    start = time.monotonic()
    return lambda step: arguments.tell(f"[{time.monotonic() - start:7.1f} s] {step}")
