"""Plans as steps over columns.

Keys become columns: where a key is computed, a step before adds it to the record. So Join and GroupBy know only
column numbers, and what a step does to columns without computing (Where, a permuting Select) shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from wpinq.engines.delta.compiled import lists, values
from wpinq.engines.delta.compiled import steps as st
from wpinq.engines.delta.compiled.expressions import emit, same, shaped, truth
from wpinq.engines.delta.compiled.hash_table import clear, gathered_norm, gathering
from wpinq.engines.delta.compiled.routine import CannotCompile, call
from wpinq.engines.delta.compiled.values import Dictionary, ValueCode, Writer, width
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import TupleOf, Type, unify
from wpinq.plan import operators as ops
from wpinq.plan.node import Node, topological

# --- lists: SelectMany and Shave --------------------------------------------------------------------------------------


def select_many(
    steps: st.Steps, name: str, operator: ops.SelectMany, wanted: Type, type_: Type, below: st.Step
) -> st.Step:
    """The step of a SelectMany: of images where its list is written out, else of a loop."""
    trial, words = Writer(steps.dictionary), [f"c{i}" for i in range(below.width)]
    images = _images(operator, wanted, type_)
    if images:
        for image in images:
            image.words(trial, words)
        return steps.add(st.MapStep, name, width(wanted), (below,), images=images)
    scratch = f"SCRATCH_{len(steps.all)}" if lists.is_weighted(operator.function) else None
    loop = _Loop(operator, wanted, type_)
    write = loop.write_counted if scratch is None else partial(loop.write_merged, scratch)
    write(trial, words, "w", lambda out, weight: None)
    return steps.add(st.MapStep, name, width(wanted), (below,), loop=write, scratch=scratch)


def _images(operator: ops.SelectMany, wanted: Type, type_: Type) -> tuple[st.Image, ...]:
    """The outputs of a record, where their number and weights are the same for all, and no weight is negative."""
    items = lists.written(operator.function.core.body, operator.bound)
    if items is None:
        return ()
    if lists.is_weighted(operator.function):
        weighed = [lists.weighed(item) for item in items]
        known = [(item, weight) for item, weight in zip(items, weighed, strict=True) if weight is not None]
        if len(known) < len(items) or any(weight < 0 for _, weight in known):
            return ()
    else:
        known = [(item, Fraction(1)) for item in items]
    (parameter,) = operator.function.core.parameters
    # no weight is negative, so that repeats add up to what their weights do
    norm = max(Fraction(1), sum(weight for _, weight in known))

    def image(item: lists.Item, writer: Writer, words: Sequence[str]) -> list[str]:
        if parameter.digest not in writer.known:
            writer.known[parameter.digest] = values.from_words(type_, words)
        return values.to_words(shaped(lists.item_value(writer, item), wanted), wanted)

    return tuple(st.Image(partial(image, item), float(weight / norm)) for item, weight in known if weight > 0)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A SelectMany as loops over the elements of its list: from records of one type, records that fit another."""

    operator: ops.SelectMany
    wanted: Type
    type: Type

    def write_counted(self, writer: Writer, words: Sequence[str], weight: str, sink: st.EmitRecord) -> None:
        # two walks: the norm must be known before the first element is passed on
        total = writer.bind("0.0", "t")
        self._elements(writer, words, lambda out, w: writer.line(f"{total} += 1.0"))
        share = writer.bind(f"{weight} / max(1.0, {total})")
        self._elements(writer, words, lambda out, w: sink(out, share))

    def write_merged(
        self, scratch: str, writer: Writer, words: Sequence[str], weight: str, sink: st.EmitRecord
    ) -> None:
        # scaled by the largest weight, so that no sum overflows; repeats meet in a scratch table
        top, size = writer.bind("1.0", "t"), width(self.wanted)

        def gather(out: list[str], w: str) -> None:
            writer.line(call(gathering(size), scratch, *out, f"{w} / {top}"))

        self._elements(writer, words, lambda out, w: writer.line(f"{top} = max({top}, abs({w}))"))
        self._elements(writer, words, gather)
        norm = writer.bind(f"max(1.0 / {top}, {call(gathered_norm, scratch, str(size))})")
        row = writer.name("r")
        with writer.block(f"for {row} in range(1, 1 + load(state, {scratch} + COUNT)):"):
            base = writer.bind(f"load(state, {scratch} + ROWS) + {row} * load(state, {scratch} + STRIDE)")
            out = [writer.bind(f"load(state, {base} + {i})") for i in range(size)]
            sink(out, f"{weight} * (as_float(load(state, {base} + {size})) / {norm})")
        writer.line(call(clear, scratch))

    def _elements(self, writer: Writer, words: Sequence[str], body: Callable[[list[str], str], None]) -> None:
        """Write the loop over the elements that a record may have: their words and weights."""
        function, bound = self.operator.function.core, self.operator.bound
        writer.known[function.parameters[0].digest] = values.from_words(self.type, words)
        taken, writer.most = writer.bind("0", "n"), bound

        def element(item: lists.ListElement) -> None:
            with writer.block(f"if {taken} < {bound}:"):
                writer.line(f"{taken} += 1")
                if lists.is_weighted(self.operator.function):
                    record, weight = lists.weighted_parts(writer, item)
                    with writer.block(f"if {weight.present or 'True'}:"):
                        body(values.to_words(record, self.wanted), weight.text)
                else:
                    body(values.to_words(shaped(lists.value_of(writer, item), self.wanted), self.wanted), "1.0")

        known = dict(writer.known)
        lists.loop(writer, function.body, element)
        writer.known = known


def shave(steps: st.Steps, name: str, operator: ops.Shave, type_: Type, below: st.Step) -> st.Step:
    """The step of a Shave."""
    widths = operator.widths
    if not isinstance(widths, Lambda):
        return steps.add(
            st.ShaveStep, name, below.width + 1, (below,), constant=widths, limit=operator.bound, loop=None
        )
    function, bound = widths.core, operator.bound

    def walk_widths(writer: Writer, words: Sequence[str], body: Callable[[str, str], None]) -> None:
        writer.known[function.parameters[0].digest] = values.from_words(type_, words)
        index, writer.most = writer.bind("-1", "n"), bound

        def element(item: lists.ListElement) -> None:
            with writer.block(f"if {index} + 1 < {bound}:"):
                writer.line(f"{index} += 1")
                value = lists.value_of(writer, item)
                if not isinstance(value, values.ScalarCode):
                    raise CannotCompile("a width that is a record")
                with writer.block(f"if {value.present or 'True'} and {value.text} > 0:"):
                    body(index, f"float({value.text})")

        lists.loop(writer, function.body, element)

    walk_widths(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)], lambda index, width: None)
    return steps.add(st.ShaveStep, name, below.width + 1, (below,), constant=0.0, limit=None, loop=walk_widths)


def lower(plans: Sequence[Node], dictionary: Dictionary) -> st.Steps:
    """The steps of plans; CannotCompile names the step that has no integer form."""
    steps = st.Steps(dictionary)
    done: dict[bytes, st.Step] = {}
    for node in topological(plans):
        name = f"step {len(done) + 1}, {node.operator.name}"
        try:
            done[node.digest] = _lower(steps, name, node, [done[child.digest] for child in node.inputs])
        except CannotCompile as reason:
            raise CannotCompile(f"{name}: {reason}; the python engine runs it") from None
        steps.nodes.setdefault(done[node.digest], node)
    steps.roots = [done[plan.digest] for plan in plans]
    return steps


def _lower(steps: st.Steps, name: str, node: Node, inputs: list[st.Step]) -> st.Step:
    operator, size = node.operator, width(node.type)
    types = [child.type for child in node.inputs]
    if isinstance(operator, ops.Source):
        return steps.add(st.SourceStep, name, size, (), source=operator.source)
    if isinstance(operator, (ops.Where, ops.Partition)):
        return _filter(steps, name, operator, types[0], inputs[0])
    if isinstance(operator, ops.Select):
        return _select(steps, name, operator.function, types[0], inputs[0])
    if isinstance(operator, ops.SelectMany):
        return select_many(steps, name, operator, node.type, types[0], inputs[0])
    if isinstance(operator, (ops.Concat, ops.Except, ops.Union, ops.Intersect)):
        fitted = tuple(_fitted(steps, name, step, a, node.type) for step, a in zip(inputs, types, strict=True))
        if isinstance(operator, (ops.Concat, ops.Except)):
            return steps.add(st.SumStep, name, size, fitted, coefficients=operator.coefficients)
        return steps.add(st.ExtremeStep, name, size, fitted, smaller=isinstance(operator, ops.Intersect))
    if isinstance(operator, ops.Join):
        return _join(steps, name, operator, node.type, types, inputs)
    if isinstance(operator, ops.GroupBy):
        return _group(steps, name, operator, types[0], inputs[0])
    if isinstance(operator, ops.Shave):
        return shave(steps, name, operator, types[0], inputs[0])
    raise CannotCompile("it has no compiled rule")


def _call(writer: Writer, function: Lambda, *records: ValueCode) -> ValueCode:
    core = function.core
    for parameter, record in zip(core.parameters, records, strict=True):
        writer.known[parameter.digest] = record
    return shaped(emit(writer, core.body), function.type)


def _probe(steps: st.Steps, size: int, compute: Callable[[Writer, list[str]], list[str]]) -> tuple[int, ...] | None:
    """Which input word each output word is, where nothing is computed. It also finds out what cannot be compiled."""
    words = [f"c{i}" for i in range(size)]
    places = {word: i for i, word in enumerate(words)}
    out = compute(Writer(steps.dictionary), words)
    return tuple(places[word] for word in out) if all(word in places for word in out) else None


def _map(steps: st.Steps, name: str, below: st.Step, compute: Callable[[Writer, Sequence[str]], list[str]]) -> st.Step:
    permutation = _probe(steps, below.width, compute)
    size = len(compute(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)]))
    if permutation == tuple(range(below.width)):
        return below
    return steps.add(st.MapStep, name, size, (below,), permutation=permutation, images=(st.Image(compute, 1.0),))


def _select(steps: st.Steps, name: str, function: Lambda, type_: Type, below: st.Step) -> st.Step:
    return _map(
        steps,
        name,
        below,
        lambda writer, words: values.to_words(_call(writer, function, values.from_words(type_, words)), function.type),
    )


def _fitted(steps: st.Steps, name: str, below: st.Step, type_: Type, wanted: Type) -> st.Step:
    """The step's records laid out as a type that differs at most in what may be null."""
    return _map(
        steps,
        name,
        below,
        lambda writer, words: values.to_words(shaped(values.from_words(type_, words), wanted), wanted),
    )


def _filter(steps: st.Steps, name: str, operator: ops.Where | ops.Partition, type_: Type, below: st.Step) -> st.Step:
    def condition(writer: Writer, words: Sequence[str]) -> str:
        record = values.from_words(type_, words)
        if isinstance(operator, ops.Where):
            return truth(_call(writer, operator.predicate, record))
        part = values.constant(writer, operator.part.value, operator.part.type)
        return same(writer, _call(writer, operator.key, record), part)

    condition(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)])
    return steps.add(st.MapStep, name, below.width, (below,), condition=condition)


def _join(
    steps: st.Steps, name: str, operator: ops.Join, wanted: Type, types: list[Type], inputs: list[st.Step]
) -> st.Step:
    common = unify(_unnamed(operator.left_key.type), _unnamed(operator.right_key.type))
    assert common is not None
    keyed = [
        _with_key(steps, name, step, key, type_, common)
        for step, key, type_ in zip(inputs, (operator.left_key, operator.right_key), types, strict=True)
    ]
    (left, left_key), (right, right_key) = keyed
    sizes = inputs[0].width, inputs[1].width

    def write(writer: Writer, left_words: Sequence[str], right_words: Sequence[str]) -> list[str]:
        x = values.from_words(types[0], left_words[: sizes[0]])
        y = values.from_words(types[1], right_words[: sizes[1]])
        return values.to_words(_call(writer, operator.result, x, y), wanted)

    permutation = _probe(
        steps, left.width + right.width, lambda writer, words: write(writer, words[: left.width], words[left.width :])
    )
    return steps.add(
        st.JoinStep,
        name,
        width(wanted),
        (left, right),
        keys=(left_key, right_key),
        write=write,
        permutation=permutation,
    )


def _unnamed(type_: Type) -> Type:
    if not isinstance(type_, TupleOf):
        return type_
    elements = tuple(_unnamed(element) for element in type_.elements)
    return TupleOf((None,) * len(elements), elements, nullable=type_.nullable)


def _with_key(
    steps: st.Steps, name: str, below: st.Step, key: Lambda, type_: Type, wanted: Type
) -> tuple[st.Step, tuple[int, ...]]:
    """The step and the numbers of its key's columns; where a key is computed, a step that adds them."""

    def compute(writer: Writer, words: Sequence[str]) -> list[str]:
        return values.to_words(shaped(_call(writer, key, values.from_words(type_, words)), wanted), wanted)

    permutation = _probe(steps, below.width, compute)
    if permutation is not None and len(set(permutation)) == len(permutation):
        return below, permutation
    extended = _map(steps, name, below, lambda writer, words: [*words, *compute(writer, words)])
    return extended, tuple(range(below.width, extended.width))


def _group(steps: st.Steps, name: str, operator: ops.GroupBy, type_: Type, below: st.Step) -> st.Step:
    keyed, key = _with_key(steps, name, below, operator.key, type_, operator.key.type)
    group = partial(st.Group, operator.reduce, type_)
    trial = group(Writer(steps.dictionary), [f"k{i}" for i in range(len(key))])
    trial.add([f"c{i}" for i in range(keyed.width)])
    return steps.add(st.GroupStep, name, len(trial.result()), (keyed,), key=key, group=group)
