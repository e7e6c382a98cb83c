"""Virtual steps: a step's weight at a record, as a formula over the weights of a few tables.

Where, a permuting Select, a Join that keeps both records and an Intersect of non-negative inputs need no state: the
weight of a record follows by lookups. Such a step expands to a formula over variables, one for each word of its
records; its leaves are tables (the source, a GroupBy's output) and the norms of joins. A change of one table entry
binds some variables; only the others are enumerated, through the tables that must hold a record for the formula not
to be 0. Everything is derived from the plan; a plan evaluated with every step materialised is the case in which
every formula has leaves right below its root.

Two facts about the candidate help, and are checked as it changes: no weight is negative, and every weight is 1.
The second makes a GroupBy give one record a key, so that the record of a key is a function of it. A join whose key
then fixes both records needs no table of norms: `a·b/(|a| + |b|)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from wpinq.engines.delta.compiled import steps as st
from wpinq.engines.delta.compiled.values import Writer


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the candidate is taken to satisfy; `virtual` is whether steps may go without state."""

    nonnegative: bool
    unit: bool
    virtual: bool


@dataclass(frozen=True, slots=True)
class Atom:
    """The weight of a record in a table."""

    step: st.Step
    variables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Norm:
    """The norm of a key of a join."""

    step: st.JoinStep
    variables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Paired:
    """A join: `left · right / norm`; without a norm, `left · right / (|left| + |right|)`."""

    left: Formula
    right: Formula
    norm: Norm | None


@dataclass(frozen=True, slots=True)
class Guard:
    """A filter."""

    child: Formula
    step: st.MapStep
    variables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MinMax:
    """The smaller or larger of two weights.

    `both` is whether the smaller is 0 where either is.
    """

    left: Formula
    right: Formula
    smaller: bool
    both: bool


Formula = Atom | Paired | Guard | MinMax
Lookup = Atom | Norm
#: Writes the words of a record, from the name of each variable.
NamedWords = Callable[[Writer, dict[int, str]], list[str]]


@dataclass(frozen=True, slots=True)
class Expansion:
    """A step's formula and the variable of each word of its records."""

    formula: Formula
    variables: tuple[int, ...]


class Expander:
    """Expands the steps of one plan under assumptions.

    `inlined` is whether a step that drops columns expands too: see `LocalExpander`.
    """

    inlined = False

    def __init__(self, steps: st.Steps, assumptions: Assumptions) -> None:
        self.assumptions, self._nodes = assumptions, steps.nodes
        self._fresh = count()
        self.nonnegative: dict[st.Step, bool] = {}
        self.constant: dict[st.Step, bool] = {}
        for step in steps.all:
            self.nonnegative[step] = self._is_nonnegative(step)
            self.constant[step] = self._is_constant(step)

    def _is_nonnegative(self, step: st.Step) -> bool:
        """Whether a step has no negative weight, by its operator's rule and the candidate's sign.

        The declarations of sources play no part. Fixed shares without negative weights are seen from the step, which
        has computed them.
        """
        if isinstance(step, st.SourceStep):
            return self.assumptions.nonnegative
        inputs = [self.nonnegative[below] for below in step.inputs]
        if isinstance(step, st.MapStep):
            return inputs[0] and step.scratch is None
        return self._nodes[step].operator.nonnegative(*inputs)

    def _is_constant(self, step: st.Step) -> bool:
        """Whether all records of the step weigh the same."""
        if isinstance(step, st.SourceStep):
            return self.assumptions.unit
        if isinstance(step, st.MapStep):
            return self.constant[step.inputs[0]] and (step.condition is not None or _keeps_all(step))
        return False

    def root(self, step: st.JoinStep | st.ExtremeStep) -> tuple[Formula, NamedWords]:
        """The formula of a Join or extreme whose output is passed on, with the writer of its words."""
        left, right = (self._child(below) for below in step.inputs)
        if isinstance(step, st.ExtremeStep):
            formula, variables = self._extreme(step, left, right)
            return formula, lambda writer, names: [names[v] for v in variables]
        formula, joined = self._product(step, left, right)

        def words(writer: Writer, names: dict[int, str]) -> list[str]:
            given = [names[v] for v in joined]
            writer.known = {}
            return step.write(writer, given[: len(left.variables)], given[len(left.variables) :])

        return formula, words

    def side(self, join: st.JoinStep, side: int) -> tuple[Formula, tuple[int, ...]]:
        """The formula of one input of a join, and the variables of its key."""
        expansion = self._child(join.inputs[side])
        return expansion.formula, tuple(expansion.variables[i] for i in join.keys[side])

    def expand(self, step: st.Step) -> Expansion | None:
        """The formula of a step that can go without state, or None."""
        if not self.assumptions.virtual:
            return None
        if isinstance(step, st.MapStep) and step.condition is not None:
            below = self._child(step.inputs[0])
            return Expansion(Guard(below.formula, step, below.variables), below.variables)
        if isinstance(step, st.MapStep) and step.permutation is not None and (self.inlined or _keeps_all(step)):
            below = self._child(step.inputs[0])
            return Expansion(below.formula, tuple(below.variables[i] for i in step.permutation))
        if isinstance(step, st.JoinStep) and step.permutation is not None:
            formula, joined = self._product(step, *(self._child(below) for below in step.inputs))
            variables = tuple(joined[i] for i in step.permutation)
            kept = len(set(variables)) == len(variables) and set(variables) >= variables_of(formula)
            return Expansion(formula, variables) if self.inlined or kept else None
        if isinstance(step, st.ExtremeStep) and step.smaller and all(self.nonnegative[below] for below in step.inputs):
            formula, variables = self._extreme(step, *(self._child(below) for below in step.inputs))
            return Expansion(formula, variables)
        return None

    def _child(self, step: st.Step) -> Expansion:
        return self.expand(step) or self._leaf(step)

    def _leaf(self, step: st.Step) -> Expansion:
        variables = tuple(next(self._fresh) for _ in range(step.width))
        return Expansion(Atom(step, variables), variables)

    def _product(self, step: st.JoinStep, left: Expansion, right: Expansion) -> tuple[Formula, tuple[int, ...]]:
        same = _alike((left.variables[i], right.variables[j]) for i, j in zip(*step.keys, strict=True))
        first, second = rename(left.formula, same), rename(right.formula, same)
        key = tuple(_follow(same, left.variables[i]) for i in step.keys[0])
        fixed = self._fixed(key, (first, second))
        alone = self.assumptions.virtual and variables_of(first) | variables_of(second) <= fixed
        formula = Paired(first, second, None if alone else Norm(step, key))
        return formula, tuple(_follow(same, v) for v in (*left.variables, *right.variables))

    def _fixed(self, key: tuple[int, ...], formulas: tuple[Formula, ...]) -> set[int]:
        """The variables that the key fixes: its own, and those of a GroupBy's one record for it."""
        fixed, before = set(key), -1
        while len(fixed) != before:
            before = len(fixed)
            for formula in formulas:
                for atom in atoms_of(formula):
                    step = atom.step
                    if isinstance(step, st.GroupStep) and self.constant[step.inputs[0]]:  # one record for each key
                        cut = len(step.key)
                        if fixed >= set(atom.variables[:cut]):
                            fixed |= set(atom.variables)
        return fixed

    def _extreme(self, step: st.ExtremeStep, left: Expansion, right: Expansion) -> tuple[Formula, tuple[int, ...]]:
        same = _alike(zip(left.variables, right.variables, strict=True))
        both = step.smaller and all(self.nonnegative[below] for below in step.inputs)
        formula = MinMax(rename(left.formula, same), rename(right.formula, same), step.smaller, both)
        return formula, tuple(_follow(same, v) for v in left.variables)


def _keeps_all(step: st.MapStep) -> bool:
    permutation = step.permutation
    return permutation is not None and sorted(permutation) == list(range(step.inputs[0].width))


def _alike(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Each variable of pairs that are one by another, until none is left to follow."""
    same: dict[int, int] = {}
    for one, other in pairs:
        a, b = _follow(same, one), _follow(same, other)
        if a != b:
            same[b] = a
    return same


def _follow(same: dict[int, int], variable: int) -> int:
    while variable in same:
        variable = same[variable]
    return variable


def rename(formula: Formula, same: dict[int, int]) -> Formula:
    """The formula with variables taken as one."""

    def named(variables: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(_follow(same, v) for v in variables)

    if isinstance(formula, Atom):
        return replace(formula, variables=named(formula.variables))
    if isinstance(formula, Guard):
        return replace(formula, child=rename(formula.child, same), variables=named(formula.variables))
    left, right = rename(formula.left, same), rename(formula.right, same)
    if isinstance(formula, MinMax):
        return replace(formula, left=left, right=right)
    norm = None if formula.norm is None else replace(formula.norm, variables=named(formula.norm.variables))
    return Paired(left, right, norm)


def lookups_of(formula: Formula) -> Iterator[Lookup]:
    """What the formula looks up, as it comes; some come twice."""
    if isinstance(formula, Atom):
        yield formula
    elif isinstance(formula, Guard):
        yield from lookups_of(formula.child)
    else:
        yield from lookups_of(formula.left)
        yield from lookups_of(formula.right)
        if isinstance(formula, Paired) and formula.norm is not None:
            yield formula.norm


def atoms_of(formula: Formula) -> Iterator[Atom]:
    """The records that the formula looks up."""
    return (entry for entry in lookups_of(formula) if isinstance(entry, Atom))


def variables_of(formula: Formula) -> set[int]:
    """The variables of the formula."""
    return {v for entry in lookups_of(formula) for v in entry.variables}


def required(formula: Formula) -> list[Atom]:
    """Atoms that are all non-zero wherever the formula is."""
    if isinstance(formula, Atom):
        return [formula]
    if isinstance(formula, Guard):
        return required(formula.child)
    if isinstance(formula, Paired) or formula.both:
        return required(formula.left) + required(formula.right)
    return []


def required_with(formula: Formula, entry: Lookup) -> list[Atom]:
    """The atoms that are non-zero wherever a change of this entry changes the formula.

    The entry's own atom is left out.
    """
    return list(dict.fromkeys(atom for atom in _required_with(formula, entry) or [] if atom != entry))


def _required_with(formula: Formula, entry: Lookup) -> list[Atom] | None:
    if isinstance(formula, Atom):
        return [] if formula == entry else None
    if isinstance(formula, Guard):
        return _required_with(formula.child, entry)
    ways = [way for side in (formula.left, formula.right) if (way := _required_with(side, entry)) is not None]
    if isinstance(formula, Paired) and formula.norm == entry:
        ways.append([])
    if not ways:
        return None
    # what changes is not 0, before or after, and so has all that a non-zero value needs
    return [*required(formula), *(atom for atom in ways[0] if all(atom in way for way in ways[1:]))]
