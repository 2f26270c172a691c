"""Reading parameters: each error names the member and the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_app.protocol.errors import InvalidParams
from mcp_app.server.coercion import mapping, string, strings

Read = Callable[..., Any]

READ: Final[list[tuple[Read, dict[str, Any], dict[str, Any], Any]]] = [
    (string, {"a": ""}, {}, ""),
    (string, {"a": "x"}, {}, "x"),
    (mapping, {}, {}, {}),
    (mapping, {"a": {}}, {"required": True}, {}),
    (mapping, {"a": {"b": 1}}, {}, {"b": 1}),
    (strings, {}, {}, {}),
    (strings, {"a": {"b": "1", "": ""}}, {}, {"b": "1", "": ""}),
]


@pytest.mark.parametrize(("read", "params", "options", "value"), READ)
def test_read(
    read: Read, params: dict[str, Any], options: dict[str, Any], value: Any
) -> None:
    assert read(params, "a", **options) == value


REFUSED: Final[list[tuple[Read, dict[str, Any], dict[str, Any], str]]] = [
    (string, {}, {}, "params.a must be a string."),
    (string, {"a": None}, {}, "params.a must be a string."),
    (string, {"a": 7}, {"place": "params.b"}, "params.b.a must be a string."),
    (mapping, {}, {"required": True}, "params.a must be an object."),
    (mapping, {"a": None}, {"required": True}, "params.a must be an object."),
    (mapping, {"a": []}, {"place": "x"}, "x.a must be an object."),
    (strings, {"a": []}, {}, "params.a must be an object."),
    (strings, {"a": {"b": 1}}, {}, "params.a['b'] must be a string."),
    (strings, {"a": {"b": None}}, {"place": "x"}, "x.a['b'] must be a string."),
]


@pytest.mark.parametrize(("read", "params", "options", "message"), REFUSED)
def test_refused(
    read: Read, params: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidParams) as caught:
        read(params, "a", **options)
    assert caught.value.message == message
