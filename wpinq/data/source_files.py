"""Source files: path, edge-list options and columns of a command line or configuration."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from wpinq.data import CsvFile, EdgeList
from wpinq.data.files import format_of, has_columns, unread_format
from wpinq.errors import UsageError

#: What the words of an edge list stand for.
EDGE_OPTIONS: dict[str, dict[str, Any]] = {
    "directed": {"directed": True},
    "undirected": {"directed": False},
    **{f"{do}-{what}": {what: do} for what in ("loops", "duplicates") for do in ("keep", "drop", "refuse")},
}


_Told = str | None


def as_option(what: str, name: str, value: str = "") -> str:
    """How what is said of a source is spelled on the command line."""
    return f"--{what.replace('_', '-')} {name}" + (f"={value}" if value else "")


def as_key(what: str, name: str, value: str = "") -> str:
    """The same in a configuration."""
    return f"{what} of [sources.{name}]" if not value else f'{what} = "{value}" in [sources.{name}]'


def table_file(path: Path, delimiter: str | None) -> Path | CsvFile | None:
    """A file that names its columns, csv by a delimiter if one is given; None of another."""
    if delimiter is not None:
        return CsvFile(path, {r"\t": "\t"}.get(delimiter, delimiter))  # as messages and shells write a tab
    return path if has_columns(path) else None


def source_data(
    name: str, file: str, options: _Told, columns: _Told, delimiter: _Told, spelled: Callable[..., str] = as_option
) -> Path | CsvFile | EdgeList:
    """What a session takes as the data of a source.

    Parameters
    ----------
    name : str
        Of the source, for messages.
    file : str
        The path of a csv or parquet file, or of an edge list.
    options : str, optional
        Of an edge list, with commas between: `undirected,drop-loops,comments=%`.
    columns : str, optional
        The two columns that hold an edge, with a comma between: names, or of text without names places.
    delimiter : str, optional
        The character between the fields of a csv file, of whatever name; a comma, and of .tsv a tab, unless given.
    spelled : callable
        How messages say what to write: `as_option` or `as_key`.

    Raises
    ------
    UsageError
        When there is no such file, or the words do not say how to read it.
    """
    path = Path(file)
    either = f"{spelled('edge_list', name, 'directed')} or {spelled('edge_list', name, 'undirected')}"
    if path.is_dir() or not path.exists():
        wrong = f"{path} is a folder, not a file" if path.is_dir() else f"there is no file {path}: check the path"
        raise UsageError(f"{spelled('source', name)}: {wrong}")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{spelled('source', name)}: {path} may not be read: change its mode, or run as its owner")
    table = table_file(path, delimiter)
    if columns is not None and options is None:
        raise UsageError(f"{spelled('columns', name)} says the columns of an edge: give {either} as well")
    if options is None:
        if table:
            return table
        no_edges = f"{path} is no csv or parquet file by its name; for an edge list, give its direction: {either}"
        raise UsageError(unread_format(path) or no_edges)
    told = spelled("edge_list", name)
    chosen: dict[str, Any] = {}
    for option in map(str.strip, options.split(",")):
        given = {"comments": option[9:]} if option.startswith("comments=") else EDGE_OPTIONS.get(option)
        if given is None:
            raise UsageError(f"{told} has no option {option!r}; it has {', '.join(EDGE_OPTIONS)}, comments=SIGNS")
        if chosen.keys() & given.keys():
            raise UsageError(f"{told}: {option!r} contradicts or repeats another option; keep one")
        chosen |= given
    if "directed" not in chosen:
        raise UsageError(f"{told} needs directed or undirected")
    ends = None if columns is None else edge_columns(columns, table or path, spelled("columns", name))
    return EdgeList(table or path, **chosen, columns=ends)


def tables_data(
    name: str,
    tables: Iterable[str],
    files: Mapping[str, str],
    delimiters: Mapping[str, str],
    spelled: Callable[..., str],
    of_edges: Iterable[str | None],
) -> dict[str, Path | CsvFile | EdgeList]:
    """The data of a source of people: a file for each table, by `NAME.TABLE`."""
    if any(option is not None for option in of_edges):
        raise UsageError(f"{name} has several tables, and none is an edge list: leave out its edge list and columns")
    wanted = {table: f"{name}.{table}" for table in tables}
    if missing := [each for each in wanted.values() if each not in files]:
        raise UsageError(f"{name} has several tables: give {', '.join(spelled('source', m, 'FILE') for m in missing)}")
    return {
        table: source_data(each, files[each], None, None, delimiters.get(each), spelled)
        for table, each in wanted.items()
    }


def edge_columns(given: str, file: Path | CsvFile, option: str) -> tuple[str, str] | tuple[int, int]:
    """The two columns of an edge, given with a comma between.

    Names with commas stand in double quotes. Of text without names they are places.
    """
    one, other, *more = [*next(csv.reader([given]), []), "", ""]
    if not one or not other or len(more) != 2 or one == other:
        raise UsageError(f"{option} takes the names of two columns, as origin,destination (in text 1,2); not {given!r}")
    named = isinstance(file, CsvFile) or format_of(file) in (".csv", ".parquet")
    if not named and one.isdecimal() and other.isdecimal():
        return int(one), int(other)
    if not has_columns(file):
        raise UsageError(f"{option} names the columns of a csv or parquet file, or a tsv with names; in text say 1,2")
    return one, other
