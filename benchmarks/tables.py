"""Tables by name: the mean salary by city, and what it costs beside the same without privacy.

    python benchmarks/tables.py [--rows 200000] [--cities 50 200 1000] [--groups 100000] [--growth 10000 100000 1000000]

Processor time of:

- table: `people.by("city", keys=...).agg(salary=wp.mean(...), epsilon=1)`, built, billed, debited, evaluated and drawn,
  in a session that holds the data and has not met the plan;
- parts: the same by a Partition, a NoisyAverage for each of the first 25 cities in one batch, scaled to all of them;
- duckdb, pandas: the true means, of a table and a frame in memory.

And of a table of a count, a mean and a median; of 1,000 medians of 100 candidates over 10⁶ rows, beside OpenDP's
`make_private_quantile` on the vector of each group, split by pandas; and of medians of 10⁵ groups that are listed.

Then, of a million rows in many groups: a table of sums, of means, and
of both with a count, from the request to a frame, and DuckDB's own sums and means.

With `--growth`, the medians and these tables alone, of so many rows, in groups of ten rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import opendp.prelude as dp
import pandas as pd

import wpinq as wp
from wpinq.sinks import choose

PARTS = 25
RUNS = 5


def seconds(run: Callable[[int], object], runs: int = RUNS) -> float:
    """The least processor time of some runs."""
    found = []
    for i in range(runs):
        start = time.process_time()
        run(i)
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--cities", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--growth", nargs="*", type=int, help="numbers of rows")
    options = parser.parse_args()
    many = f"\n{'groups':>7} {'sum':>7} {'mean':>7} {'all':>7} {'duckdb':>7}"
    if options.growth is not None:
        for rows in options.growth or [10**4, 10**5, 10**6]:
            print(many)
            print(" ".join([f"{rows // 10:7d}", *(f"{number:7.3f}" for number in many_groups(rows // 10, rows))]))
            medians(rows, rows // 10)
        return
    print(f"{'cities':>6} {'table':>7} {'parts':>7} {'duckdb':>7} {'pandas':>7} {'three':>7}")
    for cities in options.cities:
        print(" ".join([f"{cities:6d}", *(f"{number:7.3f}" for number in measured(options.rows, cities))]), flush=True)
    print(many)
    print(" ".join([f"{options.groups:7d}", *(f"{number:7.3f}" for number in many_groups(options.groups))]))
    medians(10**6, 1000)
    listed(2 * 10**6, 10**5)


def measured(rows: int, cities: int) -> list[float]:
    rng = np.random.default_rng(1)
    names = [f"city {i}" for i in range(cities)]
    frame = pd.DataFrame(
        {
            "city": np.array(names)[rng.integers(cities, size=rows)],
            "age": rng.integers(18, 90, size=rows),
            "salary": rng.uniform(0, 250_000, size=rows),
        }
    )
    people = wp.source("people", city=str, age=int, salary=float)
    with wp.Session() as session, duckdb.connect() as connection:
        session.protect(people, frame, budget=1e6)
        session.release(people.count(1))  # what opens once
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")

        def table(run: int) -> object:  # another range each time, and so another plan
            asked = people.by("city", keys=names).agg(salary=wp.mean("salary", 0, 200_000 + run), epsilon=1)
            return session.release(asked).to_pandas()

        def three(run: int) -> object:
            salary, age = wp.mean("salary", 0, 100_000 + run), wp.median(wp.col("age") + run, range(100 + run))
            asked = people.by("city", keys=names).agg(rows=wp.count(), salary=salary, age=age, epsilon=1)
            return session.release(asked).to_pandas()

        def parts(run: int) -> object:
            split = people.partition("city", names[:PARTS])
            return session.release([part.noisy_average(1, "salary", 0, 300_000 + run) for part in split.values()])

        def plain(run: int) -> object:
            return connection.execute("SELECT city, avg(least(salary, 200000)) FROM people GROUP BY city").df()

        def pandas(run: int) -> object:
            return frame.salary.clip(0, 200_000).groupby(frame.city).mean()

        of_parts = seconds(parts, 2) / PARTS * cities
        return [seconds(table), of_parts, seconds(plain), seconds(pandas), seconds(three, 2)]


def many_groups(groups: int, rows: int = 1_000_000) -> list[float]:
    """The seconds of tables of many groups."""
    rng = np.random.default_rng(2)
    names = [f"city {i}" for i in range(groups)]
    places = rng.integers(groups, size=rows)
    frame = pd.DataFrame({"city": np.array(names)[places], "salary": rng.uniform(0, 250_000, size=len(places))})
    people = wp.source("people", city=str, salary=float)
    with wp.Session() as session, duckdb.connect() as connection:
        session.protect(people, frame, budget=1e6)
        session.release(people.count(1))
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")

        def table(run: int, *wanted: str) -> object:
            end = 200_000 + 10 * len(wanted) + run  # another range each time, and so another plan
            given = {"sum": wp.sum("salary", 0, end), "mean": wp.mean("salary", 0, end)}
            asked = {name: given.get(name, wp.count()) for name in wanted}
            return session.release(people.by("city", keys=names).agg(epsilon=1, **asked)).to_pandas()

        def plain(run: int) -> object:
            return connection.execute("SELECT city, sum(salary), avg(salary) FROM people GROUP BY city").df()

        kinds = (["sum"], ["mean"], ["rows", "sum", "mean"])
        return [*(seconds(lambda run, kind=kind: table(run, *kind), 3) for kind in kinds), seconds(plain)]


def ages(rows: int, groups: int) -> tuple[wp.Query, pd.DataFrame]:
    """Rows of an age in a group each, and their source."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"group": rng.integers(groups, size=rows), "age": rng.integers(100, size=rows)})
    return wp.source("people", group=int, age=int), frame


def medians(rows: int, groups: int) -> None:
    """Medians by group, with how long their draws take, and the same release by OpenDP."""
    people, frame = ages(rows, groups)
    drawing: list[float] = []
    draw = choose.select_each

    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        found = draw(*arguments)
        drawing[-1] += time.process_time() - start
        return found

    with wp.Session() as session, patch.object(choose, "select_each", timed):
        session.protect(people, frame, budget=1e6)
        session.release(people.count(1))

        def ours(run: int) -> object:
            drawing.append(0.0)
            asked = people.by("group", keys=range(groups)).agg(
                age=wp.median(wp.col("age") + run, range(100)), epsilon=1
            )
            return session.release(asked).to_pandas()

        whole = seconds(ours)
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()

    def theirs(run: int) -> object:
        candidates = list(range(run, 100 + run))
        chosen = dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=1.0)
        return {group: chosen(values.to_numpy().astype(np.int32)) for group, values in frame.groupby("group").age}

    print(f"\n{groups:,} medians of 100 candidates, {rows:,} rows: {whole:.3f} with their intervals,", end=" ")
    print(f"of which draws {min(drawing):.3f}; OpenDP, without intervals: {seconds(theirs, 3):.3f}")


def listed(rows: int, groups: int) -> None:
    """Medians of groups that are listed in the same call."""
    people, frame = ages(rows, groups)
    with wp.Session() as session:
        session.protect(people, frame, budget=1e6)
        asked = people.by("group", keys=wp.integers(0, 10**6), above=9).agg(
            rows=wp.count(), age=wp.median("age", range(100)), epsilon=4, split={"rows": 3, "age": 1}
        )
        start = time.process_time()
        table = session.release(asked)
        released = time.process_time() - start
        start = time.process_time()
        table.to_pandas()
        framed = time.process_time() - start
    print(f"{len(table):,} groups listed with their medians: {released:.2f}, as a frame {framed:.2f}")


if __name__ == "__main__":
    main()
