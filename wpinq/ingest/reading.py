"""The one door for protected data: from what a curator offers to `{record: weight}`."""

from __future__ import annotations

import contextlib
import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from wpinq.dataset import EngineDataset
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.facts import check_facts
from wpinq.expr.person import Person
from wpinq.expr.types import INT, STR, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.ingest.data_frames import library_of, records_of_table
from wpinq.ingest.edge_list import EdgeList
from wpinq.ingest.files import records_of_csv, records_of_parquet
from wpinq.ingest.people import Id, kept_rows, weigh
from wpinq.ingest.promises import enforce_all, enforce_symmetry, enforce_unit_of_edges, norm
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
    person: Person | None = None,
) -> dict[Value, float] | EngineDataset:
    """The weighted dataset that a curator offers, checked against what its source declares.

    Each row weighs 1.0 and repeated rows add up: A(x) = number of rows equal to x. In a mapping each item is one
    row, with its own weight.

    Parameters
    ----------
    data : object
        Rows: an iterable of tuples, lists or mappings by field name, or of bare values where the type is no
        record. A mapping `{record: weight}`. A table: a pandas or polars frame (eager or lazy), an Arrow table,
        batch or reader, a numpy array (structured or two-dimensional). An `EdgeList`, or the path of a file:
        `.csv`, `.parquet`, or an edge list (`.txt`, `.tsv`, `.edges`), the text formats also with `.gz`. The path
        of an edge list is read as `EdgeList(path)` is: directed, and refused where an edge stands there twice.
        An `EngineDataset`, which an engine has made of what is there already: checked there.

        Columns are matched by the field names where all fields have one, else by place. Columns and keys that
        the type does not name are ignored. Missing values of pandas (NaN, NA, None) are null.
    type_ : Type
        The declared type of the rows, which is that of the records but where a record is one person's rows. Nothing is
        inferred from the data.
    unit_weight : Fraction
        Positive: the most that a row may weigh in absolute value.
    cap : Fraction
        Positive: the most that the absolute weights may add up to, compared without rounding.
    facts : frozenset of str
        Names from `wpinq.expr.facts.FACTS` that the dataset must keep.
    person : Person, optional
        Whose rows the rows are: of each person's, only so many are taken, before anything else is asked of the dataset.

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
    check_facts(facts, type_, unit_weight)
    if isinstance(data, EngineDataset):
        return read_frame(data.frame, type_, unit_weight=unit_weight, cap=cap, facts=facts, person=person)
    if person is not None:
        dataset = count_people(data, type_, person, facts)
        _check_cap(dataset, cap)
        return dataset
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
    enforce_all(facts, dataset, records, weights, noun)
    if "symmetric" in facts and weights is not None:
        enforce_unit_of_edges(records, weights, unit_weight)
    _check_cap(dataset, cap)
    return dataset


def _check_cap(dataset: Mapping[Value, float], cap: Fraction) -> None:
    if norm(dataset.values()) > cap:
        raise SourceRejected(
            f"the total weight of the data is above the cap {cap} that the source declares: declare a larger cap, "
            "from public knowledge, or offer less data"
        )


def count_people(data: object, type_: Type, person: Person, facts: frozenset[str]) -> dict[Value, float]:
    """The dataset that each person's rows are, at most so many; refused where it breaks a fact.

    The cut comes before all that looks across people: equal rows of several, and facts.
    """
    if isinstance(data, Mapping) or _is_edge_list(data):
        raise SourceRejected(
            f"the data do not say whose they are: offer rows by field name, a table, csv or parquet, with the ids of "
            f"people in a column {person.column!r}; weights of their own, and edge lists, have none"
        )
    if not isinstance(data, (str, os.PathLike)) and library_of(data) is None and isinstance(data, Iterable):
        data = list(data)
    rows = _read_rows(data, type_)
    kept = kept_rows(_read_ids(data, type_, person, rows), rows, type_, person.at_most)
    dataset = weigh(kept, person)
    enforce_all(facts, dataset, rows, None)
    if "symmetric" in facts:
        enforce_symmetry(kept, rows)
    return dataset


def _read_ids(data: object, type_: Type, person: Person, rows: Sequence[Value]) -> list[Id]:
    """Whose each row is. Ids are int or str as the column has them; those of a csv file are its text."""
    place = person.id_field(type_)
    if place is not None:
        return [row[place] for row in rows]
    if isinstance(data, list) and not all(isinstance(row, Mapping) for row in data):
        raise SourceRejected(
            f"rows without field names do not say whose they are: offer mappings by field name, with the ids in "
            f"{person.column!r}, or declare a field of this name"
        )
    text = isinstance(data, (str, os.PathLike)) and format_of(Path(data)) == ".csv"
    for kind in () if text else (INT,):
        with contextlib.suppress(SourceRejected):
            return [id_ for (id_,) in _read_rows(data, TupleOf((person.column,), (kind,)))]
    return [id_ for (id_,) in _read_rows(data, TupleOf((person.column,), (STR,)))]


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
        return _read_edge_list(data, type_)
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


def format_of(path: Path) -> str:
    """The ending that says the format of a file, `.gz` aside."""
    return path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def is_directed_edge_list(data: object) -> bool:
    """Whether data are an edge list of which (a, b) and (b, a) are two edges."""
    return _is_edge_list(data) and not (isinstance(data, EdgeList) and not data.directed)


def _is_edge_list(data: object) -> bool:
    if isinstance(data, (str, os.PathLike)):
        return format_of(Path(data)) in _EDGE_LISTS
    return isinstance(data, EdgeList)


def _read_path(path: Path, type_: Type) -> list[Value]:
    if _is_edge_list(path):
        return _read_edge_list(EdgeList(path), type_)
    if format_of(path) == ".csv":
        return records_of_csv(path, type_)
    if path.suffix.lower() == ".parquet":
        return records_of_parquet(path, type_)
    raise SourceRejected(
        "the ending of the path says no format: use .csv, .csv.gz, .parquet, or .txt, .tsv, .edges (or these "
        "with .gz) for an edge list; EdgeList(path) reads an edge list of any name"
    )


def _read_edge_list(data: EdgeList, type_: Type) -> list[Value]:
    if isinstance(type_, TupleOf) and not type_.nullable:
        for node, kind in ((int, INT), (str, STR)):
            if type_.elements == (kind, kind):
                return data.edges(node)
    raise SourceRejected(
        f"an edge list holds records of two int or two str fields, not of type {type_}: offer csv, parquet or rows"
    )
