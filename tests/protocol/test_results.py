"""What each revision wants in every result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from mcp_app.protocol.content import (
    Audio,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
    ToolResult,
    ToolUse,
)
from mcp_app.protocol.negotiation import PREFIX
from mcp_app.protocol.results import (
    CacheHint,
    ReceivedMeta,
    check_meta,
    complete_result,
    input_required,
    meta_key_problem,
)
from mcp_app.protocol.revisions import Revision
from tests.wire.validation import wire_validator

INFO: Final = {"name": "a", "version": "1"}


def test_complete(revision: Revision) -> None:
    result: dict[str, Any] = {"tools": [], "_meta": {"x": 1}}
    found = complete_result(result, revision, INFO, CacheHint(5, public=True))
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
    found = complete_result(input_required({}, "state"), revision, INFO)
    assert found["resultType"] == "input_required"
    assert "ttlMs" not in found


# -- meta ------------------------------------------------------------------------------


FINE = [
    *("name", "n", "7", "a_b-c.d", "com.example/name", "com.example/"),
    *("com.example-shop.v1/a.b", "localhost/x", "com.example.mcp/x", "mcp/x"),
    *("modelcontextprotocol/x", "com.mcp-tools/x", "traceparent", "tracestate"),
    *("baggage", ""),
]


@pytest.mark.parametrize("key", FINE)
def test_keys_of_ours(key: str) -> None:
    assert meta_key_problem(key) is None


WRONG = [
    *("_name", "name_", "-", "a b", "naïve", "a\n", "a:b", "/name"),
    *("com.example//name", "com.example/a/b", "com..example/a", ".com/a", "1com/a"),
    *("com.1example/a", "com.example-/a", "com.exa_mple/a"),
]


@pytest.mark.parametrize("key", WRONG)
def test_keys_that_break_the_grammar(key: str) -> None:
    problem = meta_key_problem(key)
    assert problem is not None
    assert problem.startswith(f"{key!r} cannot be a key of _meta")


RESERVED = [
    *("io.modelcontextprotocol/serverInfo", "io.modelcontextprotocol/", "dev.mcp/x"),
    *("org.modelcontextprotocol.api/x", "com.mcp.tools/x", "IO.ModelContextProtocol/x"),
    "progressToken",
]


@pytest.mark.parametrize("key", RESERVED)
def test_keys_of_the_protocol(key: str) -> None:
    problem = meta_key_problem(key)
    assert problem is not None
    assert problem.startswith(f"The key {key!r} of _meta is reserved")


def test_the_first_wrong_key_is_named() -> None:
    check_meta({"com.example/a": 1, "b": {"any thing": 2}})
    with pytest.raises(ValueError, match="'a b' cannot be a key"):
        check_meta({"com.example/a": 1, "a b": 2, "dev.mcp/x": 3})


Maker = Callable[[Mapping[str, object]], object]

MAKERS: list[Maker] = [
    lambda meta: Text("t", meta=meta),
    lambda meta: Image(b"", "image/png", meta=meta),
    lambda meta: Audio(b"", "audio/wav", meta=meta),
    lambda meta: ResourceLink("memo://a", "a", meta=meta),
    lambda meta: EmbeddedResource(ResourceContents(uri="memo://a", text=""), meta=meta),
    lambda meta: ResourceContents(uri="memo://a", text="", meta=meta),
    lambda meta: ToolUse("1", "find", {}, meta=meta),
    lambda meta: ToolResult("1", [], meta=meta),
]


@pytest.mark.parametrize("make", MAKERS)
def test_what_carries_meta_demands_keys_of_ours(make: Maker) -> None:
    make({"com.example/a": 1})
    with pytest.raises(ValueError, match="is reserved for the protocol"):
        make({"dev.mcp/a": 1})


@pytest.mark.parametrize("make", MAKERS)
def test_what_came_from_a_client_goes_back_with_any_key(make: Maker) -> None:
    assert make(ReceivedMeta({"dev.mcp/a": 1, "a b": 2}))
