"""`wpinq serve`: the service, its users, and a trial of one graph or table."""

from __future__ import annotations

import argparse
import glob
import importlib.util
import os
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.api.schema import schema
from wpinq.cli.arguments import check_readable, check_stdout, pairs
from wpinq.columns.storage import opened
from wpinq.data.files import as_csv, has_columns, open_file
from wpinq.errors import UsageError, install
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.language import parse
from wpinq.language.write import write_source
from wpinq.service.users import ANALYST, CURATOR, Budgets, UserStore, admit, remove, renew

if TYPE_CHECKING:
    from wpinq.service.config import Configuration

_ACTIONS = ("add", "renew", "roll", "remove")
_TRIAL_PORT = 8765
_TRIAL_GRAPH = 'source edges(src: int, dst: int) with unit = "one edge", records_at_most = {};'
_TRIAL_RECORDS = 1_000
_TRIAL_ROWS = 10_000
_TRIAL_EDGES = "undirected,drop-loops,drop-duplicates"


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("serve", help="serve analysts over HTTP, each with their own budgets")
    file = "starts the service; FILE --trial serves an edge list, or a csv or parquet file of other columns, as a trial"
    made.add_argument("file", metavar="SERVICE.toml", help=file)
    actions = (
        "add NAME adds a user; renew NAME issues a new token; roll NAME also keeps the former one for an hour; remove "
        "NAME revokes all tokens; list shows users and the expiry of tokens"
    )
    made.add_argument("action", nargs="?", choices=("list", *_ACTIONS), metavar="ACT", help=actions)
    made.add_argument("name", nargs="?", metavar="NAME")
    budgets = "with add: the budget of an analyst within an account; with --trial: of its source (default 10)"
    made.add_argument("--budget", action="append", default=[], metavar="NAME=EPSILON", help=budgets)
    made.add_argument("--curator", action="store_true", help="with add: as a curator, to set budgets and add users")
    made.add_argument("--days", type=int, metavar="N", help="with add, renew and roll: the lifetime of the token")
    trial = "serve a file of public data on this machine with a temporary ledger, and print tokens"
    made.add_argument("--trial", action="store_true", help=trial)
    words = "with --trial: the declaration of a table (default: derived from its columns and rows)"
    made.add_argument("--declare", metavar="'source NAME(FIELD: TYPE, ...);'", help=words)
    words = f"with --trial: how to read an edge list (default: {_TRIAL_EDGES})"
    made.add_argument("--edge-list", metavar="OPTION,...", help=words)
    ends = "with --trial: the columns of an edge in a csv or parquet file (default: src,dst)"
    made.add_argument("--columns", metavar="ONE,OTHER", help=ends)
    most = f"with --trial: a public bound on its records (default: {_TRIAL_RECORDS} edges, {_TRIAL_ROWS} rows)"
    made.add_argument("--records-at-most", type=int, metavar="N", help=most)
    made.add_argument("--port", type=int, metavar="N", help=f"with --trial: the port (default: {_TRIAL_PORT})")
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    check_stdout()
    if any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise UsageError(f"wpinq serve needs fastapi and uvicorn: {install('serve')}")
    action, budgets = options.action, pairs(options.budget, "--budget")
    for name in ("declare", "edge_list", "columns", "port", "records_at_most"):
        if getattr(options, name) is not None and not options.trial:
            raise UsageError(f"--{name.replace('_', '-')} goes with --trial; a service sets it in its configuration")
    if options.trial:
        if action or options.curator:
            raise UsageError("--trial takes one file, and makes an analyst and a curator itself")
        _serve_trial(options, budgets)
        return
    if action != "add" and (budgets or options.curator):
        raise UsageError("--budget and --curator go with add NAME")
    if options.days is not None and not (0 < options.days <= 36_500 and action in ("add", "renew", "roll")):
        raise UsageError("--days N, from 1 to 36500, goes with add, renew and roll")
    if (action in _ACTIONS) != (options.name is not None):
        raise UsageError(f"after the configuration, give list, or one of {', '.join(_ACTIONS)} with a name")
    from wpinq.service.config import read_configuration

    check_readable(Path(options.file))
    configuration = read_configuration(Path(options.file))
    if action == "list":
        _list_users(configuration)
    elif action:
        _change_user(configuration, budgets, options)
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
                print(f"  token of {token.made}, {'no expiry' if token.expires is None else f'until {token.expires}'}")


def _change_user(service: Configuration, budgets: Budgets, options: argparse.Namespace) -> None:
    action, name, role = options.action, options.name, CURATOR if options.curator else ANALYST
    if action == "add" and role == ANALYST and not budgets:
        raise UsageError(f"give {name} a budget: --budget ACCOUNT=EPSILON; or make them a curator: --curator")
    if isinstance(service.ledger, Path) and not service.ledger.exists():
        raise UsageError(f"there is no ledger {service.ledger} yet: start the service once to create it")
    with UserStore(service.users) as users, Ledger(service.ledger, create=False) as ledger:
        if action == "remove":
            remove(users, ledger, name)
            print(f"The token of {name} is revoked; spent budget is not refunded.")
            return
        if action == "add":
            token = admit(users, ledger, name, role, budgets, days=options.days)
        else:
            token = renew(users, ledger, name, days=options.days, roll=action == "roll")
    print(f"The token of {name}, shown only once:\n{token}", flush=True)


def _serve_trial(options: argparse.Namespace, budgets: dict[str, str]) -> None:
    from wpinq.service.config import configuration_of
    from wpinq.service.server import serve

    path = options.file
    declaration, edge_list = _trial_source(path, options)
    declared = list(parse(declaration, name="--declare").sources.items())
    if len(declared) != 1:
        raise UsageError("--declare takes one statement: source NAME(FIELD: TYPE, ...);")
    ((name, query),) = declared
    account = query.plan.operator.account  # type: ignore[attr-defined]  # a source's
    if budgets.keys() - {account}:
        raise UsageError(f"--trial has one account: --budget {account}=EPSILON")
    budget = budgets.get(account, "10")
    port = _TRIAL_PORT if options.port is None else options.port
    source = {"file": os.path.abspath(path), "budget": budget, "version": "trial", "columns": options.columns}
    source["edge_list"] = edge_list
    with tempfile.TemporaryDirectory(prefix="wpinq-trial-") as folder:
        given = {
            "declarations": declaration,
            "service": {"ledger": "ledger.db", "users": "users.db", "port": port},
            "sources": {name: source},
            "sandbox": {} if edge_list else _trial_limits(path),
        }
        configuration = configuration_of(given, Path(folder))

        def ready(address: str, ledger: Ledger) -> None:
            with UserStore(configuration.users) as users:
                analyst = admit(users, ledger, "analyst", ANALYST, {account: budget})
                curator = admit(users, ledger, "curator", CURATOR, {})
            print(f"Serving at {address}\ntoken of an analyst: {analyst}\ntoken of the curator: {curator}")
            print("This is a trial: Ctrl-C ends it and deletes its ledger.", flush=True)

        serve(configuration, ready)


def _trial_limits(path: str) -> dict[str, int]:
    """The bound on a record of a trial's table: the longest line of its file, which is public."""
    if not as_csv(path):
        return {}
    with ExitStack() as stack:
        return {"max_record_bytes": max(map(len, open_file(Path(path), stack)), default=1)}


def _trial_source(path: str, options: argparse.Namespace) -> tuple[str, str | None]:
    """The declaration of a trial's source, and how its edge list is read; None for a table."""
    most = options.records_at_most
    if options.declare is not None:
        if most is not None:
            raise UsageError("--records-at-most cannot go with --declare: write records_at_most = N there")
        return options.declare, options.edge_list
    edges = options.edge_list or options.columns or not (os.path.isfile(path) and has_columns(path))
    named = None if edges else schema(path)
    if named is None or {"src", "dst"} <= set(getattr(named.record, "names", ())):
        return _TRIAL_GRAPH.format(_TRIAL_RECORDS if most is None else most), options.edge_list or _TRIAL_EDGES
    if as_csv(path):
        import duckdb

        # The data of a trial are public, and so are types that are read off its rows.
        with opened() as connection, suppress(duckdb.Error):
            named = schema(connection.read_csv(glob.escape(path), sample_size=-1), named.name)
    table = named.source(unit="one row", records_at_most=_TRIAL_ROWS if most is None else most)
    return write_source(table.plan.operator), None
