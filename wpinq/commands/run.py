"""`wpinq run`: the measurements of a text program, released together under budgets."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, cast

from wpinq.commands.arguments import add_engine, add_parameters, column_names, is_new, load_program, pairs
from wpinq.commands.exits import NotSaved, UsageError
from wpinq.display.table import answers_table
from wpinq.engines.contract import find_engine
from wpinq.ingest import EdgeList
from wpinq.ingest.files import format_of
from wpinq.kernel.charge import budget_to_nano
from wpinq.kernel.session import Session
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.compound import flattened
from wpinq.measure.epsilon import format_epsilon, parse_epsilon
from wpinq.plan.node import sources
from wpinq.tables.released_table import Table

_EDGE_OPTIONS: dict[str, dict[str, Any]] = {
    "directed": {"directed": True},
    "undirected": {"directed": False},
    **{f"{do}-{what}": {what: do} for what in ("loops", "duplicates") for do in ("keep", "drop", "refuse")},
}


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("run", help="run a text program on protected data, under budgets")
    made.add_argument("program", type=Path, metavar="PROGRAM.wpq")
    by_name = partial(made.add_argument, action="append", default=[])
    by_name("--source", metavar="NAME=FILE", help="the data of a source")
    by_name("--budget", metavar="NAME=EPSILON", help="the budget of a source, or of an account")
    kept = "where budgets are kept; made if absent"
    made.add_argument("--ledger", type=Path, required=True, metavar="FILE", help=kept)
    read = f"how to read a source of edges, directed or undirected at least: {', '.join(_EDGE_OPTIONS)}"
    by_name("--edge-list", metavar="NAME=OPTION,...", help=read)
    ends = "the columns of a csv or parquet file that hold an edge; the fields of the source unless given"
    by_name("--columns", metavar="NAME=ONE,OTHER", help=ends)
    state = "your word for this state of the data: the same measurement of the same version replays for free"
    by_name("--data-version", metavar="NAME=VERSION", help=state)
    add_parameters(made)
    add_engine(made)
    made.add_argument(
        "--memory-limit", metavar="SIZE", help="of duckdb, such as 2GB; beyond it, it spills to nameless files"
    )
    made.add_argument("--threads", type=int, metavar="N", help="of duckdb; all there are unless given")
    made.add_argument("--json", action="store_true", help="print answers, bill and budgets as JSON")
    made.add_argument("--save", type=Path, metavar="FOLDER", help="save the answers of each measurement there")
    printed = "rows of a table to print, 0 for all (default 20)"
    made.add_argument("--rows", type=int, default=20, metavar="N", help=printed)
    named = "name the steps on stderr, with times, which tell of the data"
    made.add_argument("--progress", action="store_true", help=named)
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    if options.rows < 0:
        raise UsageError("--rows is at least 0, which prints all")
    program = load_program(options)
    asked = program.releases
    if not asked:
        raise UsageError("the program releases nothing; end a query with NoisyCount(epsilon, over: ...)")
    for name, one in asked.items():
        if any(measurement.domain is None for measurement in flattened([one])):
            raise UsageError(f"{name} has no public keys; write NoisyCount(epsilon, over: range(0, 100)) or the like")
    files, budgets = pairs(options.source, "--source"), pairs(options.budget, "--budget")
    edge_lists, versions = pairs(options.edge_list, "--edge-list"), pairs(options.data_version, "--data-version")
    columns = pairs(options.columns, "--columns")
    data: dict[str, object] = {}
    accounts = {declared.account for declared in sources(query.plan for query in program.sources.values()).values()}
    for given, known in (
        (budgets, sorted(accounts)),
        ({**files, **edge_lists, **columns, **versions}, list(program.sources)),
    ):
        for name in given:
            if name not in known:
                what = "account" if given is budgets and name in program.sources else "source"
                raise UsageError(f"the program has no {what} {name!r}; it has {', '.join(known) or 'none'}")
    for name, source in Bill(asked).sources.items():
        if name not in files or source.account not in budgets:
            raise UsageError(
                f"the program uses {name}: give --source {name}=FILE and --budget {source.account}=EPSILON"
            )
        budget_to_nano(parse_epsilon(budgets[source.account]))
        data[name] = _data(name, files[name], edge_lists.get(name), columns.get(name))
    program = program.promising({name: given.facts for name, given in data.items() if isinstance(given, EdgeList)})
    asked = program.releases
    bill = Bill(asked)
    for measurement in bill.measurements:
        find_engine(options.engine).check(measurement.plan)
    new = is_new(options.ledger)
    if options.save is not None:
        _prepare_folder(options.save)
    if not options.json:
        print(f"The bill:\n{bill}\n\nEngine: {options.engine}.\n")
    limits = {"memory_limit": options.memory_limit, "threads": options.threads}
    with Session(options.ledger, engine=options.engine, on_step=_named_steps(options), **limits) as session:
        if new:
            print(f"new ledger: {options.ledger}", file=sys.stderr)
        for name, source in bill.sources.items():
            budget = budgets[source.account]
            session.protect(program.sources[name], data[name], budget=budget, version=versions.get(name))
        released = session.release(list(asked.values()))
        remaining = {name: session.remaining(name) for name in bill}
    # every measurement has a domain, so that none of them is a Release, which waits for keys
    answers = dict(zip(asked, cast("list[Answers | Table]", released), strict=True))
    try:
        if options.json:
            tables = {name: table.to_json() for name, table in answers.items()}
            costs, left = ({name: str(cost) for name, cost in costs.items()} for costs in (bill, remaining))
            print(json.dumps({"bill": costs, "answers": tables, "remaining": left}, indent=1), flush=True)
        else:
            _print_answers(answers, remaining, budgets, options.rows)
    finally:  # also when the reader of the output went away: the answers are paid for
        if options.save is not None:
            _save(answers, options.save)


def _prepare_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        raise UsageError(f"--save: cannot write to {folder}; name a folder that can be written to") from None


def _print_answers(
    answers: Mapping[str, Answers | Table], remaining: Mapping[str, Fraction], budgets: Mapping[str, str], rows: int
) -> None:
    for name, table in answers.items():
        print(f"{name}:\n{table.to_text(rows)}" if isinstance(table, Table) else answers_table(name, table, rows))
        print()
    for name, left in remaining.items():
        print(f"Remaining budget of {name}: {format_epsilon(left)} of {budgets[name]}", flush=True)


def _save(answers: Mapping[str, Answers | Table], folder: Path) -> None:
    unsaved = []
    for name, table in answers.items():
        try:
            table.save(folder / f"{name}.json")
        except OSError:
            unsaved.append(name)
    if unsaved:
        raise NotSaved(f"cannot write to {folder}, so not saved: {', '.join(unsaved)}; keep what was printed")


def _named_steps(options: argparse.Namespace) -> Callable[[str], None] | None:
    if not options.progress:
        return None
    start = time.monotonic()
    return lambda step: print(f"[{time.monotonic() - start:7.1f} s] {step}", file=sys.stderr)


def _data(name: str, file: str, options: str | None, columns: str | None) -> object:
    path = Path(file)
    if not path.exists() or path.is_dir() or not os.access(path, os.R_OK):
        raise UsageError(f"--source {name}: there is no file {path} that can be read")
    table = format_of(path) in (".csv", ".parquet")
    if columns is not None and not (table and options is not None):
        raise UsageError(
            f"--columns {name} names those of an edge that is a row of a csv or parquet file: give such a file, and "
            f"--edge-list {name}=directed or --edge-list {name}=undirected"
        )
    if options is None:
        if table:
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
    return EdgeList(path, **chosen, columns=None if columns is None else column_names(columns, f"--columns {name}"))
