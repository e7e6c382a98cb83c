"""TPC-H queries as programs: how each source is read from the tables, and the SQL that says the same without noise.

A source has the key of its table and the columns that its query needs, for what is not read takes no memory: where rows
stand in the order of their key, nobody has to look for equal ones. Money is in cents, discount and tax in percent, for
a float of an integer is made faster than one of a decimal. Two sources over one table have two budgets, and a row is
exposed to their sum.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wpinq as wp

HERE = Path(__file__).parent
TABLES = ("lineitem", "orders", "customer", "part", "partsupp", "supplier")


@dataclass(frozen=True)
class Exact:
    """The SQL answer to a measurement: columns of keys, then numbers, of which `column` is the one.

    The answer to the measurement, times `factor`, estimates it.
    """

    sql: str
    factor: float = 1
    keys: int = 1
    column: int = -1

    def rows(self, connection: Any) -> dict[Any, float]:
        """The number of each key."""
        rows = connection.sql(self.sql).fetchall()
        return {row[0] if self.keys == 1 else row[: self.keys]: float(row[self.column]) for row in rows}


@dataclass(frozen=True)
class Example:
    """A program with its sources, each an SQL query over the tables, and the exact answers to its measurements."""

    name: str
    reads: Mapping[str, str]
    exact: Mapping[str, Exact]

    def program(self, **parameters: object) -> wp.Program:
        path = HERE / f"{self.name}.wpq"
        return wp.parse(path.read_text(encoding="utf-8"), parameters, name=path.name)

    def data(self, connection: Any) -> dict[str, Any]:
        """A DuckDB relation for each source."""
        return {source: connection.sql(sql) for source, sql in self.reads.items()}


_Q1 = """
    SELECT l_returnflag, l_linestatus, count(*), sum(l_quantity), sum(l_extendedprice),
           sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
           sum(l_discount)
    FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAY GROUP BY 1, 2"""

_Q4 = """
    SELECT o_orderpriority, count(*) FROM orders
    WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS (
        SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
    GROUP BY 1"""

_Q13_CUSTOMERS = """
    SELECT c_custkey, count(o_orderkey) AS n FROM customer LEFT OUTER JOIN orders
    ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY 1"""

_Q16 = """
    SELECT {keys}, count(DISTINCT ps_suppkey) FROM partsupp, part
    WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
      AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
      AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
    GROUP BY ALL"""
_TYPE = ", ".join(f"split_part(p_type, ' ', {i})" for i in (1, 2, 3))
_Q16_GROUPS, _Q16_BRANDS = _Q16.format(keys=f"p_brand, {_TYPE}, p_size"), _Q16.format(keys="p_brand")

_OFFERS = """
    SELECT ps_partkey AS partkey, ps_suppkey AS suppkey, p_brand AS brand, p_type AS type, p_size AS size,
           s_comment LIKE '%Customer%Complaints%' AS complaints
    FROM partsupp, part, supplier WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey"""

_PLACED = "SELECT o_orderkey AS orderkey, o_custkey AS custkey, o_comment AS comment FROM orders"
_CUSTOMER = "SELECT c_custkey AS custkey FROM customer"

EXAMPLES = (
    Example(
        "q1",
        {
            "lineitem": """
                SELECT l_orderkey AS orderkey, l_linenumber AS linenumber, l_returnflag AS returnflag,
                       l_linestatus AS linestatus, CAST(l_quantity AS BIGINT) AS quantity,
                       CAST(l_extendedprice * 100 AS BIGINT) AS price, CAST(l_discount * 100 AS BIGINT) AS discount,
                       CAST(l_tax * 100 AS BIGINT) AS tax, l_shipdate AS shipdate
                FROM lineitem"""
        },
        {
            "lines": Exact(_Q1, 1, 2, 2),
            "quantity": Exact(_Q1, 50, 2, 3),
            "price": Exact(_Q1, 105_000, 2, 4),
            "discounted": Exact(_Q1, 105_000, 2, 5),
            "charge": Exact(_Q1, 113_400, 2, 6),
            "discount": Exact(_Q1, 0.1, 2, 7),
        },
    ),
    Example(
        "q4",
        {
            "orders": """
                SELECT o_orderkey AS orderkey, o_orderdate AS orderdate, o_orderpriority AS priority FROM orders""",
            "lineitem": """
                SELECT l_orderkey AS orderkey, l_linenumber AS linenumber, l_commitdate AS commitdate,
                       l_receiptdate AS receiptdate FROM lineitem""",
        },
        {"counts": Exact(_Q4, 2)},
    ),
    Example(
        "q13",
        {"customer": _CUSTOMER, "orders": _PLACED},
        {"counts": Exact(f"SELECT n, count(*) FROM ({_Q13_CUSTOMERS}) GROUP BY 1", 2)},
    ),
    Example(
        "q13_cumulative",
        {"customer": _CUSTOMER, "orders": _PLACED},
        {
            "more_than": Exact(f"SELECT i, count(*) FROM ({_Q13_CUSTOMERS}), range(64) AS r(i) WHERE n > i GROUP BY 1"),
            "total": Exact("SELECT 'customers', count(*) FROM customer"),
        },
    ),
    Example("q16", {"offers": _OFFERS}, {"counts": Exact(_Q16_GROUPS, 1, 5), "by_brand": Exact(_Q16_BRANDS)}),
    Example(
        "q16_joined",
        {
            "partsupp": "SELECT ps_partkey AS partkey, ps_suppkey AS suppkey FROM partsupp",
            "part": "SELECT p_partkey AS partkey, p_brand AS brand, p_type AS type, p_size AS size FROM part",
            "supplier": "SELECT s_suppkey AS suppkey, s_comment AS comment FROM supplier",
        },
        {"counts": Exact(_Q16_GROUPS, 32, 5), "by_brand": Exact(_Q16_BRANDS, 32)},
    ),
)


def generate(scale: float, folder: Path) -> None:
    """Write the tables at a scale factor as parquet files; needs tpchgen-cli (`pip install 'wpinq[benchmarks]'`)."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    command = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if command is None:
        raise SystemExit("tpchgen-cli is not installed: pip install 'wpinq[benchmarks]'")
    asked = ["--scale-factor", str(scale), "--tables", ",".join(TABLES), "--output-dir", str(folder), "--quiet"]
    subprocess.run([command, "parquet", *asked], check=True)


def open_tables(folder: Path) -> Any:
    """A DuckDB with the parquet files of a folder as views by their names."""
    import duckdb

    connection = duckdb.connect()
    for table in TABLES:
        path = str(folder / f"{table}.parquet").replace("'", "''")
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{path}')")
    return connection
