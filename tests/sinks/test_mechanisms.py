"""A sink is asked and not inspected; a release draws from the system's bytes alone, a simulation from seeded ones."""

from __future__ import annotations

import ast
import math
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

import wpinq as wp
from tests.support.sink_cases import whole
from tests.support.sinks import CASES
from wpinq.plan.node import topological
from wpinq.plan.operators import Source
from wpinq.sinks.sink import Sink

ROOT = Path(wp.__file__).parent
DRAWING = ("kernel", "noise", "sinks", "measure")
"""The packages between data and a released number."""


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def kinds_of(base: type) -> set[str]:
    """The names of a class and of all that derive from it."""
    return {base.__name__}.union(*map(kinds_of, base.__subclasses__()))


def names_in(node: ast.AST) -> set[str]:
    found = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    return found | {child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)}


def test_no_class_of_sinks_is_asked_for_outside_of_them() -> None:
    sinks = kinds_of(Sink)
    assert {"NoisyCount", "Choose", "LadderSink", "TriangleCount"} <= sinks
    for name, module in modules("."):
        if name.startswith("sinks"):
            continue
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and names_in(node.func) & {"isinstance", "issubclass", "register"}:
                assert not sinks & names_in(ast.Tuple(elts=node.args[-1:], ctx=ast.Load())), f"{name}:{node.lineno}"
            if isinstance(node, ast.Attribute) and node.attr == "name":  # a class, told apart by its name
                assert not sinks & names_in(node.value), f"{name}:{node.lineno}"


def test_the_scale_of_each_noise_is_written_once() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"1 \+ \S*slack", line.split("#")[0]) and not line.strip().startswith(("Exact", "source", "``"))
    ]
    assert set(found) == {"noise/geometric.py", "noise/laplace.py"}


# --- the source of random bytes ---------------------------------------------------------------------------------------


def test_the_kernel_draws_from_the_systems_bytes_and_takes_no_other_source() -> None:
    drawn = []
    for name, module in modules(*DRAWING):
        for node in ast.walk(module):
            # a ledger that waits draws a moment, and no number
            if isinstance(node, (ast.Import, ast.ImportFrom)) and not name.startswith("kernel/ledger/"):
                known = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not known & {"random", "numpy.random"}, name
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("environ", "getenv", "environb", "default_rng", "seed"), (
                    f"{name}:{node.lineno}"
                )
                if node.attr == "random":
                    assert names_in(node.value) & {"self", "noise"}, f"{name}:{node.lineno}"
                if node.attr == "urandom":
                    drawn.append(name)
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                sources = {argument.arg for argument in arguments} & {"random", "seed", "rng", "source_of_bytes"}
                assert not sources or not name.startswith("kernel"), f"{name}:{node.lineno}"
                assert (
                    not sources
                    or not node.args.defaults
                    or "random"
                    not in {argument.arg for argument in arguments[len(arguments) - len(node.args.defaults) :]}
                ), f"{name}:{node.lineno} has a source of its own"
    assert set(drawn) == {"kernel/noisy_evaluation.py"}


RECORDS = wp.source("numbers", int, weights=True)


def test_no_seed_reaches_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setenv("WPINQ_SEED", "0")
    found = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)
        with wp.Session(engine="reference") as session:
            session.protect(RECORDS, [1, 2, 3], budget=10)
            found.append(session.release(RECORDS.noisy_count(1, over=range(8))).values.tolist())
    assert not set(found[0]) & set(found[1])


ASKED = {f"{name} on {kind}": (case, kind) for name, case in CASES.items() for kind in case.kinds if kind != "persons"}


def check_same_draw(asked: wp.Measurement, data: object, monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = (wp.Query(node) for node in topological([asked.plan]) if isinstance(node.operator, Source))
    simulated = wp.simulate(asked, {"numbers": data}, seed=5, engine="reference")
    with wp.Session(engine="reference") as session:
        session.protect(source, data, budget=1000)
        with monkeypatch.context() as patched:
            patched.setattr(os, "urandom", np.random.default_rng(5).bytes)
            released = session.release(asked)
        assert isinstance(released, wp.Answers)
        assert released.keys == simulated.keys
        assert released.values.tolist() == simulated.values.tolist()
        assert released.scale == simulated.scale


@pytest.mark.parametrize("name", ASKED)
def test_a_simulation_and_a_release_make_the_same_of_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, kind = ASKED[name]
    rng = Random(name)
    pair = case.kinds[kind](rng)
    rows = [record for record, weight in pair.before.items() for _ in range(math.ceil(abs(weight)))]
    check_same_draw(case.ask(rng, pair.query), rows, monkeypatch)


@pytest.mark.parametrize("geometric", [False, True])
def test_so_they_do_of_counts_above_a_threshold(geometric: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = whole(Random(3))
    asked = pair.query.noisy_count_above(1, range(1000), above=3, geometric=geometric)
    check_same_draw(asked, [1, 2, 2, *[7] * 9], monkeypatch)
