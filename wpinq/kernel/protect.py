"""Protection of data: a declaration is fixed once, then data are read and kept."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from wpinq.columns.dataset import EngineDataset
from wpinq.columns.storage import StoredColumns
from wpinq.data import read_source
from wpinq.data.facts import enforce_content
from wpinq.data.read import Origins
from wpinq.engines.contract import Engine
from wpinq.errors import SessionError
from wpinq.expr.person_tables import PersonTables
from wpinq.kernel.ledger.accounts import check_single
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.series import declared_accounts
from wpinq.kernel.prepare import DECLARED, Data, Protected
from wpinq.kernel.sandbox.limits import Limits
from wpinq.measure.measurement import check_text
from wpinq.plan.node import Planned
from wpinq.plan.operators.source import Source
from wpinq.runtime.signals import interruptible


class Protector:
    """Takes data in for a session.

    Parameters
    ----------
    ledger : Ledger
        Where declarations and budgets are kept.
    engine : Engine
        The engine that reads and keeps the data.
    protected : dict
        What the session protects, by source.
    sandbox : Limits or None
        In untrusted mode, which bound records too.
    """

    def __init__(self, ledger: Ledger, engine: Engine, protected: dict[str, Protected], sandbox: Limits | None) -> None:
        self._ledger, self._engine, self._protected, self._sandbox = ledger, engine, protected, sandbox
        self._origins = Origins()
        self._replaced: set[tuple[str, str]] = set()  # versions that newer data took the place of

    def close(self) -> None:
        """Free the data."""
        self._protected.clear()
        self._origins.clear()

    def take(
        self, source: Planned, data: object, budget: object, unit: str | None, version: str | None, epoch: str | None
    ) -> None:
        """Take data under protection, as `Session.protect` says."""
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
