"""The web application: routes, errors in one shape, and the page for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import wpinq
from wpinq.errors import LedgerError, WpinqError
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.errors import Refusal, log, refusal_of, response_parts
from wpinq.service.routes import health_router, router
from wpinq.service.schemas import ErrorResponse
from wpinq.service.users import UsersError

_MOST_FAULTS = 3
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse}
    for status in (400, 401, 403, 404, 408, 409, 413, 429, 500, 503, "default")  # the last instead of FastAPI's own 422
}
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
        description="Differentially private releases, under budgets of each analyst within those of the sources.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would answer with an address that the client made up
        responses=_ERRORS,
        dependencies=[Depends(HTTPBearer(auto_error=False, description="the token that the curator gave you"))],
        exception_handlers=dict.fromkeys((Refusal, WpinqError, RequestValidationError, HTTPException), _refused),
    )
    app.state.dispatcher = dispatcher
    app.include_router(router)
    app.include_router(health_router)
    app.mount("/", StaticFiles(directory=Path(__file__).parent / "page", html=True))
    return app


async def _refused(request: Request, error: Exception) -> Response:
    refusal = _refusal(error)
    body, headers = response_parts(refusal)
    return Response(body, refusal.status, headers)


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RequestValidationError):
        faults = error.errors()[:_MOST_FAULTS]
        words = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        return Refusal(400, "Malformed", f"this request is invalid: {words}")
    if isinstance(error, HTTPException):
        words = _WORDS.get(error.status_code, "this request cannot be read")
        return Refusal(error.status_code, "NoRequest", words)
    if isinstance(error, (LedgerError, UsersError)):
        log("failure", error=type(error).__name__, reason=str(error))  # for the curator alone
    return refusal_of(error)
