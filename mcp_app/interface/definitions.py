"""What a client can see of a server: tools, resources, templates and prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp_app.interface.access_requirements import NO_REQUIREMENTS, AccessRequirements
from mcp_app.protocol.content import Annotations, Icon
from mcp_app.protocol.json_types import JsonObject

EMPTY_SCHEMA: JsonObject = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """The protocol's tool annotations; None leaves the protocol's default.

    Read-only and idempotent calls are not logged and may be repeated.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @property
    def repeatable(self) -> bool:
        """Whether the call may run twice without harm."""
        return bool(self.read_only or self.idempotent)

    def to_wire(self) -> JsonObject:
        named = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What all four kinds of definition have.

    Who does not meet the `demands` finds it neither listed nor usable.  `timeout` is in
    seconds, None for the site's default.  Lists are ordered by `position`, then by
    name.
    """

    name: str
    title: str = ""
    description: str = ""
    icons: Sequence[Icon] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    demands: AccessRequirements = NO_REQUIREMENTS
    timeout: float | None = None
    tags: frozenset[str] = frozenset()
    position: int = 0

    @property
    def only_reads(self) -> bool:
        """Whether to use it changes nothing, as far as it says."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition(Definition):
    """A tool; the schemas are JSON Schema objects as the client gets them.

    One person may call it `calls_per_minute` times, None for the site's rate.
    """

    input_schema: Mapping[str, object] = field(default_factory=lambda: EMPTY_SCHEMA)
    output_schema: Mapping[str, object] | None = None
    hints: ToolHints = field(default_factory=ToolHints)
    calls_per_minute: int | None = None

    @property
    def only_reads(self) -> bool:
        return bool(self.hints.read_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadableDefinition(Definition):
    """`ttl_ms` and `public` are the caching hints of `resources/read`."""

    mime_type: str = ""
    annotations: Annotations | None = None
    ttl_ms: int = 0
    public: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDefinition(_ReadableDefinition):
    """A resource with a fixed URI; `size` is in bytes where it is known."""

    uri: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplateDefinition(_ReadableDefinition):
    """Resources whose URIs match a template of RFC 6570.

    Lists never have the `suggestions` for its variables, by name: a client gets those
    that fit what was typed.
    """

    uri_template: str
    suggestions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """A named string that a prompt is filled with.

    Lists never have the `suggestions`: a client gets those that fit what was typed.
    """

    name: str
    title: str = ""
    description: str = ""
    required: bool = False
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDefinition(Definition):
    """A prompt and the arguments that fill it."""

    arguments: Sequence[PromptArgument] = ()
