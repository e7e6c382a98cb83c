"""SelectMany and Shave as steps: records whose outputs are the elements of a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.engines.incremental.compiled.routines.routine import call
from wpinq.engines.incremental.compiled.routines.store import clear, gathered_norm, gathering
from wpinq.engines.incremental.compiled.steps.steps import EmitRecord, Image, MapStep, ShaveStep, Step, Steps
from wpinq.engines.incremental.compiled.words import code, lists
from wpinq.engines.incremental.compiled.words.code import Writer
from wpinq.engines.incremental.compiled.words.encoding import width
from wpinq.engines.incremental.compiled.words.expressions import shaped
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import Type
from wpinq.plan.operators import SelectMany, Shave


def select_many(steps: Steps, name: str, operator: SelectMany, wanted: Type, type_: Type, below: Step) -> Step:
    """The step of a SelectMany: of images where its list is written out, else of a loop."""
    trial, words = Writer(steps.dictionary), [f"c{i}" for i in range(below.width)]
    images = _images(operator, wanted, type_)
    if images:
        for image in images:
            image.words(trial, words)
        return steps.add(MapStep, name, width(wanted), (below,), images=images)
    scratch = f"SCRATCH_{len(steps.all)}" if lists.is_weighted(operator.function) else None
    loop = _Loop(operator, wanted, type_)
    write = loop.write_counted if scratch is None else partial(loop.write_merged, scratch)
    write(trial, words, "w", lambda out, weight: None)
    return steps.add(MapStep, name, width(wanted), (below,), loop=write, scratch=scratch)


def _images(operator: SelectMany, wanted: Type, type_: Type) -> tuple[Image, ...]:
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
            writer.known[parameter.digest] = code.from_words(type_, words)
        return code.to_words(shaped(lists.item_value(writer, item), wanted), wanted)

    return tuple(Image(partial(image, item), float(weight / norm)) for item, weight in known if weight > 0)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A SelectMany as loops over the elements of its list: from records of one type, records that fit another."""

    operator: SelectMany
    wanted: Type
    type: Type

    def write_counted(self, writer: Writer, words: Sequence[str], weight: str, sink: EmitRecord) -> None:
        # two walks: the norm must be known before the first element is passed on
        total = writer.bind("0.0", "t")
        self._elements(writer, words, lambda out, w: writer.line(f"{total} += 1.0"))
        share = writer.bind(f"{weight} / max(1.0, {total})")
        self._elements(writer, words, lambda out, w: sink(out, share))

    def write_merged(self, scratch: str, writer: Writer, words: Sequence[str], weight: str, sink: EmitRecord) -> None:
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
        writer.known[function.parameters[0].digest] = code.from_words(self.type, words)
        taken, writer.most = writer.bind("0", "n"), bound

        def element(item: lists.ListElement) -> None:
            with writer.block(f"if {taken} < {bound}:"):
                writer.line(f"{taken} += 1")
                if lists.is_weighted(self.operator.function):
                    record, weight = lists.weighted_parts(writer, item)
                    with writer.block(f"if {weight.present or 'True'}:"):
                        body(code.to_words(record, self.wanted), weight.text)
                else:
                    body(code.to_words(shaped(lists.value_of(writer, item), self.wanted), self.wanted), "1.0")

        known = dict(writer.known)
        lists.loop(writer, function.body, element)
        writer.known = known


def shave(steps: Steps, name: str, operator: Shave, type_: Type, below: Step) -> Step:
    """The step of a Shave."""
    widths = operator.widths
    if not isinstance(widths, Lambda):
        return steps.add(ShaveStep, name, below.width + 1, (below,), constant=widths, limit=operator.bound, loop=None)
    function, bound = widths.core, operator.bound

    def walk_widths(writer: Writer, words: Sequence[str], body: Callable[[str, str], None]) -> None:
        writer.known[function.parameters[0].digest] = code.from_words(type_, words)
        index, writer.most = writer.bind("-1", "n"), bound

        def element(item: lists.ListElement) -> None:
            with writer.block(f"if {index} + 1 < {bound}:"):
                writer.line(f"{index} += 1")
                value = lists.value_of(writer, item)
                if not isinstance(value, code.ScalarCode):
                    raise CannotCompile("a width that is a record")
                with writer.block(f"if {value.present or 'True'} and {value.text} > 0:"):
                    body(index, f"float({value.text})")

        lists.loop(writer, function.body, element)

    walk_widths(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)], lambda index, width: None)
    return steps.add(ShaveStep, name, below.width + 1, (below,), constant=0.0, limit=None, loop=walk_widths)
