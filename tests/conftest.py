"""What every test may use. Property tests have no clock: a busy machine may be slow.

Where nobody would find again what they drew, they draw the same each time.
"""

from __future__ import annotations

import gc
import os
import re
from collections import defaultdict
from collections.abc import Generator, Mapping
from itertools import chain
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.secrecy import look_at_rows_of_test

ROOMS_OF_PROGRAMS: Final = {
    *("benchmarks", "browser", "clients", "conformance", "drill", "migrations"),
    *("newcomer", "wire"),
}
"""Rooms whose tests all drive other programs."""

SHARED_PROGRAMS: Final = re.compile(
    r"tests/process/.*\[(postgresql-redis|postgresql|mariadb|sqlite)|tests/(browser)/"
)
"""Tests that share a cluster of this kind, or Chromium and the demo."""


class Units(LoadScopeScheduling):  # type: ignore[misc]
    """A module runs on one worker, and so do all tests that share programs."""

    def _split_scope(self, nodeid: str) -> str:
        shared = SHARED_PROGRAMS.match(nodeid)
        return shared[shared.lastindex or 0] if shared else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Units:
    return Units(config, log)


pytest_plugins = (
    "mcp_app_pytest",
    "tests.drill.databases",
    "tests.scripting",
    "tests.serving",
    "tests.waiting",
)

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

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
def _nothing_depends_on_tests_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no change row go because its key is a round number, and read servers anew.

    Each thousandth change row lets all be folded: a test that has just written one
    would not see it.  Metadata is answered from what was read in the last second.
    """
    monkeypatch.setattr("mcp_app.models.changes.RARELY", 1_000_000_000)
    monkeypatch.setattr("mcp_app.oauth.endpoints.SERVERS_MAX_AGE_S", 0)


def room(nodeid: str) -> str:
    """Return the folder below tests/ in which a test stands; "tests" for the top."""
    parts = nodeid.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else "tests"


def pytest_itemcollected(item: pytest.Item) -> None:
    if room(item.nodeid) in ROOMS_OF_PROGRAMS:
        item.add_marker("programs")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    return refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    return refuse_skip((yield))


def refuse_skip(report: Report) -> Report:
    """Return the report of a failure where REQUIRE_ALL=1 says that all is there.

    Tests skip what this machine lacks (PostgreSQL, Redis, Chromium).
    """
    if report.skipped and os.environ.get("REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"REQUIRE_ALL=1 allows no skip: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many seconds each room took; no run is red for it."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[room(report.nodeid)] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("seconds by room")
        for name in sorted(seconds, key=seconds.__getitem__, reverse=True):
            terminalreporter.write_line(f"{seconds[name]:8.1f} {name}")


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
