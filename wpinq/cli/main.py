"""The command `wpinq` and its subcommands.

Of the values in protected data it prints released answers only. The bill is printed before anything runs, and the
command line is checked before a ledger is made or data are read.
"""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import shtab

import wpinq
from wpinq.cli import audit, explain, ledger, mcp, publish, run, serve, statement, synthesize, synthesize_table
from wpinq.cli.arguments import EXIT_CODES, abandon_stdout, as_options, ledger_file, ledger_place, tell
from wpinq.errors import WpinqError, WpinqWarning, nearest, suggest, system_reason
from wpinq.runtime.public import NO_ARGUMENTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    own_process = arguments is None  # what the process was started with: nothing else runs in it
    if own_process:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a sign must not cost an answer
                stream.reconfigure(errors="backslashreplace")
    code = _run(arguments)
    if code and own_process:
        abandon_stdout()
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            warnings.simplefilter("always", WpinqWarning)  # told, never raised, whatever PYTHONWARNINGS says
            options.command(options)
        if sys.stdout is not None:
            sys.stdout.flush()  # while what goes wrong can still be told
    except WpinqError as error:
        tell(f"wpinq: {as_options(str(error))}")
        return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)
    except KeyboardInterrupt:
        tell("wpinq: interrupted; debits are not refunded")
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:  # of the output: all else that commands read and write has errors of its own
        tell(f"wpinq: the output could not be written ({system_reason(error)})")
        return 1
    return 0


def _warn(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    tell(f"wpinq: {'' if issubclass(category, WpinqWarning) else category.__name__ + ': '}{message}")


class _Parser(argparse.ArgumentParser):
    """A parser that refuses in one line, and whose help does not fail in silence."""

    def error(self, message: str) -> NoReturn:
        tell(f"wpinq: {message}; see {self.prog} --help")
        self.exit(2)

    def format_help(self) -> str:
        listed = Path(__file__).with_name("examples.txt").read_text(encoding="utf-8").splitlines()
        shown = [each for each in listed if each.startswith(f"{self.prog} ")][:2]
        return super().format_help() + "\n".join(["\nexamples:", *(f"  {each}" for each in shown), ""])

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = {"COMMAND": "command", "ACT": "action"}.get(str(action.metavar), "value")
            near = suggest(str(value), map(str, action.choices))
            raise argparse.ArgumentError(None if what != "value" else action, f"there is no {what} {value!r}: {near}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        options, unknown = super().parse_known_args(args, namespace)
        for word in (word.partition("=")[0] for word in unknown if word.startswith("--")):
            known = self._option_string_actions
            near = f": {suggest(word, known)}" if nearest(word, known) else ""
            mend = NO_ARGUMENTS.get(word.removeprefix("--"))
            self.error(f"there is no option {word}" + (f": {mend}" if mend else near))
        return options, unknown

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout and file is not None:
            print(message, end="", flush=True)
        else:
            tell(message.rstrip("\n"))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="wpinq", description="Differentially private queries over weighted datasets.")
    parser.add_argument("--version", action="version", version=f"wpinq {wpinq.__version__}")
    shtab.add_argument_to(parser, help="print a completion script for commands, options and files, and exit")
    parser.set_defaults(command=lambda options: parser.print_help())  # for those who ask for nothing
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in (run, publish, explain, audit, ledger, statement, synthesize, synthesize_table, serve, mcp):
        command.add_parser(commands)
    _complete_files(parser)
    return parser


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Have shells complete the paths of commands."""
    for action in parser._actions:
        if action.type in (Path, ledger_file, ledger_place):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
        elif isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _complete_files(below)
