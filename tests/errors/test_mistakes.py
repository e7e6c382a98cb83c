"""Mistakes that users make: none passes in silence or in words of Python, and nine in ten messages say how to mend it.

`messages.txt` is what they say, word for word, so that a change of a message is read before it is kept. To write it:

    python -m tests.errors.test_mistakes
"""

from __future__ import annotations

import inspect
import os
import pickle
import tempfile
import traceback
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.errors.mistakes import MISTAKES
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.runtime.public import public
from wpinq.tables.aggregates import Estimate

SNAPSHOT = Path(__file__).with_name("messages.txt")


def said(mistake: str, names: dict[str, Any]) -> BaseException:
    """What a mistake raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wp.errors.WpinqWarning)
            exec(compile(mistake, "<user>", "exec"), dict(names))
    except BaseException as error:
        return error
    raise AssertionError("this is no mistake")


def snapshot(names: dict[str, Any]) -> str:
    """All mistakes with what they raise."""
    blocks = []
    for who, mistake, _ in MISTAKES:
        error = said(mistake, names)
        text = "\n    ".join(str(error).splitlines())
        blocks.append(f"{who}> {mistake}\n    {type(error).__name__}: {text}\n")
    return "\n".join(blocks)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    for library in ("networkx", "pandas", "polars"):
        pytest.importorskip(library)
    from tests.errors.cases import names

    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path_factory.mktemp("cases"))
        yield names()


@for_each("mistake, mending", [case[1:] for case in MISTAKES], ids=[case[1] for case in MISTAKES])
def test_a_mistake_is_answered_in_our_words(mistake: str, mending: str, names: dict[str, Any]) -> None:
    error = said(mistake, names)
    assert isinstance(error, wp.WpinqError), f"raw {type(error).__name__}: {error}"
    assert mending in str(error)
    assert error.__cause__ is None
    for word in ("NoneType", "object at 0x", "__", "wpinq.api", "wpinq.tables", "<lambda>"):
        assert word not in str(error)
    assert not _inside(error)


def _inside(error: BaseException) -> list[str]:
    """The frames of the package in a traceback."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [module for module in modules if module.partition(".")[0] in ("wpinq", "functools", "contextlib")]


def test_what_is_said_is_what_was_read(names: dict[str, Any]) -> None:
    expected = SNAPSHOT.read_text(encoding="utf-8").replace("<folder>", os.getcwd())
    assert snapshot(names) == expected


def test_there_are_enough_of_them_and_nine_in_ten_messages_mend() -> None:
    assert len(MISTAKES) == len({mistake for _, mistake, _ in MISTAKES}) >= 180
    assert {who for who, _, _ in MISTAKES} == {"pandas", "polars", "networkx", "SQL", "shell"}
    assert sum(bool(mending) for _, _, mending in MISTAKES) >= 0.9 * len(MISTAKES)


def test_a_refusal_of_data_keeps_no_row() -> None:
    class Row(tuple):
        pass

    row = Row(("Zanzibar", 1))
    with wp.Session() as session, pytest.raises(wp.SourceRejected) as caught:
        session.protect(wp.source("people", name=str, age=int), [row, (2, "x")], budget=1)
    assert not _inside(caught.value) and caught.value.__context__ is None
    own = [frame.f_code for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert own == [test_a_refusal_of_data_keeps_no_row.__code__]


def test_operators_of_python_and_what_was_in_hand_keep_no_frames_of_the_inside() -> None:
    estimate = Estimate(1.0, 0.0, 2.0)
    with wp.Session() as session:
        for refused in (lambda: estimate * estimate, lambda: 1 / estimate, lambda: pickle.dumps(session)):
            with pytest.raises(wp.WpinqError) as caught:
                refused()
            assert not _inside(caught.value)

    code = """
def careless(rows):
    try:
        rows[9]
    except IndexError:
        raise WpinqError("refused")
"""
    inside: dict[str, Any] = {"__name__": "wpinq.tried", "WpinqError": wp.WpinqError}
    exec(compile(code, "tried", "exec"), inside)
    with pytest.raises(wp.WpinqError) as caught:
        public(inside["careless"])([("Zanzibar", 1)])
    assert isinstance(caught.value.__context__, IndexError) and caught.value.__context__.__traceback__ is None


def test_development_mode_shows_the_inside_and_a_lambda_of_the_user_always_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = wp.source("people", city=str)

    def wrong(record: Any) -> Any:
        return F.lower(record.city, record.city)

    with pytest.raises(wp.errors.CallError) as caught:
        people.select(wrong)
    assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)][1:] == ["wrong"]
    flags = types.SimpleNamespace(flags=types.SimpleNamespace(dev_mode=True))
    monkeypatch.setattr("wpinq.runtime.public.sys", flags)
    with pytest.raises(wp.errors.CallError) as caught:
        people.select(wrong)
    assert _inside(caught.value)


def test_what_is_offered_in_the_wrong_place_is_not_quoted(names: dict[str, Any]) -> None:
    """A data frame in place of each argument of each public function and method."""
    frame = names["pd"].DataFrame({"city": ["Zanzibar"], "age": [4711]})
    fitting = {"source": names["people"], "measurement": names["listed"], "measurements": names["listed"], "seed": 1}
    modules = [wp, wp.graphs, wp.histograms, wp.mcmc]
    public = [getattr(module, name) for module in modules for name in dir(module)]
    public += [getattr(names[name], method) for name in ("people", "session") for method in dir(type(names[name]))]
    quoted = []
    for function in public:
        raised = isinstance(function, type) and issubclass(function, Exception)
        if raised or not callable(function) or getattr(function, "__name__", "_").startswith(("_", "close")):
            continue
        parameters = inspect.signature(function).parameters.values()
        required = [each for each in parameters if each.default is each.empty and each.kind.name[:3] != "VAR"]
        for wrong in parameters:
            given = [frame if each is wrong else fitting.get(each.name, 1) for each in required]
            if wrong.name == "self" or any(each.kind is each.KEYWORD_ONLY for each in required):
                continue
            try:
                function(*given, **({} if wrong in required or wrong.kind.name[:3] == "VAR" else {wrong.name: frame}))
            except wp.WpinqError as error:
                quoted += [(function, wrong.name)] * ("Zanzibar" in str(error) or "4711" in str(error))
            except Exception:
                continue
    assert not quoted


def test_keys_that_come_as_a_column_are_warned_of(names: dict[str, Any]) -> None:
    people, column, np = names["people"], names["frame"].city, names["np"]
    for ask in (
        lambda: people.by("city", keys=column.unique()),
        lambda: people.by("city", "age", keys={"city": column, "age": [31]}),
        lambda: names["cities"].noisy_count(1, over=column),
        lambda: names["cities"].most_common(1, candidates=names["pl"].Series(["Ulm"])),
    ):
        with pytest.warns(wp.errors.WpinqWarning, match="give public ones, as a list"):
            ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names["ages"].noisy_count(1, over=np.arange(10))
        names["cities"].noisy_count(1, over=["Ulm"])


def test_warnings_point_at_the_line_of_the_user(tmp_path: Path) -> None:
    code = """
import wpinq as wp
from wpinq import EdgeList

people = wp.source("people", name=str)
other = wp.source("other", name=str)
frame = [("a",)]
people.where(lambda p: p.name is None)  # line 8
people.noisy_sum(1, lambda p: 1 if p.name is None else 0, 0, 1)  # line 9
with wp.Session() as session:
    session.protect(people, "names.csv", budget=1)
    session.protect(other, "names.csv", budget=1)  # line 12
    edges = wp.source("edges", src=int, dst=int, unit="one undirected edge")
    session.protect(edges, EdgeList([(1, 2)], directed=True), budget=1)  # line 14
"""
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patched.chdir(tmp_path)
        Path("names.csv").write_text("name\na\n")
        exec(compile(code, "user.py", "exec"), {"__name__": "user"})
    assert {(warning.filename, warning.lineno) for warning in caught} == {("user.py", n) for n in (8, 9, 12, 14)}
    assert {warning.category for warning in caught} == {wp.errors.WpinqWarning}


def test_a_query_answers_what_python_and_notebooks_ask_of_it() -> None:
    people = wp.source("people", city=str)
    assert not hasattr(people, "head") and not hasattr(people, "_repr_html_nowhere") and hasattr(people, "where")
    assert people and bool(people)


if __name__ == "__main__":
    from tests.errors import cases

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        SNAPSHOT.write_text(snapshot(cases.names()).replace(os.getcwd(), "<folder>"), encoding="utf-8")
