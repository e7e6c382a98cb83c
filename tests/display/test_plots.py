"""Plots, by what they hold: positions, heights, ends and labels. Nothing needs a display."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import histograms as h
from wpinq.display.plots import plot_answers
from wpinq.errors import AnswersError, install
from wpinq.histograms.charts import plot_estimate
from wpinq.measure.answers import STAMP, Answers

people = wp.source("people", age=int, town=str)
DATA = {"people": [(30 + i % 7, "York" if i % 3 else "Leeds") for i in range(60)]}
ages = people.select(lambda p: p.age)
towns = people.select(lambda p: p.town)


def simulated(measurement: Any) -> Answers:
    return wp.simulate(measurement, DATA, seed=7)


def released(measurement: Any) -> Answers:
    """As a session releases them: without the stamp of a simulation."""
    found = simulated(measurement)
    return Answers(found.measurement, found.scale, found.values)


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def bars(axes: Any) -> np.ndarray:
    """The vertical bars of an error-bar plot: (x, low, high) of each."""
    (container,) = axes.containers
    (lines,) = container.lines[2]
    return np.array([[s[0, 0], s[0, 1], s[1, 1]] for s in lines.get_segments()])


def tick_labels(axes: Any) -> list[str]:
    axes.figure.canvas.draw()
    return [label.get_text() for label in axes.get_xticklabels()]


def draws(axes: Any) -> bool:
    stream = io.BytesIO()
    axes.figure.savefig(stream)
    return stream.getvalue().startswith(b"\x89PNG")


# answers


def test_answers_lie_at_their_keys_with_their_intervals() -> None:
    answers = released(ages.noisy_count(0.5, over=[36, 30, 33]))
    axes = plot_answers(answers, confidence=0.9)
    wanted = [[key, *answers.interval(key, 0.9)] for key in answers.keys]
    np.testing.assert_allclose(bars(axes), wanted)
    np.testing.assert_array_equal(axes.containers[0].lines[0].get_ydata(), answers.values)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "number of rows of people, 90 % interval")
    assert axes.get_title() == "NoisyCount(0.5)"
    assert draws(axes)


def test_answers_with_noise_on_a_lattice_have_the_intervals_of_that_noise() -> None:
    units = wp.source("units", int, facts=["unit_weights"])
    answers = wp.simulate(units.geometric_count(epsilon=0.5, over=[0, 1]), {"units": [0, 1]}, seed=1)
    wanted = [[key, *answers.interval(key, 0.9)] for key in answers.keys]
    np.testing.assert_allclose(bars(plot_answers(answers, confidence=0.9)), wanted)


def test_keys_that_are_no_numbers_stand_side_by_side() -> None:
    answers = released(towns.noisy_count(1, over=["York", "Leeds", "$a_$b"]))
    axes = plot_answers(answers)
    assert list(bars(axes)[:, 0]) == [0, 1, 2]
    assert tick_labels(axes) == ['"York"', '"Leeds"', r'"\$a_\$b"']
    assert axes.xaxis.get_major_formatter()(17, None) == ""
    assert draws(axes)


def test_records_are_named_by_their_fields() -> None:
    axes = plot_answers(released(people.noisy_count(1, over=[(30, "York"), (31, "Leeds")])))
    assert axes.get_xlabel() == "(age, town)"
    assert tick_labels(axes) == ['(30, "York")', '(31, "Leeds")']


def test_booleans_are_not_numbers() -> None:
    axes = plot_answers(released(people.select(lambda p: p.age > 32).noisy_count(1, over=[False, True])))
    assert tick_labels(axes) == ["false", "true"]


def test_of_many_names_every_answer_is_drawn_and_some_names_are_written() -> None:
    names = [f"town {i} " + "x" * 40 for i in range(100)]
    axes = plot_answers(released(towns.noisy_count(1, over=names)))
    assert len(bars(axes)) == 100
    written = tick_labels(axes)
    assert 10 <= len(written) <= 20
    assert written[0] == '"town 0 xxxxxxxxxxxxxxx…'


def test_an_average_is_one_point_with_its_own_interval() -> None:
    answers = released(people.noisy_average(1, lambda p: p.age, lower=0, upper=100))
    axes = plot_answers(answers)
    np.testing.assert_allclose(bars(axes), [[0, *answers.value_interval(0.95)]])
    assert tick_labels(axes) == ["mean"]
    assert axes.get_ylabel() == "mean of values from 0 to 100, 95 % interval"


def test_a_sum_is_called_a_sum() -> None:
    answers = released(people.noisy_sum(1, lambda p: p.age, lower=0, upper=100))
    axes = plot_answers(answers)
    assert axes.get_ylabel() == "sum of values from 0 to 100, 95 % interval"
    np.testing.assert_allclose(bars(axes)[:, 1:], [answers.value_interval(0.95)])


def test_counts_and_rescaled_counts_are_called_so() -> None:
    units = wp.source("units", int, facts=["unit_weights"])
    groups = units.group_by(lambda u: u % 2).select(lambda g: g.key)
    answers = wp.simulate(groups.noisy_count(1, over=[0, 1]), {"units": [0, 1]}, seed=1)
    axes = plot_answers(answers)
    assert axes.get_ylabel() == "number of groups of rows of units, each of\nweight 1/2, 95 % interval"
    np.testing.assert_allclose(bars(axes), [[key, *(2 * end for end in answers.interval(key))] for key in (0, 1)])
    edges = wp.source("edges", a=int, b=int, facts=["unit_weights"])
    for share, told in ((None, "; no interval was bought\n(interval_share)"), ("0.1", ", 95 % interval")):
        asked = wp.graphs.triangle_count(edges, 1, interval_share=share)
        axes = plot_answers(wp.simulate(asked, {"edges": [(0, 1), (1, 2), (2, 0)]}, seed=1))
        assert axes.get_ylabel() == f"number of triangles{told}"
        assert tick_labels(axes) == ["triangles"]


def test_simulated_answers_are_stamped_and_released_ones_are_not() -> None:
    count = ages.noisy_count(1, over=range(30, 37))
    assert texts(plot_answers(simulated(count))) == [STAMP]
    assert texts(plot_answers(released(count))) == []


@pytest.mark.parametrize("what", ["choice", "none", "number", "confidence", "axes"])
def test_what_cannot_be_drawn_is_refused(what: str) -> None:
    count = simulated(ages.noisy_count(1, over=[30]))
    calls = {
        "choice": lambda: plot_answers(simulated(towns.most_common(1, ["York", "Leeds"]))),
        "none": lambda: plot_answers(simulated(ages.noisy_count(1, over=[]))),
        "number": lambda: plot_answers(3.0),  # which is refused
        "confidence": lambda: plot_answers(count, confidence=1.0),
        "axes": lambda: plot_answers(count, axes=Figure()),
    }
    with pytest.raises(AnswersError):
        calls[what]()


# all of them

PLOTS: dict[str, Any] = {
    "answers": lambda axes=None: plot_answers(released(ages.noisy_count(1, over=[30])), axes=axes),
    "estimate": lambda axes=None: plot_estimate([1.0, 2.0], axes=axes),
}
every_plot = pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS.keys())


@every_plot
def test_every_plot_draws_on_the_axes_given_or_on_its_own(plot: Any) -> None:
    axes = Figure().add_subplot()
    assert plot(axes) is axes
    own = plot()
    assert own.figure is not axes.figure
    assert own.get_xlabel() and own.get_ylabel()


def test_no_plot_touches_pyplot() -> None:
    code = (
        "import sys, wpinq.histograms.charts as p; assert 'matplotlib' not in sys.modules;"
        "p.plot_estimate([2, 1, 1]).figure.savefig(sys.stdout.buffer);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    root = Path(wp.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b"\x89PNG")


@every_plot
def test_without_matplotlib_the_error_names_the_extra(plot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(AnswersError, match=re.escape(install("plots"))):
        plot()


# estimates


def test_an_estimate_is_drawn_with_interval_and_public_truth() -> None:
    estimate, lower, upper, truth = [3.0, -0.5, 11.0], [1.0, -2.0, 9.0], [5.0, 3.0, 13.0], [4, 0, 10]
    axes = plot_estimate(estimate, (lower, upper), truth)
    band, true_counts, counts = axes.patches
    edges = [-0.5, 0.5, 1.5, 2.5]
    for patch, values, baseline in ((band, upper, lower), (true_counts, truth, None), (counts, estimate, None)):
        data = patch.get_data()
        np.testing.assert_array_equal(data.values, values)
        np.testing.assert_array_equal(data.edges, edges)
        assert (data.baseline is None) == (baseline is None)
    np.testing.assert_array_equal(band.get_data().baseline, lower)
    assert legend(axes) == ["interval", "truth (public data)", "estimate"]
    assert draws(axes)


def test_a_bootstrap_is_labelled_as_one() -> None:
    strategy = h.Sorted(4)
    noisy = [1.0, 3.0, 2.5, 9.0]
    found = strategy.interval(noisy, epsilon=1, seed=3)
    axes = plot_estimate(strategy.infer(noisy), found)
    assert legend(axes) == ["interval (parametric bootstrap)", "estimate"]
    np.testing.assert_array_equal(axes.patches[0].get_data().values, found.upper)
    np.testing.assert_array_equal(axes.patches[0].get_data().baseline, found.lower)


def test_an_estimate_of_simulated_answers_is_stamped() -> None:
    strategy = h.Hierarchical(8)
    answers = simulated(strategy.measure(people, 1, bin=lambda p: p.age - 30))
    axes = plot_estimate(strategy.infer(answers), answers=answers)
    assert texts(axes) == [STAMP]
    assert axes.get_title() == "NoisyCount(1)"


@for_each(
    "arguments",
    [
        {"estimate": []},
        {"estimate": [1.0, float("nan")]},
        {"estimate": [[1.0], [2.0]]},
        {"estimate": "abc"},
        {"estimate": [1.0, 2.0], "truth": [1.0]},
        {"estimate": [1.0, 2.0], "interval": ([0.0], [3.0])},
        {"estimate": [1.0, 2.0], "interval": ([0.0, 3.0], [3.0, 2.0])},
        {"estimate": [1.0, 2.0], "interval": 3},
        {"estimate": [1.0, 2.0], "answers": [1.0, 2.0]},
    ],
    ids=["empty", "nan", "table", "text", "truth", "short", "upside down", "no pair", "no answers"],
)
def test_an_unfit_estimate_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(AnswersError):
        plot_estimate(**arguments)


def test_bars_of_listed_keys_reach_down_as_their_intervals_do() -> None:
    found = simulated(ages.noisy_count_above(2, range(1000), above=2))
    held = bars(plot_answers(found))
    assert len(held) > 7, "noise shows some absent ages too"
    for (x, low, high), key in zip(held, found.keys, strict=True):
        expected = found.interval(key)
        assert x == key
        assert high == pytest.approx(expected[1])
        assert low == pytest.approx(max(expected[0], 0.0)), "a bar without an end goes down to 0"
