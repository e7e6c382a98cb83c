"""The routes of analysts, curators and machines, with the user and dispatcher they need."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import PlainTextResponse

from wpinq.errors import LedgerError
from wpinq.kernel.ledger.accounts import MARK
from wpinq.noise.epsilon import NANO
from wpinq.service import schemas
from wpinq.service.dispatcher import Check, Dispatcher
from wpinq.service.errors import Refusal, log
from wpinq.service.guide import Step, steps
from wpinq.service.middleware import METRICS, PREFIX
from wpinq.service.users import ANALYST, CURATOR, User, UsersError, admit, set_budgets
from wpinq.service.users import remove as remove_user
from wpinq.service.users import renew as renew_token

# Dependencies of the routes: the user of a request, by role, and the dispatcher.


def _user(request: Request) -> Any:
    return request.scope["state"]["user"]  # the middleware refused everybody else


def _curator(user: Annotated[User, Depends(_user)]) -> Iterator[User]:
    """Shows errors of the ledger and of the users in their own words, which a curator may read."""
    if user.role != CURATOR:
        raise Refusal(403, "NotCurator", "this is for curators only")
    try:
        yield user
    except (LedgerError, UsersError) as error:
        raise Refusal(409, type(error).__name__, str(error)) from None


def _analyst(user: Annotated[User, Depends(_user)]) -> User:
    if user.role != ANALYST:
        raise Refusal(403, "NotAnalyst", "this is for analysts only: a curator has no budget; add an analyst")
    return user


def _check_known(request: Request) -> Any:
    return request.scope["state"]["check_known"]


def _dispatcher(request: Request) -> Any:
    return request.app.state.dispatcher


AnyUser = Annotated[User, Depends(_user)]
AnalystUser = Annotated[User, Depends(_analyst)]
CuratorUser = Annotated[User, Depends(_curator)]
KnownCheck = Annotated[Check, Depends(_check_known)]
"""Refuses a user whose token was revoked since."""
Dispatching = Annotated[Dispatcher, Depends(_dispatcher)]


def _known_name(name: str, user: CuratorUser, dispatcher: Dispatching) -> str:
    if name not in {each.name for each in dispatcher.users.all()}:
        raise Refusal(404, "NoSuchUser", "there is no user of this name")
    return name


KnownName = Annotated[str, Depends(_known_name)]
"""The name of a user, in the path: for curators alone, or it would tell who there is."""
Page = Annotated[schemas.PageQuery, Query()]


# Routes for all users and for analysts: sources, explanations, releases, own budgets and history.

router = APIRouter(prefix=PREFIX)  # in each route's own path, which the log shows


@router.get("/me", summary="The user of this token")
def me(user: AnyUser) -> schemas.UserResponse:
    return schemas.UserResponse.model_validate(user)


@router.get("/sources", summary="The sources and their declarations")
def sources(user: AnyUser, dispatcher: Dispatching) -> list[schemas.SourceResponse]:
    suspended = dispatcher.ledger.suspended()
    return [schemas.source_response(*each, suspended) for each in dispatcher.declared.items()]


@router.get("/guide", summary="The operators, releases and functions of programs")
def guide(user: AnyUser) -> list[Step]:
    return steps()


@router.post("/explain", summary="The cost and accuracy of a program; nothing is spent")
async def explain(
    request: schemas.ProgramRequest, user: AnyUser, check: KnownCheck, dispatcher: Dispatching
) -> schemas.ExplanationResponse:
    analyst = user.name if user.role == ANALYST else None
    return schemas.ExplanationResponse(**await dispatcher.explain(request.model_dump(), analyst, check))


@router.post("/release", summary="Debit the caller's budgets, and answer")
async def release(
    request: schemas.ReleaseRequest, user: AnalystUser, check: KnownCheck, dispatcher: Dispatching
) -> schemas.AnswersResponse:
    program = request.model_dump(exclude={"label"})
    return schemas.AnswersResponse(**await dispatcher.release(program, user.name, request.label, check))


def _balances(dispatcher: Dispatcher, analyst: str | None = None) -> list[schemas.BalanceResponse]:
    return list(map(schemas.BalanceResponse.model_validate, dispatcher.ledger.balances(analyst)))


@router.get("/remaining", summary="The caller's budgets")
def remaining(user: AnalystUser, dispatcher: Dispatching) -> list[schemas.BalanceResponse]:
    return _balances(dispatcher, user.name)


@router.get("/history", summary="The debits from the caller's budgets, a page of them")
def history(user: AnalystUser, dispatcher: Dispatching, page: Page) -> list[schemas.EventResponse]:
    return list(map(schemas.EventResponse.model_validate, dispatcher.ledger.events(user.name, page.after, page.limit)))


# Routes for curators: users, budgets, events, and sources to resume.


@router.get("/accounts", summary="All budgets, of sources and of analysts (curator)")
def accounts(user: CuratorUser, dispatcher: Dispatching) -> list[schemas.BalanceResponse]:
    return _balances(dispatcher)


@router.put("/accounts", summary="Set budgets of sources (curator)")
def set_source_budgets(
    request: schemas.BudgetsRequest, user: CuratorUser, dispatcher: Dispatching
) -> list[schemas.BalanceResponse]:
    set_budgets(dispatcher.ledger, request.budgets, actor=user.name)
    return _balances(dispatcher)


@router.get("/events", summary="The events of all accounts, a page of them (curator)")
def events(user: CuratorUser, dispatcher: Dispatching, page: Page) -> list[schemas.EventResponse]:
    return list(map(schemas.EventResponse.model_validate, dispatcher.ledger.events(None, page.after, page.limit)))


@router.get("/users", summary="The users, with their budgets (curator)")
def users(user: CuratorUser, dispatcher: Dispatching) -> list[schemas.AdmittedResponse]:
    return [
        schemas.AdmittedResponse(**asdict(each), admitted=each.admitted, budgets=_balances(dispatcher, each.name))
        for each in dispatcher.users.all()
    ]


@router.post("/users", summary="Add a user; the token is shown only once (curator)", status_code=201)
def add(request: schemas.NewUserRequest, user: CuratorUser, dispatcher: Dispatching) -> schemas.TokenResponse:
    name, days = request.name, request.days
    token = admit(dispatcher.users, dispatcher.ledger, name, request.role, request.budgets, user.name, days)
    return schemas.TokenResponse(name=name, token=token)


@router.put("/users/{name}/budgets", summary="Set budgets of an analyst (curator)")
def set_analyst_budgets(
    name: KnownName, request: schemas.BudgetsRequest, user: CuratorUser, dispatcher: Dispatching
) -> list[schemas.BalanceResponse]:
    set_budgets(dispatcher.ledger, request.budgets, name, user.name)
    return _balances(dispatcher, name)


@router.post("/users/{name}/token", summary="A new token for a user, shown only once (curator)")
def renew(
    name: KnownName, user: CuratorUser, dispatcher: Dispatching, days: schemas.TokenDays = None, roll: bool = False
) -> schemas.TokenResponse:
    token = renew_token(dispatcher.users, dispatcher.ledger, name, user.name, days, roll)
    return schemas.TokenResponse(name=name, token=token)


@router.delete("/users/{name}", summary="Revoke the token of a user (curator)", status_code=204)
def remove(name: KnownName, user: CuratorUser, dispatcher: Dispatching) -> None:
    remove_user(dispatcher.users, dispatcher.ledger, name, user.name)


@router.post("/resume", summary="Resume the sources of an account that a failure suspended (curator)")
def resume(request: schemas.ResumeRequest, user: CuratorUser, dispatcher: Dispatching) -> bool:
    return dispatcher.ledger.resume(request.account, actor=user.name)


# Routes for machines: `/healthz`, `/readyz`, and `/metrics` for the curator.
#
# Metrics have no duration, memory, exit state or row number of an evaluation, and no name of an analyst. Suspensions
# and balances tell of data and of analysts, so no analyst gets them.

health_router = APIRouter(include_in_schema=False, default_response_class=PlainTextResponse)

TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of Prometheus' text format."""


@health_router.get("/healthz")
async def health() -> str:
    """Whether the web process answers."""
    return "yes"


@health_router.get("/readyz")
def ready(dispatcher: Dispatching) -> PlainTextResponse:
    """Whether ledger and users can be read; the reason why not is for the log."""
    try:
        dispatcher.check_files()
    except (LedgerError, UsersError, OSError) as error:
        log("not ready", reason=str(error))
        return PlainTextResponse("no", 503)
    return PlainTextResponse("yes")


@health_router.get(METRICS)
def metrics(user: CuratorUser, dispatcher: Dispatching) -> PlainTextResponse:
    """The metrics in Prometheus' text format."""
    return PlainTextResponse("".join(f"{line}\n" for line in _metric_lines(dispatcher)), media_type=TEXT)


def _metric_lines(dispatcher: Dispatcher) -> Iterator[str]:
    counted = dict(dispatcher.requests)  # which another thread counts on
    requests = [({"route": route, "status": str(status)}, n) for (route, status), n in counted.items()]
    refused = [(labels, n) for labels, n in requests if labels["status"] >= "400"]
    queues = [({"queue": name}, length) for name, length in dispatcher.waiting().items()]
    accounts = [each for each in dispatcher.ledger.accounts() if MARK not in each.name and "/" not in each.name]
    suspended = [({"account": each.name}, int(each.suspended)) for each in accounts]
    left = [({"account": each.name}, each.remaining / NANO) for each in accounts]
    yield from _family("wpinq_requests_total", "counter", "Requests since the web process began.", requests)
    yield from _family("wpinq_refusals_total", "counter", "Requests with a status of 400 or more.", refused)
    yield from _family("wpinq_queue_length", "gauge", "Requests that wait for a worker.", queues)
    yield from _family("wpinq_account_suspended", "gauge", "1 where an account is suspended.", suspended)
    yield from _family("wpinq_account_epsilon_left", "gauge", "The remaining budget.", left)


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """The samples of one metric; labels are escaped as in JSON.

    Examples
    --------
    >>> for line in _family("length", "gauge", "Requests.", [({"queue": "planner"}, 2)]):
    ...     print(line)
    # HELP length Requests.
    # TYPE length gauge
    length{queue="planner"} 2
    """
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inside = ",".join(f"{label}={json.dumps(text, ensure_ascii=False)}" for label, text in labels.items())
        yield f"{name}{{{inside}}} {value}"
