"""Schemas of requests and responses, as the OpenAPI document shows them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from itertools import islice, product
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from wpinq.api.query import Query
from wpinq.engines.sql.engine import untranslated
from wpinq.errors import PlanError, shorten, suggest
from wpinq.expr.nodes import write_value
from wpinq.kernel.prepare import DeclaredSource
from wpinq.language import parse
from wpinq.language.write import write_source
from wpinq.marginals.released import MarginalTables
from wpinq.measure.accuracy import accuracy
from wpinq.measure.answer_rows import CONFIDENCE, Row
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.group import LONGEST_LABEL, Compound, flattened, waits_for_keys
from wpinq.measure.measurement import Measurement, measurement_from_json
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.node import sources
from wpinq.service.guide import Example, examples
from wpinq.service.users import Token, UserRole
from wpinq.tables.released import Table


def _cell(value: Any) -> float | str | None:
    """A value for JSON: a number that is not finite, or too large for a browser, is text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if math.isfinite(value) and abs(value) < 2**53 else str(value)
    return write_value(value)


def _epsilon(given: object) -> object:
    return format_epsilon(given) if isinstance(given, Fraction) else given


Cell = Annotated[float | str | None, BeforeValidator(_cell)]
Epsilon = Annotated[
    str,
    BeforeValidator(_epsilon),
    Field(description='an exact number, as "0.1" or "1/3"', examples=["0.5"], max_length=100),
]
TokenDays = Annotated[int | None, Field(ge=1, le=36_500, description="the life of the token; null is without end")]
Epsilons = Annotated[dict[str, Epsilon], Field(description="account to epsilon", max_length=1_000)]


class _Request(BaseModel):
    """The base of all requests: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ProgramRequest(_Request):
    """A text program, or measurements by name."""

    program: str | None = Field(None, description="a text program; the declared sources are known in it")
    parameters: dict[str, str | int | bool] = Field({}, description="values of its parameters; numbers may be text")
    measurements: dict[str, dict[str, Any]] | None = Field(
        None, description="JSON plans by name, as wpinq.measure.measurement writes them"
    )
    confidence: float = Field(CONFIDENCE, gt=0, lt=1, description="of each interval by itself")
    fresh: bool = Field(False, description="whether new noise is drawn, at full cost, where it was released before")

    @model_validator(mode="after")
    def _one_of_two(self) -> ProgramRequest:
        if (self.program is None) == (self.measurements is None):
            raise ValueError("give a program or measurements, one of the two")
        return self


class ReleaseRequest(ProgramRequest):
    """A program to release, with a label for the debit."""

    label: str | None = Field(None, max_length=LONGEST_LABEL, description="stored as plain text in the ledger")


class NewUserRequest(_Request):
    """A user to add."""

    name: str = Field(max_length=64, examples=["alice"])
    role: UserRole = "analyst"
    budgets: Epsilons = {}
    days: TokenDays = None


class ResumeRequest(_Request):
    """A suspended account to resume."""

    account: str


class BudgetsRequest(_Request):
    """Budgets to set."""

    budgets: Epsilons


class PageQuery(BaseModel):
    """The page of a history."""

    after: int = Field(0, ge=0, lt=2**62, description="the number of the last event of the page before")
    limit: int = Field(1_000, ge=1, le=1_000, description="the most events of the page")


class _Response(BaseModel):
    """The base of responses, which are read off what the library has."""

    model_config = ConfigDict(from_attributes=True)


class ErrorDetail(BaseModel):
    """The reason of a refusal."""

    kind: str = Field(description="a word for programs", examples=["BudgetExceeded", "LanguageError", "Failed"])
    message: str
    line: int | None = Field(None, description="of the program, from 1")
    column: int | None = None


class ErrorResponse(BaseModel):
    """Every error."""

    error: ErrorDetail


class UserResponse(_Response):
    """The user of a token."""

    name: str
    role: UserRole


class BalanceResponse(_Response):
    """A budget, with its spent and remaining parts."""

    account: str
    unit: str = Field(description="the protected unit in words")
    budget: Epsilon
    spent: Epsilon
    remaining: Epsilon


class SourceResponse(_Response):
    """A source as the curator declared it."""

    name: str
    account: str = Field(description="the account that pays")
    declaration: str = Field(description="the statement of a text program")
    unit: str
    version: str | None = Field(
        description="the curator's name for this version of the data; without one nothing replays later"
    )
    suspended: bool = Field(description="true while suspended, until the curator resumes it")
    examples: list[Example] = Field(description="programs over it, from its declaration alone")


class ExpectedResponse(_Response):
    """The expected accuracy of one number."""

    name: str
    kind: str
    words: str
    epsilon: Epsilon
    half_width: Cell
    missing: str = Field(description="why there is no half-width")


class ExplanationResponse(_Response):
    """The cost and the accuracy of a program, before anything is spent."""

    bill: Epsilons = Field(description="the cost, before replay and earlier releases of partitions lower it")
    bill_text: str
    plans: dict[str, str]
    accuracy: list[ExpectedResponse]
    quote: Epsilons | None = Field(None, description="the debit from the caller's budgets now")
    affords: int | None = Field(None, description="further releases, each new, within the caller's budgets")
    seconds: float | None = Field(None, description="the duration of a release, independent of the data")
    not_admitted: str = Field("", description="the reason why the limits do not admit it, with a remedy")
    unbudgeted: list[str] = Field([], description="accounts that it needs and the caller has no budget for")


class RowResponse(_Response):
    """One answer."""

    key: list[Annotated[str, BeforeValidator(lambda part: part if isinstance(part, str) else write_value(part))]]
    estimate: Cell
    low: Cell
    high: Cell
    kind: str


class SeriesResponse(_Response):
    """Answers that are shown together."""

    title: str
    fields: list[str]
    kind: str
    rows: list[RowResponse]
    complete: bool = Field(description="false where there are more rows in `data`")


class ReleasedResponse(_Response):
    """The answers of one release."""

    form: Literal["answers", "table", "marginals"]
    data: dict[str, Any] = Field(description="as the library saves it, to be read back by it")
    series: list[SeriesResponse]


class AnswersResponse(_Response):
    """The released answers."""

    answers: dict[str, ReleasedResponse]
    remaining: Epsilons


class EventResponse(_Response):
    """One thing that happened to an account."""

    number: int = Field(validation_alias=AliasChoices("sequence", "number"))
    time: str
    kind: str
    account: str
    amount: Epsilon
    description: str
    label: str
    actor: str = Field(description="the curator's name, of an act of theirs")


class AdmittedResponse(UserResponse):
    """Somebody in the register, with their tokens, which are not shown, and their budgets."""

    added: str
    admitted: bool
    tokens: list[Token]
    budgets: list[BalanceResponse]


class TokenResponse(_Response):
    """A token, shown this once."""

    name: str
    token: str


# Programs of requests: text or JSON plans, over the sources that the curator declared and no others.

Releases = dict[str, Measurement | Compound]

MOST_RELEASES = 500
"""The most that one request may release together."""


def releases_of(request: Mapping[str, Any], declared: Mapping[str, Query]) -> Releases:
    """The releases of a request, by name.

    Parameters
    ----------
    request : mapping
        With `program`, a text, and perhaps its `parameters`; or with `measurements`, by name, as
        `measurement_to_json` writes them.
    declared : mapping
        The declared sources.

    Raises
    ------
    LanguageError, PlanError
        At the first thing that is wrong. They follow from the request and the declarations alone.
    """
    if request.get("program") is None:
        releases = _from_plans(request, declared)
    else:
        releases = dict(parse(request["program"], request.get("parameters") or {}, sources=declared).releases)
    if not releases:
        raise PlanError("nothing is released: end a query with NoisyCount(epsilon, over: ...) and give it a name")
    if len(releases) > MOST_RELEASES:
        raise PlanError(f"a request releases at most {MOST_RELEASES} measurements; split it")
    for name, one in releases.items():
        if waits_for_keys(one):
            raise PlanError(
                f"{name} has no public keys: write NoisyCount(epsilon, over: range(0, 100)) or the like, for a service "
                "answers for all keys at once"
            )
    return releases


def _from_plans(request: Mapping[str, Any], declared: Mapping[str, Query]) -> Releases:
    made: Releases = {name: measurement_from_json(held) for name, held in (request.get("measurements") or {}).items()}
    for name, source in sources(one.plan for one in flattened(list(made.values()))).items():
        if name not in declared:
            raise PlanError(f"there is no source {shorten(name)!r} here; {suggest(name, declared)}")
        known = declared[name].plan.operator
        if source != known:
            raise PlanError(f"the source {name!r} is declared otherwise here: {write_source(known)}")
    return made


# Serializers: explanations, answers, budgets, events and sources as plain data for schemas.

MOST_ROWS = 2_000
"""The most rows of a series for people; `data` holds all."""


def explained(releases: Releases, confidence: float) -> dict[str, Any]:
    """Bill, plans and expected intervals of releases."""
    cost = Bill(releases)
    return {
        "bill": {account: format_epsilon(epsilon) for account, epsilon in cost.items()},
        "bill_text": str(cost),
        "plans": {name: _plan(one) if isinstance(one, Measurement) else str(one) for name, one in releases.items()},
        "accuracy": [
            {
                "name": row.name,
                "kind": row.kind.name,
                "words": str(row.kind),
                "epsilon": format_epsilon(row.measurement.epsilon),
                "half_width": _cell(row.half_width),
                "missing": row.missing,
            }
            for row in accuracy(releases, confidence)
        ],
    }


def _plan(one: Measurement) -> str:
    """The explanation of one measurement, from its program alone; no database is opened."""
    return one.explain(missing=untranslated(one.plan))


def released(result: Any, confidence: float) -> dict[str, Any]:
    """What was released: as data from which it is read back, and as rows for people."""
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
    return _series(answers.measurement.sink.noun, answers.key_fields, rows, str(answers.kind))


def _series_of_table(table: Table, confidence: float) -> Iterator[dict[str, Any]]:
    held, kinds, fields = table.to_columns(confidence), table.kinds, tuple(table.tabulation.columns)
    keys = list(zip(*(held[field] for field in fields), strict=True)) if fields else [()]
    for name in table.answers:
        ends = [held.get(f"{name}_{end}", [None] * len(table)) for end in ("low", "high")]
        columns = zip(keys, held[name], *ends, [kinds[name]] * len(table), strict=True)
        rows = [Row(*cells) for cells in columns]
        yield _series(name, fields, rows, str(table.tabulation.kind(name)))


def _series_of_marginals(tables: MarginalTables, confidence: float) -> Iterator[dict[str, Any]]:
    kind = tables.kind
    for view in tables.measuring.wanted:
        names = tables.measuring.attributes.named(view)
        half = tables.half_width(*names, confidence=confidence)
        keys = product(*(tables.attributes[place].labels for place in view))
        counts = zip(keys, tables.counts(*names).ravel().tolist(), strict=True)
        rows = [Row(key, count, count - half, count + half, kind.name) for key, count in counts]
        yield _series(" x ".join(names) or "total", tuple(names), rows, str(kind))


def _series(title: str, fields: tuple[str, ...], rows: list[Row], words: str) -> dict[str, Any]:
    """Rows that are plotted and shown together; of very many, the first."""
    shown = [RowResponse.model_validate(row).model_dump() for row in rows[:MOST_ROWS]]
    complete = len(rows) == len(shown)
    return {"title": title, "fields": list(fields), "kind": words, "rows": shown, "complete": complete}


def source_response(name: str, held: DeclaredSource, suspended: Collection[str]) -> SourceResponse:
    """A source as it was declared."""
    word, _, version = held.version.partition(" ")
    return SourceResponse(
        name=name,
        account=held.source.account,
        declaration=write_source(held.source),
        unit=held.unit + held.source.rows_of_unit,
        version=version if word == "declared" else None,
        suspended=held.source.account.partition(":")[0] in suspended,
        examples=examples(held.source),
    )
