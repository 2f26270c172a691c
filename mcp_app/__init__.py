"""An MCP endpoint for any Django site: what a site's `mcp.py` imports.

Works before the app registry is ready.  What inserts rows is imported at its first use:
`changed`, `notify`, `log` and their async twins, `changed_model`, `WatchedQuerySet`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_app.catalog.registry import RegistrationError, mcp
from mcp_app.catalog.signatures import Header
from mcp_app.interface.context import Context, SyncContext
from mcp_app.interface.definitions import Approval
from mcp_app.interface.errors import CallCancelled, ClientCannot, TimedOut, ToolError
from mcp_app.interface.principal import (
    AccessRequest,
    AuthenticationFailed,
    AuthenticationRequest,
    AuthenticationUnavailable,
    Principal,
    Scope,
)
from mcp_app.interface.questions import (
    Accepted,
    Cancelled,
    Completion,
    Declined,
    Elicit,
    ElicitUrl,
    PromptMessage,
    PromptOutput,
    ResourceOutput,
    Roots,
    Sample,
    SamplingMessage,
    ToolOutput,
    within,
)
from mcp_app.interface.server import VERSION
from mcp_app.protocol.content import (
    Annotations,
    Audio,
    EmbeddedResource,
    Icon,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
    ToolResult,
    ToolUse,
)

if TYPE_CHECKING:
    from mcp_app.invalidation.changes import (
        WatchedQuerySet,
        achanged,
        anotify,
        changed,
        changed_model,
        notify,
    )
    from mcp_app.invalidation.log_messages import alog, log

__version__ = VERSION

__all__ = [
    "Accepted",
    "AccessRequest",
    "Annotations",
    "Approval",
    "Audio",
    "AuthenticationFailed",
    "AuthenticationRequest",
    "AuthenticationUnavailable",
    "CallCancelled",
    "Cancelled",
    "ClientCannot",
    "Completion",
    "Context",
    "Declined",
    "Elicit",
    "ElicitUrl",
    "EmbeddedResource",
    "Header",
    "Icon",
    "Image",
    "Principal",
    "PromptMessage",
    "PromptOutput",
    "RegistrationError",
    "ResourceContents",
    "ResourceLink",
    "ResourceOutput",
    "Roots",
    "Sample",
    "SamplingMessage",
    "Scope",
    "SyncContext",
    "Text",
    "TimedOut",
    "ToolError",
    "ToolOutput",
    "ToolResult",
    "ToolUse",
    "WatchedQuerySet",
    "__version__",
    "achanged",
    "alog",
    "anotify",
    "changed",
    "changed_model",
    "log",
    "mcp",
    "notify",
    "within",
]

_CHANGES = {
    **dict.fromkeys(("alog", "log"), "log_messages"),
    **dict.fromkeys(("achanged", "anotify", "changed", "notify"), "changes"),
    **dict.fromkeys(("WatchedQuerySet", "changed_model"), "changes"),
}
"""The module of `invalidation` from which each name is imported late."""


def __getattr__(name: str) -> Any:
    if name in _CHANGES:
        return getattr(import_module(f"mcp_app.invalidation.{_CHANGES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
