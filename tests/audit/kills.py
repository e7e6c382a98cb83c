"""Processes that are killed in the midst of releases: what they had told still stands, and was paid for.

A child opens the ledger, protects the data, and releases measurements one after another, telling each answer before the
next. Half of the children kill themselves at some call of a function or some SQL statement, which the seed decides; the
others are killed from outside after some milliseconds. Then the ledger is opened and verified, and the next child goes
on where this one ended.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import duckdb  # noqa: F401  before the forks, not in each of them

import wpinq as wp
from tests.audit.findings import Part
from tests.audit.hours import Allotment
from wpinq.kernel.ledger.ledger import Ledger

NUMBERS = wp.source("numbers", int, facts=["unit_weights"])
DATA = dict.fromkeys(range(6), 1.0)
KEYS = (0, 3, 5, 9)
EACH_LEDGER = 40
EPSILON = Fraction(1, 8)
PER_ROUND = {"call": 9000, "statement": 40, "time": 20}
"""About what a child does for two answers: calls of functions of the library, SQL statements, milliseconds."""


def asked(number: int) -> wp.Measurement:
    """A measurement of its own for each number, of one kind or another."""
    query = NUMBERS.select(lambda x: (x, number))
    keys = [(key, number) for key in KEYS]
    kinds: list[Callable[[], wp.Measurement]] = [
        lambda: query.noisy_count(EPSILON, over=keys),
        lambda: query.geometric_count(EPSILON, over=keys),
        lambda: query.most_common(EPSILON, keys),
        lambda: query.noisy_count_above(EPSILON, keys, above=2),
        lambda: query.partition(lambda pair: pair[0] % 4, range(4))[number // 5 % 4].noisy_count(EPSILON, over=keys),
    ]
    return kinds[number % len(kinds)]()


def released(session: wp.Session, measurement: wp.Measurement, label: str) -> wp.Answers:
    """The answers of a release."""
    return session.release(measurement, label=label)


def _child(path: Path, say: int, first: int, rounds: int, dying: tuple[str, int] | None) -> None:
    """Release what is numbered from `first` on, ask again for some of what was released, and tell the answers."""
    begin = _die(*dying) if dying is not None else None
    with wp.Session(path, engine="reference") as session:
        session.protect(NUMBERS, DATA, budget=10**6, version="1")
        os.write(say, b"\n")
        if begin is not None:
            begin()
        for number in range(first, first + rounds):
            for one in (number, number * 7 % (number + 1)):
                answers = released(session, asked(one), f"measurement {one}")
                told = dict(zip(map(str, answers.keys), answers.values.tolist(), strict=True))
                os.write(say, (json.dumps([one, told]) + "\n").encode())


def _die(what: str, count: int) -> Callable[[], None]:
    """What begins to count: calls of functions of the library, or SQL statements; at this one the process "
    "kills itself."""
    left = -1

    def begin() -> None:
        nonlocal left
        left = count
        if what == "call":
            sys.setprofile(called)

    def another(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def called(frame: FrameType, event: str, argument: object) -> None:
        if "wpinq" in frame.f_code.co_filename:
            another()

    real = sqlite3.connect

    def connect(target: Any, *more: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(target, *more, **options)
        connection.set_trace_callback(another)
        return connection

    if what == "statement":
        sqlite3.connect = connect
    return begin


def _killed(path: Path, first: int, rounds: int, chance: Random) -> tuple[list[Any], str, bool]:
    """What one child told, how it was to die, and whether it did before it came to its end."""
    way = chance.choice(["call", "statement", "time", "time"])
    at = chance.randrange(1, PER_ROUND[way] * rounds)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            _child(path, writing, first, rounds, None if way == "time" else (way, at))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        told.readline()  # it begins to release
        if way == "time":
            time.sleep(at / 1000)
            os.kill(child, signal.SIGKILL)
        lines = told.read().splitlines(keepends=True)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise ChildFailed(f"a child ended with {status}")
    return [json.loads(line) for line in lines if line.endswith(b"\n")], f"{way} {at}", status != 0


class ChildFailed(Exception):
    """A child met an error: the ledger that a killed one left is of no use."""


def audit_kills(seed: int, kills: int, allotment: Allotment, folder: Path | None = None) -> Part:
    """Kill so many, fewer where time is over."""
    part = Part(
        "kills",
        "Processes killed with SIGKILL in the midst of releases, at calls, at SQL statements and at any "
        "time. After each the ledger "
        "opens and verifies, what was told is stored and was debited, what is asked again is answered the "
        "same, and the "
        "account is what its debits add up to.",
    )
    killed = ended = told = number = 0
    while killed < kills and not (killed and allotment.over):
        with tempfile.TemporaryDirectory(dir=folder) as made:
            try:
                run = _one_ledger(Path(made) / "ledger.db", f"{seed} {number}", min(EACH_LEDGER, kills - killed))
            except Exception as error:
                part.faults.append(f"seed {seed}, ledger {number}: {type(error).__name__}: {error}")
                break
        faults, now_killed, now_ended, now_told = run
        part.faults += [f"seed {seed}, ledger {number}: {fault}" for fault in faults]
        killed, ended, told, number = killed + now_killed, ended + now_ended, told + now_told, number + 1
    part.ran = {"kills": killed, "ledgers": number, "answers told": told, "children that ended first": ended}
    return part


def _one_ledger(path: Path, seed: str, kills: int) -> tuple[list[str], int, int, int]:
    chance, faults = Random(seed), list[str]()
    stands: dict[tuple[int, str], float] = {}
    killed = ended = told = first = 0
    while killed < kills:
        answers, way, died = _killed(path, first, chance.randrange(1, 8), chance)
        killed, ended = killed + died, ended + (not died)
        for number, values in answers:
            told += len(values)
            first = max(first, number + 1)
            for key, value in values.items():
                if stands.setdefault((number, key), value) != value:
                    faults.append(f"killed at {way}: measurement {number} answered twice, and not the same")
        faults += [f"killed at {way}: {fault}" for fault in _book_faults(path, stands)]
    return faults, killed, ended, told


def _book_faults(path: Path, stands: dict[tuple[int, str], float]) -> list[str]:
    """What is wrong with a ledger that was left behind, after these answers were told."""
    if not path.exists():
        return ["there is no ledger, and answers were told"] if stands else []
    faults = []
    with Ledger(path, create=False) as ledger:
        ledger.verify()
        entries = list(ledger.entries())
        debited = {digest for entry in entries if entry.kind == "debit" for digest in entry.measurements}
        answered = {
            digest for entry in entries if entry.kind in ("answers", "listing") for digest in entry.measurements
        }
        if not answered <= debited:
            faults.append("answers are stored that nobody paid for")
        debits = [entry for entry in entries if entry.kind == "debit"]
        if ledger.accounts() and ledger.account("numbers").spent != sum(entry.amount for entry in debits):
            faults.append("the account is not what its debits add up to")
        labels = {entry.label for entry in debits}
        unpaid = sorted({number for number, _ in stands if f"measurement {number}" not in labels})
        if unpaid:
            faults.append(f"measurements were told without a debit: {unpaid}")
    return faults
