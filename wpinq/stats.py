"""Further aggregates for `agg`: second moments, several quantiles, and the heaviest values.

A second moment is read off one measurement of products, `docs/proofs/means.md`, and has an interval.
"""

from __future__ import annotations

from wpinq.expr.trace import RecordFunction
from wpinq.tables.agg import quantiles as quantiles, top_k as top_k
from wpinq.tables.moments import Corr, Cov, Ols, Std, Var


def var(column: RecordFunction, lower: float, upper: float) -> Var:
    """The variance of a column in each group; values are clamped to a public range.

    `Σ w (x − mean)² / Σ w` of the data as held. With u the share of the range below x, and l the rest, one measurement
    of u², 2ul and l² gives it: these sum to 1 in each record.

    Parameters
    ----------
    column : str, Column or function
        A column of numbers; records with a null value are left out.
    lower, upper : float
        The public range, never chosen from the data; lower < upper.

    Returns
    -------
    Var
        An aggregate for `agg`. Privacy cost: its share of epsilon, once for any number of groups. Its interval is by
        draws of the noise, with a coverage that was measured (`benchmarks/moments.py`).

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import stats
    >>> people = wp.source("people", age=int, pay=float)
    >>> rows = {"people": [(20 + i % 40, 1000.0 + 50 * (i % 40)) for i in range(8000)]}
    >>> wanted = people.agg(age=stats.var("age", 0, 100), deviation=stats.std("age", 0, 100), epsilon=2)
    >>> [round(cell.estimate) for cell in wp.simulate(wanted, rows, seed=1).row().values()]
    [133, 12]
    """
    return Var(column, lower, upper)


def std(column: RecordFunction, lower: float, upper: float) -> Std:
    """The standard deviation of a column in each group: the root of `var`, measured as it is.

    Parameters
    ----------
    column : str, Column or function
        A column of numbers; records with a null value are left out.
    lower, upper : float
        The public range; lower < upper.

    Returns
    -------
    Std
        An aggregate for `agg`. Privacy cost: its share of epsilon, once for any number of groups.

    Examples
    --------
    >>> std("age", 0, 100).description
    'standard deviation of age, clamped to 0 to 100'
    """
    return Std(column, lower, upper)


def cov(
    column: RecordFunction, lower: float, upper: float, other: RecordFunction, other_lower: float, other_upper: float
) -> Cov:
    """The covariance of two columns in each group; values are clamped to public ranges.

    Parameters
    ----------
    column, other : str, Column or function
        Columns of numbers; records with a null in one of them are left out.
    lower, upper, other_lower, other_upper : float
        The public range of each.

    Returns
    -------
    Cov
        An aggregate for `agg`. Privacy cost: its share of epsilon, once for any number of groups.

    Examples
    --------
    >>> cov("age", 0, 100, "pay", 0, 9000).description
    'covariance of age, clamped to 0 to 100 and pay, clamped to 0 to 9000'
    """
    return Cov(column, lower, upper, other, other_lower, other_upper)


def corr(
    column: RecordFunction, lower: float, upper: float, other: RecordFunction, other_lower: float, other_upper: float
) -> Corr:
    """The correlation of two columns in each group; values are clamped to public ranges.

    Parameters
    ----------
    column, other : str, Column or function
        Columns of numbers; records with a null in one of them are left out.
    lower, upper, other_lower, other_upper : float
        The public range of each.

    Returns
    -------
    Corr
        An aggregate for `agg`. Where a noisy variance is not positive, it has no estimate and no interval. Privacy
        cost: its share of epsilon, once for any number of groups.

    Examples
    --------
    >>> corr("age", 0, 100, "pay", 0, 9000).description
    'correlation of age, clamped to 0 to 100 and pay, clamped to 0 to 9000'
    """
    return Corr(column, lower, upper, other, other_lower, other_upper)


def ols(
    column: RecordFunction, lower: float, upper: float, other: RecordFunction, other_lower: float, other_upper: float
) -> Ols:
    """The least-squares line of a column by another in each group.

    Values are clamped to public ranges. The slope has the aggregate's name, and the intercept this name and
    `_intercept`. One measurement gives both.

    Parameters
    ----------
    column, other : str, Column or function
        The column that is fitted, and the one by which it is. Records with a null in one of them are left out.
    lower, upper, other_lower, other_upper : float
        The public range of each.

    Returns
    -------
    Ols
        An aggregate for `agg`. Where the noisy variance of `other` is not positive, it has no estimate; where it may
        be none, no interval. Privacy cost: its share of epsilon, once for any number of groups.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import stats
    >>> people = wp.source("people", age=int, pay=float)
    >>> rows = {"people": [(20 + i % 40, 1000.0 + 50 * (i % 40)) for i in range(8000)]}
    >>> wanted = people.agg(pay=stats.ols("pay", 0, 4000, "age", 0, 80), epsilon=2)
    >>> line = wp.simulate(wanted, rows, seed=1).row()
    >>> round(line["pay"].estimate), line["pay_intercept"].low < 0 < line["pay_intercept"].high
    (50, True)
    """
    return Ols(column, lower, upper, other, other_lower, other_upper)
