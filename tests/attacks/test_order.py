"""The order of rows and the seed of hashes: low bits, row counts or noise that differ tell how the data lie.

The attack: float sums depend on their order, sets and dicts on the hash seed; whoever sees two answers, or the SQL that
ran, learns of the order, and of a neighbour's place in it. Outputs are functions of the dataset, to the last bit.
"""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
from typing import Any

import pytest

import wpinq as wp
from tests.attacks.conftest import OnEngine
from wpinq import functions as F

ROOT = pathlib.Path(__file__).parents[2]
EDGES = wp.source("edges", src=int, dst=int)
PATHS = EDGES.join(EDGES, lambda a: a.dst, lambda b: b.src, lambda a, b: (a.src, a.dst, b.dst))
QUERIES = {
    "one sum": EDGES.select(lambda e: 0),
    "groups": EDGES.group_by(lambda e: e.src, lambda g: F.count(g)),
    "pieces": EDGES.select(lambda e: e.src).shave(2e7).select(lambda p: p.index),
    "paths": PATHS.select(lambda a, b, c: (a, c)),
    "both": EDGES.concat(EDGES.select(lambda e: F.record(src=e.dst, dst=e.src))).select(lambda e: e.src),
}


def weights() -> list[tuple[Any, float]]:
    chance = random.Random(5)
    sizes = [1e8, 1.0, 0.1, 1e-9, 2.0**-30]
    return [((i % 7, i // 7), chance.choice([1, -1]) * chance.choice(sizes) * chance.random()) for i in range(49)]


@pytest.mark.parametrize("name", QUERIES)
def test_no_bit_depends_on_the_order_of_rows(engine: OnEngine, name: str) -> None:
    """Weights of all sizes, whose float sums differ with the order: forwards, backwards, sorted, shuffled."""
    rows, bits = weights(), set()
    for arranged in (rows, rows[::-1], sorted(rows), random.Random(1).sample(rows, len(rows))):
        found = engine(QUERIES[name], edges=dict(arranged))
        bits.add(frozenset((record, weight.hex()) for record, weight in found.items()))
    assert len(bits) == 1


SAID = """
import hashlib, sys, tempfile
import wpinq as wp
from tests.attacks.test_order import QUERIES, weights
from wpinq.engines.sql.compile import Plan
from wpinq.engines import reference
from wpinq.language import parse
told = []
for name, query in sorted(QUERIES.items()):
    told.append([statement.sql for statement in Plan(query.plan).program().statements])
    told.append(sorted((r, w.hex()) for r, w in wp.evaluate(query, {"edges": {}}, "duckdb").items()))
    told.append(list((r, w.hex()) for r, w in reference.evaluate(query.plan, {"edges": dict(weights())}).items()))
    told.append([query.plan.digest.hex(), query.explain(0.5)])
    told.append(str(parse("source numbers: int; var x = numbers.NoisyCount(1, over: range(0, 9));")))
with wp.Session() as session:
    for name in ("b", "a", "c"):
        session.protect(wp.source(name, str), {"x", "y", "z"}, budget=9)
    asked = [wp.source(name, str).noisy_count(0.5, over=["x", "y"]) for name in ("c", "a", "b")]
    told.append(str(session.bill(asked)))
    session.release(asked)
    told.append([(e.kind, e.sequence) for e in session._ledger.entries()])
print(hashlib.sha256(repr(told).encode()).hexdigest())
"""


def test_nothing_that_is_said_depends_on_the_seed_of_hashes() -> None:
    """Programs in SQL, bills, explanations, digests, printed programs, entries of the ledger: one in all."""
    said = set()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        command = [sys.executable, "-W", "ignore", "-c", SAID]
        said.add(
            subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        )
    assert len(said) == 1
    assert len(said.pop()) == 65


def test_entries_of_a_batch_do_not_tell_which_keys_there_are() -> None:
    """The order of answers is that of the keys as they were asked for, present or absent."""
    words = wp.source("words", str)
    keys = ["m", "z", "a", "k", "b"]
    for data in ([], ["a"], ["z", "m"], keys):
        with wp.Session() as session:
            session.protect(words, data, budget=10)
            answers = session.release(words.noisy_count(1, over=keys))
            assert answers.keys == tuple(keys)
            assert list(session.release(words.noisy_count(1)).at(keys[::-1]).keys) == keys[::-1]
