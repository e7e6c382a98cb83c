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
from wpinq.errors import WpinqError
from wpinq.service import routes
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.errors import Refusal, refusal_of, response_parts
from wpinq.service.schemas import ErrorResponse

PAGE = Path(__file__).parent / "page"
_MOST_FAULTS = 3
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse}
    for status in (400, 401, 403, 404, 408, 409, 413, 429, 500, 503, "default")  # the last instead of FastAPI's own 422
}
_WORDS = {404: "there is nothing at this address", 405: "this address does not take this method"}


def create_app(dispatcher: Dispatcher) -> FastAPI:
    """The application. The middleware puts the user into the state of each request."""
    app = FastAPI(
        title="wpinq service",
        version=wpinq.__version__,
        description="Differentially private releases, under budgets of each analyst within those of the sources.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would answer with an address that the client made up
        responses=_ERRORS,
        dependencies=[Depends(HTTPBearer(auto_error=False, description="the token that the curator gave you"))],
        exception_handlers={
            Refusal: _refused,
            WpinqError: _own_error,
            RequestValidationError: _malformed,
            HTTPException: _no_request,
        },
    )
    app.state.dispatcher = dispatcher
    app.include_router(routes.router)
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    body, headers = response_parts(error)
    return Response(body, error.status, headers)


async def _own_error(request: Request, error: Exception) -> Response:
    return await _refused(request, refusal_of(error))


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = error.errors()[:_MOST_FAULTS]
    words = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
    return await _refused(request, Refusal(400, "Malformed", f"this is not what is taken here: {words}"))


async def _no_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = _WORDS.get(error.status_code, "this request cannot be read")
    return await _refused(request, Refusal(error.status_code, "NoRequest", words))
