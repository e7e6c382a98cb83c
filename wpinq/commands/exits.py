"""Errors of the command line alone, and what the process ends with, by error."""

from __future__ import annotations

from wpinq.errors import BudgetExceeded, EvaluationFailed, LanguageError, LedgerError, SourceRejected, WpinqError


class UsageError(WpinqError):
    """The command line does not say what is needed."""


class NotSaved(WpinqError):
    """Answers were printed, and could not be written to their files."""


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
)
"""1 is any other error of ours."""
