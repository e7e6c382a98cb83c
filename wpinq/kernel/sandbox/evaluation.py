"""Evaluation in the sandbox: a child process under limits, until a moment fixed before.

Plans, keys and limits fix the moment of an answer. An evaluation without a result suspends the accounts of its sources,
durably, before the analyst gets a reply. `docs/service.md` states what that hides, and what it does not.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from wpinq.columns.storage import StoredColumns
from wpinq.engines.contract import Engine, find_unoptimised
from wpinq.errors import EvaluationFailed, LedgerError, PlanError, SourceSuspended, WpinqError
from wpinq.expr.epochs import SEPARATOR
from wpinq.expr.values import Value, canonical_bytes_of, from_canonical_bytes
from wpinq.kernel.ledger.ledger import Ledger, SuspensionError
from wpinq.kernel.noisy_evaluation import FAILED, NoisyEvaluator, ProtectedOutput
from wpinq.kernel.prepare import PreparedMeasurement, Protected
from wpinq.kernel.sandbox import process
from wpinq.kernel.sandbox.admission import Limits, admit, granted_bytes, granted_seconds
from wpinq.runtime.progress import StepDisplay

IS_SUSPENDED = "a source of this release is suspended until its curator resumes it: contact the curator"

#: The share of a child's memory for the database: the rest is for Python.
_SHARE_OF_DATABASE = 0.6

T = TypeVar("T")

_log = logging.getLogger("wpinq")


class SandboxedEvaluator(NoisyEvaluator):
    """Draws noisy numbers in children under limits.

    Parameters
    ----------
    engine, protected, steps
        As `NoisyEvaluator` has them.
    limits : Limits
        Of one release.
    ledger : Ledger
        The record of suspended accounts.
    on_suspended : callable, optional
        Called with the names of accounts that an evaluation suspended, for the curator.
    """

    def __init__(
        self,
        engine: Engine,
        protected: Mapping[str, Protected],
        limits: Limits,
        ledger: Ledger,
        on_suspended: Callable[[tuple[str, ...]], object] | None,
    ) -> None:
        super().__init__(engine, protected, StepDisplay(None))
        stepwise = find_unoptimised(engine.name)
        if stepwise is None:
            raise PlanError(f'untrusted mode needs engine="duckdb": {engine.name!r} has no measured bounds')
        process.check_platform()
        if limits.require_restrictions:
            process.check_restrictions(stepwise("100MB", 1).open)
        self._stepwise, self._limits, self._ledger, self._on_suspended = stepwise, limits, ledger, on_suspended
        self.clock, self.stretch = process.Clock(), 1.0

    def check(self, prepared: PreparedMeasurement, keys: Collection[Value]) -> None:
        """Refuse a plan beyond the limits, or over a suspended source."""
        if self._suspended([prepared]):
            raise SourceSuspended(IS_SUSPENDED)
        admit(prepared, keys, self._limits)
        self._stepwise.check(prepared.measurement.plan)

    def get_ready(self, measurements: Sequence[PreparedMeasurement]) -> None:
        """Refuse where the process cannot fork."""
        process.check_alone(self._engine.rest)

    def asking(self, evaluations: Sequence[tuple[PreparedMeasurement, Collection[Value]]], work: Callable[[], T]) -> T:
        """Return at the moment that was fixed for a release, whatever its outcome.

        Errors are raised anew, outside of what handles the first ones, which so do not hang on to them.
        """
        held = sum(self._seconds(prepared, keys) + self._limits.grace_seconds for prepared, keys in evaluations)
        until = self.clock.now() + self.stretch * held
        done: list[T] = []
        failed: type[WpinqError] | None = None
        try:
            done.append(work())
        except (EvaluationFailed, SourceSuspended) as error:
            failed = type(error)
        except LedgerError:
            with suppress(SystemExit):  # which would hide from the service that no source could be suspended
                self.clock.sleep_until(until)
            raise
        self.clock.sleep_until(until)
        if failed is EvaluationFailed:
            raise EvaluationFailed(FAILED)
        if failed or self._suspended([prepared for prepared, _ in evaluations]):  # by another release: its bit is given
            raise SourceSuspended(IS_SUSPENDED)
        return done[0]

    def suspend(self, measurements: Sequence[PreparedMeasurement]) -> bool:
        """Suspend the accounts of some sources in the ledger; whether one was not suspended."""
        try:
            suspended = self._ledger.suspend(self._accounts(measurements))
        except LedgerError as error:
            raise SuspensionError(str(error)) from None
        if suspended:
            names = tuple(sorted(suspended))
            _log.warning(
                "untrusted mode: an evaluation failed, and its accounts are suspended until resumed: %s",
                ", ".join(names),
            )
            if self._on_suspended is not None:
                with suppress(Exception):  # its errors do not change the answer
                    self._on_suspended(names)
        return bool(suspended)

    def _guarded(
        self, prepared: PreparedMeasurement, keys: Collection[Value], draw: Callable[[ProtectedOutput], Any]
    ) -> Any:
        held = self.held(prepared)
        cost = admit(prepared, keys, self._limits)
        size = granted_bytes(cost, self._limits)
        process.check_alone(self._engine.rest)

        def work() -> bytes:
            self._engine = self._stepwise(f"{int(size * _SHARE_OF_DATABASE)}B", 1)
            return _packed(prepared, draw(self._output(prepared, held)))

        seconds = self.stretch * granted_seconds(cost, self._limits)
        until = self.clock.now() + seconds
        files = [number for each in held if isinstance(each.weights, StoredColumns) for number in each.weights.files]

        def answer(left: bytes | None) -> list[Any]:
            with suppress(Exception):
                return [] if left is None else [_unpacked(prepared, left)]
            return []

        def broken_off(left: bytes | None) -> None:
            if not answer(left):
                self.suspend([prepared])

        required = self._limits.require_restrictions
        found = answer(process.run_in_child(work, seconds, size, until, self.clock, files, broken_off, required))
        if found:
            return found[0]
        # The reason of a failure is lost here. Where another evaluation suspended the accounts, this one adds no bit.
        if self.suspend([prepared]):
            raise EvaluationFailed(FAILED)
        raise SourceSuspended(IS_SUSPENDED)

    def _seconds(self, prepared: PreparedMeasurement, keys: Collection[Value]) -> float:
        return granted_seconds(admit(prepared, keys, self._limits), self._limits)

    def _suspended(self, measurements: Sequence[PreparedMeasurement]) -> bool:
        return bool(measurements) and not self._ledger.suspended().isdisjoint(self._accounts(measurements))

    def _accounts(self, measurements: Sequence[PreparedMeasurement]) -> frozenset[str]:
        held = [protected for prepared in measurements for protected in self.held(prepared)]
        return frozenset(protected.source.account.partition(SEPARATOR)[0] for protected in held)


def _packed(prepared: PreparedMeasurement, result: Any) -> bytes:
    """Noisy numbers, or the rows of a listing, in a form that has nothing to run in it."""
    if isinstance(result, dict):
        codes = canonical_bytes_of(list(result), prepared.measurement.key_type)
        result = {code.hex(): number for code, number in zip(codes, result.values(), strict=True)}
    return json.dumps(result, allow_nan=False, default=np.ndarray.tolist).encode()


def _unpacked(prepared: PreparedMeasurement, data: bytes) -> Any:
    """What `_packed` was given; any error where it is nothing that it gives."""
    found = json.loads(data)
    numbers = [*map(float, found.values() if isinstance(found, dict) else found)]
    if not all(map(math.isfinite, numbers)):
        raise ValueError
    if not isinstance(found, dict):
        return numbers
    keys = (from_canonical_bytes(bytes.fromhex(code), prepared.measurement.key_type) for code in found)
    return dict(zip(keys, numbers, strict=True))
