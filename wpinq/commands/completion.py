"""`wpinq --print-completion SHELL`: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

SHELLS = ("bash", "zsh")


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to the command line."""
    told = "print what a shell needs to complete commands, options and files, and end"
    parser.add_argument("--print-completion", action=_Print, choices=SHELLS, help=told)


class _Print(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, options: argparse.Namespace, shell: Any, *_: Any) -> None:
        import shtab

        _complete_files(parser, shtab.FILE)
        print(shtab.complete(parser, shell), end="")
        parser.exit()


def _complete_files(parser: argparse.ArgumentParser, how: Any) -> None:
    for action in parser._actions:
        if action.type is Path:
            action.complete = how  # type: ignore[attr-defined]  # where shtab looks for it
        elif isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _complete_files(below, how)
