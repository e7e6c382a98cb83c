"""An operator or a primitive that an engine has no rule for is refused from the plan, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.display.explanation import gap
from wpinq.engines.contract import find_engine
from wpinq.engines.sql import compile
from wpinq.engines.sql.dialect import DUCKDB, STANDARD
from wpinq.engines.sql.duckdb import database
from wpinq.engines.sql.rules.lowering import RULES
from wpinq.engines.sql.rules.operators import relation_of
from wpinq.engines.sql.spark.dialect import SPARK
from wpinq.plan.operator import Operator
from wpinq.plan.operators import Shave

SQL = ["duckdb", "spark"]
TEXTS = wp.source("texts", str)


def forget_checks() -> None:
    """What was checked with a rule is not remembered without it, nor the other way round."""
    compile._compiled.cache_clear()
    compile._prefixes._cached.cache_clear()
    database._drafts._shut()
    for engine in SQL:
        find_engine(engine).check.cache_clear()


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    forget_checks()
    yield
    forget_checks()


@pytest.mark.parametrize("engine", SQL)
def test_a_primitive_without_a_rule_is_named(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = TEXTS.select(lambda text: F.find(text, "a")).plan
    assert gap(plan, engine) == ""
    forget_checks()
    monkeypatch.delitem(RULES, "find")
    assert "Select: the primitive 'find' has no rule in SQL" in gap(plan, engine)


@pytest.mark.parametrize("engine", SQL)
def test_an_operator_without_a_rule_is_named(engine: str) -> None:
    default: Any = relation_of.dispatch(Operator)
    rules = {operator: relation_of.dispatch(operator) for operator in relation_of.registry}
    try:
        relation_of.register(Shave)(default)
        assert "Shave: the operator has no rule in SQL" in gap(TEXTS.shave(1.0).plan, engine)
        with wp.Session(engine="duckdb") as session:
            session.protect(TEXTS, ["a"], budget=1)
            with pytest.raises(wp.PlanError, match=r"Shave: the operator has no rule"):
                session.release(TEXTS.shave(1.0).noisy_count(1))
            assert session.spent("texts") == 0
    finally:
        relation_of.register(Shave)(rules[Shave])


def test_what_is_written_for_duckdb_is_none_of_sparks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(STANDARD) <= set(DUCKDB.templates) & set(SPARK.templates)
    assert DUCKDB.templates.keys() == SPARK.templates.keys(), "each has a text for all"
    plan = TEXTS.select(lambda text: F.find(text, "a")).plan
    monkeypatch.delitem(SPARK.templates, "find")
    assert gap(plan, "duckdb") == ""
    assert "Select: there is no text for 'find' in the SQL of spark" in gap(plan, "spark")
