"""How releases are written: one table that the reader and the printer share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Literal

from wpinq.api.query import Query
from wpinq.expr.logical_values import LAST_DAY
from wpinq.expr.nodes import Call, Lambda, make_lambda
from wpinq.expr.printing import write, write_public, write_value
from wpinq.expr.types import DATE, INT, DecimalOf, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.measure.measurement import (
    Choose,
    GeometricCount,
    Measurement,
    MostDistant,
    NoisyAverage,
    NoisyCount,
    NoisySum,
)
from wpinq.noise.epsilon import format_epsilon
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.buckets import Buckets
from wpinq.sinks.graph_counts import FourCliqueCount, LadderSink, StarCount, SubgraphCount, TriangleCount
from wpinq.sinks.keys import DigitKeys, GivenKeys, IntegerKeys, KeyDomain, ProductKeys
from wpinq.sinks.largest_degree import LargestDegree


@dataclass(frozen=True, slots=True)
class SinkParameter:
    """One argument of a release."""

    name: str
    kind: Literal[
        "epsilon", "number", "integer", "real", "function", "keys", "key_domain", "integers", "compared_marginals"
    ]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class SinkSyntax:
    """A way to write a release: what it takes, how it is built, and how it is written where it is one.

    `write` gives the plan that the release is called on and its arguments as text, or None for other releases.
    """

    parameters: tuple[SinkParameter, ...]
    build: Callable[..., Measurement]
    write: Callable[[Measurement], tuple[Node, list[str]] | None]


def _write_counted(sink: type[NoisyCount | GeometricCount]) -> Callable[[Measurement], tuple[Node, list[str]] | None]:
    def written(m: Measurement) -> tuple[Node, list[str]] | None:
        if not isinstance(m.sink, sink) or m.listing is not None:
            return None
        return m.plan, [] if m.domain is None or m.domain == plan_properties(m.plan).domain else [_over(m)]

    return written


def _write_listed(sink: type[NoisyCount | GeometricCount]) -> Callable[[Measurement], tuple[Node, list[str]] | None]:
    def written(m: Measurement) -> tuple[Node, list[str]] | None:
        if not isinstance(m.sink, sink) or m.listing is None:
            return None
        over = write_domain(m.listing.domain, m.key_type)
        return m.plan, [f"over: {over}", f"above: {m.listing.above!r}"]

    return written


def _write_clamped(sink: type[NoisySum | NoisyAverage]) -> Callable[[Measurement], tuple[Node, list[str]] | None]:
    def written(m: Measurement) -> tuple[Node, list[str]] | None:
        if not isinstance(m.sink, sink):
            return None
        function = getattr(m.plan.operator, "function", None)
        value = _clamped_value(function) if isinstance(function, Lambda) else None
        if value is None:
            return None
        range_ = [f"lower: {m.sink.lower!r}", f"upper: {m.sink.upper!r}"]
        return m.plan.inputs[0], [write(value), *range_]

    return written


def _clamped_value(function: Lambda) -> Lambda | None:
    """The function whose clamped values a sum or an average is made of: what stands inside max(min(·, b), a)."""
    stack = [function.body]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Call) and expr.name == "max":
            inner = expr.arguments[0]
            if not (isinstance(inner, Call) and inner.name == "min"):
                return None
            value = inner.arguments[0]
            if isinstance(value, Call) and value.name == "to_float" and _widened(value.arguments[0].type):
                (value,) = value.arguments
            return make_lambda(function.parameters, value, function.level)
        if isinstance(expr, Call):
            stack.extend(reversed(expr.arguments))
    return None


def _widened(type_: Type) -> bool:
    """Whether a sum makes floats of such values by itself."""
    return type_ == INT or isinstance(type_, DecimalOf)


def _write_choice(score: str, fixed: Fraction | None) -> Callable[[Measurement], tuple[Node, list[str]] | None]:
    def written(m: Measurement) -> tuple[Node, list[str]] | None:
        if not isinstance(m.sink, Choose) or m.sink.score != score:
            return None
        quantile = m.sink.quantile
        if quantile == fixed:
            return m.plan, [_over(m)]
        return None if quantile is None or fixed is not None else (m.plan, [format_epsilon(quantile), _over(m)])

    return written


def _write_most_distant(m: Measurement) -> tuple[Node, list[str]] | None:
    if not isinstance(m.sink, MostDistant):
        return None
    written = (
        f"({write_value(one.view)}, {one.penalty!r}, {', '.join(map(_numbers, one.factors))})"
        for one in m.sink.candidates
    )
    return m.plan, [f"sizes: {_numbers(m.sink.sizes)}", f"over: [{', '.join(written)}]"]


def _numbers(numbers: Iterable[float]) -> str:
    return f"[{', '.join(map(repr, numbers))}]"


def _write_subgraphs(sink: type[SubgraphCount]) -> Callable[[Measurement], tuple[Node, list[str]] | None]:
    def written(m: Measurement) -> tuple[Node, list[str]] | None:
        if not isinstance(m.sink, sink):
            return None
        arguments = [str(m.sink.edges)] if isinstance(m.sink, StarCount) else []
        if m.sink.interval_share is not None:
            arguments.append(f"interval_share: {format_epsilon(m.sink.interval_share)}")
        return m.plan, arguments

    return written


def _write_buckets(m: Measurement) -> tuple[Node, list[str]] | None:
    if not isinstance(m.sink, Buckets):
        return None
    given = [str(m.sink.bins), format_epsilon(m.sink.penalty)]
    return m.plan, given if m.sink.split == Fraction(1, 2) else [*given, f"split: {format_epsilon(m.sink.split)}"]


def _over(m: Measurement) -> str:
    return f"over: {write_keys(m.domain or (), m.plan.type)}"


def write_keys(keys: tuple[Value, ...], type_: Type) -> str:
    """Public keys in their shortest form: a range, a product, or a list."""
    if len(keys) > 2 and type_ in (INT, DATE) and keys == tuple(range(keys[0], keys[0] + len(keys))):
        end = keys[0] + len(keys)
        if type_ == INT or end <= LAST_DAY:
            return f"range({write_public(keys[0], type_)}, {write_public(end, type_)})"
    if len(keys) > 2 and isinstance(type_, TupleOf) and type_.elements and None not in keys:
        parts = [tuple(dict.fromkeys(column)) for column in zip(*keys, strict=True)]
        if math.prod(map(len, parts)) == len(keys) and tuple(product(*parts)) == keys:
            inside = (write_keys(part, element) for part, element in zip(parts, type_.elements, strict=True))
            return f"product({', '.join(inside)})"
    return f"[{', '.join(write_public(key, type_) for key in keys)}]"


def write_domain(domain: KeyDomain, type_: Type) -> str:
    """A public domain as it is described: a range, digits, a list, or a product of such."""
    if isinstance(domain, IntegerKeys):
        return f"range({write_public(domain.first, type_)}, {write_public(domain.last + 1, type_)})"
    if isinstance(domain, DigitKeys):
        return f"digits({domain.length})"
    if isinstance(domain, ProductKeys):
        assert isinstance(type_, TupleOf)
        inside = (write_domain(part, element) for part, element in zip(domain.parts, type_.elements, strict=True))
        return f"product({', '.join(inside)})"
    assert isinstance(domain, GivenKeys)
    return f"[{', '.join(write_public(key, type_) for key in domain.keys)}]"


_EPSILON = SinkParameter("epsilon", "epsilon")
_OVER = SinkParameter("over", "keys")
_SHARE = SinkParameter("interval_share", "number", optional=True)
_COUNTED = (_EPSILON, SinkParameter("over", "keys", optional=True))
_LISTED = (_EPSILON, SinkParameter("over", "key_domain"), SinkParameter("above", "number"))
_CLAMPED = (
    _EPSILON,
    SinkParameter("value", "function"),
    SinkParameter("lower", "real"),
    SinkParameter("upper", "real"),
)


def _choosing(method: Callable[..., Measurement]) -> Callable[..., Measurement]:
    """A method of queries that chooses, for programs, where its candidates too are what a release is over."""
    return lambda query, over, **given: method(query, candidates=over, **given)


def _listing(*, geometric: bool) -> Callable[..., Measurement]:
    """A listing, for programs, where its domain too is what a release is over."""
    return lambda query, epsilon, over, above: query.noisy_count_above(epsilon, over, above=above, geometric=geometric)


def _counting(sink: Callable[..., SubgraphCount]) -> Callable[..., Measurement]:
    """A count of subgraphs over the edges of a query."""

    def build(query: Query, epsilon: Fraction, interval_share: Fraction | None = None, **given: int) -> Measurement:
        return _of_edges(query, sink(None if interval_share is None else Fraction(interval_share), **given), epsilon)

    return build


def _of_edges(query: Query, sink: LadderSink, epsilon: Fraction) -> Measurement:
    return Measurement(query.plan, sink, epsilon, sink.keys, query.reading)


SINKS: dict[str, SinkSyntax] = {
    "NoisyCount": SinkSyntax(_COUNTED, Query.noisy_count, _write_counted(NoisyCount)),
    "GeometricCount": SinkSyntax(_COUNTED, Query.geometric_count, _write_counted(GeometricCount)),
    "NoisyCountAbove": SinkSyntax(_LISTED, _listing(geometric=False), _write_listed(NoisyCount)),
    "GeometricCountAbove": SinkSyntax(_LISTED, _listing(geometric=True), _write_listed(GeometricCount)),
    "NoisySum": SinkSyntax(_CLAMPED, Query.noisy_sum, _write_clamped(NoisySum)),
    "NoisyAverage": SinkSyntax(_CLAMPED, Query.noisy_average, _write_clamped(NoisyAverage)),
    "MostCommon": SinkSyntax((_EPSILON, _OVER), _choosing(Query.most_common), _write_choice("weight", None)),
    "Median": SinkSyntax((_EPSILON, _OVER), _choosing(Query.median), _write_choice("quantile", Fraction(1, 2))),
    "Quantile": SinkSyntax(
        (_EPSILON, SinkParameter("q", "number"), _OVER),
        _choosing(Query.quantile),
        _write_choice("quantile", None),
    ),
    "MostDistant": SinkSyntax(
        (_EPSILON, SinkParameter("sizes", "integers"), SinkParameter("over", "compared_marginals")),
        _choosing(Query.most_distant),
        _write_most_distant,
    ),
    "Buckets": SinkSyntax(
        (
            *(_EPSILON, SinkParameter("bins", "integer"), SinkParameter("penalty", "number")),
            SinkParameter("split", "number", optional=True),
        ),
        Query.buckets,
        _write_buckets,
    ),
    "TriangleCount": SinkSyntax((_EPSILON, _SHARE), _counting(TriangleCount), _write_subgraphs(TriangleCount)),
    "StarCount": SinkSyntax(
        (_EPSILON, SinkParameter("edges", "integer"), _SHARE), _counting(StarCount), _write_subgraphs(StarCount)
    ),
    "FourCliqueCount": SinkSyntax((_EPSILON, _SHARE), _counting(FourCliqueCount), _write_subgraphs(FourCliqueCount)),
    "LargestDegree": SinkSyntax(
        (_EPSILON,),
        lambda query, epsilon: _of_edges(query, LargestDegree(), epsilon),
        lambda m: (m.plan, []) if isinstance(m.sink, LargestDegree) else None,
    ),
}
"""Every release by its name in text, in the order in which the printer tries them."""
