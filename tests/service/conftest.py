"""Services that tests share: those that spend have budgets of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

pytest.importorskip("fastapi", reason="the service needs the extra serve")

from tests.support.service import RunningService, configured, running


@dataclass(frozen=True)
class Peopled:
    """A service with somebody in it."""

    service: RunningService
    alice: str
    bob: str
    curator: str


@pytest.fixture(scope="session")
def peopled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peopled]:
    with running(
        configured(
            tmp_path_factory.mktemp("service"), "release_workers = 4\nplanners = 4", "body_bytes = 20000", margin=8.0
        )
    ) as service:
        tokens = (service.admit("alice", "edges=4"), service.admit("bob", "edges=4"))
        yield Peopled(service, *tokens, service.admit("curator", curator=True))
