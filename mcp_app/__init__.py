"""An MCP endpoint for any Django site: what a site's `mcp.py` imports.

Works before the app registry is ready.  `changed`, `notify` and their async twins
insert rows, and so come when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_app.catalog.registry import RegistrationError, mcp
from mcp_app.catalog.signatures import Header
from mcp_app.interface.context import Context, SyncContext
from mcp_app.interface.errors import (
    CallCancelled,
    ClientCannot,
    TimedOut,
    ToolError,
)
from mcp_app.interface.principal import (
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
)
from mcp_app.interface.questions import (
    Accepted,
    Cancelled,
    Declined,
    Elicit,
    ElicitUrl,
    Roots,
    Sample,
    SamplingMessage,
)
from mcp_app.interface.results import (
    Completion,
    PromptMessage,
    PromptOutput,
    ResourceOutput,
    ToolOutput,
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
    from mcp_app.wakeup.changes import achanged, anotify, changed, notify

__version__ = VERSION

__all__ = [
    "Accepted",
    "Annotations",
    "Audio",
    "AuthenticationFailed",
    "AuthenticationRequest",
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
    "SyncContext",
    "Text",
    "TimedOut",
    "ToolError",
    "ToolOutput",
    "ToolResult",
    "ToolUse",
    "__version__",
    "achanged",
    "anotify",
    "changed",
    "mcp",
    "notify",
]

_CHANGES = frozenset({"achanged", "anotify", "changed", "notify"})


def __getattr__(name: str) -> Any:
    if name in _CHANGES:
        return getattr(import_module("mcp_app.wakeup.changes"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
