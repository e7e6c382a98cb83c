"""Files: bytes with every failure turned into one clear refusal, and the csv and parquet formats."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path

from wpinq.errors import SourceRejected
from wpinq.expr.types import BOOL, FLOAT, INT, STR, Type
from wpinq.expr.values import Value
from wpinq.ingest.data_frames import arrow_columns
from wpinq.ingest.rejection import Faults, reject
from wpinq.ingest.typed_columns import Layout

_GZIP = b"\x1f\x8b"


def format_of(path: Path) -> str:
    """The ending that says the format of a file, `.gz` aside."""
    return path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed where it is gzip.

    Raises
    ------
    SourceRejected
        When there is no such file, it cannot be read, or it is a broken gzip file.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise SourceRejected(f"there is no file {path}: check the path") from None
    except IsADirectoryError:
        raise SourceRejected(f"{path} is a directory: name one file") from None
    except (OSError, ValueError):
        raise SourceRejected(f"{path} cannot be read: check the path and its rights") from None
    if not raw.startswith(_GZIP):
        if path.suffix.lower() == ".gz":
            raise SourceRejected(f"{path} is not a gzip file: fetch it again, or name it for what it is")
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error):
        raise SourceRejected(f"{path} is a damaged or truncated gzip file: fetch it again") from None


def read_text(path: Path) -> str:
    """The content of a UTF-8 text file, with or without a byte order mark."""
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise SourceRejected(f"{path} is not UTF-8 text: convert it, or check that it is the right file")
    return text


def records_of_csv(path: Path, type_: Type) -> list[Value]:
    """The records of a csv file whose first line names the columns.

    Text is read by the declared type: `true` and `false` in any case, decimal digits for numbers. An empty field
    is null where the type allows null, else refused. Lines without any character are skipped and not counted.
    """
    layout = Layout.of(type_)
    for kind in layout.types:
        if kind not in _PARSERS:
            raise SourceRejected(f"a csv file cannot hold a field of type {kind}: offer rows or a parquet file")
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    header: list[str] = []
    rows: list[list[str]] = []
    sound = True
    try:
        header = next(reader, [])
        for row in reader:
            if row:
                rows.append(row)
    except csv.Error:
        sound = False
    if not sound:
        reject(str(path), {len(rows): "quotes that csv does not allow, or an overlong field"})
    picked = layout.pick(header, str(path))
    faults: Faults = {}
    if not set(map(len, rows)) <= {len(header)}:
        for position, row in enumerate(rows):
            if len(row) != len(header):
                faults[position] = "not as many fields as the first line names"
                rows[position] = [""] * len(header)
    columns = [
        _parse_column(list(map(itemgetter(place), rows)), kind, faults, layout.label(i))
        for i, (place, kind) in enumerate(zip(picked, layout.types, strict=True))
    ]
    return layout.sound_records(columns, str(path), faults)


def records_of_parquet(path: Path, type_: Type) -> list[Value]:
    """The records of a parquet file. Columns that the type does not name are not read."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise SourceRejected("reading parquet needs pyarrow: pip install 'wpinq[tables]'") from None
    layout = Layout.of(type_)
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(read_bytes(path)))
        names = list(file.schema_arrow.names)
        picked = layout.pick(names, str(path))
        table = file.read(columns=[names[place] for place in picked])
    except (pyarrow.ArrowException, OSError):
        raise SourceRejected(f"{path} is not a sound parquet file: write it again") from None
    return layout.sound_records(arrow_columns(table, layout, str(path)), str(path), {})


def _parse_column(texts: list[str], type_: Type, faults: Faults, label: str) -> Sequence[object]:
    parse, alphabet = _PARSERS[type_]
    if type_ == STR and "" not in texts:
        return texts
    if alphabet and set("".join(texts)) <= alphabet:
        try:
            return list(map(parse, texts))
        except (ValueError, OverflowError):
            pass
    values: list[object] = [None] * len(texts)
    for position, text in enumerate(texts):
        if text and (not alphabet or set(text) <= alphabet):
            try:
                values[position] = parse(text)
                continue
            except (ValueError, KeyError):
                pass
        if text or not type_.nullable:
            faults.setdefault(position, f"{label}: {_reason(text, type_)}")
    return values


def _reason(text: str, type_: Type) -> str:
    """Why a field is unfit, without what it holds."""
    if not text:
        return f"an empty field where {type_} is declared"
    if type_ == FLOAT and text.strip("+-").lower() in ("nan", "inf", "infinity"):
        return "nan or infinity"
    return f"text that is not of type {type_}" + (" (true or false)" if type_ == BOOL else "")


# The alphabets keep out what Python reads and csv files do not mean: 1_000, blanks, digits of other scripts.
_PARSERS: dict[Type, tuple[Callable[[str], object], frozenset[str]]] = {
    INT: (int, frozenset("+-0123456789")),
    FLOAT: (float, frozenset("+-0123456789.eE")),
    BOOL: (lambda text: {"true": True, "false": False}[text.lower()], frozenset()),
    STR: (str, frozenset()),
}
