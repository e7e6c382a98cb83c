"""Errors of the command line alone, what the process ends with, by error, and how it is said."""

from __future__ import annotations

import contextlib
import os
import sys

from wpinq.errors import (
    BudgetExceeded,
    EvaluationFailed,
    LanguageError,
    LedgerError,
    SourceRejected,
    UsageError,
    WpinqError,
    system_reason,
)


class NotSaved(WpinqError):
    """What was paid for could not be written where it was wanted."""


class ReaderGone(WpinqError):
    """The reader of the output went away."""


class Interrupted(WpinqError):
    """The user stopped a run that can go on."""


EXIT_CODES: tuple[tuple[type[WpinqError], int], ...] = (
    (UsageError, 2),
    (BudgetExceeded, 3),
    (SourceRejected, 4),
    (EvaluationFailed, 5),
    (LedgerError, 6),
    (LanguageError, 7),
    (NotSaved, 8),
    (Interrupted, 130),
    (ReaderGone, 141),
)
"""1 is any other error of ours."""


def tell(message: str) -> None:
    """Say something on stderr, if anybody listens: what becomes of an answer must not hang on that."""
    if sys.stderr is not None:  # print would turn to stdout, where the answers go
        with contextlib.suppress(OSError, ValueError):
            print(message, file=sys.stderr, flush=True)


def unwritten(error: OSError, consequence: str) -> WpinqError:
    """The error that ends a command whose output was paid for and could not be written."""
    if isinstance(error, BrokenPipeError):
        return ReaderGone(f"the reader of the output went away: {consequence}")
    return NotSaved(f"the output could not be written ({system_reason(error)}): {consequence}")


def check_stdout() -> None:
    """Refuse to begin what costs something where stdout is closed: its answers would go nowhere, and nobody be told."""
    if sys.stdout is None or sys.stdout.closed:
        raise UsageError("stdout is closed, so answers could not be printed: open it, or send it to a file")


def abandon_stdout() -> None:
    """Let what is still to be written to stdout go: Python would try again at its end, and end otherwise than we do."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
