"""Debits by several processes at once on one ledger: never overspent, none lost, none double, and in fair turns."""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.audit.findings import Part
from tests.audit.hours import Allotment, now
from wpinq.errors import BudgetExceeded
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, Pricing

PROCESSES = 8
MOST = 5
"""A debit is of 1 to 5."""


def _price(amount: int) -> Callable[..., Pricing]:
    return lambda new, parts_of: Pricing({"edges": amount}, {})


def _spend(path: Path, name: int, attempts: int, seed: str, started: int, seconds: float | None) -> dict[str, Any]:
    """Debit until so many were tried or time is over; say what was accepted, what refused, and how long each took."""
    chance, allotment = Random(f"{seed} {name}"), Allotment(seconds)
    accepted, refused, waits = 0, 0, array("d")
    with Ledger(path, create=False) as ledger:
        os.read(started, 1)  # all begin when the other end is closed
        for number in range(attempts):
            if number and number % 64 == 0 and allotment.over:
                break
            amount, since = chance.randint(1, MOST), now()
            try:
                ledger.debit({f"{name}.{number}": "count"}, _price(amount))
                accepted += amount
            except BudgetExceeded:
                refused += 1
            waits.append(now() - since)
    tried = np.array(waits)
    return {
        "accepted": accepted,
        "refused": refused,
        "tried": len(waits),
        "waits": [float(found) for found in np.quantile(tried, [0.5, 0.99, 1.0])],
    }


def _together(path: Path, attempts: int, seed: str, seconds: float | None) -> list[dict[str, Any]]:
    gate, opening = os.pipe()
    children = []
    for name in range(PROCESSES):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(opening)
                found = _spend(path, name, attempts, seed, gate, seconds)
                os.write(writing, json.dumps(found).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        children.append((child, reading))
    os.close(gate)
    os.close(opening)
    said = []
    for child, reading in children:
        with os.fdopen(reading, "rb") as told:
            line = told.read()
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            raise ChildProcessError("a process that debits met an error")
        said.append(json.loads(line))
    return said


def audit_debits(seed: int, debits: int, allotment: Allotment, folder: Path | None = None) -> Part:
    """So many debits together, or as many as there is time for, in rounds of a ledger each."""
    part = Part(
        "debits",
        f"Debits by {PROCESSES} processes at once, each asking again as soon as it is answered. The budget is "
        "spent a twentieth before the end. "
        "The ledger verifies, what processes were told is what is in it, and no account is overspent. "
        "Passed: debits of others "
        "between two debits of one process; where turns are fair, 7.",
        ("ledger", "debits", "refused", "passed, p50", "passed, p99", "passed, most", "wait ms, p50", "wait ms, p99"),
    )
    done = refused = number = 0
    while done < debits and not (done and allotment.over):
        each = -(-min(debits - done, 200_000) // PROCESSES)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            path = Path(made) / "ledger.db"
            budget = 3 * each * PROCESSES * 19 // 20
            with Ledger(path) as ledger:
                ledger.open_accounts(
                    [declared_account("edges", schema="s", unit="u", unit_weight=Fraction(1), budget=budget)]
                )
            said = _together(path, each, f"{seed} {number}", allotment.left)
            faults, passed = _book(path, budget, said)
        part.faults += [f"seed {seed}, ledger {number}: {fault}" for fault in faults]
        tried, turned = sum(one["tried"] for one in said), sum(one["refused"] for one in said)
        waits = [1e3 * max(one["waits"][place] for one in said) for place in (0, 1)]
        shares = [float(found) for found in np.quantile(passed, [0.5, 0.99, 1.0])]
        part.rows.append((number, tried, turned, *shares, *waits))
        done, refused, number = done + tried, refused + turned, number + 1
    part.ran = {"debits tried": done, "of these refused, for the budget was spent": refused, "ledgers": number}
    return part


def _book(path: Path, budget: int, said: list[dict[str, Any]]) -> tuple[list[str], list[int]]:
    """What is wrong with the ledger after all have ended, and how many others came between two debits of each."""
    faults, places = [], dict[str, list[int]]()
    with Ledger(path, create=False) as ledger:
        ledger.verify()
        spent = ledger.account("edges").spent
        for entry in ledger.entries():
            if entry.kind == "debit":
                places.setdefault(entry.measurements[0].partition(".")[0], []).append(entry.sequence)
    if spent > budget:
        faults.append(f"{spent} were spent of a budget of {budget}")
    if spent != sum(one["accepted"] for one in said):
        faults.append(f"{spent} are in the ledger, and {sum(one['accepted'] for one in said)} were accepted")
    if sum(one["refused"] for one in said) and budget - spent >= MOST:
        faults.append(f"debits were refused while {budget - spent} were left")
    last = min(found[-1] for found in places.values())  # from there on one after another ends
    passed = [after - before - 1 for found in places.values() for before, after in pairwise(found) if after <= last]
    return faults, passed or [0]
