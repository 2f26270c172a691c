"""The two faces of a call's context: the same members, waiting or blocking."""

from __future__ import annotations

import inspect
from typing import Any

from mcp_app.interface.context import LEVELS, Context, SyncContext

WAITING = {"elicit", "elicit_url", "sample", "list_roots", "ask", "once", "user"}


def members(face: type[Any]) -> set[str]:
    return {name for name in dir(face) if not name.startswith("_")}


def parameters(face: type[Any], name: str) -> object:
    return [
        (each.name, each.kind, each.default)
        for each in inspect.signature(getattr(face, name)).parameters.values()
    ]


def test_both_faces_have_the_same_members() -> None:
    assert members(Context) == members(SyncContext)
    assert Context.__abstractmethods__ == SyncContext.__abstractmethods__
    assert members(Context) >= Context.__abstractmethods__


def test_they_are_asked_in_the_same_words() -> None:
    for name in WAITING | {"log", "progress", "visited", "changed", "reconnect"}:
        assert parameters(Context, name) == parameters(SyncContext, name)


def test_what_waits_on_the_one_blocks_on_the_other() -> None:
    for face, waiting in ((Context, WAITING), (SyncContext, set())):
        methods = {name: getattr(face, name) for name in members(face)}
        assert waiting == {
            n for n in methods if inspect.iscoroutinefunction(methods[n])
        }


def test_the_levels_are_those_of_the_protocol_the_least_severe_first() -> None:
    levels = "debug info notice warning error critical alert emergency"
    assert [*LEVELS] == levels.split()
