"""Worker processes of the service: data, releases and planning."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import Any

from wpinq.api.query import Query
from wpinq.engines.sql.engine import untranslated
from wpinq.errors import LanguageError, LedgerError, PlanError, WpinqError, shorten, suggest, system_reason
from wpinq.kernel.analysts import AnalystBudgets
from wpinq.kernel.ledger.ledger import Ledger, SuspensionError
from wpinq.kernel.prepare import DeclaredSource, PreparedMeasurement, prepare_batch
from wpinq.kernel.sandbox.admission import admit, granted_seconds
from wpinq.kernel.sandbox.process import ASKED_TO_END
from wpinq.kernel.session import Session
from wpinq.language import parse, unparse
from wpinq.language.write import write_source
from wpinq.marginals.released import MarginalTables
from wpinq.measure.accuracy import accuracy
from wpinq.measure.answer_rows import CONFIDENCE, Row
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.group import Compound, flattened, waits_for_keys
from wpinq.measure.measurement import Measurement, measurement_from_json
from wpinq.plan.node import sources
from wpinq.service import schemas
from wpinq.service.config import Configuration
from wpinq.service.errors import log
from wpinq.service.inflight import InflightReleases
from wpinq.service.leases import Leases, open_inflight
from wpinq.service.processes import NICENESS, Channel, Role, StopAsked, Supervisor, receive, serve_one, stop_on_signals
from wpinq.tables.released import Table

# Programs of requests: text or JSON plans, over the sources that the curator declared and no others.

Releases = dict[str, Measurement | Compound]

#: The most that one request may release together.
MOST_RELEASES = 500


def releases_of(request: Mapping[str, Any], declared: Mapping[str, Query]) -> Releases:
    """The releases of a request, by name.

    Parameters
    ----------
    request : mapping
        With `program`, a text, and perhaps its `parameters`; or with `measurements`, by name, as
        `measurement_to_json` writes them.
    declared : mapping
        The declared sources.

    Raises
    ------
    LanguageError, PlanError
        At the first thing that is wrong. They follow from the request and the declarations alone.
    """
    if request.get("program") is None:
        releases = _from_plans(request, declared)
    else:
        releases = dict(parse(request["program"], request.get("parameters") or {}, sources=declared).releases)
    if not releases:
        raise PlanError("nothing is released: end a query with NoisyCount(epsilon, over: ...) and give it a name")
    if len(releases) > MOST_RELEASES:
        raise PlanError(f"a request releases at most {MOST_RELEASES} measurements; split it")
    for name, one in releases.items():
        if waits_for_keys(one):
            raise PlanError(
                f"{name} has no public keys: write NoisyCount(epsilon, over: range(0, 100)) or the like, for a service "
                "answers for all keys at once"
            )
    return releases


def lowered(request: Mapping[str, Any], declared: Mapping[str, Query]) -> tuple[Mapping[str, Any], Releases]:
    """A request with a text program in place of its SELECT, and its releases.

    A planner alone calls it, so sqlglot runs in no other process.
    """
    if request.get("sql") is None:
        return request, releases_of(request, declared)
    from wpinq.language.sql.statement import sql  # of the extra

    table = sql(request["sql"], declared, epsilon=request["epsilon"])
    try:
        asked = {**request, "sql": None, "program": unparse({"sql": table})}
        return asked, releases_of(asked, declared)
    except LanguageError:  # at a place of the program, which its author did not write
        raise LanguageError("sql: a text program holds less than this: list fewer constants, or split it") from None


def _from_plans(request: Mapping[str, Any], declared: Mapping[str, Query]) -> Releases:
    made: Releases = {name: measurement_from_json(held) for name, held in (request.get("measurements") or {}).items()}
    for name, source in sources(one.plan for one in flattened(list(made.values()))).items():
        if name not in declared:
            raise PlanError(f"there is no source {shorten(name)!r} here; {suggest(name, declared)}")
        known = declared[name].plan.operator
        if source != known:
            raise PlanError(f"the source {name!r} is declared otherwise here: {write_source(known)}")
    return made


# Planners: processes without protected data that read programs, check them, and price them.
#
# Reading a program may take as long as its author likes, so the web process does not read it. A planner has limited
# processor time and memory; one that needs more dies, and another takes its place. All are forked from the first
# process, which has explained a built-in program and so has all modules and caches at hand. It has no data and nothing
# of an analyst: no request reaches it.

#: Bytes of address space.
_MEMORY = 4 << 30
_BUILT_IN = """
var a = {0}.Select(r => 1).Where(x => x > 0);
var b = a.GroupBy(x => x, g => Count(g)).Join(a, x => x.key, y => y, (x, y) => y);
var c = b.NoisyCount(0.1, over: range(0, 10));
"""
_BUILT_IN_SQL = "SELECT COUNT(*) AS n FROM {0}"


@dataclass(frozen=True)
class PlannerWorker:
    """One explanation.

    Parameters
    ----------
    configuration : Configuration
        Sources, and limits of explanations and releases.
    declared : mapping
        The sources by name, as ledgers know them.
    ledger : Ledger
        Budgets.
    """

    configuration: Configuration
    declared: Mapping[str, DeclaredSource]
    ledger: Ledger

    def answer(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request."""
        os.nice(NICENESS)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        signal.setitimer(signal.ITIMER_PROF, self.configuration.limits.explain_seconds)  # which ends the process
        return self._explanation(sent)

    def prepare(self) -> None:
        """Explain built-in programs over the first source, for what this process then has at hand."""
        first = next(iter(self.declared))
        for built_in in ({"program": _BUILT_IN}, {"sql": _BUILT_IN_SQL, "epsilon": "0.1"}):
            asked = {name: text.format(first) for name, text in built_in.items()}
            with suppress(WpinqError):  # of a source over which no such program can be explained
                self._explanation({**asked, "confidence": CONFIDENCE, "fresh": False, "analyst": None})

    def _explanation(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        asked, releases = lowered(sent, self.configuration.declared)
        analyst, fresh = sent["analyst"], sent["fresh"]
        found = explained(releases, sent["confidence"]) | {"program": None if asked is sent else asked["program"]}
        batch = prepare_batch(releases, self.declared, fresh)
        try:
            found["seconds"] = sum(map(self._seconds, batch.prepared))
        except PlanError as error:
            found["not_admitted"] = str(error)
        if analyst is not None:
            own = AnalystBudgets(self.ledger, analyst, self.declared)
            found["quote"], found["affords"] = own.quote(releases, fresh=fresh), own.affords(releases)
            found["unbudgeted"] = sorted(found["quote"].keys() - {each.account for each in own.balances()})
        return schemas.ExplanationResponse.model_validate(found).model_dump()

    def _seconds(self, prepared: PreparedMeasurement) -> float:
        """The time of a release worker for a measurement; PlanError where no limits admit it."""
        limits = self.configuration.sandbox
        seconds = granted_seconds(admit(prepared, prepared.keys_at_once, limits), limits)
        return seconds + limits.grace_seconds if prepared.evaluates_at_once else 0.0


def explained(releases: Releases, confidence: float) -> dict[str, Any]:
    """Bill, plans and expected intervals of releases; no database is opened."""
    cost = Bill(releases)
    return {
        "bill": dict(cost),
        "bill_text": str(cost),
        "plans": {
            name: one.explain(missing=untranslated(one.plan)) if isinstance(one, Measurement) else str(one)
            for name, one in releases.items()
        },
        "accuracy": list(accuracy(releases, confidence)),
    }


# Release workers: children of the data worker, each for one release.

#: Seconds that a release worker may take beyond its granted time, before it is given up.
GRACE = 60.0


def _release(
    session: Session, inflight: InflightReleases, queries: Mapping[str, Query], sent: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer to a request for one release.

    Each process opens the ledger of the session anew.
    """
    # from here on it ends where it sleeps, after it has suspended the sources of a failed evaluation; SIGHUP to all
    # processes would end the child that evaluates
    signal.pthread_sigmask(signal.SIG_BLOCK, [ASKED_TO_END, signal.SIGTERM, signal.SIGHUP])
    signal.setitimer(signal.ITIMER_REAL, sent["seconds"] + GRACE)  # then the process ends
    session.set_stretch(sent["times"])
    releases = releases_of(sent, queries)
    analyst = session.analyst(sent["analyst"])
    try:
        with inflight.recorded(sent["name"], sent["accounts"]):
            results = analyst.release(releases, fresh=sent["fresh"], label=sent["label"])
    except SuspensionError:  # a failure is not answered before its sources are suspended: as if the worker died
        os._exit(1)
    except OSError as error:  # of the record, before the debit
        raise LedgerError(
            f"a release in flight cannot be recorded ({system_reason(error)}): make room on its disk"
        ) from None
    left = {each.account: each.remaining for each in analyst.balances()}
    answers = {name: released(result, sent["confidence"]) for name, result in results.items()}
    return schemas.AnswersResponse.model_validate({"answers": answers, "remaining": left}).model_dump()


#: The most rows of a series for people; `data` holds all.
MOST_ROWS = 2_000


def released(result: Answers | Table | MarginalTables, confidence: float) -> schemas.ReleasedResponse:
    """What was released: as data from which it is read back, and as rows for people."""
    if isinstance(result, Answers):
        rows = result.rows(confidence)
        series = [_series(result.measurement.sink.noun, result.key_fields, result.kind, rows)]
        return schemas.ReleasedResponse(form="answers", data=result.to_json(), series=series)
    if isinstance(result, Table):
        series = [_table_series(result, name, confidence) for name in result.answers]
        return schemas.ReleasedResponse(form="table", data=result.to_json(), series=series)
    series = [_marginal_series(result, view, confidence) for view in result.measuring.wanted]
    return schemas.ReleasedResponse(form="marginals", data=result.to_json(), series=series)


def _table_series(table: Table, name: str, confidence: float) -> schemas.SeriesResponse:
    held, fields, kind = table.to_columns(confidence), list(table.tabulation.columns), table.kinds[name]
    keys = zip(*(held[field] for field in fields), strict=True) if fields else [()]
    low, high = (held.get(f"{name}_{end}", [None] * len(table)) for end in ("low", "high"))
    rows = (Row(*cells, kind) for cells in zip(keys, held[name], low, high, strict=True))
    return _series(name, fields, table.tabulation.kind(name), rows)


def _marginal_series(tables: MarginalTables, view: tuple[int, ...], confidence: float) -> schemas.SeriesResponse:
    names = tables.measuring.attributes.named(view)
    half, kind = tables.half_width(*names, confidence=confidence), tables.kind.name
    keys = product(*(tables.attributes[place].labels for place in view))
    counts = tables.counts(*names).ravel().tolist()
    rows = (Row(key, count, count - half, count + half, kind) for key, count in zip(keys, counts, strict=True))
    return _series(" x ".join(names) or "total", names, tables.kind, rows)


def _series(title: str, fields: Sequence[str], kind: object, rows: Iterable[Row]) -> schemas.SeriesResponse:
    """Rows that are plotted and shown together; of very many, the first."""
    found = list(islice(rows, MOST_ROWS + 1))
    shown, complete = map(schemas.RowResponse.model_validate, found[:MOST_ROWS]), len(found) <= MOST_ROWS
    return schemas.SeriesResponse(title=title, fields=list(fields), kind=str(kind), rows=[*shown], complete=complete)


# The data worker: the process with the protected data. It forks release workers, and no request reaches it.
#
# A release worker that dies takes nothing along, and none knows of another one but by the ledger.


class DataWorkerDied(WpinqError):
    """The process that holds the data is gone."""


def hold_data(configuration: Configuration, channel: Channel, ready: socket.socket) -> None:
    """Protect the data, and fork release workers for ever.

    Parameters
    ----------
    configuration : Configuration
        The sources and how to protect them.
    channel : Channel
        The way of requests to release workers.
    ready : socket
        Gets the declared sources once their data are protected, or the error.
    """
    # before engines have threads, which inherit it; SIGTERM may reach all processes, and is for the first
    signal.pthread_sigmask(signal.SIG_BLOCK, [ASKED_TO_END, signal.SIGTERM])
    try:
        inflight = open_inflight(configuration.ledger)
        session = _protect(configuration, inflight)
        told: object = dict(session.declared())
    except WpinqError as error:  # for the curator, who started the service: it may quote rows
        told = error
    with ready:
        ready.sendall(pickle.dumps(told))
    if isinstance(told, WpinqError):
        return
    work = partial(_release, session, inflight, configuration.declared)
    role, workers = Role("release", partial(serve_one, channel, work), again=True), Supervisor()
    stop_on_signals(ASKED_TO_END)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [ASKED_TO_END])
        workers.fork(role, configuration.release_workers)
        workers.tend()
    except StopAsked:
        workers.stop(role.name, ASKED_TO_END)


def _protect(configuration: Configuration, inflight: InflightReleases) -> Session:
    ledger = Ledger(inflight.store if isinstance(inflight, Leases) else configuration.ledger)
    session = Session(ledger, sandbox=configuration.sandbox, on_suspended=_log_suspended)
    known = {each.account: each.budget for each in session.balances()}
    for offered in configuration.sources.values():
        account = offered.query.plan.operator.account  # type: ignore[attr-defined]  # a source's
        # the curator may have changed it since, on record: the configuration has the first budget
        budget = known.get(account, offered.budget)
        session.protect(offered.query, offered.data, budget, version=offered.version)
    return session


def read_declared(ready: socket.socket) -> dict[str, DeclaredSource]:
    """The declared sources, after their data are protected.

    Raises the data worker's error where they cannot be.
    """
    sent = receive(ready)
    if not sent:
        raise DataWorkerDied("the data could not be protected: the process that reads them died, as for want of memory")
    found = pickle.loads(sent)  # from our own child
    if isinstance(found, WpinqError):
        raise found
    return dict(found)


def _log_suspended(accounts: tuple[str, ...]) -> None:
    log("suspended", accounts=" ".join(accounts))
