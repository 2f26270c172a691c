"""Exceptions that user code raises or catches."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from mcp_app.interface.call_record import Outcome
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
    """The client answered a question with an error, or with a value that is wrong."""


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


# -- extras ----------------------------------------------------------------------------
# Packages that only some sites need, and the extra of this one that brings each.

EXTRAS: Final = {
    "channels_redis": "redis",
    "drf_spectacular": "drf",
    "httpcore2": "http",
    "jwt": "oauth",
    "opentelemetry": "otel",
    "prometheus_client": "metrics",
    "rest_framework": "drf",
    "yaml": "openapi",
}
"""Extras by the modules that they bring.

If a database's driver or daphne is missing, Django itself says so.
"""


def is_installed(module: str) -> bool:
    """Whether a module that an extra brings is there; it is not imported."""
    return find_spec(module) is not None


def with_remedy(sentence: str, error: BaseException | None) -> str:
    """Return a sentence, given without its full stop, and how to install the package.

    The sentence stays the same if no extra brings what is missing.
    """
    missing = error.name if isinstance(error, ImportError) else None
    extra = EXTRAS.get((missing or "").partition(".")[0])
    if extra is None:
        return sentence
    return f'{sentence}. Install it: pip install "django-mcp-app[{extra}]"'


class RegistrationError(Exception):
    """A declaration cannot be served: raised at import.

    The message names the object, the rule and the value.
    """
