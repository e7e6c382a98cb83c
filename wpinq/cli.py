"""The command line: run a text program under budgets, explain it, declare data, look after a ledger,
synthesise a graph.

Of the values in protected data it prints released answers only. The bill is printed before anything runs, and the
command line is checked before a ledger is made or data are read.
"""

from __future__ import annotations

import argparse
import gc
import sys
import warnings
from collections.abc import Callable, Sequence

from wpinq.commands import budget, explain, run, schema, synthesize
from wpinq.commands.exits import EXIT_CODES
from wpinq.errors import WpinqError, WpinqWarning

_COLLECT_RARELY = 100_000, 50, 100
"""Most objects of a command stay to its end: looking through them again and again took a seventh of a synthesis."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    options.own_process = arguments is None  # what the process was started with: nothing else runs in it
    if options.own_process:
        gc.set_threshold(*_COLLECT_RARELY)
    command: Callable[[argparse.Namespace], None] = options.command
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            warnings.simplefilter("always", WpinqWarning)  # told, never raised, whatever PYTHONWARNINGS says
            command(options)
    except WpinqError as error:
        print(f"wpinq: {error}", file=sys.stderr)
        return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)
    except KeyboardInterrupt:
        print("wpinq: interrupted; what was debited stays spent", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    return 0


def _warn(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    print(f"wpinq: {'' if issubclass(category, WpinqWarning) else category.__name__ + ': '}{message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="wpinq", description="Differentially private queries over weighted datasets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (run, explain, schema, budget, synthesize):
        command.add_parser(commands)
    return parser
