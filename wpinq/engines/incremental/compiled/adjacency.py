"""The inner loop of a walk by swaps over neighbour lists, where the formula of the plan allows it.

Swaps keep every degree, so norms that are degrees stay, and no step needs tables. What is needed of the plan:

- one output record, a constant, that sums a formula over the source of edges;
- the formula is 0 wherever one of the edges that it looks up is missing;
- with one of its edges given, one vertex is open, and the other edges tie it to both ends of the given one: the
  records that change are the common neighbours of the ends (triangles, as in TbI);
- every norm is that of a vertex, and of a join of the edges themselves.

The four ends of a swap are distinct. So the edges of one removed or added pair are never the same record as those
that tie its common neighbours, except where a removed edge would tie a neighbour to an added pair; these neighbours
are known beforehand and left out. Nothing is written before a swap is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wpinq.engines.incremental.compiled import runtime
from wpinq.engines.incremental.compiled.code import Writer
from wpinq.engines.incremental.compiled.formulas import (
    Assumptions,
    Atom,
    Expander,
    Extreme,
    Formula,
    Guard,
    Norm,
    Product,
    entries_of,
    required,
)
from wpinq.engines.incremental.compiled.order import split
from wpinq.engines.incremental.compiled.steps import ExtremeStep, JoinStep, MapStep, SourceStep, Step, Steps


@dataclass
class Closed:
    """A plan of this class: the text of its module, the joins whose norms it reads, and its one output record."""

    text: str
    joins: list[JoinStep]
    output: list[str]


def generate(steps: Steps, source: str) -> Closed | None:
    """The module for a plan of this class, or None."""
    if len(steps.roots) != 1:
        return None
    expander = Expander(steps.all, Assumptions(nonnegative=True, unit=True, virtual=True))
    found = _summed(steps, expander)
    if found is None:
        return None
    formula, constant = found
    entries = list(dict.fromkeys(entries_of(formula)))
    edges = [entry for entry in entries if isinstance(entry, Atom)]
    norms = [entry for entry in entries if isinstance(entry, Norm)]
    if not all(_is_edge(atom.step, source) for atom in edges) or set(required(formula)) != set(edges):
        return None
    joins = list(dict.fromkeys(norm.join for norm in norms))
    if not all(len(norm.variables) == 1 and _of_edges(norm.join, expander, source) for norm in norms):
        return None
    writer = Writer(steps.dictionary)
    places = list({frozenset(atom.variables): atom for atom in edges}.values())  # both directions come and go together
    for given in places:
        opened = _open_vertex(given, edges)
        if opened is None:
            return None
        for ends in (("u", "v"), ("v", "u")):
            names = {**dict(zip(given.variables, ends, strict=True)), opened: "w"}
            _add(writer, formula, names, joins)
    return Closed(_text(writer.lines, len(places)), joins, constant)


def _summed(steps: Steps, expander: Expander) -> tuple[Formula, list[str]] | None:
    """The formula that the root sums to a constant record, through one Select after any filters."""
    root = steps.roots[0]
    if not isinstance(root, MapStep) or root.weighted or root.condition is not None:
        return None
    emitted: list[tuple[Sequence[str], str]] = []
    writer = Writer(steps.dictionary)
    root.write(writer, [f"c{i}" for i in range(root.inputs[0].width)], "w", lambda words, w: emitted.append((words, w)))
    if writer.lines or len(emitted) != 1 or emitted[0][1] != "w" or not all(_is_number(x) for x in emitted[0][0]):
        return None
    below = root.inputs[0]
    expanded = expander.expand(below)
    if expanded is not None:
        return expanded.formula, list(emitted[0][0])
    if isinstance(below, (JoinStep, ExtremeStep)):
        return expander.root(below)[0], list(emitted[0][0])
    return None


def _is_number(text: str) -> bool:
    return text.strip("()").lstrip("-").isdigit()


def _is_edge(step: Step, source: str) -> bool:
    return isinstance(step, SourceStep) and step.source == source and step.width == 2


def _of_edges(join: JoinStep, expander: Expander, source: str) -> bool:
    """Whether both sides of a join are the edges themselves, so that its norms are sums of degrees."""
    sides = [expander.side(join, side)[0] for side in (0, 1)]
    return all(isinstance(side, Atom) and _is_edge(side.step, source) for side in sides)


def _open_vertex(given: Atom, edges: list[Atom]) -> int | None:
    """The one vertex that the given edge leaves open, where the other edges tie it to both ends of the given one."""
    ends = set(given.variables)
    others = [set(atom.variables) for atom in edges if set(atom.variables) != ends]
    opened = set().union(*others) - ends
    tied = set().union(*others) & ends
    if len(ends) != 2 or len(opened) != 1 or tied != ends or any(len(pair) != 2 for pair in others):
        return None
    return opened.pop()


def _add(writer: Writer, formula: Formula, names: dict[int, str], joins: list[JoinStep]) -> None:
    """Write what one record adds: the formula where all its edges are there."""
    writer.known = {}
    value = _value(writer, formula, names, joins)
    writer.line(f"total += {value}")


def _value(writer: Writer, formula: Formula, names: dict[int, str], joins: list[JoinStep]) -> str:
    if isinstance(formula, Atom):
        return "1.0"
    if isinstance(formula, Guard):
        below = _value(writer, formula.child, names, joins)
        assert formula.step.condition is not None
        writer.known = {}
        labels = [f"labels[{names[v]}]" for v in formula.variables]
        condition = formula.step.condition(writer, labels)
        return writer.bind(f"{below} if {condition} else 0.0", "w_")
    left, right = (_value(writer, side, names, joins) for side in (formula.left, formula.right))
    if isinstance(formula, Extreme):
        return writer.bind(f"{'min' if formula.smaller else 'max'}({left}, {right})", "w_")
    assert isinstance(formula, Product)
    norm = f"abs({left}) + abs({right})"
    if formula.norm is not None:
        norm = f"norms[{joins.index(formula.norm.join)}, {names[formula.norm.variables[0]]}]"
    bound = writer.bind(norm, "n_")
    return writer.bind(f"{left} * {right} / {bound} if {bound} > 0.0 else 0.0", "w_")


_WALK = '''
@inner("float64(uint32, uint32, uint32, int64[::1], float64[:, ::1])")
def weigh(u, v, w, labels, norms):
    """What the records on the triangle u, v, w that use the edge u, v add."""
    total = 0.0
@WEIGH@
    return total


@inner("void(uint32, uint32, uint32, uint64[::1], uint32[::1])")
def exchange(a, b, q, starts, neighbours):
    """Put q where b stands among the neighbours of a."""
    k = starts[a]
    while neighbours[k] != b:
        k += ONE
    neighbours[k] = q


@entry(
    "float64(uint32[:, ::1], uint64[::1], uint32[::1], uint32[:, ::1], int64[::1], float64[:, ::1])"
)
def whole(edges, starts, neighbours, marks, labels, norms):
    """The output on the graph as it is: every record is met once for each place of an edge in it."""
    next_ = np.uint32(1)
    total = 0.0
    marks[:, :] = 0
    mark = np.uint32(0)
    for i in range(len(edges)):
        u, v = edges[i, 0], edges[i, 1]
        mark = np.uint32(mark + next_)
        for k in range(starts[u], starts[u + next_]):
            marks[neighbours[k], 0] = mark
        for k in range(starts[v], starts[v + next_]):
            w = neighbours[k]
            if marks[w, 0] == mark:
                total += weigh(u, v, w, labels, norms)
    return total / @PLACES@


@entry(
    "void(uint32[:, ::1], uint64[::1], uint32[::1], uint32[:, ::1], int64[::1], float64[:, ::1], float64[::1], "
    "uint64[::1], int64[::1], int64, float64)"
)
def walk(edges, starts, neighbours, marks, labels, norms, numbers, seeds, tallies, steps, power):
    """Steps of the walk. `numbers` holds the output, its target and the price of a unit of distance."""
    next_ = np.uint32(1)
    edge_count = len(edges)
    output, target, price = numbers[0], numbers[1], numbers[2]
    evaluated = accepted = 0
    marks[:, :] = 0
    mark = np.uint32(0)
    for _ in range(steps):
        i, j = np.uint64(draw(seeds) * edge_count), np.uint64(draw(seeds) * edge_count)
        turned = draw(seeds) < 0.5
        a, b = edges[i, 0], edges[i, 1]
        p, q = edges[j, 0], edges[j, 1]
        if turned:
            p, q = q, p
        if a == q or p == b or a == p or b == q:
            continue
        mark = np.uint32(mark + next_)
        for k in range(starts[a], starts[a + next_]):
            marks[neighbours[k], 0] = mark
        if marks[q, 0] == mark:
            continue
        for k in range(starts[p], starts[p + next_]):
            marks[neighbours[k], 1] = mark
        if marks[b, 1] == mark:
            continue
        change = 0.0
        for k in range(starts[b], starts[b + next_]):
            w = neighbours[k]
            if marks[w, 0] == mark:
                change -= weigh(a, b, w, labels, norms)
            if marks[w, 1] == mark and w != a and w != q:
                change += weigh(p, b, w, labels, norms)
        for k in range(starts[q], starts[q + next_]):
            w = neighbours[k]
            if marks[w, 1] == mark:
                change -= weigh(p, q, w, labels, norms)
            if marks[w, 0] == mark and w != b and w != p:
                change += weigh(a, q, w, labels, norms)
        evaluated += 1
        worse = price * (abs(output + change - target) - abs(output - target))
        if worse <= 0.0 or draw(seeds) < exp(-power * worse):
            accepted += 1
            output += change
            exchange(a, b, q, starts, neighbours)
            exchange(b, a, p, starts, neighbours)
            exchange(p, q, b, starts, neighbours)
            exchange(q, p, a, starts, neighbours)
            edges[i, 1] = q
            edges[j, 0] = p
            edges[j, 1] = b
    numbers[0] = output
    tallies[0] += evaluated
    tallies[1] += accepted
    tallies[2] += steps
'''


def _text(lines: list[str], places: int) -> str:
    drawn = next(part for part in split(runtime.FIXED) if "def draw(" in part)
    drawn = drawn.replace("@njit(**OPTIONS)", '@inner("float64(uint64[::1])")')
    body = _WALK.replace("@WEIGH@", "\n".join(lines)).replace("@PLACES@", f"{places}.0")
    return f"{runtime.PREFIX}\n{runtime.PRELUDE}\n\nONE = np.uint64(1)\n\n\n{drawn}\n\n{body}"
