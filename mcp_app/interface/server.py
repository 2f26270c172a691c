"""One MCP endpoint: what it says about itself, offers, and whom it lets in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements
from mcp_app.protocol.content import Icon
from mcp_app.protocol.json_types import JsonObject

PAGE_SIZE: Final = 1_000
"""The default and the maximum of the entries on one page of a list.

Many clients never ask for a second page.
"""

Selection: TypeAlias = Literal["all", "tags", "chosen"]
ToolList: TypeAlias = Literal["all", "search"]
"""What `tools/list` shows: all tools, or a few and the tools that find the others."""
Key: TypeAlias = tuple[str, str]
"""The kind of a row ("tool") and its primary key as text."""

VERSION = "0.1.0"
"""The version of this package."""
DEFAULT_SLUG = "default"
HEALTH_SLUG = "health"
"""No server has this slug: its address says whether the process can serve."""
METRICS_SLUG = "metrics"
"""No server has this slug: its address has the site's metrics, if they are on."""
SSE_PART, MESSAGES_PART = "sse", "messages"
"""The two addresses of HTTP+SSE (2024-11-05), below that of a server."""
CARD_PART = "server-card"
"""The address of a server's card, below that of the server (SEP-2127)."""
PARTS = frozenset({SSE_PART, MESSAGES_PART, CARD_PART})
CATALOG_PART = "ai-catalog"
"""The address of the site's catalog in `discovery_urls`; no server has it."""
RESERVED_SLUGS = frozenset({*PARTS, HEALTH_SLUG, METRICS_SLUG})
SEARCH_TOOLS, CALL_READING_TOOL = "search_tools", "call_reading_tool"
CALL_TOOL = "call_tool"
"""These three are listed by a server whose other tools are found by searching."""
GET_TASK_RESULT = "get_task_result"
"""The tool that fetches results of tasks, for clients that know none."""
WAIT_FOR_EVENT = "wait_for_event"
"""The tool that waits for events, for clients that know none."""
READ_SKILL = "read_skill"
"""The tool that reads skills, for clients that know none."""
OWN_TOOLS = (
    *(SEARCH_TOOLS, CALL_READING_TOOL, CALL_TOOL),
    *(GET_TASK_RESULT, WAIT_FOR_EVENT, READ_SKILL),
)
"""All tools of ours: `MCP["DISABLED_TOOLS"]` may name them."""
PUBLIC = "public"
BY_TOKEN = "token"  # noqa: S105 - a name
"""The name of access tokens in the settings; a new server starts with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDefinition:
    """A server as its row says it.

    `access` holds names of `MCP["AUTHENTICATION"]` in their order, or `PUBLIC` alone;
    if it is empty, nobody comes in.  Callers who do not meet the `demands` may not use
    the server at all.  With the selection "tags" only definitions that share a tag with
    the server belong to it, with "chosen" only rows that it names.
    """

    slug: str
    title: str = ""
    description: str = ""
    instructions: str = ""
    version: str = ""
    website_url: str = ""
    icons: Sequence[Icon] = ()
    access: tuple[str, ...] = ()
    listed: bool = False
    """Whether anybody may read what it says of itself."""
    demands: AccessRequirements = NO_REQUIREMENTS
    page_size: int = PAGE_SIZE
    selection: Selection = "all"
    tags: frozenset[str] = frozenset()
    chosen: frozenset[Key] = field(default=frozenset(), repr=False)
    listing: ToolList = "all"
    listed_tags: frozenset[str] = frozenset()
    """With the listing "search", tools with one of these tags are listed, too."""
    key: Key | None = field(default=None, compare=False, repr=False)
    """The key of its row."""

    @property
    def is_public(self) -> bool:
        """Whether anyone may use it without signing in."""
        return self.access == (PUBLIC,)

    @property
    def uses_search(self) -> bool:
        """Whether clients find its tools by searching."""
        return self.listing == "search"

    def implementation(self) -> JsonObject:
        """Return what the server says of itself (`Implementation`)."""
        members: JsonObject = {
            "name": "django-mcp-app" if self.slug == DEFAULT_SLUG else self.slug,
            "title": self.title,
            "version": self.version or VERSION,
            "description": self.description,
            "websiteUrl": self.website_url,
            "icons": [icon.to_wire() for icon in self.icons],
        }
        return {name: value for name, value in members.items() if value}

    def offers_definition(self, tags: frozenset[str], key: Key | None = None) -> bool:
        """Whether a definition with these tags belongs to this server.

        `key` is that of its row; what code declares may have none yet.
        """
        if self.selection == "chosen":
            return key in self.chosen
        return self.selection == "all" or bool(self.tags & tags)

    def lists_tool(self, tags: frozenset[str]) -> bool:
        """Whether a tool with these tags, which belongs to it, is in `tools/list`."""
        return not self.uses_search or bool(self.listed_tags & tags)
