"""Errors in one shape: a constant, or words that follow from plans and declarations."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from datetime import UTC, datetime
from typing import Any

from starlette.responses import JSONResponse

from wpinq import errors
from wpinq.service.users import UsersError

#: The one message of whatever may hang on data, files or the ledger.
FAILED = "the request failed; debits are not refunded, and the reason is not disclosed"

_CONFLICTS = errors.BudgetExceeded, errors.SourceSuspended
_MISTAKES = errors.LanguageError, errors.PlanError, errors.ExpressionError, errors.EpsilonError
#: Errors whose words follow from what was asked, the declarations and the own budget.
_SHOWN = (*_CONFLICTS, *_MISTAKES, errors.AnswersError, errors.SessionError)


class Refusal(Exception):
    """A request is refused: status, what kind of refusal, and words.

    Attributes
    ----------
    status : int
        Of HTTP.
    kind : str
        A word for programs: the name of an error of the library, or of the service's own.
    message : str
        For people.
    line, column : int
        Where in a program, from 1; 0 where it is none.
    again_in : float
        Seconds after which to try again; 0 where that is of no use.
    """

    def __init__(
        self, status: int, kind: str, message: str, line: int = 0, column: int = 0, again_in: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message
        self.line, self.column, self.again_in = line, column, again_in

    def response(self, **headers: str) -> JSONResponse:
        """The response that tells it, with some more headers."""
        told: dict[str, Any] = {"kind": self.kind, "message": self.message}
        if self.line:
            told |= {"line": self.line, "column": self.column}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.again_in:
            headers["retry-after"] = str(math.ceil(self.again_in))
        return JSONResponse({"error": told}, self.status, headers)


def failure() -> Refusal:
    """The one of all that cannot be told."""
    return Refusal(500, "Failed", FAILED)


def refusal_of(error: BaseException) -> Refusal:
    """The public words of an error: its own where they follow from public facts.

    Those of ledger and users are for the curator alone, who has the log.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, (errors.LedgerError, UsersError)):
        log("failure", error=type(error).__name__, reason=str(error))
    if not isinstance(error, _SHOWN):
        return failure()
    status = 409 if isinstance(error, _CONFLICTS) else 400
    line, column = (error.line, error.column) if isinstance(error, errors.LanguageError) else (0, 0)
    return Refusal(status, type(error).__name__, str(error), line, column)


def busy() -> Refusal:
    """The refusal of who would have to wait too long."""
    return Refusal(503, "Busy", "too many requests at this time: try again later", again_in=5.0)


def overloaded(seconds: float) -> Refusal:
    """The refusal of a release for which the machine has too little time."""
    words = "this machine is too busy with other work: nothing was debited, try again later"
    return Refusal(503, "Overloaded", words, again_in=seconds)


def too_often(seconds: float) -> Refusal:
    """The refusal of who asks too often."""
    return Refusal(429, "TooOften", f"too many of your requests: try again in {math.ceil(seconds)} s", again_in=seconds)


# The log: one line of JSON an event, without data, tokens, programs, labels or durations. It has addresses of clients
# where the configuration asks for them.


def log(event: str, **what: str | int) -> None:
    """Write a line to stderr, if anybody listens."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **what}
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(json.dumps(line) + "\n")
        sys.stderr.flush()
