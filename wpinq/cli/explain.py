"""`wpinq explain` and `wpinq schema`: programs explained and files declared, without data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wpinq.api.schema import schema
from wpinq.cli.arguments import add_engine, add_parameters, load_program
from wpinq.data.source_files import table_file
from wpinq.display.explanation import explain_plan
from wpinq.measure.accuracy import accuracy
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import Measurement


def add_parser(commands: Any) -> None:
    """Add the commands to those of the command line."""
    made = commands.add_parser("explain", help="show plans, bills and expected accuracy, without data")
    made.add_argument("program", type=Path, metavar="PROGRAM.wpq")
    add_parameters(made)
    add_engine(made)
    told = "add the expected accuracy of each release; the options below do so too"
    made.add_argument("--accuracy", action="store_true", help=told)
    share = "the confidence of intervals, between 0 and 1 (default 0.95)"
    made.add_argument("--confidence", type=float, default=0.95, metavar="SHARE", help=share)
    wanted = "show the epsilon that gives this half-width"
    made.add_argument("--half-width", type=float, metavar="NUMBER", help=wanted)
    made.add_argument("--count", type=float, metavar="NUMBER", help="an assumed number of records for averages")
    width = "the assumed most common neighbours of two vertices; for stars, the highest degree"
    made.add_argument("--width", type=float, metavar="NUMBER", help=width)
    made.set_defaults(command=run)
    described = commands.add_parser("schema", help="print a declaration for a csv or parquet file, without values")
    described.add_argument("file", type=Path, metavar="FILE")
    described.add_argument("--name", metavar="NAME", help="the name of the source (default: the file name)")
    described.add_argument("--delimiter", metavar="CHARACTER", help="the field separator of a csv file of any name")
    sample = "a separate csv or parquet file of public or made rows, from which types are taken"
    described.add_argument("--sample", type=Path, metavar="FILE", help=sample)
    described.set_defaults(command=_print_schema)


def run(options: argparse.Namespace) -> None:
    """Explain a program."""
    program = load_program(options)
    for name, asked in program.releases.items():
        plan = f"{asked.description}\n\n{asked.explain(options.engine)}" if isinstance(asked, Measurement) else asked
        print(f"== {name}: {plan}\n")
    if program.releases:
        print(f"The bill of all, released together:\n{Bill(program.releases)}")
        stated = {"half_width": options.half_width, "count": options.count, "width": options.width}
        if options.accuracy or set(stated.values()) != {None}:
            table = str(accuracy(program.releases, options.confidence, **stated)).replace("width=…", "--width")
            print(f"\nExpected accuracy:\n{table.replace('count=…', '--count')}")
        return
    for name, query in program.queries.items():
        print(f"== {name}\n\n{explain_plan(query.plan, engine=options.engine)}\n")


def _print_schema(options: argparse.Namespace) -> None:
    print(schema(table_file(options.file, options.delimiter) or options.file, options.name, sample=options.sample))
