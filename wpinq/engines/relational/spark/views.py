"""The tables that statements make in Spark: views, and rows that are read more than once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from wpinq.dataset import WeightRange
from wpinq.engines.relational.programs import Programs
from wpinq.engines.relational.rewrites.equal_weights import weights_sql
from wpinq.engines.relational.spark.frames import let_go
from wpinq.engines.relational.spark.spark_sql import SPARK
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
        self.found: dict[str, WeightRange] = {}
        self.programs = Programs(SPARK)  # with weights of the data: they go with these
        self._often: Callable[[], frozenset[str]] = frozenset
        self._kept: tuple[int, frozenset[str]] | None = None

    def stands(self, table: str) -> bool:
        """Whether a plan that is evaluated together with this one made it."""
        return table in self._made

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Name the query of a statement. Its rows are made when they are first asked for."""
        frame = self._spark.sql(statement.query)
        self._made.add(statement.creates)
        if shared or statement.creates in self._read_often():
            frame = frame.localCheckpoint(eager=False)
            self.callback(let_go, frame)
        frame.createOrReplaceTempView(statement.creates)
        self.callback(self._spark.catalog.dropTempView, statement.creates)

    def _read_often(self) -> frozenset[str]:
        """Asked again whenever a weight was found: the programs, and with them the tables, are others from then on."""
        if self._kept is None or self._kept[0] != len(self.found):
            self._kept = len(self.found), self._often()
        return self._kept[1]

    def begin(self, often: Callable[[], frozenset[str]]) -> None:
        """A plan is evaluated; `often` gives the tables that several plans read, from what is `found` by then."""
        self._often, self._kept = often, None

    def drop(self, table: str) -> None:
        """Nothing yet: rows that are made late may come from it."""

    def weights(self, table: str) -> WeightRange:
        """The least and the greatest weight in a table."""
        if table not in self.found:
            (row,) = self._spark.sql(weights_sql(table)).collect()
            self.found[table] = row[0], row[1]
        return self.found[table]


class Rehearsal(SparkViews):
    """The views of a plan over tables without rows, in which nothing is looked at."""

    def weights(self, table: str) -> WeightRange:
        """None: there are no rows."""
        self.found[table] = None, None
        return self.found[table]
