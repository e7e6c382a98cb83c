"""Errors of the command line alone."""

from __future__ import annotations

from wpinq.errors import WpinqError


class UsageError(WpinqError):
    """The command line does not say what is needed."""


class NotSaved(WpinqError):
    """Answers were printed, and could not be written to their files."""


class Interrupted(WpinqError):
    """The user stopped a run that can go on."""
