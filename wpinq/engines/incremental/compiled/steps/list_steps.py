"""SelectMany and Shave as steps: records whose outputs are the elements of a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    size, images, scratch = width(wanted), _images(operator, wanted, type_), None
    if images:
        write = partial(_write_images, images)
    elif lists.is_weighted(operator.function):
        scratch = f"SCRATCH_{len(steps.all)}"
        write = partial(_write_merged, operator, wanted, type_, scratch)
    else:
        write = partial(_write_counted, operator, wanted, type_)
    write(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)], "w", lambda words, weight: None)
    return steps.add(MapStep, name, size, (below,), write=write, scratch=scratch, images=images)


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


def _write_images(
    images: tuple[Image, ...], writer: Writer, words: Sequence[str], weight: str, sink: EmitRecord
) -> None:
    for image in images:
        sink(image.words(writer, words), weight if image.share == 1.0 else f"{weight} * {image.share!r}")


def _elements(
    operator: SelectMany,
    wanted: Type,
    type_: Type,
    writer: Writer,
    words: Sequence[str],
    body: Callable[[list[str], str], None],
) -> None:
    """Write the loop over the elements that a record may have: their words and weights."""
    function, bound, weighted = operator.function.core, operator.bound, lists.is_weighted(operator.function)
    writer.known[function.parameters[0].digest] = code.from_words(type_, words)
    taken, writer.most = writer.bind("0", "n"), bound

    def element(item: lists.ListElement) -> None:
        with writer.block(f"if {taken} < {bound}:"):
            writer.line(f"{taken} += 1")
            if weighted:
                record, weight = lists.weighted_parts(writer, item)
                with writer.block(f"if {weight.present or 'True'}:"):
                    body(code.to_words(record, wanted), weight.text)
            else:
                body(code.to_words(shaped(lists.value_of(writer, item), wanted), wanted), "1.0")

    known = dict(writer.known)
    lists.loop(writer, function.body, element)
    writer.known = known


def _write_counted(
    operator: SelectMany, wanted: Type, type_: Type, writer: Writer, words: Sequence[str], weight: str, sink: EmitRecord
) -> None:
    # two walks: the norm must be known before the first element is passed on
    total = writer.bind("0.0", "t")
    _elements(operator, wanted, type_, writer, words, lambda out, w: writer.line(f"{total} += 1.0"))
    share = writer.bind(f"{weight} / max(1.0, {total})")
    _elements(operator, wanted, type_, writer, words, lambda out, w: sink(out, share))


def _write_merged(
    operator: SelectMany,
    wanted: Type,
    type_: Type,
    scratch: str,
    writer: Writer,
    words: Sequence[str],
    weight: str,
    sink: EmitRecord,
) -> None:
    # scaled by the largest weight, so that no sum overflows; repeats meet in a scratch table
    top, size = writer.bind("1.0", "t"), width(wanted)

    def gather(out: list[str], w: str) -> None:
        writer.line(call(gathering(size), scratch, *out, f"{w} / {top}"))

    _elements(operator, wanted, type_, writer, words, lambda out, w: writer.line(f"{top} = max({top}, abs({w}))"))
    _elements(operator, wanted, type_, writer, words, gather)
    norm = writer.bind(f"max(1.0 / {top}, {call(gathered_norm, scratch, str(size))})")
    row = writer.name("r")
    with writer.block(f"for {row} in range(1, 1 + load(state, {scratch} + COUNT)):"):
        base = writer.bind(f"load(state, {scratch} + ROWS) + {row} * load(state, {scratch} + STRIDE)")
        out = [writer.bind(f"load(state, {base} + {i})") for i in range(size)]
        sink(out, f"{weight} * (as_float(load(state, {base} + {size})) / {norm})")
    writer.line(call(clear, scratch))


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
