"""The fixed contents of the fixtures, as the text kind stores them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

# One red pixel, and no sound at all.
PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJ"
    "RU5ErkJggg=="
)
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def embedded(uri: str, mime_type: str, words: str) -> JsonObject:
    resource = {"uri": uri, "mimeType": mime_type, "text": words}
    return {"type": "resource", "resource": resource}


IMAGE: Final[JsonObject] = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO: Final[JsonObject] = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}

SIMPLE: Final = text("This is a simple text response for testing.")
EMBEDDED: Final = embedded(
    "test://embedded-resource", "text/plain", "This is an embedded resource content."
)
LINK: Final[JsonObject] = {
    "type": "resource_link",
    "uri": "test://static-text",
    "name": "static-text",
    "title": "Static text",
    "description": "A text that does not change.",
    "mimeType": "text/plain",
    "size": 48,
}
MIXED: Final = (
    text("Multiple content types test:"),
    IMAGE,
    embedded(
        "test://mixed-content-resource",
        "application/json",
        '{"test":"data","value":123}',
    ),
)

SCHEMA_2020_12: Final[JsonObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {
        "properties": {"contactMethod": {"const": "phone"}},
        "required": ["contactMethod"],
    },
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""Keywords of draft 2020-12 that must reach clients as they are."""

MESSAGES: Final[dict[str, tuple[JsonObject, ...]]] = {
    "test_simple_prompt": (text("This is a simple prompt for testing."),),
    "test_prompt_with_arguments": (
        text("Prompt with arguments: arg1='{{arg1}}', arg2='{{arg2}}'"),
    ),
    "test_prompt_with_embedded_resource": (
        embedded(
            "{{resourceUri}}", "text/plain", "Embedded resource content for testing."
        ),
        text("Please process the embedded resource above."),
    ),
    "test_prompt_with_image": (IMAGE, text("Please analyze the image above.")),
}
TEMPLATE_TEXT = '{"id":"{{id}}","templateTest":true,"data":"Data for ID: {{id}}"}'
