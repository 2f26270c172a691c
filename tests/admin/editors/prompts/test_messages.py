from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mcp_app.admin.editors.messages import MAX_MESSAGES, Message, config_of, messages_of
from mcp_app.admin.editors.rows import NotRepresentable

DIGEST = "0" * 64
ROWS: list[Message] = [
    Message(text=" a {{b}}\n\n"),
    Message(role="assistant", text="b"),
    Message(kind="file", upload=DIGEST, mime_type="image/png"),
    Message(kind="file", upload=DIGEST, mime_type="audio/wav"),
    Message(kind="contents", uri="x:a", text="a", mime_type="text/plain"),
    Message(kind="contents", uri="x:a", upload=DIGEST),
    Message(kind="link", uri="x:a", name="a"),
    Message(
        kind="link",
        uri="x:a",
        name="a",
        title="A",
        description="d",
        mime_type="text/plain",
    ),
]


def test_rows_come_back_from_their_config() -> None:
    config = config_of(ROWS)
    assert messages_of(config) == ROWS
    assert messages_of(json.loads(json.dumps(config))) == ROWS


def test_what_nobody_edited_keeps_its_json() -> None:
    config = {
        "messages": [
            {"content": {"text": "a", "type": "text"}},
            {"role": "user", "content": {"type": "text", "text": "b"}},
        ]
    }
    first, second = messages_of(config)
    swapped = config_of([second, first], config)
    assert json.dumps(swapped["messages"]) == json.dumps(config["messages"][::-1])
    edited = config_of([replace(first, role="assistant"), second], config)
    assert edited["messages"] == [
        {"role": "assistant", "content": {"type": "text", "text": "a"}},
        config["messages"][1],
    ]


def test_a_row_from_nowhere_is_new() -> None:
    assert config_of([Message(text="a", was="7")], {"messages": []}) == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "a"}}]
    }


def test_another_file_is_a_picture_until_it_is_refused() -> None:
    [message] = config_of([Message(kind="file", mime_type="text/plain")])["messages"]
    assert message["content"]["type"] == "image"


def text(**more: object) -> dict[str, Any]:
    return {"role": "user", "content": {"type": "text", "text": "a", **more}}


def resource(**members: object) -> dict[str, Any]:
    return {"content": {"type": "resource", "resource": {"uri": "x:a", **members}}}


def block(**members: object) -> dict[str, Any]:
    return {"content": members}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ([], "it is not a JSON object"),
        ({"messages": [], "x": 1}, "x"),
        ({"messages": {}}, "messages"),
        ({"messages": [text()] * (MAX_MESSAGES + 1)}, "41 messages"),
        ({"messages": [text(), {**text(), "x": 1}]}, "x in message 2"),
        ({"messages": [{**text(), "role": "system"}]}, "role in message 1"),
    ],
)
def test_configs_that_rows_cannot_show(config: Any, reason: str) -> None:
    with pytest.raises(NotRepresentable) as caught:
        messages_of(config)
    assert str(caught.value) == reason


def test_messages_that_rows_cannot_show() -> None:
    for message in (
        "a",
        {},
        block(type="x"),
        text(annotations={}),
        text(_meta={}),
        text(text=1),
        text(text="a\rb"),
        block(type="image", data=""),
        block(type="image", upload="d", mimeType="audio/wav"),
        block(type="resource"),
        resource(blob=""),
        resource(text="a", upload="b"),
        resource(text="a", mimeType="a\nb"),
        block(type="resource_link", name=" a"),
        block(type="resource_link", size=1),
    ):
        with pytest.raises(NotRepresentable, match=r"message 1$"):
            messages_of({"messages": [message]})
