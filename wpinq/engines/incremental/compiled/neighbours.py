"""The state of a walk by swaps over neighbour lists; see `terms`, which says for which plans, and `loop`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.arrays import Floats
from wpinq.engines.incremental.compiled.columns import Dictionary
from wpinq.engines.incremental.compiled.frozen import Frozen
from wpinq.engines.incremental.compiled.graph import Graph
from wpinq.engines.incremental.compiled.loop import Loop, Site
from wpinq.engines.incremental.compiled.modules import import_module
from wpinq.engines.incremental.compiled.steps import Step, Steps
from wpinq.engines.incremental.compiled.tables import Words, apart
from wpinq.engines.incremental.compiled.targets import huber
from wpinq.engines.incremental.compiled.terms import OutOfReach
from wpinq.engines.incremental.compiled.values import FrozenList

MOST_PLACES = 1 << 22
"""Of combinations of tags, for one place that passes them on."""
MOST_IN_A_ROW = 256
SAME = 1e-9
"""How close, relative to the largest, what neighbours add to a norm must be to count as one and the same."""

Outputs = list[tuple[Words, Floats]]


class NeighbourWalk:
    """Edges, neighbour lists, what is frozen, the rows of edges, and the outputs.

    Parameters
    ----------
    loop : Loop
        The generated text and what it needs.
    steps : Steps
        The steps it was generated from.
    symmetric : bool
        Whether the source holds both directions of each edge.
    graph : Graph
        The graph to start from; the walk changes it.
    dictionary : Dictionary
        The numbers of strings.

    Raises
    ------
    OutOfReach
        Where this graph's tags are too many, or what neighbours add to a norm differs.
    """

    def __init__(self, loop: Loop, steps: Steps, symmetric: bool, graph: Graph, dictionary: Dictionary) -> None:
        self._loop, self._graph, self._steps = loop, graph, steps
        self._labels = graph.vertices.words(dictionary)
        self._dictionary = dictionary
        self._held: dict[str, NDArray[Any]] = {"labels": self._labels}
        edges, starts, neighbours, ids, marks = graph.arrays
        self._held |= {"edges": edges, "starts": starts, "neighbours": neighbours, "ids": ids, "marks": marks}
        self.frozen = self._evaluate_frozen(symmetric)
        self._lay_out_lists()
        self._module: ModuleType = import_module(loop.text)
        self._compute_norms()
        self._lay_out_rows()
        self._lay_out_outputs()
        self.resynchronize()

    # --- set up -----------------------------------------------------------------------------------------------

    def _evaluate_frozen(self, symmetric: bool) -> dict[Step, tuple[Words, Floats]]:
        lists = [held for held in self._loop.registry.lists if isinstance(held, FrozenList)]
        wanted = list(dict.fromkeys([held.step for held in lists] + [self._steps.roots[n] for n in self._loop.frozen]))
        if not wanted:
            return {}
        if any(step not in self._steps.nodes for step in wanted):
            raise OutOfReach("a frozen step that stands for no part of the plan")
        outputs = Frozen(self._loop.linear, self._steps, self._graph, self._labels, self._dictionary, symmetric)
        found = {}
        for step in wanted:
            node = self._steps.nodes[step]
            output = outputs.of(node)
            words = self._dictionary.encode_all(list(output), node.type).reshape(len(output), step.width)
            found[step] = words, np.array([*map(float, output.values())], dtype=np.float64)
        return found

    def _lay_out_lists(self) -> None:
        """`places`, `tags`, `amounts`: for each list and vertex, numbers of tags and weights; `words` of each tag."""
        count, lists = len(self._graph.vertices), self._loop.registry.lists
        places = np.zeros((max(1, len(lists)), count + 1), dtype=np.uint64)
        tags, amounts, sizes = [np.zeros(0, np.uint32)], [np.zeros(0)], np.zeros(2 * max(1, len(lists)), np.int64)
        self._tag_words: list[Words] = []
        used = 0
        for number, held in enumerate(lists):
            distinct: Words = np.zeros((0, 1), dtype=np.int64)
            if isinstance(held, FrozenList):
                words, weights = self.frozen[held.step]
                vertex, known = self._vertices_of(words[:, held.column])
                distinct, numbers = _distinct(np.delete(words[known], held.column, axis=1))
                order = np.lexsort((numbers, vertex[known]))  # whatever the order of evaluation was
                numbers = numbers[order]
                places[number] = used + np.concatenate([[0], np.cumsum(np.bincount(vertex[known], minlength=count))])
                tags.append(numbers.astype(np.uint32))
                amounts.append(weights[known][order])
                used += len(numbers)
            self._tag_words.append(distinct)
            sizes[2 * number] = len(distinct)
        self._held |= {"places": places, "tags": np.concatenate(tags), "amounts": np.concatenate(amounts)}
        self._held["sizes"] = sizes
        self._join_words()

    def _vertices_of(self, labels: Words) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        order = np.argsort(self._labels[:, 0], kind="stable")
        ordered = self._labels[order, 0]
        at = np.minimum(np.searchsorted(ordered, labels), len(ordered) - 1)
        return order[at], ordered[at] == labels

    def _join_words(self) -> None:
        sizes, start = self._held["sizes"], 0
        wide = max([1, *(words.shape[1] for words in self._tag_words)])
        total = sum(len(words) for words in self._tag_words)
        joined = np.zeros((max(1, total), wide), dtype=np.int64)
        for number, words in enumerate(self._tag_words):
            joined[start : start + len(words), : words.shape[1]] = words
            sizes[2 * number], sizes[2 * number + 1] = len(words), start
            start += len(words)
        self._held["words"] = joined

    def _compute_norms(self) -> None:
        count, degrees = len(self._graph.vertices), self._graph.degrees.astype(np.float64)
        norms = np.zeros((max(1, len(self._loop.registry.norms)), count))
        inverses = self._held["inverses"] = np.zeros_like(norms)
        for number, part in enumerate(self._loop.parts):
            totals = np.zeros(count)
            self._call("parts", which=self._loop.part_numbers[number], totals=totals)
            if part.kind == "spread":
                among = totals[degrees > 0]
                if len(among) and np.ptp(among) > SAME * np.max(among):
                    raise OutOfReach("what neighbours add to a norm differs")
                totals = np.full(count, among[0] if len(among) else 0.0)
            counts: dict[str, Any] = {"own": 1.0, "each": degrees, "pairs": degrees * (degrees - 1), "spread": degrees}
            norm = norms[part.norm]
            norm += counts[part.kind] * totals
            inverses[part.norm] = np.divide(1.0, norm, out=np.zeros(count), where=norm > 0)

    def _site_words(self, number: int, site: Site) -> Words:
        size = int(np.prod([len(self._tag_words[held]) for held in site.lists], dtype=np.int64))
        if size > MOST_PLACES:
            raise OutOfReach("too many combinations of tags")
        records = np.zeros((size, max(1, len(site.words))), dtype=np.int64)
        self._call("records_of", which=self._loop.site_numbers[number], records=records)
        return records[:, : len(site.words)]

    def _lay_out_rows(self) -> None:
        """`maps` from the tags at a site to what it passes on to; rows: an entry for each tag, then their total."""
        loop = self._loop
        self._maps = [np.zeros(0, dtype=np.int64) for _ in loop.sites]
        for pair in range(len(loop.pairs)):
            mine = [n for n, site in enumerate(loop.sites) if site.target is None and site.pair == pair]
            distinct, numbers = _distinct(np.concatenate([self._site_words(n, loop.sites[n]) for n in mine]))
            for n, part in zip(mine, np.split(numbers, np.cumsum([self._size(loop.sites[n]) for n in mine])[:-1]),
                               strict=True):  # fmt: skip
                self._maps[n] = part
            self._tag_words[loop.registry.lists.index(pair)] = distinct
        self._join_words()
        row_at, width = np.full(2 * max(1, len(loop.pairs)), -1, dtype=np.int64), 0
        for pair, direction, _, _ in loop.rows:
            row_at[2 * pair + direction] = width
            width += len(self._tag_words[loop.registry.lists.index(pair)]) + 1
        if width > MOST_IN_A_ROW:
            raise OutOfReach("too many tags in a row")
        self._held["row_at"] = row_at
        self._width = width
        longest = max([1, *(len(self._tag_words[loop.registry.lists.index(p)]) for p in range(len(loop.pairs)))])
        shares = np.zeros((max(1, len(loop.tagged)), longest))
        for number, tagged in enumerate(loop.tagged):
            words = self._tag_words[loop.registry.lists.index(tagged.pair)]
            for at, row in enumerate(words[:, list(tagged.columns)].tolist()):
                shares[number, at] = tagged.shares.get(tuple(row), 0.0)
        self._held["shares"] = shares

    def _size(self, site: Site) -> int:
        return int(np.prod([len(self._tag_words[held]) for held in site.lists], dtype=np.int64))

    def _lay_out_outputs(self) -> None:
        """Outputs by number: first those of the first plan, and so on; where each site passes things on to."""
        loop = self._loop
        self.records: list[Words] = []
        self.spans: list[slice] = []
        start = 0
        for target, root in enumerate(self._steps.roots):
            mine = [n for n, site in enumerate(loop.sites) if site.target == target]
            found = [self._site_words(n, loop.sites[n]) for n in mine]
            distinct, numbers = _distinct(np.concatenate([np.zeros((0, root.width), dtype=np.int64), *found]))
            parts = np.split(numbers + start, np.cumsum([len(words) for words in found])[:-1]) if mine else []
            for n, part in zip(mine, parts, strict=True):
                self._maps[n] = part
            self.records.append(distinct)
            self.spans.append(slice(start, start + len(distinct)))
            start += len(distinct)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in self._maps])]).astype(np.int64)
        self._held["offsets"] = offsets
        self._held["maps"] = np.concatenate([np.zeros(1, dtype=np.int64)[:0], *self._maps, [0]]).astype(np.int64)
        acc_at = np.full(len(loop.constants) + self._width, -1, dtype=np.int64)
        for place, site in enumerate(loop.constants):
            acc_at[place] = self._maps[site][0]
        for pair, direction, _, site in loop.rows:
            size = len(self._tag_words[loop.registry.lists.index(pair)])
            at = len(loop.constants) + int(self._held["row_at"][2 * pair + direction])
            acc_at[at : at + size] = self._maps[site] if loop.sites[site].lists else self._maps[site][0]
        self._room(start, acc_at)

    def _room(self, outputs: int, acc_at: Words) -> None:
        count, edges = len(self._graph.vertices), len(self._graph.edges)
        self._held |= {
            "acc_at": acc_at,
            "acc": apart(np.zeros(len(acc_at))),
            "counts": apart(np.zeros(1, dtype=np.int64)),
        }
        for name in ("current", "delta", "goals", "prices", "widths"):
            self._held[name] = apart(np.zeros(outputs))
        self._held["stamps"] = apart(np.zeros(outputs, dtype=np.uint32))
        self._held["touched"] = apart(np.zeros(outputs, dtype=np.int64))
        if not self._loop.pairs:
            return
        events = 8 * int(self._graph.degrees.max(initial=0)) + 8
        self._held |= {
            "weights": np.zeros((count, self._width)),
            "rows": np.zeros((edges, self._width)),
            "fresh": apart(np.zeros((2, self._width))),
            "spare": np.zeros((min(events, edges), self._width)),
            "held_edges": np.zeros(min(events, edges), dtype=np.int64),
            "edge_stamps": np.zeros(edges, dtype=np.uint32),
            "found": np.zeros((count, 2), dtype=np.uint32),
            "event_edges": np.zeros(events, dtype=np.uint32),
            "event_vertices": np.zeros(events, dtype=np.uint32),
            "event_signs": np.zeros(events),
        }
        self._call("weighed")
        for pair, direction, _, _ in self._loop.rows:
            at = int(self._held["row_at"][2 * pair + direction])
            size = len(self._tag_words[self._loop.registry.lists.index(pair)])
            self._held["weights"][:, at + size] = self._held["weights"][:, at : at + size].sum(axis=1)

    # --- the walk ---------------------------------------------------------------------------------------------

    def _call(self, name: str, **given: object) -> None:
        function = getattr(self._module, name)
        held = {**self._held, **given}
        function(*(held[argument] for argument in self._loop.arguments[name]))

    def aim(self, target: int, goals: Floats, prices: Floats, width: float) -> None:
        """What the outputs of a plan are to come close to, the price of a unit of distance for each, and the width."""
        self._held["goals"][self.spans[target]] = goals
        self._held["prices"][self.spans[target]] = prices
        self._held["widths"][self.spans[target]] = width

    def resynchronize(self) -> None:
        """Evaluate the outputs afresh; neighbour lists follow the order of the edges again."""
        self._graph.order()
        self._call("whole")

    def run(self, seeds: NDArray[np.uint64], tallies: Words, steps: int, power: float, closing: float) -> None:
        """Run steps of the walk."""
        self._call("walk", seeds=seeds, tallies=tallies, steps=steps, real_power=power, real_closing=closing)

    @property
    def score(self) -> float:
        """The distance of the outputs to what they are to be, each unit at its price."""
        held = self._held
        return float(np.sum(held["prices"] * huber(held["current"] - held["goals"], held["widths"])))

    def is_frozen(self, target: int) -> bool:
        """Whether swaps leave a plan's output as it is."""
        return target in self._loop.frozen

    def output(self, target: int) -> tuple[Words, Floats]:
        """The records of a plan's output and their weights."""
        if self.is_frozen(target):
            return self.frozen[self._steps.roots[target]]
        return self.records[target], self._held["current"][self.spans[target]]

    @property
    def memory(self) -> int:
        """The bytes of the arrays, the graph's aside."""
        graph = {id(array) for array in self._graph.arrays}
        return sum(array.nbytes for array in self._held.values() if id(array) not in graph)


def _distinct(rows: Words) -> tuple[Words, NDArray[np.int64]]:
    """The distinct rows, and for each row the number of its like."""
    if rows.shape[1] == 0:
        return np.zeros((min(1, len(rows)), 0), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    found, numbers = np.unique(rows, axis=0, return_inverse=True)
    return found, numbers.reshape(-1).astype(np.int64)
