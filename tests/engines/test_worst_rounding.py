"""What each operator rounds on data made for it: never more than its constant, and near what its proof derives.

The constants are in `Operator.rounding_units`, their derivations in `docs/proofs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from random import Random

import duckdb
import pytest

from tests.support.parameters import for_each
from tests.support.roundings import ATTACKS, ratios, worst
from wpinq.engines import reference
from wpinq.engines.sql.duckdb.database import Database
from wpinq.plan.arithmetic import UNIT_ROUNDOFF
from wpinq.plan.operator import REGISTRY

TRIALS = 16

DERIVED = {
    "Select": (1, 1 + 2**-6 + 2**-18),
    "Concat": (1, 1 + 2**-6 + 2**-18),
    "Except": (1, 1 + 2**-6 + 2**-18),
    "Intersect": (0, 1 + 2**-6 + 2**-18),
    "Union": (0, 0),
    "Where": (0, 0),
    "Partition": (0, 0),
    "Shave, one width": (0, 0),
    "Shave, a rounded width": (2, 2),
    "SelectMany": (3, 2 + 2**-6 + 2**-18),
    "SelectMany, weighted": (3, 3 + 2**-6 + 2**-18),
    "GroupBy": (2, 2 + 2**-6 + 2**-18),
    "Shave, many widths": (1, 2 + 3 / 16),
    "Join": (4, 6.25 + 2**-6 + 2**-18),
    "Join, the least caps": (4, 6.25 + 2**-6 + 2**-18),
    "Join, one side far heavier": (4, 7.25 + 2**-6 + 2**-18),
}
"""What the pages of docs/proofs derive for the reference and for DuckDB, first order, in roundoffs."""


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


def test_every_operator_is_attacked() -> None:
    assert {name.partition(",")[0] for name in ATTACKS} == set(REGISTRY)
    assert DERIVED.keys() == ATTACKS.keys()


@for_each("name", ATTACKS, every=2)
def test_no_data_make_an_operator_round_more_than_its_constant(name: str, database: Database) -> None:
    constant, attack = ATTACKS[name].query.plan.operator.rounding_units(), ATTACKS[name]
    engines = {"reference": reference.evaluate, "duckdb": database.evaluate}
    for (engine, evaluate), derived in zip(engines.items(), DERIVED[name], strict=True):
        found = worst(name, evaluate, TRIALS)
        assert attack.reached[engine] <= found <= derived, engine  # an attack that reaches nothing tells nothing
        assert derived <= constant, engine


def test_a_constant_that_is_too_small_would_be_found(database: Database) -> None:
    """One weight of many that is off by two last digits shows."""
    attack = ATTACKS["Select"]
    data = attack.draw(Random(0))
    found = dict(database.evaluate(attack.query.plan, data))
    found[7] += 2 * math.ulp(found[7])
    assert max(ratios(attack.query.plan, data, found)) > attack.query.plan.operator.rounding_units()


def test_duckdb_turns_integers_into_floats_in_two_halves() -> None:
    """What the derivations take of it: less than 2u of a number, and below 2^117 one roundoff and 2^11 steps."""
    rng = Random(4)
    drawn = [rng.getrandbits(rng.randint(1, 126)) | 1 for _ in range(4000)]
    drawn += [(rng.getrandbits(rng.randint(1, 62)) << 64) | (2**64 - 1 - rng.getrandbits(12)) for _ in range(4000)]
    numbers = [number * sign for number in drawn for sign in (1, -1)]
    there, back_again = "CAST(CAST(x AS HUGEINT) AS DOUBLE)", "CAST(CAST(x AS DOUBLE) / 1024 AS HUGEINT)"
    query = f"SELECT {there}, {back_again} FROM (SELECT unnest(?) AS x)"
    with duckdb.connect() as connection:
        found = connection.execute(query, [[str(number) for number in numbers]]).fetchall()
    for number, (turned, back) in zip(numbers, found, strict=True):
        off = abs(Fraction(turned) - number)
        assert off <= 2 * UNIT_ROUNDOFF * abs(number)
        assert abs(number) >= 2**117 or off <= UNIT_ROUNDOFF * abs(Fraction(turned)) + 2**11
        assert abs(back - Fraction(float(number)) / 1024) < 1  # a float becomes one of the integers next to it
