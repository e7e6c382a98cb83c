"""Closed wedges by the tags of their middle nodes, known by their form: a bound that no rule for one step gives.

An edge brings wedges to the tags from which the scale of its ends takes, and both are numbers of the same few records.
No operator sees that. docs/proofs/stability.md, "Closed wedges by tag", proves it for plans of exactly this form.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import ExpressionError
from wpinq.expr import library as wp
from wpinq.expr.nodes import Call, Constant, Lambda
from wpinq.expr.trace import trace
from wpinq.expr.types import Type
from wpinq.plan.moves.terms import Term, any_record, applied, evaluated, record
from wpinq.plan.node import Node
from wpinq.plan.operators import Intersect, Join, Select, SelectMany, Shave, Source, Where

BY_FORM = "closed wedges come and go in the same tags (by form)"

OF_BOTH_ENDS = Fraction(1)
"""How far one edge moves them through the degrees and neighbours of its ends: less than 1/2 at either."""


@dataclass(frozen=True, slots=True)
class ClosedWedges:
    """What a step reads that adds up closed wedges by tag.

    Attributes
    ----------
    source : Node
        The edges, each there once: without loops, and never in both directions.
    closing : Node
        The side of the Intersect that closes wedges, of whatever weights.
    """

    source: Node
    closing: Node


@lru_cache(maxsize=1024)
def closed_wedges(node: Node) -> ClosedWedges | None:
    """What a step reads, where it adds up closed wedges of simple edges by tag."""
    if not isinstance(node.operator, Select) or not isinstance(node.inputs[0].operator, Intersect):
        return None
    for tagged, closing in (node.inputs[0].inputs, node.inputs[0].inputs[::-1]):
        found = _tagged(tagged)
        if found is not None:
            source, tag = found
            pair = any_record("pair", tagged.type)
            if applied(node.operator.function, [pair]) == pair.fields[tag]:
                return ClosedWedges(source, closing)
    return None


def _tagged(node: Node) -> tuple[Node, int] | None:
    """The edges, and the field of the tag, where a step pairs the sorted ends of wedges with tags of their middles."""
    if not isinstance(node.operator, Join):
        return None
    wedges, tags = (_wedges(node.inputs[0]), _tags(node.inputs[1]))
    if wedges is None or tags is None or wedges.source != tags[0]:
        return None
    of_tag = 1 - tags[1]
    wedge, tag = (any_record(name, below.type) for name, below in zip(("wedge", "tag"), node.inputs, strict=True))
    one, middle, other = wedges.places
    image = applied(node.operator.result, [wedge, tag]).fields
    if (
        applied(node.operator.left_key, [wedge]) != wedge.fields[middle]
        or applied(node.operator.right_key, [tag]) != tag.fields[tags[1]]
        or len(image) != 2
        or tag.fields[of_tag] not in image
    ):
        return None
    place = image.index(tag.fields[of_tag])
    ends = _of(lambda x: wp.sort((x[one], x[other])), node.inputs[0].type, wedge)
    return (wedges.source, place) if image[1 - place] == ends else None


@dataclass(frozen=True, slots=True)
class _Wedges:
    source: Node
    places: tuple[int, int, int]
    """The fields of one end, the middle, and the other end."""


def _wedges(node: Node) -> _Wedges | None:
    """Two half-edges that meet in a middle node and have other ends that differ."""
    if not isinstance(node.operator, Where) or not isinstance(node.inputs[0].operator, Join):
        return None
    (met,) = node.inputs
    halves, again = met.inputs
    found = _halves(halves)
    if halves != again or found is None:
        return None
    source, edge, elements = found
    if elements != {record(edge), record(edge[::-1])}:
        return None
    join = met.operator
    assert isinstance(join, Join)
    left, right = any_record("left", halves.type), any_record("right", halves.type)
    keys = applied(join.left_key, [left]), applied(join.right_key, [right])
    if keys[0] not in left.fields or keys[1] not in right.fields:
        return None
    one, other = (side.fields[1 - side.fields.index(key)] for side, key in zip((left, right), keys, strict=True))
    image = applied(join.result, [left, right]).fields
    if len(image) != 3 or one not in image or other not in image or not {*keys} & {*image}:
        return None
    ends = image.index(one), image.index(other)
    wedge = any_record("wedge", node.type)
    if applied(node.operator.predicate, [wedge]) != _of(lambda x: x[ends[0]] != x[ends[1]], node.type, wedge):
        return None
    return _Wedges(source, (ends[0], 3 - sum(ends), ends[1]))


def _tags(node: Node) -> tuple[Node, int] | None:
    """The edges, and the field of the node, where each half of an edge gives its node a tag by its number."""
    if isinstance(node.operator, Shave):  # a list of widths, the same for all
        found = _halves(node.inputs[0])
        if found is None or found[2] != {*found[1]} or not _whole_halves(node.operator):
            return None
        return found[0], 0
    if not isinstance(node.operator, Select) or not isinstance(node.inputs[0].operator, Shave):
        return None
    (pieces,) = node.inputs
    shave = pieces.operator
    assert isinstance(shave, Shave)
    found = _halves(pieces.inputs[0])
    if shave.widths != 0.5 or shave.limit is not None or found is None:
        return None
    source, edge, elements = found
    piece = any_record("piece", pieces.type)
    image = applied(node.operator.function, [piece]).fields
    if (
        elements != {*edge}
        or len(image) != 2
        or piece.fields[0] not in image
        or not all(field.known for field in image)
    ):
        return None
    return source, image.index(piece.fields[0])


def _whole_halves(shave: Shave) -> bool:
    """Whether the widths are a public list of multiples of 1/2, so that half an edge is in one piece, if in any."""
    if not isinstance(shave.widths, Lambda) or shave.limit is not None:
        return False
    body = shave.widths.core.body
    if isinstance(body, Constant):
        widths = body.value
    elif isinstance(body, Call) and body.name == "list" and all(isinstance(item, Constant) for item in body.arguments):
        widths = tuple(item.value for item in body.arguments if isinstance(item, Constant))
    else:
        return False
    return isinstance(widths, tuple) and all(
        isinstance(width, (int, float)) and width > 0 and width * 2 == round(width * 2) for width in widths
    )


def _halves(node: Node) -> tuple[Node, tuple[Term, ...], set[Term]] | None:
    """A source of simple edges, the ends of one, and what a list of two makes of it."""
    if not isinstance(node.operator, SelectMany) or not isinstance(node.inputs[0].operator, Source):
        return None
    (source,) = node.inputs
    assert isinstance(source.operator, Source)
    shares, edge = node.operator.written_shares(), any_record("edge", source.type)
    if not {"unit_weights", "simple"} <= {*source.operator.facts} or shares is None or len(edge.fields) != 2:
        return None
    level = node.operator.function.core.level
    elements = [evaluated(element, {level: edge}) for element, share in shares if share == Fraction(1, 2)]
    return (source, edge.fields, {*elements}) if len(elements) == len(shares) == 2 else None


def _of(function: object, type_: Type, term: Term) -> Term | None:
    """The term of a function of a record; None where records of the type have no such function."""
    try:
        traced = trace(function, (type_,))  # type: ignore[arg-type]
    except ExpressionError:
        return None  # nodes that hold lists cannot be sorted: a plan that does not sort them is another form
    assert isinstance(traced, Lambda)
    return applied(traced, [term])
