"""What a hostile or careless query and hostile or careless data can reach: nothing."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import Symbol


def test_a_function_is_called_once_with_symbols_when_the_query_is_written(visits: wp.Query, secret: Any) -> None:
    seen: list[object] = []

    def curious(record: Any) -> Any:
        seen.append(record)
        return record.amount

    with wp.Session() as session:
        session.protect(visits, [(secret.word, secret.number)] * 50, budget=100)
        query = visits.select(curious)
        calls = len(seen)
        session.release(query.noisy_count(1, over=[1]))
        session.release(query.noisy_sum(1, lambda x: curious(F.record(amount=x)), 0, 1))
    assert calls == 1
    assert [type(record) for record in seen] == [Symbol, Symbol]


def test_a_symbol_holds_an_expression_and_refuses_the_rest(visits: wp.Query, session: wp.Session, secret: Any) -> None:
    kept: list[Any] = []
    visits.select(lambda v: (kept.append(v), v.amount)[1])
    (symbol,) = kept
    for act in (
        bool,
        iter,
        len,
        hash,
        int,
        float,
        str,
        repr,
        format,
        complex,
        list,
        tuple,
        dict,
        set,
        sorted,
        sum,
        print,
    ):
        with pytest.raises((wp.ExpressionError, TypeError)) as caught:
            act(symbol)
        assert not secret.in_text(str(caught.value))
    with pytest.raises(AttributeError):
        vars(symbol) if hasattr(symbol, "__dict__") else symbol._expr
    with pytest.raises(wp.ExpressionError):
        symbol.amount = 3
    inside = object.__getattribute__(symbol, "_Symbol__expr")
    assert isinstance(inside, Expr)
    reached: list[object] = [inside]
    for item in reached:
        if isinstance(item, Expr):
            fields = [getattr(item, name) for name in type(item).__slots__ if hasattr(item, name)]
            reached += [field for field in fields if field is not item and len(reached) < 200]
        assert not secret.in_text(str(item))


def test_a_subclass_of_symbol_is_asked_while_the_query_is_written_only(visits: wp.Query) -> None:
    calls: list[str] = []

    class Evil(Symbol):
        def __getattribute__(self, name: str) -> Any:
            calls.append(name)
            return object.__getattribute__(self, name)

        def __eq__(self, other: object) -> Any:
            calls.append("==")
            return True

        __hash__ = None  # as Python makes it for a class with __eq__

    query = visits.select(lambda v: Evil(object.__getattribute__(v.amount, "_Symbol__expr")))
    assert query == visits.select(lambda v: v.amount)
    with wp.Session() as session:
        session.protect(visits, [("a", 1)] * 10, budget=10)
        calls.clear()
        session.release(query.noisy_count(1, over=[1, 2]))
    assert calls == []


def test_an_object_that_acts_as_a_function_or_a_constant_does_not_get_into_the_plan(visits: wp.Query) -> None:
    class Late:
        def __call__(self, v: Any) -> Any:
            return v.amount

    assert visits.select(Late()) == visits.select(lambda v: v.amount)
    for make in (
        lambda: visits.where(lambda v: v.amount == Late()),
        lambda: visits.select(lambda v: Late()),
        lambda: visits.select(lambda v: lambda: v),
        lambda: visits.partition(lambda v: v.who, [Late()]),
        lambda: visits.select(lambda v: (x for x in [v])),
    ):
        with pytest.raises(wp.WpinqError):
            make()


def test_data_may_change_after_they_were_protected_without_effect() -> None:
    import numpy
    import pandas

    source = wp.source("rows", items=list[int], n=int)
    numbers = wp.source("numbers", n=int)
    rows = [([1, 2], 1), ([3], 2)]
    mapping = {((1, 2), 1): 1.0}
    frame = pandas.DataFrame({"n": [1, 2, 3]})
    array = numpy.array([[1], [2], [3]])
    for query, data, change in (
        (source, rows, lambda: (rows[0][0].append(9), rows.append(([5], 5)), rows.__setitem__(1, ([7], 7)))),
        (source, mapping, lambda: (mapping.clear(), mapping.update({((9,), 9): 1.0}))),
        (numbers, frame, lambda: frame.__setitem__("n", [9, 9, 9])),
        (numbers, array, lambda: array.fill(9)),
    ):
        with wp.Session() as session:
            session.protect(query, data, budget=100)
            name = next(iter(query.uses()))
            before = dict(session._protected[name].weights)
            change()
            assert session._protected[name].weights == before


def test_an_engine_cannot_change_what_is_protected(visits: wp.Query) -> None:
    from wpinq.engines import reference

    with wp.Session() as session:
        session.protect(visits, [("a", 1)], budget=100)
        outputs = reference.evaluate(visits.plan, {"visits": session._protected["visits"].weights})
        outputs.clear()
        assert session._protected["visits"].weights == {("a", 1): 1.0}


def test_nothing_public_of_a_session_gives_the_data(session: wp.Session, secret: Any) -> None:
    for name, value in inspect.getmembers(session):
        if not name.startswith("_"):
            assert inspect.ismethod(value), name
    assert not secret.in_text(repr(inspect.getmembers(session)))


def test_a_plan_that_lies_about_types_is_refused(session: wp.Session) -> None:
    """A function that is applied to other values than it was typed for would fail on some records and not on others."""
    import json

    from wpinq.plan.format import plan_from_json, plan_to_json

    source = wp.source("maybe", int | None)
    honest = json.dumps(plan_to_json(source.where(lambda x: x < 5).plan))
    declaration, separator, function = honest.partition('"operator": "Where"')
    lies = [
        declaration + separator + function.replace(', "nullable": true', ""),
        declaration + separator + function.replace(', "nullable": true', "", 1),
        declaration + separator + function.replace('"int"', '"str"'),
        declaration.replace(', "nullable": true', "") + separator + function,
    ]
    for lie in lies:
        assert lie != honest
        with pytest.raises(wp.WpinqError):
            plan_from_json(json.loads(lie))
    listed = wp.source("lists", list[int])
    honest = json.dumps(plan_to_json(listed.select(lambda r: F.map(r, lambda x: x + 1)).plan))
    inner = honest.rindex('"lambda": [["x", {"scalar": "int"')
    lie = honest[:inner] + honest[inner:].replace('"int"', '"str"', 1)
    assert lie != honest
    with pytest.raises(wp.WpinqError):
        plan_from_json(json.loads(lie))
