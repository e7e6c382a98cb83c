"""What all tests share: no random example is judged by the clock, which on a busy machine tells of the machine."""

from hypothesis import HealthCheck, settings

settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
