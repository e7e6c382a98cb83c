"""What is made by hand is not believed: datasets in an engine's own form, pickled nodes, changed certificates."""

from __future__ import annotations

import copy
import pickle

import pytest

import wpinq as wp
from wpinq.columns.dataset import EngineDataset
from wpinq.engines.reference import Reference
from wpinq.plan.arithmetic import EXACT, FLOAT
from wpinq.plan.properties import plan_properties

NUMBERS = wp.source("numbers", int)


class _Elsewhere(EngineDataset):
    """A dataset that says that it is in some engine."""


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_dataset_in_an_engines_own_form_is_refused_before_the_debit(engine: str) -> None:
    forged = object.__new__(_Elsewhere)
    with wp.Session(engine=engine) as session:
        with pytest.raises(wp.SessionError, match="offered as they are"):
            session.protect(NUMBERS, forged, budget=1)
        with pytest.raises(wp.SessionError, match="not protected"):
            session.release(NUMBERS.noisy_count(epsilon=0.5, over=[1]))


def test_a_copied_node_is_built_anew() -> None:
    """Whatever digest a node was given, its copy has that of what it is."""
    honest = NUMBERS.where(lambda x: x > 0).plan
    forged = copy.copy(honest)
    object.__setattr__(forged, "digest", NUMBERS.concat(NUMBERS).plan.digest)
    for made in (copy.copy(forged), copy.deepcopy(forged), pickle.loads(pickle.dumps(forged))):
        assert made.digest == honest.digest


def test_a_certificate_cannot_be_changed() -> None:
    certificate = plan_properties(NUMBERS.concat(NUMBERS).plan)
    for found in (certificate.uses, certificate.steps, certificate.paths, certificate.sources):
        with pytest.raises(TypeError):
            found["numbers"] = 0


def test_the_reference_remembers_the_arithmetic_of_an_output() -> None:
    engine, data = Reference(), {"numbers": {1: 0.1, 2: 0.2, 3: 0.3}}
    plan = NUMBERS.select(lambda x: 0).plan
    rounded = engine.evaluate(plan, data, FLOAT, keys=[0])[0]
    exact = engine.evaluate(plan, data, EXACT, keys=[0])[0]
    assert isinstance(rounded, float)
    assert not isinstance(exact, float)
