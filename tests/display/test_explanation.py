"""What is said of a measurement before it runs is what it will be."""

import re

import pytest

import wpinq as wp
from wpinq.display.explanation import explain_plan

PEOPLE = wp.source("people", city=str, age=float, facts=["unit_weights"])
DATA = {"people": [("a", 30.0), ("b", 40.0)]}


@pytest.mark.parametrize(
    ("measurement", "noise"),
    [
        (PEOPLE.select(lambda p: p.city).noisy_count(0.5, over=["a"]), "Laplace"),
        (PEOPLE.select(lambda p: p.city).geometric_count(0.5, over=["a"]), "double-geometric"),
        (PEOPLE.noisy_sum(0.5, lambda p: p.age, lower=0, upper=100), "Laplace"),
        (PEOPLE.noisy_average(0.5, lambda p: p.age, lower=0, upper=100), "Laplace"),
    ],
)
def test_the_noise_that_is_told_is_that_of_the_sink(measurement: wp.Measurement, noise: str) -> None:
    said = explain_plan(measurement.plan, measurement.epsilon, sink=measurement.sink)
    found = re.search(rf"{re.escape(measurement.description)} adds {noise} noise of scale ([\d.]+)", said)
    assert found is not None, said
    assert float(found[1]) == pytest.approx(wp.simulate(measurement, DATA, seed=1).scale, rel=1e-8)


@pytest.mark.parametrize(
    ("measurement", "told"),
    [
        (PEOPLE.select(lambda p: p.city).most_common(0.5, ["a", "b"]), "by their weight, with noise of scale 2."),
        (
            PEOPLE.select(lambda p: p.age).quantile(epsilon=0.5, q="1/4", candidates=[1.0]),
            "to the quantile 1/4, with noise of scale 3.",
        ),
    ],
)
def test_a_choice_is_no_count(measurement: wp.Measurement, told: str) -> None:
    said = explain_plan(measurement.plan, measurement.epsilon, sink=measurement.sink)
    assert "Choose(0.5) picks one of the keys" in said
    assert told in said
    assert "NoisyCount" not in said
    assert "over=" not in said


def test_of_a_listing_it_says_which_keys_and_that_their_intervals_tell() -> None:
    asked = wp.source("rows", int).noisy_count_above(1, wp.integers(0, 999), above=5)
    said = explain_plan(asked.plan, asked.epsilon, sink=asked.sink, listing=asked.listing)
    assert "selected above 5, from the integers from 0 to 999" in said
    assert "the interval of a listed key" in said
    assert "over=" not in said


def test_numbers_that_no_float_holds_and_nobody_reads_are_told_by_their_size() -> None:
    """Python refuses to write integers of more than 4,300 digits: the bill of such a plan was a ValueError."""
    deep = wp.source("numbers", int)
    for _ in range(4500):
        deep = deep.concat(deep)
    assert "weight left about 2^4500" in explain_plan(deep.plan).splitlines()[0]
    assert "(Concat uses numbers about 2**4500 times): 0.5 x about 2**4500 = about 2**4499" in str(
        deep.bill(epsilon=0.5)
    )
