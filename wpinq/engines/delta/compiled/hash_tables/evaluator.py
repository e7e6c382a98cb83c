"""The compiled evaluator: the contract of the Python one, on a module generated from plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np

from wpinq.engines.delta.compiled import hash_table as layout
from wpinq.engines.delta.compiled.formulas import Assumptions
from wpinq.engines.delta.compiled.hash_tables import driver
from wpinq.engines.delta.compiled.modules import import_module
from wpinq.engines.delta.compiled.routine import CannotCompile
from wpinq.engines.delta.compiled.steps import lower
from wpinq.engines.delta.compiled.values import Dictionary, Rows
from wpinq.engines.delta.evaluator import Datasets, Goal, check_sources
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node, sources
from wpinq.runtime.arrays import Integers

FloatWeights = dict[Value, float]

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
        loop: driver.ExtraLoops | None = None,
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
            self._decoded(self._driver.arena.rows(table), plan.type)
            for table, plan in zip(self._generated.outputs, self._plans, strict=True)
        ]
        return [{record: weight for record, weight in output.items() if weight != 0} for output in found]

    @property
    def candidate(self) -> dict[str, FloatWeights]:
        """The candidate as it is, a pending proposal included."""
        return {name: self._decoded(rows, self._sources[name]) for name, rows in self._held().items()}

    @property
    def memory(self) -> int:
        """The bytes of the engine's array."""
        return self._driver.arena.words.nbytes

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
        return self._driver.score

    def propose(self, changes: Datasets) -> list[FloatWeights]:
        """Change the candidate, and return the change of each plan's output.

        The proposal is pending until commit or rollback.

        Parameters
        ----------
        changes : mapping
            For each source name, record to change of weight. Proposals add up until one of the two.
        """
        check_sources(changes, self._sources)
        self._apply(self._driver.changes({name: self._rows(name, records) for name, records in changes.items()}))
        if self._moved is not None:
            return self._moved
        answers = []
        for table, plan in zip(self._generated.changes, self._plans, strict=True):
            moved = self._decoded(self._driver.arena.gathered(table), plan.type)
            answers.append({record: weight for record, weight in moved.items() if abs(weight) >= layout.DUST})
        return answers

    def commit(self) -> None:
        """Keep the pending proposals."""
        self._driver.commit()
        self._kept = None

    def rollback(self) -> None:
        """Take the pending proposals back: to the last bit, but where `loads` rose meanwhile."""
        if self._kept is not None:
            self._load(self._kept)
            self._kept = None
        self._driver.rollback()

    def resynchronize(self) -> None:
        """Evaluate the candidate afresh and commit, which ends the drift of weights."""
        self._load(self._held())
        self._kept = None

    def walk(self, run: driver.RunChunk, tallies: Integers, steps: int) -> None:
        """Run steps of a walk, tables growing meanwhile: `tallies[2]` counts them."""
        end = int(tallies[2]) + steps
        while self._driver.walk(run, tallies, end):
            self.resynchronize()  # dust of a norm that should be 0; if that is not it, the step is made all the same
            self._driver.step_unchecked(run, tallies)

    # --- loading ----------------------------------------------------------------------------------------------

    def _compile(self, candidate: Datasets | Mapping[str, Rows]) -> None:
        check_sources(candidate, self._sources)
        self._steps = lower(self._plans, self._dictionary)
        rows = {name: self._rows(name, records) for name, records in candidate.items()}
        weights = np.concatenate([np.zeros(0), *(held.weights[held.weights != 0] for held in rows.values())])
        self._assumptions = Assumptions(
            nonnegative=bool(np.all(weights > 0)), unit=bool(np.all(weights == 1)), virtual=self._virtual
        )
        self._generate(rows)

    def _generate(self, candidate: Mapping[str, Rows]) -> None:
        try:
            self._generated: driver.Generated = driver.generate(self._steps, self._assumptions, self._loop)
        except CannotCompile:
            if not self._assumptions.virtual:
                raise
            self._virtual, self._assumptions = False, replace(self._assumptions, virtual=False)
            self._generated = driver.generate(self._steps, self._assumptions, self._loop)
        self._module: ModuleType = import_module(self._generated.text)
        self._load(candidate)

    def _load(self, candidate: Mapping[str, Rows]) -> None:
        self._driver = driver.Driver(self._generated, self._module, self._dictionary, self._goals)
        self._loads += 1
        for position, (plan, goal) in enumerate(zip(self._plans, self._goals, strict=True)):
            self._driver.pin(position, self._dictionary.rows(goal.values, plan.type))
        if self._driver.load(self._driver.changes(candidate)):
            self._weaken(candidate)

    def _weaken(self, candidate: Mapping[str, Rows]) -> None:
        """The candidate does not satisfy what the module was generated for: generate it for less."""
        held = self._assumptions
        self._assumptions = replace(held, nonnegative=held.unit and held.nonnegative, unit=False)
        self._generate(candidate)

    def _apply(self, changes: driver.SourceChanges) -> None:
        self._moved = None
        status = self._driver.apply(changes)
        if status == 0:
            return
        pending = [*self._driver.pending, changes]
        self._driver.rollback()
        if status == layout.UNSTEADY:
            self._evaluate_afresh(pending)
            return
        self._weaken(self._held())
        for change in pending:
            self._apply(change)

    def _evaluate_afresh(self, pending: Sequence[driver.SourceChanges]) -> None:
        """Take in what is pending by evaluating afresh; a rollback evaluates afresh too."""
        for changes in pending[:-1]:
            self._driver.apply(changes)
        before = self.outputs
        self._driver.rollback()
        held = self._held()
        self._kept = self._kept or held
        self._load(self._changed(held, pending))
        self._moved = [
            {x: w for x in {**old, **new} if abs(w := new.get(x, 0.0) - old.get(x, 0.0)) >= layout.DUST}
            for old, new in zip(before, self.outputs, strict=True)
        ]

    def _held(self) -> dict[str, Rows]:
        """The candidate as it is, a pending proposal included, as words."""
        return {name: self._driver.arena.rows(table) for name, (_, table, _) in self._generated.sources.items()}

    def _changed(self, held: Mapping[str, Rows], pending: Sequence[driver.SourceChanges]) -> dict[str, Rows]:
        """The candidate with changes, as words."""
        found = {}
        for name, (number, table, _) in self._generated.sources.items():
            weights = dict(zip(map(tuple, held[name].words.tolist()), held[name].weights.tolist(), strict=True))
            for which, words, moved in pending:
                mine = which == number
                for row, weight in zip(words[mine][:, : table.width].tolist(), moved[mine].tolist(), strict=True):
                    weights[tuple(row)] = weights.get(tuple(row), 0.0) + weight
            kept = {row: weight for row, weight in weights.items() if abs(weight) >= layout.DUST}
            words = np.array(list(kept), dtype=np.int64).reshape(len(kept), table.width)
            found[name] = Rows(words, np.array([*kept.values()], dtype=np.float64))
        return found

    # --- words ------------------------------------------------------------------------------------------------

    def _rows(self, name: str, records: Mapping[Value, float] | Rows) -> Rows:
        return records if isinstance(records, Rows) else self._dictionary.rows(records, self._sources[name])

    def _decoded(self, rows: Rows, type_: Type) -> FloatWeights:
        return dict(zip(self._dictionary.decode_all(rows.words, type_), rows.weights.tolist(), strict=True))
