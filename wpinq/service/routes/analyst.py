"""The web application: what is at which address, and who may ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import wpinq
from wpinq.errors import WpinqError
from wpinq.kernel.analysts import AnalystBudgets
from wpinq.service.app import Front
from wpinq.service.dependencies import (
    AnalystCaller,
    AnyCaller,
    KnownCheck,
    balance_response,
    event_response,
    source_response,
)
from wpinq.service.errors import Refusal, refusal_of, response_parts
from wpinq.service.middleware import GUARDED
from wpinq.service.routes.admin import curate
from wpinq.service.schemas import (
    AnswersResponse,
    BalanceResponse,
    ErrorResponse,
    EventResponse,
    ExplanationResponse,
    ProgramRequest,
    ReleaseRequest,
    SourceResponse,
    UserResponse,
)
from wpinq.service.users import ANALYST, Caller

PAGE = Path(__file__).parent / "page"
_MOST_FAULTS = 3
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse}
    for status in (400, 401, 403, 404, 408, 409, 413, 429, 500, 503, "default")  # the last instead of FastAPI's own 422
}
_WORDS = {404: "there is nothing at this address", 405: "this address does not take this method"}


def web_application(front: Front) -> FastAPI:
    """The application, which finds the caller in the state of a request."""
    made = FastAPI(
        title="wpinq service",
        version=wpinq.__version__,
        description="Differentially private releases, under budgets of each analyst within those of the sources.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would answer with an address that the client made up
        responses=_ERRORS,
        dependencies=[Depends(HTTPBearer(auto_error=False, description="the token that the curator gave you"))],
    )
    _handle_errors(made)
    _for_all(made, front)
    _for_analysts(made, front)
    curate(made, front)
    made.mount("/", StaticFiles(directory=PAGE, html=True))
    return made


def _handle_errors(made: FastAPI) -> None:
    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        body, headers = response_parts(error)
        return Response(body, error.status, headers)

    async def ours(request: Request, error: Exception) -> Response:
        return await refused(request, refusal_of(error))

    async def malformed(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        words = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:_MOST_FAULTS])
        return await refused(request, Refusal(400, "Malformed", f"this is not what is taken here: {words}"))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = _WORDS.get(error.status_code, "this request cannot be read")
        return await refused(request, Refusal(error.status_code, "NoRequest", words))

    made.add_exception_handler(Refusal, refused)
    made.add_exception_handler(WpinqError, ours)
    made.add_exception_handler(RequestValidationError, malformed)
    made.add_exception_handler(HTTPException, http)


def _for_all(made: FastAPI, front: Front) -> None:
    @made.get(f"{GUARDED}me", summary="Who you are to the service")
    def me(caller: AnyCaller) -> UserResponse:
        return UserResponse(name=caller.name, role=caller.role)

    @made.get(f"{GUARDED}sources", summary="The sources and their declarations")
    def sources(caller: AnyCaller) -> list[SourceResponse]:
        closed = front.ledger.suspended()
        return [source_response(name, held, closed) for name, held in front.declared.items()]

    @made.post(f"{GUARDED}explain", summary="What a program costs and gives; nothing is spent")
    async def explain(asked: ProgramRequest, caller: AnyCaller, known: KnownCheck) -> ExplanationResponse:
        told = await front.explained(asked.model_dump(), caller.name if caller.role == ANALYST else None, known)
        return ExplanationResponse(**told)


def _for_analysts(made: FastAPI, front: Front) -> None:
    def own(caller: Caller) -> AnalystBudgets:
        return AnalystBudgets(front.ledger, caller.name, front.declared)

    @made.post(f"{GUARDED}release", summary="Debit the own budgets, and answer")
    async def release(asked: ReleaseRequest, caller: AnalystCaller, known: KnownCheck) -> AnswersResponse:
        told = await front.released(asked.model_dump(exclude={"label"}), caller.name, asked.label, known)
        return AnswersResponse(**told)

    @made.get(f"{GUARDED}remaining", summary="How your budgets stand")
    def remaining(caller: AnalystCaller) -> list[BalanceResponse]:
        return list(map(balance_response, own(caller).balances()))

    @made.get(f"{GUARDED}history", summary="What was debited from your budgets")
    def history(caller: AnalystCaller) -> list[EventResponse]:
        return list(map(event_response, own(caller).history()))
