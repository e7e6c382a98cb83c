"""Every error that wpinq raises on purpose, under one root.

An error says what is wrong, where, and what to do. None ever carries a protected value: what is known only
from protected data has no place in a message.
"""

from __future__ import annotations

import difflib
import json
import os
import reprlib
import shlex
import sys
import warnings
from collections.abc import Iterable
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction


class WpinqError(Exception):
    """The root of all errors that wpinq raises intentionally."""


class ExpressionError(WpinqError):
    """An expression has a wrong type, or a lambda used a symbol as if it were a value."""


class PlanError(WpinqError):
    """An operator does not fit its inputs, or a plan does not allow the requested use."""


class LanguageError(WpinqError):
    """A text program cannot be read.

    The message shows line, column, the line with a caret, and the fix.

    Attributes
    ----------
    line, column : int
        Where the trouble is, both counted from 1; 0 when it is the program as a whole.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class UsageError(WpinqError):
    """A command line or a configuration is incomplete or contradictory."""


class EpsilonError(WpinqError):
    """An epsilon is not a positive finite number, or a bill cannot be computed."""


class BudgetExceeded(WpinqError):
    """A debit was refused: a source's budget does not cover the bill, and nothing was spent."""


class SourceExhausted(BudgetExceeded):
    """A source has less budget left than an analyst's request costs.

    The words are always the same.
    """


class LedgerError(WpinqError):
    """A ledger cannot be opened, is not a ledger, or was changed by other programs."""


class SourceRejected(WpinqError):
    """The data do not fit the source; raised to the curator before anything is stored.

    Attributes
    ----------
    positions : tuple of int
        Row numbers, from 0, of the first offending rows, for the curator who offered the data.
    missing : bool
        Whether no file has the name, or matches the pattern.
    """

    def __init__(self, message: str, positions: tuple[int, ...] = (), missing: bool = False) -> None:
        super().__init__(message)
        self.positions, self.missing = positions, missing


class SessionError(WpinqError):
    """A session does not allow this use."""


class EvaluationFailed(WpinqError):
    """An engine failed after the debit.

    The message is a constant: the reason may depend on protected data.
    """


class SourceSuspended(SessionError):
    """A source is suspended until the curator resumes it; the message is constant."""


class CallError(WpinqError, TypeError):
    """The arguments of a call do not fit its parameters."""


class UnknownAttribute(WpinqError, AttributeError):
    """An object or module has no attribute of this name."""


class AnswersError(WpinqError):
    """Answers do not contain the requested value, or a file does not contain answers."""


def system_reason(error: OSError) -> str:
    """The system's own words for an error, without the name of a file."""
    return os.strerror(error.errno) if error.errno else "the system gives no reason"


def place_reason(path: str, error: OSError | None = None) -> str:
    """The reason why a ledger cannot be opened or written at a place."""
    directory, whole = os.path.dirname(path), os.path.realpath(path)
    if not os.path.isdir(directory):
        return f"the directory {directory} does not exist: create it first"
    if not os.path.exists(path):
        if os.access(directory, os.W_OK):
            return "there is no such file: check the path, or create the ledger first"
        return f"the directory {directory} is read-only: make it writable to create a ledger there"
    if not os.path.isfile(path):
        return "cannot be opened: it must be a file, and it and its directory must be readable and writable"
    around = [path, os.path.dirname(whole), *(f"{whole}{end}" for end in ("-wal", "-shm", "-head"))]
    for mode, state, wanted in (
        (os.R_OK, "cannot be read", "readable and writable"),
        (os.W_OK, "read-only, and a debit must be recorded", "writable"),
    ):
        if unfit := [each for each in around if os.path.exists(each) and not os.access(each, mode)]:
            return f"{state}: make {', '.join(unfit)} {wanted}"
    reason = f" ({os.strerror(error.errno) if error.errno else error})" if error is not None else ""
    return f"the system refused{reason}: keep it on a local disk with room that is not mounted read-only"


class WpinqWarning(UserWarning):
    """An allowed use that is probably a mistake."""


def warn(message: str) -> None:
    """Warn at the line of the user's own code: the last one outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "wpinq":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, WpinqWarning, stacklevel=level)


def warn_of_column(keys: object, what: str) -> None:
    """Warn of public keys that come as a column or an array of text, as if read off the data."""
    home, kind = type(keys).__module__.partition(".")[0], getattr(getattr(keys, "dtype", None), "kind", "")
    if home in ("pandas", "polars", "pyarrow") or (home == "numpy" and kind in "OSUT"):
        warn(
            f"{what} come as a column: keys that were read off the protected data would reveal records, outside of "
            "every epsilon; give public ones, as a list"
        )


# Names that were misspelt, and which were meant: the end of many a message.


def suggest(name: str, known: Iterable[str]) -> str:
    """The names nearest to a misspelt one, as the end of a message; all where none is near."""
    known = list(known)
    near = nearest(name, known)
    if near:
        return f"did you mean {' or '.join(f'`{match}`' for match in near)}?"
    names = sorted({_folded(candidate): candidate for candidate in reversed(known)}.values())
    if not names:
        return "there is none"
    rest = f" and {len(names) - 40} more" if len(names) > 40 else ""
    return f"there is {', '.join(names[:40])}{rest}"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names nearest to a misspelt one, at most three; none where none is near.

    Examples
    --------
    >>> nearest("Salry", ["city", "salary"]), nearest("x", ["city", "salary"])
    (['salary'], [])
    """
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(_folded(candidate), candidate)
    folded = _folded(name[:100])
    matches = difflib.get_close_matches(folded, by_folded, n=3, cutoff=0.6)
    return [by_folded[match] for match in matches or [other for other in by_folded if other.startswith(folded)][:3]]


def _folded(name: str) -> str:
    return name.casefold().replace("_", "")


def described(value: object) -> str:
    """The text of a wrong argument: a name or number as it is, of others the kind.

    Others may be data.

    Examples
    --------
    >>> described("salry"), described([("Ulm", 31)])
    ("'salry'", 'a list')
    """
    if isinstance(value, int) and abs(value) > 10**100:  # Python prints none of more than 4,300 digits
        return "an integer of more than 100 digits"
    kind = type(value).__name__
    plain = value is None or isinstance(value, (str, int, float, Fraction, Decimal))
    return reprlib.repr(value) if plain else f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"


def described_key(key: object) -> str:
    """The text of a public key, which may be a record or a date, too."""
    return repr(key) if isinstance(key, (tuple, date, time, timedelta, Decimal)) else described(key)


def shorten(text: str, most: int = 60) -> str:
    """A text of so many characters at most, the last of which says that more are left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def install(extra: str) -> str:
    """The command that installs an extra, from the origin of wpinq's own installation.

    The origin is a checkout or a repository, if any.

    Examples
    --------
    >>> install("tables").startswith("pip install ")
    True
    """
    return install_command(extra, _origin())


def install_command(extra: str, origin: object) -> str:
    """The same, from the content of `direct_url.json` (PEP 610).

    It is None where wpinq came from a package index.

    Examples
    --------
    >>> install_command("tables", None)
    "pip install 'wpinq[tables]'"
    >>> install_command("tables", {"url": "file:///src/wpinq", "dir_info": {"editable": True}})
    "pip install --editable '/src/wpinq[tables]'"
    >>> install_command("plots", {"url": "https://example.org/wpinq.git", "vcs_info": {"vcs": "git"}})
    "pip install 'wpinq[plots] @ git+https://example.org/wpinq.git'"
    """
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    match origin:
        case {"url": str(url), "dir_info": {**how}}:
            editable = "--editable " if how.get("editable") is True else ""
            return f"pip install {editable}{shlex.quote(f'{url2pathname(urlparse(url).path)}[{extra}]')}"
        case {"url": str(url), "vcs_info": {"vcs": str(kind)}}:
            return f"pip install {shlex.quote(f'wpinq[{extra}] @ {kind}+{url}')}"
    return f"pip install 'wpinq[{extra}]'"


def _origin() -> object:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return json.loads(distribution("wpinq").read_text("direct_url.json") or "null")
    except (PackageNotFoundError, OSError, ValueError):
        return None
