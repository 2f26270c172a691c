"""Right and wrong messages of each revision."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.wire.validation import VERSIONS, wire_validator

JsonObject = dict[str, Any]

STATEFUL: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS: Final = ("2026-07-28",)
ID_REQUIRED: Final = ("2024-11-05", "2025-03-26", "2025-06-18")
ID_OPTIONAL: Final = ("2025-11-25", "2026-07-28")

TEXT: Final = {"type": "text", "text": "hello"}
AUDIO: Final = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
IMAGE: Final = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
LINK: Final = {"type": "resource_link", "uri": "shop://orders/1", "name": "order"}
TOOL: Final = {"name": "add", "inputSchema": {"type": "object"}}
PLAIN_STRUCTURE: Final = {"content": [], "structuredContent": 3}
CACHE: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
COMPLETE: Final = {"resultType": "complete"}
LISTENING: Final = {"io.modelcontextprotocol/subscriptionId": 7}
FORM: Final = {
    "message": "Your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
SAMPLE: Final = {"messages": [{"role": "user", "content": TEXT}], "maxTokens": 10}
INPUT_REQUIRED: Final = {
    "resultType": "input_required",
    "inputRequests": {"name": {"method": "elicitation/create", "params": FORM}},
    "requestState": "sealed",
}


def result(value: object, **members: object) -> JsonObject:
    return {"jsonrpc": "2.0", "id": 1, "result": value, **members}


def error(code: int, **members: object) -> JsonObject:
    own = {"code": code, "message": "No."}
    return {"jsonrpc": "2.0", "id": 1, "error": own, **members}


def error_without_id(code: int) -> JsonObject:
    message = error(code)
    del message["id"]
    return message


def error_with_data(code: int, data: object) -> JsonObject:
    return error(code, error={"code": code, "message": "No.", "data": data})


def notification(method: str, **params: object) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def bare_notification(method: str) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method}


def request(method: str, **params: object) -> JsonObject:
    return {"jsonrpc": "2.0", "id": "q1", "method": method, "params": params}


def initialized(version: str) -> JsonObject:
    tools = {"tools": {"listChanged": True}}
    server = {"name": "shop", "version": "1"}
    return result(
        {"protocolVersion": version, "capabilities": tools, "serverInfo": server}
    )


def discovered() -> JsonObject:
    versions = {"supportedVersions": list(VERSIONS), "capabilities": {}}
    return result({**versions, **CACHE})


PROGRESS = notification("notifications/progress", progressToken="t", progress=0.5)
MESSAGE: Final = notification("notifications/message", level="info", data={"i": 1})

# (versions, method of the request or None, message)
Case = tuple[tuple[str, ...], str | None, JsonObject]

RIGHT: Final[list[Case]] = [
    (STATEFUL, "initialize", initialized("2025-06-18")),
    (STATEFUL, "ping", result({})),
    (STATEFUL, "logging/setLevel", result({})),
    (STATEFUL, "resources/subscribe", result({})),
    (STATEFUL, "resources/unsubscribe", result({})),
    (STATEFUL, "tools/list", result({"tools": [TOOL], "nextCursor": "c"})),
    (STATEFUL, "tools/call", result({"content": [TEXT, IMAGE], "isError": True})),
    (STATEFUL, "tools/call", result({"content": [TEXT]}, id="a")),
    (STATEFUL, None, result({"anything": 1})),
    (STATEFUL, None, request("ping")),
    (STATEFUL, None, request("roots/list")),
    (STATEFUL, None, request("sampling/createMessage", **SAMPLE)),
    (VERSIONS[1:], "tools/call", result({"content": [AUDIO], **COMPLETE})),
    (VERSIONS[2:], "tools/call", result({"content": [LINK], **COMPLETE})),
    (VERSIONS[2:4], None, request("elicitation/create", **FORM)),
    (("2025-11-25",), "tasks/list", result({"tasks": []})),
    (STATELESS, "server/discover", discovered()),
    (STATELESS, "tools/list", result({"tools": [TOOL], **CACHE})),
    (STATELESS, "resources/read", result({"contents": [], **CACHE})),
    (STATELESS, "tools/call", result(INPUT_REQUIRED)),
    (STATELESS, "prompts/get", result(INPUT_REQUIRED)),
    (STATELESS, "tools/call", result(PLAIN_STRUCTURE | COMPLETE)),
    (STATELESS, "subscriptions/listen", result({"_meta": LISTENING, **COMPLETE})),
    (STATELESS, None, error(-32020)),
    (STATELESS, None, error_with_data(-32021, {"requiredCapabilities": {}})),
    (STATELESS, None, error_with_data(-32022, {"supported": [], "requested": "1"})),
    (VERSIONS, None, error(-32601)),
    (VERSIONS, None, error_with_data(-32602, ["anything"])),
    (ID_REQUIRED, None, error(-32700, id=None)),
    (ID_OPTIONAL, None, error_without_id(-32700)),
    (VERSIONS, None, bare_notification("notifications/tools/list_changed")),
    (VERSIONS, None, notification("notifications/resources/updated", uri="a://b")),
    (VERSIONS, None, PROGRESS),
    (VERSIONS, None, MESSAGE),
]

WRONG: Final[list[Case]] = [
    # Envelopes.
    (VERSIONS, None, {}),
    (VERSIONS, None, {"jsonrpc": "2.0", "id": 1}),
    (VERSIONS, None, {"id": 1, "result": COMPLETE}),
    (VERSIONS, None, {"jsonrpc": "1.0", "id": 1, "result": COMPLETE}),
    (VERSIONS, None, {"jsonrpc": "2.0", "result": COMPLETE}),
    (VERSIONS, None, result(COMPLETE, id=None)),
    (VERSIONS, None, result(COMPLETE, id=1.5)),
    (VERSIONS, None, result(COMPLETE, error={"code": 1, "message": "No."})),
    (VERSIONS, None, result(COMPLETE, params={})),
    (VERSIONS, None, result([])),
    (VERSIONS, None, error(-32601, extra=1)),
    (VERSIONS, None, error(-32601, error={"code": -32601})),
    (VERSIONS, None, error(-32601, error={"code": "-32601", "message": "No."})),
    (VERSIONS, None, error(-32601, error="No.")),
    (ID_REQUIRED, None, error_without_id(-32700)),
    (ID_OPTIONAL, None, error(-32700, id=None)),
    (VERSIONS, None, {**request("ping"), "id": None}),
    # Results of their methods.
    (STATEFUL, "initialize", result({"protocolVersion": "2025-06-18"})),
    (STATEFUL, "ping", result({"resultType": "complete"})),
    (STATEFUL, "logging/setLevel", result({"_meta": {}})),
    (STATEFUL, "server/discover", discovered()),
    (VERSIONS, "tools/list", result({"tools": [{"name": "add"}], **CACHE})),
    (VERSIONS, "tools/call", result({**COMPLETE})),
    (VERSIONS, "tools/call", result({"content": [{"type": "text"}], **COMPLETE})),
    (VERSIONS, "tools/call", result({"content": [LINK | {"type": "x"}], **COMPLETE})),
    (VERSIONS, "no/such", result(COMPLETE)),
    (VERSIONS[:1], "tools/call", result({"content": [AUDIO]})),
    (VERSIONS[:2], "tools/call", result({"content": [LINK]})),
    (VERSIONS, "tools/call", result({"content": [IMAGE | {"data": "%"}], **COMPLETE})),
    (VERSIONS[2:4], "tools/call", result(PLAIN_STRUCTURE)),
    (STATEFUL, "tools/call", result(INPUT_REQUIRED)),
    (STATELESS, None, result({})),
    (STATELESS, "ping", result(COMPLETE)),
    (STATELESS, "initialize", initialized("2026-07-28")),
    (STATELESS, "tools/call", result({"content": [TEXT]})),
    (STATELESS, "tools/list", result({"tools": [TOOL], **COMPLETE})),
    (STATELESS, "tools/list", result({"tools": [], **CACHE, "ttlMs": -1})),
    (STATELESS, "tools/list", result({"tools": [], **CACHE, "cacheScope": "all"})),
    (STATELESS, "tools/list", result(INPUT_REQUIRED)),
    (STATELESS, "tools/call", result({"resultType": "input_required"})),
    (STATELESS, "tools/call", result({**INPUT_REQUIRED, "requestState": 1})),
    (STATELESS, "subscriptions/listen", result(COMPLETE)),
    # Errors with a shape of their own.
    (STATELESS, None, error(-32021)),
    (STATELESS, None, error_with_data(-32022, {"supported": []})),
    (("2025-11-25",), None, error_with_data(-32042, {})),
    # Notifications and requests.
    (VERSIONS, None, bare_notification("notifications/resources/updated")),
    (VERSIONS, None, bare_notification("notifications/initialized")),
    (VERSIONS, None, bare_notification("notifications/no_such")),
    (VERSIONS, None, notification("notifications/progress", progressToken="t")),
    (VERSIONS, None, notification("notifications/message", level="loud", data=1)),
    (VERSIONS[:3], None, bare_notification("notifications/elicitation/complete")),
    (VERSIONS, None, {"method": "notifications/tools/list_changed"}),
    (VERSIONS, None, {"jsonrpc": "2.0", "method": 1}),
    (VERSIONS, None, request("tools/list")),
    (VERSIONS[:2], None, request("elicitation/create", **FORM)),
    (VERSIONS[2:4], None, request("elicitation/create", message="Your name?")),
    (STATELESS, None, request("elicitation/create", **FORM)),
    (STATELESS, None, request("ping")),
]


def cases_of(version: str, cases: list[Case]) -> list[tuple[str | None, JsonObject]]:
    return [
        (method, message) for versions, method, message in cases if version in versions
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_right_messages_have_no_violation(version: str) -> None:
    check = wire_validator(version).check
    refused = [
        (method, message, violations)
        for method, message in cases_of(version, RIGHT)
        if (violations := check(message, method=method))
    ]
    assert refused == []


@pytest.mark.parametrize("version", VERSIONS)
def test_wrong_messages_are_reported(version: str) -> None:
    check = wire_validator(version).check
    accepted = [
        each for each in cases_of(version, WRONG) if not check(each[1], method=each[0])
    ]
    assert accepted == []


def test_a_violation_names_the_definition_the_place_and_the_rule() -> None:
    message = result({"tools": [{"name": 5, "inputSchema": {"type": "object"}}]})
    (violation,) = wire_validator("2025-11-25").check(message, method="tools/list")
    assert violation.startswith("ListToolsResult['tools'][0]['name']: ")
    assert "string" in violation


def test_every_revision_has_its_schema() -> None:
    assert VERSIONS == STATEFUL + STATELESS
