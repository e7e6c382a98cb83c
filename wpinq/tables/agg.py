"""The aggregate functions of `agg`: `wp.count()`, `wp.mean("salary", 0, 200_000)`."""

from __future__ import annotations

from collections.abc import Iterable

from wpinq.errors import PlanError
from wpinq.expr.trace import RecordFunction
from wpinq.tables.aggregates import Aggregate, Count, CountDistinct, Mean, Sum
from wpinq.tables.choices import Median, MostCommon, Quantile, Quantiles, TopK
from wpinq.tables.moments import Corr, Cov, Ols, Std, Var


def mean(column: RecordFunction, lower: float, upper: float) -> Mean:
    """The mean of a column in each group; values are clamped to a public range.

    It is read off the noisy weights of the two ends of the range, as in `noisy_average`, for all groups at once. A
    count in the same table is their sum. Records with a null value are left out.

    Parameters
    ----------
    column : str, Column or function
        A column of numbers.
    lower, upper : float
        The public range, never chosen from the data; lower < upper.

    Returns
    -------
    Mean
        An aggregate for `agg`. Privacy cost: its share of epsilon, once for any number of groups.

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
        A column of ordered values.
    candidates : iterable
        The public values to choose from: `range(0, 100)`.

    Returns
    -------
    Median
        An aggregate for `agg`. Privacy cost: its share of epsilon, once, because the groups are parts of a partition.
        Half of it takes the choice of `Query.quantile`, and a quarter each of the ends of its interval. They are chosen
        for a confidence of 95 %, of the quantile of the values held, clamped to the candidates.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int)
    >>> wanted = people.by("city", keys=["Oslo"]).agg(age=wp.median("age", range(0, 100)), epsilon=1)
    >>> wp.simulate(wanted, {"people": [("Oslo", age % 81) for age in range(8100)]}, seed=1)["Oslo"]["age"].estimate
    40
    """
    return Median(column, candidates)


def quantile(column: RecordFunction, q: object, candidates: Iterable[object]) -> Quantile:
    """A quantile of a column in each group: a noisy choice among public candidates.

    Parameters
    ----------
    column : str, Column or function
        A column of ordered values.
    q : number
        Between 0 and 1.
    candidates : iterable
        The public values to choose from.

    Returns
    -------
    Quantile
        An aggregate for `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> quantile("age", 0.9, range(0, 100)).description
    'quantile 0.9 of age, one of 100 candidates'
    """
    return Quantile(column, candidates, q)


def quantiles(column: RecordFunction, qs: Iterable[object], candidates: Iterable[object]) -> Quantiles:
    """Several quantiles of a column in each group, as columns: `age_25`, `age_50`, `age_75`.

    They are choices, which share epsilon, or all from one noisy count of the candidates: what is predicted to be nearer
    in rank, from the numbers of quantiles and candidates alone. Choices by `Σ 4k·max(q, 1−q)` for k quantiles, the
    count of m candidates by `Σ √(2q(1−q)m)`. Its intervals follow from the law of the noise.

    Parameters
    ----------
    column : str, Column or function
        A column of ordered values.
    qs : iterable of numbers
        Each between 0 and 1.
    candidates : iterable
        The public values to choose from. For the count a value between two of them is the lower one.

    Returns
    -------
    Quantiles
        An aggregate for `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int)
    >>> asked = people.by("city", keys=["Oslo"]).agg(age=quantiles("age", [0.25, 0.75], range(0, 100)), epsilon=1)
    >>> row = wp.simulate(asked, {"people": [("Oslo", age % 80) for age in range(8000)]}, seed=1)["Oslo"]
    >>> [*row], row["age_25"].low <= 19 <= row["age_25"].high
    (['age_25', 'age_75'], True)
    """
    return Quantiles(column, candidates, qs)


def most_common(column: RecordFunction, candidates: Iterable[object]) -> MostCommon:
    """The most common value of a column in each group: a noisy choice among candidates.

    Parameters
    ----------
    column : str, Column or function
        A column.
    candidates : iterable
        The public values to choose from.

    Returns
    -------
    MostCommon
        An aggregate for `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> most_common("job", ["nurse", "cook"]).description
    'most common job, one of 2 candidates'
    """
    return MostCommon(column, candidates)


def top_k(column: RecordFunction, k: int, candidates: Iterable[object]) -> TopK:
    """The k most common values of a column in each group, from one noisy count.

    The columns of rank i are `job_i`, the value, and `job_i_count`, its noisy weight. Its interval holds given that the
    value is among the k.

    Parameters
    ----------
    column : str, Column or function
        A column.
    k : int
        From 1 to the number of candidates.
    candidates : iterable
        The public values.

    Returns
    -------
    TopK
        An aggregate for `agg`. Privacy cost: its share of epsilon, once, for any k.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, job=str)
    >>> asked = people.by("city", keys=["Oslo"]).agg(job=top_k("job", 2, ["nurse", "cook", "smith"]), epsilon=1)
    >>> rows = [("Oslo", "cook")] * 200 + [("Oslo", "nurse")] * 100
    >>> row = wp.simulate(asked, {"people": rows}, seed=1)["Oslo"]
    >>> row["job_1"].estimate, row["job_2"].estimate, round(row["job_1_count"], -2)
    ('cook', 'nurse', 200.0)
    """
    return TopK(column, candidates, k)


def count_distinct(column: RecordFunction) -> CountDistinct:
    """The number of different values of a column in each group, without null.

    The result is `Σ_v min(w, A(group, v)) / w` plus Laplace noise of scale 1/(wε). Here w is the weight of a row, at
    most 1: for unnested rows, 1 over the bound of their table. Where weights are no counts, it is 1. A Shave cuts one
    piece of weight w off each value.

    Parameters
    ----------
    column : str, Column or function
        A column.

    Returns
    -------
    CountDistinct
        An aggregate for `agg`. Privacy cost: its share of epsilon, once.

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
        An aggregate for `agg`. Privacy cost: its share of epsilon, once for any number of groups.

    Raises
    ------
    PlanError
        For an argument; the number of elements of a list is `wpinq.functions.count`.

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
        A column of numbers.
    lower, upper : float
        The public range, never chosen from the data; lower < upper.

    Returns
    -------
    Sum
        An aggregate for `agg`. Privacy cost: its share of epsilon, once for any number of groups.

    Raises
    ------
    PlanError
        Without a range; the sum of a list is `wpinq.functions.sum`.

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


_ALL = (
    Count, Sum, Mean, CountDistinct, Median, Quantile, Quantiles, MostCommon, TopK, Var, Std, Cov, Corr, Ols
)  # fmt: skip
#: Every aggregate, by the name that text programs call it by.
AGGREGATES: dict[str, type[Aggregate]] = {made.name: made for made in _ALL}
