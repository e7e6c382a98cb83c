"""Many values at once: canonical forms and bytes are those of one value after the other."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import (
    KeyPairs,
    canonical_bytes,
    canonical_bytes_of,
    check_canonical,
    code_factors,
    normalize,
    normalize_all,
)
from wpinq.measure.measurement import check_domain
from wpinq.sinks import keys

PARTS: dict[Any, list[Any]] = {
    int: [0, 1, -5, 2**63 - 1],
    float: [0.0, -0.0, 1.5, 1e300],
    bool: [True, False],
    str: ["", "a", "ü", "a\0b"],
    int | None: [None, 0, 7],
    str | None: [None, "", "n"],
    list[int]: [(), (1, 2), (1,)],
}


def type_of(fields: dict[str, Any]) -> Type:
    return wp.source("data", **fields).plan.type


@for_each("seed", range(60))
def test_forms_and_bytes_are_those_of_each_value(seed: int) -> None:
    rng = Random(seed)
    kinds = [rng.choice(list(PARTS)) for _ in range(rng.randint(1, 4))]
    type_ = type_of({f"f{i}": kind for i, kind in enumerate(kinds)})
    values = [tuple(rng.choice(PARTS[kind]) for kind in kinds) for _ in range(rng.randint(1, 30))]
    for check in (normalize, check_canonical):
        expected = [check(value, type_) for value in values]
        found = normalize_all(values, type_, check)
        untold = list[int] in kinds or any(set(column) == {None} for column in zip(*values, strict=True))
        assert found is None if untold else repr(found) == repr(expected)
        assert list(check_domain(values, type_)) == list(dict.fromkeys(expected))
        assert canonical_bytes_of(expected, type_) == [canonical_bytes(value, type_) for value in expected]


def test_codes_of_pairs_are_heads_with_tails() -> None:
    people = wp.source("people", city=str | None, age=int)
    cases: list[tuple[Any, list[Any]]] = [
        (lambda p: p.city, ["Oslo", None, "", "Os"]),
        (lambda p: p.age, [7, -7]),
        (lambda p: p.city == "Oslo", [True, False, None]),
        (lambda p: (p.city, p.age), [("Oslo", 1), (None, 1), ("Oslo", 2)]),
        (lambda p: (p.age, p.age), [(7, 1), (7, 2)]),
        (lambda p: F.split(p.city, " "), [("Oslo",), ()]),
    ]
    for group, firsts in cases:
        plan = people.select(lambda p, group=group: (group(p), "x")).plan
        keys = KeyPairs((firsts, ["upper", "low", ""]), None)
        apart = code_factors(tuple(keys), plan.type)
        heads, tails = code_factors(keys, plan.type)
        assert len(heads) == len(firsts)
        assert [head + tail for head, tail in product(heads, tails)] == apart[0] == canonical_bytes_of(keys, plan.type)


def test_nested_and_plain_values() -> None:
    edges = wp.source("edges", src=int, dst=int)
    nested = edges.select(lambda e: ((e.src, "x"), e.dst)).plan.type
    values: list[Any] = [((i, "x"), i % 3) for i in range(5)]
    assert normalize_all(values, nested, normalize) == values
    assert canonical_bytes_of(values, nested) == [canonical_bytes(value, nested) for value in values]
    plain = wp.source("numbers", int).plan.type
    assert normalize_all([3, 1, 3], plain, normalize) == [3, 1, 3]
    nullable = plain.with_nullable()
    assert normalize_all([3, None], nullable, normalize) == [3, None]
    assert canonical_bytes_of([3, None], nullable) == [canonical_bytes(value, nullable) for value in (3, None)]
    assert canonical_bytes_of([], nested) == []


@pytest.mark.parametrize(
    "values", [[1, True], [1, 1.0], [(1, 2), (1,)], [(1, 2), None], [[1, 2]], [(True, 1)], [(2**63, 1)]]
)
def test_what_is_of_several_kinds_or_unfit_is_looked_at_one_by_one(values: list[Any]) -> None:
    type_ = wp.source("edges", src=int, dst=int).plan.type
    assert normalize_all(values, type_, normalize) is None
    with pytest.raises(PlanError, match="cannot be released"):
        check_domain([(1, 2), *(value for value in values if value != [1, 2]), "no"], type_)


def test_keys_are_looked_at_once_for_the_type_that_they_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked at stays so until it is put by hand beside another plan."""
    looked: list[object] = []
    monkeypatch.setattr(keys, "normalize_all", lambda *given: looked.append(given) or normalize_all(*given))
    asked = wp.source("numbers", int).noisy_count(1, over=[3, 1, 3])
    assert len(looked) == 1
    assert asked.checked.domain == (3, 1)
    assert len(looked) == 1
    assert replace(asked, domain=(3, 1)).checked.domain == (3, 1)
    assert len(looked) == 2
    with pytest.raises(PlanError, match="cannot be released"):
        assert not replace(asked, plan=wp.source("texts", str).plan).checked.domain
    with pytest.raises(PlanError, match="cannot be released"):
        assert not replace(asked, domain=(3, "1")).checked.domain
