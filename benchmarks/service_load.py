"""Releases of a service on a busy machine: how many are answered, refused as overloaded (503), and suspended.

`python benchmarks/service_load.py --looks 1000 --load 12` starts so many processes that never rest, and a service with
its defaults. `--safety-factor 1 --grace-seconds 0.001` has the least margins that the configuration accepts.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from wpinq.kernel.ledger.ledger import Ledger
from wpinq.service.client import ServiceError, connect
from wpinq.service.users import UserStore, admit

CONFIGURATION = '''
declarations = """
source edges(src: int, dst: int) with records_at_most = 100;
"""
[service]
ledger = "ledger.db"
users = "users.db"
port = 0
[limits]
requests_a_minute = 100000
releases_a_minute = 100000
at_once = 64
queue_seconds = 600.0
[sandbox]
{sandbox}
[sources.edges]
file = "edges.txt"
edge_list = "undirected"
budget = "1000000"
version = "1"
'''


def main() -> None:
    """Run it."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "edges.txt").write_text("".join(f"{a}\t{b}\n" for a in range(8) for b in range(a)))
        given = {"safety_factor": options.safety_factor, "grace_seconds": options.grace_seconds}
        sandbox = "\n".join(f"{name} = {value}" for name, value in given.items() if value is not None)
        (path / "service.toml").write_text(CONFIGURATION.format(sandbox=sandbox))
        command = [sys.executable, "-m", "wpinq", "serve", str(path / "service.toml")]
        with (path / "log").open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as service:
            assert service.stdout is not None
            address = service.stdout.readline().decode().split()[-1]
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
            try:
                _ask(address, path, options)
            finally:
                for process in busy:
                    process.kill()
                service.send_signal(signal.SIGTERM)


def _ask(address: str, path: Path, options: argparse.Namespace) -> None:
    with UserStore(path / "users.db") as users, Ledger(path / "ledger.db") as ledger:
        tokens = [admit(users, ledger, f"analyst{i}", "analyst", {"edges": "1000000"}) for i in range(options.analysts)]

    def looks(token: str) -> list[tuple[str, float]]:
        client, seen = connect(address, token), []
        asked = client.sources["edges"].select(lambda e: e.src % 2).noisy_count(0.1, over=[0, 1])
        for _ in range(options.looks // options.analysts):
            began = time.monotonic()
            try:
                client.release(asked, fresh=True)
                outcome = "answered"
            except ServiceError as error:
                outcome = f"{error.status} {error.kind}"
            except Exception as error:
                outcome = type(error).__name__
            seen.append((outcome, time.monotonic() - began))
        return seen

    with concurrent.futures.ThreadPoolExecutor(options.analysts) as pool:
        found = [each for seen in pool.map(looks, tokens) for each in seen]
    times = sorted(seconds for outcome, seconds in found if outcome == "answered")
    with Ledger(path / "ledger.db") as ledger:
        suspended = sum(entry.kind == "suspend" for entry in ledger.entries())
    print(
        json.dumps(
            {
                "load": os.getloadavg(),
                "looks": len(found),
                "outcomes": Counter(outcome for outcome, _ in found),
                "suspended": suspended,
                "seconds": [round(times[int(share * (len(times) - 1))], 2) for share in (0.05, 0.5, 0.95, 1) if times],
            }
        )
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=1000)
    parser.add_argument("--analysts", type=int, default=4, help="who ask at the same time")
    parser.add_argument("--load", type=int, default=12, help="processes that never rest")
    parser.add_argument("--safety-factor", type=float)
    parser.add_argument("--grace-seconds", type=float)
    return parser.parse_args()


if __name__ == "__main__":
    main()
