"""TPC-H queries through a session: the bill, the release, and the noisy answers beside the exact ones.

    python examples/tpch/run.py [QUERY ...] [--folder FOLDER | --scale 0.01] [--epsilon 1] [--rows 8] [--engine duckdb]

QUERY is q1, q4, q13, q13_cumulative, q16 or q16_joined; all of them unless given. Without a folder of parquet files
or a scale factor to generate them at, the tables are a few hundred made-up rows.

Exact answers are shown because these tables are made up. Of protected data nobody may see them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from queries import EXAMPLES, Example, generate, open_tables
from sample import sample_tables

import wpinq as wp


def release(example: Example, connection: Any, epsilon: str, engine: str) -> dict[str, wp.Answers]:
    """Protect the sources with a budget of epsilon each, print the bill, spend it."""
    program = example.program(epsilon=epsilon)
    measurements = program.measurements
    print(wp.bill(list(measurements.values())))
    with wp.Session(engine=engine) as session:
        for name, data in example.data(connection).items():
            session.protect(program.sources[name], data, budget=epsilon)
        released = session.release(list(measurements.values()))
    # every measurement of these programs has public keys, and so gives Answers
    return {name: found for name, found in zip(measurements, released, strict=True) if isinstance(found, wp.Answers)}


def show(name: str, answers: wp.Answers, exact: dict[Any, float], factor: float, rows: int) -> None:
    """The largest groups of a measurement."""
    half_width = factor * (answers.interval(answers.keys[0], 0.95)[1] - answers[answers.keys[0]])
    print(f"\n{name}: an answer times {factor:g}, within {half_width:,.1f} in 95 of 100 cases")
    print(f"{'key':40} {'exact':>20} {'noisy':>20} {'error':>14}")
    for key in sorted(answers.keys, key=lambda key: -exact.get(key, 0.0))[:rows]:
        number, noisy = exact.get(key, 0.0), factor * answers[key]
        words = " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        print(f"{words:40} {number:20,.2f} {noisy:20,.2f} {noisy - number:14,.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", metavar="QUERY")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--scale", type=float)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--engine", default="duckdb")
    given = parser.parse_args()
    names = [example.name for example in EXAMPLES]
    if unknown := set(given.queries) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}; the queries are {', '.join(names)}")
    with tempfile.TemporaryDirectory() as temporary:
        if given.folder is None and given.scale is None:
            connection = sample_tables(seed=1)
        else:
            folder = given.folder or Path(temporary)
            if given.scale is not None:
                generate(given.scale, folder)
            connection = open_tables(folder)
        for example in EXAMPLES:
            if given.queries and example.name not in given.queries:
                continue
            print(f"\n=== {example.name} ===")
            answers = release(example, connection, given.epsilon, given.engine)
            for name, exact in example.exact.items():
                show(name, answers[name], exact.rows(connection), exact.factor, given.rows)
        connection.close()


if __name__ == "__main__":
    main()
