"""Seconds for Laplace noise on many values: OpenDP's vector call, ours, the ledger, and a whole release.

    python benchmarks/noise.py [--sizes 10000 100000 1000000]

A whole release is `session.release(source.noisy_count(1, over=range(n)))` with a ledger on disk: the debit, the
evaluation, the noise, the answers in the ledger, and the table. A tenth of the keys is in the data. Each cell is the
time on the clock, and in parentheses that of the processor. The limit of a release of a million values is 15 s.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import wpinq as wp
from wpinq.expr.types import INT
from wpinq.expr.values import canonical_bytes
from wpinq.kernel.ledger.ledger import Ledger, Pricing
from wpinq.noise.laplace import add_laplace

LIMIT = 15.0
SCALE = 1.0


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - clock, time.process_time() - processor


def peer() -> Callable[[list[float]], Any]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.l1_distance(T="f64")
    measurement: Callable[[list[float]], Any] = dp.m.make_laplace(*space, scale=SCALE)
    return measurement


def stored(size: int, folder: Path) -> tuple[float, float]:
    keys = [canonical_bytes(key, INT) for key in range(size)]
    answers = dict(zip(keys, add_laplace(np.zeros(size), SCALE, os.urandom), strict=True))
    with Ledger(folder / f"{size}.ledger") as ledger:
        ledger.open_account("n", schema="int", unit="row", unit_weight=Fraction(1), budget=10**9)
        ledger.debit({"measurement": "noise"}, lambda new, parts_of: Pricing({"n": 1}, {}))
        return timed(lambda: ledger.store_answers("measurement", answers))


def released(size: int, folder: Path) -> tuple[float, float]:
    source = wp.source("numbers", int)
    with wp.Session(folder / f"{size}.session") as session:
        session.protect(source, dict.fromkeys(range(0, size, 10), 1.0), budget=10)
        session.release(source.noisy_count(1, over=[0]), fresh=True)  # what is imported when first used
        return timed(lambda: session.release(source.noisy_count(1, over=range(size))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    sizes = parser.parse_args().sizes
    theirs = peer()
    columns = ("OpenDP", "ours", "ledger", "release")
    print(f"{'values':>10}" + "".join(f"{column:>18}" for column in columns) + f"{'limit':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            values = [0.5] * size
            add_laplace(values[:1], SCALE, os.urandom)  # the digits' chances, once a scale
            seconds = [
                timed(partial(theirs, values)),
                timed(partial(add_laplace, values, SCALE, os.urandom)),
                stored(size, Path(folder)),
                released(size, Path(folder)),
            ]
            cells = "".join(f"{f'{clock:.2f} ({processor:.2f})':>18}" for clock, processor in seconds)
            print(f"{size:>10,}{cells}{f'{LIMIT:g} s' if size == 10**6 else '':>8}")


if __name__ == "__main__":
    main()
