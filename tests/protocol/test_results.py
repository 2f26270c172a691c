"""What each revision wants in every result."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.negotiation import PREFIX
from mcp_app.protocol.results import (
    CacheHint,
    capabilities,
    complete,
    input_required,
    subscription_meta,
)
from mcp_app.protocol.revisions import REVISIONS, Revision
from tests.wire.validation import wire_validator

INFO: Final = {"name": "a", "version": "1"}


@pytest.fixture(params=REVISIONS.values(), ids=lambda revision: revision.version)
def revision(request: pytest.FixtureRequest) -> Revision:
    found: Revision = request.param
    return found


def test_complete(revision: Revision) -> None:
    result: dict[str, Any] = {"tools": [], "_meta": {"x": 1}}
    found = complete(result, revision, INFO, CacheHint(5, public=True))
    assert found is result
    if revision.stateless:
        assert found == {
            "tools": [],
            "resultType": "complete",
            "ttlMs": 5,
            "cacheScope": "public",
            "_meta": {"x": 1, f"{PREFIX}serverInfo": INFO},
        }
    else:
        assert found == {"tools": [], "_meta": {"x": 1}}
    message = {"jsonrpc": "2.0", "id": 1, "result": found}
    assert wire_validator(revision.version).check(message, method="tools/list") == []


def test_a_result_keeps_its_type(revision: Revision) -> None:
    found = complete(input_required({}, "state"), revision, INFO)
    assert found["resultType"] == "input_required"
    assert "ttlMs" not in found


def test_encoded_info_is_copied() -> None:
    info = orjson.Fragment(b'{"name":"a"}')
    found = complete({}, REVISIONS["2026-07-28"], info)
    assert b'serverInfo":{"name":"a"}' in jsonrpc.write(found)


@pytest.mark.parametrize(
    ("hint", "wire"),
    [
        (CacheHint(0, public=False), {"ttlMs": 0, "cacheScope": "private"}),
        (CacheHint(1, public=True), {"ttlMs": 1, "cacheScope": "public"}),
    ],
)
def test_hints(hint: CacheHint, wire: dict[str, Any]) -> None:
    assert hint.to_wire() == wire


def test_capabilities(revision: Revision) -> None:
    found = capabilities(revision)
    assert {"tools", "resources", "prompts", "logging"} <= found.keys()
    assert ("completions" in found) == (revision.version > "2024-11-05")


def test_subscription_meta() -> None:
    found = subscription_meta("s", {"uri": "a:b"})
    assert found == {"uri": "a:b", "_meta": {f"{PREFIX}subscriptionId": "s"}}
