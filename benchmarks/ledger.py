"""What a ledger costs its users: waiting among processes, opening after a long history, copies.

    python benchmarks/ledger.py [--only waiting opening postgres] [--processes 8] [--debits 200] [--history 100000]

waiting     8 processes that debit one ledger as fast as they can: the time of a debit from asking to having it, at the
            median, in 99 of 100 cases, and at worst; the same without turns, where SQLite's own waiting decides
opening     a ledger of 100,000 debits: processor time of opening it, beside one of 100; and of verifying it

postgres    the same debits in PostgreSQL, beside as many plain conditional updates of its table of accounts by the same
            8 processes right after: each in a transaction as drivers make one, and each as one message

Waiting is wall time, of which other work of the machine is a part; the load is printed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from wpinq.kernel.ledger import head_file
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, Price, Pricing


def flat(amount: int) -> Price:
    return lambda new, parts_of: Pricing({"edges": amount}, {})


EDGES = declared_account("edges", schema="s", unit="u", unit_weight=Fraction(1), budget=10**12)


def make(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.open_accounts([EDGES])


def spend(path: str, name: str, debits: int, turns: bool) -> None:
    """A process of its own: seconds of each debit."""
    head_file.HAS_TURNS = head_file.HAS_TURNS and turns
    taken = []
    with Ledger(path) as ledger:
        print("ready", flush=True)
        sys.stdin.readline()
        for i in range(debits):
            started = time.perf_counter()
            ledger.debit({f"{name}.{i}": "count"}, flat(1))
            taken.append(time.perf_counter() - started)
    print(json.dumps(taken))


def waiting(processes: int, debits: int, turns: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        make(path)
        command = [sys.executable, __file__, "--spend", str(path), "--debits", str(debits)]
        command += [] if turns else ["--no-turns"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started = [subprocess.Popen([*command, "--name", str(i)], **pipes) for i in range(processes)]
        for process in started:
            process.stdout.readline()
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        taken = sorted(second for process in started for second in json.loads(process.communicate()[0]))
    ms = [1000 * taken[min(len(taken) - 1, int(len(taken) * share))] for share in (0.5, 0.99, 1)]
    print(
        f"waiting, {'turns' if turns else 'no turns'}: {processes} processes, {len(taken)} debits: p50 {ms[0]:.1f} ms, "
        f"p99 {ms[1]:.1f} ms (200), max {ms[2]:.1f} ms (50,000); load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


_KINDS = "debits", "updates in a transaction", "updates in one message"
UPDATE = "UPDATE wpinq.accounts SET spent = spent + 1 WHERE name = 'edges' AND spent + 1 <= budget"


def spend_beside(url: str, name: str, debits: int) -> None:
    """A process of its own: seconds of each debit, and of each plain update by the owner, in two forms."""
    import psycopg

    ledger_url, owner = url.split()
    with Ledger(ledger_url) as ledger, psycopg.connect(owner) as connection:

        def update() -> None:
            connection.execute(UPDATE)
            connection.commit()

        def update_at_once() -> None:
            connection.autocommit = True
            connection.execute(UPDATE)

        numbers, found = itertools.count(), []
        acts = (lambda: ledger.debit({f"{name}.{next(numbers)}": "count"}, flat(1)), update, update_at_once)
        for act in acts:
            print("ready", flush=True)
            sys.stdin.readline()
            taken = []
            for _ in range(debits):
                started = time.perf_counter()
                act()
                taken.append(time.perf_counter() - started)
            found.append(taken)
    print(json.dumps(found))


def beside_updates(processes: int, debits: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.support.postgres import running

    with running(tempfile.gettempdir()) as server:  # on a disk, as a ledger is
        url = server.ledger()
        with Ledger(url) as ledger:
            ledger.open_accounts([EDGES])
        owner = server.url(url.rpartition("/")[2])
        command = [sys.executable, __file__, "--spend", f"{url} {owner}", "--debits", str(debits)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started = [subprocess.Popen([*command, "--name", str(i)], **pipes) for i in range(processes)]
        for _ in _KINDS:
            for process in started:
                process.stdout.readline()
            for process in started:
                process.stdin.write("go\n")
                process.stdin.flush()
        found = [json.loads(process.communicate()[0]) for process in started]
    p99 = []
    for place, kind in enumerate(_KINDS):
        taken = sorted(second for each in found for second in each[place])
        ms = [1000 * taken[min(len(taken) - 1, int(len(taken) * share))] for share in (0.5, 0.99, 1)]
        p99.append(ms[1])
        print(
            f"postgres, {kind}: {processes} processes: p50 {ms[0]:.1f} ms, p99 {ms[1]:.1f} ms, max {ms[2]:.1f} ms; "
            f"p99 of a debit over it {p99[0] / ms[1]:.2f} (3); load {os.getloadavg()[0]:.1f}"
        )


def used(action: Callable[[], object], times: int) -> float:
    """Milliseconds of processor time, at the median."""
    found = []
    for _ in range(times):
        started = time.process_time()
        action()
        found.append(1000 * (time.process_time() - started))
    return statistics.median(found)


def opening(history: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for debits in (100, history):
            path = Path(folder) / f"{debits}.db"
            make(path)
            with Ledger(path) as ledger:
                ledger._store.read(lambda connection: connection.execute("PRAGMA synchronous = OFF"))
                for i in range(debits):
                    ledger.debit({f"a measurement with the digest {i}": "NoisyCount(0.1)"}, flat(1))
                    ledger.store_answers(f"a measurement with the digest {i}", {b"%d" % key: 1.5 for key in range(4)})
            took = used(lambda path=path: Ledger(path).close(), 50)
            print(f"opening: {debits} debits with answers: {took:.2f} ms of processor", flush=True)
        with Ledger(path) as ledger:
            print(f"verifying: {history} debits with answers: {used(ledger.verify, 1) / 1000:.1f} s of processor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["waiting", "opening", "postgres"])
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--debits", type=int, default=200)
    parser.add_argument("--history", type=int, default=100_000)
    parser.add_argument("--spend", help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--no-turns", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.spend:
        if " " in given.spend:
            spend_beside(given.spend, given.name, given.debits)
        else:
            spend(given.spend, given.name, given.debits, not given.no_turns)
        return
    if "waiting" in given.only:
        for turns in (False, True):
            waiting(given.processes, given.debits, turns)
    if "postgres" in given.only:
        beside_updates(given.processes, given.debits)
    if "opening" in given.only:
        opening(given.history)


if __name__ == "__main__":
    main()
