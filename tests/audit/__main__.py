"""A standing audit: what releases lose, the law of all noise, rounding, and the ledger under kills and contention.

    python -m tests.audit [--minutes 60] [--only bounds,plans] [--seed 1] [--folder audit]

Parts run one after another, each until it has done as much as it is asked for or its share of the time is over; what it
leaves goes to those that follow. The sizes that ran are in the report, written after each part to `audit.md` and
`audit.json` in the folder. A fault is printed with the seed that has it again (noise is the system's, and has none),
and the exit code is 1. For a longer run: `--minutes 600 --plans 1000000`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.audit.bounds import audit_bounds
from tests.audit.debits import audit_debits
from tests.audit.findings import Part, into_page, write
from tests.audit.fits import audit_fits
from tests.audit.hours import Allotment, processor_time
from tests.audit.kills import audit_kills
from tests.audit.plans import audit_plans
from tests.audit.sessions import audit_sessions

SHARES = {"fits": 3, "sessions": 3, "kills": 8, "debits": 14, "bounds": 24, "plans": 22}
"""The parts in their order, and how much of the time each may take, in minutes of an hour or so."""


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that are asked for, and say whether all is well."""
    given = _parser().parse_args(arguments)
    engines = {"reference": given.plans, "duckdb": given.plans, "spark": given.spark_plans}
    run: dict[str, Callable[[Allotment], Part]] = {
        "fits": lambda time: audit_fits(2 * given.samples, time),
        "sessions": lambda time: audit_sessions(given.releases, time),
        "kills": lambda time: audit_kills(given.seed, given.kills, time, given.scratch),
        "debits": lambda time: audit_debits(given.seed, given.debits, time, given.scratch),
        "bounds": lambda time: audit_bounds(given.samples, time),
        "plans": lambda time: audit_plans(given.seed, {name: n for name, n in engines.items() if n}, time),
    }
    names = [name for name in SHARES if not given.only or name in given.only.split(",")]
    if not names:
        raise SystemExit(f"--only takes {', '.join(SHARES)}")
    whole, parts = Allotment(60 * given.minutes), list[Part]()
    for place, name in enumerate(names):
        share = whole.share(SHARES[name] / sum(SHARES[later] for later in names[place:]))
        before = processor_time()
        part = run[name](share)
        part.processor = processor_time() - before
        parts.append(part)
        write(parts, given.seed, given.folder)
        if given.page:
            into_page(part, given.seed, given.page)
        ran = "; ".join(f"{what}: {count}" for what, count in part.ran.items())
        sys.stdout.write(f"{name}: {ran}; {part.processor:.0f} s, {len(part.faults)} faults\n")
        sys.stdout.write("".join(f"FAULT: {name}: {fault}\n" for fault in part.faults))
        sys.stdout.flush()
    sys.stdout.write(f"seed {given.seed}; the report is {given.folder / 'audit.md'}\n")
    return 1 if any(part.faults for part in parts) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", default="", help=f"parts, with commas: {', '.join(SHARES)}")
    parser.add_argument("--seed", type=int, default=1, help="of plans, kills and debits")
    parser.add_argument("--folder", type=Path, default=Path("audit"), help="where the report is written")
    parser.add_argument("--page", type=Path, help="a page to keep the figures on: docs/audit.md")
    parser.add_argument("--scratch", type=Path, default=None, help="where ledgers are made")
    parser.add_argument("--samples", type=int, default=1_000_000, help="releases a side of each pair")
    parser.add_argument("--releases", type=int, default=200, help="through whole sessions, a side of each pair")
    parser.add_argument("--plans", type=int, default=100_000, help="on the reference and on DuckDB, each")
    parser.add_argument("--spark-plans", type=int, default=0, help="on Spark, where it is installed")
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--debits", type=int, default=1_000_000)
    return parser


if __name__ == "__main__":
    sys.exit(main())
