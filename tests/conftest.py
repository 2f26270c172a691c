"""What every test may use. Property tests have no clock: a busy machine may be slow.

Where nobody would find again what they drew, they draw the same each time.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Mapping

import pytest
from hypothesis import HealthCheck, settings

from tests.secrecy import look_at_rows_of_test, watching
from tests.suite.rooms import room

pytest_plugins = (
    "tests.drill.databases",
    "tests.scripting",
    "tests.serving",
    "tests.suite.compiling",
    "tests.suite.ordering",
    "tests.suite.records",
    "tests.suite.require_all",
    "tests.suite.scheduling",
    "tests.suite.selecting",
    "tests.waiting",
)

settings.register_profile(
    "no clock",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # Where CI is set, Hypothesis has another default.
    derandomize=False,
)
settings.register_profile(
    "repeatable", settings.get_profile("no clock"), derandomize=True, database=None
)


def profile_for(environment: Mapping[str, str]) -> str:
    """Return the name of the profile of property tests."""
    again = environment.get("CI") or environment.get("REQUIRE_ALL") == "1"
    return "repeatable" if again else "no clock"


settings.load_profile(profile_for(os.environ))


@pytest.fixture(autouse=True)
def _rows_are_not_folded_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no change row go because its key is a round number.

    Each thousandth lets all be folded: a test that has just written one would not see
    it.  Which test that is depends on those before it.
    """
    monkeypatch.setattr("mcp_app.models.changes.RARELY", 1_000_000_000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Look for secrets where that was asked for."""
    with watching(room(item.nodeid.partition("::")[0])):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """See whether a test leaves rows in which a secret stands."""
    if item.get_closest_marker("django_db") is not None:
        look_at_rows_of_test()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector the tests, which are all there until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
