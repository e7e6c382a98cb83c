"""Routes for machines: `/healthz`, `/readyz`, and `/metrics` for the curator.

Metrics have no duration, memory, exit state or row number of an evaluation, and no name of an analyst. Suspensions and
balances tell of data and of analysts, so no analyst gets them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from wpinq.errors import LedgerError
from wpinq.kernel.ledger.accounts import MARK
from wpinq.noise.epsilon import NANO
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.errors import log
from wpinq.service.middleware import METRICS
from wpinq.service.routes import CuratorUser, Dispatching
from wpinq.service.users import UsersError

router = APIRouter(include_in_schema=False, default_response_class=PlainTextResponse)

TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of Prometheus' text format."""


@router.get("/healthz")
async def health() -> str:
    """Whether the web process answers."""
    return "yes"


@router.get("/readyz")
def ready(dispatcher: Dispatching) -> PlainTextResponse:
    """Whether ledger and users can be read; the reason why not is for the log."""
    try:
        dispatcher.check_files()
    except (LedgerError, UsersError, OSError) as error:
        log("not ready", reason=str(error))
        return PlainTextResponse("no", 503)
    return PlainTextResponse("yes")


@router.get(METRICS)
def metrics(user: CuratorUser, dispatcher: Dispatching) -> PlainTextResponse:
    """The metrics in Prometheus' text format."""
    return PlainTextResponse("".join(f"{line}\n" for line in _lines(dispatcher)), media_type=TEXT)


def _lines(dispatcher: Dispatcher) -> Iterator[str]:
    counted = dict(dispatcher.requests)  # which another thread counts on
    requests = [({"route": route, "status": str(status)}, n) for (route, status), n in counted.items()]
    refused = [(labels, n) for labels, n in requests if labels["status"] >= "400"]
    queues = [({"queue": name}, length) for name, length in dispatcher.waiting().items()]
    accounts = [each for each in dispatcher.ledger.accounts() if MARK not in each.name and "/" not in each.name]
    suspended = [({"account": each.name}, int(each.suspended)) for each in accounts]
    left = [({"account": each.name}, each.remaining / NANO) for each in accounts]
    yield from _family("wpinq_requests_total", "counter", "Requests since the web process began.", requests)
    yield from _family("wpinq_refusals_total", "counter", "Requests with a status of 400 or more.", refused)
    yield from _family("wpinq_queue_length", "gauge", "Requests that wait for a worker.", queues)
    yield from _family("wpinq_account_suspended", "gauge", "1 where an account is suspended.", suspended)
    yield from _family("wpinq_account_epsilon_left", "gauge", "The remaining budget.", left)


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """The samples of one metric; labels are escaped as in JSON.

    Examples
    --------
    >>> for line in _family("length", "gauge", "Requests.", [({"queue": "planner"}, 2)]):
    ...     print(line)
    # HELP length Requests.
    # TYPE length gauge
    length{queue="planner"} 2
    """
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inside = ",".join(f"{label}={json.dumps(text, ensure_ascii=False)}" for label, text in labels.items())
        yield f"{name}{{{inside}}} {value}"
