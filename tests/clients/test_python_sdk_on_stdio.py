"""The official Python SDK starts `mcp_stdio` itself, in both eras.

Each test has a process of its own, so that only a part of what is tried over HTTP is
tried here: what the transport has a share in.
"""

from __future__ import annotations

from typing import Final

import pytest
from mcp import StdioServerParameters

from tests.clients import test_python_sdk
from tests.clients.test_python_sdk import connect
from tests.drill.piped import COMMAND
from tests.drill.running import ROOT

__all__ = ["connect"]

pytestmark = test_python_sdk.pytestmark

ALWAYS: Final = (
    "test_progress_in_order",
    "test_large_messages_in_order",
    "test_subscription_of_a_session",
    "test_listening",
)
TRIED: Final = (
    *ALWAYS,
    "test_two_questions_and_one_ledger_line",
    "test_negotiation",
    "test_lists_every_page_of_tools",
    "test_any_json_comes_back",
    "test_log_level_of_a_session",
    "test_log_level_of_a_request",
    "test_elicitation",
    "test_several_questions_at_once",
    "test_session_hears_of_changed_lists",
    "test_listening_keeps_to_its_filter",
    "test_failures_of_tools",
    "test_cancelled_calls_make_room",
    "test_calls_side_by_side",
)
globals().update({name: vars(test_python_sdk)[name] for name in TRIED})


@pytest.fixture
def endpoint(stdio_environment: dict[str, str]) -> StdioServerParameters:
    command, *arguments = COMMAND
    return StdioServerParameters(
        command=command, args=arguments, env=stdio_environment, cwd=ROOT
    )
