"""What the histogram benchmarks share: where the data are, and how lines are printed."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

DPBENCH = [
    "ADULT", "BIDS-ALL", "BIDS-FJ", "BIDS-FM", "HEPTH", "INCOME", "LC-DTIR-ALL", "LC-DTIR-F1", "LC-DTIR-F2",
    "LC-REQ-ALL", "LC-REQ-F1", "LC-REQ-F2", "MDSALARY", "MDSALARY-FA", "MEDCOST", "NETTRACE", "PATENT", "SEARCHLOGS",
]  # fmt: skip


def parser(description: str, draws: int) -> argparse.ArgumentParser:
    """The options that all of them take."""
    found = argparse.ArgumentParser(description=description)
    root = Path(__file__).resolve().parents[1]
    default = os.environ.get("WPINQ_DATA", root.parent / "shared" / "data")
    found.add_argument("data", nargs="?", type=Path, default=Path(default))
    found.add_argument("--draws", type=int, default=draws)
    found.add_argument("--seed", type=int, default=1)
    return found


def options(description: str, draws: int) -> argparse.Namespace:
    return parser(description, draws).parse_args()


def histogram(data: Path, name: str) -> Array:
    return np.load(data / "hist1d" / f"{name}.npy").astype(np.float64)


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """The least CPU time of some runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def claim(text: str, measured: str, holds: bool | None) -> None:
    verdict = {True: "holds", False: "DOES NOT HOLD", None: "see above"}[holds]
    print(f"  claim:    {text}\n  measured: {measured}  -> {verdict}\n")
