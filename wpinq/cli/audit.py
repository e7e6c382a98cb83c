"""`wpinq audit`: the measurements of a program attacked on made data, beside their bills.

A search finds made datasets that differ in one unit and lose most by the exact scores. Real draws of the mechanism on
both bound the loss from below. Neither data nor ledgers are opened.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from wpinq.api.simulate import KEEPS, PublicOutput, exceeded_sizes
from wpinq.cli.arguments import AuditFailed, add_parameters, load_program
from wpinq.engines.reference import evaluate
from wpinq.errors import UsageError
from wpinq.expr.nodes import Constant, Lambda, walk
from wpinq.expr.types import INT, CategoryOf, ListOf, TupleOf, Type, physical, tuple_type
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.node import sources, topological
from wpinq.plan.operators.source import Source
from wpinq.sinks.count_above import Listing, draw_above
from wpinq.sinks.graph_counts import edges_of
from wpinq.sinks.keys import product
from wpinq.sinks.sink import gathered

#: The probability of a violation in the output of a command where there is none.
ERROR = 1e-6

#: The pairs of a search, and those that it keeps; the numbers of a batch, and the cells of more outcomes than so many.
TRIES, _KEPT, _AT_ONCE, _CELLS, _OUTCOMES = 1_000, 16, 200_000, 32, 512

_HEAD, _REASON = "{measurement}: billed {billed} to {account}; ", "not audited: {reason}"
_PROVED = "{exact:.6g} by exact scores, at least {bound:.4g} by {draws:,} draws"

#: Two datasets by name of the source, from record to weight, or the outputs of a plan on both, from record to weight.
_Pair = Sequence[Mapping[Any, Any]]


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("audit", help="attack the measurements of a program on made data, without data")
    made.add_argument("program", type=Path, metavar="PROGRAM.wpq")
    add_parameters(made)
    made.add_argument("--minutes", type=float, default=5, metavar="N", help="the time for all (default 5)")
    made.add_argument("--draws", type=int, metavar="N", help="the draws on each dataset of a pair, in place of a time")
    made.add_argument("--seed", default="1", metavar="TEXT", help="the seed of made data (default 1)")
    made.add_argument("--json", action="store_true", help="print findings as JSON")
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    if not options.minutes > 0 or (options.draws or 100) < 100:
        raise UsageError("--minutes is more than 0, and --draws at least 100")
    listed = Bill(load_program(options).releases).listed
    made = [_Maker(label, each, account, options.seed) for label, each in listed for account in each.costs]
    if not made:
        raise UsageError("the program releases nothing; end a query with NoisyCount(epsilon, over: ...)")
    made.sort(key=lambda each: each.asked.sink.whole_output or each.asked.sink.chooses)  # slow ones get what is left
    end, places = time.perf_counter() + 60 * options.minutes, range(len(made), 0, -1)
    found = [_finding(each, options.draws, end, left, len(made)) for each, left in zip(made, places, strict=True)]
    lines = ((_HEAD + (_PROVED if "draws" in each else _REASON)).format(**each) for each in found)
    print(json.dumps({"error": ERROR, "findings": found}, indent=1) if options.json else "\n".join(lines), flush=True)
    if names := ", ".join(each["measurement"] for each in found if each.get("violation")):
        raise AuditFailed(f"a loss above the bill: {names}; do not release it, and report the program")


def _finding(made: _Maker, draws: int | None, end: float, left: int, parts: int) -> dict[str, Any]:
    """The finding on one measurement, of `left` in the time and of `parts` in the error."""
    end, asked, billed = end / left + time.perf_counter() * (1 - 1 / left), made.asked, made.asked.costs[made.account]
    row = {"measurement": made.label, "account": made.account, "billed": format_epsilon(billed)}
    worst = [each for each in made.worst(TRIES) if each[0]]
    if not worst:
        return {**row, "reason": "no made neighbours move it"}
    spent, count = 0.0, 50
    while draws is None and spent < 0.2:
        count, start = 2 * count, time.perf_counter()
        _tables(asked, worst[0][1], count)
        spent = time.perf_counter() - start
    if draws is None:  # all that there is time for, up to those that a tenth too little noise takes
        enough = 300_000 * float(max(billed, 1 / billed)) ** 2
        draws = max(500, int(min(0.7 * count / spent * (end - time.perf_counter()), enough)))
    tried = [_events(_tables(asked, outputs, 20 + draws // 200), 0.01)[0] for _, outputs in worst]
    outputs = worst[int(np.argmax(tried))][1]
    _, likely, events = _events(_tables(asked, outputs, draws // 5), ERROR)
    seen, step = np.zeros((2, len(events)), dtype=np.int64), max(1, _AT_ONCE // len(events))
    for done in range(0, draws, step):  # none of these chose an event
        for side, table in zip(seen, _tables(asked, outputs, min(step, draws - done)), strict=True):
            columns = zip(table.T, events, strict=True)
            side += [cells[ends.searchsorted(x, "right")].sum() for x, (ends, cells) in columns]
    bound = float(_least(seen[likely], seen[1 - likely], draws, ERROR / parts / len(events)).sum())
    # scores are rounded once
    violation = worst[0][0] > billed * (1 + Fraction(1, 10**9)) or bound > billed
    return {**row, "exact": float(worst[0][0]), "bound": bound, "draws": draws, "violation": violation}


def _least(likely: Any, rare: Any, draws: int, error: float) -> Any:
    """Lower bounds on logarithms of ratios of two chances, by Clopper and Pearson."""
    from scipy.stats import beta

    low = np.nan_to_num(beta.ppf(error / 2, likely, draws - likely + 1), nan=1e-300)
    high = np.nan_to_num(beta.ppf(1 - error / 2, rare + 1, draws - rare), nan=1.0)
    return np.maximum(0.0, np.log(low / high))  # 0 is of the event that is certain


def _events(tables: Sequence[Any], error: float) -> tuple[float, int, list[tuple[Any, Any]]]:
    """The events that tell samples apart best, one a column: bound, likelier side, cells."""
    found = []
    for likely in (0, 1):
        columns = zip(tables[likely].T, tables[1 - likely].T, strict=True)
        bounds, *events = zip(*(_event(*pair, error) for pair in columns), strict=True)
        found.append((sum(bounds), likely, [*zip(*events, strict=True)]))
    return max(found, key=itemgetter(0))


def _event(likely: Any, rare: Any, error: float) -> tuple[float, Any, Any]:
    ends = np.unique(np.concatenate([likely, rare]))
    if len(ends) > _OUTCOMES:
        ends = np.unique(np.quantile(np.concatenate([likely, rare]), np.linspace(0, 1, _CELLS), method="nearest"))
    one, other = (np.bincount(ends.searchsorted(side, "right"), minlength=len(ends) + 1) for side in (likely, rare))
    order = np.argsort((other + 1) / (one + 1), kind="stable")
    bounds = _least(one[order].cumsum(), other[order].cumsum(), len(likely), error)
    return float(bounds.max()), ends, np.isin(np.arange(len(order)), order[: bounds.argmax() + 1])


def _tables(asked: Measurement, outputs: _Pair, count: int) -> list[Any]:
    """So many releases on either side, a row each."""
    sink, keys, scales = asked.sink, _keys(asked, outputs), asked.sink.scales(asked.plan, asked.epsilon)
    rows, times = (count, 1) if sink.chooses or (sink.whole_output and not sink.own_keys) else (1, count)

    def drawn(side: Mapping[Any, Any]) -> list[Any]:
        if asked.listing is None:
            return [sink.draw(PublicOutput(side), [*keys] * times, scales, os.urandom) for _ in range(rows)]
        listing = Listing(product(range(count), keys), asked.listing.above)  # one, of as many copies of the keys
        copies = PublicOutput({(copy, key): side[key] for key in keys if key in side for copy in range(count)})
        shown = draw_above(sink, listing, tuple_type((INT, asked.key_type)), copies, (), (), scales[0], os.urandom)
        return [shown.get((copy, key), -np.inf) for copy in range(count) for key in keys]

    return [np.array(drawn(side)).reshape(count, -1) for side in outputs]


def _keys(asked: Measurement, outputs: _Pair) -> Sequence[Any]:
    """The keys to draw for: the moved ones, where each has a noise of its own."""
    if asked.sink.chooses or asked.sink.whole_output:
        return asked.domain or ()
    known = asked.domain if asked.listing is None else asked.listing.domain
    one, other = outputs
    return [x for x in {**one, **other} if one.get(x, 0) != other.get(x, 0) and (known is None or x in known)]


def _loss(asked: Measurement, outputs: _Pair) -> Fraction:
    """The loss between two outputs by exact scores; by their distance, where a sink has none."""
    sink, (one, other), keys = asked.sink, outputs, _keys(asked, outputs)
    scale = Fraction(sink.scales(asked.plan, asked.epsilon)[0])
    if sink.chooses:
        scores: Any = [sink.scores(PublicOutput(side), keys) for side in outputs]  # type: ignore[attr-defined]
        moves = [Fraction(after) - Fraction(before) for before, after in zip(*scores, strict=True)]
        return (max(moves) - min(moves)) / scale
    if not sink.whole_output:
        one, other = (dict(zip(keys, gathered(sink, PublicOutput(side), keys), strict=True)) for side in outputs)
    elif sink.own_keys:  # of a graph: its edges
        one, other = ({frozenset(edge): 1 for edge in edges_of(side) if edge[0] != edge[1]} for side in outputs)
    moved = sum((abs(Fraction(one.get(x, 0)) - Fraction(other.get(x, 0))) for x in {**one, **other}), Fraction(0))
    return moved * asked.epsilon if sink.whole_output else moved / scale


class _Maker:
    """Makes neighbouring datasets for a measurement: one unit of an account changes."""

    def __init__(self, label: str, asked: Measurement, account: str, seed: str) -> None:
        self.label, self.asked, self.account, self.random = label, asked, account, Random(seed)
        self.sources = sources([asked.plan])
        above, scale = asked.listing.above if asked.listing else 0, asked.sink.scales(asked.plan, asked.epsilon)[0]
        self.weights = [1, 1, 2, int(above) or 1, int(above) + 1, int(scale) + 1, int(4 * scale) + 1]
        self.known = self.few = self._values()

    def _values(self) -> dict[str, list[Any]]:
        """Values for fields: those of the plan and the keys, so that comparisons are met."""
        found: dict[str, set[Any]] = {"bool": {False, True}, "int": {0, 1, 2}, "float": {-1.5}, "str": {"a", "b"}}
        steps = [node.operator for node in topological([self.asked.plan]) if node.inputs]
        left: list[Any] = [getattr(step, each.name) for step in steps for each in fields(step)]  # type: ignore[arg-type]
        left.append(self.asked.domain)
        for one in left:  # which grows
            if isinstance(one, Lambda):
                left += [each.value for each in walk(one.core) if isinstance(each, Constant)]
            elif isinstance(one, (tuple, list)):
                left += one
            elif isinstance(one, str):
                found["str"].add(one)
            elif isinstance(one, (int, float, Fraction)):
                found["float"].add(float(one))
                found["int"] |= {int(one) + near for near in (-1, 0, 1) if -(2**40) < one < 2**40}
        return {name: sorted(each) for name, each in found.items()}

    def worst(self, tries: int) -> list[tuple[Fraction, _Pair]]:
        """The largest losses that a climb of so many tries finds, each with the outputs on its pair."""
        kept: list[tuple[tuple[Fraction, float], _Pair, _Pair]] = []
        for _ in range(tries):
            pair = self._pair(self.random.choice(kept)[1] if kept and self.random.random() < 0.6 else None)
            if all(self._admits(source, [side[name] for side in pair]) for name, source in self.sources.items()):
                outputs = [evaluate(self.asked.plan, side, EXACT) for side in pair]
                keys, listing = _keys(self.asked, outputs), self.asked.listing
                near = sum(abs(float(outputs[0].get(x, 0)) - listing.above) for x in keys) if listing else 0
                rank = _loss(self.asked, outputs), self.random.random() - len(keys) - near
                kept = sorted([*kept, (rank, pair, outputs)], key=itemgetter(0), reverse=True)[:_KEPT]
        return [(loss, [{x: float(w) for x, w in each.items()} for each in outputs]) for (loss, _), _, outputs in kept]

    def _pair(self, old: _Pair | None) -> _Pair:
        """A new pair, or an old one with another unit, or with another record on both sides."""
        draw, before = self.random.choice, old[0] if old else {name: dict[Any, Fraction]() for name in self.sources}
        if old and self.random.random() < 0.7:
            name, sides = draw([*self.sources]), [{name: dict(held) for name, held in side.items()} for side in old]
            self._add(self.sources[name], [side[name] for side in sides])
            return sides
        if not old:
            many = draw([2, 3, 6])
            self.few = {name: self.random.sample(known, min(many, len(known))) for name, known in self.known.items()}
            for name in draw([0, 1, 2, 3, 6, 12]) * [*self.sources]:
                self._add(self.sources[name], [before[name]])
        after = {name: dict(held) for name, held in before.items()}
        for name, source in self.sources.items():
            left = source.unit_weight * (source.account == self.account)
            while left > 0:
                left -= self._add(source, [after[name]], left)
        return before, after

    def _add(self, source: Source, sides: Sequence[dict[Any, Fraction]], most: Fraction | None = None) -> Fraction:
        """Add or take weight of one record, on all sides alike; how much."""
        draw, sign = self.random.choice, self.random.choice([1, 1, 1, -1])
        record = draw([*sides[0]]) if sides[0] and self.random.random() < 0.4 else self._value(source.record)
        both = dict.fromkeys((record, record[::-1]) if "symmetric" in source.facts else (record,))
        weight = Fraction(draw(self.weights)) if most is None else most / len(both) / draw([1, 1, 1, 4])
        weight = Fraction(1) if source.exact else Fraction(max(1, int(weight))) if source.whole else weight
        for side in sides:
            for each in both:
                side[each] = Fraction(each not in side) if source.exact else side.get(each, Fraction(0)) + sign * weight
                if not side[each]:
                    del side[each]
        return weight * len(both)

    def _value(self, type_: Type) -> Any:
        if type_.nullable and self.random.random() < 0.1:
            return None
        if isinstance(type_, TupleOf):
            return tuple(map(self._value, type_.elements))
        if isinstance(type_, ListOf):
            return tuple(map(self._value, [type_.element] * self.random.randint(0, min(5, type_.bound or 5))))
        return self.random.choice(type_.listed if isinstance(type_, CategoryOf) else self.few[str(physical(type_))])

    def _admits(self, source: Source, sides: Sequence[dict[Any, Fraction]]) -> bool:
        """Whether both datasets keep the declaration, and differ by a unit at most."""
        (one, other), facts = sides, {*source.facts, *["whole_weights"] * source.whole}
        far: Any = sum(abs(one.get(x, 0) - other.get(x, 0)) for x in {**one, **other})
        kept = far <= source.unit_weight and all(KEEPS[fact](side) for fact in facts for side in sides)
        sized = not source.sizes or not any([*exceeded_sizes(side, source.sizes, source.record)] for side in sides)
        return kept and sized and all(sum(map(abs, side.values())) <= source.cap for side in sides)
