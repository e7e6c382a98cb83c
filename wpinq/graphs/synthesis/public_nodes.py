"""Nodes that are public knowledge: their names, and their labels if they have some.

They come from a list that is declared public, never from the protected edges. Inside, a node is its place in the list,
which is sorted by label and then by name: so a label is a range of numbers.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
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
        The name of each node, sorted by label and then by name.
    labels : tuple of str
        The label of each, such as a department; empty where they have none.

    Examples
    --------
    >>> nodes = PublicNodes.of({"bob": "sales", "ann": "sales", "eve": "IT"}, str)
    >>> nodes.names, nodes.labels
    (('eve', 'ann', 'bob'), ('IT', 'sales', 'sales'))
    >>> nodes.numbered([("ann", "eve")])
    [(1, 0)]
    """

    names: tuple[Any, ...]
    labels: tuple[str, ...] = ()

    @staticmethod
    def of(given: object, node: type = int) -> PublicNodes:
        """From names, a mapping of names to labels, or a file of names (`read_nodes`).

        Raises
        ------
        PlanError
            When it is no list of different names of the type, or it is a part of a graph.
        """
        if isinstance(given, PublicNodes):
            given = dict(zip(given.names, given.labels, strict=True)) if given.labels else given.names
        if type(given).__module__.partition(".")[0] in _LIBRARIES:
            raise PlanError(
                "public nodes are a list from public knowledge: those of a graph tell which nodes have an edge"
            )
        if isinstance(given, (str, os.PathLike)):
            return read_nodes(given, node)
        if not isinstance(given, Iterable):
            raise PlanError(f"public nodes are a list of names, or a file of them, not {described(given)}")
        labelled = isinstance(given, Mapping)
        names = [each.item() if isinstance(each, np.generic) else each for each in given]
        labels = [*given.values()] if isinstance(given, Mapping) else []
        if any(type(name) is not node or (node is str and not NAME.fullmatch(name)) for name in names):
            raise PlanError(f"the names of public nodes are of type {node.__name__}, texts without blanks and quotes")
        if len(names) < 2 or len(set(names)) < len(names):
            raise PlanError("public nodes are two or more different names: one of them is there twice, or they are few")
        if labelled and not all(isinstance(label, str) and label for label in labels):
            raise PlanError("the label of a public node is a text that is not empty")
        order = sorted(range(len(names)), key=lambda i: (labels[i] if labelled else "", names[i]))
        return PublicNodes(tuple(names[i] for i in order), tuple(labels[i] for i in order if labelled))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<PublicNodes: {self.words}>"

    @property
    def words(self) -> str:
        """The list in words, which plans and ledgers hold in its place: its length and digest."""
        text = json.dumps([self.names, self.labels]).encode()
        kind = "labelled public nodes" if self.labels else "public nodes"
        return f"{len(self.names):,} {kind}, digest {hashlib.sha256(text).hexdigest()[:16]}"

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


def read_nodes(path: str | os.PathLike[str], node: type = int, label: str | None = None) -> PublicNodes:
    """The public nodes of a file: a csv or tsv file with a line of names, or a text of a node a line.

    Parameters
    ----------
    path : path
        The first column holds the names of nodes; lines that begin with `#` are comments of a text.
    node : {int, str}
        The type of names.
    label : str, optional
        The column of labels, by name in csv and tsv, by position in text: the second is 2.

    Raises
    ------
    PlanError
        When the file is no such list. It is public, so the message may quote it.
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            if file.suffix.lower() in (".csv", ".tsv"):
                head, *rows = csv.reader(lines, delimiter="," if file.suffix.lower() == ".csv" else "\t")
            else:
                rows = [line.split() for line in lines if not line.startswith("#")]
                head = [str(1 + i) for i in range(max(map(len, rows), default=0))]
    except (OSError, ValueError) as error:
        raise PlanError(f"{file} cannot be read as a list of public nodes: {type(error).__name__}") from None
    rows = [row for row in rows if row]
    if label is not None and label not in head[1:]:
        raise PlanError(f"{file} has no column {label!r} of labels; after the nodes it has {', '.join(head[1:])}")
    at = 0 if label is None else head.index(label)
    try:
        names = [node(row[0].strip()) for row in rows]
        labels = [row[at].strip() for row in rows]
    except (ValueError, IndexError):
        raise PlanError(f"{file} has a line without a node of type {node.__name__}, or without its label") from None
    if len(set(names)) < len(names):
        raise PlanError(f"{file} has a node twice")
    return PublicNodes.of(names if label is None else dict(zip(names, labels, strict=True)), node)
