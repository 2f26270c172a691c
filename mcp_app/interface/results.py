"""What user code may return where a plain value is not enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp_app.protocol.content import Block, ResourceContents, Role
from mcp_app.protocol.meta import check_meta


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The whole result of a tool: blocks, and a JSON object beside them."""

    content: Sequence[Block]
    structured: Mapping[str, object] | None = field(default=None, kw_only=True)
    is_error: bool = field(default=False, kw_only=True)
    meta: Mapping[str, object] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.meta is not None:
            check_meta(self.meta)


@dataclass(frozen=True, slots=True)
class ResourceOutput:
    """The contents that `resources/read` answers with."""

    contents: Sequence[ResourceContents]


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    content: Block
    role: Role = "user"


@dataclass(frozen=True, slots=True)
class PromptOutput:
    """The messages that `prompts/get` answers with."""

    messages: Sequence[PromptMessage]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """Values that complete an argument: at most 100 are sent, best first."""

    values: Sequence[str]
    total: int | None = None
    has_more: bool | None = None
