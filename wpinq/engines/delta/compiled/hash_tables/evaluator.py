"""The compiled evaluator: the contract of the Python one, on a module generated from plans.

It has an array of its own. Where a table is full or a memo missing, it makes room and makes the proposal again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType

import numpy as np

from wpinq.engines.delta.compiled import hash_table as layout
from wpinq.engines.delta.compiled.expressions import elements
from wpinq.engines.delta.compiled.formulas import Assumptions
from wpinq.engines.delta.compiled.hash_tables.arena import Arena, Design
from wpinq.engines.delta.compiled.hash_tables.generation import ExtraLoops, generate
from wpinq.engines.delta.compiled.routine import CannotCompile, import_module
from wpinq.engines.delta.compiled.steps import lower
from wpinq.engines.delta.compiled.values import Dictionary, Rows
from wpinq.engines.delta.evaluator import Datasets, Goal, check_sources, loss
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node, sources
from wpinq.runtime.arrays import Floats, Integers

FloatWeights = dict[Value, float]
#: Changes of sources: the number of the source, the words of the record and the change, for each record.
SourceChanges = tuple[Integers, Integers, Floats]
#: Runs so many steps of a walk: `run(module, array, steps)`.
RunChunk = Callable[[ModuleType, Integers, int], None]

BATCH = 4096
#: The candidate is not what the module is for, or digits would be lost.
REFUSALS = (layout.NEGATIVE, layout.NOT_UNIT, layout.UNSTEADY)

MOST_OUTPUTS = (layout.UNCHECKED - layout.PARAMETERS) // layout.PARAMETERS_EACH


class CompiledEvaluator:
    """Several plans over one candidate, kept up to date by code generated for them.

    Floats only. Its meaning is that of `wpinq.engines.delta.Evaluator`.

    Parameters
    ----------
    plans : sequence of Node
        The plans to keep up to date.
    candidate : mapping
        For each source name, record to weight. Public: a synthetic dataset, never a protected one.
    virtual : bool
        Whether steps whose weights can be looked up go without state: the same outputs, faster. False keeps every
        step's output, for comparison.
    loop : ExtraLoops, optional
        The loop of a walk, which the module is to hold.
    dictionary : Dictionary, optional
        The numbers of strings, where records come as words.
    goals : sequence of Goal, optional
        One for each plan, to score the outputs by: `Σ_i epsilon_i · Σ_x loss(Q_i(x) − values_i(x))`, the sum over x
        over the records of values_i.

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
        candidate: Datasets | Mapping[str, Rows],
        *,
        virtual: bool = True,
        loop: ExtraLoops | None = None,
        dictionary: Dictionary | None = None,
        goals: Sequence[Goal] | None = None,
    ) -> None:
        plans = [physical_plan(plan) for plan in plans]
        if len(plans) > MOST_OUTPUTS:
            raise CannotCompile(
                f"the compiled engine takes at most {MOST_OUTPUTS} plans together; the python engine takes more"
            )
        self._plans, self._virtual, self._loop = tuple(plans), virtual, loop
        self._sources = {name: source.record for name, source in sources(plans).items()}
        self._dictionary = dictionary or Dictionary()
        self._loads = 0
        self._kept: dict[str, Rows] | None = None
        self._moved: list[FloatWeights] | None = None
        self._goals = [*(goals or (Goal(plan, 0.0, {}) for plan in plans))]
        for goal in self._goals:
            goal.check()
        self._compile(candidate)

    # --- the contract -----------------------------------------------------------------------------------------

    @property
    def outputs(self) -> list[FloatWeights]:
        """The output of each plan on the candidate as it is, a pending proposal included."""
        found = [
            self._decoded(self._arena.rows(table), plan.type)
            for (table, _), plan in zip(self._design.outputs, self._plans, strict=True)
        ]
        return [{record: weight for record, weight in output.items() if weight != 0} for output in found]

    @property
    def candidate(self) -> dict[str, FloatWeights]:
        """The candidate as it is, a pending proposal included."""
        return {name: self._decoded(rows, self._sources[name]) for name, rows in self._held().items()}

    @property
    def memory(self) -> int:
        """The bytes of the engine's array."""
        return self._arena.words.nbytes

    @property
    def loads(self) -> int:
        """How often the outputs were evaluated afresh.

        At first; by `resynchronize`; once each, when the candidate first has another weight than 1 or a negative one,
        for which other code is generated; and where the records of a key come to weigh so many times what they did
        (4 million, from 1 on) that differences would lose digits.
        """
        return self._loads

    @property
    def score(self) -> float:
        """`Σ_i price_i · loss(Q_i(candidate) − values_i)`, the pending proposal included."""
        return float(self._arena.words.view(np.float64)[layout.SCORE])

    def propose(self, changes: Datasets) -> list[FloatWeights]:
        """Change the candidate, and return the change of each plan's output.

        The proposal is pending until commit or rollback.

        Parameters
        ----------
        changes : mapping
            For each source name, record to change of weight. Proposals add up until one of the two.
        """
        check_sources(changes, self._sources)
        self._take_in(self._changes({name: self._rows(name, records) for name, records in changes.items()}))
        if self._moved is not None:
            return self._moved
        answers = []
        for (_, table), plan in zip(self._design.outputs, self._plans, strict=True):
            moved = self._decoded(self._arena.gathered(table), plan.type)
            answers.append({record: weight for record, weight in moved.items() if abs(weight) >= layout.DUST})
        return answers

    def commit(self) -> None:
        """Keep the pending proposals."""
        self._keep()
        self._kept = None

    def rollback(self) -> None:
        """Take the pending proposals back: to the last bit, but where `loads` rose meanwhile."""
        if self._kept is not None:
            self._load(self._kept)
            self._kept = None
        self._undo()

    def resynchronize(self) -> None:
        """Evaluate the candidate afresh and commit, which ends the drift of weights."""
        self._load(self._held())
        self._kept = None

    def walk(self, run: RunChunk, tallies: Integers, steps: int) -> None:
        """Run steps of a walk, tables growing meanwhile: `tallies[2]` counts them."""
        end = int(tallies[2]) + steps
        while self._walk(run, tallies, end):
            self.resynchronize()  # dust of a norm that should be 0; if that is not it, the step is made all the same
            with self._unchecked():
                self._walk(run, tallies, int(tallies[2]) + 1)

    def _walk(self, run: RunChunk, tallies: Integers, end: int) -> int:
        """Run steps until `tallies` counts so many: 0, or the refusal of a step, which is not made."""
        while tallies[2] < end:
            run(self._module, self._arena.words, end - int(tallies[2]))
            if refusal := self._refusal():
                return refusal
            self._grown()
        return 0

    # --- loading ----------------------------------------------------------------------------------------------

    def _compile(self, candidate: Datasets | Mapping[str, Rows]) -> None:
        check_sources(candidate, self._sources)
        self._steps = lower(self._plans, self._dictionary)
        rows = {name: self._rows(name, records) for name, records in candidate.items()}
        weights = np.concatenate([np.zeros(0), *(held.weights[held.weights != 0] for held in rows.values())])
        nonnegative, unit = bool(np.all(weights > 0)), bool(np.all(weights == 1))
        self._assumptions = Assumptions(nonnegative, unit, self._virtual)
        self._generate(rows)

    def _generate(self, candidate: Mapping[str, Rows]) -> None:
        try:
            self._design: Design = generate(self._steps, self._assumptions, self._loop)
        except CannotCompile:
            if not self._assumptions.virtual:
                raise
            self._virtual, self._assumptions = False, replace(self._assumptions, virtual=False)
            self._design = generate(self._steps, self._assumptions, self._loop)
        self._module: ModuleType = import_module(self._design.text)
        self._load(candidate)

    def _load(self, candidate: Mapping[str, Rows]) -> None:
        self._arena, self._pending = Arena(self._design.tables), list[SourceChanges]()
        self._loads += 1
        for position, (plan, goal) in enumerate(zip(self._plans, self._goals, strict=True)):
            price = self._arena.words[layout.PARAMETERS + layout.PARAMETERS_EACH * position :].view(np.float64)
            price[: layout.PARAMETERS_EACH] = goal.epsilon, goal.epsilon if goal.outside else 0.0, goal.width
            self._pin(position, goal, self._dictionary.rows(goal.values, plan.type))
        numbers, words, weights = self._changes(candidate)
        order = np.argsort(-np.abs(weights), kind="stable")  # heaviest first: no norm grows far
        with self._unchecked():
            for start in range(0, len(order), BATCH):
                batch = order[start : start + BATCH]
                if self._apply((numbers[batch], words[batch], weights[batch])):
                    break
                self._keep()
            else:
                return
        self._weaken(candidate)

    def _pin(self, position: int, goal: Goal, targets: Rows) -> None:
        """Give records of an output their targets."""
        for start in range(0, len(targets.weights), BATCH):
            batch = slice(start, start + BATCH)
            while True:
                self._module.pin(self._arena.words, position, targets.words[batch], targets.weights[batch])
                if not self._grown():
                    break
            self._keep()
        losses = np.sum([loss(value, goal.width) for value in targets.weights.tolist()])
        self._arena.words[layout.SCORE :].view(np.float64)[0] += goal.epsilon * losses

    def _weaken(self, candidate: Mapping[str, Rows]) -> None:
        """The candidate does not satisfy what the module was generated for: generate it for less."""
        held = self._assumptions
        self._assumptions = replace(held, nonnegative=held.unit and held.nonnegative, unit=False)
        self._generate(candidate)

    def _take_in(self, changes: SourceChanges) -> None:
        """Make changes, pending, with other code or afresh where the module refuses."""
        self._moved = None
        status = self._apply(changes)
        if status == 0:
            return
        pending = [*self._pending, changes]
        self._undo()
        if status == layout.UNSTEADY and self._evaluate_afresh(pending) == 0:
            return
        self._weaken(self._held())
        for change in pending:
            self._take_in(change)

    def _evaluate_afresh(self, pending: Sequence[SourceChanges]) -> int:
        """Take in what is pending by evaluating afresh, if no refusal is left.

        A rollback evaluates afresh too.
        """
        for changes in pending[:-1]:
            self._apply(changes)
        before = self.outputs
        with self._unchecked():
            refusal = self._apply(pending[-1])
        changed = self._held()
        self._undo()
        if refusal:
            return refusal
        self._kept = self._kept or self._held()
        self._load(changed)
        self._moved = [
            {x: w for x in {**old, **new} if abs(w := new.get(x, 0.0) - old.get(x, 0.0)) >= layout.DUST}
            for old, new in zip(before, self.outputs, strict=True)
        ]
        return 0

    def _held(self) -> dict[str, Rows]:
        """The candidate as it is, a pending proposal included, as words."""
        return {name: self._arena.rows(table) for name, (_, table, _) in self._design.sources.items()}

    # --- the array: proposals over words, tables that grow, memos that are learnt ------------------------------

    def _apply(self, changes: SourceChanges) -> int:
        """Make changes, pending; 0, or the refusal, after which only `rollback` is of use."""
        while True:
            self._module.propose(self._arena.words, *changes)
            if refusal := self._refusal():
                return refusal
            if not self._grown():
                self._pending.append(changes)
                return 0

    def _keep(self) -> None:
        """Keep what is pending."""
        self._arena.words[layout.LOG] = self._arena.words[layout.LOG_START]
        self._pending.clear()

    def _undo(self) -> None:
        """Take back what is pending."""
        self._module.rollback(self._arena.words, self._arena.words[layout.LOG_START])
        self._pending.clear()

    @contextmanager
    def _unchecked(self) -> Iterator[None]:
        self._arena.words[layout.UNCHECKED] = 1
        try:
            yield
        finally:
            self._arena.words[layout.UNCHECKED] = 0

    def _refusal(self) -> int:
        """The refusal that the module left, which is taken from it; 0 where there is none."""
        status = int(self._arena.words[layout.STATUS])
        if status not in REFUSALS:
            return 0
        self._arena.words[layout.STATUS] = 0
        return status

    def _grown(self) -> bool:
        """Whether something was full or missing: what is pending is done again then, with it."""
        words = self._arena.words
        status = int(words[layout.STATUS])
        if status == 0:
            return False
        pending = list(self._pending)
        self._undo()
        words[layout.STATUS] = 0
        if status == layout.MISSING:
            self._learn()
        if self._design.memos:
            self._module.forget(self._arena.words)
        if status != layout.MISSING:
            self._arena.grow(status)
        for changes in pending:
            self._apply(changes)
        return True

    def _learn(self) -> None:
        """Compute what memos miss."""
        dictionary = self._dictionary
        missed: dict[int, list[Sequence[int]]] = {memo.number: [] for memo, _, _ in self._design.memos}
        for memo, _, missing in self._design.memos:
            for row in self._arena.gathered(missing).words.tolist():
                missed[memo.number].append(row)
                for follower, key in elements(dictionary, memo, row):
                    missed[follower.number].append(key)
        for memo, _, _ in self._design.memos:
            learnt = memo.learn(missed[memo.number], dictionary)
            full = bool(learnt)
            while full:
                keys, values = (np.array(part, dtype=np.int64) for part in zip(*learnt, strict=True))
                self._module.learn(self._arena.words, memo.number, keys, values)
                self._keep()  # what there was room for
                full = self._grown()

    # --- words ------------------------------------------------------------------------------------------------

    def _rows(self, name: str, records: Mapping[Value, float] | Rows) -> Rows:
        return records if isinstance(records, Rows) else self._dictionary.rows(records, self._sources[name])

    def _decoded(self, rows: Rows, type_: Type) -> FloatWeights:
        return dict(zip(self._dictionary.decode_all(rows.words, type_), rows.weights.tolist(), strict=True))

    def _changes(self, parts: Mapping[str, Rows]) -> SourceChanges:
        """The rows of several sources together."""
        width = max(table.width for _, table, _ in self._design.sources.values())
        numbers, words = [np.zeros(0, dtype=np.int64)], [np.zeros((0, width), dtype=np.int64)]
        for name, rows in parts.items():
            number, table, _ = self._design.sources[name]
            numbers.append(np.full(len(rows.words), number, dtype=np.int64))
            words.append(np.zeros((len(rows.words), width), dtype=np.int64))
            words[-1][:, : table.width] = rows.words
        weights = np.concatenate([np.zeros(0), *(rows.weights for rows in parts.values())])
        return np.concatenate(numbers), np.concatenate(words), weights
