"""What the fixture set serves, as every client must see it on the wire."""

from __future__ import annotations

from tests.drill import contents
from tests.drill.contents import IMAGE, JsonObject, embedded

STATEFUL = "2025-11-25"
STATELESS = "2026-07-28"

PLAIN_TOOLS = 120
PNG, text = contents.PNG, contents.text

CONTENT: dict[str, list[JsonObject]] = {
    "test_simple_text": [contents.SIMPLE],
    "test_image_content": [IMAGE],
    "test_audio_content": [contents.AUDIO],
    "test_embedded_resource": [contents.EMBEDDED],
    "test_multiple_content_types": [*contents.MIXED],
    "test_resource_link": [contents.LINK],
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
