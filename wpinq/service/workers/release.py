"""Release workers: children of the data worker, each for one release."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

from wpinq.kernel.ledger.ledger import SuspensionError
from wpinq.kernel.sandbox.process import ASKED_TO_END
from wpinq.kernel.session import Session
from wpinq.noise.epsilon import format_epsilon
from wpinq.service.config import Configuration
from wpinq.service.inflight import InflightReleases
from wpinq.service.ipc import Channel, serve_one
from wpinq.service.programs import releases_of
from wpinq.service.serializers import released

GRACE = 60.0
"""Seconds that a release worker may take beyond its granted time, before it is given up."""


class ReleaseWorker:
    """One release.

    Parameters
    ----------
    configuration : Configuration
        Sources and limits.
    channel : Channel
        The way of requests.
    session : Session
        With the data; each process opens its ledger anew.
    """

    def __init__(self, configuration: Configuration, channel: Channel, session: Session) -> None:
        self._configuration, self._channel, self._session = configuration, channel, session
        self._inflight = InflightReleases(configuration.ledger)

    def work(self) -> None:
        """Take one request and answer it."""
        serve_one(self._channel, self._release)

    def _release(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        # from here on it ends where it sleeps, after it has suspended the sources of a failed evaluation
        signal.pthread_sigmask(signal.SIG_BLOCK, [ASKED_TO_END, signal.SIGTERM])
        signal.setitimer(signal.ITIMER_REAL, sent["seconds"] + GRACE)  # then the process ends
        releases = releases_of(sent["request"], self._configuration.declared)
        analyst = self._session.analyst(sent["analyst"])
        try:
            with self._inflight.recorded(sent["name"], sent["accounts"]):
                results = analyst.release(releases, fresh=sent["fresh"], label=sent["label"])
        except SuspensionError:  # a failure is not answered before its sources are suspended: as if the worker died
            os._exit(1)
        left = {each.account: format_epsilon(each.remaining) for each in analyst.balances()}
        return {"answers": released(results, sent["confidence"]), "remaining": left}
