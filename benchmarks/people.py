"""People with five tables: protection beside sorted lists of DuckDB, and ten clinical questions beside plain SQL.

    python benchmarks/people.py [--people 1000000] [--memory 3GB] [--epsilon 1]

The data are made: the shape is OMOP's (person, visit, condition, drug, measurement), some 30 rows a person. Each part
runs in a process of its own. Seconds are of the processor. "lists" is DuckDB that makes the same sorted lists from the
same files, without cut, checks or records. "times" divides by the plain side in the same run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import wpinq as wp
from wpinq import functions as F

TABLES = {
    "person": "sex VARCHAR, born BIGINT, region VARCHAR",
    "visit": "day BIGINT, kind VARCHAR, days BIGINT",
    "condition": "day BIGINT, code VARCHAR",
    "drug": "day BIGINT, code VARCHAR",
    "measurement": "day BIGINT, code VARCHAR, value DOUBLE",
}
"""The fields of each table, beside `person_id`."""

_ROWS = {
    "visit": (6, "1 + r(1) % 3650", "['outpatient', 'inpatient', 'emergency'][1 + (r(2) % 10) // 4]", "r(3) % 20"),
    "condition": (7, "1 + r(1) % 3650", "['I10', 'E11', 'J45', 'M54', 'F32'][1 + (r(2) % 25) // 6]"),
    "drug": (7, "1 + r(1) % 3650", "['metformin', 'ramipril', 'salbutamol', 'ibuprofen'][1 + r(2) % 4]"),
    "measurement": (9, "1 + r(1) % 3650", "['hba1c', 'systolic'][1 + r(2) % 2]", "4 + (r(3) % 1200) / 10.0"),
}
"""Of each table, the mean number of rows of a person and its fields; r gives random integers."""


def make(folder: Path, people: int) -> None:
    """Write the tables as parquet files."""
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO mixed(n, i, k) AS (hash(n * 1000003 + i * 97 + k) >> 3)::BIGINT")
        home = "['f', 'm'][1 + mixed(n, 0, 1) % 2], 1930 + mixed(n, 0, 2) % 80, 'nsew'[1 + mixed(n, 0, 3) % 4]"
        _write(connection, folder, "person", f"SELECT n, {home} FROM range({people}) AS t(n)")
        for number, (table, (mean, *fields)) in enumerate(_ROWS.items(), 1):
            random = ", ".join(fields).replace("r(", f"mixed(n, i + {number} * 1000, ")
            rows = f"range({people}) AS t(n), range(1 + mixed(n, {number}, 9) % {2 * mean - 1}) AS u(i)"
            _write(connection, folder, table, f"SELECT n, {random} FROM {rows}")


def _write(connection: Any, folder: Path, table: str, query: str) -> None:
    names = ["person_id", *(field.split()[0] for field in TABLES[table].split(", "))]
    kinds = ["BIGINT", *(field.split()[1] for field in TABLES[table].split(", "))]
    cast = ", ".join(f"CAST(c{i} AS {kind}) AS {name}" for i, (name, kind) in enumerate(zip(names, kinds, strict=True)))
    columns = ", ".join(f"c{i}" for i in range(len(names)))
    connection.execute(f"COPY (SELECT {cast} FROM ({query}) AS t({columns})) TO '{folder / table}.parquet'")


def patients() -> wp.Query:
    """The declaration."""
    return wp.people(
        "patients",
        id=("person_id", int),
        person=wp.table(sex=wp.category("f", "m"), born=int, region=str, at_most=1),
        visit=wp.table(day=int, kind=str, days=int, at_most=20),
        condition=wp.table(day=int, code=str, at_most=20),
        drug=wp.table(day=int, code=str, at_most=20),
        measurement=wp.table(day=int, code=str, value=float, at_most=20, keep="last", by="day"),
    )


def _has(table: str, code: str) -> Callable[[Any], Any]:
    return lambda p: F.any(getattr(p, table), lambda row: row.code == code)


def _last(rows: Any) -> Any:
    return F.element(rows, F.count(rows) - 1)


def questions(epsilon: Any) -> dict[str, tuple[Any, str]]:
    """Ten questions: a tabulation, and the SQL of its exact answer."""
    people, has = patients(), "person_id IN (SELECT person_id FROM condition WHERE code = '{}')"
    diabetics, hypertensive = people.where(_has("condition", "E11")), people.where(_has("condition", "I10"))
    of_sex, age = lambda p: p.person.sex, lambda p: 2020 - p.person.born
    soon = (
        "SELECT DISTINCT c.person_id FROM condition c JOIN drug d USING (person_id) WHERE c.code = 'E11' AND d.code = "
    )
    return {
        "people with diabetes by sex": (
            diabetics.by(sex=of_sex, keys=["f", "m"]).agg(n=wp.count(), epsilon=epsilon),
            f"SELECT sex, count(*) FROM person WHERE {has.format('E11')} GROUP BY sex ORDER BY sex",
        ),
        "treated within 30 days of a diagnosis": (
            people.where(
                lambda p: F.any(
                    F.filter(p.condition, lambda c: c.code == "E11"),
                    lambda c: F.any(
                        p.drug, lambda d: (d.code == "metformin") & (d.day >= c.day) & (d.day <= c.day + 30)
                    ),
                )
            ).agg(n=wp.count(), epsilon=epsilon),
            f"SELECT count(*) FROM ({soon} 'metformin' AND d.day BETWEEN c.day AND c.day + 30)",
        ),
        "mean age of people with hypertension": (
            hypertensive.agg(age=wp.mean(age, 0, 100), epsilon=epsilon),
            f"SELECT avg(2020 - born) FROM person WHERE {has.format('I10')}",
        ),
        "mean number of visits by region": (
            people.by(region=lambda p: p.person.region, keys=["e", "n", "s", "w"]).agg(
                visits=wp.mean(lambda p: F.count(p.visit), 0, 20), epsilon=epsilon
            ),
            "SELECT region, avg(n) FROM person JOIN (SELECT person_id, count(*) AS n FROM visit GROUP BY person_id) "
            "USING (person_id) GROUP BY region ORDER BY region",
        ),
        "people with two or more emergencies": (
            people.where(lambda p: F.count(F.filter(p.visit, lambda v: v.kind == "emergency")) > 1).agg(
                n=wp.count(), epsilon=epsilon
            ),
            "SELECT count(*) FROM (SELECT 1 FROM visit WHERE kind = 'emergency' GROUP BY person_id "
            "HAVING count(*) > 1)",
        ),
        "mean of the last HbA1c of people with diabetes": (
            diabetics.where(_has("measurement", "hba1c")).agg(
                value=wp.mean(lambda p: _last(F.filter(p.measurement, lambda m: m.code == "hba1c")).value, 0, 130),
                epsilon=epsilon,
            ),
            "SELECT avg(v) FROM (SELECT person_id, arg_max(value, (day, value)) AS v FROM measurement "
            f"WHERE code = 'hba1c' GROUP BY person_id) WHERE {has.format('E11')}",
        ),
        "people back within 30 days": (
            people.where(
                lambda p: F.any(F.pairwise(p.visit), lambda two: two.after.day - two.before.day - two.before.days <= 30)
            ).agg(n=wp.count(), epsilon=epsilon),
            "SELECT count(DISTINCT person_id) FROM (SELECT person_id, day - lag(day) OVER w - lag(days) OVER w AS gap "
            "FROM visit WINDOW w AS (PARTITION BY person_id ORDER BY day, kind, days)) WHERE gap <= 30",
        ),
        "people with an asthma drug and no asthma": (
            people.where(lambda p: _has("drug", "salbutamol")(p) & ~_has("condition", "J45")(p)).agg(
                n=wp.count(), epsilon=epsilon
            ),
            "SELECT count(*) FROM (SELECT DISTINCT person_id FROM drug WHERE code = 'salbutamol') "
            f"WHERE NOT {has.format('J45')}",
        ),
        "visits by kind": (
            people.unnest("visit")
            .by("kind", keys=["emergency", "inpatient", "outpatient"])
            .agg(n=wp.count(), epsilon=epsilon),
            "SELECT kind, count(*) FROM visit GROUP BY kind ORDER BY kind",
        ),
        "mean highest pressure above 65 years": (
            people.where(lambda p: (p.person.born < 1955) & _has("measurement", "systolic")(p)).agg(
                value=wp.mean(
                    lambda p: F.max(F.filter(p.measurement, lambda m: m.code == "systolic"), lambda m: m.value), 0, 130
                ),
                epsilon=epsilon,
            ),
            "SELECT avg(v) FROM (SELECT person_id, max(value) AS v FROM measurement WHERE code = 'systolic' "
            "GROUP BY person_id) JOIN person USING (person_id) WHERE born < 1955",
        ),
    }


def lists(folder: Path, memory: str) -> None:
    """DuckDB makes the sorted lists of all tables, by person."""
    with duckdb.connect(str(folder / "lists.duckdb"), config={"memory_limit": memory, "threads": 2}) as connection:
        for table, fields in TABLES.items():
            packed = ", ".join(f"{name} := {name}" for name in (field.split()[0] for field in fields.split(", ")))
            rows = f"SELECT person_id, struct_pack({packed}) AS r FROM '{folder / table}.parquet' ORDER BY person_id, r"
            query = f"SELECT person_id, list(r ORDER BY r) AS {table} FROM ({rows}) GROUP BY person_id"
            connection.execute(f"CREATE TABLE {table} AS {query}")


def run(part: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One part, in this process."""
    before = time.process_time()
    found: dict[str, Any] = {}
    if part == "lists":
        lists(folder, options.memory)
    elif part == "sql":
        with duckdb.connect(config={"memory_limit": options.memory, "threads": 2}) as connection:
            for table in TABLES:
                connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{folder / table}.parquet'")
            for name, (_, sql) in questions(options.epsilon).items():
                began = time.process_time()
                connection.execute(sql).fetchall()
                found[name] = time.process_time() - began
    else:
        with wp.Session(memory_limit=options.memory, threads=2) as session:
            session.protect(patients(), {table: str(folder / f"{table}.parquet") for table in TABLES}, budget=1000)
            found["protect"] = time.process_time() - before
            for name, (asked, _) in questions(options.epsilon).items():
                began = time.process_time()
                session.release(asked)
                found[name] = time.process_time() - began
    found["seconds"] = time.process_time() - before
    found["peak GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--part", choices=["lists", "sql", "wpinq"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(run(options.part, options.folder, options)))
        return
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), options.people)
        parts = {}
        for part in ("lists", "sql", "wpinq"):
            again = [sys.executable, __file__, "--part", part, "--folder", name, "--memory", options.memory]
            made = subprocess.run([*again, "--epsilon", options.epsilon], capture_output=True, text=True, check=True)
            parts[part] = json.loads(made.stdout)
    ours, plain = parts["wpinq"], parts["sql"]
    ratio = ours["protect"] / parts["lists"]["seconds"]
    print(f"protect: {ours['protect']:.1f} s, lists {parts['lists']['seconds']:.1f} s: {ratio:.2f} times")
    print(f"peak: {ours['peak GB']:.2f} GB")
    for question in questions(options.epsilon):
        times = ours[question] / plain[question]
        print(f"{question:48} {ours[question]:7.3f} s  sql {plain[question]:7.3f} s  {times:5.1f} times")


if __name__ == "__main__":
    main()
