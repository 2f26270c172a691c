"""Which errors there would not be in earnest."""

from __future__ import annotations

import asyncio

import pytest
from django.db import IntegrityError, OperationalError

from mcp_app.workbench.trying.dry_run_outcome import Remark, remark_on

pytestmark = pytest.mark.databases


def test_what_a_loop_says_that_is_closed() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(RuntimeError) as caught:
        loop.call_soon(print)
    assert remark_on(caught.value) is Remark.OTHER_LOOP


def test_other_errors_are_as_in_earnest() -> None:
    assert remark_on(OperationalError("database is locked")) is Remark.LOCKED
    for error in (
        IntegrityError("UNIQUE constraint failed"),
        ValueError("database is locked"),
        RuntimeError("no"),
        OperationalError(),
    ):
        assert remark_on(error) is None
