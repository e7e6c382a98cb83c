"""What a lambda may do with a symbol, and what it is told when it does anything else."""

from __future__ import annotations

import copy
import functools
import math
import operator
import pickle
import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.errors import ExpressionError, WpinqError, WpinqWarning

PEOPLE = wp.source("people", name=str, age=int, height=float, tall=bool, tags=list[str], age2=int | None)
NUMBERS = wp.source("numbers", int)


def set_field(e: Any) -> Any:
    e.age = 3


def set_item(e: Any) -> Any:
    e["age"] = 3


def delete_field(e: Any) -> Any:
    del e.age


def unpack(e: Any) -> Any:
    name, *_ = e
    return name


def augment(e: Any) -> Any:
    e.age += 1
    return e


FORBIDDEN: list[tuple[Callable[[Any], Any], str]] = [
    (lambda e: 1 if e.age else 2, "use & | ~ and F.where(condition, a, b)"),
    (lambda e: e.tall and e.age > 3, "use & | ~"),
    (lambda e: e.tall or e.age > 3, "use & | ~"),
    (lambda e: not e.tall, "use & | ~"),
    (lambda e: 1 < e.age < 9, "use & | ~"),
    (lambda e: bool(e.tall), "use & | ~"),
    (lambda e: all([e.tall, e.tall]), "use & | ~"),
    (lambda e: min(e.age, 3), "use & | ~"),
    (lambda e: sorted([e.age, e.height]), "use & | ~"),
    (lambda e: e.age in (1, 2), "use & | ~"),
    (lambda e: (e.age, 1) == (2, 1), "use & | ~"),
    (lambda e: "a" in e.tags, "F.contains(text, part), or == on each field"),
    (lambda e: list(e), "use [0], [1]"),
    (lambda e: [tag for tag in e.tags], "F.map(list, function)"),  # noqa: C416 - as users write it
    (unpack, "use [0], [1]"),
    (lambda e: [*e.tags], "cannot be looped over"),
    (lambda e: sum(e.tags), "cannot be looped over"),
    (lambda e: len(e.tags), "use F.count(x) or F.length(x)"),
    (lambda e: list(reversed(e.tags)), "has no len()"),
    (lambda e: hash(e.age), "return it from the lambda"),
    (lambda e: {e.age: 1}, "cannot be hashed"),
    (lambda e: {e.age}, "cannot be hashed"),
    (lambda e: {1: "a"}[e.age], "cannot be hashed"),
    (lambda e: int(e.height), "use F.cast(x, int)"),
    (lambda e: [1, 2][e.age], "use F.cast(x, int)"),
    (lambda e: range(e.age), "use F.cast(x, int)"),
    (lambda e: operator.index(e.age), "use F.cast(x, int)"),
    (lambda e: "%d" % e.age, "is not a number yet"),  # noqa: UP031 - as users write it
    (lambda e: math.trunc(e.height), "use F.cast(x, int)"),
    (lambda e: float(e.age), "use F.cast(x, float)"),
    (lambda e: complex(e.age), "use F.cast(x, float)"),
    (lambda e: math.sqrt(e.age), "functions of F instead of math"),
    (lambda e: math.isnan(e.height), "functions of F instead of math"),
    (lambda e: math.floor(e.height), "use F.floor(x)"),
    (lambda e: math.ceil(e.height), "use F.floor(x)"),
    (lambda e: round(e.height, 2), "F.bucket(x, width)"),
    (lambda e: str(e.age), "use F.cast(x, str)"),
    (lambda e: "%s" % e.name, "use F.cast(x, str)"),  # noqa: UP031 - as users write it
    (lambda e: f"{e.name}!", "build text with +"),
    (lambda e: f"{e.age:>3}", "build text with +"),
    (lambda e: "{}".format(e.name), "build text with +"),  # noqa: UP032 - as users write it
    (lambda e: repr(e.age), "q.explain()"),
    (lambda e: f"{e.age!r}", "q.explain()"),
    (lambda e: print(e.age), "use F.cast(x, str)"),  # noqa: T201 - as users write it
    (lambda e: pickle.dumps(e), "pickle the query"),
    (lambda e: copy.copy(e.age), "pickle the query"),
    (lambda e: copy.deepcopy(e.age), "pickle the query"),
    (set_field, "F.record(...)"),
    (set_item, "F.record(...)"),
    (delete_field, "F.record(...)"),
    (augment, "F.record(...)"),
    (lambda e: e.age(), "is not a function"),
    (lambda e: e.height**2, "write x * x"),
    (lambda e: 2**e.age, "write x * x"),
    (lambda e: divmod(e.age, 3), "write x // n and x % n"),
    (lambda e: divmod(7, e.age), "write x // n and x % n"),
    (lambda e: e.tall ^ e.tall, "write a != b"),
    (lambda e: e.age << 2, "has no bits"),
    (lambda e: e.age @ e.age, "has no bits"),
    (lambda e: np.sqrt(e.height), "Python numbers instead of numpy's"),
    (lambda e: np.add(e.height, 1), "use functions of F"),
    (lambda e: np.sum(e.tags), "use functions of F"),
    (lambda e: np.where(e.tall, 1, 2), "use functions of F"),
    (lambda e: np.array([e.age, e.age]), "use functions of F"),
    (lambda e: np.asarray(e), "use functions of F"),
    (lambda e: np.float64(2.0) * e.height, "Python numbers instead of numpy's"),
    (lambda e: e.height * np.int64(2), "a int64 cannot stand in an expression"),
    (lambda e: e.name[0], "use F.substring(text, start, length)"),
    (lambda e: e.name[0:2], "use F.substring(text, start, length)"),
    (lambda e: e.tags[0:2], "a slice cannot stand"),
    (lambda e: e.name.upper(), "`e.name` is of type str, which has no field 'upper'"),
]


@for_each("number", range(len(FORBIDDEN)))
def test_what_only_a_value_can_do_is_refused_with_the_fix(number: int) -> None:
    function, fix = FORBIDDEN[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WpinqWarning)
        with pytest.raises(ExpressionError) as caught:
            PEOPLE.select(function)
    assert fix in str(caught.value)
    assert str(caught.value).startswith("Select, function: ")


class Thing:
    """Anything that is no value."""


ILL_TYPED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda e: e.nam, "`e` has no field 'nam'; it has name, age, height, tall, tags, age2"),
    (lambda e: e[9], "has fields [0] to [5]"),
    (lambda e: e[True], "the index must be one of them"),
    (lambda e: e[e.age], "the index must be one of them"),
    (lambda e: e.age.x, "`e.age` is of type int, which has no field 'x'"),
    (lambda e: e.age + e.name, "in `e.age + e.name`"),
    (lambda e: e.age + e.tall, "arithmetic takes int or float, not bool, in `e.age + e.tall`"),
    (lambda e: e.name * 2, "arithmetic takes int or float, not str, in `e.name * 2`"),
    (lambda e: e.tall / 2, "/ takes numbers, not bool, in `e.tall`"),
    (lambda e: e.height // 2, "use F.floor(a / b)"),
    (lambda e: e.height % 2, "// and % take integers"),
    (lambda e: -e.name, "arithmetic takes int or float"),
    (lambda e: ~e.age, "logic takes bool, not int"),
    (lambda e: e.age & 1, "logic takes bool, not int"),
    (lambda e: e.tall | e.age, "logic takes bool, not int"),
    (lambda e: e.age == e.name, "cannot compare int with str: "),
    (lambda e: e.tall == 1, "cannot compare bool with int"),
    (lambda e: (e.age, 1.0) == e, "cannot compare (name: str"),
    (
        lambda e: F.record(a=e.age, b=1) == F.record(a=e.age, b=1.0),
        "cannot compare (a: int, b: int) with (a: int, b: float)",
    ),
    (lambda e: F.record(a=e.age) < F.record(b=e.age), "cannot order"),
    (lambda e: e.tags < e.tags, "cannot order list[str] and list[str]"),
    (lambda e: e.name < e.age, "cannot order str and int"),
    (lambda e: F.where(e.age, 1, 2), "a condition must be bool"),
    (lambda e: F.where(e.tall, 1, "a"), "both branches need one type, got int and str"),
    (lambda e: F.cast(e.tall, float), "can be cast to float, not bool, in `to_float(e.tall)`"),
    (lambda e: F.cast(e.height, str), "can be cast to str"),
    (lambda e: F.cast(e.tags, int), "can be cast to int"),
    (lambda e: F.cast(e.age, bool), "cast goes to int, float, str"),
    (lambda e: F.lower(e.age), "expected str, not int, in `lower(e.age)`"),
    (lambda e: F.find(e.name, 1), "expected str, not int"),
    (lambda e: F.length(e.age), "expected a list, not int"),
    (lambda e: F.count(e.name + 1), "in `e.name + 1`"),
    (lambda e: F.element(e.name, 0), "use F.substring(text, start, length)"),
    (lambda e: F.element(e.tags, "a"), "an index must be int"),
    (lambda e: F.range(0, e.age, limit=e.age), "must be an integer written in the query"),
    (lambda e: F.range(0, e.age, limit=-1), "at least 0"),
    (lambda e: F.range(0, e.age, limit=10**9), "between 0 and 1,000,000"),
    (lambda e: F.range(0, e.height, limit=3), "a range takes integers, not float"),
    (lambda e: F.map(e.age, lambda x: x), "map with a function takes a list, not int"),
    (lambda e: F.map(e.tags, lambda x: x + 1), "in `x + 1`"),
    (lambda e: F.map(e.tags, lambda x, y: x), "a lambda of 2 parameters needs a record of as many fields, not str"),
    (lambda e: F.flatten(e.tags), "expected a list, not str"),
    (lambda e: F.sum(e.tags), "sum takes a list of numbers, not list[str]"),
    (lambda e: F.sum(e.age), "expected a list, not int"),
    (lambda e: F.min(e.age), "min takes a list, or two values or more"),
    (lambda e: F.min(e.tags, e.tags), "min of a list takes the list"),
    (lambda e: F.max(e.age, e.name), "cannot order int and str"),
    (lambda e: F.max([(1, 2)]), "min and max take a list of scalars"),
    (lambda e: F.sort(e), "sort takes a record whose fields have one type"),
    (lambda e: F.sort((1,) * 9), "at most 8 fields"),
    (lambda e: F.rotate(e.age), "expected a record, not int, in `rotate(e.age)`"),
    (lambda e: F.subsets(e.tags, e.age), "the size of the subsets must be an integer written in the query"),
    (lambda e: F.subsets(e.tags, 0), "at least 1"),
    (lambda e: F.subsets(e.tags, 17), "at most 16 elements"),
    (lambda e: F.subsets(e.age, 2), "expected a list, not int"),
    (lambda e: F.bucket(e.name, 2.0), "/ takes numbers, not str"),
    (lambda e: F.floor(e.age), "floor takes a float, not int"),
    (lambda e: F.weighted(e.age, e.name), "a weight must be a number, not str"),
    (lambda e: (F.weighted(e.age, 1),), "a record cannot hold weighted[int]"),
    (lambda e: F.where(e.tall, F.weighted(1, 1), None), "got weighted[int] and null"),
    (lambda e: [F.weighted(1, 1), None], "got weighted[int] and null"),
    (lambda e: F.element([F.weighted(1, 1)], e.age), "cannot be taken out of its list"),
    (lambda e: [1, "a"], "a list has one element type, got int and str"),
    (lambda e: F.record(_x=1), "the field name '_x' cannot be used"),
    (lambda e: {"a b": 1}, "the field name 'a b' cannot be used"),
    (lambda e: {1: e.age}, "its keys must be field names"),
    (lambda e: (), "a record needs a field"),
    (lambda e: (x for x in (1, 2)), "a generator cannot stand in an expression"),
    (lambda e: {1, 2}, "a set cannot stand"),
    (lambda e: np.array([1, 2]), "a ndarray cannot stand"),
    (lambda e: np.bool_(True), "cannot stand in an expression"),
    (lambda e: b"x", "a bytes cannot stand"),
    (lambda e: 1j, "a complex cannot stand"),
    (lambda e: Thing(), "a Thing cannot stand"),
    (lambda e: Thing, "a type cannot stand"),
    (lambda e: lambda x: x, "a function cannot stand"),
    (lambda e: math.nan, "a constant cannot be nan or infinity"),
    (lambda e: e.height * math.inf, "a constant cannot be nan or infinity"),
    (lambda e: e.age + 2**63, "a constant cannot be an integer outside 64 bits"),
    (lambda e: "\ud800", "a string with a lone surrogate"),
    (lambda *e: e[0].age, "no *args"),
    (lambda e, *, k: e.age, "no keyword-only ones"),
    (lambda: 1, "expected a lambda of 1 parameter(s), not 0"),
    (lambda e, f: e, "needs a record of as many fields"),
    (Thing, "expected a lambda of 1 parameter(s), not 0"),
    (5, "expected a function of a record"),
    ("e.age", "is no column name"),
]


@for_each("number", range(len(ILL_TYPED)))
def test_what_is_ill_typed_is_refused_when_written_and_named(number: int) -> None:
    function, message = ILL_TYPED[number]
    with pytest.raises(WpinqError) as caught:
        PEOPLE.select(function)
    assert message in str(caught.value)


def test_fields_may_have_any_name() -> None:
    names = ["count", "index", "sort", "record", "shave", "expr", "select", "lift", "keys", "items", "type", "class"]
    source = wp.source("s", dict.fromkeys(names, int))
    query = source.select(lambda e: (e.count, e.index, e.sort, e.record, e.shave, e.expr, e.lift, e.keys, e["class"]))
    row = tuple(range(len(names)))
    assert dict(wp.evaluate(query, {"s": [row]})) == {(0, 1, 2, 3, 4, 5, 7, 8, 11): 1.0}


def outputs(query: wp.Query, *records: Any) -> dict[Any, float]:
    return dict(wp.evaluate(query, {"numbers": records}, engine="reference"))


class Shift:
    def __init__(self, by: int) -> None:
        self.by = by

    def method(self, x: Any) -> Any:
        return x + self.by

    def __call__(self, x: Any) -> Any:
        return x - self.by


def test_functions_of_all_kinds_are_traced() -> None:
    def scaled(x: Any, factor: int, offset: int = 0) -> Any:
        return x * factor + offset

    assert outputs(NUMBERS.select(lambda x, k=3: x + k), 1) == {4: 1.0}
    assert outputs(NUMBERS.select(functools.partial(scaled, factor=10)), 1) == {10: 1.0}
    assert outputs(NUMBERS.select(functools.partial(scaled, factor=10, offset=1)), 1) == {11: 1.0}
    assert outputs(NUMBERS.select(Shift(5).method), 1) == {6: 1.0}
    assert outputs(NUMBERS.select(Shift(5)), 1) == {-4: 1.0}
    assert outputs(NUMBERS.select(operator.neg), 1) == {-1: 1.0}
    assert outputs(NUMBERS.select(lambda x, **named: x), 1) == {1: 1.0}
    assert outputs(NUMBERS.select(lambda x: sum([x, x, 1])), 1) == {3: 1.0}
    assert outputs(NUMBERS.select(lambda x: np.float64(0.5)), 1) == {0.5: 1.0}


def test_a_named_tuple_is_a_record_with_its_names() -> None:
    path = namedtuple("path", "a b")
    query = NUMBERS.select(lambda x: path(x, x + 1)).select(lambda p: p.b)
    assert outputs(query, 1) == {2: 1.0}


def test_a_lambda_of_several_parameters_takes_the_fields() -> None:
    pairs = wp.source("pairs", a=int, b=int)
    assert pairs.select(lambda a, b: a + b) == pairs.select(lambda p: p.a + p.b)


def test_the_errors_of_the_lambda_are_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        NUMBERS.select(lambda x: 1 // 0)
    with pytest.raises(NameError):
        NUMBERS.select(lambda x: undefined_name)  # noqa: F821 - as users mistype it
    assert outputs(NUMBERS.select(lambda x: F.map([x], lambda y: x + y)), 1) == {(2,): 1.0}, "and leave no trace"


def test_a_lambda_is_called_once_and_never_with_a_record() -> None:
    seen: list[Any] = []
    query = NUMBERS.select(lambda x: seen.append(x) or x)
    outputs(query, 1, 2, 3)
    assert [type(x).__name__ for x in seen] == ["Symbol"]


def test_a_symbol_of_another_lambda_is_refused() -> None:
    kept: list[Any] = []
    NUMBERS.select(lambda x: kept.append(x) or x)
    with pytest.raises(ExpressionError, match="a symbol of another lambda"):
        PEOPLE.select(lambda e: kept[0])
    with pytest.raises(ExpressionError, match="a symbol of another lambda"):
        PEOPLE.select(lambda e: (F.map(e.tags, lambda t: kept.append(t) or t), kept[-1]))


def nested(x: Any, depth: int) -> Any:
    return F.map([x], lambda y: nested(y, depth - 1)) if depth else F.count(F.subsets([1] * 16, 2))


def test_lambdas_nest_as_deep_as_promised_and_no_deeper() -> None:
    assert outputs(NUMBERS.select(lambda x: F.count(nested(x, 39))), 1) == {1: 1.0}
    with pytest.raises(ExpressionError, match="nest deeper than 40"):
        NUMBERS.select(lambda x: F.count(nested(x, 41)))


def test_records_that_double_are_refused() -> None:
    def doubled(x: Any, make: Callable[[Any], Any]) -> Any:
        for _ in range(60):
            x = make(x)
        return x

    for make in (lambda x: (x, x), lambda x: F.record(a=x, b=x)):
        with pytest.raises(ExpressionError, match="1,000 fields"):
            NUMBERS.select(lambda x, make=make: doubled(x, make))
    with pytest.raises(ExpressionError, match="20,000,000 values"):
        NUMBERS.select(lambda x: doubled(x, lambda y: [y, y]))
    with pytest.raises(ExpressionError, match="20,000,000 values"):
        NUMBERS.select(lambda x: F.map(F.range(0, x, limit=10**6), lambda i: F.range(0, i, limit=10**6)))
    tower: list[Any] = []
    tower.append(tower)
    with pytest.raises(ExpressionError, match="64 deep"):
        NUMBERS.select(lambda x: tower)
    query = NUMBERS
    with pytest.raises(ExpressionError, match="64 deep"):
        for _ in range(100):
            query = query.shave(1.0)


def test_errors_about_shared_expressions_are_short() -> None:
    def doubled(x: Any) -> Any:
        for _ in range(60):
            x = x + x
        return x

    with pytest.raises(ExpressionError) as caught:
        NUMBERS.select(lambda x: doubled(x) & True)
    assert len(str(caught.value)) < 400


TRAPS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda e: F.where(e.age is None, 1, 2), "use F.is_null(x) or =="),
    (lambda e: F.where(e.age is not None, 1, 2), "use F.is_null(x) or =="),
    (lambda e: 1 if isinstance(e.age, int) else 2, "types are known from the schema"),
    (lambda e: 1 if type(e.age) is int else 2, "decided while the query is written"),
]


@pytest.mark.parametrize("number", range(len(TRAPS)))
def test_what_python_decides_silently_is_warned_of(number: int) -> None:
    function, message = TRAPS[number]
    with pytest.warns(WpinqWarning) as caught:
        PEOPLE.select(function)
    assert any(message in str(warning.message) for warning in caught)


def test_traps_are_seen_inside_partials_and_inner_lambdas_and_without_source() -> None:
    with pytest.warns(WpinqWarning, match="is_null"):
        PEOPLE.select(functools.partial(lambda e, k: F.where(e.age is None, k, 2), k=1))
    with pytest.warns(WpinqWarning, match="is_null"):
        PEOPLE.select(lambda e: F.map(e.tags, lambda t: t is None))
    with pytest.warns(WpinqWarning, match="tests identity, membership or a Python type"):
        PEOPLE.select(eval("lambda e: F.where(e.age is None, 1, 2)", {"F": F}))
    with pytest.warns(WpinqWarning, match="combine == with"), pytest.raises(ExpressionError):
        PEOPLE.select(lambda e: e.age in (1, 2))
