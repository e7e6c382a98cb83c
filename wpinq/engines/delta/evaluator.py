"""The evaluator: plans over one public candidate, changed by proposals that can be undone.

Its meaning is one equation: after any history of proposals, each output equals a fresh evaluation of its plan on
the candidate as it is. Over Fractions that holds exactly; over floats up to drift, which `resynchronize` ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from wpinq.engines.delta.kernels import Journal, Kernel, kernel, settle
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weight, Weights
from wpinq.plan.node import Node, topological
from wpinq.plan.operators.source import Source

Datasets = Mapping[str, Mapping[Value, Weight]]


class Evaluator:
    """Several plans over one candidate, their shared steps computed once.

    Parameters
    ----------
    plans : sequence of Node
        The plans to keep up to date.
    candidate : mapping
        For each source name, record to weight. Public: a synthetic dataset, never a protected one.
    arithmetic : Arithmetic
        `FLOAT` or `EXACT`.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> degrees = edges.group_by(lambda e: e.src, lambda group: F.count(group))
    >>> evaluator = Evaluator([degrees.plan], {"edges": {(1, 2): 1.0, (1, 3): 1.0}})
    >>> evaluator.propose({"edges": {(1, 4): 1.0}})
    [{(1, 2): -0.5, (1, 3): 0.5}]
    >>> evaluator.rollback()
    >>> evaluator.outputs
    [{(1, 2): 0.5}]
    """

    def __init__(self, plans: Sequence[Node], candidate: Datasets, arithmetic: Arithmetic = FLOAT) -> None:
        self._plans = tuple(plans)
        self._order = list(topological(plans))
        self._arithmetic = arithmetic
        self._sources = {node.operator.source for node in self._order if isinstance(node.operator, Source)}
        self._load(candidate)

    @property
    def outputs(self) -> list[Weights]:
        """The output of each plan on the candidate as it is, a pending proposal included."""
        return [dict(output) for output in self._outputs]

    @property
    def candidate(self) -> dict[str, Weights]:
        """The candidate as it is, a pending proposal included."""
        return {name: dict(weights) for name, weights in self._candidate.items()}

    @property
    def state_size(self) -> int:
        """How many records of state the operators hold."""
        return sum(held.size() for held in self._kernels.values())

    def propose(self, changes: Datasets) -> list[Weights]:
        """Change the candidate; the change of each plan's output. The proposal is pending until commit or rollback.

        Parameters
        ----------
        changes : mapping
            For each source name, record to change of weight. Proposals add up until one of the two.
        """
        check_sources(changes, self._sources)
        moved: dict[bytes, Weights] = {}
        for node in self._order:
            operator = node.operator
            if isinstance(operator, Source):
                moved[node.digest] = self._change_source(operator.source, changes.get(operator.source, {}))
            else:
                inputs = tuple(moved[child.digest] for child in node.inputs)
                moved[node.digest] = self._kernels[node.digest].push(inputs) if any(inputs) else {}
        answers = [moved[plan.digest] for plan in self._plans]
        for output, change in zip(self._outputs, answers, strict=True):
            for record, weight in change.items():
                self._journal.put(output, record, settle(output.get(record, 0) + weight))
        return answers

    def commit(self) -> None:
        """Keep the pending proposals."""
        self._journal.commit()

    def rollback(self) -> None:
        """Take the pending proposals back, exactly."""
        self._journal.rollback()

    def resynchronize(self) -> None:
        """Evaluate afresh on the candidate as it is, which ends the drift of float weights. Commits."""
        self._load(self.candidate)

    def _load(self, candidate: Datasets) -> None:
        self._journal = Journal()
        self._kernels: dict[bytes, Kernel] = {
            node.digest: kernel(node.operator, self._arithmetic, self._journal)
            for node in self._order
            if not isinstance(node.operator, Source)
        }
        self._candidate: dict[str, Weights] = {name: {} for name in self._sources}
        self._outputs: list[Weights] = [{} for _ in self._plans]
        number = self._arithmetic.number
        self.propose({name: {x: number(w) for x, w in weights.items()} for name, weights in candidate.items()})
        self.commit()

    def _change_source(self, name: str, changes: Mapping[Value, Weight]) -> Weights:
        held = self._candidate[name]
        moved = {record: self._arithmetic.number(weight) for record, weight in changes.items() if weight != 0}
        for record, weight in moved.items():
            self._journal.put(held, record, settle(held.get(record, 0) + weight))
        return moved


def check_sources(changes: Iterable[str], known: Collection[str]) -> None:
    """Refuse changes of a source that no plan uses."""
    for name in changes:
        if name not in known:
            raise PlanError(f"no plan uses a source {name!r}; they use {', '.join(sorted(known))}")
