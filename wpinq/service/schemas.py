"""The bodies of requests and responses, as the OpenAPI document shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wpinq.measure.answer_rows import CONFIDENCE
from wpinq.measure.group import LONGEST_LABEL
from wpinq.service.users import CallerRole

Epsilon = Annotated[str, Field(description='an exact number, as "0.1" or "1/3"', examples=["0.5"], max_length=100)]
Epsilons = Annotated[dict[str, Epsilon], Field(description="account to epsilon", max_length=1_000)]


class GivenBody(BaseModel):
    """What requests have in common: what is not known is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ProgramRequest(GivenBody):
    """What is to be released: a text program, or measurements by name."""

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
    """What is to be released, and what to write beside the debit."""

    label: str | None = Field(None, max_length=LONGEST_LABEL, description="kept in clear in the ledger")


class NewUserRequest(GivenBody):
    """Somebody who is to be given a token."""

    name: str = Field(max_length=64, examples=["alice"])
    role: CallerRole = "analyst"
    budgets: Epsilons = {}


class ResumeRequest(GivenBody):
    """An account whose sources are to answer analysts again."""

    account: str


class BudgetsRequest(GivenBody):
    """Budgets that are to be set."""

    budgets: Epsilons


class ErrorDetail(BaseModel):
    """Why a request was refused."""

    kind: str = Field(description="a word for programs", examples=["BudgetExceeded", "LanguageError", "Failed"])
    message: str
    line: int | None = Field(None, description="of the program, from 1")
    column: int | None = None


class ErrorResponse(BaseModel):
    """Every error there is."""

    error: ErrorDetail


class UserResponse(BaseModel):
    """Who the caller is to the service."""

    name: str
    role: CallerRole


class BalanceResponse(BaseModel):
    """How a budget stands."""

    account: str
    unit: str = Field(description="what is protected, in words")
    budget: Epsilon
    spent: Epsilon
    remaining: Epsilon


class SourceResponse(BaseModel):
    """A source as the curator declared it."""

    name: str
    account: str = Field(description="whose budget pays")
    declaration: str = Field(description="the statement of a text program")
    unit: str
    version: str | None = Field(
        description="the curator's word for this state of the data; without one nothing replays later"
    )
    open: bool = Field(description="false where it answers no analyst until the curator opens it")


class ExpectedBody(BaseModel):
    """How exact one number will be."""

    name: str
    kind: str
    words: str
    epsilon: Epsilon
    half_width: float | str | None
    missing: str = Field(description="why there is no half-width")


class ExplanationResponse(BaseModel):
    """What a program costs and gives, before anything is spent."""

    bill: Epsilons = Field(description="what it costs, before replay and earlier releases of partitions lower it")
    bill_text: str
    plans: dict[str, str]
    accuracy: list[ExpectedBody]
    quote: Epsilons | None = Field(None, description="what would be debited from the own budgets now")
    affords: int | None = Field(None, description="how many more releases, anew each time, the own budgets cover")
    seconds: float | None = Field(None, description="how long a release takes, whatever the data are")
    not_admitted: str = Field("", description="why the limits do not admit it, and what would help")
    unbudgeted: list[str] = Field([], description="accounts that it needs and the caller has no budget for")


class RowBody(BaseModel):
    """One answer."""

    key: list[str]
    estimate: float | str | None
    low: float | str | None
    high: float | str | None
    kind: str


class SeriesBody(BaseModel):
    """Answers that are shown together."""

    title: str
    fields: list[str]
    kind: str
    rows: list[RowBody]
    complete: bool = Field(description="false where there are more rows in `data`")


class ReleasedBody(BaseModel):
    """The answers of one release."""

    form: Literal["answers", "table", "marginals"]
    data: dict[str, Any] = Field(description="as the library saves it, to be read back by it")
    series: list[SeriesBody]


class AnswersResponse(BaseModel):
    """What was released."""

    answers: dict[str, ReleasedBody]
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


class AdmittedResponse(BaseModel):
    """Somebody in the register, with their budgets."""

    name: str
    role: CallerRole
    added: str
    admitted: bool
    budgets: list[BalanceResponse]


class TokenResponse(BaseModel):
    """A token, shown this once."""

    name: str
    token: str
