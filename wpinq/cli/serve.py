"""`wpinq serve`: the service, its users, and a trial of one graph."""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.cli.arguments import check_readable, check_stdout, pairs
from wpinq.errors import UsageError, suggest
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.runtime.optional_imports import install
from wpinq.service.users import ANALYST, CURATOR, Budgets, UserStore, admit, remove, renew

if TYPE_CHECKING:
    from wpinq.service.config import Configuration

_ACTIONS = ("add", "renew", "roll", "remove")
_TRIAL_PORT = 8765
_TRIAL_SOURCE = "edges"
_TRIAL_DECLARATION = 'source edges(src: int, dst: int) with unit = "one edge", records_at_most = {};'
_TRIAL_RECORDS = 1_000
_TRIAL_EDGES = "undirected,drop-loops,drop-duplicates"


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("serve", help="answer analysts over HTTP, each under budgets of their own")
    actions = (
        "SERVICE.toml serves; SERVICE.toml add NAME adds a user, renew NAME gives another token, roll NAME too while "
        "the former one is valid for an hour, remove NAME revokes all, list shows users and when their tokens expire; "
        "GRAPH --trial serves an edge list for a look"
    )
    made.add_argument("what", nargs="+", metavar="SERVICE.toml", help=actions)
    budgets = "with add: of an analyst, within that of an account; with --trial: of edges (default 10)"
    made.add_argument("--budget", action="append", default=[], metavar="NAME=EPSILON", help=budgets)
    made.add_argument("--curator", action="store_true", help="with add: a curator, who sets budgets and adds users")
    made.add_argument("--days", type=int, metavar="N", help="with add, renew and roll: the life of the token")
    trial = "serve one edge list to this machine, with a ledger that ends with the service, and print tokens"
    made.add_argument("--trial", action="store_true", help=trial)
    words = f"with --trial: how to read it (default: {_TRIAL_EDGES})"
    made.add_argument("--edge-list", metavar="OPTION,...", help=words)
    ends = "with --trial: the columns of a csv or parquet file that hold an edge (default: src,dst)"
    made.add_argument("--columns", metavar="ONE,OTHER", help=ends)
    most = "with --trial: a public bound on its edges, which bounds the work of a program (default: 1000)"
    made.add_argument("--records-at-most", type=int, metavar="N", help=most)
    made.add_argument("--port", type=int, metavar="N", help=f"with --trial: where to listen (default: {_TRIAL_PORT})")
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    check_stdout()
    if any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise UsageError(f"wpinq serve needs fastapi and uvicorn: {install('serve')}")
    path, *action = options.what
    budgets = pairs(options.budget, "--budget")
    for name in ("edge_list", "columns", "port", "records_at_most"):
        if getattr(options, name) is not None and not options.trial:
            raise UsageError(f"--{name.replace('_', '-')} goes with --trial; a service says it in its configuration")
    if options.trial:
        if action or options.curator:
            raise UsageError("--trial takes one edge list, and makes an analyst and a curator itself")
        _serve_trial(path, options, budgets)
        return
    if action[:1] != ["add"] and (budgets or options.curator):
        raise UsageError("--budget and --curator go with add NAME")
    if options.days is not None and not (0 < options.days <= 36_500 and action[:1] in (["add"], ["renew"], ["roll"])):
        raise UsageError("--days N, from 1 to 36500, goes with add, renew and roll")
    if action and action[0] not in (known := ("list", *_ACTIONS)):
        raise UsageError(f"there is no act {action[0]!r} after the configuration: {suggest(action[0], known)}")
    if action not in ([], ["list"]) and (len(action) != 2 or action[0] not in _ACTIONS):
        raise UsageError(f"after the configuration stands list, or one of {', '.join(_ACTIONS)}, and a name")
    from wpinq.service.config import read_configuration

    check_readable(Path(path))
    configuration = read_configuration(Path(path))
    if action == ["list"]:
        _list_users(configuration)
    elif action:
        _change_user(configuration, action[0], action[1], budgets, options)
    else:
        _serve(configuration)


def _serve(configuration: Configuration) -> None:
    from wpinq.service.server import serve

    def ready(address: str, ledger: Ledger) -> None:
        print(f"Serving at {address}", flush=True)
        with UserStore(configuration.users) as users:
            if not users.all():
                print("There is no user yet: wpinq serve SERVICE.toml add NAME --budget ACCOUNT=EPSILON", flush=True)

    serve(configuration, ready)


def _list_users(configuration: Configuration) -> None:
    with UserStore(configuration.users) as users:
        for user in users.all():
            print(f"{user.name}, {user.role} since {user.added}{'' if user.admitted else ', removed'}")
            for token in user.tokens:
                print(f"  a token of {token.made}, {'without end' if token.expires is None else f'to {token.expires}'}")


def _change_user(service: Configuration, action: str, name: str, budgets: Budgets, options: argparse.Namespace) -> None:
    role = CURATOR if options.curator else ANALYST
    if action == "add" and role == ANALYST and not budgets:
        raise UsageError(f"give {name} a budget: --budget ACCOUNT=EPSILON; or make a curator of them: --curator")
    if not service.ledger.exists():
        raise UsageError(f"there is no ledger {service.ledger} yet: start the service once, which makes it")
    with UserStore(service.users) as users, Ledger(service.ledger, create=False) as ledger:
        if action == "remove":
            remove(users, ledger, name)
            print(f"The token of {name} is revoked; what was spent stays spent.")
            return
        if action == "add":
            token = admit(users, ledger, name, role, budgets, days=options.days)
        else:
            token = renew(users, ledger, name, days=options.days, roll=action == "roll")
    print(f"The token of {name}, shown this once:\n{token}", flush=True)


def _serve_trial(path: str, options: argparse.Namespace, budgets: dict[str, str]) -> None:
    from wpinq.service.config import configuration_of
    from wpinq.service.server import serve

    if budgets.keys() - {_TRIAL_SOURCE}:
        raise UsageError(f"--trial has one account: --budget {_TRIAL_SOURCE}=EPSILON")
    budget = budgets.get(_TRIAL_SOURCE, "10")
    records = _TRIAL_RECORDS if options.records_at_most is None else options.records_at_most
    port = _TRIAL_PORT if options.port is None else options.port
    source = {"file": os.path.abspath(path), "budget": budget, "version": "trial", "columns": options.columns}
    source["edge_list"] = options.edge_list or _TRIAL_EDGES
    with tempfile.TemporaryDirectory(prefix="wpinq-trial-") as folder:
        given = {
            "declarations": _TRIAL_DECLARATION.format(records),
            "service": {"ledger": "ledger.db", "users": "users.db", "port": port},
            "sources": {_TRIAL_SOURCE: source},
        }
        configuration = configuration_of(given, Path(folder))

        def ready(address: str, ledger: Ledger) -> None:
            with UserStore(configuration.users) as users:
                analyst = admit(users, ledger, "analyst", ANALYST, {_TRIAL_SOURCE: budget})
                curator = admit(users, ledger, "curator", CURATOR, {})
            print(f"Serving at {address}\ntoken of an analyst: {analyst}\ntoken of the curator: {curator}")
            print("A trial: Ctrl-C ends it, and its ledger with it.", flush=True)

        serve(configuration, ready)
