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
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO, TypeVar

from wpinq.columns.records import load
from wpinq.columns.unlinked_file import quoted
from wpinq.data.casts import of_column, of_text, readable_as_text
from wpinq.data.kinds import durations, with_durations
from wpinq.data.layout import Layout
from wpinq.data.relation import STAGED, Relation, Tally, computed, reject
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.types import Type

# The parquet files of a path, a folder or a pattern: all of them, or a refusal; and the identity of files.
#
# `Path.rglob` and `glob.glob` pass over folders that cannot be listed: a part of a table would be left out silently.
# Nor do both follow links to folders. Here nothing is passed over, and links are followed.

_ENDING = ".parquet"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # Path makes one of two slashes
_IS_ADDRESS = "this is an address, not the path of a file: fetch it, and offer the path"


def missing_file(path: Path, words: str) -> SourceRejected:
    """The refusal of a path that leads to no file, in these words unless it is an address."""
    return SourceRejected(_IS_ADDRESS) if _ADDRESS.match(str(path)) else SourceRejected(words, missing=True)


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


_Folder = TypeVar("_Folder", bound=PurePath)

#: For each format of tables with a log: where the log is in the folder of a table, and what reads the table.
_LOGS = (
    ("_delta_log", "Delta", "deltalake.DeltaTable(path).to_pyarrow_dataset()"),
    ("metadata/*.metadata.json", "Iceberg", "the scan of pyiceberg's table, catalog.load_table(name).scan()"),
    (".hoodie", "Hudi", "the frame of Hudi's own reader"),
)


def check_no_log(files: Iterable[Path], offered: Path | str) -> None:
    """Refuse parquet files of a table with a log, which alone says what files and rows count."""
    folders = {each for f in files for each in (*f.absolute().parents, *Path(os.path.realpath(f)).parents)}
    _check_no_log(folders, offered, lambda folder, log: any(folder.glob(log)))


def check_no_log_of_dataset(system: Any, files: Iterable[str]) -> None:
    """The same of pyarrow's dataset, in any file system."""
    if type(system).__name__ == "LocalFileSystem":
        check_no_log(map(Path, files), "the dataset")
        return

    def has(folder: PurePosixPath, log: str) -> bool:
        from pyarrow.fs import FileSelector, FileType

        place, _, pattern = f"{folder}/{log}".rpartition("/")
        if glob.has_magic(pattern):
            listed = system.get_file_info(FileSelector(place, allow_not_found=True))
            return any(fnmatch.fnmatch(entry.base_name, pattern) for entry in listed)
        return bool(system.get_file_info(f"{place}/{pattern}").type != FileType.NotFound)

    # the reader of a Delta table is a file system of its own, in which the table is the root and its log is known
    folders = {each for file in files for each in PurePosixPath(file).parents if each.name}
    _check_no_log(folders, "the dataset", has)


def _check_no_log(folders: Iterable[_Folder], offered: Path | str, has: Callable[[_Folder, str], bool]) -> None:
    for folder, (log, name, reader) in itertools.product(sorted(folders), _LOGS):
        if computed(partial(has, folder, log), f"the folders of {offered} cannot be listed: check the rights"):
            raise SourceRejected(
                f"{offered} is part of a table of {name}, whose log lists the valid files and rows: "
                f"without it, deleted rows come back. Offer {reader}"
            )


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
    if named.rstrip("/").endswith(_ENDING) and "\0" not in named:
        check_no_log([Path(path, "any")], Path(path))  # also of what Spark reads
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


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A csv file of any name; its first line has the column names.

    Parameters
    ----------
    path : path
        Plain or gzip; a pipe is read to its end once.
    delimiter : str
        The character between two fields, such as ";" or a tab.

    Raises
    ------
    PlanError
        When the delimiter is not one character, or one that ends lines or encloses fields.
    """

    path: str | os.PathLike[str]
    delimiter: str = ","

    def __post_init__(self) -> None:
        if not isinstance(self.delimiter, str) or len(self.delimiter) != 1 or self.delimiter in '"\r\n\0':
            raise PlanError('the delimiter of a csv file is one character between fields, as delimiter=";"')

    def __fspath__(self) -> str:
        return os.fspath(self.path)


#: Bytes that are read at a time, and those of the longest line of column names.
_PIECE = 2**20
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
#: What is said of files of text, with the path before it.
ZEROS = "holds a zero character (NUL), which text has not: convert it to UTF-8 if it is UTF-16, or remove the character"
NO_TEXT = "is not UTF-8 text: convert it, or check that it is the right file"

#: Bytes of files that are held in memory for sure.
SMALL = 2**26
_ROWS = 50_000


def text_columns(file: Any, width: int, delimiter: str, skip: int, quote: str) -> str:
    """The SQL that reads lines of an open file as columns `g0`, `g1`, … of text.

    A field of U+0001 alone becomes null, which no field of a file is: what reads it otherwise takes over.
    """
    columns = ", ".join(f"'g{i}': 'VARCHAR'" for i in range(width))
    return (
        f"read_csv('/dev/fd/{file.fileno()}', columns={{{columns}}}, delim={quoted(delimiter)}, skip={skip}, "
        f"quote='{quote}', escape='{quote}', auto_detect=false, header=false, comment='', nullstr='\x01', "
        "strict_mode=true, null_padding=false, ignore_errors=false)"
    )


def file_relation(connection: Any, data: str | os.PathLike[str], type_: Type, stack: ExitStack) -> Relation | None:
    """The relation of the rows of a csv file or of parquet files; None of another format."""
    path, fields = Path(data), Layout.of(type_).names
    files = None if isinstance(data, CsvFile) else parquet_files(path)
    if files is not None:
        return _parquet_relation(connection, path, files, type_, stack)
    file = as_csv(data, fields)
    if file and file is not data and file.delimiter == "\t" and {*fields}.isdisjoint(csv_names(file)):
        raise SourceRejected(
            f"the first line of {path} names no field: if it is an edge, offer EdgeList(path, columns=(1, 2)); if "
            "it names columns, name them like the fields; for fields without names, offer "
            "wpinq.data.CsvFile(path, '\\t')"
        )
    return None if file is None else _csv_relation(connection, file, type_, stack)


def has_columns(data: str | os.PathLike[str], fields: Sequence[object] = (None,)) -> bool:
    """Whether a file names its columns, by its own name, its first line, or what is said of it."""
    return as_csv(data, fields) is not None or parquet_files(Path(data)) is not None


def as_csv(data: str | os.PathLike[str], fields: Sequence[object] = (None,)) -> CsvFile | None:
    """A file as the csv file that it is said to be, or is by its name; None of another.

    One of `.tsv` is csv where its first line has the names of the fields; or has tabs, no sign of a comment, and no two
    numbers in front. Else it is an edge list.
    """
    if isinstance(data, CsvFile):
        return data
    sign = {".csv": ",", ".tsv": "\t"}.get(format_of(Path(data)), "")
    if sign == "\t":  # of a pipe, the first line would be lost
        names = csv_names(CsvFile(data, sign)) if os.path.isfile(data) else []
        edges = len(names) < 2 or names[0].startswith(("#", "%")) or all(map(NUMBER.fullmatch, names[:2]))
        if edges and not {*fields} <= {*names}:
            return None
    return CsvFile(data, sign) if sign else None


def csv_names(file: CsvFile) -> list[str]:
    """The names of the columns of a csv file, plain or gzip, from its first line, if it has any."""
    with ExitStack() as stack, suppress(EOFError, OSError, zlib.error, UnicodeDecodeError, csv.Error):
        given, packed = open_packed(Path(file), stack, again=True)
        lines = _first_lines(gzip.GzipFile(fileobj=given) if packed else given)
        return next(filter(_is_filled, csv.reader(lines, delimiter=file.delimiter, strict=True)), [])
    return []


def _is_filled(row: Sequence[str]) -> bool:
    """Whether a row has more than blanks: it names columns where it is the first such."""
    return any(map(str.strip, row))


def lines_of(file: Any) -> Iterator[bytes]:
    """The lines of an open file from its beginning, whatever ends them."""
    file.seek(0)
    return (line for piece in file for line in piece.splitlines(keepends=True))


def _first_lines(file: Any) -> Iterator[str]:
    """The lines of a file, lazily.

    More than one is read where a name in quotes holds the end of a line.
    """
    encoding = "utf-8-sig"
    while piece := file.readline(_PIECE):
        for line in piece.splitlines(keepends=True):
            if len(piece) == _PIECE and not line.endswith((b"\r", b"\n")):
                raise csv.Error  # it was cut
            yield line.decode(encoding)
            encoding = "utf-8"


def check_delimiter(path: Path, names: Sequence[str]) -> None:
    """Refuse the names of columns that another delimiter would tell apart."""
    if len(names) == 1 and (sign := next((sign for sign in ";\t|" if sign in names[0]), "")):
        raise SourceRejected(f"{path} has {sign!r} between fields: offer wpinq.data.CsvFile(path, delimiter={sign!r})")


def format_of(path: Path) -> str:
    """The ending that says the format of a file, `.gz` aside."""
    return path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


#: Endings of files that are not read, the formats that they say, and what gives their rows.
_UNREAD = (
    (".json .jsonl .ndjson", "JSON", "duckdb.read_json(path)"),
    (".xlsx .xls .ods", "a spreadsheet", "pandas.read_excel(path)"),
    (".db .sqlite .sqlite3", "a database of SQLite", 'sqlite3.connect(path).execute("SELECT …")'),
    (".feather .arrow .ipc", "Arrow", "pyarrow.feather.read_table(path)"),
    (".bz2 .xz .zip .zst", "another compression than gzip", "what is in it"),
)


def unread_format(path: Path) -> str:
    """The refusal of a file by its ending, with the mend; empty where the ending says no format."""
    if _ADDRESS.match(str(path)):
        return _IS_ADDRESS
    found = [each for each in _UNREAD if format_of(path) in each[0].split()]
    reading = "the ending of the path says {}, which is not read: offer {}, or make it csv or parquet"
    return "".join(reading.format(name, rows) for _, name, rows in found)


def open_packed(path: Path, stack: ExitStack, again: bool = False) -> tuple[BinaryIO, bool]:
    """A file open for reading, where asked for also more than once, and whether it is gzip."""
    if again and os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise SourceRejected(f"{path} is a pipe, which is read once and from its beginning: write it to a file")
    try:
        file = stack.enter_context(path.open("rb"))
        packed = file.peek(2).startswith(b"\x1f\x8b")
    except FileNotFoundError:
        raise missing_file(path, f"there is no file {path}: check the path") from None
    except IsADirectoryError:
        raise SourceRejected(f"{path} is a directory: name one file") from None
    except (OSError, ValueError):
        raise SourceRejected(f"{path} cannot be read: check the path and its rights") from None
    if not packed and path.suffix.lower() == ".gz":
        raise SourceRejected(f"{path} is not a gzip file: fetch it again, or name it for what it is")
    return file, packed


def open_file(path: Path, stack: ExitStack, again: bool = False) -> Any:
    """A file open for reading, also more than once, and where asked for also by others.

    A gzip file is decompressed into one without a name, and a pipe read into one.

    A pipe that gives nothing may have been read before.
    """
    file, packed = open_packed(path, stack, again)
    if not packed and file.seekable():
        return file
    plain: Any = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    try:
        shutil.copyfileobj(gzip.GzipFile(fileobj=file) if packed else file, plain, _PIECE)
    except (EOFError, OSError, zlib.error):
        raise SourceRejected(f"{path} is a damaged or truncated gzip file, or pipe: fetch it again") from None
    if not packed and plain.tell() == 0:
        raise SourceRejected(f"{path} is a pipe that gives nothing, or was read before: write it to a file")
    plain.seek(0)
    return plain


# --- parquet ----------------------------------------------------------------------------------------------------------

_UNSOUND = "is not a sound parquet file, or there is too little memory or disk to hold it: write it again, or make room"


def _parquet_relation(connection: Any, path: Path, files: Sequence[Path], type_: Type, stack: ExitStack) -> Relation:
    """The rows of parquet files of one schema; columns outside of the type are not read."""
    source, names, kinds = parquet_columns(connection, path, files, stack)
    layout = Layout.of(type_)
    _check_folder_names([name for name in layout.names if name is not None and name not in names], files)
    places = layout.pick(names, str(path))
    fields = [of_column(f"g{i}", kinds[i], kind) for i, kind in zip(places, layout.types, strict=True)]
    small = sum(file.stat().st_size for file in files) <= SMALL
    return Relation.of_fields(str(path), source, fields, layout, small=small, unreadable=_UNSOUND)


def parquet_columns(
    connection: Any, path: Path, files: Sequence[Path], stack: ExitStack
) -> tuple[str, list[str], list[Any]]:
    """The SQL that reads parquet files as columns `g0`, `g1`, …, and their names and types.

    The types are DuckDB's, or stand for what DuckDB does not know: the unit of a duration.
    """
    import duckdb

    listed = f"[{', '.join(quoted(link) for link in _links(files, stack))}]"
    check_no_log(files, path)
    with suppress(duckdb.Error):  # its words may quote values
        schema, *others = _schemas(connection, listed)
        if any(other != schema for other in others):
            raise SourceRejected(
                f"the files of {path} differ in the names, the order or the types of their columns: offer files of "
                "one schema"
            )
        (columns, counted), names = schema, [name for name, _ in schema[0]]
        read = f"read_parquet({listed}, hive_partitioning=false, union_by_name=false, int96_as='struct')"
        types = connection.sql(f"SELECT * FROM {read} LIMIT 0").types
        kinds = [with_durations(kind, counted.get(name)) for name, kind in zip(names, types, strict=True)]
        return f"{read} AS t({', '.join(f'g{i}' for i in range(len(columns)))})", names, kinds
    raise SourceRejected(f"{path} is not a sound parquet file: write it again")


def _links(files: Sequence[Path], stack: ExitStack) -> list[str]:
    """Names for files, for a while, that mean no more than these."""
    for file in files:
        with ExitStack() as briefly:
            open_packed(file, briefly, again=True)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="wpinq-"))
    links = [os.path.join(folder, str(i)) for i in range(len(files))]
    for link, file in zip(links, files, strict=True):
        os.symlink(file.absolute(), link)
    return links


def _schemas(connection: Any, listed: str) -> list[tuple[list[tuple[str, str]], dict[str, Any]]]:
    """The columns of each file, names and types, and the units of those that are durations."""
    elements = "name, num_children, CASE type WHEN 'INT96' THEN type ELSE duckdb_type END"
    rows = connection.execute(f"SELECT file_name, {elements} FROM parquet_schema({listed})").fetchall()
    noted = f"SELECT file_name, value FROM parquet_kv_metadata({listed}) WHERE key = 'ARROW:schema'::BLOB"
    counted = {file: durations(note) for file, note in connection.execute(noted).fetchall()}
    by_file = itertools.groupby(rows, itemgetter(0))
    return [(_columns([row[1:] for row in group]), counted.get(file, {})) for file, group in by_file]


def _columns(schema: Sequence[tuple[Any, ...]]) -> list[tuple[str, str]]:
    """The names and types of the columns, which may hold others, from the elements of a schema.

    The types are what DuckDB makes of them, with all that they hold, but for INT96. Nothing else is told: each library
    has a name for the root and for the items of lists, and its notes from older formats.
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
    parts = {part for file in files for part in file.parent.parts}
    if named := [name for name in missing if any(part.startswith(f"{name}=") for part in parts)]:
        raise SourceRejected(
            f"no column of the files is named {', '.join(map(repr, named))}, only folders are "
            f"({', '.join(f'{name}=...' for name in named)}), and names of folders are not read: offer a relation "
            "that reads them, as duckdb.sql(\"SELECT * FROM read_parquet('.../**/*.parquet', "
            'hive_partitioning=true)")'
        )


# --- csv --------------------------------------------------------------------------------------------------------------


def _csv_relation(connection: Any, csv_file: CsvFile, type_: Type, stack: ExitStack) -> Relation:
    """The rows of a csv file whose first line names the columns.

    Text is read by the declared type: `true` and `false` in any case, decimal digits for numbers. An empty field
    is null where the type allows null, else refused. Lines without any character are skipped and not counted.

    What DuckDB does not read, or would read otherwise, Python's `csv` reads: it is slower, and says where.
    """
    layout, path, delimiter = Layout.of(type_), Path(csv_file), csv_file.delimiter
    if other := [kind for kind in layout.types if not readable_as_text(kind)]:
        raise SourceRejected(
            f"a csv file cannot hold a field of type {other[0]}: offer rows or parquet; for durations, declare int and "
            "write microseconds, of which F.cast(x, datetime.timedelta) makes durations"
        )
    file = open_file(path, stack)
    plain = _is_plain(file, delimiter)
    header, names = next(_csv_rows(file, path, delimiter), []), str(path)
    check_delimiter(path, header)
    places = layout.pick(header, names)
    fields = [of_text(f"g{place}", kind) for place, kind in zip(places, layout.types, strict=True)]
    small = os.fstat(file.fileno()).st_size <= SMALL

    def in_python() -> Relation:
        ragged = "not as many fields as the first line names"
        rows = itertools.islice(_csv_rows(file, path, delimiter), 1, None)
        whole = ((n, row if len(row) == len(header) else ragged) for n, row in enumerate(rows))
        found = stage_text(connection, whole, len(header))
        return Relation.of_fields(names, STAGED, fields, layout, small=small, number="n", found=found)

    if not plain or any("\n" in name or "\r" in name for name in header):
        return in_python()
    source = text_columns(file, len(header), delimiter, 1, '"')
    return Relation.of_fields(names, source, fields, layout, small=small, anew=in_python)


def _is_plain(file: BinaryIO, delimiter: str) -> bool:
    """Whether DuckDB reads a file as csv has it.

    The names of columns are in the first line, and no quote is next to a blank.
    """
    before = b""
    file.seek(0)
    if re.match(rb"(?:\xef\xbb\xbf)?[ \t" + re.escape(delimiter.encode()) + rb"]*[\r\n]", file.read(_PIECE)):
        return False
    file.seek(0)
    while piece := file.read(_PIECE):
        if b'" ' in (piece := before + piece) or b' "' in piece:
            return False
        before = piece[-1:]
    return True


def _csv_rows(file: BinaryIO, path: Path, delimiter: str) -> Iterator[list[str]]:
    """The rows of a csv file, from the header on.

    SourceRejected where it is none, with the number of rows before.
    """
    file.seek(0)
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    number, is_text, fault = -1, True, ""
    try:
        for row in csv.reader(text, delimiter=delimiter, strict=True):
            if any("\0" in item for item in row):
                fault = "a zero character (NUL), which text has not"
                break
            if row if number >= 0 else _is_filled(row):
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
