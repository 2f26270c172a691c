"""What a client may do with a server, and what it must be told: for every transport.

An exchange names the kinds of messages that must have come: definitions of the schema,
and "error" with a code. Everything that comes is judged anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from tests.asgi_client import PREFIX
from tests.wire.transports import ANSWERS, HttpWire, Wire

Run: TypeAlias = Callable[[Wire], Awaitable[object]]
JsonObject: TypeAlias = dict[str, Any]

V2024, V2025_03, V2025_06, V2025_11, V2026 = VERSIONS = (
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
)
STATEFUL: Final = VERSIONS[:-1]
ELICITING: Final = (V2025_06, V2025_11)
STATELESS: Final = (V2026,)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What is said, and the kinds that come of it.

    `shows` come on every transport, `streamed` where there are streams, `whole` where
    there are none, `piped` where there is no HTTP. `http` is for HTTP alone.
    """

    run: Run
    versions: tuple[str, ...] = VERSIONS
    _: KW_ONLY
    shows: frozenset[str] = frozenset()
    streamed: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    piped: frozenset[str] = frozenset()
    slug: str = ""
    opens: bool = True
    http: bool = False

    def kinds(self, wire: Wire) -> frozenset[str]:
        found = self.shows | (self.streamed if wire.streams else self.whole)
        return found if isinstance(wire, HttpWire) else found | self.piped


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


def asks(method: str, **params: Any) -> Run:
    return lambda wire: wire.ask(method, params)


def calls(tool: str, **arguments: Any) -> Run:
    return lambda wire: wire.call(tool, **arguments)


async def _nothing(wire: Wire) -> None:
    """The session alone is the exchange."""


async def _pages(wire: Wire, method: str) -> None:
    result = (await wire.ask(method))["result"]
    pages = 1
    while "nextCursor" in result:
        cursor = {"cursor": result["nextCursor"]}
        result = (await wire.ask(method, cursor))["result"]
        pages += 1
    assert pages > 1
    await wire.ask(method, {"cursor": "none"})


async def _progress(wire: Wire) -> None:
    for tool, arguments in (
        ("reports", {"steps": [1, 2.5, 3], "total": 3}),
        ("reports_sync", {"count": 2}),
        ("reports", {"steps": [1], "end": "fail"}),
    ):
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        await wire.ask("tools/call", params)


async def _levels(wire: Wire) -> None:
    meta = {f"{PREFIX}logLevel": "debug"} if wire.stateless else {}
    if not wire.stateless:
        await wire.ask("logging/setLevel", {"level": "debug"})
    for tool in ("logs", "logs_sync", "records"):
        await wire.ask("tools/call", {"name": tool, "_meta": meta})


async def _changes(wire: Wire) -> None:
    lists = ["tools", "prompts", "resources"]
    await wire.listen(**{f"{each}ListChanged": True for each in lists})
    await wire.call("changes", what=lists)
    if wire.streams:
        for each in lists:
            await wire.until_told(f"notifications/{each}/list_changed")


async def _updates(wire: Wire) -> None:
    uri = "memo://fixed"
    if not wire.stateless:
        await wire.ask("resources/subscribe", {"uri": uri})
    await wire.listen(resourceSubscriptions=[uri])
    await wire.call("changes", what=[uri])
    if wire.streams:
        await wire.until_told("notifications/resources/updated")
    if not wire.stateless:
        await wire.ask("resources/unsubscribe", {"uri": uri})


async def _answered(wire: Wire, tool: str, **arguments: Any) -> None:
    await _retried(wire, "tools/call", {"name": tool, "arguments": arguments})


async def _retried(wire: Wire, method: str, params: JsonObject) -> None:
    """Answer what is asked until there is a result, in the way of the era."""
    answer = await wire.ask(method, params)
    while "inputRequests" in answer.get("result", {}):
        asked = answer["result"]["inputRequests"]
        brought = {key: ANSWERS[each["method"]] for key, each in asked.items()}
        state = answer["result"]["requestState"]
        more = {"inputResponses": brought, "requestState": state}
        answer = await wire.ask(method, {**params, **more})


async def _unsealed(wire: Wire) -> None:
    params = {"name": "orders", "requestState": "none", "inputResponses": {}}
    await wire.ask("tools/call", params)


async def _given_up(wire: Wire) -> None:
    wire.silent = True
    await wire.call("orders_soon")
    if wire.streams:
        await wire.until_told("notifications/cancelled")


async def _cancelled(wire: Wire) -> None:
    if not wire.streams:
        return
    wire.silent = True
    message = wire.client.message("tools/call", {"name": "roots"})
    calling = asyncio.create_task(wire.say(message))
    await wire.until_told("roots/list")
    await wire.say({**CANCELLED, "params": {"requestId": message["id"]}})
    await wire.until_told(CANCELLED["method"])
    if not isinstance(wire, HttpWire):
        # There is no stream whose end could be seen.
        calling.cancel()
    await asyncio.wait([calling])


async def _unable(wire: Wire) -> None:
    """Be a client that can do nothing, whom a tool wants to ask."""
    wire.client.capabilities = {}
    await wire.open()
    await wire.call("orders")
    await wire.call("fails", kind="cannot")


async def _batch(wire: Wire) -> None:
    message = wire.client.message
    await wire.say(
        [
            message("tools/list"),
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            message("tools/call", {"name": "blocks"}),
            message("tools/call", {"name": "none"}),
            message("none"),
            message("ping"),
        ]
    )


async def _says(wire: Wire, value: object) -> None:
    await wire.say(value, answers=1)


async def _wrong_message(wire: Wire, **changes: Any) -> None:
    await wire.say({**wire.client.message("tools/list"), **changes}, answers=1)


async def _before(wire: Wire) -> None:
    await wire.say(wire.client.message("tools/list"))
    await wire.say(wire.client.message("none"), mcp_session_id="none")


async def _initialize_wrongly(wire: Wire) -> None:
    await wire.say(wire.client.initialize(protocolVersion=1))
    await wire.say(wire.client.initialize(clientInfo=None))


async def _initialize_twice(wire: Wire) -> None:
    await wire.say(wire.client.initialize())


async def _headers(wire: Wire) -> None:
    for changes in (
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_protocol_version": None},
        {"mcp_method": "tools/call"},
        {"mcp_method": None},
    ):
        await wire.say(wire.client.message("tools/list"), **changes)
    call = wire.client.message("tools/call", {"name": "typed", "arguments": {}})
    await wire.say(call, mcp_name="other")


async def _http(wire: Wire) -> None:
    assert isinstance(wire, HttpWire)
    message = wire.client.message
    await wire.say(message("tools/list"), content_type="text/plain")
    await wire.say(message("tools/list"), accept="text/html")
    await wire.send("PUT")
    await wire.send("GET", accept="text/plain")


async def _origin(wire: Wire) -> None:
    await wire.say(wire.client.message("tools/list"), origin="https://evil.example")


async def _foreign_version(wire: Wire) -> None:
    meta = {f"{PREFIX}protocolVersion": "2099-01-01"}
    message = wire.client.message("tools/list", {"_meta": meta})
    await wire.say(message, mcp_protocol_version="2099-01-01")


async def _poor_meta(wire: Wire) -> None:
    message = wire.client.message("tools/list")
    del message["params"]["_meta"][f"{PREFIX}clientCapabilities"]
    await wire.say(message)


CANCELLED: Final = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
PROMPT: Final = {"type": "ref/prompt", "name": "greets"}
TEMPLATE: Final = {"type": "ref/resource", "uri": "memo://value/{which}"}
RESULT: Final = _kinds("CallToolResult")
PARAMS: Final = _kinds("error -32602")
REQUEST: Final = _kinds("error -32600")
EMPTY: Final = _kinds("EmptyResult")
METHOD: Final = _kinds("error -32601")
ASKED: Final = _kinds("InputRequiredResult", "CallToolResult")


def _lists() -> dict[str, Exchange]:
    named = {
        "tools/list": "ListToolsResult",
        "prompts/list": "ListPromptsResult",
        "resources/list": "ListResourcesResult",
        "resources/templates/list": "ListResourceTemplatesResult",
    }
    whole = {
        each: Exchange(asks(each), shows=_kinds(kind)) for each, kind in named.items()
    }
    pages = {
        f"pages of {each}": Exchange(
            partial(_pages, method=each), shows=_kinds(kind) | PARAMS, slug="pages"
        )
        for each, kind in named.items()
    }
    return whole | pages


def _calls() -> dict[str, Exchange]:
    """Each kind of content, and each way in which a tool fails."""
    made: list[tuple[str, Any]] = [
        ("blocks", {}),
        ("weather", {}),
        ("typed", {"count": 1}),
        ("marked", {}),
        ("drill_add", {"a": 1, "b": 2}),
        ("test_image_content", {}),
        ("test_audio_content", {}),
        ("test_embedded_resource", {}),
        ("test_multiple_content_types", {}),
        ("test_resource_link", {}),
        ("whoami", {}),
        *(("returns", {"which": each}) for each in ("none", "nan", "nul", "surrogate")),
        *(("fails", {"kind": each}) for each in ("tool error", "content", "value")),
        ("fails_sync", {"kind": "value"}),
        ("broken_promise", {"kind": "other"}),
        ("broken_promise", {"kind": "error"}),
        ("hangs", {}),
        ("hangs_sync", {}),
        ("logs_wrongly", {}),
    ]
    return {
        f"call {tool} {' '.join(map(str, arguments.values()))}".strip(): Exchange(
            calls(tool, **arguments), shows=RESULT
        )
        for tool, arguments in made
    }


def _questions() -> dict[str, Exchange]:
    """What a tool asks: a request of the server, or the result of a request."""
    asked = [
        ("orders", "ElicitRequest", ELICITING),
        ("orders_sync", "ElicitRequest", ELICITING),
        ("chooses", "ElicitRequest", ELICITING),
        ("asks_twice", "ElicitRequest", ELICITING),
        ("samples", "CreateMessageRequest", STATEFUL),
        ("roots", "ListRootsRequest", STATEFUL),
    ]
    stateful = {
        f"{tool} in a session": Exchange(
            partial(_answered, tool=tool), versions, shows=RESULT, streamed=_kinds(kind)
        )
        for tool, kind, versions in asked
    }
    names = [*(tool for tool, _, _ in asked), "visits", "asks_many"]
    stateless = {
        f"{tool} in rounds": Exchange(
            partial(_answered, tool=tool), STATELESS, shows=ASKED
        )
        for tool in names
    }
    return stateful | stateless


EXCHANGES: Final[Mapping[str, Exchange]] = {
    "a session": Exchange(_nothing, STATEFUL, shows=_kinds("InitializeResult")),
    "a titled server": Exchange(
        _nothing, STATEFUL, shows=_kinds("InitializeResult"), slug="tagged"
    ),
    "ping": Exchange(asks("ping"), STATEFUL, shows=EMPTY),
    "discovery": Exchange(
        asks("server/discover"), STATELESS, shows=_kinds("DiscoverResult")
    ),
    "discovery of a titled server": Exchange(
        asks("server/discover"),
        STATELESS,
        shows=_kinds("DiscoverResult"),
        slug="tagged",
    ),
    **_lists(),
    **_calls(),
    **_questions(),
    "long samples": Exchange(
        partial(_answered, tool="samples", long=True),
        STATEFUL,
        shows=RESULT,
        streamed=_kinds("CreateMessageRequest"),
    ),
    "long samples in rounds": Exchange(
        partial(_answered, tool="samples", long=True, tools=True),
        STATELESS,
        shows=ASKED,
    ),
    "a visit": Exchange(
        partial(_answered, tool="visits"),
        (V2025_11,),
        streamed=RESULT | _kinds("ElicitRequest", "ElicitationCompleteNotification"),
        whole=_kinds("error -32042"),
    ),
    "a question that is given up": Exchange(
        _given_up,
        ELICITING,
        shows=RESULT,
        streamed=_kinds("ElicitRequest", "CancelledNotification"),
    ),
    "a call that is cancelled": Exchange(
        _cancelled,
        STATEFUL,
        streamed=_kinds("ListRootsRequest", "CancelledNotification"),
    ),
    "a client that cannot": Exchange(
        _unable, STATELESS, shows=_kinds("error -32021"), opens=False
    ),
    "a client that cannot, in a session": Exchange(
        _unable, STATEFUL, shows=RESULT, opens=False
    ),
    "a state that nobody sealed": Exchange(_unsealed, STATELESS, shows=PARAMS),
    "a resource that asks": Exchange(
        partial(_retried, method="resources/read", params={"uri": "memo://asks"}),
        STATELESS,
        shows=_kinds("InputRequiredResult", "ReadResourceResult"),
    ),
    "a prompt that asks": Exchange(
        partial(_retried, method="prompts/get", params={"name": "prompt_asks"}),
        STATELESS,
        shows=_kinds("InputRequiredResult", "GetPromptResult"),
    ),
    "progress": Exchange(
        _progress, shows=RESULT, streamed=_kinds("ProgressNotification")
    ),
    "logging": Exchange(
        _levels, shows=RESULT, streamed=_kinds("LoggingMessageNotification")
    ),
    "lists that change": Exchange(
        _changes,
        shows=RESULT,
        streamed=_kinds(
            "ToolListChangedNotification",
            "PromptListChangedNotification",
            "ResourceListChangedNotification",
        ),
    ),
    "a resource that changes": Exchange(
        _updates, shows=RESULT, streamed=_kinds("ResourceUpdatedNotification")
    ),
    "subscriptions": Exchange(_updates, STATEFUL, streamed=EMPTY, whole=METHOD),
    "listening": Exchange(
        _changes,
        STATELESS,
        streamed=_kinds(
            "SubscriptionsAcknowledgedNotification", "SubscriptionsListenResult"
        ),
        piped=_kinds("CancelledNotification"),
        whole=METHOD,
    ),
    **{
        f"read {uri}": Exchange(
            asks("resources/read", uri=uri), shows=_kinds("ReadResourceResult")
        )
        for uri in (
            *("memo://fixed", "memo://many", "memo://value/bytes", "memo://value/json"),
            *("test://static-binary", "test://template/1/data"),
        )
    },
    "an unknown resource": Exchange(
        asks("resources/read", uri="memo://none"),
        STATEFUL,
        shows=_kinds("error -32002"),
    ),
    "an unknown resource without a session": Exchange(
        asks("resources/read", uri="memo://none"), STATELESS, shows=PARAMS
    ),
    "a resource that fails": Exchange(
        asks("resources/read", uri="memo://value/raises"), shows=_kinds("error -32603")
    ),
    **{
        f"prompt {name}": Exchange(
            asks("prompts/get", name=name, arguments=arguments),
            shows=_kinds("GetPromptResult"),
        )
        for name, arguments in (
            ("greets", {"name": "Ada"}),
            ("prompt_blocks", {}),
            ("test_prompt_with_image", {}),
            ("test_prompt_with_embedded_resource", {"resourceUri": "memo://fixed"}),
        )
    },
    "a prompt that fails": Exchange(
        asks("prompts/get", name="prompt_fails"), shows=_kinds("error -32603")
    ),
    "a prompt without its argument": Exchange(
        asks("prompts/get", name="greets"), shows=PARAMS
    ),
    **{
        f"completion of {name}": Exchange(
            asks("completion/complete", ref=ref, argument={"name": name, "value": ""}),
            shows=_kinds("CompleteResult"),
        )
        for ref, name in ((PROMPT, "name"), (PROMPT, "times"), (TEMPLATE, "which"))
    },
    "completion of an unknown prompt": Exchange(
        asks(
            "completion/complete",
            ref={"type": "ref/prompt", "name": "none"},
            argument={"name": "a", "value": ""},
        ),
        shows=PARAMS,
    ),
    "a batch": Exchange(
        _batch,
        (V2025_03,),
        shows=_kinds("ListToolsResult", "EmptyResult", "CallToolResult")
        | PARAMS
        | METHOD,
    ),
    "a batch elsewhere": Exchange(
        partial(_says, value=[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]),
        tuple(each for each in VERSIONS if each != V2025_03),
        shows=REQUEST,
    ),
    "an empty batch": Exchange(partial(_says, value=[]), shows=REQUEST),
    # What is wrong.
    "an unknown method": Exchange(asks("no/such"), shows=METHOD),
    "an unknown tool": Exchange(calls("none"), shows=PARAMS),
    "an unknown prompt": Exchange(asks("prompts/get", name="none"), shows=PARAMS),
    "a tool without a name": Exchange(asks("tools/call"), shows=PARAMS),
    "wrong arguments": Exchange(calls("typed", count="x"), VERSIONS[:3], shows=PARAMS),
    "wrong arguments for the model": Exchange(
        calls("typed", count="x"), VERSIONS[3:], shows=RESULT
    ),
    "no JSON": Exchange(
        partial(_says, value=b"{"), shows=_kinds("error -32700"), opens=False
    ),
    "no JSON in a session": Exchange(
        partial(_says, value=b"{]"), shows=_kinds("error -32700")
    ),
    "no message": Exchange(partial(_says, value={}), shows=REQUEST),
    "an id that is none": Exchange(partial(_wrong_message, id=None), shows=REQUEST),
    "an id of a fraction": Exchange(
        partial(_wrong_message, id=1.5), shows=REQUEST, opens=False
    ),
    "params that are none": Exchange(partial(_wrong_message, params=[]), shows=REQUEST),
    "a method that is none": Exchange(partial(_wrong_message, method=1), shows=REQUEST),
    "before a session": Exchange(_before, STATEFUL, shows=REQUEST, opens=False),
    "a wrong initialize": Exchange(
        _initialize_wrongly, STATEFUL, shows=PARAMS, opens=False
    ),
    "a second initialize": Exchange(_initialize_twice, STATEFUL, shows=REQUEST),
    "methods of the other era": Exchange(
        asks("server/discover"), STATEFUL, shows=METHOD
    ),
    "methods of sessions": Exchange(
        asks("logging/setLevel", level="info"), STATELESS, shows=METHOD
    ),
    "an unknown version": Exchange(
        _foreign_version, STATELESS, shows=_kinds("error -32022")
    ),
    "too little in _meta": Exchange(_poor_meta, STATELESS, shows=PARAMS),
    "headers": Exchange(_headers, STATELESS, shows=_kinds("error -32020"), http=True),
    "a foreign origin": Exchange(_origin, shows=REQUEST, opens=False, http=True),
    "what only HTTP has": Exchange(_http, shows=REQUEST, http=True),
}
