"""Protected data: offered data become `{record: weight}` of a declared type, or are refused."""

import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from wpinq.data.edges import EdgeList as EdgeList
from wpinq.data.files import CsvFile as CsvFile
from wpinq.data.read import read_source as read_source


class _Frame(Protocol):
    """A table of Arrow, polars, Spark, Delta or Iceberg."""

    @property
    def schema(self) -> Any: ...


class _Cursor(Protocol):
    """A cursor with a result, or a relation of DuckDB."""

    @property
    def fetchall(self) -> Callable[..., Any]: ...


class _Graph(Protocol):
    """A graph of igraph; one of networkx is iterable."""

    @property
    def get_edgelist(self) -> Callable[..., Any]: ...


#: What `read_source` takes, for type checkers: paths, rows, mappings, frames, cursors and graphs.
SourceData = str | os.PathLike[str] | Iterable[Any] | EdgeList | CsvFile | _Frame | _Cursor | _Graph
