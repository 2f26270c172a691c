"""Which requests must not run twice, and which two are the same."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import Catalog, tool_entry
from mcp_app.interface.definitions import ToolDefinition, ToolHints
from mcp_app.interface.principal import Principal, Rights, Scope
from mcp_app.interface.rules import AccessRequirements
from mcp_app.interface.server import ServerDefinition
from mcp_app.protocol.revisions import LATEST
from mcp_app.server.call import digest, key, runs_once
from mcp_app.server.exchange import Adapters, Exchange, NoWayBack

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


def exchange(
    params: Any = None,
    *,
    method: str = "tools/call",
    meta: Any = None,
    scope: Scope | None = None,
    rights: Rights = Rights(),  # noqa: B008 - never changed
) -> Exchange:
    params = params or {}
    return Exchange(
        # Nothing of it is asked.
        adapters=cast("Adapters", None),
        catalog=CATALOG,
        revision=LATEST,
        principal=Principal(kind="user", user_id="7", scope=scope),
        rights=rights,
        request_id=1,
        method=method,
        params=params if meta is None else {**params, "_meta": meta},
        meta=meta or {},
        outgoing=NoWayBack(),
    )


@pytest.mark.parametrize(
    ("name", "once"),
    [
        ("plain", True),
        ("deletes", True),
        ("tagged", True),
        ("reads", False),
        ("again", False),
        # What is not there for the caller does not run at all.
        ("rights", False),
        ("gone", False),
        (None, False),
        (7, False),
        (["plain"], False),
    ],
)
def test_which_calls_must_run_once(name: Any, once: bool) -> None:
    assert runs_once(exchange({"name": name})) is once


def test_only_calls_of_tools_must() -> None:
    assert not runs_once(exchange({"name": "plain"}, method="prompts/get"))
    assert not runs_once(exchange())


def test_rights_and_scope_both_count() -> None:
    rights = Rights(frozenset({VIEW}))
    assert runs_once(exchange({"name": "rights"}, rights=rights))
    shop = Scope(tags=frozenset({"shop"}))
    assert not runs_once(exchange({"name": "rights"}, rights=rights, scope=shop))
    assert runs_once(exchange({"name": "tagged"}, scope=shop))
    assert not runs_once(exchange({"name": "tagged"}, scope=Scope(read_only=True)))


def test_two_ids_are_two() -> None:
    ids: list[str | int] = [1, "1", "", 0, "é", -1]
    assert len({key(each) for each in ids}) == len(ids)
    assert key(1) == key(1)


CALL = {"name": "plain", "arguments": {"a": 1, "b": [1, 2]}}


@pytest.mark.parametrize(
    "other",
    [
        {"name": "plain", "arguments": {"b": [1, 2], "a": 1}},
        {"arguments": {"a": 1, "b": [1, 2]}, "name": "plain"},
    ],
)
def test_the_order_of_members_says_nothing(other: Any) -> None:
    assert digest(exchange(CALL)) == digest(exchange(other))


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
    assert digest(exchange(CALL)) != digest(exchange(other))


def test_the_method_is_a_part() -> None:
    assert digest(exchange(CALL)) != digest(exchange(CALL, method="prompts/get"))


def test_the_progress_token_is_no_part_and_other_meta_is() -> None:
    plain = digest(exchange(CALL))
    assert digest(exchange(CALL, meta={"progressToken": 1})) == plain
    assert digest(exchange(CALL, meta={})) == plain
    trace = digest(exchange(CALL, meta={"trace": "a"}))
    assert trace != plain
    assert digest(exchange(CALL, meta={"trace": "a", "progressToken": 2})) == trace
    assert digest(exchange(CALL, meta={"trace": "b"})) != trace


def test_to_look_at_a_request_does_not_change_it() -> None:
    asked = exchange(CALL, meta={"progressToken": 1, "trace": "a"})
    digest(asked)
    assert asked.params["_meta"] == {"progressToken": 1, "trace": "a"}
