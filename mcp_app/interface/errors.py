"""Exceptions that user code raises or catches."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_app.interface.outcomes import Outcome
from mcp_app.protocol.content import Block
from mcp_app.protocol.json_types import JsonObject


class ToolError(Exception):
    """What the model should read: the call ends as a result with `isError`.

    `content` replaces the message where a text is not enough.
    """

    def __init__(self, message: str, *, content: Sequence[Block] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.content = tuple(content)


class ExternalError(ToolError):
    """Another site gave no answer: the model reads the message, staff read the detail.

    The call log has this outcome, and the detail if there is one.
    """

    def __init__(self, message: str, outcome: Outcome, detail: str = "") -> None:
        super().__init__(message)
        self.outcome = outcome
        self.detail = detail or message


class ClientCannot(Exception):
    """The client did not declare the capability that a question needs.

    `required` is the missing part of the client's capabilities, such as
    `{"elicitation": {"url": {}}}`.  Where user code does not catch it, it becomes
    the revision's error.
    """

    def __init__(self, message: str, required: JsonObject) -> None:
        super().__init__(message)
        self.message = message
        self.required = required


class ClientRefused(ToolError):
    """The client answered a question with an error, or with what does not fit."""


class TooManyQuestions(ToolError):
    """A question was not asked, or was taken back, because too many are open."""


class TimedOut(Exception):
    """A question got no answer before its deadline."""


class CallCancelled(BaseException):
    """The call was cancelled: raised in a thread at the next use of its context.

    Like `asyncio.CancelledError` it is no `Exception`, so that a broad `except`
    in user code does not swallow it.
    """


class QuestionInTransaction(RuntimeError):
    """A question was asked inside a database transaction, which it would hold open."""
