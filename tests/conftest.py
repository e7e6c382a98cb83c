"""What all tests share: no random example is judged by the clock, which on a busy machine tells of the machine."""

from hypothesis import HealthCheck, settings

from tests.support.local_spark import database as database
from tests.support.local_spark import spark as spark

settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
