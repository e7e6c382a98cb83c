"""A walk by swaps over neighbour lists and its arrays; `decomposition` says for which plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.delta.compiled.adjacency.decomposition import OutOfReach, Rescaled
from wpinq.engines.delta.compiled.adjacency.formula_code import InvariantList, TagLists, distinct
from wpinq.engines.delta.compiled.adjacency.generation import generate
from wpinq.engines.delta.compiled.adjacency.invariants import Invariants
from wpinq.engines.delta.compiled.hash_table import DUST
from wpinq.engines.delta.compiled.modules import import_module
from wpinq.engines.delta.compiled.routine import LANES, apart
from wpinq.engines.delta.compiled.steps import Step, lower
from wpinq.engines.delta.compiled.values import Dictionary, Rows
from wpinq.engines.delta.evaluator import Goal, loss
from wpinq.errors import PlanError
from wpinq.expr.types import INT, Type
from wpinq.expr.values import Value, order_key
from wpinq.plan.arithmetic import Weights
from wpinq.runtime.arrays import Floats, Integers

Edges = Sequence[tuple[Value, Value]] | NDArray[np.int64]
"""Undirected edges, each once: pairs of labels, or an array of shape (edges, 2)."""
Numbers = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """The labels of vertices, of one type, numbered in order.

    Labels are sorted and distinct integers, or objects.
    """

    labels: NDArray[Any]
    type: Type

    def __len__(self) -> int:
        return len(self.labels)

    def words(self, dictionary: Dictionary) -> Integers:
        """The words of each label."""
        if self.labels.dtype != object:
            return self.labels.reshape(-1, 1)
        return dictionary.encode_all(self.labels.tolist(), self.type)

    def named(self, ends: Numbers) -> NDArray[Any]:
        """Edges by label, as an array of shape (edges, 2): integers where labels are, else objects."""
        return np.asarray(self.labels[ends])


def numbered(edges: Edges, type_: Type, least: int, others: Sequence[Value] | None = None) -> tuple[Vertices, Numbers]:
    """The vertices of edges, and the edges by number.

    `others` are vertices that may have no edge.

    Raises
    ------
    PlanError
        When the edges are fewer than `least`, or not a simple graph.
    """
    if type_ == INT and not type_.nullable:
        given = np.asarray(edges)
        if given.size and (given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != 2):
            raise PlanError("a walk starts from pairs of integers, as its source declares")
        pairs = given.astype(np.int64).reshape(-1, 2)
        more = np.asarray(() if others is None else others, dtype=np.int64)
        labels, dense = np.unique(np.concatenate([pairs.reshape(-1), more]), return_inverse=True)
        ends = dense.reshape(-1)[: pairs.size].reshape(-1, 2)
    else:
        held = [(a, b) for a, b in (edges.tolist() if isinstance(edges, np.ndarray) else edges)]
        names = sorted({end for edge in held for end in edge} | set(others or ()), key=order_key)
        places = {name: number for number, name in enumerate(names)}
        ends = np.array([(places[a], places[b]) for a, b in held], dtype=np.int64).reshape(-1, 2)
        labels = np.fromiter(names, dtype=object, count=len(names))
    vertices = Vertices(labels, type_)
    one = ends.min(axis=1, initial=len(vertices)) * len(vertices) + ends.max(axis=1, initial=0)
    if len(ends) < least or len(np.unique(one)) < len(ends) or bool(np.any(ends[:, 0] == ends[:, 1])):
        least_text = {0: "", 1: "one edge or more, ", 2: "two edges or more, "}[least]
        raise PlanError(f"a walk starts from a simple graph: {least_text}each edge once, and no loops")
    return vertices, np.ascontiguousarray(ends.astype(np.uint32))


class Graph:
    """A simple graph: edges by number, and neighbour lists under swaps.

    Vertices are numbered in the order of their labels, so that the canonical direction of an edge, from the smaller
    label to the larger, is that of the numbers. Each vertex keeps its degree, so its list keeps its place. Lists follow
    the order of the edges: a graph built anew from the edges of another is the same to the last bit.

    `ids` is the number of the edge that each entry of `neighbours` belongs to. `marks` is room for the walk to mark the
    neighbours of two vertices, `common` to list those of two others that are marked.
    """

    def __init__(self, vertices: Vertices, edges: Numbers) -> None:
        self.vertices, self.edges = vertices, edges.copy()
        self.degrees = np.bincount(edges.reshape(-1), minlength=len(vertices))
        self.starts = np.concatenate([[0], np.cumsum(self.degrees)]).astype(np.uint64)
        self.neighbours = np.zeros(2 * len(edges), dtype=np.uint32)
        self.ids = np.zeros(2 * len(edges), dtype=np.uint32)
        self.marks = np.zeros((len(vertices), 2), dtype=np.uint32)
        self.common = np.zeros((2, 1 + int(self.degrees.max(initial=0))), dtype=np.uint64)
        self.order()

    def order(self) -> None:
        """Have the neighbour lists follow the order of the edges as they are."""
        ends = self.edges.T.reshape(-1)  # all first ends, then all second ones
        order = np.argsort(ends, kind="stable")
        self.ids[:] = order % max(1, len(self.edges))
        self.neighbours[:] = np.roll(ends, len(self.edges))[order]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the generated loops take, in order."""
        return {name: getattr(self, name) for name in ("edges", "starts", "neighbours", "ids", "marks", "common")}


MOST_PLACES = 1 << 22
"""Of combinations of tags, for one place that passes them on."""
MOST_IN_A_ROW = 256
MARKS = 2**32
"""How many marks there are: they have 32 bits."""
SAME = 1e-9
"""How close, relative to the largest, what neighbours add to a norm must be to count as one and the same."""


class NeighbourWalk:
    """Edges, neighbour lists, what is invariant, the rows of edges, and the outputs.

    Parameters
    ----------
    goals : sequence of Goal
        What each plan's output is to come close to.
    source : str
        The source of edges.
    symmetric : bool
        Whether it holds both directions of each edge.
    graph : Graph
        The graph to start from; the walk changes it.

    Raises
    ------
    OutOfReach
        Where a plan is of another class, this graph's tags are too many, or what neighbours add to a norm differs.
    """

    def __init__(self, goals: Sequence[Goal], source: str, symmetric: bool, graph: Graph) -> None:
        self._goals, self._graph, self._dictionary = goals, graph, Dictionary()
        rescaled = [Rescaled.of(goal.plan) for goal in goals]
        self._steps = lower([each.plan for each in rescaled], self._dictionary)
        code = self._code = generate(self._steps, source, symmetric)
        self._labels = graph.vertices.words(self._dictionary)
        self._held: dict[str, NDArray[Any]] = {**graph.arrays, "labels": self._labels}
        self._invariant = self._evaluate_invariants(symmetric)
        self._tags = TagLists(code.registry.lists, self._invariant, self._labels)
        self._held |= self._tags.arrays
        self._module: ModuleType = import_module(code.text)
        self._compute_norms()
        self._lay_out_rows()
        self._lay_out_outputs()
        self._elsewhere, self._factors = 0.0, list[Floats]()
        for number, (goal, each) in enumerate(zip(goals, rescaled, strict=True)):
            self._aim(number, goal, each)
        self.resynchronize()

    # --- set up -----------------------------------------------------------------------------------------------

    def _evaluate_invariants(self, symmetric: bool) -> dict[Step, Rows]:
        """The records of invariant steps."""
        graph, steps = self._graph, self._steps

        def records() -> Weights:
            pairs = np.sort(graph.edges, axis=1)
            pairs = np.concatenate([pairs, pairs[:, ::-1]]) if symmetric else pairs
            return dict.fromkeys(map(tuple, graph.vertices.named(pairs).tolist()), 1.0)

        columns: dict[Step, int | None] = {steps.roots[number]: None for number in self._code.invariant}
        columns |= {held.step: held.column for held in self._code.registry.lists if isinstance(held, InvariantList)}
        known = self._labels[:, 0], graph.degrees, len(graph.edges), records
        return Invariants(steps, self._code.links, self._dictionary, *known).rows(columns)

    def _compute_norms(self) -> None:
        count, degrees = len(self._graph.vertices), self._graph.degrees.astype(np.float64)
        times: dict[str, Any] = {"own": 1.0, "each": degrees, "pairs": degrees * (degrees - 1), "spread": degrees}
        norms = np.zeros((max(1, len(self._code.registry.norms)), count))
        inverses = self._held["inverses"] = np.zeros_like(norms)
        for number, part in enumerate(self._code.registry.parts):
            totals = np.zeros(count)
            self._call("sum_part", which=self._code.part_numbers[number], totals=totals)
            if part.kind == "spread":
                among = totals[degrees > 0]
                if len(among) and np.ptp(among) > SAME * np.max(among):
                    raise OutOfReach("what neighbours add to a norm differs")
                totals = np.full(count, among[0] if len(among) else 0.0)
            norm = norms[part.norm]
            norm += times[part.kind] * totals
            inverses[part.norm] = np.divide(1.0, norm, out=np.zeros(count), where=norm > 0)

    def _numbered(self, wanted: Sequence[int], width: int, first: int) -> Integers:
        """The distinct records of some emissions, numbered from `first`.

        `maps` gets their numbers by the tags of each emission.
        """
        found = [np.zeros((0, width), dtype=np.int64)]
        for number in wanted:
            emission = self._code.emissions[number]
            size = int(np.prod([len(self._tags.words[held]) for held in emission.lists], dtype=np.int64))
            if size > MOST_PLACES:
                raise OutOfReach("too many combinations of tags")
            records = np.zeros((size, max(1, emission.width)), dtype=np.int64)
            self._call("list_records", which=self._code.emission_numbers[number], records=records)
            found.append(records[:, : emission.width])
        known, numbers = distinct(np.concatenate(found))
        ends = np.cumsum([len(records) for records in found])
        for number, start, end in zip(wanted, ends[:-1], ends[1:], strict=True):
            self._maps[number] = numbers[start:end] + first
        return known

    def _row_tags(self, pair: int) -> Integers:
        """The words of the tags of the rows of a pair term."""
        return self._tags.words[self._code.registry.list_of(pair)]

    def _lay_out_rows(self) -> None:
        """Lay out the rows of pairs, and the `shares` of edges with tags.

        `row_starts` has where each row begins. A row has an entry for each tag.
        """
        code = self._code
        self._maps = [np.zeros(0, dtype=np.int64) for _ in code.emissions]
        for pair, term in enumerate(code.pairs):
            mine = [n for n, each in enumerate(code.emissions) if each.target is None and each.pair == pair]
            tags = self._numbered(mine, len(term.held.variables) - len(term.ends), 0)
            self._tags.words[code.registry.list_of(pair)] = tags
        self._held |= self._tags.joined
        row_starts, width, lanes = np.full(2 * max(1, len(code.pairs)), -1, dtype=np.int64), 0, int(LANES)
        for pair, direction, _, _ in code.rows:
            row_starts[2 * pair + direction] = width
            width += -(-len(self._row_tags(pair)) // lanes) * lanes
        if width > MOST_IN_A_ROW:
            raise OutOfReach("too many tags in a row")
        shares = np.zeros((max(1, len(code.tagged)), max(1, width)))
        for number, tagged in enumerate(code.tagged):
            for at, row in enumerate(self._row_tags(tagged.pair)[:, list(tagged.columns)].tolist()):
                shares[number, at] = tagged.shares.get(tuple(row), 0.0)
        self._held |= {"row_starts": row_starts, "shares": shares}
        self._width = width

    def _lay_out_outputs(self) -> None:
        """Number the outputs, plan by plan, and set where each emission passes things on to."""
        code = self._code
        self._records: list[Integers] = []
        self._spans: list[slice] = []
        start = 0
        for target, root in enumerate(self._steps.roots):
            mine = [n for n, each in enumerate(code.emissions) if each.target == target]
            records = self._numbered(mine, root.width, start)
            self._records.append(records)
            self._spans.append(slice(start, start + len(records)))
            start += len(records)
        self._held["offsets"] = np.concatenate([[0], np.cumsum([len(part) for part in self._maps])]).astype(np.int64)
        self._held["maps"] = np.concatenate([*self._maps, [0]]).astype(np.int64)
        acc_at = np.full(len(code.constants) + self._width, -1, dtype=np.int64)
        for place, number in enumerate(code.constants):
            acc_at[place] = self._maps[number][0]
        for pair, direction, _, number in code.rows:
            at = len(code.constants) + int(self._held["row_starts"][2 * pair + direction])
            mapped = self._maps[number]
            acc_at[at : at + len(self._row_tags(pair))] = mapped if code.emissions[number].lists else mapped[0]
        self._make_room(start, acc_at)

    def _make_room(self, outputs: int, acc_at: Integers) -> None:
        held = self._held
        held |= {"acc_at": acc_at, "acc": apart(np.zeros(len(acc_at))), "counts": apart(np.zeros(3, dtype=np.int64))}
        for name in ("current", "delta", "goals", "prices", "widths"):
            held[name] = apart(np.zeros(outputs))
        held["stamps"] = apart(np.zeros(outputs, dtype=np.uint32))
        held["touched"] = apart(np.zeros(outputs, dtype=np.int64))
        if not self._code.pairs:
            return
        count, edges = len(self._graph.vertices), len(self._graph.edges)
        events = 8 * int(self._graph.degrees.max(initial=0)) + 8
        touched = min(events, edges)
        held |= {
            "weights": apart(np.zeros((count, self._width))),
            "rows": apart(np.zeros((edges, self._width))),
            "fresh": apart(np.zeros((2, self._width))),
            "spare": apart(np.zeros((touched, self._width))),
            "held_edges": np.zeros(touched, dtype=np.uint64),
            "events": np.zeros((events, 3), dtype=np.uint32),
        }
        self._call("weigh_vertices")

    def _aim(self, number: int, goal: Goal, rescaled: Rescaled) -> None:
        output = self._output(number)
        records = self._dictionary.decode_all(output.words, goal.plan.type)
        factors = rescaled.factors(records)
        self._factors.append(factors)
        goals = np.array([float(goal.values.get(record, 0.0)) for record in records]) / factors
        inside = np.array([record in goal.values for record in records], dtype=bool)
        prices, widths = np.where(inside | goal.outside, float(goal.epsilon), 0.0) * factors, goal.width / factors
        known = set(records)
        missing = [float(value) for record, value in goal.values.items() if record not in known]
        self._elsewhere += sum(map(goal.cost, missing))
        if number in self._code.invariant:
            off = (output.weights - goals).tolist()
            self._elsewhere += float(np.sum(prices * np.array([*map(loss, off, widths.tolist())])))
        else:
            for name, value in (("goals", goals), ("prices", prices), ("widths", widths)):
                self._held[name][self._spans[number]] = value

    # --- the walk ---------------------------------------------------------------------------------------------

    def _call(self, name: str, **given: object) -> None:
        function = getattr(self._module, name)
        held = {**self._held, **given}
        function(*(held[argument] for argument in self._code.arguments[name]))

    def resynchronize(self) -> None:
        """Evaluate the outputs afresh; neighbour lists follow the order of the edges again."""
        self._graph.order()
        self._call("evaluate")

    def run(self, seeds: NDArray[np.uint64], tallies: Integers, steps: int, power: float, closing: float) -> None:
        """Run steps of the walk, so many at a time as there are marks for."""
        stride = self._held["common"].shape[1] + len(self._held.get("spare", ()))
        most = MARKS // stride - 1
        for start in range(0, steps, most):
            done = {"seeds": seeds, "tallies": tallies, "steps": min(most, steps - start)}
            self._call("walk", **done, power=power, closing=closing)

    @property
    def score(self) -> float:
        """The distance of the outputs to what they are to be, each unit at its price."""
        losses = np.zeros(len(self._held["current"]))
        self._call("measure_losses", losses=losses)
        return float(np.sum(self._held["prices"] * losses)) + self._elsewhere

    def _output(self, number: int) -> Rows:
        """The records of a plan's output."""
        if number in self._code.invariant:
            return self._invariant[self._steps.roots[number]]
        return Rows(self._records[number], self._held["current"][self._spans[number]])

    @property
    def outputs(self) -> list[dict[Value, float]]:
        """The output of each plan."""
        found = []
        for number, goal in enumerate(self._goals):
            output = self._output(number)
            records = self._dictionary.decode_all(output.words, goal.plan.type)
            held = zip(records, (output.weights * self._factors[number]).tolist(), strict=True)
            found.append({record: weight for record, weight in held if abs(weight) >= DUST})
        return found

    @property
    def memory(self) -> int:
        """The bytes of the arrays, the graph's included."""
        return sum(array.nbytes for array in self._held.values())
