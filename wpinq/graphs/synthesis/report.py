"""The report of a synthesis, as plain data: what was paid, what was asked of the chains, what came of it."""

from __future__ import annotations

import math
from typing import Any

from wpinq.graphs.synthesis.statistics import graph_statistics
from wpinq.graphs.synthesis.trust import trust_report
from wpinq.graphs.synthesis.workflow import SyntheticGraph
from wpinq.measure.bill import Bill

FORMAT, FORMAT_VERSION = "wpinq synthesis", 1


def report(graph: SyntheticGraph) -> dict[str, Any]:
    """All that is known of a synthetic graph, ready for `json.dump`.

    Every figure is of released answers or of synthetic graphs; nothing of the secret one is known here, its errors
    least of all.

    Parameters
    ----------
    graph : SyntheticGraph
        What `synthesize` gave.

    Returns
    -------
    dict
        `method`; `bill`, source to epsilon, and `bill_text`; `measurements`, each with epsilon, noise scale and number
        of keys; `simulated`, whether any answers protect nothing; `settings`, with the public seed and the number of
        steps that was done unless chains stopped before; `steps_an_edge`, those done by the best chain; `chains`, each
        with its engine, trace and the statistics of the graph it began from; `best_chain`; `noise_level`; `r_hat`, of
        chains, which does not tell how near the secret graph is; `graph`, the statistics of the synthetic graph; and
        `trust`, what the answers tell of those of the secret graph: `confidence`, `statistics`, each with an interval,
        or with `not_measured`, and in words, and `swamped`, those of which noise leaves nothing to be seen. Figures
        that are not numbers are null.

    Notes
    -----
    Privacy cost: none.
    """
    bill = Bill({name: table.measurement for name, table in graph.answers.items()})
    samples, statistics = graph.samples, graph.statistics()
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "method": graph.method.name,
        "bill": {source: str(cost) for source, cost in bill.items()},
        "bill_text": str(bill).splitlines(),
        "measurements": {
            name: {"epsilon": str(table.epsilon), "scale": table.scale, "keys": len(table)}
            for name, table in graph.answers.items()
        },
        "simulated": any(table.simulated for table in graph.answers.values()),
        "settings": graph.settings.to_json(),
        "steps_an_edge": samples.traces[samples.best].steps[-1] / max(len(graph.edges), 1),
        "chains": [
            {
                "engine": chain.note,
                "trace": {**_plain(trace.to_json()), "acceptance": trace.acceptance},
                "began_from": _plain(graph_statistics(seed)),
            }
            for chain, trace, seed in zip(samples.chains, samples.traces, graph.seeds, strict=True)
        ],
        "best_chain": samples.best,
        "noise_level": _plain(samples.noise),
        "r_hat": _plain(graph.r_hat()),
        "graph": _plain(statistics),
        "trust": trust_report(graph.trust, statistics),
    }


def _plain(value: Any) -> Any:
    """The same data without nan and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
