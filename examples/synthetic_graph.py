"""A synthetic graph from private measurements of a secret one: here, of who meets whom in Les Miserables.

    python examples/synthetic_graph.py [FOLDER]

writes the synthetic edge list, its report and its plots into FOLDER (synthetic-graph unless given).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import wpinq as wp
from wpinq.graphs.synthesis.report import report, save_plots

SECRET = Path(__file__).parent / "data" / "les-miserables.txt"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    graph = wp.graphs.synthesize(SECRET, epsilon=2, on_bill=print)  # spends epsilon; the rest costs nothing
    graph.write(folder / "graph.txt")
    (folder / "report.json").write_text(json.dumps(report(graph), indent=1))
    save_plots(graph, folder)
    for name, value in graph.statistics().items():
        print(f"{name:20} {value:10.4g}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "synthetic-graph"))
