"""What a count of subgraphs or a largest degree costs, and how exact it is, before it runs. No data."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from wpinq.measure.epsilon import format_epsilon
from wpinq.measure.ladder_sink import LadderSink
from wpinq.measure.largest_degree import LargestDegree
from wpinq.measure.subgraph_counts import SubgraphCount
from wpinq.plan.certify import certify
from wpinq.plan.node import Node, sources

_WIDTHS = (10, 100, 1000)
"""Of ladders, for examples: what the graph has is private."""


def explain_count(plan: Node, epsilon: Fraction, sink: LadderSink) -> Iterator[str]:
    """The lines on cost and accuracy."""
    for name, times in sink.stability(plan).items():
        source = sources([plan])[name]
        source.check()
        factor = times * source.unit_weight
        why = "one record" if times == 1 else "two records"
        weight = format_epsilon(source.unit_weight)
        cost = f"epsilon x {format_epsilon(times)} x {weight} (its unit weight) = {format_epsilon(epsilon * factor)}"
        yield f"An edge of the graph is {why} of {name}: a release costs {cost},"
        yield "whichever way the plan puts both directions together."
        yield f"Protects {source.unit}{source.rows_of_unit} of {name}."
    said = f"{sink.name}({format_epsilon(epsilon)})"
    if isinstance(sink, LargestDegree):
        (scale,) = sink.scales(certify(plan), epsilon)
        yield f"{said} adds double-geometric noise of scale {scale:.9g} to the largest degree,"
        yield f"so 95 % of answers lie within {sink.half_width(scale, 0.95):.4g} of it."
    else:
        assert isinstance(sink, SubgraphCount)
        yield f"{said} draws a whole number near the count, for graphs of"
        for width in _WIDTHS:
            reach = sink.reach(epsilon, width, 0.95)
            yield f"  {sink.width_key} {width}: 95 % of answers lie within {reach:.4g} of the count."
        if sink.interval_share is None:
            yield "Without interval_share=... the answer comes without an interval."
        else:
            yield f"Of epsilon, a share of {format_epsilon(sink.interval_share)} buys an interval."
