"""`wpinq schema`: the declaration of a source, from the columns of a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wpinq.api.schema import schema
from wpinq.data.source_files import table_file


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("schema", help="print a source declaration for a csv or parquet file, without values")
    made.add_argument("file", type=Path, metavar="FILE")
    made.add_argument("--name", metavar="NAME", help="the name of the source (default: the file name)")
    made.add_argument("--delimiter", metavar="CHARACTER", help="the field separator of a csv file of any name")
    sample = "a separate csv or parquet file of public or made rows, from which types are taken"
    made.add_argument("--sample", type=Path, metavar="FILE", help=sample)
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    print(schema(table_file(options.file, options.delimiter) or options.file, options.name, sample=options.sample))
