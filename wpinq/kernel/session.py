"""Sessions: the only owners of protected data, and of the budgets that are spent on them.

Data enter through `protect` alone, and are freed here. A release is the work of `release`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from wpinq.data import SourceData
from wpinq.engines.contract import DEFAULT_ENGINE, find_engine
from wpinq.errors import LedgerError, SessionError
from wpinq.kernel.analysts import Analyst, Budgets
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.noisy_evaluation import NoisyEvaluator
from wpinq.kernel.prepare import DeclaredSource, Protected
from wpinq.kernel.protect import Protector
from wpinq.kernel.release import Releaser
from wpinq.kernel.sandbox.evaluation import SandboxedEvaluator
from wpinq.kernel.sandbox.limits import Limits
from wpinq.measure.group import Releasing
from wpinq.measure.statement import statement_html
from wpinq.noise.epsilon import from_nano, parse_budget
from wpinq.noise.epsilon_text import Epsilon, EpsilonLike
from wpinq.plan.node import Planned
from wpinq.runtime.progress import OnStep, StepDisplay
from wpinq.runtime.public import public


@public
class Session(Budgets, Releasing):
    """Keeps protected data, spends their budgets, and releases noisy answers.

    Parameters
    ----------
    ledger : path, Ledger or None
        Where budgets are kept. A path makes them durable and shared between processes; None keeps them in memory,
        for as long as the session lives. An empty file is no ledger.
    expected_head : str, optional
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
        Called with the name of each operator before it runs, for progress displays; never a count or a size.
    progress : bool
        Whether to show these names and the time on a progress bar. Times depend on the data: for the curator's eyes.
    sandbox : Limits, optional
        Answers analysts who are not trusted: plans are admitted by bounds that sources declare, evaluated in a child
        process under limits, and answered at a moment that was fixed before. docs/service.md.
    on_suspended : callable, optional
        Called in the sandbox with the names of accounts that a failed evaluation suspended, for the curator.

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
    ) -> None:
        if not (sandbox is None or isinstance(sandbox, Limits)):
            raise SessionError("sandbox takes limits: Session(..., sandbox=wp.Limits())")
        self._engine = find_engine(engine)(memory_limit, threads)
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
        self._protector = Protector(open_ledger, self._engine, protected, sandbox)

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
        """Close the session: free the data and the ledger, after which its releases stop answering."""
        with suppress(LedgerError):  # a ledger of the caller's, who closed it before
            self._debited = self.debited()
        self._releaser.closed = True
        self._protector.close()
        try:
            self._engine.close()
        finally:
            if self._owns_ledger:
                self._ledger.close()

    def protect(
        self,
        source: Planned,
        data: SourceData,
        budget: EpsilonLike,
        *,
        unit: str | None = None,
        version: str | None = None,
    ) -> None:
        """Take data under protection, as a source with a budget.

        Parameters
        ----------
        source : Query
            A query made by `wp.source` (or a program's source).
        data : rows, mapping, data frame or path
            Rows, each of weight 1; a mapping from record to its number of rows, or to its weight where the source has
            `weights=True`; a pandas, polars or Arrow table; a path to a csv, parquet or edge-list file; an `EdgeList`.
            With engine="spark" also a Spark frame, and a path of parquet that Spark reads; their rows stay there. Where
            the source declares a person, rows by field name, a table or a file with the column of ids. Refused as a
            whole when any part is unfit.
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
            or a list is read as directed under an undirected unit: for the curator, found without reading the data.
        """
        self._check_open()
        self._protector.take(source, data, budget, unit, version)

    def set_budget(self, source: str, budget: EpsilonLike, *, analyst: str | None = None) -> None:
        """Change a source's budget: a recorded act of the curator, never below what is spent.

        Parameters
        ----------
        source : str
            Its name, or that of an account.
        budget : number
            Epsilon; 0 for what is spent, so that nothing is left.
        analyst : str, optional
            Give the budget to this analyst instead, within the source's: see `analyst`.
        """
        self._check_open()
        self._ledger.set_budget(self._paying(source), parse_budget(budget), analyst)

    def set_stretch(self, times: float) -> None:
        """Set the factor by which releases of untrusted mode get more time from here on.

        It must be found without looking at the data, or at how long others looked at them.
        """
        if not isinstance(self._evaluator, SandboxedEvaluator):
            raise SessionError("this session has no limits: open it with Session(..., sandbox=wp.Limits())")
        self._evaluator.stretch = times

    def resume(self, source: str) -> bool:
        """Resume a source that a failed evaluation suspended: a recorded act of the curator.

        Each time is one bit more that an analyst may have learnt of the data, outside of every epsilon: find out first
        what was requested (`history`), and whether limits or declarations have to change.

        Parameters
        ----------
        source : str
            Its name, or that of its account: all tables of an account are suspended and resumed together.

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
        """Suspend a source until `resume`: on record, before this returns.

        Of use where sandboxed sessions run in processes of their own: nothing else suspends the sources of a process
        that ended in the middle of a release.
        """
        self._check_open()
        self._ledger.suspend([self._paying(source)])

    def head(self) -> str:
        """The last entry of the ledger, by number and hash.

        It stands for the whole history up to there: keep it elsewhere, and give it as `expected_head`. Each run prints
        it, and so does `wpinq ledger show`.
        """
        self._check_open()
        return self._ledger.head()

    def debited(self) -> dict[str, Epsilon]:
        """The debits by this session itself, by account, including those of failed releases.

        It is read from the ledger, where debits carry a random word of their session's: none is left out, whenever the
        session was interrupted.
        """
        if self._debited is not None:
            return dict(self._debited)
        return {each: from_nano(nano) for each, nano in self._ledger.debited(self._run, self._opened_at).items()}

    def analyst(self, name: str) -> Analyst:
        """A view of this session for an untrusted analyst, with budgets within the sources'.

        Parameters
        ----------
        name : str
            Up to 64 ASCII letters, digits and "_", with a letter first.

        Notes
        -----
        A release costs the own budgets what it would cost without the requests of others. The sources pay only for
        measurements that are new to everybody. So the analyst learns no more than the own budget allows, and all of
        them together no more than the source's. The view shows nothing of others, but that a source is exhausted.

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

    def declared(self) -> dict[str, DeclaredSource]:
        """The declarations of the protected sources, from which releases are priced without data."""
        return {name: DeclaredSource(held.source, held.version, held.unit) for name, held in self._protected.items()}
