"""What every test may use; property tests have no clock: a busy machine is no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = (
    "tests.drill.databases",
    "tests.grouping",
    "tests.require_all",
    "tests.scripting",
    "tests.serving",
)

settings.register_profile(
    "no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no clock")
