"""`wpinq mcp`: a service as tools of an agent, over stdin and stdout."""

from __future__ import annotations

import argparse
import importlib.util
import os
from pathlib import Path
from typing import Any

from wpinq.cli.arguments import check_readable, check_stdout
from wpinq.errors import UsageError, install
from wpinq.service.users import ANALYST

#: The environment variable of the token.
_VARIABLE = "WPINQ_TOKEN"


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    about = "serve an agent over stdin and stdout (Model Context Protocol), as an analyst of a service"
    made = commands.add_parser("mcp", help=about)
    made.add_argument("url", metavar="URL", help="https://…, or http://… to this machine alone")
    token = f"the token, in a file of its owner only (default: the environment variable {_VARIABLE})"
    made.add_argument("--token-file", type=Path, metavar="FILE", help=token)
    made.add_argument("--cafile", type=Path, metavar="FILE", help="certificates to trust besides those of the system")
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    check_stdout()
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(f"wpinq mcp needs the SDK of the protocol: {install('mcp')}")
    from wpinq.service.agent import AgentTools
    from wpinq.service.client import connect

    cafile = None if options.cafile is None else str(options.cafile)
    connection = connect(options.url, _token(options.token_file), cafile=cafile)
    if connection.request("GET", "me")["role"] != ANALYST:
        raise UsageError("this is a curator's token, which no agent may have: add an analyst with a budget for it")
    AgentTools(connection).server().run()


def _token(file: Path | None) -> str:
    if file is None:
        token = os.environ.pop(_VARIABLE, "")
    else:
        check_readable(file)
        if file.stat().st_mode & 0o077:
            raise UsageError(f"{file} may be read by others, and holds a token: chmod 600 {file}")
        token = file.read_text(encoding="utf-8", errors="replace")
    if not token.strip():
        raise UsageError(f"there is no token: give one of an analyst in {_VARIABLE}, or in a file by --token-file")
    return token.strip()
