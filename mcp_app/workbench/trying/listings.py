"""What a client sees of a server: its lists, read page by page as any client does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_app.catalog.definition_texts import estimate_tokens
from mcp_app.interface.server import Key
from mcp_app.process.current import process
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.in_process import Caller, InProcessClient, SessionRefused
from mcp_app.workbench.trying.trial import status_of

MAX_PAGES: Final = 1_000


LISTS: Final = (
    ("tools", "tools/list", "tools", "name"),
    ("prompts", "prompts/list", "prompts", "name"),
    ("resources", "resources/list", "resources", "uri"),
    ("templates", "resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("events", "events/list", "events", "name"),
)
"""Catalog's name, method, member with the items, and member that names an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of a list; `key` is that of its row, None if it has none.

    `only_reads` is what the hints of a tool say.
    """

    identity: str
    title: str
    tokens: int
    key: Key | None
    only_reads: bool


@dataclass(frozen=True, slots=True)
class ServerLists:
    """The items by list; `refused` is the HTTP status if clients are turned away."""

    items: Mapping[str, Sequence[Item]]
    refused: int = 0
    reason: str = ""

    @property
    def token_count(self) -> int:
        """The tokens that all lists take."""
        return sum(item.tokens for items in self.items.values() for item in items)


class NoList(Exception):
    """A list was not answered; its text is the server's error."""


async def read_lists(server: str, caller: Caller) -> ServerLists:
    """Read all lists of a server, on the loop of the process."""
    current = process()
    client = InProcessClient(current, server, caller)
    try:
        await client.check_served()
        has_events = getattr(current.catalogs.by_slug.get(server), "has_events", False)
        return ServerLists(
            {
                name: [
                    _build_item(current, server, name, identity, listed)
                    async for listed in listed_items(client, method, member)
                ]
                for name, method, member, identity in LISTS
                # A server without event types does not have the method.
                if name != "events" or has_events
            }
        )
    except SessionRefused as refused:
        error = json.loads(refused.answer)["error"]
        return ServerLists({}, reason=str(error["message"]))
    except NoList as refused:
        return ServerLists({}, reason=str(refused))
    except ProtocolError as error:
        return ServerLists({}, status_of(error), error.message)


async def listed_items(
    client: InProcessClient, method: str, member: str
) -> AsyncIterator[JsonObject]:
    """Yield the items of a list, page by page; raise `NoList` if there is none."""
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        answer = json.loads(await client.send_request(method, params))
        if "error" in answer:
            # The rate limit may refuse it: a list that was not read is not empty.
            raise NoList(answer["error"]["message"])
        result = answer["result"]
        for each in result.get(member, []):
            yield each
        if "nextCursor" not in result:
            return
        params = {"cursor": result["nextCursor"]}


def _build_item(
    current: Process, server: str, name: str, naming: str, listed: JsonObject
) -> Item:
    identity = str(listed[naming])
    entries = getattr(current.catalogs.by_slug.get(server), name, {})
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return Item(
        identity=identity,
        title=str(listed.get("title", "")),
        tokens=estimate_tokens(text),
        key=getattr(entries.get(identity), "key", None),
        only_reads=bool(listed.get("annotations", {}).get("readOnlyHint")),
    )
