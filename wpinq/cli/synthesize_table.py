"""`wpinq synthesize-table`: measure marginals of a table, forget it, and draw public rows."""

from __future__ import annotations

import argparse
import csv
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wpinq.api.query import Query
from wpinq.cli import arguments
from wpinq.cli.output import checked_output, write_answers
from wpinq.data.source_files import table_file
from wpinq.display.plots import axes_or_new
from wpinq.errors import UsageError, WpinqError, suggest, system_reason
from wpinq.expr import types
from wpinq.expr.values import parse, presenter
from wpinq.marginals.cells import Attribute, attribute
from wpinq.marginals.released import MarginalTables
from wpinq.marginals.report import rows_page
from wpinq.marginals.tabulation import MarginalTabulation
from wpinq.mcmc.settings import CheckpointError, write_atomically
from wpinq.measure.accuracy import accuracy
from wpinq.measure.answer_rows import aligned
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.synthesis import fit_table, measure_table, plan_table, read_as, table_source

# Attributes as the command line says them: `age:int=bins:0,18,30,65`, `city=Oslo,Bergen`, `smoker`.

SHAPE = "NAME[:TYPE][?][=bins:0,18,65 or =Oslo,Bergen]"
_PLAIN = types.INT, types.FLOAT, types.STR, types.DATE, types.TIME
_TYPES = {str(type_): type_ for type_ in (*_PLAIN, *map(types.decimal, range(19)))}
_READERS: dict[types.Type, Any] = {
    types.INT: int,
    types.FLOAT: float,
    types.BOOL: lambda word: {"false": False, "true": True}[word.lower()],
}
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")


def read_attribute(given: str, fields: dict[str, types.Type], closed: Sequence[str]) -> Attribute:
    """An attribute, for a source with these fields.

    Parameters
    ----------
    given : str
        As on the command line. The type says how a text is read: what cannot be read so is null. With `?` behind
        it, null has a cell of its own, and else it counts among all others.
    fields : dict
        Column to type.
    closed : sequence of str
        The attributes without a cell of all others.

    Raises
    ------
    WpinqError
        When it makes no sense: nothing is read or spent yet.
    """
    head, _, written = given.partition("=")
    missing, head = head.endswith("?"), head.removesuffix("?")
    name, _, typed = head.partition(":")
    if name not in fields:
        raise UsageError(f"the file has no column {name!r} that can be declared; {suggest(name, fields)}")
    kept = fields[name].with_nullable(False)
    if typed and typed not in _TYPES:
        raise UsageError(f"there is no column type {typed!r}; there is {', '.join(map(str, _PLAIN))} and decimal(2)")
    type_ = _TYPES[typed] if typed else kept
    if written.startswith("bins:") and type_ == types.STR:
        raise UsageError(f"say what the column holds: {name}:int={written} or {name}:float={written}")
    column: Any = name if type_ == kept else read_as(name, type_)
    cells: dict[str, Any] = {}
    if written.startswith("bins:"):
        cells["bins"] = _values(written.removeprefix("bins:"), type_)
    elif written:
        cells["categories"] = _values(written, type_)
    elif type_ != types.BOOL and not isinstance(type_, types.CategoryOf):
        raise UsageError(f"the values of a column of type {type_} are not public: give bins or categories, {SHAPE}")
    return attribute(column, name=name, missing=missing, other=name not in closed, **cells)


def _values(text: str, type_: types.Type) -> list[Any]:
    """Values with commas between; `0..14` are all ints between.

    A value with a comma stands in double quotes.
    """
    found: list[Any] = []
    try:
        items = next(csv.reader([text], strict=True), [])
    except csv.Error:
        raise UsageError(
            "values stand on one line with commas between, those with commas or quotes inside in double quotes, as "
            'Oslo,"Rome, Italy"'
        ) from None
    for item in items:
        between = _RANGE.fullmatch(item) if type_ == types.INT else None
        if between is not None:
            first, last = map(int, between.groups())
            if not 0 <= last - first < types.CATEGORIES_LIMIT:
                raise UsageError(f"{item} is no range of at most {types.CATEGORIES_LIMIT:,} ints")
            found += range(first, last + 1)
            continue
        try:
            found.append(_value(item, type_))
        except (ValueError, ArithmeticError, LookupError):
            raise UsageError(f"{item!r} is no {type_}") from None
    return found


def _value(text: str, type_: types.Type) -> Any:
    if type_ in _READERS:
        return _READERS[type_](text)
    if isinstance(type_, types.Logical) and not isinstance(type_, types.CategoryOf):
        return presenter(type_)(parse(text, type_))
    return text


_SHOWN = 20


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    what = "measure marginals of a table, then draw public synthetic rows from a fitted model"
    made = commands.add_parser("synthesize-table", help=what)
    made.add_argument("table", type=Path, nargs="?", metavar="FILE", help="a csv or parquet file")
    made.add_argument("--out", type=Path, required=True, metavar="OUT", help="the synthetic rows, .csv or .parquet")
    measured = made.add_argument_group("measurement")
    several: dict[str, Any] = {"action": "append", "default": []}
    measured.add_argument("--attribute", **several, metavar=SHAPE, help="a column with its public cells")
    measured.add_argument("--delimiter", metavar="CHARACTER", help="the field separator of a csv file of any name")
    closed = "drop the cell for other values of this attribute, with its rows"
    measured.add_argument("--drop-other", **several, dest="closed", metavar="NAME", help=closed)
    measured.add_argument("--epsilon", metavar="E", help="the cost of all marginals to one row; a person pays N times")
    order = "the attributes per marginal (default: 1 and some pairs, from the cells, epsilon and --records)"
    measured.add_argument("--order", type=int, metavar="K", help=order)
    wanted = "a wanted marginal, instead of all of an order"
    measured.add_argument("--marginal", **several, metavar="NAME,NAME", help=wanted)
    many = "a rough public number of records, else bought for E/50; what it shows to be infeasible is refused"
    measured.add_argument("--records", type=float, metavar="N", help=many)
    measured.add_argument("--name", metavar="NAME", help="the source name in the ledger (default: the file name)")
    measured.add_argument("--unit", metavar="WORDS", help="the protected unit (default: one row, or one person)")
    measured.add_argument("--person", metavar="COLUMN", help="the column of person ids; the unit is then one person")
    measured.add_argument("--at-most", type=int, metavar="N", help="the maximum number of rows counted per person")
    arguments.add_ledger(measured, "")
    before = "marginals of an earlier run, instead of a file: no data are read, nothing is spent"
    measured.add_argument("--from-marginals", type=Path, metavar="FILE", help=before)
    drawn = made.add_argument_group("rows")
    model = "mixture (default) or full-table"
    drawn.add_argument("--model", type=lambda word: word.replace("-", " "), default="mixture", help=model)
    drawn.add_argument("--draw", type=int, metavar="N", help="the rows (default: the noisy number of records)")
    each = "N weighted rows per record instead"
    drawn.add_argument("--weighted-rows", type=int, nargs="?", const=10, metavar="N", help=each)
    drawn.add_argument("--seed", type=int, default=0, metavar="N", help="the seed of all public randomness (default 0)")
    kept = made.add_argument_group("output")
    kept.add_argument("--report", type=Path, metavar="FILE", help="the report (default: OUT.json)")
    kept.add_argument("--marginals", type=Path, metavar="FILE", help="released marginals (default: OUT.marginals.json)")
    kept.add_argument("--page", type=Path, metavar="FILE.html", help="a page of plots and tables")
    once = [each for each in measured._group_actions if each.dest != "from_marginals"]
    made.set_defaults(command=run, once=once)


def run(options: argparse.Namespace) -> None:
    """The command."""
    arguments.check_stdout()
    report_file = options.report or arguments.beside(options.out, ".json")
    kept = options.marginals or arguments.beside(options.out, ".marginals.json")
    checked_output(options.out, "--out")
    written = [options.out, report_file, *([options.page] if options.page else [])]
    if options.from_marginals is None:
        written.append(kept)
    elif options.marginals is not None:
        raise UsageError("--marginals is for newly measured marginals: leave it out")
    for place in written:
        arguments.check_writable(place)
    arguments.check_distinct(written, [options.table, options.ledger, options.from_marginals])
    if options.draw is not None and options.weighted_rows is not None:
        raise UsageError("--draw is a number of rows, --weighted-rows a number per record: give one of them")
    for name, least in (("draw", 1), ("weighted_rows", 1), ("seed", 0)):
        number = getattr(options, name)
        if number is not None and number < least:
            raise UsageError(f"--{name.replace('_', '-')} is at least {least}")
    if options.page is not None:
        axes_or_new(None)  # AnswersError without matplotlib, before anything is spent
    if options.from_marginals is not None:
        kept = options.from_marginals
        marginals = _known(options)
    else:
        _check_unused(kept)
        marginals = _measured(options, kept)
    again = f"Continue with: {_again(options, kept)}"
    try:
        _make(marginals, options, report_file)
    except KeyboardInterrupt:
        raise arguments.Interrupted(f"interrupted; the marginals are kept. {again}") from None
    except OSError as error:
        raise arguments.unwritten(error, f"the marginals are kept. {again}") from None
    except MemoryError:
        raise arguments.NotSaved(f"out of memory; the marginals are kept. {again}") from None
    except WpinqError as error:
        if options.from_marginals is None:
            arguments.tell(f"wpinq: the marginals are paid and stored. {again}")
        raise error


def _again(options: argparse.Namespace, kept: Path) -> str:
    """The command that makes the rows that were asked for, of what was measured."""
    words = ["wpinq", "synthesize-table", "--from-marginals", str(kept), "--out", str(options.out)]
    words += ["--model", options.model.replace(" ", "-"), "--seed", str(options.seed)]
    for name in ("draw", "weighted_rows", "report", "page"):
        if getattr(options, name) is not None:
            words += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    return shlex.join(words)


def _check_unused(kept: Path) -> None:
    if kept.exists():
        made = shlex.join(["--from-marginals", str(kept)])
        raise UsageError(
            f"{kept} exists and may hold paid marginals: make rows from it with {made}, or name another file "
            "with --marginals"
        )


def _known(options: argparse.Namespace) -> MarginalTables:
    """Marginals from a file: whatever says what to measure is refused beside it."""
    if options.table is not None or any(getattr(options, each.dest) != each.default for each in options.once):
        raise UsageError("--from-marginals uses measured marginals: leave out FILE and all options of the measurement")
    return MarginalTables.load(options.from_marginals)


def _measured(options: argparse.Namespace, kept: Path) -> MarginalTables:
    """The marginals of the file, once paid for in a file of their own."""
    if options.table is None or options.epsilon is None or not options.attribute:
        raise UsageError("give FILE, --epsilon and an --attribute for each column, or --from-marginals")
    arguments.check_readable(options.table)
    table = table_file(options.table, options.delimiter)
    if table is None:
        raise UsageError(f"{options.table} has no .csv or .parquet ending")
    notice = arguments.ledger_notice(options)
    if (options.person is None) != (options.at_most is None):
        raise UsageError(
            "--person and --at-most go together: the column of person ids, and the rows counted per person"
        )
    declared = table_source(table, options.name, unit=options.unit, person=options.person, at_most=options.at_most)
    asked = _asked(options, declared)
    budget = options.budget or next(iter(asked.bill().values()))  # nothing else could be spent
    arguments.check_covered(asked.bill(), dict.fromkeys(asked.bill(), budget), "--budget")
    print(f"The bill:\n{asked.bill()}\n", flush=True)
    if notice:
        arguments.tell(notice)
    kept_in = {"ledger": options.ledger, "budget": budget, "version": options.data_version, "engine": options.engine}
    marginals, left = measure_table(declared, table, asked, **kept_in, on_plan=_print_plan)
    try:
        write_atomically(kept, (json.dumps(marginals.to_json(), indent=1) + "\n").encode())
    except (CheckpointError, OSError) as error:
        lost = "They are lost; with --ledger and --data-version they could be repeated"
        if options.data_version:
            lost = "The same command repeats the same marginals at no cost"
        why = system_reason(error) if isinstance(error, OSError) else str(error)
        raise arguments.NotSaved(
            f"the marginals are paid for but could not be written to {kept} ({why}). {lost}"
        ) from None
    print(f"Measurement complete; the table is no longer read. The marginals are in {kept}")
    for name, epsilon in left.items():
        print(f"Remaining budget of {name}: {format_epsilon(epsilon)} of {format_epsilon(parse_epsilon(budget))}")
    print(flush=True)
    return marginals


def _asked(options: argparse.Namespace, declared: Query) -> MarginalTabulation:
    record = declared.plan.type
    assert isinstance(record, types.TupleOf)
    fields = {str(name): type_ for name, type_ in zip(record.names, record.elements, strict=True)}
    attributes = []
    for given in options.attribute:
        try:
            attributes.append(read_attribute(given, fields, options.closed))
        except WpinqError as error:
            raise UsageError(f"--attribute {given}: {error}") from None
    for name in options.closed:
        if name not in [each.name for each in attributes]:
            raise UsageError(f"--drop-other {name}: there is no such attribute")
    if options.marginal and options.order is not None:
        raise UsageError("--order means all marginals of an order, --marginal single ones: give one of them")
    workload = [tuple(given.split(",")) for given in options.marginal] or None
    wanted = {"order": options.order, "workload": workload, "records": options.records, "count": options.draw}
    return plan_table(declared, attributes, options.epsilon, model=options.model, **wanted)


def _print_plan(asked: MarginalTabulation) -> None:
    """The measured views and the widest cells: the report has all."""
    print(f"{asked}\n")
    rows = sorted(accuracy(asked), key=lambda row: -(row.half_width or 0.0))
    print("Expected half-width of each cell, at 95 %:")
    for line in aligned((row.name, f"± {row.half_width:.4g}") for row in rows[:_SHOWN]):
        print(f"  {line}")
    if len(rows) > _SHOWN:
        print(f"  and {len(rows) - _SHOWN} marginals with smaller half-widths")
    print(flush=True)


def _make(marginals: MarginalTables, options: argparse.Namespace, report_file: Path) -> None:
    """The model, the rows, the report and the page."""
    how = {"count": options.draw, "copies": options.weighted_rows, "seed": options.seed}
    made = fit_table(marginals, options.model, **how)
    rows, report = made.rows, made.report
    write_answers(rows, options.out)
    try:
        write_atomically(report_file, (json.dumps(report, indent=1) + "\n").encode())
        if options.page is not None:
            write_atomically(options.page, rows_page(marginals, made.model, rows, report).encode())
    except CheckpointError as error:
        raise OSError(str(error)) from None
    total = report["total"]
    print(f"Records: {total['estimate']:,.0f} ({total['low']:,.0f} to {total['high']:,.0f} at 95 %)")
    weight = "" if rows.weights is None else f", of total weight {rows.weights.sum():,.0f}"
    print(f"Drew {len(rows):,} synthetic rows{weight}; none represents a person")
    worst = max(report["marginals"], key=lambda each: each["rows_distance"] / max(each["noise"], 1e-9))
    print(
        f"Rows differ from the released counts by at most {worst['rows_distance']:.3g} per cell (root mean square, "
        f"{worst['marginal']}); the noise there is {worst['noise']:.3g}"
    )
    places = [options.out, report_file, *([options.page] if options.page else [])]
    print("".join(f"{note}\n" for note in report["notes"] if options.from_marginals), end="")  # else printed before
    print(f"Wrote {', '.join(map(str, places))}", flush=True)
