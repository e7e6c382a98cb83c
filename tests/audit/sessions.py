"""The whole way of a release, by sessions on both engines: what comes out has the law that was audited, at the bill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

import wpinq as wp
from tests.audit.bounds import FALSE_ALARM, Asked, asked
from tests.audit.findings import Part
from tests.audit.hours import Allotment
from tests.audit.noisy_choices import chances, p_value
from tests.audit.noisy_numbers import centres
from tests.audit.pairs import Pair, Ready
from wpinq.api.query import Query
from wpinq.measure.bill import Bill
from wpinq.noise.epsilon import from_nano, to_nano
from wpinq.plan.node import sources, topological
from wpinq.plan.operators.source import Source
from wpinq.sinks.choose import NoisyChoice
from wpinq.sinks.geometric import GeometricCount
from wpinq.sinks.graph_counts import LadderSink

ENGINES = ("reference", "duckdb")


def audit_sessions(
    releases: int,
    allotment: Allotment,
    chosen: Sequence[Asked] | None = None,
    engines: tuple[str, ...] = ENGINES,
) -> Part:
    """So many fresh releases of each side of each pair that is no listing, on each engine, as far as time goes."""
    part = Part(
        "sessions",
        "Fresh releases of the pairs above, but for listings, through whole sessions: protect, debit, evaluate, draw, "
        "store. What comes out is compared with the law on the exact weights, and what is spent with the bill.",
        ("engine", "pairs", "releases", "least p-value"),
    )
    for place, engine in enumerate(engines):
        worst, count, share = 1.0, 0, allotment.share(1 / (len(engines) - place))
        for name, pair, *_ in asked(("numbers", "recipes", "choices", "draws")) if chosen is None else chosen:
            if count and share.over:
                break
            for side, data in (("before", pair.before), ("after", pair.after)):
                where = f"{name}, {side}, on {engine}"
                p, paid = _released(pair, data, releases, engine)
                worst = min(worst, p)
                part.faults += [f"{where}: not the law, p = {p:.3g}"] if p < FALSE_ALARM else []
                part.faults += [] if paid else [f"{where}: what was spent is not the bill"]
            count += 1
        part.rows.append((engine, count, 2 * count * releases, worst))
    part.ran = {"releases": sum(int(row[2]) for row in part.rows)}
    return part


def _released(pair: Pair, data: Any, releases: int, engine: str) -> tuple[float, bool]:
    bill = Bill(list(pair.measurements))
    with wp.Session(engine=engine, threads=1 if engine == "duckdb" else None) as session:
        for name, weights in data.items():
            source = _declared(pair, name)
            session.protect(source, _offered(weights, float(sources([source.plan])[name].unit_weight)), budget=10**7)
        drawn = [session.release(list(pair.measurements), fresh=True) for _ in range(releases)]
        spent = {name: session.spent(name) for name in data}
    paid = all(spent[name] == releases * from_nano(to_nano(bill[name])) for name in data)
    found = []
    for place, ready in enumerate(pair.ready(data)):
        found += _p_values(ready, np.array([answers[place].values for answers in drawn]))
    return min(found), paid


def _offered(weights: Mapping[Any, float], unit: float) -> Any:
    """A mapping, or rows where a record is there more than once."""
    if max(weights.values(), default=0.0) <= unit:
        return dict(weights)
    return [record for record, weight in weights.items() for _ in range(int(weight))]


def _declared(pair: Pair, name: str) -> Query:
    nodes = topological([measurement.plan for measurement in pair.measurements])
    return next(Query(node) for node in nodes if isinstance(node.operator, Source) and node.operator.source == name)


def _p_values(ready: Ready, answers: np.ndarray[Any, Any]) -> Iterator[float]:
    """Of what came out, a row a release."""
    order, sink = ready.order, ready.order.measurement.sink
    if isinstance(sink, NoisyChoice):
        yield p_value(Counter(int(np.argmax(row)) for row in answers), chances(ready))
    elif isinstance(sink, LadderSink):
        yield p_value(Counter(float(row[0]) for row in answers), chances(ready))
    else:
        noise = answers / float(sink.factor) - centres(ready)
        sizes = np.abs(noise)
        if isinstance(sink, GeometricCount):
            share = float(np.exp(-1 / order.scale))
            still = (1 - share) / (1 + share)
            yield float(stats.binomtest(int((np.rint(sizes) == 0).sum()), sizes.size, still).pvalue)
        else:
            spread = float(stats.gamma(sizes.size).cdf(sizes.sum() / order.scale))
            yield 2 * min(spread, 1 - spread)
            yield float(stats.kstest(noise.ravel(), stats.laplace(scale=order.scale).cdf).pvalue)
