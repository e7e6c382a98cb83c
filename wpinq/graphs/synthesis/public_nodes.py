"""Nodes that are public knowledge.

They come from a list that is declared public, never from the protected edges. Inside, a node is its place in the list,
which is sorted: by labels first where there are any, so that a label is a range of places.
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
#: Of more labels a matrix is noise, and a plan long.
MOST_LABELS = 200


@dataclass(frozen=True, slots=True, repr=False)
class PublicNodes:
    """All nodes that may have an edge, from public knowledge.

    Attributes
    ----------
    names : tuple of int or str
        The name of each node, sorted by label and name.
    labels : tuple of str
        The label of each node in the same order, or none.

    Examples
    --------
    >>> nodes = PublicNodes.of(["bob", "ann", "eve"], str)
    >>> nodes.names
    ('ann', 'bob', 'eve')
    >>> nodes.numbered([("eve", "ann")])
    [(2, 0)]
    """

    names: tuple[Any, ...]
    labels: tuple[str, ...] = ()

    @staticmethod
    def of(given: object, node: type = int, labels: object = None) -> PublicNodes:
        """From names, or a file of names (`read_nodes`), with labels where there are any.

        Labels are a mapping by name, a sequence in the order of names, or a column of the file.

        Raises
        ------
        PlanError
            When it is no list of different names of the type, or it is a part of a graph; when not every node has a
            label, or labels are fewer than two or too many.
        """
        if isinstance(given, PublicNodes):
            labels = (given.labels or None) if labels is None else labels
            given = given.names
        if type(given).__module__.partition(".")[0] in _LIBRARIES:
            raise PlanError(
                "public nodes are a list from public knowledge: those of a graph tell which nodes have an edge"
            )
        if isinstance(given, (str, os.PathLike)):
            return read_nodes(given, node, labels)
        if not isinstance(given, Iterable):
            raise PlanError(f"public nodes are a list of names, or a file of them, not {described(given)}")
        names: list[Any] = [each.item() if isinstance(each, np.generic) else each for each in given]
        if any(type(name) is not node or (node is str and not NAME.fullmatch(str(name))) for name in names):
            raise PlanError(f"the names of public nodes are of type {node.__name__}, texts without blanks and quotes")
        if len(names) < 2 or len(set(names)) < len(names):
            raise PlanError("public nodes are two or more different names: one of them is there twice, or they are few")
        if labels is None:
            return PublicNodes(tuple(sorted(names)))
        if isinstance(labels, Mapping):
            labels = [labels.get(name) for name in names]
        if isinstance(labels, (str, os.PathLike)) or not isinstance(labels, Iterable):
            raise PlanError("labels are a mapping of each public node to its label, or a column of a file of nodes")
        said = [each.item() if isinstance(each, np.generic) else each for each in labels]
        if len(said) != len(names) or any(type(label) not in (int, str) or label == "" for label in said):
            raise PlanError("every public node has one label, a text or a whole number: one has none, or another type")
        if not 2 <= len(set(map(str, said))) <= MOST_LABELS:
            raise PlanError(f"the labels of public nodes are 2 to {MOST_LABELS} different ones: merge small groups")
        rows = sorted(zip(map(str, said), names, strict=True))
        return PublicNodes(tuple(name for _, name in rows), tuple(label for label, _ in rows))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<PublicNodes: {self.words}>"

    @property
    def words(self) -> str:
        """The list in words, which plans and ledgers hold in its place: its length and digest."""
        table = [self.names, self.labels] if self.labels else self.names
        digest = hashlib.sha256(json.dumps(table).encode()).hexdigest()[:16]
        of_labels = f" of {len(set(self.labels))} labels" if self.labels else ""
        return f"{len(self.names):,} public nodes{of_labels}, digest {digest}"

    @property
    def label_numbers(self) -> Integers:
        """The number of the label of each node."""
        return np.unique(np.array(self.labels, dtype=object), return_inverse=True)[1]

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


def read_nodes(path: str | os.PathLike[str], node: type = int, label: object = None) -> PublicNodes:
    """The public nodes of a csv or tsv file with a header, or of a text with a node a line.

    Parameters
    ----------
    path : path
        The first column holds the names of nodes; lines that begin with `#` are comments of a text.
    node : {int, str}
        The type of names.
    label : optional
        The column of labels in a csv or tsv file by name, or labels as for `PublicNodes.of`.

    Raises
    ------
    PlanError
        When the file is no such list. It is public, so the message may quote it.
    """
    file, head = Path(path), [""]
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            if file.suffix.lower() in (".csv", ".tsv"):
                head, *rows = csv.reader(lines, delimiter="," if file.suffix.lower() == ".csv" else "\t")
            else:
                rows = [line.split() for line in lines if not line.startswith("#")]
    except (OSError, ValueError) as error:
        raise PlanError(f"{file} cannot be read as a list of public nodes: {type(error).__name__}") from None
    rows, named = [[each.strip() for each in row] for row in rows if row], [each.strip() for each in head]
    if isinstance(label, str):
        if label not in named:
            raise PlanError(f"{file} has no column {label!r} of labels: give a csv or tsv file whose header names it")
        label = [dict(zip(named, row, strict=False)).get(label, "") for row in rows]
    try:
        return PublicNodes.of([node(row[0]) for row in rows], node, label)
    except ValueError:
        raise PlanError(f"{file} has a line without a node of type {node.__name__}") from None
