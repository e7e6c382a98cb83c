"""The guide of the page: example programs over a source, and the steps of programs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from wpinq.api.query import Query
from wpinq.expr.catalogue import FUNCTIONS
from wpinq.expr.types import BOOL, FLOAT, INT, STR, CategoryOf, TupleOf
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators.source import Source
from wpinq.sinks.sink import SINKS
from wpinq.tables.agg import AGGREGATES

_PUBLIC = "// {} are public: choose them without looking at the data\n"


@dataclass(frozen=True, slots=True)
class Example:
    """A program that can be released as it stands."""

    title: str
    program: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a program: its form in text, and its meaning in one sentence."""

    group: str
    form: str
    meaning: str


def examples(source: Source) -> list[Example]:
    """Programs over a source, made from its declaration alone.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", sex=wp.category("f", "m"), age=int)
    >>> [example.title for example in examples(people.plan.operator)]
    ['Number of records', 'Records by sex', 'Mean of age', 'Median of age', 'Histogram of age']
    """
    name, record = source.source, source.record
    found = [Example("Number of records", f"var total = {name}.Agg(0.1, records: Count());\n")]
    if not isinstance(record, TupleOf) or record.nullable or None in record.names:
        return found
    fields = [(str(field), type_) for field, type_ in zip(record.names, record.elements, strict=True)]
    if "unit_weights" in source.facts and len(fields) == 2 and fields[0][1] == fields[1][1]:
        return [*found, _degrees(name, *(field for field, _ in fields), both="simple" in source.facts)]
    person = source.person.column if source.person else None
    columns = [each for each in fields if each[0] != person and not f"_{each[0].lower()}".endswith("_id")]
    for kind in (_records_by, _numbers):
        found += next((made for column in columns if (made := list(kind(name, *column)))), [])
    return found


def _degrees(name: str, one: str, other: str, *, both: bool) -> Example:
    ends = f"{name}.Select(e => e.{one})" + (f".Concat({name}.Select(e => e.{other}))" if both else "")
    text = f"""// of key k: the number of nodes with more than k edges
var degrees = {ends}
    .Shave(1.0).Select(p => p.index)
    .NoisyCount(0.1, over: range(0, 20));
"""
    return Example("Degree distribution", text)


def _records_by(name: str, field: str, type_: object) -> Iterator[Example]:
    by = f"var groups = {name}.By({{}}).Agg(0.1, records: Count());\n"
    if type_ == BOOL or isinstance(type_, CategoryOf):
        yield Example(f"Records by {field}", by.format(f'"{field}"'))
    elif type_ == STR:
        keys = f'"{field}", keys: ["a", "b"], other: "others"'
        yield Example(f"Records by {field}", _PUBLIC.format("Groups") + by.format(keys))


def _numbers(name: str, field: str, type_: object) -> Iterator[Example]:
    if type_ not in (INT, FLOAT):
        return
    for aggregate, public, arguments in (("Mean", "Bounds", "0, 100"), ("Median", "Candidates", "range(0, 101)")):
        word = aggregate.lower()
        program = f'var {word} = {name}.Agg(0.1, {word}: {aggregate}("{field}", {arguments}));\n'
        yield Example(f"{aggregate} of {field}", _PUBLIC.format(public) + program)
    if type_ == INT:
        program = f"var histogram = {name}.Select(r => r.{field} / 10).NoisyCount(0.1, over: range(0, 10));\n"
        yield Example(f"Histogram of {field}", _PUBLIC.format("Keys, here tens of the value,") + program)


def steps() -> list[Step]:
    """The operators, releases, aggregates and functions of programs, from their registries.

    Examples
    --------
    >>> [step.form for step in steps() if step.form.startswith("NoisyS")]
    ['NoisySum(epsilon, value, lower, upper)']
    """
    ways = [(way, sink) for sink in SINKS.values() if sink.bounded_work for way in sink.syntax]
    refused = sorted(sink.name for sink in SINKS.values() if not sink.bounded_work)
    return [
        *(Step("Operators", _form(name, each.parameters), _meaning(each)) for name, each in sorted(REGISTRY.items())),
        *(
            Step("Releases", _form(way.name, way.parameters), _meaning(getattr(Query, way.method, sink)))
            for way, sink in ways
        ),
        Step("Tables", "By(column, …, [keys], [other])", _meaning(Query.by)),
        Step("Tables", "Agg(epsilon, name: aggregate, …)", "Aggregates of all records, or of each group of By."),
        *(Step("Aggregates", _form(name, dict(each.parameters)), _meaning(each)) for name, each in AGGREGATES.items()),
        Step("Functions of records", ", ".join(sorted(FUNCTIONS)), ""),
        Step("Not released by this service", ", ".join(refused), "The declarations do not bound their running time."),
    ]


def _form(name: str, parameters: Iterable[Any]) -> str:
    """The call in text, with optional arguments in brackets; a parameter has a name or is one."""
    named = (f"[{one.name}]" if getattr(one, "optional", False) else getattr(one, "name", one) for one in parameters)
    return f"{name}({', '.join(named)})"


def _meaning(described: object) -> str:
    """The first sentence of a docstring, without markup."""
    return (inspect.getdoc(described) or "").partition("\n")[0].replace("`", "")
