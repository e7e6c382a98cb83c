"""Files: parquet and csv as DuckDB reads them, and every failure one clear refusal.

DuckDB is never told the path of a user's: it reads links of our own making, so that no path means more than its file.
"""

from __future__ import annotations

import csv
import fnmatch
import glob
import gzip
import io
import itertools
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

from wpinq.columns.records import load
from wpinq.columns.unlinked_file import quoted
from wpinq.data.casts import of_column, of_text, readable_as_text
from wpinq.data.layout import Layout
from wpinq.data.rejection import Tally, reject
from wpinq.data.relation import STAGED, Relation
from wpinq.errors import SourceRejected
from wpinq.expr.types import DURATION, Type

# The parquet files of a path, a folder or a pattern: all of them, or a refusal; and the identity of files.
#
# `Path.rglob` and `glob.glob` pass over folders that cannot be listed: a part of a table would be left out silently.
# Nor do both follow links to folders. Here nothing is passed over, and links are followed.

_ENDING = ".parquet"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # Path makes one of two slashes


def missing_file(path: Path, words: str) -> SourceRejected:
    """The refusal of a path that leads to no file, in these words unless it is an address."""
    if _ADDRESS.match(str(path)):
        words = "this is an address, not the path of a file: fetch it, and offer the path"
    return SourceRejected(words)


def parquet_files(path: Path) -> list[Path] | None:
    """The parquet files of a path, a folder or a pattern, by name; None where it means none.

    In a folder, what begins with a dot or an underscore is left aside, as those who write such folders do. Links to
    folders are followed. A file that several names lead to is one file, whose rows count once.

    Raises
    ------
    SourceRejected
        When there is none, or it cannot be known which: a folder inside cannot be read, or a link leads nowhere.
    """
    is_folder = os.path.isdir(path)
    if not is_folder and path.suffix.lower() != _ENDING:
        return None
    is_pattern = not is_folder and glob.has_magic(str(path)) and not os.path.exists(path)
    if not is_folder and not is_pattern:
        return [path]
    try:
        return _each_once(_matching(path) if is_pattern else _inside(path, path))
    except (FileNotFoundError, NotADirectoryError):
        refusal = f"a link inside {path} leads nowhere: mend it, or remove it"
    except (OSError, ValueError):  # the latter of a name with a zero character
        refusal = (
            f"a folder inside {path} cannot be read: check its rights and those of all folders in it, or "
            "offer a path that means only what can be read"
        )
    raise SourceRejected(refusal)  # out here, where no error is in hand whose words name the folder


def _inside(folder: Path, offered: Path) -> list[Path]:
    """The parquet files in a folder, at any depth."""
    found = [
        Path(entry.path)
        for each in _folders(folder, "._")
        for entry in _entries(each, "._")
        if entry.name.lower().endswith(_ENDING) and not _is_folder(entry.path) and entry.is_file()
    ]
    if not found:
        which = f"{folder} is a directory" if folder == offered else f"{offered} matches a directory"
        raise SourceRejected(f"{which} without .parquet files: name one file")
    return found


def _matching(pattern: Path) -> list[Path]:
    """The files of a pattern, as `glob.glob` would find them, and those inside its folders."""
    places = [Path(pattern.anchor)]
    for part in pattern.relative_to(pattern.anchor).parts:
        found = [inside for place in places if _is_folder(place) for inside in _next(place, part)]
        places = list(dict.fromkeys(found))  # several ** lead to one place in many ways
    if not places:
        raise missing_file(pattern, f"there is no file that matches {pattern}: check the pattern")
    files: list[Path] = []
    for place in places:
        files += _inside(place, pattern) if _is_folder(place) else [place]
    return files


def _next(folder: Path, part: str) -> Iterable[Path]:
    """What one part of a pattern means in a folder."""
    if part == "**":
        return _folders(folder, ".")
    if glob.has_magic(part):
        aside = "" if part.startswith(".") else "."
        return [Path(entry.path) for entry in _entries(folder, aside) if fnmatch.fnmatch(entry.name, part)]
    try:
        os.lstat(folder / part)
    except FileNotFoundError:
        return []
    return [folder / part]


def _folders(top: Path, aside: str) -> Iterator[Path]:
    """A folder and those in it, at any depth, each once.

    Links to one folder count once, so that no circle is endless.
    """
    waiting = [top]
    seen: set[tuple[int, int]] = set()
    while waiting:
        folder = waiting.pop()
        identity = _identity(folder)
        if identity in seen:
            continue
        seen.add(identity)
        yield folder
        waiting += [Path(entry.path) for entry in reversed(_entries(folder, aside)) if _is_folder(entry.path)]


def _entries(folder: Path, aside: str) -> list[os.DirEntry[str]]:
    """What stands in a folder, by name, but for names that begin with one of some characters."""
    with os.scandir(folder) as entries:
        return sorted((entry for entry in entries if entry.name[0] not in aside), key=lambda entry: entry.name)


def _is_folder(path: str | Path) -> bool:
    """Whether a path is a folder, or a link to one; an error where a link leads nowhere."""
    return stat.S_ISDIR(os.stat(path).st_mode)


def _each_once(files: Iterable[Path]) -> list[Path]:
    """The files by name, under the first of their names.

    Rows that are read twice would weigh twice.
    """
    by_identity: dict[tuple[int, int], Path] = {}
    for file in sorted(files):
        by_identity.setdefault(_identity(file), file)
    return list(by_identity.values())


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def identities(path: str | os.PathLike[str]) -> frozenset[object]:
    """The identity of each file that a path, folder or pattern means.

    It is its device and inode, never its content.

    A file that is on no disk of this machine has its name instead.
    """
    named = os.fspath(path)
    if named.startswith("file:/"):  # as Spark may be told of a file of this machine; what follows is its name as it is
        path = named.removeprefix("file:")
        path = path[path.index("/", 2) :] if path.startswith("//") and "/" in path[2:] else path
    elif "://" in named:
        return frozenset([named])
    files: list[Path] = []
    with suppress(SourceRejected, OSError, ValueError):
        files = parquet_files(Path(path)) or []
    found: set[object] = set()
    for file in files or [Path(path)]:
        try:
            found.add(_identity(file))
        except (OSError, ValueError):
            found.add(os.path.abspath(file))
    return frozenset(found)


_PIECE = 2**20
ZEROS = "holds a zero character (NUL), which text has not: convert it to UTF-8 if it is UTF-16, or remove the character"
NO_TEXT = "is not UTF-8 text: convert it, or check that it is the right file"
"""What is said of files of text, with the path before it."""

SMALL = 2**26
"""Bytes of files that are held in memory for sure."""
_ROWS = 50_000

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""What stands between the columns of a file of text whose first line names them, by the ending of the file's name."""

_DIALECT = (
    "auto_detect=false, header=false, skip=1, quote='\"', escape='\"', comment='', nullstr='\\x01', "
    "strict_mode=true, null_padding=false, ignore_errors=false"
)


def file_relation(connection: Any, path: Path, type_: Type, stack: ExitStack) -> Relation | None:
    """The relation of the rows of a csv or tsv file or of parquet files; None of another format."""
    files = parquet_files(path)
    if files is not None:
        return _parquet_relation(connection, path, files, type_, stack)
    return _csv_relation(connection, path, type_, stack) if format_of(path) in DELIMITERS else None


def format_of(path: Path) -> str:
    """The ending that says the format of a file, `.gz` aside."""
    return path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def open_packed(path: Path, stack: ExitStack, again: bool = False) -> tuple[BinaryIO, bool]:
    """A file open for reading, also more than once, and whether it is gzip."""
    try:
        file = stack.enter_context(path.open("rb"))
        packed = file.peek(2).startswith(b"\x1f\x8b")
        if again:
            file.seek(0)  # which a pipe cannot
    except FileNotFoundError:
        raise missing_file(path, f"there is no file {path}: check the path") from None
    except IsADirectoryError:
        raise SourceRejected(f"{path} is a directory: name one file") from None
    except (OSError, ValueError):
        raise SourceRejected(f"{path} cannot be read: check the path and its rights") from None
    if not packed and path.suffix.lower() == ".gz":
        raise SourceRejected(f"{path} is not a gzip file: fetch it again, or name it for what it is")
    return file, packed


def open_file(path: Path, stack: ExitStack) -> Any:
    """A file open for reading, decompressed into one without a name where it is gzip."""
    file, packed = open_packed(path, stack, again=True)
    if not packed:
        return file
    plain: Any = tempfile.TemporaryFile()  # noqa: SIM115 - the stack closes it
    stack.enter_context(plain)
    try:
        with gzip.open(file) as unpacked:
            while piece := unpacked.read(_PIECE):
                plain.write(piece)
    except (EOFError, OSError, zlib.error):
        raise SourceRejected(f"{path} is a damaged or truncated gzip file: fetch it again") from None
    plain.seek(0)
    return plain


# --- parquet ----------------------------------------------------------------------------------------------------------

_UNSOUND = "is not a sound parquet file, or there is too little memory or disk to hold it: write it again, or make room"


def _parquet_relation(connection: Any, path: Path, files: Sequence[Path], type_: Type, stack: ExitStack) -> Relation:
    """The rows of parquet files of one schema; columns outside of the type are not read."""
    import duckdb

    for file in files:
        with ExitStack() as briefly:
            open_file(file, briefly)
    listed = f"[{', '.join(quoted(link) for link in links(files, stack))}]"
    schemas: list[list[tuple[Any, ...]]] = []
    with suppress(duckdb.Error):
        schemas = _schemas(connection, listed)
    if not schemas:
        raise SourceRejected(f"{path} is not a sound parquet file: write it again")
    columns = _columns(schemas[0])
    if any(_columns(schema) != columns for schema in schemas):
        raise SourceRejected(
            f"the files of {path} differ in the names, the order or the types of their columns: offer files of "
            "one schema"
        )
    layout, names = Layout.of(type_), [name for name, _ in columns]
    _check_folder_names([name for name in layout.names if name is not None and name not in names], files)
    places = layout.pick(names, str(path))
    aliases = ", ".join(f"g{i}" for i in range(len(names)))
    source = f"read_parquet({listed}, hive_partitioning=false, union_by_name=false) AS t({aliases})"
    types = connection.sql(f"SELECT * FROM {source} LIMIT 0").types
    fields = [of_column(f"g{i}", types[i], kind) for i, kind in zip(places, layout.types, strict=True)]
    small = sum(file.stat().st_size for file in files) <= SMALL
    return Relation.of_fields(str(path), source, fields, layout, small=small, unreadable=_UNSOUND)


def links(files: Sequence[Path], stack: ExitStack) -> list[str]:
    """Names for files, for a while, that mean no more than these."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="wpinq-"))
    links = [os.path.join(folder, str(i)) for i in range(len(files))]
    for link, file in zip(links, files, strict=True):
        os.symlink(file.absolute(), link)
    return links


def _schemas(connection: Any, listed: str) -> list[list[tuple[Any, ...]]]:
    """The elements of each file's schema, from the root down: name, number of children, type."""
    elements = "name, num_children, duckdb_type"
    rows = connection.execute(f"SELECT file_name, {elements} FROM parquet_schema({listed})").fetchall()
    return [[row[1:] for row in group] for _, group in itertools.groupby(rows, itemgetter(0))]


def _columns(schema: Sequence[tuple[Any, ...]]) -> list[tuple[str, str]]:
    """The names and types of the columns, which may hold others.

    The types are what DuckDB makes of them, with all that they hold. Nothing else is told: each library has a name for
    the root and for the items of lists, and its notes from older formats.
    """
    columns, at = [], 1
    while at < len(schema):
        columns.append((schema[at][0], schema[at][2]))
        waiting = 1
        while waiting:
            waiting += (schema[at][1] or 0) - 1
            at += 1
    return columns


def _check_folder_names(missing: Sequence[str], files: Sequence[Path]) -> None:
    """Refuse fields that are only in the names of folders.

    The rest of these names may be data, and is not quoted here.
    """
    folders = {part.partition("=")[0] for file in files for part in file.parent.parts if "=" in part}
    named = [name for name in missing if name in folders]
    if named:
        raise SourceRejected(
            f"no column of the files is named {', '.join(map(repr, named))}, only folders are "
            f"({', '.join(f'{name}=...' for name in named)}), and what stands in names of folders is not read: offer a "
            "relation that reads it, as duckdb.sql(\"SELECT * FROM read_parquet('.../**/*.parquet', "
            'hive_partitioning=true)")'
        )


# --- csv --------------------------------------------------------------------------------------------------------------


def _csv_relation(connection: Any, path: Path, type_: Type, stack: ExitStack) -> Relation:
    """The rows of a csv or tsv file whose first line names the columns.

    Text is read by the declared type: `true` and `false` in any case, decimal digits for numbers. An empty field
    is null where the type allows null, else refused. Lines without any character are skipped and not counted.

    What DuckDB does not read, or would read otherwise, Python's `csv` reads: it is slower, and says where.
    """
    layout = Layout.of(type_)
    for kind in layout.types:
        if not readable_as_text(kind):
            instead = (
                "; or declare int and write microseconds, of which F.cast(x, datetime.timedelta) makes durations"
                if kind == DURATION
                else ""
            )
            raise SourceRejected(f"a csv file cannot hold a field of type {kind}: offer rows or parquet{instead}")
    file = open_file(path, stack)
    plain = _is_plain(file)
    header, names = next(_csv_rows(file, path), []), str(path)
    places = layout.pick(header, names)
    fields = [of_text(f"g{place}", kind) for place, kind in zip(places, layout.types, strict=True)]
    small = os.fstat(file.fileno()).st_size <= SMALL

    def in_python() -> Relation:
        ragged = "not as many fields as the first line names"
        rows = itertools.islice(_csv_rows(file, path), 1, None)
        whole = ((n, row if len(row) == len(header) else ragged) for n, row in enumerate(rows))
        found = stage_text(connection, whole, len(header))
        return Relation.of_fields(names, STAGED, fields, layout, small=small, number="n", found=found)

    if not plain or any("\n" in name or "\r" in name for name in header):
        return in_python()
    columns = ", ".join(f"'g{i}': 'VARCHAR'" for i in range(len(header)))
    how = f"columns={{{columns}}}, delim='{DELIMITERS[format_of(path)]}', {_DIALECT}"
    source = f"read_csv('/dev/fd/{file.fileno()}', {how})"
    return Relation.of_fields(names, source, fields, layout, small=small, anew=in_python)


def _is_plain(file: BinaryIO) -> bool:
    """Whether DuckDB reads quotes in a file as csv has them: none of them is next to a blank."""
    before = b""
    file.seek(0)
    while piece := file.read(_PIECE):
        piece = before + piece
        if b'" ' in piece or b' "' in piece:
            return False
        before = piece[-1:]
    return True


def _csv_rows(file: BinaryIO, path: Path) -> Iterator[list[str]]:
    """The rows of a csv file, from the header on.

    SourceRejected where it is none, with the number of rows before.
    """
    file.seek(0)
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    number, is_text, fault = -1, True, ""
    try:
        for row in csv.reader(text, strict=True, delimiter=DELIMITERS[format_of(path)]):
            if any("\0" in item for item in row):
                fault = "a zero character (NUL), which text has not"
                break
            if row or number < 0:
                yield row
                number += 1
    except csv.Error:
        fault = "quotes that csv does not allow, or an overlong field"
    except UnicodeDecodeError:  # holds what it could not decode, and ends here
        is_text = False
    finally:
        text.detach()
    if not is_text:
        raise SourceRejected(f"{path} {NO_TEXT}")
    if "NUL" in fault and number < 0:
        raise SourceRejected(f"{path} {ZEROS}")
    if fault:
        reject(str(path), {max(number, 0): fault})


def stage_text(connection: Any, rows: Iterable[tuple[int, Sequence[str] | str]], width: int) -> Tally:
    """Put rows of text with their positions `n` into the staging table.

    A text in place of a row is the reason why it is unfit.
    """
    import numpy as np

    found, names, none = Tally(), [f"g{i}" for i in range(width)], [None] * width  # null is neither empty nor text
    connection.execute(f"CREATE TEMP TABLE {STAGED} ({', '.join(f'{name} VARCHAR' for name in names)}, n BIGINT)")
    rows = iter(rows)
    while piece := list(itertools.islice(rows, _ROWS)):
        found.add_faults({n: row for n, row in piece if isinstance(row, str)})
        columns = zip(*(none if isinstance(row, str) else row for _, row in piece), strict=True)
        arrays = {name: np.array(column, dtype=np.object_) for name, column in zip(names, columns, strict=True)}
        load(connection, STAGED, arrays | {"n": np.array([n for n, _ in piece], dtype=np.int64)})
    return found
