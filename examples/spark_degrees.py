"""Noisy degrees of a graph that Spark reads, on a cluster or on one machine.

    spark-submit examples/spark_degrees.py EDGES.parquet LEDGER.db

EDGES.parquet has the columns `src` and `dst`, each undirected edge once; its rows stay in Spark. The ledger is a file
of the driver's: keep it where the next run finds it, or budgets are forgotten. On a cluster, executors write logs that
quote rows: keep them from analysts.
"""

from __future__ import annotations

import sys

import wpinq as wp
from wpinq.graphs import degree_ccdf, symmetrize


def main(edges_path: str, ledger: str) -> wp.Answers:
    """Release the number of nodes of more than i edges, for i below 20, at 0.5 for each direction of an edge."""
    edges = wp.source("edges", src=int, dst=int, unit="one undirected edge", facts=["unit_weights", "simple"])
    with wp.Session(ledger, engine="spark", accept=["executor_log"]) as session:
        session.protect(edges, edges_path, budget=2.0, version="1")
        answers = session.release(degree_ccdf(symmetrize(edges)).noisy_count(epsilon=0.5, over=range(20)))
    assert isinstance(answers, wp.Answers)
    return answers


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
