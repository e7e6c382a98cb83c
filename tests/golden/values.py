"""Values of plans and measurements that must stay as they are: digests, stored words, bills, seeded draws."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import wpinq as wp
from wpinq.measure.measurement import measurement_to_json
from wpinq.noise.geometric import add_geometric
from wpinq.noise.laplace import add_laplace
from wpinq.noise.permute_and_flip import select
from wpinq.plan.format import plan_to_json

HERE = Path(__file__).parent
RECORDED = HERE / "golden.json"
PROGRAM = wp.parse((HERE / "programs.wpq").read_text(encoding="utf-8"), name="programs.wpq")
NEVER_SIMULATED = ("noisy_count_open",)  # its keys are asked for one by one


def data() -> dict[str, Any]:
    """Public data for every source of the programs."""
    day = datetime.date(2024, 1, 30)
    edges = [(i % 7, (3 * i + 1) % 7) for i in range(21)]
    pairs = {(i, j) for i in range(8) for j in range(i + 1, 8) if (i * j + i + j) % 3 != 1}
    people = [
        (f"{'abc'[i % 3]}n{i % 5}a", None if i % 4 == 0 else 7 * i % 90, ("north", "south", "west")[i * i % 3])
        for i in range(40)
    ]
    rest = [(Decimal(f"{i * 17 % 70}.{i % 10}5"), day + datetime.timedelta(days=i), "fm"[i % 2]) for i in range(40)]
    return {
        "edges": edges,
        "simple": sorted(pairs),
        "people": [(*left, *right) for left, right in zip(people, rest, strict=True)],
        "numbers": {0: 1, 1: 1, 2: 1, 3: 1, 500: 1},
        "other": {0: 0.5, 1: 2.25, 2: -1.0, 7: 3.5},
        "bits": [True] * 5 + [False],
        "reals": [0.5, 1.5],
        "visits": [{"user_id": who, "page": page, "day": day} for who, page in ((1, "home"), (1, "shop"), (2, "home"))],
        "baskets": [
            {"customer": who, "item": item, "price": 4.5} for who, item in ((1, "tea"), (1, "milk"), (2, "tea"))
        ],
    }


def words(value: Any) -> str:
    """The one way in which plain data are written here."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def short(text: str) -> str:
    """A digest of stored words that would be long."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def written(name: str, value: Any) -> str:
    """The statements of the text form, without the declarations of sources."""
    return " ".join(line.strip() for line in wp.unparse({name: value}).splitlines() if not line.startswith("source "))


def queries() -> Iterator[tuple[str, dict[str, Any]]]:
    """Digest, stored words, text, uses, stability, bill and weights of each query."""
    given = data()
    for name, query in PROGRAM.queries.items():
        weights = wp.evaluate(query, given, engine="reference")
        yield (
            f"query {name}",
            {
                "digest": query.plan.digest.hex(),
                "json": short(words(plan_to_json(query.plan))),
                "text": written("q", query),
                "stability": {source: str(bound) for source, bound in query.stability().items()},
                "uses": query.uses(),
                "bill": {source: str(Fraction(epsilon)) for source, epsilon in query.bill(1).items()},
                "weights": short(repr(sorted((repr(record), float(weight)) for record, weight in weights.items()))),
            },
        )


def measurements() -> Iterator[tuple[str, dict[str, Any]]]:
    """Digest, stored words, text, bill and seeded answers of each measurement."""
    given = data()
    for name, measurement in PROGRAM.measurements.items():
        stored = measurement_to_json(measurement)
        plan = stored.pop("plan")
        found = {
            "digest": measurement.digest.hex(),
            "plan": short(words(plan)),
            "json": words(stored) if len(words(stored)) < 400 else short(words(stored)),
            "text": written("m", measurement),
            "bill": {source: str(Fraction(epsilon)) for source, epsilon in wp.bill([measurement]).items()},
        }
        if name not in NEVER_SIMULATED:
            answers = wp.simulate(measurement, given, seed=7, engine="reference")
            held = answers.to_json()
            del held["plan"]
            found["answers"] = short(words(held))
            found["scale"] = answers.scale
            found["values"] = held["values"][:6]
        yield f"measurement {name}", found


def tables() -> Iterator[tuple[str, dict[str, Any]]]:
    """Text, bill, and digests of the measurements of each table and set of marginals."""
    for name, table in {**PROGRAM.tables, **PROGRAM.marginals}.items():
        yield (
            f"table {name}",
            {
                "digests": [one.digest.hex() for one in table.measurements],
                "text": written("t", table),
                "bill": {source: str(Fraction(epsilon)) for source, epsilon in wp.bill([table]).items()},
            },
        )


def draws() -> Iterator[tuple[str, Any]]:
    """What the mechanisms make of given bytes."""

    def given(seed: int) -> Any:
        return np.random.default_rng(seed).bytes

    scales = (0.01, 1.0, 3.5, 1e6)
    values = [0.0, 1.5, -2.25, 1e9]
    yield "draws of laplace", [float(x) for s in scales for x in add_laplace(np.array(values), s, given(1))]
    yield "draws of geometric", [x for s in scales for x in add_geometric([0, 5, -7, 10**12], s, given(2))]
    yield "draws of select", [select([0.0, 3.0, 2.5, -1.0], s, given(seed)) for s in scales for seed in range(8)]


def found() -> dict[str, Any]:
    """Every value by its name."""
    return {name: value for part in (queries, measurements, tables, draws) for name, value in part()}
