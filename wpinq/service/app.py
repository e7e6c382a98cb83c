"""The web application: its routes, errors in one shape, and the page for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Path as PathParameter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import wpinq
from wpinq.errors import LedgerError, WpinqError
from wpinq.kernel.ledger.accounts import MARK
from wpinq.language.write import write_source
from wpinq.noise.epsilon import NANO
from wpinq.service import schemas, users as user_store
from wpinq.service.dispatcher import Check, Dispatcher
from wpinq.service.errors import Refusal, log, refusal_of
from wpinq.service.middleware import METRICS, PREFIX
from wpinq.service.users import ANALYST, CURATOR, User, UsersError, admit, set_budgets

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
#: Refuses a user whose token was revoked since.
KnownCheck = Annotated[Check, Depends(_check_known)]
Dispatching = Annotated[Dispatcher, Depends(_dispatcher)]


_InPath = Annotated[str, PathParameter(examples=["alice"])]


def _known_name(name: _InPath, user: CuratorUser, dispatcher: Dispatching) -> str:
    if name not in {each.name for each in dispatcher.users.all()}:
        raise Refusal(404, "NoSuchUser", "there is no user of this name")
    return name


#: The name of a user, in the path: for curators alone, or it would tell who there is.
KnownName = Annotated[str, Depends(_known_name)]
Page = Annotated[schemas.PageQuery, Query()]
Balances, Events = list[schemas.BalanceResponse], list[schemas.EventResponse]


# Routes for all users and for analysts: sources, explanations, releases, own budgets and history.

router = APIRouter(prefix=PREFIX)  # in each route's own path, which the log shows


@router.get("/me", summary="The user of this token", response_model=schemas.UserResponse)
def me(user: AnyUser) -> Any:
    return user


@router.get("/sources", summary="The sources and their declarations")
def sources(user: AnyUser, dispatcher: Dispatching) -> list[schemas.SourceResponse]:
    suspended = dispatcher.ledger.suspended()
    return [
        schemas.SourceResponse(
            name=name,
            account=held.source.account,
            declaration=write_source(held.source),
            unit=held.unit + held.source.rows_of_unit,
            version=held.version.partition("declared ")[2] or None,  # else a name that the session made up
            suspended=held.source.account.partition(":")[0] in suspended,
            examples=schemas.examples(held.source),
        )
        for name, held in dispatcher.declared.items()
    ]


@router.get("/guide", summary="The operators, releases and functions of programs")
def guide(user: AnyUser) -> list[schemas.Step]:
    return schemas.steps()


# what workers answer is of the schema already


@router.post(
    "/explain",
    summary="The cost and accuracy of a program; nothing is spent",
    response_model=schemas.ExplanationResponse,
)
async def explain(
    request: schemas.ProgramRequest, user: AnyUser, check: KnownCheck, dispatcher: Dispatching
) -> JSONResponse:
    analyst = user.name if user.role == ANALYST else None
    return JSONResponse(await dispatcher.explain(request.model_dump(), analyst, check))


@router.post("/release", summary="Debit the caller's budgets, and answer", response_model=schemas.AnswersResponse)
async def release(
    request: schemas.ReleaseRequest, user: AnalystUser, check: KnownCheck, dispatcher: Dispatching
) -> JSONResponse:
    program = request.model_dump(exclude={"label"})
    return JSONResponse(await dispatcher.release(program, user.name, request.label, check))


@router.get("/remaining", summary="The caller's budgets", response_model=Balances)
def remaining(user: AnalystUser, dispatcher: Dispatching) -> Any:
    return dispatcher.ledger.balances(user.name)


@router.get("/history", summary="The debits from the caller's budgets, a page of them", response_model=Events)
def history(user: AnalystUser, dispatcher: Dispatching, page: Page) -> Any:
    return dispatcher.ledger.events(user.name, page.after, page.limit)


# Routes for curators: users, budgets, events, and sources to resume.


@router.get("/accounts", summary="All budgets, of sources and of analysts (curator)", response_model=Balances)
def accounts(user: CuratorUser, dispatcher: Dispatching) -> Any:
    return dispatcher.ledger.balances()


@router.put("/accounts", summary="Set budgets of sources (curator)", response_model=Balances)
def set_source_budgets(request: schemas.BudgetsRequest, user: CuratorUser, dispatcher: Dispatching) -> Any:
    set_budgets(dispatcher.ledger, request.budgets, actor=user.name)
    return dispatcher.ledger.balances()


@router.get("/events", summary="The events of all accounts, a page of them (curator)", response_model=Events)
def events(user: CuratorUser, dispatcher: Dispatching, page: Page) -> Any:
    return dispatcher.ledger.events(None, page.after, page.limit)


@router.get("/users", summary="The users, with their budgets (curator)", response_model=list[schemas.AdmittedResponse])
def users(user: CuratorUser, dispatcher: Dispatching) -> Any:
    ledger, found = dispatcher.ledger, dispatcher.users.all()
    return [{**asdict(each), "admitted": each.admitted, "budgets": ledger.balances(each.name)} for each in found]


@router.post("/users", summary="Add a user; the token is shown only once (curator)", status_code=201)
def add(request: schemas.NewUserRequest, user: CuratorUser, dispatcher: Dispatching) -> schemas.TokenResponse:
    name, days = request.name, request.days
    token = admit(dispatcher.users, dispatcher.ledger, name, request.role, request.budgets, user.name, days)
    return schemas.TokenResponse(name=name, token=token)


@router.put("/users/{name}/budgets", summary="Set budgets of an analyst (curator)", response_model=Balances)
def set_analyst_budgets(
    name: KnownName, request: schemas.BudgetsRequest, user: CuratorUser, dispatcher: Dispatching
) -> Any:
    set_budgets(dispatcher.ledger, request.budgets, name, user.name)
    return dispatcher.ledger.balances(name)


@router.post("/users/{name}/token", summary="A new token for a user, shown only once (curator)")
def renew(
    name: KnownName, user: CuratorUser, dispatcher: Dispatching, days: schemas.TokenDays = None, roll: bool = False
) -> schemas.TokenResponse:
    token = user_store.renew(dispatcher.users, dispatcher.ledger, name, user.name, days, roll)
    return schemas.TokenResponse(name=name, token=token)


@router.delete("/users/{name}", summary="Revoke the token of a user (curator)", status_code=204)
def remove(name: KnownName, user: CuratorUser, dispatcher: Dispatching) -> None:
    user_store.remove(dispatcher.users, dispatcher.ledger, name, user.name)


@router.post("/resume", summary="Resume the sources of an account that a failure suspended (curator)")
def resume(request: schemas.ResumeRequest, user: CuratorUser, dispatcher: Dispatching) -> bool:
    return dispatcher.ledger.resume(request.account, actor=user.name)


# Routes for machines: `/healthz`, `/readyz`, and `/metrics` for the curator.
#
# Metrics have no duration, memory, exit state or row number of an evaluation, and no name of an analyst. Suspensions
# and balances tell of data and of analysts, so no analyst gets them.

health_router = APIRouter(include_in_schema=False, default_response_class=PlainTextResponse)

#: The media type of Prometheus' text format.
TEXT = "text/plain; version=0.0.4; charset=utf-8"


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


# The application: security headers, errors, routes and page.

_MOST_FAULTS = 3
_ABOUT = (
    "Differentially private releases, under budgets of each analyst within those of the sources. Routes, parameters, "
    "fields and kinds of error below /v1 stay as they are, and further ones may be added."
)
_WORDS = {404: "there is nothing at this address", 405: "this address does not take this method"}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_STRICT_TRANSPORT = "max-age=31536000"


def security_headers(encrypted: bool) -> list[tuple[bytes, bytes]]:
    """The headers of every response."""
    headers = _HEADERS | ({"strict-transport-security": _STRICT_TRANSPORT} if encrypted else {})
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def create_app(dispatcher: Dispatcher) -> FastAPI:
    """The application; its middleware puts the user into the state of each request."""
    app = FastAPI(
        title="wpinq service",
        version=wpinq.__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would answer with an address that the client made up
        responses={"default": {"model": schemas.ErrorResponse}},  # instead of FastAPI's own 422
        dependencies=[Depends(HTTPBearer(auto_error=False, description="the token that the curator gave you"))],
        exception_handlers=dict.fromkeys((Refusal, WpinqError, RequestValidationError, HTTPException), _refused),
    )
    app.state.dispatcher = dispatcher
    app.include_router(router)
    app.include_router(health_router)
    app.mount("/", StaticFiles(directory=Path(__file__).parent / "page", html=True))
    _add_examples(app.openapi())  # which the application keeps
    return app


_AGAIN = "Seconds after which to try again, where that is of use."


def _add_examples(document: dict[str, Any]) -> None:
    """Add the examples of requests and responses, and the errors of each route."""
    examples = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            own, responses = examples["routes"][f"{method.upper()} {path}"], route["responses"]
            if "request" in own:
                route["requestBody"]["content"]["application/json"]["example"] = own["request"]
            for response in [each for status, each in responses.items() if status in ("200", "201")]:
                response["content"]["application/json"]["example"] = own["response"]
            for kind in (*examples["every route"], *own["errors"]):
                error = {"kind": kind, **examples["errors"][kind]}
                status = str(error.pop("status"))
                content = {**responses["default"]["content"]["application/json"], "examples": {}}
                held = {"description": HTTPStatus(int(status)).phrase, "content": {"application/json": content}}
                if status in ("429", "503"):
                    held["headers"] = {"Retry-After": {"description": _AGAIN, "schema": {"type": "integer"}}}
                found = responses.setdefault(status, held)["content"]["application/json"]["examples"]
                found[kind] = {"value": {"error": error}}


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        faults = error.errors()[:_MOST_FAULTS]
        words = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        error = Refusal(400, "Malformed", f"this request is invalid: {words}")
    elif isinstance(error, HTTPException):
        words = _WORDS.get(error.status_code, "this request cannot be read")
        error = Refusal(error.status_code, "NoRequest", words)
    return refusal_of(error).response()
