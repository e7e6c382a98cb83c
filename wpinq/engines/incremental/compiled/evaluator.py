"""The compiled evaluator: the contract of the python one, on a module generated from the plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.incremental.compiled import runtime
from wpinq.engines.incremental.compiled.columns import Dictionary, Rows
from wpinq.engines.incremental.compiled.errors import CannotCompile
from wpinq.engines.incremental.compiled.formulas import Assumptions
from wpinq.engines.incremental.compiled.generate import Generated, Generator
from wpinq.engines.incremental.compiled.modules import import_module
from wpinq.engines.incremental.compiled.remembered import elements
from wpinq.engines.incremental.compiled.steps import lower
from wpinq.engines.incremental.compiled.tables import Arena, Table, Words
from wpinq.engines.incremental.compiled.walk import Walk
from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.node import Node, sources

Weights = dict[Value, float]
Candidate = Mapping[str, Mapping[Value, float]]
Changes = tuple[Words, Words, NDArray[np.float64]]
"""Changes of sources: the number of the source, the words of the record and the change, for each record."""

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
    walk : Walk, optional
        The walk that the module is to hold.
    dictionary : Dictionary, optional
        The numbers of strings, where records come as words.
    targets : sequence, optional
        As for `set_targets`.

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
        self,
        plans: Sequence[Node],
        candidate: Candidate | Mapping[str, Rows],
        *,
        virtual: bool = True,
        walk: Walk | None = None,
        dictionary: Dictionary | None = None,
        targets: Sequence[tuple[float, Mapping[Value, float], bool]] | None = None,
    ) -> None:
        if len(plans) > MOST_OUTPUTS:
            raise CannotCompile(
                f"the compiled engine takes at most {MOST_OUTPUTS} plans together; the python engine takes more"
            )
        self._plans, self._virtual, self._walk = tuple(plans), virtual, walk
        self._sources = {name: source.record for name, source in sources(plans).items()}
        self._dictionary = dictionary or Dictionary()
        self._loads = 0
        self._aim(targets or [(0.0, {}, False)] * len(plans))
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
        self._apply(self._proposal(changes))
        answers = []
        for table, plan in zip(self._generated.changes, self._plans, strict=True):
            moved = self._decoded(self._arena.gathered(table), table, plan.type)
            answers.append({record: weight for record, weight in moved.items() if abs(weight) >= runtime.DUST})
        return answers

    def commit(self) -> None:
        """Keep the pending proposals."""
        self._clear_log()
        self._pending.clear()

    def rollback(self) -> None:
        """Take the pending proposals back: to the last bit, but where `loads` rose meanwhile."""
        self._module.rollback(self._arena.words, self._arena.words[runtime.LOG_START])
        self._pending.clear()

    def resynchronize(self) -> None:
        """Evaluate afresh on the candidate as it is, which ends the drift of weights. Commits."""
        self._load(self._held())

    def set_targets(self, targets: Sequence[tuple[float, Mapping[Value, float], bool]]) -> None:
        """Score the outputs: `Σ_i epsilon_i · Σ_x |Q_i(x) − values_i(x)|` over the records of values_i.

        Parameters
        ----------
        targets : sequence of (float, mapping, bool)
            For each plan the price of a unit of distance, at least 0; the noisy answer for each record of the domain;
            and whether weight on records outside the domain counts too, against 0.
        """
        self._aim(targets)
        self._load(self._held())

    def _aim(self, targets: Sequence[tuple[float, Mapping[Value, float], bool]]) -> None:
        for epsilon, _, _ in targets:
            if not 0 <= epsilon < math.inf:
                raise PlanError(f"the price of a unit of distance must be finite and at least 0, not {epsilon!r}")
        self._prices = [(float(epsilon), float(epsilon) if outside else 0.0) for epsilon, _, outside in targets]
        self._targets = [{record: float(value) for record, value in values.items()} for _, values, _ in targets]

    def encode(self, records: Sequence[Value], type_: Type) -> Words:
        """The words of records, a row each."""
        return self._dictionary.encode_all(records, type_)

    def decode(self, rows: Words, type_: Type) -> list[Value]:
        """The records of rows of words."""
        return [self._dictionary.decode(row, type_) for row in rows.tolist()]

    def walk(self, loop: Callable[[ModuleType, Words, int], None], tallies: Words, steps: int) -> None:
        """Run steps of a walk: `loop(module, array, steps)` until `tallies` counts them, tables growing meanwhile."""
        end = int(tallies[2]) + steps
        while tallies[2] < end:
            loop(self._module, self._arena.words, end - int(tallies[2]))
            self._grown()

    # --- loading ----------------------------------------------------------------------------------------------

    def _compile(self, candidate: Candidate | Mapping[str, Rows]) -> None:
        self._check_names(candidate)
        self._steps = lower(self._plans, self._dictionary)
        rows = {name: self._rows(name, records) for name, records in candidate.items()}
        weights = np.concatenate([np.zeros(0), *(held.weights[held.weights != 0] for held in rows.values())])
        self._assumptions = Assumptions(
            nonnegative=bool(np.all(weights > 0)), unit=bool(np.all(weights == 1)), virtual=self._virtual
        )
        self._generate(rows)

    def _generate(self, candidate: Mapping[str, Rows]) -> None:
        try:
            self._generated: Generated = Generator(self._steps, self._assumptions, PARAMETERS, self._walk).generate()
        except CannotCompile:
            if not self._assumptions.virtual:
                raise
            self._virtual, self._assumptions = False, replace(self._assumptions, virtual=False)
            self._generated = Generator(self._steps, self._assumptions, PARAMETERS, self._walk).generate()
        self._module: ModuleType = import_module(self._generated.text)
        self._load(candidate)

    def _load(self, candidate: Mapping[str, Rows]) -> None:
        self._arena = Arena(self._generated.tables)
        self._loads += 1
        self._pending: list[Changes] = []
        numbers = self._arena.words.view(np.float64)
        for position, (inside, outside) in enumerate(self._prices):
            numbers[PARAMETERS + 2 * position] = inside
            numbers[PARAMETERS + 2 * position + 1] = outside
        for position, targets in enumerate(self._targets):
            self._pin(position, targets)
        for name, rows in candidate.items():
            for start in range(0, len(rows.weights), BATCH):
                words, weights = rows.words[start : start + BATCH], rows.weights[start : start + BATCH]
                self._apply(self._changes(name, words, weights))
                self.commit()

    def _held(self) -> dict[str, Rows]:
        """The candidate as it is, a pending proposal included, as words."""
        found = {}
        for name, (_, table, _) in self._generated.sources.items():
            rows = self._arena.rows(table)
            found[name] = Rows(rows[:, : table.width].copy(), rows[:, table.width].copy().view(np.float64))
        return found

    def _pin(self, position: int, targets: Weights) -> None:
        plan, price = self._plans[position], self._prices[position][0]
        for batch in _batches(targets.items()):
            words, values = self._encoded(batch, plan.type)
            while True:
                self._module.pin(self._arena.words, position, words, values)
                if not self._grown():
                    break
            self.commit()
        first = self._arena.words[runtime.SCORE : runtime.SCORE + 1].view(np.float64)
        first[0] += price * sum(abs(value) for value in targets.values())

    def _apply(self, changes: Changes) -> None:
        while True:
            self._module.propose(self._arena.words, *changes)
            status = int(self._arena.words[runtime.STATUS])
            if status in (runtime.NEGATIVE, runtime.NOT_UNIT):
                self._arena.words[runtime.STATUS] = 0
                self._relax(changes)
                return
            if not self._grown():
                self._pending.append(changes)
                return

    def _grown(self) -> bool:
        """Whether something was full: what is pending is done again then, with more room."""
        words = self._arena.words
        status = int(words[runtime.STATUS])
        if status == 0:
            return False
        pending = list(self._pending)
        self._module.rollback(words, words[runtime.LOG_START])
        words[runtime.STATUS] = 0
        if status == runtime.MISSING:
            self._learn()
        if self._generated.functions:
            self._module.forget(self._arena.words)
        if status == runtime.LOG_FULL:
            self._arena.grow_log()
        elif status != runtime.MISSING:
            self._arena.grow(status)
        self._pending = []
        for changes in pending:
            self._apply(changes)
        return True

    def _clear_log(self) -> None:
        self._arena.words[runtime.LOG] = self._arena.words[runtime.LOG_START]

    def _learn(self) -> None:
        """Compute what remembered functions miss."""
        dictionary = self._dictionary
        missed: dict[int, list[Sequence[int]]] = {function.number: [] for function, _, _ in self._generated.functions}
        for function, _, missing in self._generated.functions:
            for row in self._arena.gathered(missing)[:, : missing.width].tolist():
                missed[function.number].append(row)
                for follower, key in elements(dictionary, function, row):
                    missed[follower.number].append(key)
        for function, table, _ in self._generated.functions:
            if missed[function.number]:
                learnt = function.learn(missed[function.number], dictionary)
                self._remember(function.number, table, [key for key, _ in learnt], [value for _, value in learnt])

    def _remember(self, number: int, table: Table, keys: list[list[int]], values: list[list[int]]) -> None:
        held = np.array(keys, dtype=np.int64), np.array(values, dtype=np.int64)
        while True:
            self._module.remember(self._arena.words, number, *held)
            self._clear_log()
            status = int(self._arena.words[runtime.STATUS])
            if status == 0:
                return
            self._arena.words[runtime.STATUS] = 0
            if status == runtime.LOG_FULL:
                self._arena.grow_log()
            else:
                self._arena.grow(table.header)

    def _relax(self, changes: Changes) -> None:
        """The candidate no longer satisfies what the module was generated for: generate it for less."""
        pending = [*self._pending, changes]
        self._module.rollback(self._arena.words, self._arena.words[runtime.LOG_START])
        self._assumptions = Assumptions(
            nonnegative=self._assumptions.unit and self._assumptions.nonnegative, unit=False, virtual=self._virtual
        )
        self._generate(self._held())
        for change in pending:
            self._apply(change)

    # --- words ------------------------------------------------------------------------------------------------

    def _rows(self, name: str, records: Mapping[Value, float] | Rows) -> Rows:
        if isinstance(records, Rows):
            return records
        return Rows(
            self.encode(list(records), self._sources[name]), np.array([*map(float, records.values())], dtype=np.float64)
        )

    def _changes(self, name: str, words: Words, weights: NDArray[np.float64]) -> Changes:
        number, table, _ = self._generated.sources[name]
        width = max(table.width for _, table, _ in self._generated.sources.values())
        padded = np.zeros((len(words), width), dtype=np.int64)
        padded[:, : table.width] = words
        return np.full(len(words), number, dtype=np.int64), padded, np.ascontiguousarray(weights)

    def _proposal(self, changes: Candidate) -> Changes:
        parts = [self._rows(name, records) for name, records in changes.items()]
        each = [self._changes(name, rows.words, rows.weights) for name, rows in zip(changes, parts, strict=True)]
        none = np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64), np.zeros(0)
        joined = [np.concatenate(arrays) for arrays in zip(*each, strict=True)] if each else none
        return joined[0], joined[1], joined[2]

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

    def _check_names(self, changes: Mapping[str, object]) -> None:
        for name in changes:
            if name not in self._sources:
                raise PlanError(f"no plan uses a source {name!r}; they use {', '.join(sorted(self._sources))}")


def _batches(items: Iterable[tuple[Value, float]]) -> Iterator[list[tuple[Value, float]]]:
    held = list(items)
    return (held[start : start + BATCH] for start in range(0, len(held), BATCH))
