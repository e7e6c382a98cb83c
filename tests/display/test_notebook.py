"""What a notebook shows, in a real kernel: queries, bills, answers, rankings, plots; and names are never markup."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbclient
import nbformat
import numpy as np
import pytest

import wpinq as wp
from wpinq import graphs, histograms
from wpinq.display.explanation import MOST_STEPS, plan_html, plan_picture
from wpinq.display.html import TEMPLATES, interval_bar, render, share_bar
from wpinq.measure.answers import Answers

ROOT = Path(__file__).resolve().parents[2]
CELLS = {
    "query": (
        "import wpinq as wp\npeople = wp.source('people', town=str, age=int)\n"
        "towns = people.select(lambda p: p.town)\ntowns"
    ),
    "bill": "towns.bill(epsilon=0.5)",
    "answers": (
        "session = wp.Session(progress=True)\nsession.protect(people, [('York', 30)] * 9, budget=2)\n"
        "answers = session.release(towns.noisy_count(epsilon=0.5, over=['York', 'Hull']))\nanswers"
    ),
    "plot": "from wpinq.display.plots import plot_answers\nplot_answers(answers)",
    "ranking": "from wpinq import histograms\nhistograms.choose(histograms.Bins(8), epsilon=1)",
    "completion": (
        "table = session.release(people.by('town', keys=['York']).agg(n=wp.count(), epsilon=1))\n"
        "from IPython.core.completer import provisionalcompleter\n"
        "for text in ('session.', 'table.', 'table[\"York\"][\"n\"].', 'people.', 'wp.Session().'):\n"
        "    with provisionalcompleter():\n"
        "        print(*(found.text for found in get_ipython().Completer.completions(text, len(text))))"
    ),
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    folder = tmp_path_factory.mktemp("notebook")
    cells = [nbformat.v4.new_code_cell(code) for code in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    # a cache of its own: parso, by which names are completed, reads what another process has half written
    own = {"PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder), "XDG_CACHE_HOME": str(folder)}
    client.execute(env={**os.environ, **own})
    return {name: cell.outputs for name, cell in zip(CELLS, cells, strict=True)}


def result(outputs: list[Any]) -> dict[str, str]:
    (found,) = [output for output in outputs if output.output_type == "execute_result"]
    data: dict[str, str] = found.data
    return data


def test_a_query_shows_its_plan_as_a_picture(shown: dict[str, list[Any]]) -> None:
    drawn = result(shown["query"])["text/html"]
    assert "<svg" in drawn
    assert "Select" in drawn


@pytest.mark.parametrize("name", ["bill", "answers", "ranking"])
def test_tables_are_shown(name: str, shown: dict[str, list[Any]]) -> None:
    wanted = {"bill": "people: 0.5", "answers": "95 % interval", "ranking": "Expected squared error"}
    assert wanted[name] in result(shown[name])["text/html"]


def test_a_plot_shows_where_a_cell_ends_with_it(shown: dict[str, list[Any]]) -> None:
    assert "image/png" in result(shown["plot"])


def test_names_are_completed(shown: dict[str, list[Any]]) -> None:
    printed = "".join(output.text for output in shown["completion"] if output.get("name") == "stdout")
    wanted = ["protect release remaining", "to_pandas plot row", "estimate low high", "by where noisy_count", "release"]
    for line, names in zip(printed.splitlines(), wanted, strict=True):
        assert set(names.split()) <= set(line.split())


def test_a_release_with_a_bar_shows_nothing_but_steps_and_time(shown: dict[str, list[Any]]) -> None:
    printed = "".join(output.text for output in shown["answers"] if output.output_type == "stream")
    assert "Select" in printed
    assert not {word for word in printed.split() if word.isdigit()}
    assert "%" not in printed


EVIL = "<script>alert(1)</script>&\u202e\x1b[31m"


BOX = {
    "x": 0,
    "y": 0,
    "source": True,
    "root": True,
    **dict.fromkeys(("whole", "name", "used", "arguments", "type"), EVIL),
}
PICTURE = {"arrows": [], "width": 9, "height": 9, "box_width": 9, "box_height": 9}
MEASURED = {"sink": EVIL, "epsilon": EVIL, "answers": EVIL, "noise": EVIL, "proof": EVIL, "plan": [EVIL]}
MEASURED |= {"stability": {EVIL: [EVIL]}, "scale": None, "interval": None}
RELEASE = {
    "number": EVIL,
    "date": EVIL,
    "label": EVIL,
    "analyst": EVIL,
    "charges": {EVIL: 1},
    "measurements": [MEASURED],
}
STATEMENT = {
    "deployment": {
        "basic": {"publication_date": EVIL},
        "dp_variant": {
            "variant_name": EVIL,
            "data_domain": [{"source": EVIL, "declaration": EVIL, "data_version": EVIL}],
            "unprotected_quantities": EVIL,
        },
        "privacy_loss": [
            {
                "account": EVIL,
                "privacy_unit_details": EVIL,
                "privacy_parameters": {"epsilon": 1},
                "privacy_budget": None,
            }
        ],
        "deployment_model": {"model_name": EVIL, "trust_assumptions": EVIL, "release_type": EVIL},
        "implementation": {"composition": EVIL, "mechanisms": [RELEASE]},
    },
    "administrative": {
        "head": EVIL,
        "ledger_format": EVIL,
        "wpinq": EVIL,
        "included": [EVIL],
        "acts": [{"date": EVIL, "act": EVIL, "target": EVIL, "actor": EVIL}],
    },
}
HOSTILE: dict[str, dict[str, Any]] = {
    "answers.html": {"title": EVIL, "note": EVIL, "names": [EVIL], "rows": [[EVIL]], "numbers": (), "notes": [EVIL]},
    "bill.html": {"accounts": [(EVIL, [EVIL])]},
    "query.html": {"title": EVIL, "costs": EVIL, "picture": dict(PICTURE, boxes=[BOX]), "text": "", "reading": EVIL},
    "ranking.html": {"basis": EVIL, "names": [EVIL], "rows": [[EVIL]]},
    "session.html": {"balances": [[EVIL]], "events": [[share_bar(0.5, EVIL)]], "left_out": 0},
    "text.html": {"text": EVIL},
    "statement.html": STATEMENT,
    "synthetic_graph.html": {"method": EVIL, "rows": [[EVIL, interval_bar(0, 1, 2, (0, 2), EVIL)]], "warning": EVIL},
    "synthetic_rows.html": {
        "stamp": EVIL,
        "size": EVIL,
        "attributes": EVIL,
        "total": EVIL,
        "picture": EVIL,
        "exactness": [[EVIL]],
        "measured": [[EVIL]],
        "report": {"kind": EVIL, "bill_text": [EVIL], "notes": [EVIL], "may": [EVIL], "may_not": [EVIL]},
    },
}


@pytest.mark.parametrize("page", sorted(path.name for path in TEMPLATES.glob("*.html") if path.name != "parts.html"))
def test_a_hostile_label_is_text_in_every_page(page: str) -> None:
    made = render(page, **HOSTILE[page])
    assert "&lt;script&gt;" in made
    assert not any(mark in made for mark in ("<script", "\u202e", "\x1b"))


def test_keys_units_and_readings_of_others_are_escaped() -> None:
    people = wp.source("people", town=str, age=int, unit="<i>one</i>")
    query = people.select(lambda p: p.town).read_as("<u>towns</u>")
    answers = wp.simulate(query.noisy_count(1, over=[EVIL]), {"people": [("York", 1)]}, seed=1)
    for made in (answers._repr_html_(), query._repr_html_(), query.bill(1)._repr_html_()):
        assert not any(mark in made for mark in ("<script", "<i>", "<u>", "\u202e", "\x1b"))


def test_texts_are_shown_line_by_line_and_results_by_name_one_after_another() -> None:
    people = wp.source("people", town=str, age=int)
    count = people.select(lambda p: p.town).noisy_count(1, over=[EVIL])
    table = people.by("town", keys=[EVIL]).agg(n=wp.count(), epsilon=1)
    batch = wp.Batch({EVIL: count, "table": table})
    held: list[Any] = [count, table, batch, *(each.accuracy() for each in (count, table, batch))]
    held += [each.explain() for each in (people, count, table, batch)]
    for each in held:
        made = each._repr_html_()
        assert made.startswith("<pre") and "object at 0x" not in made
        assert not any(mark in made for mark in ("<script", "\u202e", "\x1b"))
        assert len(repr(each)) < 3000 and "Expected(" not in repr(each)
    assert repr(people.explain()) == str(people.explain())
    with wp.Session() as session:
        session.protect(people, [("York", 30)], budget=10)
        found = session.release({EVIL: count, "table": table, "keys": people.noisy_count(1)})
        assert isinstance(found, dict) and list(found) == [EVIL, "table", "keys"]
        made = found._repr_html_()
        assert made.count("<table") == 2 and "&lt;script&gt;" in made and "<script" not in made


def test_answers_beyond_the_first_are_counted_and_all_intervals_fit_the_bars() -> None:
    source = wp.source("numbers", int)
    answers = wp.simulate(source.noisy_count(1, over=range(200)), {"numbers": [1, 2]}, seed=1)
    assert "… 150 more" in answers._repr_html_()
    assert "SIMULATED" in answers._repr_html_()


def test_a_bar_without_a_lower_end_leaves_the_others_their_scale() -> None:
    """A weight just above the threshold of a listing may have no lower end, where weights may be negative."""
    listed = wp.source("numbers", int, weights=True).noisy_count_above(1, range(3), above=3)
    answers = Answers(replace(listed, domain=(0, 1, 2)), 1.0, np.array([3.01, 30.0, 90.0]))
    assert [row.low == -math.inf for row in answers.rows(0.95)] == [True, False, False]
    places = [float(circle.get("cx", "")) for circle in ElementTree.fromstring(answers._repr_html_()).iter("circle")]
    assert places[0] < places[1] < places[2]


def test_a_picture_has_a_box_for_each_step_and_an_arrow_for_each_input() -> None:
    edges = wp.source("edges", src=int, dst=int)
    plan = graphs.triangles_by_degree(graphs.symmetrize(edges)).plan
    picture = ElementTree.fromstring(plan_html(plan))
    assert len(list(picture.iter("rect"))) == 12
    assert len(list(picture.iter("path"))) == 16
    places = {(box.get("x"), box.get("y")) for box in picture.iter("rect")}
    assert len(places) == 12


def test_a_plan_of_very_many_steps_is_shown_as_text() -> None:
    query = wp.source("numbers", int)
    for _ in range(MOST_STEPS + 1):
        query = query.select(lambda x: x + 1)
    assert plan_picture(query.plan) is None
    assert "<pre>" in query._repr_html_()


def test_a_table_by_name_shows_its_rows_and_intervals() -> None:
    people = wp.source("people", town=str, age=int, unit="one person")
    asked = people.by("town", keys=["York", EVIL]).agg(n=wp.count(), age=wp.median("age", range(9)), epsilon=1)
    shown = wp.simulate(asked, {"people": [("York", 3)] * 9}, seed=1)._repr_html_()
    assert "SIMULATED" in shown
    assert shown.count("<tr") == 3
    assert shown.count("<svg") == 4
    assert not any(mark in shown for mark in ("<script", "\u202e", "\x1b"))


def test_a_session_shows_budgets_and_history_and_labels_as_text() -> None:
    people = wp.source("people", town=str, unit="<i>one</i>")
    with wp.Session() as session:
        session.protect(people, [("York",)] * 7, budget=2)
        session.release(people.select(lambda p: p.town).noisy_count(0.5, over=["York"]), label="<b>first</b>")
        shown = session._repr_html_()
    assert "spent 0.5 of 2" in shown
    assert "&lt;b&gt;first" in shown
    assert "<b>first" not in shown
    assert "closed" in session._repr_html_()


def test_a_ranking_says_its_best_in_one_line() -> None:
    ranking = histograms.choose(histograms.Bins(8), epsilon=1)
    assert repr(ranking).count("\n") == 0
    assert ranking._repr_html_().lstrip().startswith("<div")
