"""Schemas of requests and responses, as OpenAPI shows them, and the guide of the page."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from wpinq.api.query import Query
from wpinq.expr.catalogue import FUNCTIONS
from wpinq.expr.nodes import write_value
from wpinq.expr.types import BOOL, FLOAT, INT, STR, CategoryOf, TupleOf
from wpinq.measure.answer_rows import CONFIDENCE
from wpinq.measure.group import LONGEST_LABEL
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators.source import Source
from wpinq.service.users import Token, UserRole
from wpinq.sinks.sink import SINKS
from wpinq.tables.agg import AGGREGATES

# The guide: example programs over a source, and the steps of programs.

_SELECT = "A table in place of a program; its epsilon stands beside it, or in OPTIONS(epsilon = 1)."
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
        Step("SQL", "SELECT g, COUNT(*) AS n, AVG(CLAMP(x, 0, 9)) FROM t WHERE g IN (1, 2) GROUP BY g", _SELECT),
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


# Requests and responses.


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
    """A text program, a SELECT, or measurements by name."""

    program: str | None = Field(None, description="a text program; the declared sources are known in it")
    parameters: dict[str, str | int | bool] = Field({}, description="values of its parameters; numbers may be text")
    sql: str | None = Field(None, description="a SELECT over the declared sources; its answer is named sql")
    epsilon: Epsilon | None = Field(None, description="the cost of sql, unless OPTIONS(epsilon = 1) states it there")
    measurements: dict[str, dict[str, Any]] | None = Field(
        None, description="JSON plans by name, as wpinq.measure.measurement writes them"
    )
    confidence: float = Field(CONFIDENCE, gt=0, lt=1, description="of each interval by itself")
    fresh: bool = Field(False, description="whether new noise is drawn, at full cost, where it was released before")

    @model_validator(mode="after")
    def _one_of_three(self) -> ProgramRequest:
        if [self.program, self.sql, self.measurements].count(None) != 2:
            raise ValueError("give a program, sql or measurements, one of the three")
        if self.sql is None and self.epsilon is not None:
            raise ValueError("epsilon is the cost of sql: programs and measurements state theirs")
        if self.sql is not None and self.parameters:
            raise ValueError("parameters are those of a program: write constants into sql")
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
    kind: str = Field(validation_alias=AliasPath("kind", "name"))
    words: Annotated[str, BeforeValidator(str)] = Field(validation_alias="kind")
    epsilon: Epsilon = Field(validation_alias=AliasPath("measurement", "epsilon"))
    half_width: Cell
    missing: str = Field(description="why there is no half-width")


class ExplanationResponse(_Response):
    """The cost and the accuracy of a program, before anything is spent."""

    bill: Epsilons = Field(description="the cost, before replay and earlier releases of partitions lower it")
    bill_text: str
    program: str | None = Field(None, description="the text program that sql means, and that is released")
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
