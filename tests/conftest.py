"""What every test may use. Property tests have no clock: a busy machine may be slow."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = (
    "tests.drill.databases",
    "tests.grouping",
    "tests.require_all",
    "tests.scripting",
    "tests.serving",
    "tests.waiting",
)

settings.register_profile(
    "no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no clock")
