"""What all tests share: no random example is judged by the clock, which on a busy machine tells of the machine."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support.local_spark import database as database, spark as spark
from tests.support.postgres import postgres_ledger as postgres_ledger, postgres_server as postgres_server

settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

# Hundreds of processes that tests start import wpinq: where each compiled it anew, that is half of what they take.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark starts once: all that runs on it runs in one process, whichever the number of workers."""
    for item in items:
        engine = getattr(getattr(item, "callspec", None), "params", {}).get("engine")
        if "spark" in getattr(item, "fixturenames", ()) or engine == "spark":
            item.add_marker(pytest.mark.xdist_group("spark"))
            # pyspark leaves a socket open for each table that it sends to an encrypted Spark
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
