"""The aggregate functions of `agg`: `wp.count()`, `wp.mean("salary", 0, 200_000)`."""

from __future__ import annotations

from collections.abc import Iterable

from wpinq.errors import PlanError
from wpinq.expr.trace import RecordFunction
from wpinq.tables.aggregates import Count, CountDistinct, Mean, Median, MostCommon, Quantile, Sum


def mean(column: RecordFunction, lower: float, upper: float) -> Mean:
    """The mean of a column in each group; values are clamped to a public range.

    From a noisy sum about the middle of the range, to which a record gives at most half its weight, and a noisy count,
    to which it gives the other half: `NoisyAverage` for all groups at once. Records where the value is null are left
    out.

    Parameters
    ----------
    column : str, Column or function
        To numbers.
    lower, upper : float
        The range, chosen without looking at the data; lower < upper.

    Returns
    -------
    Mean
        For `agg`. Privacy cost: its share of epsilon, once, however many groups there are.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, salary=float)
    >>> wanted = people.by("city", keys=["Oslo", "Bergen"]).agg(salary=wp.mean("salary", 0, 200_000), epsilon=1)
    >>> data = {"people": [("Oslo", 60_000.0), ("Oslo", 80_000.0), ("Bergen", 50_000.0)] * 1000}
    >>> round(wp.simulate(wanted, data, seed=1)["Oslo"]["salary"].estimate, -3)
    70000.0
    """
    return Mean(column, lower, upper)


def median(column: RecordFunction, candidates: Iterable[object]) -> Median:
    """The median of a column in each group: a noisy choice among public candidates.

    Parameters
    ----------
    column : str, Column or function
        To values in an order.
    candidates : iterable
        The public values to choose from: `range(0, 100)`.

    Returns
    -------
    Median
        For `agg`. Privacy cost: its share of epsilon, once: the groups are parts of a partition. See `Query.quantile`.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int)
    >>> wanted = people.by("city", keys=["Oslo"]).agg(age=wp.median("age", range(0, 100)), epsilon=1)
    >>> wp.simulate(wanted, {"people": [("Oslo", age % 80) for age in range(8000)]}, seed=1)["Oslo"]["age"].estimate
    39
    """
    return Median(column, candidates)


def quantile(column: RecordFunction, q: object, candidates: Iterable[object]) -> Quantile:
    """A quantile of a column in each group: a noisy choice among public candidates.

    Parameters
    ----------
    column : str, Column or function
        To values in an order.
    q : number
        Between 0 and 1.
    candidates : iterable
        The public values to choose from.

    Returns
    -------
    Quantile
        For `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> quantile("age", 0.9, range(0, 100)).description
    'quantile 0.9 of age, one of 100 candidates'
    """
    return Quantile(column, candidates, q)


def most_common(column: RecordFunction, candidates: Iterable[object]) -> MostCommon:
    """The most common value of a column in each group: a noisy choice among candidates.

    Parameters
    ----------
    column : str, Column or function
        To values.
    candidates : iterable
        The public values to choose from.

    Returns
    -------
    MostCommon
        For `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> most_common("job", ["nurse", "cook"]).description
    'most common job, one of 2 candidates'
    """
    return MostCommon(column, candidates)


def count_distinct(column: RecordFunction) -> CountDistinct:
    """The number of different values of a column in each group, without null.

    That is where each row weighs 1 or more.

    Each row weighs 1 or more.

    `Σ_v min(1, A(group, v))`, by a Shave that cuts one piece of weight 1 off each value, plus Laplace noise of scale
    1/ε: one unit of weight can bring or take one value, and no more.

    Parameters
    ----------
    column : str, Column or function
        To values.

    Returns
    -------
    CountDistinct
        For `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> import wpinq as wp
    >>> visits = wp.source("visits", page=str, user=int)
    >>> wanted = visits.by("page", keys=["home"]).agg(users=wp.count_distinct("user"), epsilon=2)
    >>> wanted.bill()
    Bill({'visits': 2})
    """
    return CountDistinct(column)


def count(*given: object) -> Count:
    """The number of records in each group: its weight, plus Laplace noise of scale 1/ε.

    Returns
    -------
    Count
        For `agg`. Privacy cost: its share of epsilon, once, however many groups there are.

    Raises
    ------
    PlanError
        When it is given an argument: the number of elements of a list is `wpinq.functions.count`.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str)
    >>> people.by("city", keys=["Oslo", "Bergen"]).agg(rows=wp.count(), epsilon=1).bill()
    Bill({'people': 1})
    """
    if given:
        raise PlanError("wp.count() counts the records of a group; the elements of a list are counted by F.count(list)")
    return Count()


def sum(column: RecordFunction, lower: float | None = None, upper: float | None = None) -> Sum:
    """The sum of a column in each group; values are clamped to a public range.

    Parameters
    ----------
    column : str, Column or function
        To numbers.
    lower, upper : float
        The range, chosen without looking at the data; lower < upper.

    Returns
    -------
    Sum
        For `agg`. Privacy cost: its share of epsilon, once, however many groups there are.

    Raises
    ------
    PlanError
        When there is no range: the sum of a list is `wpinq.functions.sum`.

    Examples
    --------
    >>> sum("age", 0, 100).description
    'sum of age, clamped to 0 to 100'
    """
    if lower is None or upper is None:
        raise PlanError(
            'a sum of a column needs the public range that values are clamped to: wp.sum("age", 0, 100); the elements '
            "of a list are summed by F.sum(list)"
        )
    return Sum(column, lower, upper)


AGGREGATES = {made.name: made for made in (Count, Sum, Mean, CountDistinct, Median, Quantile, MostCommon)}
"""Every aggregate, by the name that text programs call it by."""
