"""A walk by swaps over neighbour lists and its arrays; `decomposition` says for which plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.delta.compiled.adjacency.decomposition import Images, OutOfReach, Rescaled, X, Y
from wpinq.engines.delta.compiled.adjacency.formula_code import InvariantList, TagLists, distinct
from wpinq.engines.delta.compiled.adjacency.generation import generate
from wpinq.engines.delta.compiled.adjacency.graph import Graph
from wpinq.engines.delta.compiled.hash_table import DUST
from wpinq.engines.delta.compiled.routine import LANES, CannotCompile, apart, import_module, name
from wpinq.engines.delta.compiled.steps import MapStep, ShaveStep, Step, lower
from wpinq.engines.delta.compiled.values import Dictionary, Rows, Writer
from wpinq.engines.delta.evaluator import Goal, loss
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Weight, Weights
from wpinq.plan.node import Node
from wpinq.plan.operators import Source
from wpinq.runtime.arrays import Floats, Integers

#: Of combinations of tags, for one place that passes them on.
MOST_PLACES = 1 << 22
MOST_IN_A_ROW = 256
#: How many marks there are: they have 32 bits.
MARKS = 2**32
#: How close, relative to the largest, what neighbours add to a norm must be to count as one and the same.
SAME = 1e-9


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
        self._goals, self._graph, self._symmetric, self._dictionary = goals, graph, symmetric, Dictionary()
        rescaled = [Rescaled.of(goal.plan) for goal in goals]
        self._steps = lower([each.plan for each in rescaled], self._dictionary)
        code = self._code = generate(self._steps, source, symmetric)
        self._labels = graph.vertices.words(self._dictionary)
        self._held: dict[str, NDArray[Any]] = {**graph.arrays, "labels": self._labels}
        self._held["twins"] = np.arange(len(self._labels), dtype=np.uint32)
        columns: dict[Step, int | None] = {self._steps.roots[number]: None for number in code.invariant}
        columns |= {held.step: held.column for held in code.registry.lists if isinstance(held, InvariantList)}
        self._invariant = self._invariant_rows(columns)
        self._tags = TagLists(code.registry.lists, self._invariant, self._labels)
        self._held |= self._tags.arrays
        longest = 2 * max(map(len, self._tags.words), default=0) + 1
        self._held |= {"sums": apart(np.zeros((3, longest))), "listed": apart(np.zeros((2, longest), dtype=np.uint64))}
        self._held["spans"] = apart(np.zeros(2, dtype=np.uint64))
        self._module: ModuleType = import_module(code.text)
        self._compute_norms()
        self._lay_out_rows()
        self._lay_out_outputs()
        self._find_twins()
        self._elsewhere, self._factors = 0.0, list[Floats]()
        for number, (goal, each) in enumerate(zip(goals, rescaled, strict=True)):
            self._aim(number, goal, each)
        self._call("evaluate")

    # --- set up -----------------------------------------------------------------------------------------------

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
        held |= {"acc_at": acc_at, "acc": apart(np.zeros(len(acc_at))), "counts": apart(np.zeros(2, dtype=np.int64))}
        for array in ("current", "delta", "goals", "prices", "widths"):
            held[array] = apart(np.zeros(outputs))
        held["stamps"] = apart(np.zeros(outputs, dtype=np.uint32))
        held["touched"] = apart(np.zeros(outputs, dtype=np.int64))
        if not self._code.pairs:
            return
        count, edges = len(self._graph.vertices), len(self._graph.edges)
        touched = min(8 * int(self._graph.degrees.max(initial=0)) + 8, edges)
        held |= {
            "weights": apart(np.zeros((count, self._width))),
            "rows": apart(np.zeros((edges, self._width))),
            "fresh": apart(np.zeros((3, self._width))),
            "spare": apart(np.zeros((touched, self._width))),
            "held_edges": np.zeros(touched, dtype=np.uint64),
            "aside": apart(np.zeros(edges, dtype=np.uint32)),
        }
        self._call("weigh_vertices")
        held["tight"], limits = apart(np.zeros(2 * edges, dtype=np.bool_)), np.full(self._width, -np.inf)
        held["limits"] = limits
        for (pair, direction), number in self._code.bounded.items():
            at = int(held["row_starts"][2 * pair + direction])
            mine = slice(at, at + -(-len(self._row_tags(pair)) // int(LANES)) * int(LANES))
            limits[mine] = held["shares"][number, : mine.stop - at] - held["weights"][:, mine].max(axis=0)

    def _find_twins(self) -> None:
        """Have vertices of one degree share the records of the first, where these are the same."""
        held, degrees = self._held, self._graph.degrees
        _, firsts, kinds = np.unique(degrees, return_index=True, return_inverse=True)
        twins, places = firsts[kinds], held["places"].astype(np.int64)
        lengths = np.diff(places, axis=1)
        by_vertex = [lengths.T, held["inverses"].T, *([held["weights"]] if self._code.pairs else [])]
        if all(np.array_equal(each, each[twins]) for each in by_vertex):
            moved = np.repeat((places[:, twins] - places[:, :-1]).reshape(-1), lengths.reshape(-1))
            records = np.stack([held["tags"], held["amounts"]])
            if np.array_equal(records, records[:, np.arange(len(moved)) + moved]):
                held["twins"] = apart(twins.astype(np.uint32))

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

    # --- what swaps keep, from the degrees of the graph ---------------------------------------------------------

    def _invariant_rows(self, columns: Mapping[Step, int | None]) -> dict[Step, Rows]:
        """The records of some steps, by each operator's own meaning.

        Where a step tells the vertices in a column by their degrees alone, it is evaluated for one of each degree.
        """
        if any(step not in self._steps.nodes for step in columns):
            raise OutOfReach("an invariant step that stands for no part of the plan")
        _, firsts, kinds = np.unique(self._graph.degrees, return_index=True, return_inverse=True)
        each, first = self._outputs(np.arange(len(kinds))), self._outputs(firsts)
        found = {}
        for step, column in columns.items():
            node, alike = self._steps.nodes[step], column is not None and column == self._vertex_column(step)
            rows = self._dictionary.rows((first if alike else each)(node), node.type)
            found[step] = self._spread(rows, column, firsts, kinds) if alike and column is not None else rows
        return found

    def _outputs(self, vertices: Integers) -> Callable[[Node], Weights]:
        """The evaluation of steps over some vertices; linear ones follow from the degrees."""
        of_node = {node.digest: step for step, node in self._steps.nodes.items()}

        @cache
        def output(node: Node) -> Weights:
            step = of_node.get(node.digest)
            images = None if step is None else self._code.links.images[step]
            if step in self._code.links.invariant and images is not None:
                return self._by_degree(node, images, vertices)
            if isinstance(node.operator, Source):
                return self._source()
            return node.operator.evaluate(tuple(map(output, node.inputs)), FLOAT)

        return output

    def _by_degree(self, node: Node, images: Images, vertices: Integers) -> Weights:
        """The output of a linear step from the degrees.

        Each vertex gives its image as often as its degree. Each edge gives the images without an end of it.
        """
        found: dict[Value, list[Weight]] = {}
        held = list(zip(self._labels[:, 0][vertices].tolist(), self._graph.degrees[vertices].tolist(), strict=True))
        for words, share in images.items():
            for label, times in held if X in words else [] if Y in words else [(0, len(self._graph.edges))]:
                record = self._dictionary.decode([label if word == X else int(word) for word in words], node.type)
                found.setdefault(record, []).append(share * times)
        return {record: FLOAT.total(weights) for record, weights in found.items()}

    def _vertex_column(self, step: Step) -> int | None:
        """The column of a vertex of which a step asks nothing else; None where it may."""
        images, writer = self._code.links.images[step], Writer(self._dictionary)
        writer.memoizes = False
        if images is not None:
            made = [list(words) for words in images if Y not in words]
        else:
            below = self._vertex_column(step.inputs[0]) if len(step.inputs) == 1 else None
            words = [X if at == below else name(f"c{at}") for at in range(step.inputs[0].width)]
            made = [words] if isinstance(step, ShaveStep) else []
            try:
                if isinstance(step, ShaveStep) and step.loop is not None:
                    step.loop(writer, words, lambda index, width: None)
                if isinstance(step, MapStep):
                    made = [[word.strip("()") for word in image.words(writer, words)] for image in step.images]
            except CannotCompile:
                return None
        asked = [word for words in made for word in words if X in word and word != X] + [*writer.lines]
        columns = {tuple(at for at, word in enumerate(words) if word == X) for words in made}
        only = columns.pop() if len(columns) == 1 else ()
        return only[0] if len(only) == 1 and not any(X in text for text in asked) else None

    def _spread(self, rows: Rows, column: int, firsts: Integers, kinds: Integers) -> Rows:
        """The records of all vertices, from those of the first vertex of each kind."""
        order = np.argsort(self._labels[:, 0][firsts])
        kind = order[np.searchsorted(self._labels[:, 0][firsts], rows.words[:, column], sorter=order)]
        counts = np.bincount(kind, minlength=len(firsts))
        lengths, starts = counts[kinds], (np.cumsum(counts) - counts)[kinds]
        places = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        taken = np.argsort(kind, kind="stable")[places]
        words = rows.words[taken]
        words[:, column] = np.repeat(self._labels[:, 0], lengths)
        return Rows(words, rows.weights[taken])

    def _source(self) -> Weights:
        """The records of the source."""
        pairs = np.sort(self._graph.edges, axis=1)
        pairs = np.concatenate([pairs, pairs[:, ::-1]]) if self._symmetric else pairs
        return dict.fromkeys(map(tuple, self._graph.vertices.named(pairs).tolist()), 1.0)

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
        most = MARKS // (2 * self._held["common"].shape[1]) - 1
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
