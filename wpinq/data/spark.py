"""Spark frames, checked in place by Spark.

Of the rows nothing but yes, no and the norm comes to the driver.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from wpinq.columns.dataset import EngineDataset, let_go, stored
from wpinq.columns.records import column_names
from wpinq.data.casts import Cast, CastWords, OtherKind, Unfit, in_range, of_column
from wpinq.data.facts import breach, size_breaches
from wpinq.data.fields import spark_kind
from wpinq.data.kinds import StandIn, column_advice
from wpinq.data.layout import NO_BOOL, Layout
from wpinq.data.people import Words, asymmetric, kept_of, packed_row, weighed
from wpinq.data.person_tables import kept_table, people_records
from wpinq.data.relation import computed
from wpinq.errors import SourceRejected
from wpinq.expr import types
from wpinq.expr.declarations import ID, INT_ID, STR_ID, Person
from wpinq.expr.person_tables import PersonTables
from wpinq.plan.operators.source import Source

# The cut of people's rows in the words of Spark.


def _listed(type_: types.Type) -> str:
    """Spark sorts in canonical order: it has null first, in structs and lists too."""
    return f"sort_array(collect_list({packed_row(iter(column_names(type_)), type_, _struct)}))"


def _struct(parts: Sequence[str], type_: types.Type) -> str:
    """A record of parts, as `columns.records` packs it."""
    fields = [f"'f{i}', {part}" for i, part in enumerate(parts)] or ["'f', true"]
    return f"named_struct({', '.join(fields)})"


def _bits() -> str:
    """The bits of a finite float `{}`, as a 64-bit integer, by arithmetic that is exact.

    Spark has no function for it but a call of Java's, which it runs in no function over a list. The logarithm may miss
    the exponent by one, which the mantissa shows; Java's powers of two are exact. Below the least exponent the mantissa
    is below 1, and the sum is that of a subnormal.
    """
    exponent = "greatest(least(coalesce(floor(log2(v)), -1022L), 1023L), -1022L)"
    mantissa = "d.v * pow(2D, -({}))"

    def number(e: str) -> str:
        return f"({e} + 1022L) * {2**52}L + CAST({mantissa.format(e)} * {2**52}D AS BIGINT)"

    found = (
        f"CASE WHEN {mantissa.format('d.e')} >= 2D THEN {number('(d.e + 1L)')} "
        f"WHEN {mantissa.format('d.e')} < 1D AND d.e > -1022L THEN {number('(d.e - 1L)')} ELSE {number('d.e')} END"
    )
    sized = f"transform(array(abs({{0}})), v -> named_struct('v', v, 'e', {exponent}))"
    return f"(CASE WHEN {{0}} < 0D THEN shiftleft(1L, 63) ELSE 0L END + get(transform({sized}, d -> {found}), 0))"


SPARK = Words(
    once="",  # tables are held before they are asked
    bits=_bits(),
    octets="octet_length({})",
    hash="sha2({}, 256)",
    copies="explode(sequence(1L, {}))",
    mapped="array_join(transform({0}, {1} -> {2}), '')",
    length="size({})",
    listed=_listed,
    empty="array()",
)


# Columns of Spark frames as SQL: the canonical value of the declared type, and what of the given one is unfit.

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
# a time of day, or days and seconds, of which Spark makes seconds with six decimals, exactly
_MICROSECONDS = "CAST(CAST({0} AS DECIMAL(20, 6)) * 1000000 AS BIGINT)"
# the microseconds of a timestamp without a zone, as if it were one in UTC, whatever zone Spark is set to
_OF_CLOCK = (
    "(CAST(unix_date(CAST({0} AS DATE)) AS BIGINT) * 86400000000L"
    " + CAST((hour({0}) * 60 + minute({0})) * 60 AS BIGINT) * 1000000L"
    " + CAST(date_part('SECOND', {0}) * 1000000 AS BIGINT))"
)
#: Declared types, what Spark may call their columns, as patterns, and the integers that stand for the values.
_MOMENTS: tuple[tuple[types.Logical, str, str], ...] = (
    (types.DATE, "date", "CAST(unix_date({0}) AS BIGINT)"),
    (types.TIMESTAMP, "timestamp", "unix_micros({0})"),
    (types.TIMESTAMP, "timestamp_ntz", _OF_CLOCK),
    (types.TIME, r"time\([0-6]\)", _MICROSECONDS),
    (
        types.DURATION,
        "interval (day|hour|minute|second)( to (hour|minute|second))?",
        _MICROSECONDS.format("CAST({0} AS INTERVAL DAY TO SECOND)"),
    ),
)


def _kind(given: Any) -> StandIn:
    """A type of Spark's; fields of a record that share a name are left out.

    They cannot be distinguished.
    """
    if given.typeName() == "array":
        return StandIn("list", [("element", _kind(given.elementType))])
    if given.typeName() == "struct":
        fields = [(field.name, _kind(field.dataType)) for field in given.fields]
        return StandIn("struct", [field for field in fields if given.names.count(field[0]) == 1])
    return StandIn(given.simpleString())


def _scalar(column: str, given: StandIn, type_: types.Type) -> tuple[str, list[Unfit]] | None:
    """A value of a kind, as Spark calls it, as a declared type; None where the kind is another."""
    kind = given.id
    if isinstance(type_, types.DecimalOf):
        return _decimal(column, kind, type_)
    if kind == "string" and (type_ in (types.STR, ID, STR_ID) or isinstance(type_, types.CategoryOf)):
        listed = [f"CAST(X'{text.encode().hex()}' AS STRING)" for text in getattr(type_, "listed", ())]
        unfit = [(f"NOT is_valid_utf8({column})", "a text that is not UTF-8")]
        if listed:
            unfit.append((f"{column} NOT IN ({', '.join(listed)})", "a value that is none of the declared categories"))
        return column, unfit
    if kind in _INTEGERS and type_ in (types.INT, ID, INT_ID):
        return f"CAST({column} AS BIGINT)", []
    if kind in ("float", "double") and type_ == types.FLOAT:
        value = f"(CAST({column} AS DOUBLE) + 0D)"  # -0.0 becomes 0.0
        return value, [(f"isnan({value}) OR abs({value}) = CAST('Infinity' AS DOUBLE)", "nan or infinity")]
    if type_ == types.BOOL:
        if kind in _INTEGERS:
            return f"({column} = 1)", [(f"{column} NOT IN (0, 1)", NO_BOOL)]
        return (column, []) if kind == "boolean" else None
    for moment, kinds, value in _MOMENTS:
        if moment == type_ and re.fullmatch(kinds, kind):
            return value.format(column), in_range(column, value.format(column), moment)
    return None


def _decimal(column: str, kind: str, type_: types.DecimalOf) -> tuple[str, list[Unfit]] | None:
    if kind not in _INTEGERS and not kind.startswith("decimal("):
        return None
    given = "decimal(38, 0)" if kind in _INTEGERS else kind
    exact = f"CAST({column} AS {given})"
    held = f"TRY_CAST({exact} AS DECIMAL(38, {type_.scale}))"  # rounds more decimals; null beyond 38 digits
    units = f"TRY_CAST(try_multiply({held}, CAST({10**type_.scale} AS DECIMAL(19, 0))) AS BIGINT)"
    # back in the type that was given: Spark compares decimals of two scales after rounding one of them
    same = f"coalesce(TRY_CAST({held} AS {given}) = {exact}, false)"
    unfit = f"{column} IS NOT NULL AND ({units} IS NULL OR NOT {same})"
    return units, [(unfit, f"a number of more than {type_.scale} decimals, or outside 64 bits")]


_CASTS = CastWords(
    scalar=_scalar,
    strict=True,
    field=lambda column, name, place: f"{column}.`{name}`",
    record=_struct,
    mapped="transform({0}, {1} -> {2})",
    some="exists({0}, {1} -> {2})",
    length="size({})",
)


def _checked(cast: Cast) -> list[str]:
    """The leaves; an unfit value ends the query."""
    cases = " ".join(f"WHEN {condition} THEN raise_error('unfit')" for condition, _ in cast.unfit)
    first, *others = cast.leaves
    return [f"CASE {cases} ELSE {first} END" if cases else first, *others]


_WHAT = "the Spark frame"
_UNREADABLE = "cannot be read by Spark: show it yourself to see why"


def read_frame(frame: Any, declared: Source) -> EngineDataset:
    """The dataset of the rows of a Spark frame, checked by Spark against the declared source.

    Each row weighs 1.0 and repeated rows add up. Columns are found as those of any table.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        It is evaluated once.
    declared : Source
        What its source declares: lists are Spark's arrays, and records in them its structs, by field name.

    Returns
    -------
    EngineDataset
        Record -> weight, still in Spark, which holds these rows from now on: a later change of what the frame reads
        changes nothing, and rows that Spark loses it does not read again (`stored`).

    Raises
    ------
    SourceRejected
        When anything is unfit. The message names the field and the reason, never a value, a place or a number.

    Notes
    -----
    Costs no privacy: nothing is released.
    """
    from pyspark.sql import functions as sql

    type_, person, weight = declared.row, declared.person, declared.unit_weight
    if weight < 1:
        raise SourceRejected(f"a row weighs 1, above the unit weight {weight}: declare a larger unit_weight")
    given, leaves, casts = _offered(frame, *declared.offered)
    held: list[Any] = []
    fault, read = "", None
    with contextlib.suppress(Exception):  # Spark's words of a failure quote rows
        rows = given.selectExpr(*leaves)
        times = sql.expr("CAST(count(*) AS DOUBLE) AS w" if person is None else "count(*) AS m")
        held.append(stored(rows.groupBy(*rows.columns).agg(times)))
        if person is not None:
            fault = _cut(held, type_, person, declared.facts)
        fault = fault or _fault(held[-1], declared)
        read = None if fault else EngineDataset(held.pop())
    if read is None and not held:
        fault = _unfit(given, casts)
    let_go(*held)
    if read is None:
        raise SourceRejected(f"{_WHAT} {fault or _UNREADABLE}")
    return read


def read_tables(frames: Mapping[str, Any], declared: Source, person: PersonTables) -> EngineDataset:
    """The dataset of people, from a Spark frame for each of their tables: see `read_frame`."""
    from pyspark.sql import functions as sql

    rows = person.table_rows(declared.record)
    offered = {t.name: _offered(frames[t.name], *person.offered(t, rows[t.name])) for t in person.tables}
    held: list[Any] = []
    fault, read = "", None
    with contextlib.suppress(Exception):  # Spark's words of a failure quote rows
        for table in person.tables:
            given, leaves, _ = offered[table.name]
            chosen = given.selectExpr(*leaves)
            counted = chosen.groupBy(*chosen.columns).agg(sql.count(sql.lit(1)).alias("m"))
            held.append(stored(counted))
            kept = kept_table("{counted}", rows[table.name], table, SPARK)
            held.append(stored(counted.sparkSession.sql(kept, counted=held.pop())))
        columns = [", ".join(column_names(row)) for row in rows.values()]
        copies = [f"SELECT p, {c}, {SPARK.copies.format('m')} AS i FROM {{t{i}}}" for i, c in enumerate(columns)]
        query = f"SELECT *, 1 AS one FROM ({people_records(copies, person, declared.record, SPARK)}) AS records"
        records = held[0].sparkSession.sql(query, **{f"t{i}": each for i, each in enumerate(held)})
        names = column_names(declared.record)
        held.append(stored(records.groupBy(*names).agg(sql.count("one").cast("double").alias("w"))))
        fault = _fault(held[-1], declared)
        read = None if fault else EngineDataset(held.pop())
    if read is None and not fault:
        unfit = ((name, _unfit(given, casts)) for name, (given, _, casts) in offered.items())
        fault = next((f"of table {name!r} {words}" for name, words in unfit if words), "")
    let_go(*held)
    if read is None:
        raise SourceRejected(f"{_WHAT} {fault or _UNREADABLE}")
    return read


def _offered(frame: Any, row: types.Type, whose: Person | None) -> tuple[Any, list[str], dict[str, Cast]]:
    """A frame with columns `g0`, …, the columns of its rows as SQL, and the casts for them."""
    layout = Layout.of(row)
    columns, kinds = computed(
        lambda: (list(frame.columns), [field.dataType for field in frame.schema.fields]), f"{_WHAT} {_UNREADABLE}"
    )
    casts: dict[str, Cast] = {}
    for i, (place, field) in enumerate(zip(layout.pick(columns, _WHAT), layout.types, strict=True)):
        cast = _cast(place, kinds, field)
        if cast is None:
            words = column_advice(spark_kind(kinds[place]), field)
            how = f" To convert it: {words}." if words else ""
            if isinstance(field, (types.ListOf, types.TupleOf)):
                how = " A list is an array (functions.collect_list, functions.array), and a record a struct that has "
                how += "all fields of the declared one by name (functions.struct)."
            raise SourceRejected(f"{_WHAT}: {layout.label(i)} is of another type than {field}.{how}")
        casts[layout.label(i)] = cast
    leaves = [f"{leaf} AS c{i}" for i, leaf in enumerate(leaf for cast in casts.values() for leaf in _checked(cast))]
    if whose is not None:
        ids = casts[f"the column {whose.column!r}"] = _ids(columns, kinds, whose)
        leaves.append(f"{_checked(ids)[0]} AS p")
    return frame.toDF(*[f"g{i}" for i in range(len(columns))]), leaves, casts


def _cast(place: int, kinds: Sequence[Any], type_: types.Type) -> Cast | None:
    """A column as a declared type; None where it is of another kind."""
    with contextlib.suppress(OtherKind):
        return of_column(f"g{place}", _kind(kinds[place]), type_, _CASTS)
    return None


def _ids(columns: Sequence[str], kinds: Sequence[Any], person: Person) -> Cast:
    """The column of the ids of people."""
    if columns.count(person.column) != 1:
        raise SourceRejected(f"{_WHAT} must have one column {person.column!r}, with the ids of people")
    declared = person.id if isinstance(person, PersonTables) else ID
    found = _cast(columns.index(person.column), kinds, declared)
    if found is None:
        raise SourceRejected(f"{_WHAT}: the ids in {person.column!r} are neither int nor str: cast them in Spark")
    return found


def _cut(held: list[Any], type_: types.Type, person: Person, facts: Sequence[str]) -> str:
    """Add the rows of each person that count, and their dataset, to the frames; or the reason.

    The reason says what is wrong.
    """
    spark = held[0].sparkSession
    held.append(stored(spark.sql(kept_of("{counted}", type_, person.at_most, SPARK), counted=held[0])))
    if "symmetric" in facts and spark.sql(asymmetric("{kept}", type_), kept=held[1]).limit(1).count():
        return "has (a, b) and (b, a) of different weight for one person, where the source declares symmetric"
    held.append(stored(spark.sql(weighed("{kept}", type_, person, SPARK), kept=held[1])))
    return ""


#: Whether some records break a fact: all of them, or a pair `(a, b)` and its reverse, each at most once.
_BREACHES = {
    "simple": "count(*) > 1 OR max(a <=> b)",
    "simple_digraph": "max(a <=> b) OR max(w) <> 1",
    "symmetric": "sum(CASE WHEN a < b THEN w WHEN b < a THEN -w END) <> 0",
    "unit_weights": "max(w) <> 1",
}


def _fault(dataset: Any, declared: Source) -> str:
    """What is wrong with a dataset of distinct records, by one query with all checks."""
    type_, rows, groups = declared.record, "{held}", ""
    facts = sorted(_BREACHES.keys() & set(declared.facts))
    if isinstance(type_, types.TupleOf) and {"simple", "simple_digraph", "symmetric"}.intersection(facts):
        leaves = iter(column_names(type_)[int(type_.nullable) :])
        sides = [packed_row(leaves, side, _struct) for side in type_.elements]
        a, b = (_struct([side], type_) for side in sides) if type_.elements[0].nullable else sides
        rows, groups = f"(SELECT w, {a} AS a, {b} AS b FROM {{held}})", " GROUP BY least(a, b), greatest(a, b)"
    sizes = [*size_breaches(declared.sizes, "{held}", type_)]
    cases = "".join(f" WHEN {_BREACHES[fact]} THEN {place}" for place, fact in enumerate(facts))
    queries = [f"SELECT sum(w) AS w, CASE WHEN false THEN 0{cases} END AS place FROM {rows}{groups}"]
    queries += [f"SELECT 0D, {place} FROM ({query})" for place, (_, query) in enumerate(sizes, len(facts))]
    query = f"SELECT sum(w), min(place) FROM ({' UNION ALL '.join(queries)})"
    total, place = dataset.sparkSession.sql(query, held=dataset).collect()[0]
    over = f"has a total weight above the cap {declared.cap} of its source: declare a larger one, or offer less data"
    twice = "two people with the same rows" if declared.person and declared.person.nested else "a row twice"
    reasons = {fact: breach(fact, "", type_)[0] for fact in facts}
    reasons["unit_weights"] = f"{twice}, where the source declares unit_weights"
    words = [f"has {reasons[fact]}" for fact in facts] + [f"breaks the declaration of {bound}" for bound, _ in sizes]
    return over if (total or 0) > declared.cap else "" if place is None else words[place]


def _unfit(given: Any, casts: Mapping[str, Cast]) -> str:
    """The column with an unfit value, where one has any: the frame is read again."""
    doubtful = [(label, *unfit) for label, cast in casts.items() for unfit in cast.unfit]
    with contextlib.suppress(Exception):
        asked = [f"max({condition}) AS u{i}" for i, (_, condition, _) in enumerate(doubtful)]
        found = given.selectExpr(*asked).collect()[0] if asked else ()
        for is_so, (label, _, reason) in zip(found, doubtful, strict=True):
            if is_so:
                return f"has in {label} {reason}"
    return ""
