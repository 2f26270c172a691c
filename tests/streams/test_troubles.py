"""The log has the beginning and the end of an outage, and nothing in between."""

from __future__ import annotations

import logging

import pytest
from django.db import InterfaceError, OperationalError

from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.claims import Trouble

logger = logging.getLogger("mcp_app.streams")


@pytest.fixture
def trouble(caplog: pytest.LogCaptureFixture) -> Trouble:
    caplog.set_level(logging.DEBUG, "mcp_app.streams")
    return Trouble(logger, "Nothing could be read")


def test_an_outage_has_a_beginning_and_an_end(
    trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    trouble.passed()
    for error in (OperationalError("away"), Unavailable("late"), InterfaceError("x")):
        trouble.failed(error)
    trouble.passed()
    trouble.passed()
    began, over = caplog.records
    assert began.getMessage() == "Nothing could be read: OperationalError('away')"
    assert over.getMessage() == "Nothing could be read for 0.0 s. It works again."
    assert began.levelno == over.levelno == logging.WARNING


def test_the_next_one_is_another(
    trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        trouble.failed(OperationalError("away"))
        trouble.passed()
    assert len(caplog.records) == 4


def test_why_somebody_is_told_of_an_outage(
    trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    error = Unavailable("The database cannot be reached.")
    error.__cause__ = OperationalError("no route")
    trouble.failed(error)
    assert caplog.records[0].getMessage().endswith("OperationalError('no route')")


def test_each_kind_of_fault_is_logged_once(
    trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    """Also in an outage, which hides none."""
    faults = [KeyError("a"), KeyError("b"), ValueError("c"), OperationalError("d")]
    for error in faults * 2:
        trouble.failed(error)
    assert [each.levelname for each in caplog.records] == ["ERROR", "ERROR", "WARNING"]
    assert "KeyError: 'a'" in caplog.text
    trouble.passed()
    assert len(caplog.records) == 4
