"""Sessions: the only owners of protected data. Price, debit, evaluate, add noise, store, answer: in this order.

What a release reveals depends on the plan, the ledger and the noise alone. The debit is durable before the data
are looked at, and never given back. Once it stands, whatever goes wrong is one constant error.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar, overload

import numpy as np

from wpinq.columns.held import HeldColumns
from wpinq.dataset import EngineDataset
from wpinq.engines.contract import DEFAULT_ENGINE, WantedRanges, find_engine
from wpinq.errors import EvaluationFailed, LedgerError, SessionError
from wpinq.expr.values import Value, canonical_bytes_of, from_canonical_bytes, order_key
from wpinq.habits import SESSION_CALLS, methods_told
from wpinq.ingest import read_source
from wpinq.interrupts import interruptible
from wpinq.kernel.accounts import accounts_of, check_single
from wpinq.kernel.charge import budget_to_nano, from_nano, to_nano
from wpinq.kernel.ledger import Account, Ledger, Pricing
from wpinq.kernel.listed_keys import Past
from wpinq.kernel.orders import NOT_MEASURED, Data, Order, Protected, bucketed, chosen, counted, listed, noisy, prepare
from wpinq.kernel.origins import Origins
from wpinq.kernel.release import Release
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.bucket_choice import Buckets
from wpinq.measure.compound import Compound, Together, flattened, regrouped
from wpinq.measure.delta_reading import parse_delta
from wpinq.measure.epsilon import parse_epsilon
from wpinq.measure.key_domains import ranges
from wpinq.measure.labels import check_label
from wpinq.measure.listing import Listing
from wpinq.measure.measurement import Choose, ListedMeasurement, Measurement, NoisyChoice, check_text
from wpinq.measure.statement import Balance, Event
from wpinq.measure.statement_page import statement_html
from wpinq.measure.subgraph_counts import SubgraphCount
from wpinq.plan.arithmetic import FLOAT, Weights
from wpinq.plan.demand import charges, demand
from wpinq.plan.node import Node, Planned, sources
from wpinq.plan.operators.source import Source
from wpinq.progress import OnStep, StepDisplay

FAILED = "the evaluation failed after the debit; the budget stays spent, and nothing of the reason can be shown"
_CHOICE = b"choice"
_CHANGED = "the source was protected anew since this was paid for: release the measurement again, over the new data"

P = ParamSpec("P")
T = TypeVar("T")


@methods_told(SESSION_CALLS)
class Session:
    """Holds protected data, spends their budgets, and releases noisy answers.

    Parameters
    ----------
    ledger : path, Ledger or None
        Where budgets are kept. A path makes them durable and shared between processes; None keeps them in memory,
        for as long as the session lives. An empty file is no ledger.
    expect_head : str, optional
        A head that the ledger has had, as `head` gave it: a ledger that lost this entry, by an older copy in its place,
        is refused, and none is made.
    engine : str
        What evaluates plans: "duckdb", "spark" or "reference". It stays open, with the data that it was shown, until
        the session is closed.
    memory_limit : str, optional
        Of DuckDB, "2GB": beyond it intermediate results spill to nameless files. Most of the machine's unless given.
    threads : int, optional
        Of DuckDB; as many as the machine has unless given.
    on_step : callable, optional
        Told the name of each operator before it runs, for progress displays; never a count or a size.
    progress : bool
        Whether to show these names and the time on a progress bar. Times depend on the data: for the curator's eyes.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> with wp.Session() as session:
    ...     session.protect(edges, [(1, 2), (2, 3)], budget=1.0)
    ...     answers = session.release(edges.select(lambda e: e.src % 2).noisy_count(epsilon=0.5))
    ...     session.remaining("edges")
    Fraction(1, 2)
    >>> answers.keys
    (0, 1)
    """

    def __init__(
        self,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        *,
        expect_head: str | None = None,
        engine: str = DEFAULT_ENGINE,
        memory_limit: str | None = None,
        threads: int | None = None,
        on_step: OnStep | None = None,
        progress: bool = False,
    ) -> None:
        self._engine = find_engine(engine)(memory_limit, threads)
        self._owns_ledger = not isinstance(ledger, Ledger)
        self._ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger, expect_head=expect_head)
        if expect_head is not None:
            self._ledger.check_head(expect_head)
        self._run = secrets.token_hex(8)
        self._opened_at = int(self._ledger.head().partition(":")[0])
        self._steps = StepDisplay(on_step, progress)
        self._protected: dict[str, Protected] = {}
        self._origins = Origins()
        self._replaced: set[tuple[str, str]] = set()  # versions that newer data took the place of
        self._debited: dict[str, Fraction] | None = None  # until the session is closed
        self._closed = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session protecting {', '.join(self._protected) or 'nothing'}>"

    def __reduce__(self) -> NoReturn:
        raise SessionError("a session holds protected data and cannot be pickled or copied; save answers instead")

    def close(self) -> None:
        """Let go of the data and of the ledger. Releases of this session stop answering."""
        with suppress(LedgerError):  # a ledger of the caller's, who closed it before
            self._debited = self.debited()
        self._closed = True
        self._protected.clear()
        self._origins.clear()
        try:
            self._engine.close()
        finally:
            if self._owns_ledger:
                self._ledger.close()

    def protect(
        self, source: Planned, data: object, budget: object, *, unit: str | None = None, version: str | None = None
    ) -> None:
        """Take data under protection, as a source with a budget.

        Parameters
        ----------
        source : Query
            A query made by `wp.source` (or a program's source).
        data : rows, mapping, data frame or path
            Rows, each of weight 1; a mapping from record to weight; a pandas, polars or Arrow table; a path to a
            csv, parquet or edge-list file; an `EdgeList`. With engine="spark" also a Spark frame, and a path of parquet
            that Spark reads; their rows stay there. Where the source declares a person, rows by field name, a table or
            a file with the column of ids. Refused as a whole when any part is unfit.
        budget : number
            The total epsilon that releases may ever spend on this source. Where the ledger knows the source, what
            was spent stays spent and the budget must be the one it knows: `set_budget` changes it, on record. Tables
            that share an account share its budget, and each states the same.
        unit : str, optional
            What one protected unit is, in words, when the declaration does not say; the session's bills print it.
        version : str, optional
            The curator's word for this state of the data. Releases replay for free under the same version, in later
            sessions too, so it must change whenever the data do. Without it nothing replays beyond this call.

        Raises
        ------
        SourceRejected
            When the data are unfit; with the positions of the first offending rows.
        EpsilonError
            When the budget is no epsilon, or below 1e-9: it is kept in whole nano-epsilon, rounded down.
        LedgerError
            When the ledger knows the source with another declaration or budget; found before the data are read.
        SessionError
            When a version is given again for other data, as far as this session can tell.

        Warns
        -----
        WpinqWarning
            When the file, frame, array or graph is protected under another name (lists and dicts are not known again),
            or a list is read as directed under an undirected unit: for the curator, found without a look at the data.
        """
        self._check_open()
        declared = source.plan.operator if isinstance(source, Planned) else None
        if not isinstance(declared, Source):
            raise SessionError("protect takes a source made by wp.source(name, ...), not a query over one")
        name = declared.source
        words = check_text(declared.unit if unit is None else unit, "a unit")
        declared.check()  # a plan that was read or unpickled may say anything
        accounts = accounts_of(declared, words, budget_to_nano(parse_epsilon(budget)))
        # Before the data are read: whether data keep to a cap, a type or a fact tells of the data, so a declaration
        # is believed once, when the account is opened, and every other is refused unread.
        refuse = partial(check_single, declared)
        refuse(self._ledger.accounts())
        for account in accounts:
            self._ledger.check_account(**account)
        label = f"new {secrets.token_hex(16)}" if version is None else f"declared {version}"
        if (name, label) in self._replaced:
            raise SessionError(f"other data took the place of version {version!r} of {name!r}; give a new version")
        origin = self._origins.check(declared, words, data)
        weights = self._read(declared, data)
        held = self._protected.get(name)
        if held is not None and held.version == label and not self._same(held.weights, weights):
            raise SessionError(
                f"the data for {name!r} differ from those protected under version {version!r}; "
                "give the new data a new version"
            )
        self._ledger.open_accounts(accounts, refuse)  # asked again: another session may have opened some meanwhile
        if held is not None and held.version != label:
            self._replaced.add((name, held.version))
        self._origins.keep(name, origin)
        self._protected[name] = Protected(declared, label, weights, words)
        self._engine.forget(name)

    def _read(self, declared: Source, data: object) -> Data:
        if isinstance(data, EngineDataset):  # only what this engine adopts itself
            raise SessionError("data are offered as they are: the engine makes its own form of them")
        offered, facts = self._engine.adopt(data), frozenset(declared.facts)
        return self._engine.keep(
            read_source(
                offered,
                declared.row,
                unit_weight=declared.unit_weight,
                cap=declared.cap,
                facts=facts,
                person=declared.person,
                sizes=declared.sizes,
                database=self._engine.checking,
            )
        )

    def _same(self, one: Data, other: Data) -> bool:
        if not (isinstance(one, HeldColumns) and isinstance(other, HeldColumns)):
            return one == other

        def compared() -> bool:
            with self._engine.checking() as connection:
                return one.same(other, connection)

        return interruptible(compared)

    def set_budget(self, source: str, budget: object) -> None:
        """Change a source's budget: a recorded act of the curator, never below what is spent."""
        self._check_open()
        self._ledger.set_budget(self._paying(source), budget_to_nano(parse_epsilon(budget)))

    def remaining(self, source: str) -> Fraction:
        """The epsilon that is left of a source's budget, or of an account's that several tables share."""
        return from_nano(self._account(source).remaining)

    def affords(self, measurements: Measurement | Sequence[Measurement]) -> int:
        """How many more releases of these measurements, together and anew each time, the budgets cover.

        What the ledger holds already, and parts of partitions of which others paid for more, cost less than is reckoned
        with here.

        Notes
        -----
        Privacy cost: none.

        Examples
        --------
        >>> import wpinq as wp
        >>> items = wp.source("items", int)
        >>> with wp.Session() as session:
        ...     session.protect(items, [1, 2, 3], budget=1)
        ...     session.affords(items.noisy_count(epsilon=0.3))
        3
        """
        cost = self.bill(measurements, fresh=True)
        return cost.times({account: self.remaining(account) for account in cost})

    def spent(self, source: str, *, delta: object = None) -> Fraction:
        """The epsilon that was spent on a source, ever; on all its tables, where it shares an account.

        Parameters
        ----------
        source : str
            Its name, or that of an account.
        delta : number, optional
            Between 0 and 1: the same history, read by the noise that was released, as an epsilon at this delta.
            Budgets are kept in the pure epsilon all the same. It is a reading, and no promise where what was released,
            or what it was charged, was chosen by looking at answers.

        Notes
        -----
        Privacy cost: none.
        """
        self._check_open()
        if delta is None:
            return from_nano(self._account(source).spent)
        return self._ledger.spent_at(self._paying(source), parse_delta(delta))

    def accounts(self) -> tuple[Balance, ...]:
        """How the budget of every account of the ledger stands, by name.

        Examples
        --------
        >>> import wpinq as wp
        >>> words = wp.source("words", str, unit="one word")
        >>> with wp.Session() as session:
        ...     session.protect(words, ["to", "be"], budget=1)
        ...     _ = session.release(words.noisy_count(epsilon=0.25, over=["to"]), label="a first look")
        ...     print(*session.accounts())
        ...     print(*session.history(), sep="\\n")  # doctest: +ELLIPSIS
        words: spent 0.25 of 1, 0.75 remaining; protects one word
        1 ... open account words 1 budget 1, unit one word
        2 ... debit words 0.25 NoisyCount(0.25)  "a first look"
        """
        self._check_open()
        return self._ledger.balances()

    def history(self) -> tuple[Event, ...]:
        """What happened to the accounts of the ledger, ever: opened, set to another budget, debited."""
        self._check_open()
        return self._ledger.events()

    def _repr_html_(self) -> str:
        return "<div>a closed session</div>" if self._closed else statement_html(self.accounts(), self.history())

    def head(self) -> str:
        """The last entry of the ledger, by its number and hash: keep it elsewhere, and give it as `expect_head`.

        It stands for the whole history up to there. `wpinq budget` prints it, and so does each run.
        """
        self._check_open()
        return self._ledger.head()

    def debited(self) -> dict[str, Fraction]:
        """What this session itself has debited from each account, also where a release then failed.

        It is read from the ledger, where debits carry a random word of their session's: none is left out, whenever the
        session was interrupted.
        """
        if self._debited is not None:
            return dict(self._debited)
        spent = self._ledger.debited(self._run, self._opened_at)
        return {account: from_nano(nano) for account, nano in spent.items()}

    def _account(self, name: str) -> Account:
        self._check_open()
        return self._ledger.account(self._paying(name))

    def _paying(self, name: str) -> str:
        """The account that pays for a source of this session; the name itself where it is none."""
        held = self._protected.get(name)
        return name if held is None else held.source.account

    @overload
    def release(self, measurements: ListedMeasurement, *, fresh: bool = ..., label: str | None = ...) -> Answers: ...

    @overload
    def release(
        self, measurements: Measurement, *, fresh: bool = ..., label: str | None = ...
    ) -> Answers | Release: ...

    @overload
    def release(
        self, measurements: Mapping[str, ListedMeasurement], *, fresh: bool = ..., label: str | None = ...
    ) -> dict[str, Answers]: ...

    @overload
    def release(
        self, measurements: Mapping[str, Measurement], *, fresh: bool = ..., label: str | None = ...
    ) -> dict[str, Answers | Release]: ...

    @overload
    def release(
        self, measurements: Iterable[ListedMeasurement], *, fresh: bool = ..., label: str | None = ...
    ) -> list[Answers]: ...

    @overload
    def release(
        self, measurements: Iterable[Measurement], *, fresh: bool = ..., label: str | None = ...
    ) -> list[Answers | Release]: ...

    @overload
    def release(self, measurements: Together, *, fresh: bool = ..., label: str | None = ...) -> Any: ...

    def release(self, measurements: Together, *, fresh: bool = False, label: str | None = None) -> Any:
        """Debit the ledger, evaluate, and answer; several measurements together are one atomic debit.

        Parameters
        ----------
        measurements : Measurement, Tabulation or MarginalTabulation, or several in a list or by name in a dict
            What to release.
        fresh : bool
            Whether to draw new noise, at full cost, where the same measurement was released before.
        label : str, optional
            What to write beside the debit, to know it again: at most 200 characters. `history` and `wpinq budget
            --history` show it. It is kept in clear, so do not write it from the data. What replays has no debit, and
            no label changes what replays.

        Returns
        -------
        Answers or Release, a list of them, or a dict
            Answers for a measurement with a domain; otherwise a Release, which answers for keys as they are asked.
            For a Tabulation a Table, or an OpenTable where it neither has keys nor lists them. For a
            MarginalTabulation MarginalTables.
            Several come as they were given, in a list or under their names.

        Raises
        ------
        BudgetExceeded
            When a budget does not cover the bill; nothing is spent then.
        EvaluationFailed
            When the engine failed. The debit stands.

        Notes
        -----
        Privacy cost: the bill, except for measurements that the ledger holds already for the same versions of
        the data: those are answered from there, key by key, at no cost.
        """
        self._check_open()
        written, asked = check_label(label), _batch(measurements)
        protected = dict(self._protected)  # one state of things for the whole batch, whatever other threads protect
        prepared = [prepare(measurement, protected, fresh) for measurement in flattened(asked)]
        orders = [order.as_paid(self._ledger.paid) for order in prepared]
        if not orders:
            raise SessionError("nothing to release: give one measurement or several")
        for order in orders:
            order.check_size()
        self._check_engine(orders)
        new = set(self._debit(orders, written))  # of which there can be no answers yet
        released = []
        try:
            together = [o.measurement.plan for o in orders if o.digest in new and o.looks_at_once]
            with self._engine.together(together):
                for order in orders:
                    released.append(self._release(order, order.digest in new))
                    new.discard(order.digest)
            return regrouped(measurements, asked, released)  # a table asks at the keys that it listed
        finally:
            self._steps.done()

    def bill(self, measurements: Together, *, fresh: bool = False) -> Bill:
        """What measurements would cost, before replay and earlier releases of partitions lower it.

        Parameters
        ----------
        measurements : as `release` takes them
            What is to be released together.
        fresh : bool
            Whether they are released with `fresh=True`: the same measurement then costs as often as it is there.
        """
        named = measurements if isinstance(measurements, Mapping) else _batch(measurements)
        return Bill(named, {name: held.unit for name, held in self._protected.items()}, fresh=fresh)

    # --- the way of a release ---------------------------------------------------------------------------------------

    def _check_engine(self, orders: Sequence[Order]) -> None:
        """Refuse what the engine cannot run while nothing is paid for; found from the plans, without data."""
        plans = [order.measurement.plan for order in orders]
        for plan in plans:
            self._engine.check(plan)
        self._engine.open()
        for plan in plans:
            self._engine.rehearse(plan)

    def _debit(self, orders: Sequence[Order], label: str) -> frozenset[str]:
        by_digest = {order.digest: order for order in orders}
        versions = dict(pair for order in orders for pair in order.versions)
        declared = sources(order.measurement.plan for order in orders)

        def scope(split: Node) -> str:
            return repr(sorted((name, versions[name]) for name in sources([split])))

        def price(new: frozenset[str], parts_of: Callable[[str], Mapping[str, Fraction]]) -> Pricing:
            bought = [by_digest[digest].measurement for digest in by_digest if digest in new]
            asked = demand([m.asked for m in bought], parts_of, scope)
            owed = charges(asked.sources, declared)
            recorded = {digest: by_digest[digest].terms(scope) for digest in by_digest if digest in new}
            return Pricing({account: to_nano(epsilon) for account, epsilon in owed.items()}, asked.parts, recorded)

        descriptions = {digest: order.measurement.description for digest, order in by_digest.items()}
        return self._ledger.debit(descriptions, price, label, self._run)

    def _release(self, order: Order, new: bool) -> Answers | Release:
        measurement = order.measurement
        if isinstance(measurement.sink, NoisyChoice):
            return self._choose(order)
        if measurement.listing is not None:
            return self._list(order, measurement.listing)
        if measurement.domain is None:
            return Release(measurement, lambda keys: self._answer(order, keys))
        return self._answer(order, measurement.domain, new)

    def _answer(self, order: Order, keys: tuple[Value, ...], new: bool = False) -> Answers:
        self._check_open()
        type_, factor = order.measurement.key_type, float(order.measurement.sink.factor)
        encoded = canonical_bytes_of(keys, type_)
        while True:
            listings = [] if new else self._ledger.listings(order.digest)
            stored = {} if new else self._ledger.answers(order.digest, encoded)
            missing = [(key, code) for key, code in zip(keys, encoded, strict=True) if code not in stored]
            if not missing:
                break
            noisy = self._guarded(self._draw, order, [key for key, _ in missing], order.past(listings))
            drawn = {code: number for (_, code), number in zip(missing, noisy, strict=True)}
            standing = self._ledger.store_answers(order.digest, drawn, len(listings))
            if standing is not None:
                stored |= standing
                break
            new = False  # a listing came in between: what was drawn is for nobody
        values = np.array([stored[code] for code in encoded]) * factor
        measurement = order.measurement if keys is order.measurement.domain else replace(order.measurement, domain=keys)
        return Answers(measurement, order.scale * factor, values)

    def _list(self, order: Order, listing: Listing) -> Answers:
        self._check_open()
        measurement, type_ = order.measurement, order.measurement.key_type
        written, factor = listing.to_json(type_), float(measurement.sink.factor)
        while True:
            listings = self._ledger.listings(order.digest)
            answers = self._ledger.answers(order.digest)
            stored = {from_canonical_bytes(code, type_): number for code, number in answers.items()}
            if written in listings:
                break
            rows = self._guarded(self._draw_listing, order, listing, stored, order.past(listings))
            coded = dict(zip(canonical_bytes_of(list(rows), type_), rows.values(), strict=True))
            self._ledger.store_listing(order.digest, coded, written, listings=len(listings), answers=len(answers))
        cut = order.cut(listing)
        shown = sorted((key for key, number in stored.items() if number > cut and key in listing.domain), key=order_key)
        values = np.array([stored[key] for key in shown]) * factor
        return Answers(replace(measurement, domain=tuple(shown)), order.scale * factor, values)

    def _choose(self, order: Order) -> Answers:
        domain = order.measurement.domain
        assert domain is not None
        stored = self._ledger.answers(order.digest, [_CHOICE])
        if not stored:
            index = self._guarded(self._pick, order)
            standing = self._ledger.store_answers(order.digest, {_CHOICE: float(index)})
            assert standing is not None  # which it is only of what was listed
            stored = standing
        values = np.zeros(len(domain))
        values[int(stored[_CHOICE])] = 1.0
        return Answers(order.measurement, 0.0, values)

    # --- what sees protected data: called through _guarded only -------------------------------------------------------

    def _draw(self, order: Order, held: Sequence[Protected], keys: Sequence[Value], past: Past) -> list[float]:
        if isinstance(order.measurement.sink, SubgraphCount):  # all edges count, and no keys of theirs are asked for
            return counted(order, self._weights(order, held, None), keys)
        if isinstance(order.measurement.sink, Buckets):
            return bucketed(order, self._weights(order, held, keys), keys)
        return noisy(order, self._weights(order, held, keys), keys, past)

    def _draw_listing(
        self, order: Order, held: Sequence[Protected], listing: Listing, asked: Collection[Value], past: Past
    ) -> dict[Value, float]:
        within = ranges(listing.domain, order.measurement.key_type)
        return listed(order, self._weights(order, held, None, within), asked, past)

    def _pick(self, order: Order, held: Sequence[Protected]) -> int:
        sink, domain = order.measurement.sink, order.measurement.domain
        assert isinstance(sink, NoisyChoice)
        assert domain is not None
        if not isinstance(sink, Choose) or sink.quantile is None:
            keys = domain if isinstance(sink, Choose) else None  # where candidates are no records, all of them count
            return chosen(order, sink.scores(self._weights(order, held, keys), domain))
        # A quantile asks how much weight there is on either side of a candidate, at whatever records.
        sides = self._engine.sides(order.measurement.plan, _data(held), domain, self._steps.told)
        return chosen(order, sink.scores_of_sides(sides))

    def _weights(
        self, order: Order, held: Sequence[Protected], keys: Sequence[Value] | None, within: WantedRanges = ()
    ) -> Weights:
        return self._engine.evaluate(order.measurement.plan, _data(held), FLOAT, self._steps.told, keys, within)

    def _guarded(
        self,
        function: Callable[Concatenate[Order, list[Protected], P], T],
        order: Order,
        *args: P.args,
        **kw: P.kwargs,
    ) -> T:
        """Show a function the data that an order paid for; whatever it raises becomes one constant error."""
        found = [self._protected.get(name) for name, _ in order.versions]
        held = [protected for protected in found if protected is not None]
        if tuple((protected.source.source, protected.version) for protected in held) != order.versions:
            raise SessionError(_CHANGED)
        try:
            return interruptible(lambda: function(order, held, *args, **kw))
        except Exception:
            pass
        # Outside of the handler, so that neither the error nor the frames that hold data hang on to this one.
        raise EvaluationFailed(FAILED)

    def _check_open(self) -> None:
        if self._closed:
            raise SessionError(
                "this session is closed: open another with wp.Session(ledger), and protect the data again"
            )


def _batch(measurements: Together) -> list[Measurement | Compound]:
    if isinstance(measurements, (Measurement, Compound)):
        return [measurements]
    if isinstance(measurements, Planned) or not isinstance(measurements, Iterable):
        raise SessionError(NOT_MEASURED)
    return list(measurements.values() if isinstance(measurements, Mapping) else measurements)


def _data(held: Sequence[Protected]) -> dict[str, Data]:
    return {protected.source.source: protected.weights for protected in held}
