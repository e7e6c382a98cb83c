"""The TPC-H examples: exact weights by hand, their bills, and their agreement with SQL on made-up tables."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
from collections import Counter
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from wpinq.api.query import Query
from wpinq.language import Program, parse
from wpinq.measure.measurement import Measurement

FOLDER = Path(__file__).parents[2] / "examples" / "tpch"
ONE, HALF = Fraction(1), Fraction(1, 2)


def load(name: str) -> Any:
    """A module beside the programs, under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"tpch_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


queries = load("queries")
EXAMPLES = {example.name: example for example in queries.EXAMPLES}
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.wpq"))


@functools.cache
def program(name: str, **parameters: object) -> Program:
    path = FOLDER / f"{name}.wpq"
    return parse(path.read_text(encoding="utf-8"), parameters, name=path.name)


def weights(value: Query | Measurement, data: dict[str, Any]) -> dict[Any, Fraction]:
    query = Query(value.plan) if isinstance(value, Measurement) else value
    return dict(wp.evaluate(query, data, "reference", exact=True))


@pytest.fixture(scope="module")
def tables() -> Any:
    connection = load("sample").sample_tables(seed=3)
    yield connection
    connection.close()


# --- what they are ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_and_reads_back(name: str) -> None:
    written = program(name)
    again = parse(str(written))
    assert dict(written.items()).items() <= dict(again.items()).items()
    assert str(again) == str(written)


BILLS = {
    "q1": {"lineitem": 1},
    "q4": {"orders": 1, "lineitem": 1},
    "q13": {"customer": 1, "orders": 1},
    "q13_cumulative": {"customer": 1, "orders": 1},
    "q16": {"offers": 1},
    "q16_joined": {"partsupp": 1, "part": 1, "supplier": 1},
}


@pytest.mark.parametrize("name", BILLS)
def test_a_program_costs_each_source_epsilon(name: str) -> None:
    measurements = program(name, epsilon="1/3").measurements
    assert wp.bill(list(measurements.values())) == {
        source: uses * Fraction(1, 3) for source, uses in BILLS[name].items()
    }


def test_each_program_is_compared_with_sql() -> None:
    assert {name: set(program(name).measurements) for name in PROGRAMS if program(name).measurements} == {
        name: set(example.exact) for name, example in EXAMPLES.items()
    }


# --- weights by hand ----------------------------------------------------------------------------------------------


def test_q1_adds_shares_of_public_bounds() -> None:
    data = [
        (1, 1, "A", "F", 25, 5_250_000, 5, 8, date(1998, 9, 2)),
        (1, 2, "A", "F", 10, 2_100_000, 10, 0, date(1992, 1, 1)),
        (2, 1, "N", "O", 50, 10_500_000, 0, 8, date(1998, 1, 1)),
        (3, 1, "N", "O", 50, 10_500_000, 0, 8, date(1998, 9, 3)),  # shipped too late
        (3, 2, "R", "O", 5_000, 99_000_000, 99, 0, date(1998, 1, 1)),  # beyond the bounds: 1 of each, at most
    ]
    found = {name: weights(m, {"lineitem": data}) for name, m in program("q1").measurements.items()}
    af, no, ro = ("A", "F"), ("N", "O"), ("R", "O")

    def shares(*numbers: float) -> Fraction:
        return sum(map(Fraction, numbers), Fraction(0))

    assert found["lines"] == {af: 2, no: 1, ro: 1}
    assert found["quantity"] == {af: shares(25 / 50, 10 / 50), no: 1, ro: 1}
    assert found["price"] == {af: shares(0.5, 0.2), no: 1, ro: 1}
    discounted = 5_250_000 * 95 / 1_050_000_000, 2_100_000 * 90 / 1_050_000_000
    assert found["discounted"] == {af: shares(*discounted), no: 1, ro: shares(99e6 / 1050e6)}
    charges = 5_250_000 * 95 * 108 / 113_400_000_000, 2_100_000 * 90 * 100 / 113_400_000_000
    assert found["charge"] == {af: shares(*charges), no: 1, ro: shares(99e8 / 1134e8)}
    assert found["discount"] == {af: shares(0.5, 1.0), ro: 1}


ORDERS = [
    (1, date(1993, 7, 1), "1-URGENT"),
    (2, date(1993, 9, 30), "1-URGENT"),
    (3, date(1993, 8, 1), "5-LOW"),
    (4, date(1993, 8, 1), "5-LOW"),  # no line is late
    (5, date(1993, 6, 30), "5-LOW"),  # an earlier quarter
    (6, date(1993, 10, 1), "5-LOW"),  # a later one
]
LINES = [
    *((1, number, date(1993, 8, 1), date(1993, 8, 2)) for number in (1, 2, 3)),
    (2, 1, date(1993, 8, 1), date(1993, 8, 2)),
    (2, 2, date(1993, 8, 1), date(1993, 8, 1)),  # on the day is not late
    (3, 1, date(1993, 8, 1), date(1994, 1, 1)),
    (4, 1, date(1993, 8, 1), date(1993, 8, 1)),
    (5, 1, date(1993, 8, 1), date(1993, 8, 2)),
    (6, 1, date(1993, 8, 1), date(1993, 8, 2)),
    (7, 1, date(1993, 8, 1), date(1993, 8, 2)),  # of no order
]


def test_q4_gives_an_order_a_half() -> None:
    data = {"orders": ORDERS, "lineitem": LINES}
    assert weights(program("q4")["counts"], data) == {"1-URGENT": 1, "5-LOW": HALF}


def test_an_order_exists_in_four_ways() -> None:
    data = {"orders": ORDERS, "lineitem": LINES}
    found = {name: weights(query, data) for name, query in program("exists").queries.items()}
    late = Counter(key for key, _, committed, received in LINES if committed < received and key != 7)
    assert late[1] == 3
    assert found["literal"] == {key: Fraction(k, 1 + k) for key, k in late.items()}
    assert found["grouped"] == dict.fromkeys(late, Fraction(1, 3))
    assert found["shaved"] == dict.fromkeys(late, HALF)
    assert found["urgent"] == dict.fromkeys((1, 2), ONE)


PLACED = [
    (10, 1, "fast"),
    (11, 1, "special and more requests"),
    (12, 1, "requests that are special"),
    (13, 2, "specialrequests"),
    (14, 9, "of a customer that is not there"),
    (15, 4, "the special one"),
]


def test_q13_counts_customers_without_orders() -> None:
    data = {"customer": [(key,) for key in (1, 2, 3, 4)], "orders": PLACED}
    assert weights(program("q13")["counts"], data) == {0: 1, 1: HALF, 2: HALF}


def test_q13_from_the_other_end_loses_no_weight() -> None:
    data = {"customer": [(key,) for key in (1, 2, 3, 4)], "orders": PLACED}
    cumulative = program("q13_cumulative")
    assert weights(cumulative["more_than"], data) == {0: 3, 1: 1}  # the order of nobody counts here
    assert weights(cumulative["total"], data) == {"customers": 4}


TIN = "SMALL PLATED TIN"
PARTS = [
    (1, "Brand#11", TIN, 9),
    (2, "Brand#11", TIN, 9),
    (3, "Brand#45", TIN, 9),
    (4, "Brand#54", "MEDIUM POLISHED TIN", 9),
    (5, "Brand#54", "MEDIUM PLATED TIN", 10),
    (6, "Brand#54", "MEDIUM PLATED TIN", 3),
]
OFFERS = [(part, supplier) for part, *_ in PARTS for supplier in range(part, part + 4)]
COMPLAINED = {3}


def test_q16_counts_each_supplier_once() -> None:
    by_key = {part[0]: part[1:] for part in PARTS}
    offers = [(part, supplier, *by_key[part], supplier in COMPLAINED) for part, supplier in OFFERS]
    found = {name: weights(m, {"offers": offers}) for name, m in program("q16").measurements.items()}
    # suppliers 1 to 5 offer parts 1 and 2, one of them complained of; 6 to 9 offer part 6
    groups = {("Brand#11", "SMALL", "PLATED", "TIN", 9): 4, ("Brand#54", "MEDIUM", "PLATED", "TIN", 3): 4}
    assert found == {"counts": groups, "by_brand": {"Brand#11": 4, "Brand#54": 4}}


def test_q16_by_joins_leaves_a_thirty_second() -> None:
    suppliers = [
        (key, "Customer; the Complaints" if key in COMPLAINED else "Complaints, Customer") for key in range(1, 10)
    ]
    data = {"partsupp": OFFERS, "part": PARTS, "supplier": suppliers}
    joined = program("q16_joined")
    assert set(weights(joined["wanted"], data).values()) == {Fraction(1, 5), Fraction(2, 5)}
    offered = Counter(supplier for part, supplier in OFFERS if part in (1, 2, 6))
    found: Counter[int] = Counter()
    for (supplier, *_), weight in weights(joined["sound"], data).items():
        found[supplier] += weight
    kept = {key: n for key, n in offered.items() if key not in COMPLAINED}
    assert found == {key: Fraction(n, n + 5) for key, n in kept.items()}
    measured = {name: weights(m, data) for name, m in joined.measurements.items()}
    groups = {("Brand#11", "SMALL", "PLATED", "TIN", 9): 4, ("Brand#54", "MEDIUM", "PLATED", "TIN", 3): 4}
    assert measured["counts"] == {key: Fraction(n, 32) for key, n in groups.items()}
    assert measured["by_brand"] == {"Brand#11": Fraction(4, 32), "Brand#54": Fraction(4, 32)}


# --- against SQL --------------------------------------------------------------------------------------------------


def check(example: Any, connection: Any, engine: str) -> None:
    """Every weight times its factor is what SQL says."""
    rows = {name: relation.fetchall() for name, relation in example.data(connection).items()}
    for name, measurement in program(example.name).measurements.items():
        exact = example.exact[name]
        found = wp.evaluate(Query(measurement.plan), rows, engine)
        scaled = {key: exact.factor * weight for key, weight in found.items()}
        wanted = {key: number for key, number in exact.rows(connection).items() if number}
        assert wanted, name
        assert scaled == pytest.approx(wanted, rel=1e-9), name


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_weights_times_factors_are_the_answers_of_sql(name: str, engine: str, tables: Any) -> None:
    check(EXAMPLES[name], tables, engine)


def test_generated_tables_have_the_columns(tmp_path: Path) -> None:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    if not beside.exists() and shutil.which("tpchgen-cli") is None:
        pytest.skip("tpchgen-cli is not installed: pip install 'wpinq[benchmarks]'")
    queries.generate(0.001, tmp_path)
    connection = queries.open_tables(tmp_path)
    check(EXAMPLES["q1"], connection, "duckdb")
    connection.close()


@pytest.mark.long
def test_the_script_prints_the_bill_and_then_the_answers() -> None:
    command = [sys.executable, str(FOLDER / "run.py"), "q4", "q13", "--epsilon", "0.5"]
    root = str(FOLDER.parents[1])
    done = subprocess.run(command, env={"PYTHONPATH": root}, capture_output=True, text=True, check=True)
    _, q4, q13 = done.stdout.split("\n=== ")
    assert q4.startswith("q4 ===\norders: 0.5\n")
    assert q4.index("lineitem: 0.5") < q4.index("counts: an answer times 2")
    assert q13.startswith("q13 ===\ncustomer: 0.5\n")
