"""What a client sees of a server: its lists, page by page, as any client reads them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_app.catalog.definition_texts import estimate_tokens
from mcp_app.interface.server import Key
from mcp_app.process.background import process
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.in_process import Caller, InProcessClient, SessionRefused
from mcp_app.workbench.trying.trial import status_of

MAX_PAGES: Final = 1_000


@dataclass(frozen=True, slots=True)
class List:
    """One list: its name in the catalog, its method, and what names an item in it."""

    name: str
    method: str
    identity: str


LISTS: Final[Sequence[List]] = (
    List("tools", "tools/list", "name"),
    List("prompts", "prompts/list", "name"),
    List("resources", "resources/list", "uri"),
    List("templates", "resources/templates/list", "uriTemplate"),
)
MEMBERS: Final[Mapping[str, str]] = {"templates": "resourceTemplates"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of a list; `key` is that of its row, None if it has none."""

    identity: str
    title: str
    tokens: int
    key: Key | None


@dataclass(frozen=True, slots=True)
class ServerLists:
    """The items by list; `refused` is the HTTP status if clients are turned away."""

    items: Mapping[str, Sequence[Item]]
    refused: int = 0
    reason: str = ""

    @property
    def token_count(self) -> int:
        """What all lists take of a model's memory."""
        return sum(item.tokens for items in self.items.values() for item in items)


class _NoList(Exception):
    """A list was not answered; its text is the server's error."""


async def read_lists(server: str, caller: Caller) -> ServerLists:
    """Read all lists of a server, on the loop of the process."""
    current = process()
    client = InProcessClient(current, server, caller)
    try:
        await client.check_served()
        return ServerLists(
            {
                each.name: [
                    _build_item(current, server, each, listed)
                    async for listed in _listed_items(client, each)
                ]
                for each in LISTS
            }
        )
    except SessionRefused as refused:
        error = json.loads(refused.answer)["error"]
        return ServerLists({}, reason=str(error["message"]))
    except _NoList as refused:
        return ServerLists({}, reason=str(refused))
    except ProtocolError as error:
        return ServerLists({}, status_of(error), error.message)


async def _listed_items(
    client: InProcessClient, which: List
) -> AsyncIterator[JsonObject]:
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        answer = json.loads(await client.send_request(which.method, params))
        if "error" in answer:
            # Such as too many requests: a list that nobody has read is not empty.
            raise _NoList(answer["error"]["message"])
        result = answer["result"]
        for each in result.get(MEMBERS.get(which.name, which.name), []):
            yield each
        if "nextCursor" not in result:
            return
        params = {"cursor": result["nextCursor"]}


def _build_item(current: Process, server: str, which: List, listed: JsonObject) -> Item:
    identity = str(listed[which.identity])
    catalog = current.catalogs.by_slug.get(server)
    entries: Mapping[str, Any] = getattr(catalog, which.name, {})
    entry = entries.get(identity)
    return Item(
        identity=identity,
        title=str(listed.get("title", "")),
        tokens=estimate_tokens(
            json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
        ),
        key=None if entry is None else entry.key,
    )
