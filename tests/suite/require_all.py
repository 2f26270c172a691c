"""A pytest plugin: with REQUIRE_ALL=1 in the environment a skipped test has failed.

Tests skip what this machine lacks (PostgreSQL, Redis, Chromium).  Where all of it is
said to be there, a skip hides a fault.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    report = yield
    # An expected failure is reported as a skip, too.
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get("REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"REQUIRE_ALL=1 allows no skip: {_reason(report)}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    match report.longrepr:
        case (_, _, str(reason)):
            return reason
        case reason:
            return str(reason)
