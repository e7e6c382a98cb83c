"""What `ledger.sqlite` was paid for: releases made when a bill counted paths, and choices cost twice their noise.

The ledger and `released.json` were written by the code that billed so, with this file run as a program. Running it with
today's code would make a ledger of today, which tests nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import wpinq as wp
from wpinq import functions as F

AGES = wp.source("ages", int)
PAIRS = wp.source("pairs", src=int, dst=int, facts=["unit_weights"])
DATA = {"ages": [23, 25, 31, 31, 38, 44, 47, 52, 60, 71], "pairs": [(1, 2), (2, 3), (1, 3), (4, 3), (4, 4)]}
BUDGET = 100
HERE = Path(__file__).parent


def measurements() -> dict[str, wp.Measurement]:
    """Every kind of release: over public keys, key by key, on a lattice, of parts, and choices."""
    everyone = AGES.group_by(lambda age: 0, lambda ages: F.count(ages)).select(lambda group: group.key)
    meeting = PAIRS.join(PAIRS, lambda x: x.dst, lambda y: y.dst, lambda x, y: (x.src, y.src))
    parts = AGES.partition(lambda age: age // 10, [2, 3])
    return {
        "a count": AGES.select(lambda age: age // 10).noisy_count(0.5, over=range(2, 8)),
        "a count that moves by half": everyone.noisy_count(0.5, over=[0]),
        "a count that moves by half, key by key": everyone.noisy_count(0.25),
        "a count of pairs": meeting.noisy_count(0.5, over=[(1, 2), (1, 4)]),
        "a count on a lattice": PAIRS.select(lambda pair: pair.dst).geometric_count(0.5, over=[1, 2, 3]),
        "one part": parts[2].select(lambda age: age % 10).noisy_count(0.5, over=[3, 5]),
        "another part": parts[3].noisy_count(0.75, over=[31, 38]),
        "a choice of a part": parts[3].median(0.25, [31, 35, 38]),
        "the most common": AGES.most_common(0.5, [23, 31, 44]),
        "the most common of what moves by half": everyone.most_common(0.5, [0, 1]),
        "a quantile": AGES.quantile(epsilon=0.5, q="0.9", candidates=range(20, 80, 5)),
        "a median": AGES.median(0.5, range(20, 80, 5)),
    }


def main() -> None:
    """Write the ledger and what was answered."""
    path, found = HERE / "ledger.sqlite", {}
    with wp.Session(path) as session:
        for source in (AGES, PAIRS):
            session.protect(source, DATA[source.plan.operator.source], budget=BUDGET, version="1")
        for name, asked in measurements().items():
            released = session.release(asked)
            answers = released if isinstance(released, wp.Answers) else released.at([0])
            found[name] = {"scale": answers.scale, "values": list(answers.values)}
        spent = {name: str(session.spent(name)) for name in DATA}
    (HERE / "released.json").write_text(json.dumps({"spent": spent, "released": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
