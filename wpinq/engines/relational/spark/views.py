"""The tables that statements make in Spark: views, and rows that are read more than once."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from wpinq.engines.relational.spark.frames import let_go
from wpinq.engines.relational.sql.script import SqlStatement


class SparkViews(ExitStack):
    """What `running.run` asks of Spark, for one plan or for several together.

    A table is a view; its rows are kept if they are read more than once.

    At its end it lets go of all of them.
    """

    def __init__(self, spark: Any) -> None:
        super().__init__()
        self._spark = spark
        self._made: set[str] = set()
        self.kept: frozenset[str] = frozenset()
        """Tables that several plans read."""

    def stands(self, table: str) -> bool:
        """Whether a plan that is evaluated together with this one made it."""
        return table in self._made

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Name the query of a statement. Its rows are made when they are first asked for."""
        frame = self._spark.sql(statement.query)
        self._made.add(statement.creates)
        if shared or statement.creates in self.kept:
            frame = frame.localCheckpoint(eager=False)
            self.callback(let_go, frame)
        frame.createOrReplaceTempView(statement.creates)
        self.callback(self._spark.catalog.dropTempView, statement.creates)

    def drop(self, table: str) -> None:
        """Nothing yet: rows that are made late may come from it."""


class Rehearsal(SparkViews):
    """The views of a plan over tables without rows, of which no query is run."""
