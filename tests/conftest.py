"""What every test may use. Property tests have no clock: a busy machine may be slow."""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings

from tests.secrecy import look_at_rows_of_test

pytest_plugins = (
    "tests.drill.databases",
    "tests.ordering",
    "tests.require_all",
    "tests.scheduling",
    "tests.scripting",
    "tests.serving",
    "tests.waiting",
)

settings.register_profile(
    "no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no clock")


@pytest.fixture(autouse=True)
def _rows_are_not_folded_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no change row go because its key is a round number.

    Each thousandth lets all be folded: a test that has just written one would not see
    it.  Which test that is depends on those before it.
    """
    monkeypatch.setattr("mcp_app.models.changes.RARELY", 1_000_000_000)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """See whether a test leaves rows in which a secret stands."""
    if item.get_closest_marker("django_db") is not None:
        look_at_rows_of_test()


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests, which are all there until the end."""
    gc.freeze()
