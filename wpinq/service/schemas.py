"""Schemas of requests and responses, as the OpenAPI document shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wpinq.measure.answer_rows import CONFIDENCE
from wpinq.measure.group import LONGEST_LABEL
from wpinq.service.users import UserRole

Epsilon = Annotated[str, Field(description='an exact number, as "0.1" or "1/3"', examples=["0.5"], max_length=100)]
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

    label: str | None = Field(None, max_length=LONGEST_LABEL, description="kept in clear in the ledger")


class NewUserRequest(_Request):
    """A user to add."""

    name: str = Field(max_length=64, examples=["alice"])
    role: UserRole = "analyst"
    budgets: Epsilons = {}


class ResumeRequest(_Request):
    """A suspended account to resume."""

    account: str


class BudgetsRequest(_Request):
    """Budgets to set."""

    budgets: Epsilons


class ErrorDetail(BaseModel):
    """The reason of a refusal."""

    kind: str = Field(description="a word for programs", examples=["BudgetExceeded", "LanguageError", "Failed"])
    message: str
    line: int | None = Field(None, description="of the program, from 1")
    column: int | None = None


class ErrorResponse(BaseModel):
    """Every error."""

    error: ErrorDetail


class UserResponse(BaseModel):
    """The user of a token."""

    name: str
    role: UserRole


class BalanceResponse(BaseModel):
    """A budget, with its spent and remaining parts."""

    account: str
    unit: str = Field(description="what is protected, in words")
    budget: Epsilon
    spent: Epsilon
    remaining: Epsilon


class SourceResponse(BaseModel):
    """A source as the curator declared it."""

    name: str
    account: str = Field(description="the account that pays")
    declaration: str = Field(description="the statement of a text program")
    unit: str
    version: str | None = Field(
        description="the curator's word for this state of the data; without one nothing replays later"
    )
    suspended: bool = Field(description="true where it answers no analyst until the curator resumes it")


class ExpectedResponse(BaseModel):
    """The expected accuracy of one number."""

    name: str
    kind: str
    words: str
    epsilon: Epsilon
    half_width: float | str | None
    missing: str = Field(description="why there is no half-width")


class ExplanationResponse(BaseModel):
    """The cost and the accuracy of a program, before anything is spent."""

    bill: Epsilons = Field(description="what it costs, before replay and earlier releases of partitions lower it")
    bill_text: str
    plans: dict[str, str]
    accuracy: list[ExpectedResponse]
    quote: Epsilons | None = Field(None, description="what would be debited from the own budgets now")
    affords: int | None = Field(None, description="how many more releases, anew each time, the own budgets cover")
    seconds: float | None = Field(None, description="how long a release takes, whatever the data are")
    not_admitted: str = Field("", description="why the limits do not admit it, and what would help")
    unbudgeted: list[str] = Field([], description="accounts that it needs and the caller has no budget for")


class RowResponse(BaseModel):
    """One answer."""

    key: list[str]
    estimate: float | str | None
    low: float | str | None
    high: float | str | None
    kind: str


class SeriesResponse(BaseModel):
    """Answers that are shown together."""

    title: str
    fields: list[str]
    kind: str
    rows: list[RowResponse]
    complete: bool = Field(description="false where there are more rows in `data`")


class ReleasedResponse(BaseModel):
    """The answers of one release."""

    form: Literal["answers", "table", "marginals"]
    data: dict[str, Any] = Field(description="as the library saves it, to be read back by it")
    series: list[SeriesResponse]


class AnswersResponse(BaseModel):
    """What was released."""

    answers: dict[str, ReleasedResponse]
    remaining: Epsilons


class EventResponse(BaseModel):
    """One thing that happened to an account."""

    number: int
    time: str
    kind: str
    account: str
    amount: Epsilon
    description: str
    label: str
    actor: str = Field(description="the curator's name, of an act of theirs")


class AdmittedResponse(BaseModel):
    """Somebody in the register, with their budgets."""

    name: str
    role: UserRole
    added: str
    admitted: bool
    budgets: list[BalanceResponse]


class TokenResponse(BaseModel):
    """A token, shown this once."""

    name: str
    token: str
