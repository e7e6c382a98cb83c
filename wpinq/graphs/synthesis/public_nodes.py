"""Nodes that are public knowledge.

They come from a list that is declared public, never from the protected edges. Inside, a node is its place in the list,
which is sorted.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wpinq.errors import PlanError, SourceRejected, described
from wpinq.graphs.edges import NAME
from wpinq.runtime.arrays import Integers

#: What is said of an edge with another end: neither the node, nor the line, nor how many.
OUTSIDE = (
    "Cannot read the data: an edge has an end that is not one of the public nodes. Give a list of all nodes that may "
    "have an edge, from public knowledge, or leave it out"
)
_LIBRARIES = ("networkx", "igraph", "scipy")


@dataclass(frozen=True, slots=True, repr=False)
class PublicNodes:
    """All nodes that may have an edge, from public knowledge.

    Attributes
    ----------
    names : tuple of int or str
        The name of each node, sorted.

    Examples
    --------
    >>> nodes = PublicNodes.of(["bob", "ann", "eve"], str)
    >>> nodes.names
    ('ann', 'bob', 'eve')
    >>> nodes.numbered([("eve", "ann")])
    [(2, 0)]
    """

    names: tuple[Any, ...]

    @staticmethod
    def of(given: object, node: type = int) -> PublicNodes:
        """From names, or a file of names (`read_nodes`).

        Raises
        ------
        PlanError
            When it is no list of different names of the type, or it is a part of a graph.
        """
        if isinstance(given, PublicNodes):
            given = given.names
        if type(given).__module__.partition(".")[0] in _LIBRARIES:
            raise PlanError(
                "public nodes are a list from public knowledge: those of a graph tell which nodes have an edge"
            )
        if isinstance(given, (str, os.PathLike)):
            return read_nodes(given, node)
        if not isinstance(given, Iterable):
            raise PlanError(f"public nodes are a list of names, or a file of them, not {described(given)}")
        names: list[Any] = [each.item() if isinstance(each, np.generic) else each for each in given]
        if any(type(name) is not node or (node is str and not NAME.fullmatch(str(name))) for name in names):
            raise PlanError(f"the names of public nodes are of type {node.__name__}, texts without blanks and quotes")
        if len(names) < 2 or len(set(names)) < len(names):
            raise PlanError("public nodes are two or more different names: one of them is there twice, or they are few")
        return PublicNodes(tuple(sorted(names)))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<PublicNodes: {self.words}>"

    @property
    def words(self) -> str:
        """The list in words, which plans and ledgers hold in its place: its length and digest."""
        digest = hashlib.sha256(json.dumps(self.names).encode()).hexdigest()[:16]
        return f"{len(self.names):,} public nodes, digest {digest}"

    def numbered(self, edges: Iterable[tuple[Any, Any]]) -> list[tuple[int, int]]:
        """Edges by the places of their ends; SourceRejected where one is not among the nodes."""
        place = {name: i for i, name in enumerate(self.names)}
        found = [(place.get(a, -1), place.get(b, -1)) for a, b in edges]  # no KeyError, which would hold a node
        if any(a < 0 or b < 0 for a, b in found):
            raise SourceRejected(OUTSIDE)
        return found

    def named(self, edges: Integers) -> list[tuple[Any, Any]]:
        """Edges by the names of their ends."""
        return [(self.names[a], self.names[b]) for a, b in edges.tolist()]


def read_nodes(path: str | os.PathLike[str], node: type = int) -> PublicNodes:
    """The public nodes of a csv or tsv file with a header, or of a text with a node a line.

    Parameters
    ----------
    path : path
        The first column holds the names of nodes; lines that begin with `#` are comments of a text.
    node : {int, str}
        The type of names.

    Raises
    ------
    PlanError
        When the file is no such list. It is public, so the message may quote it.
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            if file.suffix.lower() in (".csv", ".tsv"):
                _, *rows = csv.reader(lines, delimiter="," if file.suffix.lower() == ".csv" else "\t")
            else:
                rows = [line.split() for line in lines if not line.startswith("#")]
    except (OSError, ValueError) as error:
        raise PlanError(f"{file} cannot be read as a list of public nodes: {type(error).__name__}") from None
    try:
        return PublicNodes.of([node(row[0].strip()) for row in rows if row], node)
    except ValueError:
        raise PlanError(f"{file} has a line without a node of type {node.__name__}") from None
