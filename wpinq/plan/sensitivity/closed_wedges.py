"""Closed wedges by the tags of their middle nodes: a bound for plans of one form.

An edge brings wedges to the tags from which the scale of its ends takes, and both are numbers of the same few records.
No rule for one step gives this bound. docs/proofs/stability.md, "Closed wedges by tag", proves it for plans of exactly
this form.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

from wpinq import functions as F
from wpinq.errors import ExpressionError
from wpinq.expr.nodes import Constant, Expr, Lambda
from wpinq.expr.trace import trace
from wpinq.expr.types import INT, Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import EXACT, written_list
from wpinq.plan.node import Node
from wpinq.plan.operators import Intersect, Join, Select, SelectMany, Shave, Source, Where
from wpinq.plan.sensitivity.change import Change, Term, any_record, applied, constant, evaluated, record

BY_FORM = "closed wedges gain and lose weight in the same tags (by form)"

#: Bounds are rounded up to a multiple of its inverse: short numbers on bills.
_GRAIN = 64
#: Limits of degrees are not searched beyond it.
_FAR = 2**32


@dataclass(frozen=True, slots=True)
class ClosedWedges:
    """The form of a step that adds up closed wedges by tag.

    Attributes
    ----------
    source : Node
        The edges, each there once: without loops, and never in both directions.
    closing : Node
        The side of the Intersect that closes wedges, of whatever weights.
    tag : int
        The field of the tag in what is closed.
    widths : sequence of Fraction
        How much degree is in each tag.
    weights : sequence of Fraction
        What weight 1 under each tag becomes, of either sign together: at most 1.
    """

    source: Node
    closing: Node
    tag: int
    widths: Sequence[Fraction]
    weights: Sequence[Fraction]

    @property
    def of_both_ends(self) -> Fraction:
        """The move by one edge through the degrees and neighbours of its ends.

        It is twice the most at any degree.
        """
        if sum(self.widths) > _FAR:
            return max(self.weights)
        limit, full, most = 0, Fraction(0), Fraction(0)
        for width, weight in zip(self.widths, self.weights, strict=True):
            beyond = limit + int(width)
            at = partial(_of_one_end, full - weight * limit, weight)
            # In a tag it rises with the degree, and from some degree on may fall.
            turn = limit + bisect_left(range(limit, beyond - 1), True, key=lambda d: at(d + 1) <= at(d))
            most = max(most, at(turn))
            limit, full = beyond, full + weight * width
        most = max(most, full / (3 * (limit + 1)))
        return Fraction(math.ceil(2 * most * _GRAIN), _GRAIN)

    def of_closing(self, change: Change) -> Fraction:
        """The move with the side that closes wedges."""
        weights = {constant(Constant(INT, tag)): weight for tag, weight in enumerate(self.weights)}
        # Of a tag that is not known, or is none, all weight may be left: where that side is negative it passes through.
        moves = ((weights.get(term.at((self.tag,)), Fraction(1)), move.total) for term, move in change.atoms.items())
        return sum((weight * total for weight, total in moves), Fraction(0))


def _of_one_end(below: Fraction, weight: Fraction, degree: int) -> Fraction:
    """The move by an end of this degree, in a tag that has this weight."""
    return degree * (below + weight * Fraction(3 * degree + 1, 2)) / ((degree + 1) * (3 * degree + 2))


@lru_cache(maxsize=1024)
def closed_wedges(node: Node) -> ClosedWedges | None:
    """The form of a step that adds up closed wedges of simple edges by tag, or maps the sums."""
    if not isinstance(node.operator, (Select, SelectMany, Where)):
        return None
    form = _by_tag(node)
    if form is not None or (form := _by_tag(node.inputs[0])) is None:
        return form
    images = node.operator.images(EXACT)
    return replace(form, weights=[sum(abs(weight) for _, weight in images(tag)) for tag in range(len(form.widths))])


def _by_tag(node: Node) -> ClosedWedges | None:
    """The form itself, before anything is made of the sums."""
    if not isinstance(node.operator, Select) or not isinstance(node.inputs[0].operator, Intersect):
        return None
    for tagged, closing in (node.inputs[0].inputs, node.inputs[0].inputs[::-1]):
        found = _tagged(tagged)
        if found is not None:
            source, widths, tag = found
            pair = any_record("pair", tagged.type)
            if applied(node.operator.function, [pair]) == pair.fields[tag]:
                return ClosedWedges(source, closing, tag, widths, [Fraction(1)] * len(widths))
    return None


def _tagged(node: Node) -> tuple[Node, Sequence[Fraction], int] | None:
    """The edges, tag widths and tag field, where wedges meet the tags of their middles."""
    if not isinstance(node.operator, Join):
        return None
    wedges, tags = _wedges(node.inputs[0]), _tags(node.inputs[1])
    if wedges is None or tags is None or wedges[0] != tags[0]:
        return None
    wedge, tag = (any_record(name, below.type) for name, below in zip(("wedge", "tag"), node.inputs, strict=True))
    at, number = tag.fields
    _, (one, middle, other) = wedges
    image = applied(node.operator.result, [wedge, tag]).fields
    if (
        applied(node.operator.left_key, [wedge]) != wedge.fields[middle]
        or applied(node.operator.right_key, [tag]) != at
        or len(image) != 2
        or number not in image
    ):
        return None
    place = image.index(number)
    ends = _of(lambda x: F.sort((x[one], x[other])), node.inputs[0].type, wedge)
    return (*tags, place) if image[1 - place] == ends else None


def _wedges(node: Node) -> tuple[Node, tuple[int, int, int]] | None:
    """The edges and the fields of end, middle and other end, where half-edges meet."""
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
    return source, (ends[0], 3 - sum(ends), ends[1])


def _tags(node: Node) -> tuple[Node, Sequence[Fraction]] | None:
    """The edges and the degree in each tag, where one public list of widths cuts the nodes.

    The widths cut the weight of each node. They are multiples of 1/2, and a node weighs half an edge for each: that is
    in one tag, or beyond all.
    """
    if not isinstance(node.operator, Shave) or not isinstance(node.operator.widths, Lambda):
        return None
    found = _halves(node.inputs[0])
    if found is None or node.operator.limit is not None:
        return None
    source, edge, elements = found
    widths = _constants(node.operator.widths.core.body)
    if elements != {*edge} or widths is None or not all(map(_whole_halves, widths)):
        return None
    return source, [2 * Fraction(width) for width in widths]


def _constants(body: Expr) -> tuple[Value, ...] | None:
    items = written_list(body) or ()
    values = tuple(item.value for item in items if isinstance(item, Constant))
    return values if len(values) == len(items) > 0 else None


def _whole_halves(width: Value) -> bool:
    if isinstance(width, float):
        return width > 0 and (2 * width).is_integer()  # infinity is none
    return isinstance(width, int) and width > 0


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
        return None  # nodes that contain lists cannot be sorted: a plan that does not sort them is another form
    assert isinstance(traced, Lambda)
    return applied(traced, [term])
