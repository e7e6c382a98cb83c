"""The one door for protected data: from what a curator offers to `{record: weight}`."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path

from wpinq.dataset import EngineDataset
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.ingest.data_frames import library_of, records_of_table
from wpinq.ingest.edge_list import EdgeList, as_edge_list
from wpinq.ingest.files import format_of, records_of_csv, records_of_parquet
from wpinq.ingest.promises import check_facts, enforce, norm
from wpinq.ingest.rejection import Faults, reject
from wpinq.ingest.rows import read_weights, records_of_rows
from wpinq.ingest.spark_frames import read_frame

_EDGE_LISTS = (".txt", ".tsv", ".edges")


def read_source(
    data: object,
    type_: Type,
    *,
    unit_weight: Fraction,
    cap: Fraction,
    facts: frozenset[str] = frozenset(),
) -> dict[Value, float] | EngineDataset:
    """The weighted dataset that a curator offers, checked against what its source declares.

    Each row weighs 1.0 and repeated rows add up: A(x) = number of rows equal to x. In a mapping each item is one
    row, with its own weight.

    Parameters
    ----------
    data : object
        Rows: an iterable of tuples, lists or mappings by field name, or of bare values where the type is no
        record. A mapping `{record: weight}`. A table: a pandas or polars frame (eager or lazy), an Arrow table,
        batch or reader, a numpy array (structured or two-dimensional). A graph of networkx or igraph, or its edges,
        read as `EdgeList(graph)` is. An `EdgeList`, or the path of a file: `.csv`, `.parquet`, or an edge list
        (`.txt`, `.tsv`, `.edges`), the text formats also with `.gz`. The path of an edge list is read as
        `EdgeList(path)` is: directed, and refused where an edge stands there twice.
        An `EngineDataset`, which an engine has made of what is there already: checked there.

        Columns are matched by the field names where all fields have one, else by place. Columns and keys that
        the type does not name are ignored. Missing values of pandas (NaN, NA, None) are null.
    type_ : Type
        The declared type of the records. Nothing is inferred from the data.
    unit_weight : Fraction
        Positive: the most that a row may weigh in absolute value.
    cap : Fraction
        Positive: the most that the absolute weights may add up to, compared without rounding.
    facts : frozenset of str
        Names from `wpinq.expr.facts.FACTS` that the dataset must keep.

    Returns
    -------
    dict or EngineDataset
        Record -> weight, in order of first appearance, without zero weights.

    Raises
    ------
    SourceRejected
        When anything is unfit. The data is refused as a whole, and the message names positions and reasons for the
        curator, never a value.
    PlanError
        When a fact does not exist or does not fit the type, or a bound is not positive.

    Notes
    -----
    Costs no privacy: nothing is released. The norm and the unit are those of Proserpio, Goldberg and McSherry,
    VLDB 2014, section 2.

    Examples
    --------
    >>> from wpinq.expr.types import INT, record_type
    >>> edge = record_type({"src": INT, "dst": INT})
    >>> read_source([(1, 2), (1, 2), (2, 3)], edge, unit_weight=Fraction(1), cap=Fraction(100))
    {(1, 2): 2.0, (2, 3): 1.0}
    """
    if unit_weight <= 0 or cap <= 0:
        raise PlanError("unit_weight and cap are positive numbers")
    check_facts(facts, type_)
    if isinstance(data, EngineDataset):
        return read_frame(data.frame, type_, unit_weight=unit_weight, cap=cap, facts=facts)
    data = as_edge_list(data)
    if isinstance(data, Mapping):
        noun = "item"
        records, weights, dataset = _read_mapping(data, type_, unit_weight)
    else:
        if unit_weight < 1:
            raise SourceRejected(
                f"a row weighs 1, above the unit weight {unit_weight}: offer a mapping {{record: weight}}, or "
                "declare a larger unit_weight"
            )
        noun = "edge" if _is_edge_list(data) else "row"
        records = _read_rows(data, type_)
        weights = None
        dataset = {record: float(count) for record, count in Counter(records).items()}
    for fact in sorted(facts):
        enforce(fact, dataset, records, weights, noun)
    if norm(dataset.values()) > cap:
        raise SourceRejected(
            f"the total weight of the data is above the cap {cap} that the source declares: declare a larger cap, "
            "from public knowledge, or offer less data"
        )
    return dataset


def _read_mapping(
    data: Mapping[object, object], type_: Type, unit_weight: Fraction
) -> tuple[list[Value], list[float], dict[Value, float]]:
    items = list(data.items())
    faults: Faults = {}
    records = records_of_rows((record for record, _ in items), type_, faults)
    weights = read_weights((weight for _, weight in items), unit_weight, faults)
    if not faults and len(set(records)) != len(records):
        seen: set[Value] = set()
        for position, record in enumerate(records):
            if record in seen:
                faults[position] = "the same record as an item before"
            seen.add(record)
    if faults:
        reject("the mapping of records to weights", faults, noun="item")
    dataset = {record: weight for record, weight in zip(records, weights, strict=True) if weight != 0}
    return records, weights, dataset


def _read_rows(data: object, type_: Type) -> list[Value]:
    if isinstance(data, str) and "\n" in data:
        raise SourceRejected("a str is the path of a file, never its content: offer the path, or rows")
    if isinstance(data, (str, os.PathLike)):
        return _read_path(Path(data), type_)
    if isinstance(data, EdgeList):
        return data.records(type_)
    library = library_of(data)
    if library is not None:
        return records_of_table(data, library, type_)
    if isinstance(data, (bytes, bytearray, memoryview, io.IOBase)) or not isinstance(data, Iterable):
        raise SourceRejected(
            f"a {type(data).__qualname__} is not data that can be read: offer rows, a mapping {{record: weight}}, "
            "a table, or the path of a file"
        )
    faults: Faults = {}
    records = records_of_rows(data, type_, faults)
    if faults:
        reject("the rows", faults)
    return records


def _is_edge_list(data: object) -> bool:
    if isinstance(data, (str, os.PathLike)):
        return format_of(Path(data)) in _EDGE_LISTS
    return isinstance(data, EdgeList)


def _read_path(path: Path, type_: Type) -> list[Value]:
    if _is_edge_list(path):
        return EdgeList(path).records(type_)
    if format_of(path) == ".csv":
        return records_of_csv(path, type_)
    if path.suffix.lower() == ".parquet":
        return records_of_parquet(path, type_)
    raise SourceRejected(
        "the ending of the path says no format: use .csv, .csv.gz, .parquet, or .txt, .tsv, .edges (or these "
        "with .gz) for an edge list; EdgeList(path) reads an edge list of any name"
    )
