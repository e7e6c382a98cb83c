"""Random plans and data built against the sharp bound: few values so that keys coincide, ties, hubs, many scales.

Plans come from types alone, with a liking for what the rules know: the same field as the key of both sides, keys of
several fields, keys in lists and in records that may be null, constants, limits, both orders of a pair, parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import wpinq as wp
from tests.support import expressions, moves
from tests.support.expressions import IDENTITY, Recipe, atoms, leaves, traced
from tests.support.moves import Followed, Way, Weights
from tests.support.plans import distance, traced_already
from wpinq.errors import WpinqError
from wpinq.expr.nodes import Constant
from wpinq.expr.types import INT, STR, ListOf, TupleOf, Type, unify
from wpinq.plan.construct import construct
from wpinq.plan.demand import demand
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators import Partition, Source
from wpinq.plan.properties import plan_properties

PAIR = TupleOf(("src", "dst"), (INT, INT))
MAYBE = INT.with_nullable()
INNER = TupleOf(("k", "m"), (MAYBE, INT), nullable=True)
SCHEMAS: tuple[Type, ...] = (
    PAIR,
    PAIR,
    PAIR,
    INT,
    TupleOf(("a", "b"), (MAYBE, MAYBE)),
    TupleOf(("a", "b", "c"), (INT, INT, INT)),
    TupleOf(("n", "v"), (INNER, INT)),
    TupleOf(("p", "q"), (PAIR, PAIR)),
    TupleOf(("x", "l"), (INT, ListOf(INT, bound=3))),
    TupleOf(("one", "other"), (INNER, INNER)),
    TupleOf(("s", "i"), (STR, INT)),
)
FACTS: tuple[tuple[str, ...], ...] = (
    (),
    ("nonnegative",),
    ("whole_weights",),
    ("whole_weights",),
    ("unit_weights",),
    ("unit_weights",),
    ("unit_weights", "simple"),
    ("unit_weights", "simple"),
    ("whole_weights", "simple"),
    ("unit_weights", "symmetric"),
    ("unit_weights", "symmetric"),
    ("nonnegative", "symmetric"),
    ("whole_weights", "symmetric"),
    ("symmetric",),
)
OPERATORS = {
    "Select": 3,
    "Where": 1,
    "SelectMany": 2,
    "Shave": 1,
    "GroupBy": 3,
    "Join": 5,
    "Union": 1.5,
    "Intersect": 1.5,
    "Concat": 2,
    "Except": 1,
    "Partition": 1.2,
}
POOLS = tuple(
    tuple(map(Fraction, pool.split()))
    for pool in ("1", "1 2", "1/2 1", "1 1000", "1/1000 1 50", "0 1 1", "1 1 8", "1/1048576 1", "1/3 2/3 1")
)
SIZES = tuple(map(Fraction, ("1", "1", "1/3", "1/1000", "100", "1/1048576")))


def value(rng: Random, type_: Type, many: int = 3) -> Any:
    """A value of a type, one of few."""
    if type_.nullable and rng.random() < 0.3:
        return None
    if isinstance(type_, TupleOf):
        return tuple(value(rng, element, many) for element in type_.elements)
    if isinstance(type_, ListOf):
        return tuple(value(rng, type_.element, many) for _ in range(rng.randrange(min(type_.bound or 3, 3) + 1)))
    shown = str(type_)
    if shown == "int":
        return rng.randrange(many)
    if shown == "bool":
        return rng.random() < 0.5
    return rng.choice([0.5, 1.0, -1.5]) if shown == "float" else rng.choice(["a", "b", "aB"])


def dataset(rng: Random, source: Source) -> dict[Any, Fraction]:
    """A dataset that keeps a source's facts."""
    exact, hub = "unit_weights" in source.facts, rng.random() < 0.3
    pool = (Fraction(1),) if exact else rng.choice([pool for pool in POOLS if not source.whole or _whole(pool)])
    if not source.nonnegative() and rng.random() < 0.6:
        pool = (*pool, *(-weight for weight in pool))
    many = rng.choice([2, 3, 4])
    fixed = value(rng, source.record, many)
    data: dict[Any, Fraction] = {}
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8] if not hub else [6, 10, 14])):
        record = value(rng, source.record, 12 if hub else many)
        if hub and isinstance(record, tuple) and isinstance(source.record, TupleOf):  # many records share a field
            place = rng.randrange(len(record))
            record = (*record[:place], fixed[place], *record[place + 1 :]) if fixed else record
        add(source, data, record, rng.choice(pool))
    return data


def _whole(weights: Iterable[Fraction]) -> bool:
    return all(weight.denominator == 1 for weight in weights)


def _size(rng: Random, source: Source | None) -> Fraction:
    """How much of a unit comes or goes: whole rows, where a source is of rows."""
    if source is not None and source.exact:
        return Fraction(1)
    return rng.choice([size for size in SIZES if source is None or not source.whole or _whole([size])])


def add(source: Source, data: dict[Any, Fraction], record: Any, weight: Fraction) -> bool:
    """Put a record, or a pair, into a dataset, as far as its facts allow."""
    mirrored = record[::-1] if isinstance(record, tuple) else record
    if "simple" in source.facts and (record == mirrored or mirrored in data):
        return False
    if "unit_weights" in source.facts and record in data:
        return False
    for each in {record, mirrored} if "symmetric" in source.facts else {record}:
        data[each] = data.get(each, Fraction(0)) + weight
    return True


class Weaver:
    """A plan under construction, from types alone."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.live: list[Node] = []
        first = rng.choice(SCHEMAS)
        for name in ("a", "b", "c")[: rng.choice([1, 1, 1, 2, 3])]:
            schema = first if rng.random() < 0.6 else rng.choice(SCHEMAS)
            facts = rng.choice(FACTS)
            paired = isinstance(schema, TupleOf) and len(schema.elements) == 2 and len(set(schema.elements)) == 1
            if not paired:
                facts = tuple(fact for fact in facts if fact not in ("symmetric", "simple"))
            if isinstance(schema, TupleOf) and rng.random() < 0.15:
                self.live.append(self._people(name, schema, facts))
                continue
            weight = 2 if "symmetric" in facts else 1
            self.live.append(wp.source(name, schema, facts=list(facts), unit_weight=weight, weights=True).plan)
        self.bare = list(self.live)

    def _people(self, name: str, row: TupleOf, facts: tuple[str, ...]) -> Node:
        """A table of people, each with a few rows, or with a list of them in one record."""
        nested = self.rng.random() < 0.4
        kept = [] if nested else list(facts)
        return wp.source(name, row, facts=kept, person="who", at_most=self.rng.choice([2, 3]), nested=nested).plan

    def weave(self) -> Node:
        """A plan of a few steps."""
        steps = self.rng.choice([2, 3, 3, 4, 4, 5, 6, 7])
        if self.rng.random() < 0.25:
            self._doubled(self.rng.choice(self.bare))
        if self.rng.random() < 0.25:
            self._related(self.pick())
        for _ in range(6 * steps):
            if len(self.live) - len(self.bare) >= steps:
                break
            if self.rng.random() < 0.1:
                self._related(self.pick())
                continue
            (name,) = self.rng.choices(list(OPERATORS), list(OPERATORS.values()))
            self.step(name, self.pick())
        return self.live[-1]

    def pick(self) -> Node:
        """A dataset to go on with: most often the last."""
        return self.live[-1] if self.rng.random() < 0.7 else self.rng.choice(self.live)

    def step(self, name: str, below: Node) -> None:
        try:
            getattr(self, f"_{name.lower()}")(below)
        except WpinqError:  # types that do not fit: draw again
            return

    def add(self, name: str, inputs: tuple[Node, ...], **arguments: Any) -> Node:
        node = construct(REGISTRY[name], inputs, arguments, traced_already)
        if leaves(node.type) <= 10:
            self.live.append(node)
        return node

    def _doubled(self, below: Node) -> None:
        """A dataset with its reverse, or with what only looks like it."""
        if not (isinstance(below.type, TupleOf) and len(below.type.elements) >= 2):
            return
        recipe = self.rng.choice([("reverse", IDENTITY), ("reverse", IDENTITY), IDENTITY, ("rotate", IDENTITY)])
        other = self._mapped(below, recipe)
        if other is not None:
            name = self.rng.choice(["Concat", "Concat", "Concat", "Union", "Intersect", "Except"])
            self.step_on(name, (other, below))

    def step_on(self, name: str, inputs: tuple[Node, Node]) -> None:
        try:
            self.add(name, inputs)
        except WpinqError:
            return

    def _related(self, below: Node) -> None:
        """A join of what a dataset becomes in two ways: as a rule in one ratio at every key, or nearly."""
        sides = [self._kept_whole(below) for _ in range(2)]
        fields_ = [[recipe for recipe, type_ in self.fields(side.type) if type_ == INT] for side in sides]
        if not all(fields_):
            return
        keys = [self.rng.choice(found) for found in fields_]
        types = sides[0].type, sides[1].type
        try:
            self.add(
                "Join",
                (sides[0], sides[1]),
                left_key=traced(keys[0], types[:1]),
                right_key=traced(keys[1], types[1:]),
                result=traced(self._result(types, *keys), types),
            )
        except WpinqError:
            return

    def _kept_whole(self, node: Node) -> Node:
        """What a few steps make of a dataset that mostly keep its weight, some of which do not."""
        rng = self.rng
        for _ in range(rng.choice([0, 1, 1, 2])):
            pair = isinstance(node.type, TupleOf) and len(node.type.elements) > 1
            types = (node.type,)
            try:
                match rng.choice(["shave", "shave", "halves", "halves", "reverse", "field", "limited", "where"]):
                    case "shave":
                        node = self.add("Shave", (node,), widths=rng.choice([0.5, 4.0, 256.0]))
                    case "limited":
                        node = self.add("Shave", (node,), widths=rng.choice([0.5, 1.0]), limit=rng.choice([1, 2]))
                    case "halves":
                        both = ("list", IDENTITY, ("reverse", IDENTITY)) if pair else ("list", IDENTITY, IDENTITY)
                        node = self.add(
                            "SelectMany", (node,), function=traced(both, types), limit=rng.choice([1, 2, 2])
                        )
                    case "reverse" if pair:
                        node = self.add("Select", (node,), function=traced(("reverse", IDENTITY), types))
                    case "where":
                        node = self.add("Where", (node,), predicate=traced(expressions.predicate(rng, types), types))
                    case "field":
                        found = [recipe for recipe, _ in self.fields(node.type)]
                        if found:
                            node = self.add("Select", (node,), function=traced(rng.choice(found), types))
            except WpinqError:  # types that do not fit
                continue
        return node

    def _mapped(self, below: Node, recipe: Recipe) -> Node | None:
        try:
            return self.add("Select", (below,), function=traced(recipe, (below.type,)))
        except WpinqError:
            return None

    def fields(self, type_: Type) -> list[tuple[Recipe, Type]]:
        """What can be read of a record: fields, and fields of records inside, and records inside."""
        found = atoms((type_,))
        if isinstance(type_, TupleOf):
            found += [
                (("at", 0, (place,)), element)
                for place, element in enumerate(type_.elements)
                if isinstance(element, TupleOf)
            ]
        return found

    def key(self, type_: Type) -> Recipe:
        """A key: a field, several, a function of one, a constant, a sorted pair, the record."""
        rng, found = self.rng, self.fields(type_)
        draw = rng.random()
        if not found or draw < 0.05:
            return ("constant", 0)
        if draw < 0.2:  # the last field: what a GroupBy made of a group, the number of a piece
            return found[-1][0]
        if draw < 0.6:
            return rng.choice(found)[0]
        if draw < 0.7:
            return ("tuple", rng.choice(found)[0], rng.choice(found)[0])
        if draw < 0.75:
            return ("tuple", rng.choice(found)[0], ("constant", rng.choice([0, 1])))
        if draw < 0.85:
            return IDENTITY
        if draw < 0.92:
            same = [recipe for recipe, element in found if element == INT]
            if len(same) >= 2:
                return ("sort", ("tuple", rng.choice(same), rng.choice(same)))
        return expressions.scalar(rng, (type_,))

    def _select(self, below: Node) -> None:
        rng, type_ = self.rng, below.type
        draw = rng.random()
        found = self.fields(type_)
        if draw < 0.15:
            recipe: Recipe = ("constant", 0)
        elif draw < 0.4 and found:
            recipe = ("tuple", *(rng.choice(found)[0] for _ in range(rng.choice([2, 2, 3]))))
        elif draw < 0.5 and found:
            recipe = ("tuple", ("tuple", *(recipe for recipe, _ in found[:3])), rng.choice(found)[0])
        elif draw < 0.6 and isinstance(type_, TupleOf):
            recipe = ("reverse", IDENTITY)
        elif draw < 0.7:
            recipe = ("where", expressions.predicate(rng, (type_,)), rng.choice(found or [(IDENTITY, type_)])[0], None)
            recipe = (*recipe[:3], recipe[2] if rng.random() < 0.3 else rng.choice(found or [(IDENTITY, type_)])[0])
        else:
            recipe = expressions.record(rng, (type_,))
        self.add("Select", (below,), function=traced(recipe, (type_,)))

    def _where(self, below: Node) -> None:
        types = (below.type,)
        self.add("Where", (below,), predicate=traced(expressions.predicate(self.rng, types), types))

    def _selectmany(self, below: Node) -> None:
        rng, types = self.rng, (below.type,)
        recipe = expressions.elements(rng, types)
        if rng.random() < 0.4:
            found = [recipe for recipe, type_ in self.fields(below.type) if type_ == INT]
            if found:
                recipe = ("list", *(rng.choice(found) for _ in range(rng.choice([1, 2, 3]))))
        self.add("SelectMany", (below,), function=traced(recipe, types), limit=rng.choice([1, 2, 3, 6]))

    def _shave(self, below: Node) -> None:
        rng, types = self.rng, (below.type,)
        drawn = expressions.widths(rng, types)
        width = drawn if isinstance(drawn, float) else traced(drawn, types)
        self.add("Shave", (below,), widths=width, limit=rng.choice([1, 3, 6]))

    def _groupby(self, below: Node) -> None:
        rng, types = self.rng, (below.type,)
        reduce = ("count", IDENTITY) if rng.random() < 0.5 else expressions.reducer(rng, below.type)
        self.add(
            "GroupBy", (below,), key=traced(self.key(below.type), types), reduce=traced(reduce, (ListOf(below.type),))
        )

    def _join(self, below: Node) -> None:
        rng = self.rng
        other = below if rng.random() < 0.3 else rng.choice(self.live)
        left, right = (below, other) if rng.random() < 0.5 else (other, below)
        one = self.key(left.type)
        for _ in range(12):
            two = one if left == right and rng.random() < 0.3 else self.key(right.type)
            keys = traced(one, (left.type,)), traced(two, (right.type,))
            if unify(keys[0].type, keys[1].type) is not None:
                break
            one = self.key(left.type)
        types = (left.type, right.type)
        self.add(
            "Join",
            (left, right),
            left_key=keys[0],
            right_key=keys[1],
            result=traced(self._result(types, one, two), types),
        )

    def _result(self, types: tuple[Type, Type], one: Recipe, two: Recipe) -> Recipe:
        rng, both = self.rng, atoms(types)
        draw = rng.random()
        if draw < 0.25 and sum(map(leaves, types)) <= 6:
            return ("tuple", IDENTITY, ("at", 1, ()))
        if draw < 0.4 and leaves(types[0]) <= 5:
            return IDENTITY
        if draw < 0.5:
            return ("constant", 0)
        if draw < 0.7 and both:
            return ("tuple", one, *(rng.choice(both)[0] for _ in range(rng.choice([1, 2]))))
        return ("tuple", *(rng.choice(both)[0] if both else ("constant", 1) for _ in range(rng.choice([2, 3]))))

    def _both(self, name: str, below: Node) -> None:
        fitting = [node for node in self.live if unify(node.type, below.type) is not None]
        other = self.rng.choice(fitting)
        self.add(name, (below, other) if self.rng.random() < 0.5 else (other, below))

    def _union(self, below: Node) -> None:
        self._both("Union", below)

    def _intersect(self, below: Node) -> None:
        self._both("Intersect", below)

    def _concat(self, below: Node) -> None:
        self._both("Concat", below)

    def _except(self, below: Node) -> None:
        self._both("Except", below)
        if self.rng.random() < 0.6:  # where what is below zero is gone, what is taken away may bring others back
            self.step("Shave", self.live[-1])
            self.step("Join", self.live[-1])

    def _partition(self, below: Node) -> None:
        recipe, type_ = self.rng.choice(self.fields(below.type) or [(("constant", 0), INT)])
        key, parts = traced(recipe, (below.type,)), self.rng.choice([1, 1, 2])
        for _ in range(parts):
            part = value(self.rng, type_.with_nullable(False), 3)
            self.add("Partition", (below,), key=key, part=Constant(type_.with_nullable(False), part))


@dataclass
class Findings:
    """What a run over random plans found.

    Attributes
    ----------
    plans, cases, vacuous, sharp : int
        Plans; pairs of neighbours; those of them whose root did not move; those of a bound below the paths.
    ratio : dict
        By what is said at the root to make the bound sharp, the largest move over the bound.
    faults : list
        What was found to move further than is said: what, the operator, the plan and its data.
    """

    plans: int = 0
    cases: int = 0
    vacuous: int = 0
    sharp: int = 0
    ratio: dict[str, Fraction] = field(default_factory=dict)
    faults: list[tuple[str, str, Node, Any]] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Count what another run found."""
        self.plans += other.plans
        self.cases += other.cases
        self.vacuous += other.vacuous
        self.sharp += other.sharp
        self.faults += other.faults
        for rule, ratio in other.ratio.items():
            self.ratio[rule] = max(self.ratio.get(rule, Fraction(0)), ratio)


def attack(
    seed: int, cases: int, plans: int = 0, *, datasets: int = 2, neighbours: int = 4, first: bool = False
) -> Findings:
    """Random plans on random neighbours, each step held to what is said of it; with `first`, up to the first fault.

    At least so many pairs of neighbours, and so many plans; of each plan some datasets, and some neighbours of each.
    """
    rng, findings = Random(seed), Findings()
    while (findings.cases < cases or findings.plans < plans) and not (first and findings.faults):
        weaver = Weaver(rng)
        root = weaver.weave()
        findings.plans += 1
        followed = moves.followed(root)
        batch = {node: rng.choice(SIZES) for node in [root, *rng.sample(weaver.live, min(2, len(weaver.live)))]}
        order = list(topological(batch))
        for _ in range(datasets):
            declared = {node.digest: node.operator for node in order if isinstance(node.operator, Source)}
            data = {digest: dataset(rng, source) for digest, source in declared.items()}
            before = moves.outputs(order, data)
            if before is None:
                continue
            lattice = plan_properties(root).lattice
            if lattice is not None and not _whole(weight / lattice for weight in before[root.digest].values()):
                findings.faults.append(("lattice", root.operator.name, root, data))
            for _ in range(neighbours):
                _one_step(rng, rng.choice(followed), before, findings)
            _many_steps(rng, batch, order, data, before, findings)
    return findings


def _one_step(rng: Random, plan: Followed, all_before: Mapping[bytes, Weights], findings: Findings) -> None:
    cut = plan.cut
    held = {n.digest: all_before[n.digest] for n in plan.steps if isinstance(n.operator, (Source, Partition))}
    data = dict(held[cut.digest])
    drawn = drawn_step(rng, plan, data)
    if drawn is None:
        return
    way, record, size, changed = drawn
    before = {node.digest: all_before[node.digest] for node in plan.steps}
    after = moves.outputs(plan.steps, {**held, cut.digest: changed})
    if after is None:
        return
    findings.cases += 1
    unit = moves.unit_values(cut.type, record)
    for what, node in moves.broken(plan, way, unit, size, before, after):
        findings.faults.append((what, node.operator.name, plan.steps[-1], (record, size, held)))
    root = plan.steps[-1]
    moved = sum(moves.norms(moves.difference(before[root.digest], after[root.digest])))
    far = sum(moves.norms(moves.difference(data, changed)))
    findings.vacuous += moved == 0
    said = way.moved[root.digest].change
    findings.sharp += bool(said.rules)
    if moved and plan.bound:
        for rule in said.rules or {"paths"}:
            findings.ratio[rule] = max(findings.ratio.get(rule, Fraction(0)), moved / (plan.bound * far))


def drawn_step(
    rng: Random, plan: Followed, data: dict[Any, Fraction]
) -> tuple[Way, Any, Fraction, dict[Any, Fraction]] | None:
    """A step that keeps the facts of a cut, and the dataset after it."""
    cut = plan.cut
    source = cut.operator if isinstance(cut.operator, Source) else None
    size = _size(rng, source)
    record = rng.choice(list(data)) if data and rng.random() < 0.4 else value(rng, cut.type, rng.choice([2, 3, 4]))
    changed = dict(data)
    if source is None:
        changed[record] = changed.get(record, Fraction(0)) + size
        return plan.ways[0], record, size, changed
    if not add(source, changed, record, size):
        return None
    if "symmetric" not in source.facts:
        return plan.ways[0], record, size, changed
    if record is None:
        return None
    loop = record[0] == record[1]
    if loop:
        record = (record[0], record[0])
    return plan.ways[loop and -1], record, size, changed


def _many_steps(
    rng: Random,
    batch: Mapping[Node, Fraction],
    order: list[Node],
    data: Mapping[bytes, Weights],
    before: Any,
    findings: Findings,
) -> None:
    """Several units come and go in several sources: releases at their epsilons lose no more than is billed in all."""
    near = {digest: dict(weights) for digest, weights in data.items()}
    declared = {node.digest: node.operator for node in order if isinstance(node.operator, Source)}
    for digest, source in declared.items():
        for _ in range(rng.choice([0, 1, 2, 4])):
            size = _size(rng, source)
            if near[digest] and rng.random() < 0.5:
                gone = rng.choice(list(near[digest]))
                for each in {gone, gone[::-1]} if "symmetric" in source.facts and gone is not None else {gone}:
                    near[digest].pop(each, None)
            else:
                add(source, near[digest], value(rng, source.record), size)
    after = moves.outputs(order, near)
    if after is None:
        return
    asked = demand(list(batch.items())).sources
    billed = sum(
        (asked[source.source] * distance(data[digest], near[digest]) for digest, source in declared.items()),
        Fraction(0),
    )
    lost = sum(epsilon * distance(before[root.digest], after[root.digest]) for root, epsilon in batch.items())
    findings.cases += 1
    if lost > billed:
        root = next(iter(batch))
        findings.faults.append(("bill", root.operator.name, root, (data, near)))


def plans(seed: int, count: int) -> Iterator[Node]:
    """Random plans."""
    rng = Random(seed)
    for _ in range(count):
        yield Weaver(rng).weave()


def named(root: Node) -> dict[str, Source]:
    """The sources of a plan by name."""
    return sources([root])
