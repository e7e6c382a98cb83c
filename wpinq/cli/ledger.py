"""`wpinq budget`: the budgets in a ledger, shown, changed and verified; copies of ledgers, made and restored."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from wpinq.cli.arguments import add_expected_head, add_parameters, add_sizes, load_program, pairs
from wpinq.errors import UsageError
from wpinq.kernel.ledger.backup import backup, restore
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.nano_epsilon import budget_to_nano
from wpinq.measure.bill import bill
from wpinq.measure.delta_reading import NO_PROMISE, parse_delta
from wpinq.measure.group import Compound
from wpinq.measure.measurement import Measurement
from wpinq.measure.statement import Balance, Event
from wpinq.noise.epsilon import format_epsilon, parse_epsilon


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("budget", help="show or change the budgets in a ledger, copy it, or restore a copy")
    named = "a ledger; or backup LEDGER COPY, to copy it while it is used; or restore COPY LEDGER, with --expected-head"
    made.add_argument("ledger", type=Path, nargs="+", metavar="LEDGER", help=named)
    made.add_argument("--set", action="append", default=[], metavar="NAME=EPSILON", help="change a budget, on record")
    opened = "answer analysts again over an account that a failed evaluation closed to them, on record"
    made.add_argument("--reopen", action="append", default=[], metavar="NAME", help=opened)
    of_analyst = "an analyst who is not trusted: --set gives the analyst a budget within that of an account, and "
    of_analyst += "accounts and history are shown as the analyst sees them"
    made.add_argument("--analyst", metavar="ANALYST", help=of_analyst)
    add_expected_head(made)
    made.add_argument("--history", action="store_true", help="list every entry")
    made.add_argument("--verify", action="store_true", help="check the ledger's hash chain and sums first")
    made.add_argument("--delta", metavar="DELTA", help="print beside it what the history spent, read at a delta")
    asked = "print how many more releases of each measurement of a text program, and of all together, the budgets cover"
    made.add_argument("--program", type=Path, metavar="PROGRAM.wpq", help=asked)
    add_parameters(made)
    add_sizes(made)
    made.add_argument("--json", action="store_true", help="print as JSON")
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    if len(options.ledger) > 1:
        _copy(options)
        return
    (path,) = options.ledger
    budgets = {name: budget_to_nano(parse_epsilon(text)) for name, text in pairs(options.set, "--set").items()}
    delta = None if options.delta is None else parse_delta(options.delta)
    measurements = {} if options.program is None else load_program(options).releases
    with Ledger(path, create=False, expected_head=options.expected_head) as ledger:
        if options.verify:
            ledger.verify()
        for name, budget in budgets.items():
            ledger.set_budget(name, budget, options.analyst)
        for name in options.reopen:
            if not ledger.resume(name):
                raise UsageError(f"{name!r} is open to analysts: --reopen takes an account that is closed")
        closed = ledger.suspended()
        accounts = ledger.balances(options.analyst)
        payers = [each.account for each in accounts if "/" not in each.account]
        readings = {} if delta is None else {name: ledger.spent_at(name, delta, options.analyst) for name in payers}
        history = ledger.events(options.analyst) if options.history else ()
        head = ledger.head()
    more = _more(measurements, accounts)
    if options.json:
        shown: dict[str, Any] = {"accounts": list(map(_account, accounts)), "history": list(map(_event, history))}
        shown["head"] = head
        if closed:
            shown["closed"] = sorted(closed)
        if delta is not None:
            spent = {name: str(epsilon) for name, epsilon in readings.items()}
            shown["reading"] = {"delta": str(delta), "spent": spent, "note": NO_PROMISE}
        if more:
            shown["more"] = more
        print(json.dumps(shown, indent=1))
        return
    if not accounts:
        none = "no source has a budget in this ledger: nothing was protected yet, and nothing is spent"
        print(f"{options.analyst} has no budget in this ledger: give one with --set" if options.analyst else none)
    for each in accounts:
        print(each)
        if each.account in closed:
            print(f"  closed to analysts, for an evaluation failed; --reopen {each.account} answers them again")
        if each.account in readings and delta is not None:
            print(f"  read at delta {format_epsilon(delta)}: {format_epsilon(readings[each.account])}")
    for line in _promised(accounts):
        print(line)
    if readings:
        print(NO_PROMISE)
    for name, times in more.items():
        print(f"enough for {times} more of {name}")
    for entry in history:
        print(f"  {entry}")
    print(f"Head of the ledger: {head}")
    if options.verify:
        print("The ledger is whole: its hash chain and its sums hold.")


def _copy(options: argparse.Namespace) -> None:
    """`wpinq budget backup LEDGER COPY` and `wpinq budget restore COPY LEDGER`."""
    what, *paths = options.ledger
    changing = options.set or options.history or options.verify or options.delta or options.program or options.json
    changing = changing or options.reopen or options.analyst is not None
    if str(what) not in ("backup", "restore") or len(paths) != 2 or changing:
        raise UsageError("give one ledger; or backup LEDGER COPY; or restore COPY LEDGER --expected-head HEAD")
    if str(what) == "backup":
        with Ledger(paths[0], create=False, expected_head=options.expected_head):
            head = backup(*paths)
        print(f"{paths[1]} is a copy of {paths[0]}.\nHead of the copy: {head}")
        return
    if options.expected_head is None:
        raise UsageError(
            "restore needs --expected-head HEAD, the last head of the ledger that you know: a copy that is older gives "
            "back what was spent since"
        )
    copy, ledger_path = paths
    head = restore(copy, ledger_path, options.expected_head)
    print(f"{ledger_path} is restored.\nHead of the ledger: {head}")


def _more(measurements: Mapping[str, Measurement | Compound], accounts: Sequence[Balance]) -> dict[str, int]:
    """How many more releases of each, and of all as one, what is left covers; for nothing what is stored already."""
    left = {each.account: each.remaining for each in accounts}
    more = {name: bill(measurement).times(left) for name, measurement in measurements.items()}
    return {**more, "all together": bill(measurements).times(left)} if len(more) > 1 else more


def _promised(accounts: Sequence[Balance]) -> Iterator[str]:
    """Where analysts may be told that a source is exhausted, which tells of one another: for the curator."""
    for payer in accounts:
        together = sum(
            (each.remaining for each in accounts if each.account.startswith(f"{payer.account}@")), Fraction()
        )
        if together > payer.remaining:
            yield (
                f"the analysts of {payer.account} have {format_epsilon(together)} left together, and it has "
                f"{format_epsilon(payer.remaining)}: one may find it exhausted by others"
            )


def _account(balance: Balance) -> dict[str, str]:
    numbers = {name: str(getattr(balance, name)) for name in ("unit_weight", "budget", "spent", "remaining")}
    return {"source": balance.account, "unit": balance.unit, **numbers}


def _event(event: Event) -> dict[str, Any]:
    known = {name: getattr(event, name) for name in ("sequence", "time", "kind", "description", "label")}
    return {**known, "source": event.account, "amount": str(event.amount)}
