"""What commands share of their arguments: NAME=VALUE pairs, text programs, engines, ledgers."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from wpinq import errors
from wpinq.engines.contract import DEFAULT_ENGINE, ENGINES
from wpinq.errors import BudgetExceeded, EpsilonError, LedgerError, UsageError, WpinqError, system_reason
from wpinq.kernel.ledger import place
from wpinq.kernel.ledger.chain import Head
from wpinq.kernel.ledger.postgres import LedgerURL
from wpinq.language import Program, parse
from wpinq.noise.epsilon import from_nano, parse_budget, to_nano
from wpinq.noise.epsilon_text import format_epsilon

_DATABASE = b"SQLite format 3\0"
#: What stands beside a ledger and is part of it, or tells how far it had come.
_BESIDE = ("-wal", "-shm", "-journal", "-head", "-new")


def add_engine(parser: argparse._ActionsContainer) -> None:
    """Add `--engine`."""
    parser.add_argument("--engine", choices=list(ENGINES), default=DEFAULT_ENGINE, help=f"default: {DEFAULT_ENGINE}")


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Add `--param` and `--records-at-most`, the options of a text program."""
    value = "the value of a program's parameter"
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help=value)
    told = "a public bound on the records of a source, as records_at_most in the program; the data are checked"
    parser.add_argument("--records-at-most", action="append", default=[], metavar="NAME=N", help=told)
    read = "a SELECT over the sources of the program, or FILE.sql with one: a further table to release"
    parser.add_argument("--sql", action="append", default=[], metavar="SELECT", help=read)
    cost = "the epsilon of each --sql, unless the statements have their own in OPTIONS(epsilon = ...)"
    parser.add_argument("--epsilon", metavar="EPSILON", help=cost)


def load_program(options: argparse.Namespace) -> Program:
    """The text program of a command, with its parameters and the bounds of its sources."""
    program = parse(_text(options.program), pairs(options.param, "--param"), name=str(options.program))
    if getattr(options, "sql", None):  # a published table is of a program alone
        program = _with_tables(program, options)
    elif getattr(options, "epsilon", None) is not None:
        raise UsageError("--epsilon is the cost of --sql: a program states its own, as in NoisyCount(0.1, ...)")
    records: dict[str, int] = {}
    for name, number in pairs(options.records_at_most, "--records-at-most").items():
        if name not in program.sources:
            known = ", ".join(program.sources) or "none"
            raise UsageError(f"--records-at-most: the program has no source {name!r}; it has {known}")
        if not (number.isascii() and number.isdigit()):
            raise UsageError(f"--records-at-most {name} is a whole number of records, not {number!r}")
        records[name] = int(number)
    return program.of_records_at_most(records)


def _text(path: Path) -> str:
    check_readable(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{path} cannot be read as text") from None


def _with_tables(program: Program, options: argparse.Namespace) -> Program:
    """The program with a table for each `--sql`."""
    from wpinq.language.sql.statement import sql  # with the extra alone

    named = dict(program)
    for given in options.sql:
        path = Path(given) if given.endswith(".sql") else None
        name = "sql" if path is None else path.stem
        name = name if name not in named else f"{name}{len(named)}"
        text, source = (given, "--sql") if path is None else (_text(path), str(path))
        named[name] = sql(text, program.sources, epsilon=options.epsilon, name=source)
    return Program(named, program.sources, program.parameters)


_VALUES = {"--budget": "EPSILON", "--source": "FILE", "--data-version": "VERSION", "--records-at-most": "N"}


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """NAME to VALUE, as given to a repeatable option."""
    found: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} takes NAME={_VALUES.get(option, 'VALUE')}, not {item!r}")
        if name in found:
            raise UsageError(f"{option} {name} is given twice")
        found[name] = value
    return found


def check_covered(bill: Mapping[str, Fraction], available: Mapping[str, object], option: str) -> None:
    """Refuse a bill that budgets do not cover, before an account is opened with them.

    An account keeps its first budget: `option` says how to give another, with the account in its place.
    """
    for account, cost in bill.items():
        try:
            left = parse_budget(available[account]) if account in available else None
        except EpsilonError as error:
            raise UsageError(f"{option.format(account)}: {error}") from None
        if left is not None and left < to_nano(cost):
            raise BudgetExceeded(
                f"{option.format(account)} does not cover the bill: {account!r} needs {format_epsilon(cost)} and has "
                f"{format_epsilon(from_nano(left))}. Nothing was spent or written: lower epsilon, release less, or "
                "give a larger budget"
            )


def beside(path: Path, ending: str) -> Path:
    """The path of a file that belongs to another one."""
    return path.with_name(path.name + ending)


LEDGER = "the ledger of budgets: a file, created if absent, or a URL of PostgreSQL"


def ledger_place(text: str) -> Path | LedgerURL:
    """The place of a ledger."""
    try:
        return LedgerURL(text) if LedgerURL.matches(text) else Path(text)
    except LedgerError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def ledger_file(text: str) -> Path:
    """The file of a ledger: a URL is refused, and never quoted."""
    if LedgerURL.matches(text):
        raise argparse.ArgumentTypeError(
            "takes a file; PostgreSQL has copies of its own (pg_dump): see docs/budgets.md"
        )
    return Path(text)


def add_ledger_place(parser: argparse.ArgumentParser) -> None:
    """Add the ledger that a command debits, and its expected head."""
    parser.add_argument("--ledger", type=ledger_place, required=True, metavar="LEDGER", help=LEDGER)
    add_expected_head(parser)


def add_ledger(group: argparse._ActionsContainer, source: str) -> None:
    """Add the options of ledger and engine of a synthesis."""
    add = group.add_argument
    add("--ledger", type=ledger_place, metavar="LEDGER", help=LEDGER)
    add("--budget", metavar="EPSILON", help=f"the budget of the source{source} in the ledger; required with --ledger")
    add("--data-version", metavar="VERSION", help="a name for this version of the data")
    add_engine(group)


def check_readable(path: Path) -> None:
    """Refuse what is no file, or none that can be read."""
    if not path.is_file():
        raise UsageError(
            f"{path} is a folder: name a file" if path.is_dir() else f"there is no file {path}: check the path"
        )
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} is not readable: change its mode, or run as its owner")


def ledger_notice(options: argparse.Namespace) -> str:
    """The notice on the ledger of a synthesis, or a refusal of contradictory options."""
    if (options.ledger is None) != (options.budget is None):
        raise UsageError("--ledger and --budget go together: give both or neither")
    if options.data_version is not None and options.ledger is None:
        raise UsageError("--data-version replays from a ledger: give --ledger and --budget")
    if options.ledger is None:
        return "no ledger: the cost of this run is not recorded"
    return f"new ledger: {options.ledger}" if is_new(options.ledger) else ""


def check_writable(path: Path) -> None:
    """Refuse, before anything is spent, a place where no file can be written."""
    folder = path.absolute().parent
    kept = path.exists() and not os.access(path, os.W_OK)
    if kept or path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: name a file in a folder that can be written to")


def check_distinct(written: Iterable[Path], read: Iterable[Path | LedgerURL | None]) -> None:
    """Refuse to write one file twice, or over an input, a database or a file next to one.

    A ledger that is written over gives its budget back, whether this command was told of that ledger or not. Without
    its log it has lost debits, and without its head nothing tells whether it has.
    """
    taken = {_identity(path) for path in read if isinstance(path, Path)}
    for path in written:
        if _identity(path) in taken:
            raise UsageError(f"{path} is a file that this command reads or keeps, or is named twice: write to another")
        taken.add(_identity(path))
        if _is_database(path):
            raise UsageError(f"{path} is a database, which may be a ledger: write to another file")
        whole = path.resolve()
        for ending in _BESIDE:
            kept = whole.with_name(whole.name.removesuffix(ending) or whole.name)
            if kept != whole and (_identity(kept) in taken or _is_database(kept)):
                raise UsageError(f"{path} is kept beside {kept.name}, as a part of that ledger: write to another file")


def _is_database(path: Path) -> bool:
    """Whether a file begins as SQLite's do."""
    try:
        with path.open("rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False


def _identity(path: Path) -> object:
    """What two names of one file share; the path where there is no file yet."""
    try:
        status = path.stat()
    except OSError:
        return path.resolve()
    return status.st_dev, status.st_ino


def is_new(ledger: Path | LedgerURL) -> bool:
    """Whether a ledger is to be made, as none is in PostgreSQL.

    LedgerError where it cannot be, or where the file can be no ledger.
    """
    return isinstance(ledger, Path) and not place.exists(os.path.abspath(ledger), None, create=True)


def add_expected_head(parser: argparse.ArgumentParser) -> None:
    """Add `--expected-head`."""
    told = "the ledger head printed by the last run; a ledger without that entry is refused"
    parser.add_argument("--expected-head", metavar="HEAD", type=_head, help=told)


def _head(text: str) -> str:
    try:
        return str(Head.parse(text))
    except LedgerError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# Errors of the command line alone, what the process ends with, by error, and how it is said.


class NotSaved(WpinqError):
    """What was paid for could not be written where it was wanted."""


class AuditFailed(WpinqError):
    """More is lost on made data than is billed."""


class ReaderGone(WpinqError):
    """The reader of the output went away."""


class Interrupted(WpinqError):
    """The user stopped a run that can go on."""


#: 1 is any other error of ours.
EXIT_CODES: tuple[tuple[type[WpinqError], int], ...] = (
    (UsageError, 2),
    (errors.BudgetExceeded, 3),
    (errors.SourceRejected, 4),
    (errors.EvaluationFailed, 5),
    (LedgerError, 6),
    (errors.LanguageError, 7),
    (NotSaved, 8),
    (AuditFailed, 9),
    (Interrupted, 130),
    (ReaderGone, 141),
)


#: The words of messages for Python, and those for the command line.
_OPTIONS = (
    (r"change it on record with set_budget", "change it on record: wpinq ledger set LEDGER --budget NAME=EPSILON"),
    (r"have the curator raise the budget", "raise the budget: wpinq ledger set LEDGER --budget NAME=EPSILON"),
    (
        r"offer wpinq\.data\.CsvFile\(path, delimiter='(\\t|.)'\)",
        r"give --delimiter '\1', in wpinq run --delimiter NAME='\1'",
    ),
    (r'wp\.source\(\.\.\., columns=\{"(\w+)": "\.\.\."\}\)', r'columns = {\1 = "..."} of its declaration'),
    (r"protect a source of that name first", "check the name"),
    (r'pass a positive number such as 0\.1, Fraction\(1, 3\), "0\.1" or "1/3"', "give one such as 0.1 or 1/3"),
)


def as_options(message: str) -> str:
    """A message in the words of the command line."""
    for python, words in _OPTIONS:
        message = re.sub(python, words, message)
    return message


def tell(message: str) -> None:
    """Write to stderr if it is open, coloured on a terminal: no answer depends on that."""
    # a word that is quoted may be a URL with a password, or a token
    message = re.sub(r"wpinq_[\w-]{43}", "wpinq_…", re.sub(r"://\S*@", "://", message))
    if sys.stderr is not None:  # print would turn to stdout, where the answers go
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
                message = re.sub("^wpinq:", "\x1b[1;31mwpinq:\x1b[0m", message)
            print(message, file=sys.stderr, flush=True)


def unwritten(error: OSError, consequence: str) -> WpinqError:
    """The error that ends a command whose output was paid for and could not be written."""
    if isinstance(error, BrokenPipeError):
        return ReaderGone(f"the reader of the output went away: {consequence}")
    return NotSaved(f"the output could not be written ({system_reason(error)}): {consequence}")


def check_stdout() -> None:
    """Refuse a command that costs something where stdout is closed: its answers would be lost."""
    if sys.stdout is None or sys.stdout.closed:
        raise UsageError("stdout is closed, so answers could not be printed: open it, or send it to a file")


def abandon_stdout() -> None:
    """Drop unwritten output: at its end Python would try again and change the exit status."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
