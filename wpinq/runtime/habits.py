"""Habits of pandas, polars and SQL that go wrong here, met with what to write instead."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, ParamSpec, TypeVar

from wpinq.errors import PlanError

P = ParamSpec("P")
T = TypeVar("T")


class UnknownMethod(PlanError, AttributeError):
    """A query has no such method: it is an AttributeError too, so that `hasattr` says so."""


def told(how: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function that answers a call whose arguments are missing, unknown or in the wrong place by `how` to write it.

    Examples
    --------
    >>> @told("half(of=8)")
    ... def half(*, of):
    ...     return of / 2
    >>> half(8)
    Traceback (most recent call last):
        ...
    wpinq.errors.PlanError: half: too many positional arguments. Write half(of=8)
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature, name, refusal = inspect.signature(function), function.__name__, PlanError

        def checked(*args: Any, **named: Any) -> Any:
            try:
                return function(*args, **named)
            except TypeError:  # of the call, which then has done nothing, or of what it did
                try:
                    signature.bind(*args, **named)
                except TypeError as reason:
                    complaint = f"{name}: {reason}. Write {how}"
                else:
                    raise
            raise refusal(complaint)

        # In the module of the function, so that whatever looks for what a module defines finds it there.
        at_home = types.FunctionType(
            checked.__code__,
            function.__globals__,
            name,
            None,
            checked.__closure__,
        )
        return functools.update_wrapper(at_home, function)

    return decorate


def methods_told(calls: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """A class whose methods, by name, are `told` how they are called."""

    def decorate(cls: type[T]) -> type[T]:
        for name, how in calls.items():
            setattr(cls, name, told(how)(getattr(cls, name)))
        return cls

    return decorate


QUERY_CALLS = {
    "select": 'select("city"), select("city", "age"), select(lambda r: r.city)',
    "with_columns": 'with_columns(old=wp.col("age") > 60)',
    "by": 'by("city", keys=["Ulm", "York"]).agg(rows=wp.count(), epsilon=0.1)',
    "agg": "agg(rows=wp.count(), epsilon=0.1)",
    "marginals": 'marginals(["sex", wp.attribute("age", bins=[0, 18, 65])], order=2, epsilon=1)',
    "count": "count(epsilon=0.1)",
    "where": "where(lambda r: r.age > 30)",
    "filter": "filter(lambda r: r.age > 30)",
    "select_many": "select_many(lambda r: wp.split(r.words), limit=10)",
    "group_by": "group_by(lambda r: r.city, lambda group: wp.count(group))",
    "shave": "shave(1.0)",
    "join": 'join(other, on="key"), or join(other, lambda left: left.key, lambda right: right.key)',
    "partition": 'partition(lambda r: r.city, ["Ulm", "York"])',
    "noisy_count": 'noisy_count(epsilon=0.1, over=["Ulm", "York"])',
    "geometric_count": 'geometric_count(epsilon=0.1, over=["Ulm", "York"])',
    "noisy_sum": "noisy_sum(epsilon=0.1, value=lambda r: r.salary, lower=0, upper=100_000)",
    "noisy_average": "noisy_average(epsilon=0.1, value=lambda r: r.salary, lower=0, upper=100_000)",
    "most_common": 'most_common(epsilon=0.1, candidates=["Ulm", "York"])',
    "most_distant": "most_distant(0.1, sizes=(2, 2), candidates=[wp.ComparedMarginal((0, 1), ([1, 2, 3, 4],))])",
    "median": "median(epsilon=0.1, candidates=range(100))",
    "quantile": "quantile(epsilon=0.1, q=0.9, candidates=range(100)), each by its name, for epsilon and q look alike",
    "bill": "bill(epsilon=0.1)",
    "epsilon_for": "epsilon_for(half_width=5, confidence=0.95)",
}
"""How the methods of a query are called."""

SESSION_CALLS = {
    "protect": "protect(source, data, budget=2)",
    "release": 'release(query.noisy_count(epsilon=0.1, over=["Ulm", "York"]))',
    "set_budget": 'set_budget("people", 3)',
    "remaining": 'remaining("people")',
    "spent": 'spent("people")',
}
"""How the methods of a session are called."""

_COUNT = 'noisy_count(epsilon=0.1, over=["Ulm", "York"])'
_INSTEAD = {
    "groupby": 'by("city", keys=["Ulm", "York"]).agg(rows=wp.count(), epsilon=0.1)',
    "merge": 'join(other, on="key")',
    "assign": 'with_columns(old=wp.col("age") > 60)',
    "map": "select(lambda r: r.city)",
    "apply": "select(lambda r: r.city)",
    "append": "concat(other), which adds weights",
    "query": "where(lambda r: r.age > 30)",
    "distinct": "group_by(lambda r: r), which leaves every record once, at a weight of a half",
    "mean": "noisy_average(epsilon=0.1, value=lambda r: r.salary, lower=0, upper=100_000)",
    "sum": "noisy_sum(epsilon=0.1, value=lambda r: r.salary, lower=0, upper=100_000)",
    "max": "quantile(epsilon=0.1, q=0.99, candidates=range(100))",
    "min": "quantile(epsilon=0.1, q=0.01, candidates=range(100))",
    "mode": 'most_common(epsilon=0.1, candidates=["Ulm", "York"])',
    **dict.fromkeys(("size", "len", "shape"), "count(epsilon=0.1)"),
    "value_counts": _COUNT,
}
"""A method of other libraries -> what is written here."""

_MEASURE = f"measure it with .{_COUNT} and session.release(...)"


class NoTable:
    """What a query is not: something that has columns, rows and a length at hand."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or name in ("plan", "reading"):  # asked for by Python and notebooks
            raise AttributeError(name)
        if name in _INSTEAD:
            raise UnknownMethod(f"a query has no .{name}: write .{_INSTEAD[name]}")
        if name in _fields(self):
            raise UnknownMethod(f'a query has no columns at hand: write .select("{name}")')
        raise UnknownMethod(
            f"a query has no .{name}, and shows no records: {_MEASURE}. help(wp.Query) lists what it has"
        )

    def __getitem__(self, key: object) -> NoReturn:
        column = key if isinstance(key, str) and key.isidentifier() else "city"
        raise PlanError(
            f"a query has no columns at hand: write .select(lambda r: r.{column}), or .where(lambda r: ...)"
        )

    def _refuse(self, *_: object) -> NoReturn:
        raise PlanError(f"a query shows no records: {_MEASURE}")

    __len__ = __iter__ = __contains__ = _refuse

    def __bool__(self) -> bool:
        return True  # or Python would ask for the length


def _fields(query: Any) -> tuple[str, ...]:
    return tuple(name for name in getattr(query.plan.type, "names", ()) if name)
