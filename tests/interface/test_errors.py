"""What user code raises, and what its `except` does not swallow."""

from __future__ import annotations

from mcp_app.interface.errors import (
    CallCancelled,
    ClientCannot,
    ClientRefused,
    QuestionInTransaction,
    TimedOut,
    ToolError,
)
from mcp_app.protocol.content import Text


def test_a_broad_except_does_not_swallow_a_cancellation() -> None:
    assert not issubclass(CallCancelled, Exception)
    for kind in (ToolError, ClientCannot, TimedOut, QuestionInTransaction):
        assert issubclass(kind, Exception)


def test_what_the_client_refuses_is_for_the_model_and_what_it_cannot_is_not() -> None:
    assert issubclass(ClientRefused, ToolError)
    assert not issubclass(ClientCannot, ToolError)


def test_content_stands_in_place_of_a_message_and_cannot_change() -> None:
    blocks = [Text("No.")]
    error = ToolError("no", content=blocks)
    blocks.clear()
    assert error.content == (Text("No."),)
    assert (ToolError("no").content, str(ToolError("no"))) == ((), "no")


def test_what_the_client_lacks() -> None:
    error = ClientCannot("It cannot ask.", {"elicitation": {}})
    assert (str(error), error.required) == ("It cannot ask.", {"elicitation": {}})
