"""Serializers: explanations, answers, budgets, events and sources as plain data for schemas."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from wpinq.display.explanation import explain_plan
from wpinq.expr.nodes import write_value
from wpinq.kernel.prepare import DeclaredSource
from wpinq.language.write import write_source
from wpinq.marginals.released import MarginalTables
from wpinq.measure.accuracy import Accuracy, accuracy
from wpinq.measure.answer_rows import CONFIDENCE, OWN_COLUMNS, Row, key_fields
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import Measurement
from wpinq.measure.statement import Balance, Event
from wpinq.noise.epsilon import format_epsilon
from wpinq.service.programs import Releases
from wpinq.tables.released import Table

MOST_ROWS = 2_000
"""The most rows of a series for people; `data` holds all."""


def explained(releases: Releases, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Bill, plans and expected intervals of releases."""
    cost = Bill(releases)
    return {
        "bill": {account: format_epsilon(epsilon) for account, epsilon in cost.items()},
        "bill_text": str(cost),
        "plans": dict(_plans(releases)),
        "accuracy": list(_expected(accuracy(releases, confidence))),
    }


def _plans(releases: Releases) -> Iterator[tuple[str, str]]:
    for name, one in releases.items():
        if isinstance(one, Measurement):
            yield name, explain_plan(one.plan, one.epsilon, one.reading, sink=one.sink, listing=one.listing)
        else:
            yield name, str(one)


def _expected(rows: Accuracy) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {
            "name": row.name,
            "kind": row.kind.name,
            "words": str(row.kind),
            "epsilon": format_epsilon(row.measurement.epsilon),
            "half_width": _number(row.half_width),
            "missing": row.missing,
        }


def released(results: Mapping[str, Any], confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Answers by name: as data from which they are read back, and as rows for people."""
    return {name: _released(result, confidence) for name, result in results.items()}


def _released(result: Any, confidence: float) -> dict[str, Any]:
    if isinstance(result, Answers):
        form, series = "answers", [_series_of_answers(result, confidence)]
    elif isinstance(result, Table):
        form, series = "table", list(_series_of_table(result, confidence))
    else:
        assert isinstance(result, MarginalTables)
        form, series = "marginals", list(_series_of_marginals(result, confidence))
    return {"form": form, "data": result.to_json(), "series": series}


def _series_of_answers(answers: Answers, confidence: float) -> dict[str, Any]:
    rows = list(islice(answers.rows(confidence), MOST_ROWS + 1))
    return _series(answers.measurement.sink.noun, key_fields(answers), rows, str(answers.kind))


def _series_of_table(table: Table, confidence: float) -> Iterator[dict[str, Any]]:
    held, fields = table.to_columns(confidence), tuple(table.tabulation.columns)
    keys = [held[field] for field in fields]
    for name in table.answers:
        columns = [held[name], *(held[f"{name}_{end}"] for end in ("low", "high", "kind"))]
        yield _series(name, fields, list(_rows(keys, columns)), str(table.tabulation.kind(name)))


def _series_of_marginals(tables: MarginalTables, confidence: float) -> Iterator[dict[str, Any]]:
    for view in tables.measuring.wanted:
        names = tables.measuring.attributes.named(view)
        if names:
            *labels, estimates, lows, highs, kinds = tables.to_columns(*names, confidence=confidence).values()
        else:
            half, (total,) = tables.half_width(confidence=confidence), tables.counts().ravel().tolist()
            labels, estimates, lows, highs = [], [total], [total - half], [total + half]
            kinds = [tables.kind.name]
        rows = list(_rows(labels, [estimates, lows, highs, kinds]))
        yield _series(" x ".join(names) or "total", tuple(names), rows, str(tables.kind))


def _rows(keys: list[list[Any]], columns: list[list[Any]]) -> Iterator[Row]:
    for place, (estimate, low, high, kind) in enumerate(zip(*columns, strict=True)):
        yield Row(tuple(column[place] for column in keys), estimate, low, high, kind)


def _series(title: str, fields: tuple[str, ...], rows: list[Row], words: str) -> dict[str, Any]:
    """Rows that are plotted and shown together; of very many, the first."""
    shown = rows[:MOST_ROWS]
    return {
        "title": title,
        "fields": list(fields),
        "kind": words,
        "rows": [
            {
                "key": [part if isinstance(part, str) else write_value(part) for part in row.key],
                **{name: _cell(getattr(row, name)) for name in OWN_COLUMNS},
            }
            for row in shown
        ],
        "complete": len(rows) == len(shown),
    }


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(value)
    return write_value(value)


def _number(value: float | None) -> float | str | None:
    """A number as JSON has it: what is not finite, or too large for a browser to be exact, is text."""
    if value is None or (math.isfinite(value) and abs(value) < 2**53):
        return value
    return str(value)


def balance_fields(balance: Balance) -> dict[str, Any]:
    """A budget, with its spent and remaining parts."""
    amounts = {name: format_epsilon(getattr(balance, name)) for name in ("budget", "spent", "remaining")}
    return {"account": balance.account, "unit": balance.unit, **amounts}


def event_fields(event: Event) -> dict[str, Any]:
    """An event of an account."""
    names = ("time", "kind", "account", "description", "label", "actor")
    texts = {name: getattr(event, name) for name in names}
    return {"number": event.sequence, "amount": format_epsilon(event.amount), **texts}


def source_fields(name: str, held: DeclaredSource, suspended: Collection[str]) -> dict[str, Any]:
    """A source as it was declared."""
    word, _, version = held.version.partition(" ")
    return {
        "name": name,
        "account": held.source.account,
        "declaration": write_source(held.source),
        "unit": held.unit + held.source.rows_of_unit,
        "version": version if word == "declared" else None,
        "suspended": held.source.account in suspended,
    }
