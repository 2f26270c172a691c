"""initialize, ping, server/discover, logging/setLevel."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from mcp_app.interface.context import LEVELS
from mcp_app.models import Session
from mcp_app.pools.database import reader
from mcp_app.protocol.revisions import REVISIONS, STATEFUL, SUPPORTED_VERSIONS
from mcp_app.server.handlers import HANDLERS
from tests.asgi_client import CLIENT, PREFIX, Client, JsonObject, outcome
from tests.marks import NEWEST_FIRST, STATEFUL_NEWEST_FIRST
from tests.serving import Connect, counted
from tests.wire.middleware import WireCheck

NEWEST: Final = "2026-07-28"
CAPABILITIES: Final[JsonObject] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
}


async def stored() -> Session:
    return await reader.run(Session.objects.get)


# -- initialize -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("clientInfo", {"name": "a\u0000b", "version": "1"}),
        ("clientInfo", {"name": "a", "version": "\\\u0000"}),
        ("capabilities", {"experimental": {"k\u0000": {}}}),
    ],
)
async def test_a_nul_in_what_a_client_says_of_itself(
    application: WireCheck, member: str, value: JsonObject
) -> None:
    """No database keeps it."""
    client = Client(application, "2025-11-25")
    request = client.initialize()
    request["params"][member] = value
    found = await client.sent(request)
    assert found.error["code"] == -32602
    assert f"params.{member} has a NUL" in found.error["message"]
    assert (await counted())["Session"] == 0


async def test_what_looks_like_a_nul_is_none(application: WireCheck) -> None:
    client = Client(application, "2025-11-25")
    request = client.initialize()
    request["params"]["clientInfo"] = {"name": "\\u0000", "version": "1"}
    assert (await client.sent(request)).status == 200
    assert (await stored()).client["name"] == "\\u0000"


@pytest.mark.parametrize("version", STATEFUL)
async def test_initialize(application: WireCheck, version: str) -> None:
    client = Client(application, version)
    found = await client.sent(client.initialize())
    assert (found.status, found.headers["content-type"]) == (200, "application/json")
    completions: JsonObject = {} if version == "2024-11-05" else {"completions": {}}
    assert found.result == {
        "protocolVersion": version,
        "capabilities": {**CAPABILITIES, **completions},
        "serverInfo": {
            "name": "django-mcp-app",
            "version": "0.1.0",
            **({"title": "Drill"} if version >= "2025-06-18" else {}),
        },
    }
    session = await stored()
    assert (session.revision, session.server) == (version, "default")
    assert session.client["name"] == CLIENT["name"]
    assert found.headers["mcp-session-id"] not in (session.digest, "")


@pytest.mark.parametrize("version", STATEFUL)
async def test_what_a_server_says_of_itself(
    application: WireCheck, version: str
) -> None:
    client = Client(application, version, path="/mcp/tagged")
    result = (await client.sent(client.initialize())).result
    assert result["instructions"] == "Ask for what is tagged."
    info = result["serverInfo"]
    assert (info["name"], info["version"]) == ("tagged", "7")
    assert ("title" in info) == (version >= "2025-06-18")
    for member in ("description", "websiteUrl", "icons"):
        assert (member in info) == (version >= "2025-11-25")


@pytest.mark.parametrize(
    "requested", ["2024-10-07", "2030-01-01", "1", "", "x", NEWEST]
)
async def test_another_version_is_offered(
    application: WireCheck, requested: str
) -> None:
    client = Client(application, "2025-11-25")
    found = await client.sent(client.initialize(protocolVersion=requested))
    assert found.result["protocolVersion"] == "2025-11-25"
    assert (await stored()).revision == "2025-11-25"


WRONG: Final[list[dict[str, Any]]] = [
    *({"protocolVersion": None}, {"protocolVersion": 20251125}, {"capabilities": None}),
    *({"capabilities": []}, {"clientInfo": None}, {"clientInfo": "me"}),
    *({"clientInfo": {}}, {"clientInfo": {"name": "me"}}),
    {"clientInfo": {"name": 7, "version": "1"}},
    {"clientInfo": {"name": "me", "version": 1}},
]


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_a_wrong_initialize_leaves_no_session(
    application: WireCheck, version: str
) -> None:
    client = Client(application, version)
    for changes in WRONG:
        found = await client.sent(client.initialize(**changes))
        assert (found.status, found.error["code"]) == (200, -32602)
        assert next(iter(changes)) in found.error["message"]
        assert "mcp-session-id" not in found.headers
    message = client.initialize()
    del message["params"]
    assert (await client.sent(message)).error["code"] == -32602
    assert (await counted())["Session"] == 0


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_capabilities_that_nobody_knows(
    application: WireCheck, version: str
) -> None:
    client = Client(application, version)
    capabilities = {"madeUp": {"a": [1]}, "experimental": {"b": {}}, "c": True}
    found = await client.sent(client.initialize(capabilities=capabilities))
    assert found.result["protocolVersion"] == version


async def test_initialize_for_one_who_takes_json(application: WireCheck) -> None:
    client = Client(application, "2025-11-25", headers={"accept": "application/json"})
    assert (await client.open()).session


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_initialized_is_remembered(application: WireCheck, version: str) -> None:
    client = Client(application, version)
    found = await client.sent(client.initialize())
    client.session = found.headers["mcp-session-id"]
    # A session is usable from the answer on.
    assert (await client.call("drill_add", a=1, b=2)).text == "3"
    assert not (await stored()).initialized
    await client.notify("notifications/initialized")
    await client.notify("notifications/initialized")
    async with asyncio.timeout(60):
        while not (await stored()).initialized:
            await asyncio.sleep(0)


# -- ping and discover ----------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_ping(client: Client) -> None:
    assert (await client.request("ping")).result == {}
    for request_id in (0, -1, 2**53 - 1, "a", "\0", "💥"):
        found = await client.request("ping", id=request_id)
        assert found.answer == {"jsonrpc": "2.0", "id": request_id, "result": {}}


@pytest.mark.parametrize(
    ("path", "headers", "scope"),
    [("/mcp/tagged", {}, "public"), ("/mcp/private", {"x-user": "a"}, "private")],
)
async def test_discover(
    connect: Connect, path: str, headers: dict[str, str], scope: str
) -> None:
    client = await connect(NEWEST, path=path, headers=headers)
    result = (await client.request("server/discover")).result
    assert result["supportedVersions"] == list(SUPPORTED_VERSIONS)
    assert result["capabilities"] == {**CAPABILITIES, "completions": {}}
    assert result["_meta"][f"{PREFIX}serverInfo"]["name"] == path.rpartition("/")[2]
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, scope)
    assert ("instructions" in result) == (path == "/mcp/tagged")


# -- logging/setLevel -----------------------------------------------------------


async def heard(client: Client) -> list[str]:
    found = await client.call("logs")
    return [each["level"] for each in found.notifications("notifications/message")]


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_levels(connect: Connect, version: str) -> None:
    client, other = await connect(version), await connect(version)
    assert await heard(client) == list(LEVELS[1:])
    for index, level in enumerate(LEVELS):
        found = await client.request("logging/setLevel", {"level": level})
        assert found.result == {}
        assert await heard(client) == list(LEVELS[index:])
    assert await heard(other) == list(LEVELS[1:])


@pytest.mark.parametrize("level", [None, 7, "", "loud", "INFO", []])
async def test_wrong_levels(stateful: Client, level: Any) -> None:
    found = await stateful.request("logging/setLevel", {"level": level})
    assert (found.status, found.error["code"]) == (200, -32602)
    assert (await stored()).log_level is None


# -- every method of every revision ---------------------------------------------

PARAMS: Final[dict[str, JsonObject]] = {
    "tools/call": {"name": "drill_add", "arguments": {"a": 1, "b": 2}},
    "resources/read": {"uri": "memo://fixed"},
    "resources/subscribe": {"uri": "memo://fixed"},
    "resources/unsubscribe": {"uri": "memo://fixed"},
    "prompts/get": {"name": "test_simple_prompt"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "greets"},
        "argument": {"name": "name", "value": ""},
    },
    "logging/setLevel": {"level": "error"},
    "subscriptions/listen": {"notifications": {}},
}
METHODS: Final = sorted(
    {each for known in REVISIONS.values() for each in known.methods}
)


@pytest.mark.parametrize("version", REVISIONS)
async def test_every_method(client: Client) -> None:
    """This server has no tasks, event types and skills, so it lacks their methods."""
    for method in METHODS:
        if method == "initialize" and client.revision.sessions:
            continue
        visit = client.begin(method, PARAMS.get(method))
        extensions = ("tasks/", "events/", "skills/", "resources/directory/")
        lacks = method.startswith(extensions)
        if method not in client.revision.methods or lacks:
            found = await outcome(visit)
            status = 404 if client.revision.stateless else 200
            assert (found.status, found.error["code"]) == (status, -32601)
        elif method == "subscriptions/listen":
            assert await visit.message() is not None
            await visit.leave()
        else:
            assert (await outcome(visit)).result is not None


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_methods_that_nobody_has(client: Client) -> None:
    named = (
        *("", "tools/list ", "Tools/List", "tools/call/", "initialized"),
        *("notifications/initialized", "sampling/createMessage", "roots/list"),
        "tasks/list",
    )
    for method in named:
        found = await client.request(method, headers={"mcp-method": method})
        status = 404 if client.revision.stateless else 200
        assert (found.status, found.error["code"]) == (status, -32601)
        assert method in found.error["message"]


# -- clients of odd tastes ------------------------------------------------------


async def test_initialize_for_one_who_takes_events_only(application: WireCheck) -> None:
    headers = {"accept": "text/event-stream"}
    client = Client(application, "2025-11-25", headers=headers)
    found = await client.sent(client.initialize())
    assert found.headers["content-type"] == "text/event-stream"
    assert found.headers["mcp-session-id"]
    assert found.result["protocolVersion"] == "2025-11-25"


async def test_a_client_that_says_too_much_of_itself(application: WireCheck) -> None:
    client = Client(application, "2025-11-25")
    capabilities = {"experimental": {"x": {"y": "z" * 70_000}}}
    found = await client.sent(client.initialize(capabilities=capabilities))
    assert found.error["code"] == -32602
    assert "16384" in found.error["message"]
    assert (await counted())["Session"] == 0


# -- handlers --------------------------------------------------------------------------


def test_each_method_of_a_revision_has_a_handler() -> None:
    known = {name for each in REVISIONS.values() for name in each.methods}
    # Streams of changes are the transport's.
    assert known == HANDLERS.keys() | {"subscriptions/listen", "events/stream"}
