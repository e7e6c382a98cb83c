"""`wpinq statement`: the releases of a ledger and their privacy loss.

Every field is named here and in `statement.json`: one that ledgers or plans get later is in no statement by itself. The
names are those of the registry of differential privacy deployments, and the page has the headings of NIST SP 800-226.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wpinq import __version__
from wpinq.cli.arguments import add_expected_head, check_distinct, check_writable, ledger_place, pairs
from wpinq.cli.ledger import open_to_read
from wpinq.display.explanation import describe
from wpinq.display.html import render
from wpinq.errors import PlanError, UsageError, warn
from wpinq.expr.epochs import SEPARATOR
from wpinq.expr.nodes import Call, Lambda, walk
from wpinq.expr.types import TupleOf
from wpinq.kernel.ledger import chain
from wpinq.kernel.ledger.accounts import MARK, OF_ANALYST, SHARED, Account
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.schema import FORMAT
from wpinq.kernel.ledger.series import OF_SERIES, UNBOUNDED
from wpinq.mcmc.settings import write_atomically
from wpinq.measure.measurement import measurement_from_json
from wpinq.measure.statement import Balance
from wpinq.noise.epsilon import from_nano
from wpinq.noise.epsilon_text import format_epsilon, format_factor
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import Source
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import NotStated, Stated

#: The parts that are left out unless they are asked for, each with its warning.
OPTIONAL = {
    "constants": "constants of plans, which analysts chose, and which may name persons",
    "labels": "labels, which are free text",
    "analysts": "names, budgets and requests of analysts",
    "acts": "acts and names of curators, and names of users",
    "suspensions": "suspensions: that an evaluation failed is a bit of the data that no epsilon covers",
    "times": "clock times, which show when each person worked",
}
_PARTS = dict.fromkeys((chain.OPEN, chain.SET, chain.CARRY, chain.CLOSE, *chain.USER_ACTS), "acts")
_PARTS |= dict.fromkeys((chain.SUSPEND, chain.RESUME), "suspensions")


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("statement", help="state the releases of a ledger and their privacy loss, for others")
    made.add_argument("ledger", type=ledger_place, metavar="LEDGER")
    add_expected_head(made)
    made.add_argument("--page", type=Path, metavar="FILE", help="write the statement as HTML too")
    made.add_argument("--include", action="append", default=[], choices=[*OPTIONAL], help="a part left out otherwise")
    made.add_argument("--data-version", action="append", default=[], metavar="NAME=VERSION", help="by your word")
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Print the statement of a ledger, and write its page."""
    with open_to_read(options) as ledger:
        made = statement(ledger, options.include, pairs(options.data_version, "--data-version"))
    for part in made["administrative"]["included"]:
        warn(f"the statement shows {OPTIONAL[part]}")
    if options.page is not None:
        check_writable(options.page)
        check_distinct([options.page], [options.ledger])
        write_atomically(options.page, render("statement.html", **made).encode())
    print(json.dumps(made, indent=1))


def statement(ledger: Ledger, included: Collection[str], versions: Mapping[str, str]) -> dict[str, Any]:
    """The statement of a ledger as plain data.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which is verified first.
    included : collection of str
        Parts of `OPTIONAL`.
    versions : Mapping
        Source -> the version of its data, by the word of the curator.

    Raises
    ------
    LedgerError
        When the ledger is not what its entries add up to.
    UsageError
        When the ledger has no source of a name in `versions`.

    Notes
    -----
    Privacy cost: none. Only entries and plans are read, up to the head.
    """
    head = ledger.head()
    ledger.verify()
    last, whole = chain.Head.parse(head).sequence, "analysts" in included
    entries = [each for each in ledger.entries() if each.sequence <= last and (whole or MARK not in each.target)]
    budgets = {each.target: each.amount for each in entries if each.kind in (chain.OPEN, chain.SET)}
    spent = Counter[str]()
    for each in entries:
        spent[each.target] += each.amount if each.kind == chain.DEBIT else each.content.get("spent", 0)
    accounts = [each for each in ledger.accounts() if each.name in budgets]
    declared = [each for each in accounts if each.schema not in (SHARED, OF_ANALYST)]
    sources = {each.name: each.schema for each in declared if not each.name.endswith(f"{SEPARATOR}*")}
    for name in sorted(versions.keys() - sources.keys()):
        raise UsageError(f"--data-version: the ledger has no source {name!r}; it has {', '.join(sources) or 'none'}")
    releases = [*_releases(entries, ledger.plans(), included)]
    made: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    deployment = made["deployment"]
    deployment["basic"]["publication_date"] = next((each["date"][:10] for each in releases if each["date"]), None)
    domain = [{"source": name, "declaration": s, "data_version": versions.get(name)} for name, s in sources.items()]
    deployment["dp_variant"]["data_domain"] = domain
    payers = (each for each in accounts if "/" not in each.name and OF_SERIES not in each.schema)
    deployment["privacy_loss"] = [_loss(each, budgets[each.name], spent[each.name]) for each in payers]
    deployment["deployment_model"]["release_type"] = "Many releases" if len(releases) > 1 else "Single release"
    deployment["implementation"]["mechanisms"] = releases
    made["administrative"] = {
        "head": head,
        "ledger_format": FORMAT,
        "wpinq": __version__,
        "included": [part for part in OPTIONAL if part in included],
        "acts": [_act(each, included) for each in entries if _PARTS.get(each.kind) in included],
    }
    return made


def _loss(account: Account, budget: int, spent: int) -> dict[str, Any]:
    balance = Balance(account.name, account.unit, account.unit_weight, from_nano(budget), from_nano(spent))
    return {
        "account": balance.account,
        "privacy_unit": balance.unit,
        "privacy_unit_details": f"{repr(balance).partition('; ')[2]}; the weight of a unit is {balance.unit_weight}",
        "privacy_parameters": {"epsilon": float(balance.spent)},
        "privacy_budget": None if budget == UNBOUNDED else float(balance.budget),
    }


def _date(entry: chain.Entry, included: Collection[str]) -> str:
    return entry.time if "times" in included else entry.time[:10]


def _act(entry: chain.Entry, included: Collection[str]) -> dict[str, str]:
    return {"date": _date(entry, included), "act": entry.kind, "target": entry.target, "actor": entry.actor}


def _releases(entries: list[chain.Entry], plans: Mapping[int, Any], included: Collection[str]) -> Iterator[Any]:
    """Each debit and its measurements; plans of a carried ledger have no date and no charge."""
    answers, batches = Counter[str](), dict[int, list[chain.Entry]]()
    for each in entries:
        if each.kind == chain.ANSWERS:
            answers[each.target] += each.content["count"]
        elif each.kind == chain.DEBIT or each.content.get("plans"):
            batches.setdefault(each.content.get("with", each.sequence), []).append(each)
    for number, (first, batch) in enumerate(batches.items(), 1):
        entry, kept = batch[0], plans.get(first, {})
        paid, made = entry.kind == chain.DEBIT, []
        for digest in entry.measurements if paid else kept:
            made.append(_measurement(kept.get(digest, "null"), "constants" in included))
            made[-1]["answers"] = answers[digest.partition(MARK)[0]] if paid else None
        charges = {each.target: float(from_nano(each.amount)) for each in batch if paid}
        date = _date(entry, included) if paid else None
        release = {"number": number, "date": date, "charges": charges, "measurements": made}
        more = {"labels": ("label", entry.label), "analysts": ("analyst", entry.actor)}
        yield release | dict(each for part, each in more.items() if part in included)


def _measurement(text: str, constants: bool) -> dict[str, Any]:
    """A measurement from its plan, which is null where this version cannot read it."""
    try:
        found = measurement_from_json(json.loads(text))
    except (PlanError, ValueError, RecursionError):
        return {"plan": None}
    sink, plan, scale, interval = found.sink, found.plan, None, None
    # the parameters of a sink are constants too, and its scale and interval may follow from them
    if constants or {each for name, each in sink.to_json().items() if name != "name"} <= {None, "1"}:
        scale = float(f"{sink.scales(plan, found.epsilon)[0]:.4g}")
        with suppress(NotStated):  # an error that depends on the data
            reach = sink.error(plan, found.epsilon, found.domain, 0.95, Stated())
            interval = {"confidence": 0.95, "half_width": float(f"{reach:.4g}")} if sink.has_interval else None
    return {
        "sink": sink.name,
        "epsilon": format_epsilon(found.epsilon),
        "plan": [*_steps(plan, constants)],
        "stability": {at: [format_factor(far), *sink.usage(plan, at)] for at, far in sink.stability(plan).items()},
        "noise": sink.noise[0],
        "proof": f"docs/proofs/{sink.noise[1]}.md",
        "scale": scale,
        "interval": interval,
    }


def _steps(plan: Node, constants: bool) -> Iterator[str]:
    """The operators of a plan, with the declared names among the fields that each reads.

    No text of an analyst is among them, unless constants are shown.
    """
    declared = {*re.findall(r"\w+(?=:)", " ".join(str(s.record) for s in plan_properties(plan).sources.values()))}
    places: dict[bytes, int] = {}
    for place, node in enumerate(topological([plan]), 1):
        functions = [value for _, value in node.operator.arguments() if isinstance(value, Lambda)]
        read = declared & {name for function in functions for name in _fields(function)}
        fields = f" ({', '.join(sorted(read))})" if read else ""
        text = describe(node) if constants or isinstance(node.operator, Source) else node.operator.name + fields
        inputs = ", ".join(str(places[child.digest]) for child in node.inputs)
        yield f"{place}: {text}" + (f" of {inputs}" if inputs else "")
        places[node.digest] = place


def _fields(function: Lambda) -> Iterator[str | None]:
    """The names of the fields that a function reads."""
    for each in walk(function):
        if isinstance(each, Call) and each.name == "field" and isinstance(each.arguments[0].type, TupleOf):
            yield each.arguments[0].type.names[int(each.attributes[0] or 0)]
