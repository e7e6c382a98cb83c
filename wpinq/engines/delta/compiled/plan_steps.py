"""Plans as steps over columns.

Keys become columns: where a key is computed, a step before adds it to the record. So Join and GroupBy know only
column numbers, and what a step does to columns without computing (Where, a permuting Select) shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.engines.incremental.compiled.steps.groups import Group
from wpinq.engines.incremental.compiled.steps.list_steps import select_many, shave
from wpinq.engines.incremental.compiled.steps.steps import (
    ExtremeStep,
    GroupStep,
    Image,
    JoinStep,
    MapStep,
    SourceStep,
    Step,
    Steps,
    SumStep,
)
from wpinq.engines.incremental.compiled.words import code
from wpinq.engines.incremental.compiled.words.code import ValueCode, Writer
from wpinq.engines.incremental.compiled.words.encoding import Dictionary, width
from wpinq.engines.incremental.compiled.words.expressions import emit, same, shaped, truth
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import TupleOf, Type, unify
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import (
    Concat,
    Except,
    GroupBy,
    Intersect,
    Join,
    Partition,
    Select,
    SelectMany,
    Shave,
    Source,
    Union,
    Where,
)


def lower(plans: Sequence[Node], dictionary: Dictionary) -> Steps:
    """The steps of plans; CannotCompile names the step that has no integer form."""
    steps = Steps(dictionary)
    done: dict[bytes, Step] = {}
    for node in topological(plans):
        name = f"step {len(done) + 1}, {node.operator.name}"
        try:
            done[node.digest] = _lower(steps, name, node, [done[child.digest] for child in node.inputs])
        except CannotCompile as reason:
            raise CannotCompile(f"{name}: {reason}; the python engine runs it") from None
        steps.nodes.setdefault(done[node.digest], node)
    steps.roots = [done[plan.digest] for plan in plans]
    return steps


def _lower(steps: Steps, name: str, node: Node, inputs: list[Step]) -> Step:
    operator, size = node.operator, width(node.type)
    types = [child.type for child in node.inputs]
    if isinstance(operator, Source):
        return steps.add(SourceStep, name, size, (), source=operator.source)
    if isinstance(operator, (Where, Partition)):
        return _filter(steps, name, operator, types[0], inputs[0])
    if isinstance(operator, Select):
        return _select(steps, name, operator.function, types[0], inputs[0])
    if isinstance(operator, SelectMany):
        return select_many(steps, name, operator, node.type, types[0], inputs[0])
    if isinstance(operator, (Concat, Except, Union, Intersect)):
        fitted = tuple(_fitted(steps, name, step, a, node.type) for step, a in zip(inputs, types, strict=True))
        if isinstance(operator, (Concat, Except)):
            return steps.add(SumStep, name, size, fitted, coefficients=operator.coefficients)
        return steps.add(ExtremeStep, name, size, fitted, smaller=isinstance(operator, Intersect))
    if isinstance(operator, Join):
        return _join(steps, name, operator, node.type, types, inputs)
    if isinstance(operator, GroupBy):
        return _group(steps, name, operator, types[0], inputs[0])
    if isinstance(operator, Shave):
        return shave(steps, name, operator, types[0], inputs[0])
    raise CannotCompile("it has no compiled rule")


def _call(writer: Writer, function: Lambda, *records: ValueCode) -> ValueCode:
    core = function.core
    for parameter, record in zip(core.parameters, records, strict=True):
        writer.known[parameter.digest] = record
    return shaped(emit(writer, core.body), function.type)


def _probe(steps: Steps, size: int, compute: Callable[[Writer, list[str]], list[str]]) -> tuple[int, ...] | None:
    """Which input word each output word is, where nothing is computed. It also finds out what cannot be compiled."""
    words = [f"c{i}" for i in range(size)]
    places = {word: i for i, word in enumerate(words)}
    out = compute(Writer(steps.dictionary), words)
    return tuple(places[word] for word in out) if all(word in places for word in out) else None


def _map(steps: Steps, name: str, below: Step, compute: Callable[[Writer, Sequence[str]], list[str]]) -> Step:
    permutation = _probe(steps, below.width, compute)
    size = len(compute(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)]))
    if permutation == tuple(range(below.width)):
        return below
    return steps.add(MapStep, name, size, (below,), permutation=permutation, images=(Image(compute, 1.0),))


def _select(steps: Steps, name: str, function: Lambda, type_: Type, below: Step) -> Step:
    return _map(
        steps,
        name,
        below,
        lambda writer, words: code.to_words(_call(writer, function, code.from_words(type_, words)), function.type),
    )


def _fitted(steps: Steps, name: str, below: Step, type_: Type, wanted: Type) -> Step:
    """The step's records laid out as a type that differs at most in what may be null."""
    return _map(
        steps, name, below, lambda writer, words: code.to_words(shaped(code.from_words(type_, words), wanted), wanted)
    )


def _filter(steps: Steps, name: str, operator: Where | Partition, type_: Type, below: Step) -> Step:
    def condition(writer: Writer, words: Sequence[str]) -> str:
        record = code.from_words(type_, words)
        if isinstance(operator, Where):
            return truth(_call(writer, operator.predicate, record))
        part = code.constant(writer, operator.part.value, operator.part.type)
        return same(writer, _call(writer, operator.key, record), part)

    condition(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)])
    return steps.add(MapStep, name, below.width, (below,), condition=condition)


def _join(steps: Steps, name: str, operator: Join, wanted: Type, types: list[Type], inputs: list[Step]) -> Step:
    common = unify(_unnamed(operator.left_key.type), _unnamed(operator.right_key.type))
    assert common is not None
    keyed = [
        _with_key(steps, name, step, key, type_, common)
        for step, key, type_ in zip(inputs, (operator.left_key, operator.right_key), types, strict=True)
    ]
    (left, left_key), (right, right_key) = keyed
    sizes = inputs[0].width, inputs[1].width

    def write(writer: Writer, left_words: Sequence[str], right_words: Sequence[str]) -> list[str]:
        x = code.from_words(types[0], left_words[: sizes[0]])
        y = code.from_words(types[1], right_words[: sizes[1]])
        return code.to_words(_call(writer, operator.result, x, y), wanted)

    permutation = _probe(
        steps, left.width + right.width, lambda writer, words: write(writer, words[: left.width], words[left.width :])
    )
    return steps.add(
        JoinStep, name, width(wanted), (left, right), keys=(left_key, right_key), write=write, permutation=permutation
    )


def _unnamed(type_: Type) -> Type:
    if not isinstance(type_, TupleOf):
        return type_
    elements = tuple(_unnamed(element) for element in type_.elements)
    return TupleOf((None,) * len(elements), elements, nullable=type_.nullable)


def _with_key(
    steps: Steps, name: str, below: Step, key: Lambda, type_: Type, wanted: Type
) -> tuple[Step, tuple[int, ...]]:
    """The step and the numbers of its key's columns; where a key is computed, a step that adds them."""

    def compute(writer: Writer, words: Sequence[str]) -> list[str]:
        return code.to_words(shaped(_call(writer, key, code.from_words(type_, words)), wanted), wanted)

    permutation = _probe(steps, below.width, compute)
    if permutation is not None and len(set(permutation)) == len(permutation):
        return below, permutation
    extended = _map(steps, name, below, lambda writer, words: [*words, *compute(writer, words)])
    return extended, tuple(range(below.width, extended.width))


def _group(steps: Steps, name: str, operator: GroupBy, type_: Type, below: Step) -> Step:
    keyed, key = _with_key(steps, name, below, operator.key, type_, operator.key.type)
    group = partial(Group, operator.reduce, type_)
    trial = group(Writer(steps.dictionary), [f"k{i}" for i in range(len(key))])
    trial.add([f"c{i}" for i in range(keyed.width)])
    return steps.add(GroupStep, name, len(trial.result()), (keyed,), key=key, group=group)
