"""Averaging noise away: the same question asked in other words, and other questions that might share noise."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any, ClassVar

import pytest

import wpinq as wp
from tests.support.parameters import for_each

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def floats() -> wp.Query:
    return wp.source("floats", float)


def test_asking_again_gives_the_same_answer_however_it_is_asked(floats: wp.Query) -> None:
    import numpy

    with wp.Session() as session:
        session.protect(floats, [0.0, 1.0, 2.0], budget=1)
        handle = session.release(floats.noisy_count(1))
        for keys in (
            [1, 0],
            [1.0, 0.0],
            [-0.0, 1.0],
            [0.0, -0.0, 0, 1, 1.0],
            [numpy.float64(1.0), numpy.float64(-0.0)],
            [2.0, 1.0, 0.5, 0.0],
        ):
            answers = handle.at(keys)
            assert len(answers) == len({float(key) for key in keys})
            assert (answers[1.0], answers[0.0]) == (handle[1], handle[-0.0])
            again = session.release(floats.noisy_count("1.000", over=keys))
            assert list(again.values) == list(answers.values)
        assert session.spent("floats") == 1


@for_each("key", [True, "1", 1j, None.__class__, (1.0,), float("nan"), float("inf"), 2**53 + 1, 10**400])
def test_a_key_that_is_no_record_of_the_type_has_no_noise_of_its_own(floats: wp.Query, key: object) -> None:
    with wp.Session() as session:
        session.protect(floats, [1.0], budget=1)
        handle = session.release(floats.noisy_count(1))
        with pytest.raises(wp.PlanError):
            handle[key]


class Spy(str):
    """A key that would hear of it if it were compared with a record."""

    heard: ClassVar[list[object]] = []

    def __eq__(self, other: object) -> bool:
        self.heard.append(other)
        return True

    def __hash__(self) -> int:
        return hash("true record")


class Seven(int):
    def __eq__(self, other: object) -> bool:
        Spy.heard.append(other)
        return True

    def __hash__(self) -> int:
        return 7

    def __int__(self) -> int:
        Spy.heard.append("int")
        return 7


def test_keys_that_listen_hear_nothing() -> None:
    Spy.heard.clear()
    words, numbers = wp.source("words", str), wp.source("numbers", int)
    with wp.Session() as session:
        session.protect(words, ["true record"], budget=10)
        session.protect(numbers, [7, 8], budget=10)
        answers = session.release(words.noisy_count(1, over=[Spy("x"), Spy("true record")]))
        assert [type(key) for key in answers.keys] == [str, str]
        answers = session.release(numbers.noisy_count(1, over=[Seven(5)]))
        assert [type(key) for key in answers.keys] == [int]
        session.release(words.most_common(1, [Spy("y"), "z"]))
        session.release(words.where(lambda w: w == Spy("q")).noisy_count(1, over=["q"]))
    assert [heard for heard in Spy.heard if heard != "int"] == []


def test_data_that_listen_hear_nothing_after_they_were_read() -> None:
    class Loud(str):
        def __eq__(self, other: object) -> bool:
            heard.append(other)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    heard: list[object] = []
    words = wp.source("words", str)
    with wp.Session() as session:
        session.protect(words, [Loud("a"), "b"], budget=10)
        heard.clear()
        session.release(words.noisy_count(1, over=["a", "b"]))
        assert {type(record) for record in session._protected["words"].weights} == {str}
    assert heard == []


def test_other_plans_and_other_epsilons_share_no_noise() -> None:
    source = wp.source("numbers", int)
    wide = range(200)
    asked = [
        source.noisy_count(1, over=wide),
        source.noisy_count(2, over=wide),
        source.noisy_count("1.000000001", over=wide),
        source.where(lambda x: x >= -5).noisy_count(1, over=wide),
        source.select(lambda x: x + 0).noisy_count(1, over=wide),
        source.concat(source).noisy_count(1, over=wide),
    ]
    with wp.Session() as session:
        session.protect(source, [], budget=100)
        tables = session.release(asked)
        again = session.release(asked[0], fresh=True)
    values = [value for answers in [*tables, again] for value in answers.values]
    assert len(set(values)) == len(values)  # two draws of 64 bits agree by chance less than once in 1e12 runs
    for answers in [*tables[1:], again]:
        ratios = {round(a / b, 9) for a, b in zip(tables[0].values, answers.values, strict=True)}
        assert len(ratios) > 190  # nor is one the other scaled
        same_sign = sum(a * b > 0 for a, b in zip(tables[0].values, answers.values, strict=True))
        assert 56 < same_sign < 144  # Binomial(200, 1/2): outside less than 6 times in 1e10


def test_records_of_equal_bytes_in_other_types_share_no_noise() -> None:
    source = wp.source("rows", i=int, x=float, b=bool)
    asked = [
        source.select(lambda r: r.i).noisy_count(1, over=[1]),
        source.select(lambda r: r.x).noisy_count(1, over=[1.0]),
        source.select(lambda r: r.b).noisy_count(1, over=[True]),
        source.select(lambda r: (r.i,)).noisy_count(1, over=[(1,)]),
        source.select(lambda r: [r.i]).noisy_count(1, over=[[1]]),
        source.select(lambda r: 1).noisy_count(1),
        source.select(lambda r: 1.0).noisy_count(1),
        source.select(lambda r: True).noisy_count(1),
    ]
    with wp.Session() as session:
        session.protect(source, [], budget=100)
        values = [answers.values[-1] for answers in session.release(asked)]
    assert len(set(values)) == len(values)


FORKED = """
import os, struct, sys
import wpinq as wp
source = wp.source("numbers", int)
asked = source.noisy_count(1, over=range(5))
with wp.Session(sys.argv[1]) as session:
    session.protect(source, [1], budget=100)
    session.release(asked)  # whatever randomness is kept in the process is there before the fork
    child = os.fork()
    values = session.release(asked, fresh=True).values
    os.write(1, (" ".join(value.hex() for value in map(float, values)) + "\\n").encode())
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert session.spent("numbers") == 3
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is of POSIX")
def test_a_forked_process_draws_noise_of_its_own(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-c", FORKED, str(tmp_path / "ledger.db")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600).stdout
    first, second = (line.split() for line in said.splitlines())
    assert not set(first) & set(second)


def test_noise_does_not_come_from_seeded_generators() -> None:
    import random

    import numpy

    source = wp.source("numbers", int)
    values: set[Any] = set()
    with wp.Session() as session:
        session.protect(source, [1], budget=100)
        for _ in range(5):
            random.seed(1)
            numpy.random.seed(1)
            values.add(session.release(source.noisy_count(1, over=[1]), fresh=True).value)
            values.add(session.release(source.noisy_count(1, over=[1]), fresh=True).value)
    assert len(values) == 10
