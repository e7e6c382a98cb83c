"""Random plans on random neighbours, as many as asked for: what the tests do with 20,000.

    python -m tests.stability [--cases 1000000] [--seed 1000]

Prints what was tried so far after every 10,000, and every fault at once.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.support.nasty import Findings, attack

CHUNK = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1_000)
    given = parser.parse_args()
    whole = Findings()
    for seed in range(given.seed, given.seed + -(-given.cases // CHUNK)):
        found = attack(seed, CHUNK)
        whole.add(found)
        for what, operator, _, _ in found.faults:
            sys.stdout.write(f"FAULT: {what} of {operator}, seed {seed}\n")
        ratios = "; ".join(f"{rule}: {float(ratio):.6f}" for rule, ratio in sorted(whole.ratio.items()))
        sys.stdout.write(
            f"{whole.cases:,} cases of {whole.plans:,} plans, {whole.vacuous:,} moved nothing, {whole.sharp:,} with a "
            f"bound below the paths, {len(whole.faults)} faults, {time.process_time():.0f} s; {ratios}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
