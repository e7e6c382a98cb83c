"""Series: a source an epoch of a declared calendar, for data that come every day."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from wpinq.api.query import Query
from wpinq.api.running import RunningTotal, concat_all
from wpinq.api.source import source
from wpinq.errors import PlanError
from wpinq.expr.epochs import EPOCH_LIMIT, Epoch
from wpinq.measure.measurement import check_domain
from wpinq.measure.prepaid import source_at
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan.node import Node
from wpinq.plan.operators import Source
from wpinq.runtime.public import public


def series(
    name: str,
    schema: object = None,
    /,
    *,
    every: str | Iterable[str],
    on: str,
    start: str = "",
    budget_each: EpsilonLike | None = None,
    budget_all: EpsilonLike | None = None,
    distinct: str = "",
    strict: bool = False,
    **declared: object,
) -> Series:
    """Declare a series: a protected source for each epoch of a calendar.

    A row belongs to the epoch that its field `on` names. Each epoch has an account of its own, `views:2026-11-27`, and
    one unit is in one account: all that is released of it is bounded by the budget of its epoch. Over many epochs, the
    losses of one person add up: no account of an epoch says so.

    Parameters
    ----------
    name : str
        The name of the series, and of the account that fixes its declaration.
    schema : type, optional
        The type of a row, as in `source`.
    every : str or iterable of str
        "hour", "day", "week" (ISO 8601), "month" or "year", in UTC; or the public labels of all epochs, in order.
    on : str
        The field of the row's time, `datetime` or `date`, or of the label itself, str. A row whose value is outside of
        the epoch, null or unreadable is left out before anything else is read of it. For rows that come late, declare
        the time of arrival. A file that is no sound csv or parquet is refused as a whole.
    start : str
        The label of the first epoch: `2026-01-01T00`, `2026-01-01`, `2026-W01`, `2026-01` or `2026`.
    budget_each : number
        The budget of each epoch, fixed with the series.
    budget_all : number, optional
        With `person`, the budget of one person over all epochs: each debit is charged there with the sum over epochs.
    distinct : str, optional
        With `person`, a field of which each value counts once for a person of an epoch, before the cut.
    strict : bool
        Refuse data with rows outside of the epoch. That a file was refused then tells that there was one.
    **declared
        Fields and options, as in `source`: `person="user", at_most=10, page=str`.

    Returns
    -------
    Series
        The template. `epoch` gives the source of an epoch, and `Session.protect(series, data, epoch=...)` its data.

    Raises
    ------
    PlanError, ExpressionError
        For an unfit declaration.

    Examples
    --------
    >>> import datetime
    >>> import wpinq as wp
    >>> views = wp.series(
    ...     "views", every="day", start="2026-01-01", on="when", page=str, when=datetime.datetime,
    ...     person="user", at_most=10, distinct="page", budget_each=10,
    ... )  # fmt: skip
    >>> print(views.epoch("2026-11-27").by("page", keys=["a"]).agg(views=wp.count(), epsilon="0.1").bill())
    views:2026-11-27: 1
      protects one person, at most 10 rows, of weight 10
      for the rows of 2026-11-27 alone: over other epochs of views the losses of one person add up
      views (Count): NoisyCount(0.1), spent once: 0.1 x 1 x 10 = 1
    views:*: 1
      one person in all these epochs: the sum of what each of them pays
    """
    plain = source(name, schema, **declared).plan.operator  # type: ignore[arg-type]
    assert isinstance(plain, Source)
    if budget_all is not None and plain.person is None:
        raise PlanError(f"series {name!r}: budget_all is of one person, and needs person=... and at_most=...")
    labels = every if isinstance(every, str) else tuple(every)
    first = start if isinstance(labels, str) or start else "".join(labels[:1])
    each, total = (None if given is None else parse_epsilon(given) for given in (budget_each, budget_all))
    epoch = Epoch(name, labels, first, on, distinct=distinct, strict=strict, each=each, total=total)
    made = Series(Node(replace(plain, epoch=epoch)))
    made.epoch(first).plan.operator.check()  # type: ignore[attr-defined]  # it is a source
    return made


@public
class Series(Query):
    """A template of sources, one for each epoch of a calendar: see `series`.

    It is no dataset: `epoch` gives one.
    """

    __slots__ = ()

    @property
    def template(self) -> Source:
        """The declaration of every epoch."""
        assert isinstance(self.plan.operator, Source)
        return self.plan.operator

    @property
    def calendar(self) -> Epoch:
        """The calendar of the epochs."""
        assert self.template.epoch is not None
        return self.template.epoch

    def epoch(self, label: str) -> Query:
        """The source of an epoch, which the calendar has whether or not there are data.

        Examples
        --------
        >>> import datetime
        >>> import wpinq as wp
        >>> sales = wp.series("sales", every="month", start="2026-01", on="day", day=datetime.date, shop=str)
        >>> sales.epoch("2026-11").uses()
        {'sales:2026-11': 1}
        """
        return Query(Node(source_at(self.template, label)))

    def between(self, first: str, last: str) -> Query:
        """The rows of several epochs together, both ends included; each epoch is billed.

        One person with rows in several epochs counts in each, so distinct people over epochs cannot be counted by it.

        Examples
        --------
        >>> import datetime
        >>> import wpinq as wp
        >>> sales = wp.series("sales", every="month", start="2026-01", on="day", day=datetime.date, shop=str)
        >>> sales.between("2026-01", "2026-03").count(epsilon=0.5).bill()
        Bill({'sales:2026-01': 0.5, 'sales:2026-02': 0.5, 'sales:2026-03': 0.5})
        """
        start, end = self.calendar.number(first), self.calendar.number(last)
        if not start <= end < start + EPOCH_LIMIT:
            raise PlanError(f"a window is of 1 to {EPOCH_LIMIT:,} epochs, the first before the last")
        return concat_all([*map(self.epoch, self.calendar.labels(start, end))])

    def running(
        self, query: Callable[[Query], Query], epsilon: EpsilonLike, keys: Iterable[object], levels: int = 9
    ) -> RunningTotal:
        """Running totals of a query, from the first epoch on, by a tree of nodes over epochs.

        A node is the Concat over its epochs of `query(epoch)`, never the query of their Concat. Each epoch pays
        `levels` times ε · stability · unit weight, all of it with its first node. A total over n epochs is a sum of at
        most `n // 2^(levels − 1) + levels − 1` nodes.

        Parameters
        ----------
        query : callable
            From an epoch's source to the records that are counted.
        epsilon : number
            Of each node.
        keys : iterable
            The public keys.
        levels : int
            The number of levels of the tree: 9 for a year of days. It may grow later; each epoch then owes one more.

        Returns
        -------
        RunningTotal
            `due(epoch)` has the nodes to release after an epoch, and `total(epoch, answers)` the total.

        Raises
        ------
        PlanError
            Where the budget of an epoch does not cover all levels.

        Examples
        --------
        >>> import datetime
        >>> import wpinq as wp
        >>> sales = wp.series("sales", every="month", start="2026-01", on="day", day=datetime.date, shop=str)
        >>> total = sales.running(lambda month: month.select(lambda s: s.shop), "1/9", keys=["Ulm"])
        >>> list(total.due("2026-02"))
        ['2026-02 to 2026-02', '2026-01 to 2026-02']
        >>> print(wp.bill(total.due("2026-01")))
        sales:2026-01: 1
          protects one record, of weight 1
          for the rows of 2026-01 alone: over other epochs of sales the losses of one person add up
          2026-01 to 2026-01: NoisyCount(1/9), spent once: 1/9 x 1 = 1/9
          an epoch pays one node of each level of a running total at once: later nodes find it paid
        """
        domain = check_domain(keys, query(self).plan.type)
        return RunningTotal(self.template, query, parse_epsilon(epsilon), domain, levels)
