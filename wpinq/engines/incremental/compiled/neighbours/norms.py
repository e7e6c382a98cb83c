"""Norms of joins by vertex that swaps leave as they are: what each side adds, from the degree of the vertex."""

from __future__ import annotations

from wpinq.engines.incremental.compiled.neighbours.decomposition import Decomposition, OutOfReach, norms_of
from wpinq.engines.incremental.compiled.neighbours.formula_code import FormulaWriter, NormPart, Registry, depends_on
from wpinq.engines.incremental.compiled.routines.names import name, names_in
from wpinq.engines.incremental.compiled.steps.formulas import Formula
from wpinq.engines.incremental.compiled.steps.steps import JoinStep


def note_norms(plan: Decomposition, registry: Registry, formula: Formula) -> None:
    """Note the norms by vertex that a formula looks up; OutOfReach where one is not invariant."""
    for norm in norms_of(formula):
        if len(norm.variables) == 1 and norm.step not in registry.norms:
            _note(plan, registry, norm.step)


def _note(plan: Decomposition, registry: Registry, join: JoinStep) -> None:
    parts: list[tuple[str, list[str]]] = []
    for side in (0, 1):
        formula, key = plan.expander.side(join, side)
        if not plan.expander.nonnegative[join.inputs[side]]:
            raise OutOfReach("a norm of weights that may be negative")
        parts += _parts(plan, registry, formula, key[0])
    registry.norms.append(join)
    registry.parts += [NormPart(len(registry.norms) - 1, kind, tuple(lines)) for kind, lines in parts]


def _parts(plan: Decomposition, registry: Registry, formula: Formula, key: int) -> list[tuple[str, list[str]]]:
    pairs, vertices = plan.pattern(formula)
    if not pairs:
        return [("own", _part(plan, registry, formula, {key: "v"}))]
    others = [vertex for vertex in vertices if vertex != key]
    if pairs != {frozenset((key, other)) for other in others} or len(others) > 2:
        raise OutOfReach("a norm over records of another shape")
    distinct = _part(plan, registry, formula, {key: "v", **dict(zip(others, "xy", strict=False))})
    if not depends_on(distinct, "xy"):
        if len(others) == 1:
            return [("each", distinct)]
        together = _part(plan, registry, formula, {key: "v", others[0]: "x", others[1]: "x"})
        if not depends_on(together, "xy"):
            return [("pairs", distinct), ("each", together)]
    if len(others) == 1:
        turned = _part(plan, registry, formula, {key: "x", others[0]: "v"})
        if not depends_on(turned, "x"):
            return [("spread", turned)]
    raise OutOfReach("a norm that depends on who the neighbours are")


def _part(plan: Decomposition, registry: Registry, formula: Formula, vertices: dict[int, str]) -> list[str]:
    note_norms(plan, registry, formula)
    writer = FormulaWriter(plan, registry, vertices)
    writer.open(formula)
    value = writer.value(formula)
    if value != "0.0":
        writer.line(f"total += abs({value})")
    return renumbered(writer.close(), writer.made)


def renumbered(lines: list[str], made: set[str]) -> list[str]:
    """The lines with their own names numbered in order, so that like lines are alike."""
    own = [each for each in names_in(*lines) if each in made]
    return [line.translate({ord(each): name(f"v{n}") for n, each in enumerate(own)}) for line in lines]
