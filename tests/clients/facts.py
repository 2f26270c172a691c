"""What the fixture set serves, as every client must see it on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject

STATEFUL = "2025-11-25"
STATELESS = "2026-07-28"

PLAIN_TOOLS = 120
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAA"
    "AABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def embedded(uri: str, media_type: str, words: str) -> JsonObject:
    resource = {"uri": uri, "mimeType": media_type, "text": words}
    return {"type": "resource", "resource": resource}


IMAGE: JsonObject = {"type": "image", "data": PNG, "mimeType": "image/png"}

LINK: JsonObject = {
    "type": "resource_link",
    "uri": "test://static-text",
    "name": "static-text",
    "title": "Static text",
    "description": "A text that does not change.",
    "mimeType": "text/plain",
    "size": 48,
}

CONTENT: dict[str, list[JsonObject]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded(
            "test://mixed-content-resource",
            "application/json",
            '{"test":"data","value":123}',
        ),
    ],
    "test_resource_link": [LINK],
}
RECONNECTED = "Reconnection test completed successfully."
SIGN_IN: JsonObject = {
    "mode": "url",
    "message": "Please sign in.",
    "url": "https://example.com/sign-in",
}
"""What the person is asked by `drill_ask_url`; in sessions the question has an id."""

FAILURE = "This tool intentionally returns an error for testing"

WATCHED = "test://watched-resource"
STATIC_TEXT = "test://static-text"
ABSENT = "test://nonexistent-resource-for-conformance-testing"
TEMPLATE = "test://template/{id}/data"

RESOURCES: dict[str, JsonObject] = {
    STATIC_TEXT: {
        "uri": STATIC_TEXT,
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {
        "uri": "test://static-binary",
        "mimeType": "image/png",
        "blob": PNG,
    },
    WATCHED: {
        "uri": WATCHED,
        "mimeType": "text/plain",
        "text": "Watched resource content",
    },
    "test://template/123/data": {
        "uri": "test://template/123/data",
        "mimeType": "application/json",
        "text": '{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
    },
}
PROMPTS: dict[str, tuple[dict[str, str], list[JsonObject]]] = {
    "test_simple_prompt": ({}, [text("This is a simple prompt for testing.")]),
    "test_prompt_with_arguments": (
        {"arg1": "testValue1", "arg2": "testValue2"},
        [text("Prompt with arguments: arg1='testValue1', arg2='testValue2'")],
    ),
    "test_prompt_with_embedded_resource": (
        {"resourceUri": "test://example-resource"},
        [
            embedded(
                "test://example-resource",
                "text/plain",
                "Embedded resource content for testing.",
            ),
            text("Please process the embedded resource above."),
        ],
    ),
    "test_prompt_with_image": ({}, [IMAGE, text("Please analyze the image above.")]),
}
ANY_JSON: list[object] = [
    None,
    True,
    0,
    -1.5,
    9007199254740991,
    "",
    'Zürich 東京 🦜 \u2028 \u0000 "\\/',
    {"nested": [{"": [[]]}, {"result": {}}]},
]
