"""What the histogram benchmarks share: where the data are, and how lines are printed."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

DPBENCH = [
    "ADULT", "BIDS-ALL", "BIDS-FJ", "BIDS-FM", "HEPTH", "INCOME", "LC-DTIR-ALL", "LC-DTIR-F1", "LC-DTIR-F2",
    "LC-REQ-ALL", "LC-REQ-F1", "LC-REQ-F2", "MDSALARY", "MDSALARY-FA", "MEDCOST", "NETTRACE", "PATENT", "SEARCHLOGS",
]  # fmt: skip


def options(description: str, draws: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    root = Path(__file__).resolve().parents[1]
    default = os.environ.get("WPINQ_DATA", root.parent / "shared" / "data")
    parser.add_argument("data", nargs="?", type=Path, default=Path(default))
    parser.add_argument("--draws", type=int, default=draws)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def histogram(data: Path, name: str) -> Array:
    return np.load(data / "hist1d" / f"{name}.npy").astype(np.float64)


def claim(text: str, measured: str, holds: bool | None) -> None:
    verdict = {True: "holds", False: "DOES NOT HOLD", None: "see above"}[holds]
    print(f"  claim:    {text}\n  measured: {measured}  -> {verdict}\n")
