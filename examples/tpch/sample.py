"""A few hundred made-up rows in the schema of TPC-H, for trying the examples without the generator."""

from __future__ import annotations

from typing import Any

import numpy as np

_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_ORDER_COMMENTS = ("quick deposits", "special packages", "requests, special", "special pending requests", "")
_SUPPLIER_COMMENTS = ("fluffy", "Customer of old", "slow Customer sad Complaints", "Complaints of a Customer")
_TYPES = ("PROMO BURNISHED COPPER", "MEDIUM POLISHED TIN", "SMALL PLATED STEEL")


def sample_tables(seed: int, customers: int = 40, orders: int = 150, parts: int = 60, suppliers: int = 12) -> Any:
    """A DuckDB with the tables lineitem, orders, customer, part, partsupp and supplier, filled at random."""
    import duckdb

    draw = np.random.default_rng(seed)
    per_order = draw.integers(1, 8, orders)
    lines = int(per_order.sum())
    ordered, starts = np.repeat(np.arange(1, orders + 1), per_order), np.cumsum(per_order) - per_order
    quantity = draw.integers(1, 51, lines)
    shipped = draw.integers(0, 2500, lines)
    tables = {
        "customer": {"c_custkey": np.arange(1, customers + 1)},
        "orders": {
            "o_orderkey": np.arange(1, orders + 1),
            "o_custkey": draw.integers(1, customers * 2 // 3, orders),  # a third have no order
            "o_orderdate": 540 + draw.integers(0, 200, orders),
            "o_orderpriority": draw.choice(_PRIORITIES, orders).astype(object),
            "o_comment": draw.choice(_ORDER_COMMENTS, orders).astype(object),
        },
        "lineitem": {
            "l_orderkey": ordered,
            "l_linenumber": np.arange(lines) - np.repeat(starts, per_order) + 1,
            "l_quantity": quantity,
            "l_extendedprice": quantity * draw.integers(90_000, 209_900, lines) / 100,
            "l_discount": draw.integers(0, 11, lines) / 100,
            "l_tax": draw.integers(0, 9, lines) / 100,
            "l_returnflag": draw.choice(["A", "N", "R"], lines).astype(object),
            "l_linestatus": draw.choice(["F", "O"], lines).astype(object),
            "l_shipdate": shipped,
            "l_commitdate": shipped + draw.integers(0, 30, lines),
            "l_receiptdate": shipped + draw.integers(0, 20, lines),
        },
        "part": {
            "p_partkey": np.arange(1, parts + 1),
            "p_brand": draw.choice(["Brand#11", "Brand#45", "Brand#54"], parts).astype(object),
            "p_type": draw.choice(_TYPES, parts).astype(object),
            "p_size": draw.choice([3, 9, 10], parts),
        },
        "partsupp": {
            "ps_partkey": np.repeat(np.arange(1, parts + 1), 4),
            "ps_suppkey": np.concatenate([draw.choice(suppliers, 4, replace=False) + 1 for _ in range(parts)]),
        },
        "supplier": {
            "s_suppkey": np.arange(1, suppliers + 1),
            "s_comment": draw.choice(_SUPPLIER_COMMENTS, suppliers).astype(object),
        },
    }
    connection = duckdb.connect()
    for name, columns in tables.items():
        connection.register("drawn", columns)
        connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(map(_typed, columns))} FROM drawn")
        connection.unregister("drawn")
    return connection


def _typed(column: str) -> str:
    if column.endswith("date"):
        return f"DATE '1992-01-01' + CAST({column} AS INTEGER) AS {column}"
    if column in ("l_quantity", "l_extendedprice", "l_discount", "l_tax"):
        return f"CAST({column} AS DECIMAL(15, 2)) AS {column}"
    return column
