"""Sessions: the only owners of protected data, and of the budgets that are spent on them.

Data enter through `protect` alone, once their declaration is fixed, and are freed here. A release is the work of
`release`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from wpinq.columns.dataset import EngineDataset
from wpinq.columns.storage import StoredColumns
from wpinq.data import SourceData, read_source
from wpinq.data.facts import enforce_content
from wpinq.data.read import Origins
from wpinq.engines.contract import DEFAULT_ENGINE, find_engine
from wpinq.errors import LedgerError, SessionError
from wpinq.expr.epochs import over_all
from wpinq.expr.person_tables import PersonTables
from wpinq.kernel.analysts import Analyst, Budgets
from wpinq.kernel.ledger.accounts import check_single
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.series import declared_accounts
from wpinq.kernel.noisy_evaluation import NoisyEvaluator
from wpinq.kernel.prepare import DECLARED, Data, DeclaredSource, Protected
from wpinq.kernel.release import Releaser
from wpinq.kernel.sandbox.admission import Limits
from wpinq.kernel.sandbox.evaluation import SandboxedEvaluator
from wpinq.measure.group import Releasing
from wpinq.measure.measurement import check_text
from wpinq.measure.statement import statement_html
from wpinq.noise.epsilon import from_nano, parse_budget
from wpinq.noise.epsilon_text import Epsilon, EpsilonLike
from wpinq.plan.node import Node, Planned
from wpinq.plan.operators.source import Source
from wpinq.runtime.progress import OnStep, StepDisplay
from wpinq.runtime.public import public
from wpinq.runtime.signals import interruptible

#: The reader of SQL, floors above: it takes declarations alone.
_SQL = "wpinq.language.sql.statement"


@public
class Session(Budgets, Releasing):
    """A session: it holds protected data, spends budgets, and releases noisy answers.

    Parameters
    ----------
    ledger : path, Ledger or None
        The ledger of budgets. A path makes it durable and shared between processes; None keeps it in memory until the
        session is closed. An empty file is no ledger.
    expected_head : str, optional
        An earlier head of the ledger, from `head`. A ledger without this entry, such as an older copy, is refused, and
        no new ledger is created.
    engine : str
        The engine of plans: "duckdb", "spark" or "reference". It stays open, with the data, until the session ends.
    memory_limit : str, optional
        The memory of DuckDB, such as "2GB", by default most of the machine's. Beyond it, DuckDB spills to
        unnamed files.
    threads : int, optional
        The threads of DuckDB; by default all cores.
    on_step : callable, optional
        A function for progress displays, called with the name of each operator before it runs.
    progress : bool
        Whether to show a progress bar with names and times. Times depend on the data: for the curator only.
    sandbox : Limits, optional
        The limits of untrusted mode: plans are admitted by declared bounds, evaluated in a restricted child process,
        and answered at a moment fixed before. See docs/service.md.
    on_suspended : callable, optional
        A function for the curator, called with the names of accounts that a failed evaluation suspended.
    accept : sequence of str
        The ways by which Spark may show protected data outside of the guarantee: see docs/spark.md. Others are refused.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> with wp.Session() as session:
    ...     session.protect(edges, [(1, 2), (2, 3)], budget=1.0)
    ...     answers = session.release(edges.select(lambda e: e.src % 2).noisy_count(epsilon=0.5))
    ...     session.remaining("edges")
    0.5
    >>> answers.keys
    (0, 1)
    """

    def __init__(
        self,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        *,
        expected_head: str | None = None,
        engine: str = DEFAULT_ENGINE,
        memory_limit: str | None = None,
        threads: int | None = None,
        on_step: OnStep | None = None,
        progress: bool = False,
        sandbox: Limits | None = None,
        on_suspended: Callable[[tuple[str, ...]], object] | None = None,
        accept: Sequence[str] = (),
    ) -> None:
        if not (sandbox is None or isinstance(sandbox, Limits)):
            raise SessionError("sandbox takes limits: Session(..., sandbox=wp.Limits())")
        self._engine = find_engine(engine)(memory_limit, threads)
        self._engine.accept(accept)
        self._owns_ledger = not isinstance(ledger, Ledger)
        open_ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger, expected_head=expected_head)
        if expected_head is not None:
            open_ledger.check_head(expected_head)
        protected, steps = dict[str, Protected](), StepDisplay(on_step, progress)
        if sandbox is None:
            evaluator = NoisyEvaluator(self._engine, protected, steps)
        else:
            if steps.callback is not None:
                raise SessionError("untrusted mode shows no steps: their times depend on the data")
            evaluator = SandboxedEvaluator(self._engine, protected, sandbox, open_ledger, on_suspended)
        super().__init__(open_ledger, protected)
        self._protected, self._evaluator, self._run = protected, evaluator, secrets.token_hex(8)
        self._opened_at = int(open_ledger.head().partition(":")[0])
        self._debited: dict[str, Epsilon] | None = None  # until the session is closed
        self._releaser = Releaser(open_ledger, protected, self._run, evaluator)
        self._release = self._releaser.release
        self._sandbox, self._origins = sandbox, Origins()
        self._replaced: set[tuple[str, str]] = set()  # versions that newer data took the place of

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session protecting {', '.join(self._protected) or 'nothing'}>"

    def __reduce__(self) -> NoReturn:
        raise SessionError("a session holds protected data and cannot be pickled or copied; save answers instead")

    def _repr_html_(self) -> str:
        closed = self._releaser.closed
        return "<div>a closed session</div>" if closed else statement_html(self.balances(), self.history())

    def _check_open(self) -> None:
        self._releaser.check_open()

    def close(self) -> None:
        """Close the session: free the data and the ledger, and end its `Release` objects."""
        with suppress(LedgerError):  # a ledger of the caller's, who closed it before
            self._debited = self.debited()
        self._releaser.closed = True
        self._protected.clear()
        self._origins.clear()
        try:
            self._engine.close()
        finally:
            if self._owns_ledger:
                self._ledger.close()

    def protect(
        self,
        source: Planned,
        data: SourceData,
        budget: EpsilonLike = "",
        *,
        unit: str | None = None,
        version: str | None = None,
        epoch: str | None = None,
    ) -> None:
        """Check the data of a source, and protect them under a budget.

        Parameters
        ----------
        source : Query
            A query made by `wp.source` (or a program's source).
        data : rows, mapping, data frame or path
            Rows, each of weight 1; a mapping from record to its number of rows, or to its weight with `weights=True`; a
            pandas, polars or Arrow table; a path to a csv, parquet or edge-list file; an `EdgeList`. With
            engine="spark" also a Spark frame or parquet path; its rows stay in Spark. A source with a person needs rows
            by field name, a table, or a file with the column of ids. Data with any unfit part are refused as a whole.
        budget : number
            The total epsilon that releases may ever spend on this source. For a source in the ledger it must equal the
            recorded budget, and the spent amount stays: `set_budget` changes budgets, on record. Tables of one account
            all state its budget. A series declares that of its epochs.
        unit : str, optional
            The protected unit in words, if the declaration has none; the session's bills print it.
        version : str, optional
            A name for this state of the data. Releases replay for free under the same version, also in later sessions,
            so changed data need another version. Without a version, nothing replays beyond this call.
        epoch : str, optional
            Of a series, the epoch that the data are for. Rows of other epochs are left out first, and nothing says how
            many.

        Raises
        ------
        SourceRejected
            For unfit data, with the positions of the first unfit rows.
        EpsilonError
            For a budget that is no epsilon, or below 1e-9: budgets are whole nano-epsilon, rounded down.
        LedgerError
            For a source in the ledger with another declaration or budget, before the data are read.
        SessionError
            For a version that this session has used for other data.

        Warns
        -----
        WpinqWarning
            If the file, frame, array or graph is protected under another name (lists and dicts are not recognised), or
            a list is read as directed under an undirected unit. It is for the curator, and no data are read for it.
        """
        self._check_open()
        declared = source.plan.operator if isinstance(source, Planned) else None
        if not isinstance(declared, Source):
            raise SessionError("protect takes a source made by wp.source(name, ...), not a query over one")
        words = check_text(declared.unit if unit is None else unit, "a unit")
        declared, accounts = declared_accounts(declared, epoch, words, budget)
        name = declared.source
        # Before the data are read: whether they satisfy a cap, a type or a fact depends on them. So an account
        # fixes its declaration when it is opened, and data under any other declaration are refused unread.
        refuse = partial(check_single, declared)
        self._ledger.check_accounts(accounts, refuse)
        label = f"new {secrets.token_hex(16)}" if version is None else f"{DECLARED}{version}"
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
        self._ledger.open_accounts(accounts, refuse)  # again: another session may have opened some meanwhile
        if held is not None and held.version != label:
            self._replaced.add((name, held.version))
        self._origins.keep(name, origin)
        self._protected[name] = Protected(replace(declared, columns=None), label, words, weights)
        self._engine.forget(name)
        if self._sandbox is not None:
            self._engine.rest()

    def set_budget(
        self,
        source: str | Planned,
        budget: EpsilonLike | None = None,
        *,
        analyst: str | None = None,
        each: EpsilonLike | None = None,
        all: EpsilonLike | None = None,
    ) -> None:
        """Change the budget of a source, on record; it is never below the spent amount.

        Parameters
        ----------
        source : str
            The name of a source or an account.
        budget : number, optional
            Epsilon; 0 sets the budget to the spent amount, so that nothing is left.
        analyst : str, optional
            The analyst whose budget is set, within that of the source: see `analyst`.
        each, all : number, optional
            Of a series that was protected before, in place of `budget`: an analyst's budget in each epoch that has none
            yet, those to come included; and the budget of one person over all epochs.
        """
        self._check_open()
        own = self._paying(source)
        if (budget is None) == (each is None and all is None) or (each is not None and analyst is None):
            raise SessionError("set_budget takes a budget; or of a series all=..., and for an analyst each=...")
        for account, amount in ((over_all(own), all), (own, each), (own, budget)):
            if amount is not None:
                self._ledger.set_budget(account, parse_budget(amount), analyst)

    def set_stretch(self, times: float) -> None:
        """Multiply the time of later releases in untrusted mode by a factor.

        The factor must not depend on data, nor on the duration of earlier evaluations.
        """
        if not isinstance(self._evaluator, SandboxedEvaluator):
            raise SessionError("this session has no limits: open it with Session(..., sandbox=wp.Limits())")
        self._evaluator.stretch = times

    def resume(self, source: str) -> bool:
        """Resume a source that a failed evaluation suspended, on record.

        Each suspension may reveal one bit of the data that no epsilon covers. First check the requests (`history`), and
        whether limits or declarations have to change.

        Parameters
        ----------
        source : str
            The name of the source or its account; all tables of an account are suspended and resumed together.

        Returns
        -------
        bool
            Whether it was suspended.
        """
        self._check_open()
        return self._ledger.resume(self._paying(source))

    def suspended(self) -> tuple[str, ...]:
        """The suspended accounts, by name; also those that other sessions suspended."""
        self._check_open()
        return tuple(sorted(self._ledger.suspended()))

    def suspend(self, source: str) -> None:
        """Suspend a source until `resume`; the ledger records it before the method returns.

        It is for programs that run sandboxed sessions in other processes: nothing else suspends the sources of a
        process that ended during a release.
        """
        self._check_open()
        self._ledger.suspend([self._paying(source)])

    def head(self) -> str:
        """The last entry of the ledger, by number and hash.

        It identifies the whole history up to this entry: keep it elsewhere, and pass it as `expected_head`. Each run
        and `wpinq ledger show` print it.
        """
        self._check_open()
        return self._ledger.head()

    def debited(self) -> dict[str, Epsilon]:
        """The debits of this session, by account; failed releases are included.

        They are read from the ledger, where each debit carries a random word of its session, so an interruption loses
        none.
        """
        if self._debited is not None:
            return dict(self._debited)
        return {each: from_nano(nano) for each, nano in self._ledger.debited(self._run, self._opened_at).items()}

    def analyst(self, name: str) -> Analyst:
        """A view of the session for an analyst, with budgets within those of the sources.

        Parameters
        ----------
        name : str
            Up to 64 ASCII letters, digits and "_", with a letter first.

        Notes
        -----
        A release costs the analyst's own budgets as much as without other analysts. The sources pay only for
        measurements that no analyst has paid for. So an analyst learns no more than the own budget allows, and all
        analysts together no more than the source's budget. The view shows nothing of others except an exhausted source.

        Examples
        --------
        >>> import wpinq as wp
        >>> words = wp.source("words", str)
        >>> with wp.Session() as session:
        ...     session.protect(words, ["to", "be"], budget=1)
        ...     alice, bob = (session.analyst(name) for name in ("alice", "bob"))
        ...     for analyst in (alice, bob):
        ...         session.set_budget("words", 1, analyst=analyst.name)
        ...     hers, his = (each.release(words.noisy_count(0.25, over=["to"])) for each in (alice, bob))
        ...     hers["to"] == his["to"], session.spent("words"), bob.spent("words")
        (True, 0.25, 0.25)
        """
        self._check_open()
        return Analyst(self._ledger, name, self._protected, self._releaser.release)

    def sql(
        self,
        text: str,
        *,
        epsilon: EpsilonLike | None = None,
        split: Mapping[str, object] | None = None,
        fresh: bool = False,
        label: str | None = None,
    ) -> Any:
        """Release the table of a SELECT over the protected sources: see `wpinq.sql` and `release`.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", sex=wp.category("f", "m"), age=int)
        >>> with wp.Session() as session:
        ...     session.protect(people, [("f", 30), ("m", 40)] * 1000, budget=1)
        ...     table = session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1)
        >>> round(table["f"]["n"].estimate, -2)
        1000.0
        """
        sources = {name: Node(held.source) for name, held in self._protected.items()}
        return self.release(
            import_module(_SQL).sql(text, sources, epsilon=epsilon, split=split), fresh=fresh, label=label
        )

    def declared(self) -> dict[str, DeclaredSource]:
        """The declarations of the protected sources, which price releases without data."""
        return {name: DeclaredSource(held.source, held.version, held.unit) for name, held in self._protected.items()}

    def _read(self, declared: Source, data: object) -> Data:
        if isinstance(data, EngineDataset):  # only what this engine adopts itself
            raise SessionError("data are offered as they are: the engine makes its own form of them")
        attach = self._engine.attach
        if isinstance(declared.person, PersonTables) and isinstance(data, Mapping):
            data = {table: attach(given) for table, given in data.items()}
        else:
            data = attach(data)
        checked = self._engine.keep(read_source(data, declared, self._engine.connection))
        if self._sandbox is not None:
            assert isinstance(checked, StoredColumns)  # of the engine that untrusted mode takes
            with self._engine.connection() as connection:
                enforce_content(connection, self._sandbox.max_record_bytes, checked)
        return checked

    def _same(self, one: Data, other: Data) -> bool:
        if not (isinstance(one, StoredColumns) and isinstance(other, StoredColumns)):
            return one == other

        def compared() -> bool:
            with self._engine.connection() as connection:
                return one.same(other, connection)

        return interruptible(compared)
