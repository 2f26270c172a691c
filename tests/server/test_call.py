"""What calls tell on the way: progress and log messages, in each revision."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest

from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import Catalog, tool_entry
from mcp_app.interface.context import LEVELS
from mcp_app.interface.definitions import ToolDefinition, ToolHints
from mcp_app.interface.principal import Principal, Rights, Scope
from mcp_app.interface.rules import AccessRequirements
from mcp_app.interface.server import ServerDefinition
from mcp_app.protocol.revisions import LATEST, REVISIONS
from mcp_app.server.client_logging import ClientHandler, protocol_level
from mcp_app.server.ports import Adapters
from mcp_app.server.request import Request
from mcp_app.server.request_digests import content_digest, request_key, runs_once
from mcp_app.server.stored_callers import caller_members, caller_of
from tests.asgi_client import PREFIX, Client, JsonObject, Outcome
from tests.marks import NEWEST_FIRST
from tests.serving import Connect

NEWEST: Final = "2026-07-28"
STEPS: Final = [1, 2.5, 4]
SLOW: Final = {"LIMITS": {"progress_burst": 3, "progress_rate": 0.001}}
"""However slow the machine is, no more than the burst are sent."""


async def reported(
    client: Client, token: Any = 1, tool: str = "reports", **arguments: Any
) -> Outcome:
    params = {
        "name": tool,
        "arguments": arguments or {"steps": STEPS, "total": 4},
        "_meta": {} if token is None else {"progressToken": token},
    }
    return await client.request("tools/call", params)


def told(found: Outcome) -> list[JsonObject]:
    return found.notifications("notifications/progress")


# -- progress -------------------------------------------------------------------


@pytest.mark.parametrize("version", REVISIONS)
async def test_progress(client: Client) -> None:
    for token in ("t", "", 0, 7, -1):
        found = await reported(client, token)
        messages = told(found)
        assert [each["progressToken"] for each in messages] == [token] * 3
        assert [each["progress"] for each in messages] == STEPS
        assert [each["total"] for each in messages] == [4.0] * 3
        worded = [each.get("message") for each in messages]
        known = "message" in client.revision.fields["progress"]
        assert worded == (["at 1", "at 2.5", "at 4"] if known else [None] * 3)
        # What is told comes before the answer.
        assert found.messages[-1] == found.answer
        assert found.text == "done"


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_nobody_is_told_who_did_not_ask(client: Client) -> None:
    found = await reported(client, None)
    assert found.headers["content-type"] == "application/json"
    assert (told(found), found.text) == ([], "done")


@pytest.mark.parametrize("token", [1.5, True, [], {}])
@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_wrong_tokens(client: Client, token: Any) -> None:
    found = await reported(client, token)
    assert found.error["code"] == -32602


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_progress_increases(client: Client) -> None:
    found = await reported(client, steps=[1, 1, 0.5, 3, 2, 3.5])
    assert [each["progress"] for each in told(found)] == [1, 3, 3.5]
    assert all("total" not in each for each in told(found))


@pytest.mark.parametrize("mcp", [SLOW])
@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_the_last_is_always_told(client: Client) -> None:
    for end in ("done", "fail"):
        found = await reported(client, steps=list(range(1, 51)), end=end)
        assert [each["progress"] for each in told(found)] == [1, 2, 3, 50]
        assert found.messages[-1] == found.answer
    found = await reported(client, tool="reports_sync", count=50)
    assert [each["progress"] for each in told(found)] == [1, 2, 3, 50]


@pytest.mark.parametrize("mcp", [{"LIMITS": "off"}])
async def test_without_rates_everything_is_told(stateful: Client) -> None:
    found = await reported(stateful, tool="reports_sync", count=300)
    assert [each["progress"] for each in told(found)] == list(range(1, 301))


# -- log messages ---------------------------------------------------------------


async def heard(client: Client, tool: str = "logs", level: Any = None) -> list[str]:
    meta = {} if level is None else {f"{PREFIX}logLevel": level}
    params = {"name": tool, "arguments": {}, "_meta": meta}
    found = await client.request("tools/call", params)
    assert "result" in found.answer
    return [each["level"] for each in found.notifications("notifications/message")]


@pytest.mark.parametrize("tool", ["logs", "logs_sync"])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_levels(client: Client, tool: str) -> None:
    if client.revision.stateless:
        assert await heard(client, tool) == []
        for index, level in enumerate(LEVELS):
            assert await heard(client, tool, level) == list(LEVELS[index:])
    else:
        # A session's level is its own: that of a request says nothing there.
        assert await heard(client, tool) == list(LEVELS[1:])
        assert await heard(client, tool, "emergency") == list(LEVELS[1:])
        await client.request("logging/setLevel", {"level": "alert"})
        assert await heard(client, tool) == ["alert", "emergency"]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_a_message_says(client: Client) -> None:
    params = {
        "name": "logs",
        "arguments": {},
        "_meta": {f"{PREFIX}logLevel": "emergency"},
    }
    found = await client.request("tools/call", params)
    *_, last = found.notifications("notifications/message")
    assert last == {
        "level": "emergency",
        "logger": "drill",
        "data": {"at": "emergency"},
    }


@pytest.mark.parametrize("mcp", [SLOW])
async def test_too_many_messages_are_dropped(client: Client) -> None:
    assert await heard(client, level="debug") == ["debug", "info", "notice"]


# -- who calls ----------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["whoami", "whoami_sync"])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_a_context_knows(client: Client, version: str, tool: str) -> None:
    for request_id in (7, "seven"):
        found = await client.request("tools/call", {"name": tool}, id=request_id)
        assert json.loads(found.text) == {
            "key": "anonymous\x1f\x1f",
            "client": ["drill-client", "1.0", ""],
            "revision": version,
            "server": "default",
            "request": request_id,
            "cancelled": False,
            "deadline": True,
            "user": None,
            "same": True,
        }


# -- identity --------------------------------------------------------------------------


VIEW = AccessRequirements(permissions=("shop.view_order",))
NOTHING_RUNS: Runnable[Any] = Runnable(
    run=lambda: None, style="inline", bind=dict, convert=lambda output: output
)
TOOLS = {
    "plain": ToolDefinition(name="plain"),
    "reads": ToolDefinition(name="reads", hints=ToolHints(read_only=True)),
    "again": ToolDefinition(name="again", hints=ToolHints(idempotent=True)),
    "deletes": ToolDefinition(name="deletes", hints=ToolHints(destructive=True)),
    "rights": ToolDefinition(name="rights", demands=VIEW),
    "tagged": ToolDefinition(name="tagged", tags=frozenset({"shop"})),
}
CATALOG = Catalog(
    ServerDefinition(slug="default"),
    tools=[tool_entry(each, NOTHING_RUNS) for each in TOOLS.values()],
)


def request(
    params: Any = None,
    *,
    method: str = "tools/call",
    meta: Any = None,
    scope: Scope | None = None,
    rights: Rights = Rights(),  # noqa: B008 - never changed
) -> Request:
    params = params or {}
    return Request(
        # Nothing of it is asked.
        adapters=cast("Adapters", None),
        catalog=CATALOG,
        revision=LATEST,
        principal=Principal(kind="user", user_id="7", scope=scope),
        rights=rights,
        id=1,
        method=method,
        params=params if meta is None else {**params, "_meta": meta},
        meta=meta or {},
    )


@pytest.mark.parametrize(
    ("name", "once"),
    [
        *(("plain", True), ("deletes", True), ("tagged", True), ("reads", False)),
        ("again", False),
        # What is not there for the caller does not run at all.
        *(("rights", False), ("gone", False), (None, False), (7, False)),
        (["plain"], False),
    ],
)
def test_which_calls_must_run_once(name: Any, once: bool) -> None:
    assert runs_once(request({"name": name})) is once


def test_only_calls_of_tools_must() -> None:
    assert not runs_once(request({"name": "plain"}, method="prompts/get"))
    assert not runs_once(request())


def test_rights_and_scope_both_count() -> None:
    rights = Rights(frozenset({VIEW}))
    assert runs_once(request({"name": "rights"}, rights=rights))
    shop = Scope(tags=frozenset({"shop"}))
    assert not runs_once(request({"name": "rights"}, rights=rights, scope=shop))
    assert runs_once(request({"name": "tagged"}, scope=shop))
    assert not runs_once(request({"name": "tagged"}, scope=Scope(read_only=True)))


def test_who_called_is_stored_with_every_limit() -> None:
    scope = Scope(read_only=True, tags=frozenset({"a"}), tools=frozenset({"pay"}))
    stored = json.loads(json.dumps(caller_of(request(scope=scope))))
    assert caller_members(stored)["principal"].scope == scope
    del stored["principal"]["scope"][2]  # as in an older row
    assert caller_members(stored)["principal"].scope.tools == frozenset()


def test_two_ids_are_two() -> None:
    ids: list[str | int] = [1, "1", "", 0, "é", -1]
    assert len({request_key(each) for each in ids}) == len(ids)
    assert request_key(1) == request_key(1)


CALL = {"name": "plain", "arguments": {"a": 1, "b": [1, 2]}}


@pytest.mark.parametrize(
    "other",
    [
        {"name": "plain", "arguments": {"b": [1, 2], "a": 1}},
        {"arguments": {"a": 1, "b": [1, 2]}, "name": "plain"},
    ],
)
def test_the_order_of_members_says_nothing(other: Any) -> None:
    assert content_digest(request(CALL)) == content_digest(request(other))


@pytest.mark.parametrize(
    "other",
    [
        {"name": "plain", "arguments": {"a": 1, "b": [2, 1]}},
        {"name": "plain", "arguments": {"a": "1", "b": [1, 2]}},
        {"name": "plain", "arguments": {"a": True, "b": [1, 2]}},
        {"name": "plain"},
        {**CALL, "more": None},
    ],
)
def test_all_else_says_something(other: Any) -> None:
    assert content_digest(request(CALL)) != content_digest(request(other))


def test_the_method_is_a_part() -> None:
    assert content_digest(request(CALL)) != content_digest(
        request(CALL, method="prompts/get")
    )


def test_the_progress_token_is_no_part_and_other_meta_is() -> None:
    plain = content_digest(request(CALL))
    assert content_digest(request(CALL, meta={"progressToken": 1})) == plain
    assert content_digest(request(CALL, meta={})) == plain
    trace = content_digest(request(CALL, meta={"trace": "a"}))
    assert trace != plain
    assert (
        content_digest(request(CALL, meta={"trace": "a", "progressToken": 2})) == trace
    )
    assert content_digest(request(CALL, meta={"trace": "b"})) != trace


def test_to_look_at_a_request_does_not_change_it() -> None:
    asked = request(CALL, meta={"progressToken": 1, "trace": "a"})
    content_digest(asked)
    assert asked.params["_meta"] == {"progressToken": 1, "trace": "a"}


# -- log handler -----------------------------------------------------------------------


@pytest.fixture
def handler() -> Iterator[ClientHandler]:
    made = ClientHandler()
    made.setFormatter(logging.Formatter("> %(message)s"))
    loggers = [logging.getLogger(name) for name in ("shop", "mcp_app")]
    for logger in loggers:
        logger.addHandler(made)
    shop = loggers[0]
    before = shop.level
    # Loggers below it remember what they are to hear, until one is set.
    shop.setLevel(logging.DEBUG)
    yield made
    shop.setLevel(before)
    for logger in loggers:
        logger.removeHandler(made)


async def recorded(client: Client) -> list[JsonObject]:
    meta = {f"{PREFIX}logLevel": "debug"}
    params = {"name": "records", "arguments": {}, "_meta": meta}
    found = await client.request("tools/call", params)
    assert found.text == "recorded"
    return found.notifications("notifications/message")


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_records_become_messages(client: Client, handler: ClientHandler) -> None:
    if client.revision.sessions:
        await client.request("logging/setLevel", {"level": "debug"})
    messages = await recorded(client)
    assert [each["level"] for each in messages] == [
        *("debug", "info", "warning", "error", "critical")
    ]
    # Our own records are for the operator.
    assert {each["logger"] for each in messages} == {"shop.orders"}
    assert messages[0]["data"] == "> record 10"


def test_records_outside_a_call_are_dropped(handler: ClientHandler) -> None:
    logging.getLogger("shop").error("Nobody called.")


@pytest.mark.parametrize(
    ("number", "level"),
    [
        *((0, "debug"), (logging.DEBUG, "debug"), (19, "debug")),
        *((logging.INFO, "info"), (25, "info"), (logging.WARNING, "warning")),
        *((logging.ERROR, "error"), (logging.CRITICAL, "critical"), (99, "critical")),
    ],
)
def test_log_handler_levels(number: int, level: str) -> None:
    assert protocol_level(number) == level


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_a_record_that_cannot_be_formatted(
    connect: Connect,
    handler: ClientHandler,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is reported where `logging` reports such things, and the call goes on."""
    reported: list[logging.LogRecord] = []
    monkeypatch.setattr(handler, "handleError", reported.append)
    handler.setFormatter(logging.Formatter("%(missing)s"))
    client = await connect(version)
    assert await recorded(client) == []
    assert reported
