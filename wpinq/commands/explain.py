"""`wpinq explain`: plans, bills and expected accuracy of a text program, without data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wpinq.commands.arguments import add_engine, add_parameters, load_program
from wpinq.display.explanation import explain_plan
from wpinq.measure.bill import Bill


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("explain", help="show plans, bills and expected accuracy; no data")
    made.add_argument("program", type=Path, metavar="PROGRAM.wpq")
    add_parameters(made)
    add_engine(made)
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    program = load_program(options)
    for name, measurement in program.measurements.items():
        print(f"== {name}: {measurement.description}\n")
        sink = measurement.sink
        print(explain_plan(measurement.plan, measurement.epsilon, measurement.reading, options.engine, sink))
        print()
    for name, table in program.tables.items():
        print(f"== {name}: {table}\n")
    if program.releases:
        print(f"The bill of all, released together:\n{Bill(program.releases)}")
        return
    for name, query in program.queries.items():
        print(f"== {name}\n\n{explain_plan(query.plan, engine=options.engine)}\n")
