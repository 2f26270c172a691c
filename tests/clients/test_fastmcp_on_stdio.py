"""The client of FastMCP starts `mcp_stdio` itself, in both eras."""

from __future__ import annotations

from typing import Final

import pytest
from fastmcp.client.transports import StdioTransport

from tests.clients import test_fastmcp
from tests.clients.test_fastmcp import client
from tests.drill.piped import COMMAND
from tests.drill.running import ROOT

__all__ = ["client"]

pytestmark = [test_fastmcp.pytestmark, pytest.mark.long]

TRIED: Final = (
    *("test_lists", "test_progress_in_order", "test_two_questions"),
    *("test_session_hears_of_changed_lists", "test_errors", "test_timed_out_call"),
    "test_calls_side_by_side",
)
globals().update({name: vars(test_fastmcp)[name] for name in TRIED})


@pytest.fixture
def transport(stdio_environment: dict[str, str]) -> StdioTransport:
    command, *arguments = COMMAND
    return StdioTransport(
        command, arguments, stdio_environment, str(ROOT), keep_alive=False
    )
