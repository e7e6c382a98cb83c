"""`wpinq ledger`: show and set budgets; make, verify, restore and copy ledgers."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from wpinq.cli import arguments
from wpinq.errors import UsageError
from wpinq.kernel.ledger.backup import backup, carry, restore
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.migration import move
from wpinq.kernel.ledger.postgres import create
from wpinq.measure.bill import bill
from wpinq.measure.group import Compound
from wpinq.measure.measurement import Measurement
from wpinq.measure.statement import Balance, Event
from wpinq.noise.epsilon import parse_budget
from wpinq.noise.epsilon_text import format_epsilon


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    acts = commands.add_parser("ledger", help="manage a ledger: show, set, verify, init, copy, backup, restore, carry")
    acts = acts.add_subparsers(required=True, metavar="ACT")
    shown = acts.add_parser("show", help="print the accounts of a ledger and their remaining budgets")
    _add_view(shown)
    shown.add_argument("--history", action="store_true", help="list all entries except stored answers")
    constants = "print the plan of each debit; plans contain constants of analysts"
    shown.add_argument("--plans", action="store_true", help=constants)
    asked = "print how often the budgets cover each measurement of a text program, and all of them together"
    shown.add_argument("--program", type=Path, metavar="PROGRAM.wpq", help=asked)
    arguments.add_parameters(shown)
    shown.set_defaults(command=_show)
    changed = acts.add_parser("set", help="change budgets and resume accounts; the ledger records each change")
    _add_view(changed)
    changed.add_argument("--budget", action="append", default=[], metavar="NAME=EPSILON", help="the new budget")
    resumed = "resume an account that a failed evaluation suspended"
    changed.add_argument("--resume", action="append", default=[], metavar="NAME", help=resumed)
    changed.set_defaults(command=_set, history=False, plans=False, program=None)
    closing = "close a ledger permanently, and continue its accounts in a new one, without answers"
    moving = "close a ledger file permanently, and copy all of it to an empty ledger in PostgreSQL"
    of_files = "copy a ledger file, also while in use; the copy cannot be spent from"
    for name, paths, help_, command in (
        ("verify", ("place",), "check every entry, row, answer and plan of a ledger", _verify),
        ("copy", ("old", "place"), moving, _copy),
        ("backup", ("ledger", "copy"), of_files, _backup),
        ("restore", ("copy", "ledger"), "restore a lost ledger from a copy", _restore),
        ("carry", ("old", "new"), closing, _carry),
    ):
        act = acts.add_parser(name, help=help_)
        for path in paths:
            kind = arguments.ledger_place if path == "place" else arguments.ledger_file
            act.add_argument(path, type=kind, metavar="LEDGER" if path == "place" else path.upper())
        arguments.add_expected_head(act)
        act.set_defaults(command=command)
    made = acts.add_parser("init", help="make a ledger in an empty database of PostgreSQL, and its two roles")
    made.add_argument("url", type=arguments.ledger_place, metavar="URL")
    made.set_defaults(command=_init)


def _add_view(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", type=arguments.ledger_place, metavar="LEDGER")
    of_analyst = "the name of an analyst, to show or set that analyst's budgets"
    parser.add_argument("--analyst", metavar="ANALYST", help=of_analyst)
    arguments.add_expected_head(parser)
    parser.add_argument("--json", action="store_true", help="print as JSON")


def _show(options: argparse.Namespace) -> None:
    with open_to_read(options) as ledger:
        _print(options, ledger)


@contextmanager
def open_to_read(options: argparse.Namespace) -> Iterator[Ledger]:
    """The ledger of a command that writes nothing, also in a read-only place."""
    with tempfile.TemporaryDirectory() as folder:
        path = options.ledger
        if isinstance(path, Path):
            path = _readable(Path(os.path.realpath(path)), Path(folder)) or path
        with Ledger(path, create=False, expected_head=options.expected_head) as ledger:
            yield ledger


def _readable(ledger: Path, folder: Path) -> Path | None:
    """A private copy of a ledger in a read-only place; None of another.

    SQLite opens no ledger where it cannot write beside it, and a copy changes nothing there.
    """
    parts = [each for end in ("-head", "", "-wal", "-shm") if os.path.exists(each := arguments.beside(ledger, end))]
    able = [all(os.access(each, mode) for each in (ledger.parent, *parts)) for mode in (os.R_OK, os.W_OK)]
    if ledger not in parts or able != [True, False]:
        return None
    stamps: list[int] = []
    while stamps != (stamps := [each.stat().st_mtime_ns for each in parts]):  # else somebody wrote meanwhile
        for part in parts:
            shutil.copyfile(part, folder / part.name)
    return folder / ledger.name


def _set(options: argparse.Namespace) -> None:
    budgets = {name: parse_budget(text) for name, text in arguments.pairs(options.budget, "--budget").items()}
    if not budgets and not options.resume:
        raise UsageError("give --budget NAME=EPSILON or --resume NAME")
    with Ledger(options.ledger, create=False, expected_head=options.expected_head) as ledger:
        for name, budget in budgets.items():
            ledger.set_budget(name, budget, options.analyst)
        for name in options.resume:
            if not ledger.resume(name):
                raise UsageError(f"{name!r} is not suspended: --resume takes a suspended account")
        _print(options, ledger)


def _print(options: argparse.Namespace, ledger: Ledger) -> None:
    measurements = {} if options.program is None else arguments.load_program(options).releases
    suspended, accounts = ledger.suspended(), ledger.balances(options.analyst)
    # The head moves with every other analyst's entry, so an analyst's own view has none.
    head = None if options.analyst and options.command is _show else ledger.head()
    history = ledger.events(options.analyst) if options.history else ()
    entries = ledger.plans(options.analyst) if options.plans else {}
    plans = [(entry, digest, plan) for entry, found in entries.items() for digest, plan in found.items()]
    more = _more(measurements, accounts)
    if options.json:
        shown: dict[str, Any] = {"accounts": list(map(_account, accounts)), "history": list(map(_event, history))}
        rest = {"head": head, "suspended": sorted(suspended), "more": more}
        shown |= {name: told for name, told in rest.items() if told}
        if options.plans:
            shown["plans"] = [
                {"sequence": entry, "measurement": digest, "plan": json.loads(plan)} for entry, digest, plan in plans
            ]
        print(json.dumps(shown, indent=1))
        return
    if not accounts:
        none = "this ledger has no accounts: no source was protected and nothing was spent"
        print(f"{options.analyst} has no budget in this ledger: give one with set" if options.analyst else none)
    for each in accounts:
        print(each)
        if each.account in suspended:
            print(f"  suspended after a failed evaluation; resume with: set --resume {each.account}")
    for line in _promised(accounts):
        print(line)
    for name, times in more.items():
        print(f"further releases of {name}: {times}")
    for event in history:
        print(f"  {event}")
    for entry, digest, plan in plans:
        print(f"  {entry} plan of {digest}: {plan}")
    if head is not None:
        print(f"Head of the ledger: {head}")


def _verify(options: argparse.Namespace) -> None:
    with Ledger(options.place, create=False, expected_head=options.expected_head) as ledger:
        ledger.verify()
        head = ledger.head()
    print(f"Head of the ledger: {head}")
    print("The ledger is intact: its hash chain is valid, and its rows follow from the entries.")


def _backup(options: argparse.Namespace) -> None:
    with Ledger(options.ledger, create=False, expected_head=options.expected_head):
        head = backup(options.ledger, options.copy)
    print(f"{options.copy} is a copy of {options.ledger}.\nHead of the copy: {head}")


def _restore(options: argparse.Namespace) -> None:
    if options.expected_head is None:
        raise UsageError(
            "restore needs --expected-head HEAD, its last known head: an older copy would refund later debits"
        )
    head = restore(options.copy, options.ledger, options.expected_head)
    print(f"{options.ledger} is restored.\nHead of the ledger: {head}")


def _carry(options: argparse.Namespace) -> None:
    head = carry(options.old, options.new, options.expected_head)
    with Ledger(options.old, create=False) as closed:
        last = closed.head()
    print(f"{options.old} is closed permanently and continued in {options.new}.")
    print(f"Head of the closed ledger: {last}\nHead of the new ledger: {head}")


def _init(options: argparse.Namespace) -> None:
    role = create(os.fspath(options.url))
    print(f"{options.url} is a ledger with nothing spent.")
    print(f"Grant the role {role} to the users of services and sessions.")


def _copy(options: argparse.Namespace) -> None:
    head = move(options.old, os.fspath(options.place), options.expected_head)
    print(f"{options.old} is closed permanently and continued in {options.place}.\nHead of the ledger: {head}")


def _more(measurements: Mapping[str, Measurement | Compound], accounts: Sequence[Balance]) -> dict[str, int]:
    """The number of further releases of each measurement and of all, within the budgets.

    Stored answers stay free.
    """
    left = {each.account: each.remaining for each in accounts}
    more = {name: bill(measurement).times(left) for name, measurement in measurements.items()}
    return {**more, "all together": bill(measurements).times(left)} if len(more) > 1 else more


def _promised(accounts: Sequence[Balance]) -> Iterator[str]:
    """The accounts that analysts may find exhausted, for the curator alone.

    Exhaustion reveals the spending of other analysts.
    """
    for payer in accounts:
        of_analysts = (each for each in accounts if each.account.startswith(f"{payer.account}@"))
        together = sum((each.remaining for each in of_analysts), Fraction())
        if together > payer.remaining:
            yield (
                f"the analysts of {payer.account} have {format_epsilon(together)} left in total, and the account "
                f"has {format_epsilon(payer.remaining)}: one analyst may exhaust it for the others"
            )


def _account(balance: Balance) -> dict[str, str]:
    numbers = {name: str(getattr(balance, name)) for name in ("unit_weight", "budget", "spent", "remaining")}
    return {"source": balance.account, "unit": balance.unit, **numbers}


def _event(event: Event) -> dict[str, Any]:
    known = {name: getattr(event, name) for name in ("sequence", "time", "kind", "description", "label", "actor")}
    return {**known, "source": event.account, "amount": str(event.amount)}
