"""Random plans of depth four and more, each grown on a random dataset so that weight flows to its root.

A plan is grown one operator at a time on top of what is there: inputs are drawn with a preference for the deepest,
so that nodes are shared and sources are used several times. Each step is evaluated at once and drawn again when
nothing, or too much, comes out of it. The operator at the root is prescribed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import wpinq as wp
from tests.support import expressions
from tests.support.expressions import traced
from tests.support.operators import CASES
from wpinq.errors import WpinqError
from wpinq.expr.nodes import Constant
from wpinq.expr.types import NULL, Type, type_from_annotation, unify
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.construct import construct
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators import Partition

Weights = dict[Any, Fraction]
Data = dict[str, Weights]

OPERATORS = tuple(REGISTRY)
LEAST_DEPTH = 4
TRIES = 20_000
MOST_RECORDS = 24

EDGES = {"src": int, "dst": int}
SCHEMAS: tuple[object, ...] = (int, EDGES, EDGES, int | None, str, {"a": int | None, "b": str}, list[int], (int, float))

_LIGHT, _HEAVIER = Fraction(1, 2**40), 1 + Fraction(1, 2**20)
WEIGHTS = (
    *(Fraction(text) for text in ("1", "1", "1", "1/4", "3/4", "2", "1/3", "5/2", "8", "60", "-1", "-1/2", "-3")),
    _LIGHT,
    _HEAVIER,
)
DYADIC_WEIGHTS = tuple(weight for weight in WEIGHTS if weight.denominator & (weight.denominator - 1) == 0)
CHANGES = (*map(Fraction, ("1", "-1", "1/4", "-1/4")), _LIGHT, -_LIGHT)


@dataclass(frozen=True)
class Case:
    """A plan and the dataset it was grown on."""

    plan: Node
    data: Data

    @property
    def operator(self) -> str:
        """The operator at the root."""
        return self.plan.operator.name

    @property
    def depth(self) -> int:
        """The operators on the longest way from the root to a source."""
        depths: dict[bytes, int] = {}
        for node in topological([self.plan]):
            depths[node.digest] = 1 + max((depths[child.digest] for child in node.inputs), default=-1)
        return depths[self.plan.digest]


@dataclass(frozen=True)
class Live:
    """A dataset of a plan under construction."""

    node: Node
    output: Mapping[Any, Fraction]
    depth: int


def _schema(rng: Random) -> Type:
    schema = rng.choice(SCHEMAS)
    return type_from_annotation(tuple[schema] if isinstance(schema, tuple) else schema)


def random_record(rng: Random, schema: Type) -> Any:
    """A record of a source, from so few values that records often meet."""
    shown = str(schema)
    if schema.nullable and rng.random() < 0.3:
        return None
    if shown == "int":
        return rng.randrange(5)
    if shown == "str":
        return rng.choice(["a", "b", "aB", "2"])
    if shown == "float":
        return rng.choice([0.5, 1.0, -1.5])
    if shown.startswith("list"):
        return tuple(rng.randrange(4) for _ in range(rng.randrange(4)))
    return tuple(random_record(rng, element) for element in schema.elements)


def random_dataset(rng: Random, schema: Type, weights: tuple[Fraction, ...] = WEIGHTS) -> Weights:
    """Two to six records, of comparable weights with ties, sometimes all light or heavy beside other sources."""
    scale = rng.choice([Fraction(1), Fraction(1), Fraction(1, 16), Fraction(64)])
    pool = rng.choice([weights, tuple(w for w in weights if w > 0), (Fraction(1),), (Fraction(1), Fraction(2))])
    return {random_record(rng, schema): scale * rng.choice(pool) for _ in range(rng.randrange(2, 7))}


def neighbour(rng: Random, data: Data, schemas: Mapping[str, Type]) -> tuple[Data, dict[str, Fraction]]:
    """A dataset nearby and its distance, source by source: weights changed, records added and removed."""
    near = {name: dict(weights) for name, weights in data.items()}
    for _ in range(rng.choice([1, 2, 2, 3, 4, 6])):
        name = rng.choice(sorted(near))
        weights = near[name]
        draw = rng.random()
        if draw < 0.7 and weights:
            record = rng.choice(list(weights))
            weights[record] += rng.choice(CHANGES)
        elif draw < 0.8 and len(weights) > 1:
            del weights[rng.choice(list(weights))]
        else:
            record = random_record(rng, schemas[name])
            weights[record] = weights.get(record, Fraction(0)) + rng.choice(CHANGES)
    return near, {name: distance(data[name], near[name]) for name in data}


def distance(left: Mapping[Any, Any], right: Mapping[Any, Any]) -> Fraction:
    """`Σ_x |A(x) − B(x)|`, exactly."""
    total = Fraction(0)
    for record, weight in left.items():
        other = right.get(record)
        if other is None:
            total += abs(Fraction(weight))
        elif weight != other:
            total += abs(Fraction(weight) - Fraction(other))
    for record, weight in right.items():
        if record not in left:
            total += abs(Fraction(weight))
    return total


def norm(weights: Mapping[Any, Any]) -> Fraction:
    """`Σ_x |A(x)|`, exactly."""
    return sum((abs(Fraction(weight)) for weight in weights.values()), Fraction(0))


class Grower:
    """A plan under construction."""

    def __init__(self, rng: Random, weights: tuple[Fraction, ...]) -> None:
        self.rng = rng
        self.data: Data = {}
        self.live: list[Live] = []
        first = _schema(rng)
        for name in ("a", "b", "c")[: rng.choice([1, 2, 3, 3])]:
            schema = first if rng.random() < 0.6 else _schema(rng)
            self.data[name] = random_dataset(rng, schema, weights)
            node = wp.source(name, schema, cap=norm(self.data[name]) or 1, weights=True).plan
            self.live.append(Live(node, self.data[name], 0))

    def grow(self, root: str) -> Live | None:
        """A plan with this operator at its root, deep enough; what is grown next does not build on its root."""
        target = self.rng.choice([LEAST_DEPTH, LEAST_DEPTH, 5, 6])
        while self.deepest().depth < target - 1:
            self.step(self.draw(), self.pick())
        if REGISTRY[root].arity == 2 and self.rng.random() < 0.2:
            self.step("Partition", self.deepest())  # so that parts are put together again
        for _ in range(60):
            grown = self.step(root, self.deepest())
            if grown is not None and grown.depth >= LEAST_DEPTH:
                self.live = [live for live in self.live if live is not grown]
                return grown
            self.step(self.draw(), self.pick())
        return None

    def draw(self) -> str:
        """An operator; those that drop records less often, so that changes reach the root."""
        return self.rng.choices(OPERATORS, [0.5 if name in ("Where", "Partition") else 1 for name in OPERATORS])[0]

    def deepest(self) -> Live:
        return max(self.live, key=lambda live: live.depth)

    def pick(self) -> Live:
        return self.deepest() if self.rng.random() < 0.7 else self.rng.choice(self.live)

    def step(self, name: str, below: Live) -> Live | None:
        try:
            return self.apply(name, below)
        except WpinqError:  # a type that does not fit, such as keys of a join: draw again
            return None

    def add(self, name: str, inputs: tuple[Live, ...], **arguments: Any) -> Live | None:
        node = construct(REGISTRY[name], tuple(i.node for i in inputs), arguments, traced_already)
        output = node.operator.evaluate(tuple(dict(i.output) for i in inputs), EXACT)
        dropping = ("Where", "Partition", "Shave", "GroupBy")
        least = len(inputs[0].output) / 2 if name in dropping else 1
        if not max(1, least) <= len(output) <= MOST_RECORDS:
            return None
        grown = Live(node, output, 1 + max(i.depth for i in inputs))
        self.live.append(grown)
        return grown

    def apply(self, name: str, below: Live) -> Live | None:
        return CASES[name].draw(self, below)

    def both_ways(self, name: str, below: Live) -> Live | None:
        """An operator on this dataset and another that fits it, in either order."""
        other = self.fitting(below)
        return self.add(name, self.rng.choice([(below, other), (other, below)]))

    def fitting(self, below: Live) -> Live:
        """Another dataset with records of the type of this one, made from it if there is none."""
        rng, type_ = self.rng, below.node.type
        if isinstance(below.node.operator, Partition) and rng.random() < 0.6:
            other = self.sibling(below)
            if other is not None:
                return other
        if rng.random() < 0.4:
            mirrored = self.mirrored(type_)
            if mirrored is not None:
                return mirrored
        fitting = [live for live in self.live if unify(live.node.type, type_) is not None]
        shallow = [live for live in fitting if live.depth <= 1]
        if len(fitting) > 1:
            return rng.choice(shallow if shallow and rng.random() < 0.5 else fitting)
        changed = self.apply("Where" if rng.random() < 0.5 else "Select", fitting[0])
        return changed if changed is not None and unify(changed.node.type, type_) else fitting[0]

    def mirrored(self, type_: Type) -> Live | None:
        """The deepest dataset of this type rebuilt on other sources of the same schemas, where there are any."""
        rng = self.rng
        model = max((live for live in self.live if live.node.type == type_), key=lambda live: live.depth)
        bare = {live.node.digest: live for live in self.live if live.depth == 0}
        built: dict[bytes, Live] = {}
        for node in topological([model.node]):
            if node.digest in bare:
                # equality of types leaves out what may be null, which the lambdas depend on
                shown = repr(node.type)
                others = [live for live in bare.values() if repr(live.node.type) == shown and live.node != node]
                built[node.digest] = rng.choice(others) if others else bare[node.digest]
                continue
            inputs = tuple(built[child.digest] for child in node.inputs)
            rebuilt = Node(node.operator, tuple(i.node for i in inputs))
            output = rebuilt.operator.evaluate(tuple(dict(i.output) for i in inputs), EXACT)
            built[node.digest] = Live(rebuilt, output, 1 + max(i.depth for i in inputs))
        mirrored = built[model.node.digest]
        return None if mirrored.node == model.node or not mirrored.output else mirrored

    def keys(self, below: Live, key: Any) -> list[Any]:
        """The keys that occur, the most common first; they are public, as the data are."""
        from wpinq.expr.compile import compile_lambda

        function = compile_lambda(key)
        return [key for key, _ in Counter(map(function, below.output)).most_common()]

    def part(self, below: Live, key: Any, value: Any) -> Live | None:
        return self.add("Partition", (below,), key=key, part=Constant(NULL if value is None else key.type, value))

    def sibling(self, part: Live) -> Live | None:
        """Another part of the dataset that this part was split from, by the same key or by another."""
        operator, types = part.node.operator, (part.node.type,)
        assert isinstance(operator, Partition)
        whole = next((live for live in self.live if live.node == part.node.inputs[0]), None)
        if whole is None:
            return None
        key = operator.key if self.rng.random() < 0.5 else traced(expressions.scalar(self.rng, types), types)
        return self.part(whole, key, self.rng.choice(self.keys(whole, key)))


def traced_already(value: Any, types: tuple[Type, ...]) -> Any:
    """The front end of plans whose functions are lambdas of the expression language already."""
    from wpinq.expr.nodes import Lambda, make_lambda

    return value if isinstance(value, Lambda) else make_lambda((), value)


def random_operands(rng: Random) -> tuple[Data, tuple[Node, Node, Node]]:
    """Three plans with records of exactly one type, and a dataset for them."""
    while True:
        grower = Grower(rng, WEIGHTS)
        for _ in range(rng.choice([1, 3, 5])):
            grower.step(grower.draw(), grower.pick())
        a = grower.deepest()
        b, c = grower.fitting(a), grower.fitting(a)
        if repr(a.node.type) == repr(b.node.type) == repr(c.node.type):
            return grower.data, (a.node, b.node, c.node)


def random_cases(rng: Random, roots: tuple[str, ...], weights: tuple[Fraction, ...] = WEIGHTS) -> list[Case]:
    """Plans of depth at least four that share what is below their roots, one for each of these operators."""
    for _ in range(TRIES):
        grower = Grower(rng, weights)
        grown = [grower.grow(root) for root in roots]
        if None not in grown:
            nodes = [live.node for live in grown if live is not None]
            return [Case(node, {name: grower.data[name] for name in sources([node])}) for node in nodes]
    raise AssertionError(f"no plan with {' or '.join(roots)} at its root can be drawn: see `draw` of its case")


def random_case(rng: Random, root: str, weights: tuple[Fraction, ...] = WEIGHTS) -> Case:
    """A plan of depth at least four with this operator at its root, and a dataset for it."""
    return random_cases(rng, (root,), weights)[0]
