"""The compiled evaluator: the contract of the python one, on a module generated from the plans."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.incremental.compiled import runtime
from wpinq.engines.incremental.compiled.columns import Dictionary
from wpinq.engines.incremental.compiled.formulas import Assumptions
from wpinq.engines.incremental.compiled.generate import Generated, Generator
from wpinq.engines.incremental.compiled.modules import import_module
from wpinq.engines.incremental.compiled.steps import lower
from wpinq.engines.incremental.compiled.tables import Arena, Table, Words
from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.node import Node, sources

Weights = dict[Value, float]
Candidate = Mapping[str, Mapping[Value, float]]

BATCH = 4096
PARAMETERS = 5
"""Where the parameters of outputs begin in the array: for each, its price within the domain and outside."""
MOST_OUTPUTS = (runtime.HEADERS - PARAMETERS) // 2


class CompiledEvaluator:
    """Several plans over one candidate, kept up to date by code generated for them.

    Floats only. Its meaning is that of `wpinq.engines.incremental.Evaluator`.

    Parameters
    ----------
    plans : sequence of Node
        The plans to keep up to date.
    candidate : mapping
        For each source name, record to weight. Public: a synthetic dataset, never a protected one.
    virtual : bool
        Whether steps whose weights can be looked up go without state: the same outputs, faster. False keeps every
        step's output, for comparison.
    walk : str, optional
        The source of edges that a `SwapWalk` is to walk on.

    Raises
    ------
    CannotCompile
        When a step of a plan has no integer form, which the message names, or when numba is not installed.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> ends = edges.select(lambda e: e.src)
    >>> evaluator = CompiledEvaluator([ends.plan], {"edges": {(1, 2): 1.0, (1, 3): 1.0}})
    >>> evaluator.propose({"edges": {(1, 4): 1.0}})
    [{1: 1.0}]
    >>> evaluator.rollback()
    >>> evaluator.outputs
    [{1: 2.0}]
    """

    def __init__(
        self, plans: Sequence[Node], candidate: Candidate, *, virtual: bool = True, walk: str | None = None
    ) -> None:
        if len(plans) > MOST_OUTPUTS:
            raise PlanError(f"the compiled engine takes at most {MOST_OUTPUTS} plans together")
        self._plans, self._virtual, self._walk = tuple(plans), virtual, walk
        self._sources = {name: source.record for name, source in sources(plans).items()}
        self._dictionary = Dictionary()
        self._prices = [(0.0, 0.0)] * len(plans)
        self._loads = 0
        self._targets: list[Weights] = [{} for _ in plans]
        self._compile(candidate)

    # --- the contract -----------------------------------------------------------------------------------------

    @property
    def outputs(self) -> list[Weights]:
        """The output of each plan on the candidate as it is, a pending proposal included."""
        return [self._weights(table, plan) for table, plan in zip(self._generated.outputs, self._plans, strict=True)]

    @property
    def candidate(self) -> dict[str, Weights]:
        """The candidate as it is, a pending proposal included."""
        found = {}
        for name, (_, table, _) in self._generated.sources.items():
            rows = self._arena.rows(table)
            found[name] = self._decoded(rows, table, self._sources[name])
        return found

    @property
    def state_size(self) -> int:
        """How many records of state are held besides the outputs, the candidate included."""
        held = [t for t in self._generated.tables.all if t.logged and t not in self._generated.outputs]
        return sum(self._arena.live(table) for table in held if not table.name.count("_BY_"))

    @property
    def memory(self) -> int:
        """The bytes of the engine's array."""
        return self._arena.words.nbytes

    @property
    def loads(self) -> int:
        """How often the outputs were evaluated afresh: at first, by `resynchronize`, and, once each, when the
        candidate first has another weight than 1 or a negative one, for which other code is generated."""
        return self._loads

    @property
    def virtual_steps(self) -> list[str]:
        """The steps that keep no state and pass nothing on: formulas stand for them."""
        return list(self._generated.virtual)

    @property
    def score(self) -> float:
        """`Σ_i price_i · |Q_i(candidate) − target_i|`, the pending proposal included. See `set_targets`."""
        return float(self._arena.words[runtime.SCORE : runtime.SCORE + 1].view(np.float64)[0])

    def propose(self, changes: Candidate) -> list[Weights]:
        """Change the candidate; the change of each plan's output. Pending until commit or rollback.

        Parameters
        ----------
        changes : mapping
            For each source name, record to change of weight. Proposals add up until one of the two.
        """
        self._check_names(changes)
        self._apply(changes)
        answers = []
        for table, plan in zip(self._generated.changes, self._plans, strict=True):
            count = int(self._arena.words[table.header + runtime.COUNT])
            start = int(self._arena.words[table.header + runtime.ROWS])
            rows = self._arena.words[start : start + (count + 1) * table.stride].reshape(-1, table.stride)[1:]
            moved = self._decoded(rows, table, plan.type)
            answers.append({record: weight for record, weight in moved.items() if abs(weight) >= runtime.DUST})
        return answers

    def commit(self) -> None:
        """Keep the pending proposals."""
        words = self._arena.words
        words[runtime.LOG] = words[runtime.LOG_START]
        self._pending.clear()

    def rollback(self) -> None:
        """Take the pending proposals back: to the last bit, but where `loads` rose meanwhile."""
        self._module.rollback(self._arena.words, self._arena.words[runtime.LOG_START])
        self._pending.clear()

    def resynchronize(self) -> None:
        """Evaluate afresh on the candidate as it is, which ends the drift of weights. Commits."""
        self._load(self.candidate)

    def set_targets(self, targets: Sequence[tuple[float, Mapping[Value, float], bool]]) -> None:
        """Score the outputs: `Σ_i epsilon_i · Σ_x |Q_i(x) − values_i(x)|` over the records of values_i.

        Parameters
        ----------
        targets : sequence of (float, mapping, bool)
            For each plan the price of a unit of distance, at least 0; the noisy answer for each record of the domain;
            and whether weight on records outside the domain counts too, against 0.
        """
        for epsilon, _, _ in targets:
            if not 0 <= epsilon < math.inf:
                raise PlanError(f"the price of a unit of distance must be finite and at least 0, not {epsilon!r}")
        self._prices = [(float(epsilon), float(epsilon) if outside else 0.0) for epsilon, _, outside in targets]
        self._targets = [{record: float(value) for record, value in values.items()} for _, values, _ in targets]
        self._load(self.candidate)

    def encode(self, records: Sequence[Value], type_: Type) -> Words:
        """The words of records, a row each."""
        return self._dictionary.encode_all(records, type_)

    def decode(self, rows: Words, type_: Type) -> list[Value]:
        """The records of rows of words."""
        return [self._dictionary.decode(row, type_) for row in rows.tolist()]

    def swap(
        self, edges: Words, seeds: NDArray[np.uint64], tallies: Words, symmetric: bool, steps: int, power: float
    ) -> None:
        """Run steps of a walk by swaps; see `SwapWalk`, which owns the arrays."""
        end = int(tallies[2]) + steps
        while tallies[2] < end:
            left = end - int(tallies[2])
            self._module.swap_chunk(self._arena.words, edges, seeds, tallies, int(symmetric), left, power)
            self._grown(0)

    # --- loading ----------------------------------------------------------------------------------------------

    def _compile(self, candidate: Candidate) -> None:
        self._check_names(candidate)
        weights = [w for records in candidate.values() for w in records.values() if w != 0]
        self._assumptions = Assumptions(
            nonnegative=all(w > 0 for w in weights), unit=all(w == 1 for w in weights), virtual=self._virtual
        )
        self._generate(candidate)

    def _generate(self, candidate: Candidate) -> None:
        steps = lower(self._plans, self._dictionary)
        self._generated: Generated = Generator(steps, self._assumptions, PARAMETERS, self._walk).generate()
        self._module: ModuleType = import_module(self._generated.text)
        self._load(candidate)

    def _load(self, candidate: Candidate) -> None:
        self._arena = Arena(self._generated.tables)
        self._loads += 1
        self._pending: list[Candidate] = []
        numbers = self._arena.words.view(np.float64)
        for position, (inside, outside) in enumerate(self._prices):
            numbers[PARAMETERS + 2 * position] = inside
            numbers[PARAMETERS + 2 * position + 1] = outside
        for position, targets in enumerate(self._targets):
            self._pin(position, targets)
        for name, records in candidate.items():
            for batch in _batches(records.items()):
                self._apply({name: dict(batch)})
                self.commit()

    def _pin(self, position: int, targets: Weights) -> None:
        plan, price = self._plans[position], self._prices[position][0]
        for batch in _batches(targets.items()):
            words, values = self._encoded(batch, plan.type)
            while True:
                self._module.pin(self._arena.words, position, words, values)
                if not self._grown(0):
                    break
            self.commit()
        first = self._arena.words[runtime.SCORE : runtime.SCORE + 1].view(np.float64)
        first[0] += price * sum(abs(value) for value in targets.values())

    def _apply(self, changes: Candidate) -> None:
        which, words, weights = self._proposal(changes)
        while True:
            mark = int(self._arena.words[runtime.LOG] - self._arena.words[runtime.LOG_START])
            self._module.propose(self._arena.words, which, words, weights)
            status = int(self._arena.words[runtime.STATUS])
            if status in (runtime.NEGATIVE, runtime.NOT_UNIT):
                self._arena.words[runtime.STATUS] = 0
                self._relax(changes)
                return
            if not self._grown(mark):
                self._pending.append(changes)
                return

    def _grown(self, mark: int) -> bool:
        """Whether something was full: what was written after the mark is undone, and there is more room now."""
        words = self._arena.words
        status = int(words[runtime.STATUS])
        if status == 0:
            return False
        pending = list(self._pending)
        self._module.rollback(words, words[runtime.LOG_START])
        words[runtime.STATUS] = 0
        if status == runtime.LOG_FULL:
            self._arena.grow_log()
        else:
            self._arena.grow(status)
        self._pending = []
        for changes in pending:
            self._apply(changes)
        return True

    def _relax(self, changes: Candidate) -> None:
        """The candidate no longer satisfies what the module was generated for: generate it for less."""
        pending = [*self._pending, changes]
        self._module.rollback(self._arena.words, self._arena.words[runtime.LOG_START])
        self._assumptions = Assumptions(
            nonnegative=self._assumptions.unit and self._assumptions.nonnegative, unit=False, virtual=self._virtual
        )
        self._generate(self.candidate)
        for change in pending:
            self._apply(change)

    # --- words ------------------------------------------------------------------------------------------------

    def _proposal(self, changes: Candidate) -> tuple[Words, Words, NDArray[np.float64]]:
        width = max(table.width for _, table, _ in self._generated.sources.values())
        which, words, weights = [], [], []
        for name, records in changes.items():
            number, table, _ = self._generated.sources[name]
            for record, weight in records.items():
                encoded = self._dictionary.encode(record, self._sources[name])
                which.append(number)
                words.append(encoded + [0] * (width - table.width))
                weights.append(float(weight))
        return (
            np.array(which, dtype=np.int64),
            np.array(words, dtype=np.int64).reshape(len(which), width),
            np.array(weights, dtype=np.float64),
        )

    def _encoded(self, records: Sequence[tuple[Value, float]], type_: Type) -> tuple[Words, NDArray[np.float64]]:
        return self.encode([record for record, _ in records], type_), np.array(
            [weight for _, weight in records], dtype=np.float64
        )

    def _weights(self, table: Table, plan: Node) -> Weights:
        found = self._decoded(self._arena.rows(table), table, plan.type)
        return {record: weight for record, weight in found.items() if weight != 0}

    def _decoded(self, rows: Words, table: Table, type_: Type) -> Weights:
        weights = rows[:, table.width].copy().view(np.float64)
        return {
            self._dictionary.decode(row[: table.width], type_): weight
            for row, weight in zip(rows.tolist(), weights.tolist(), strict=True)
        }

    def _check_names(self, changes: Candidate) -> None:
        for name in changes:
            if name not in self._sources:
                raise PlanError(f"no plan uses a source {name!r}; they use {', '.join(sorted(self._sources))}")


def _batches(items: Iterable[tuple[Value, float]]) -> Iterable[list[tuple[Value, float]]]:
    held = list(items)
    return (held[start : start + BATCH] for start in range(0, len(held), BATCH))
