from __future__ import annotations

from typing import Any

import pytest

from mcp_app.publishing.differences import (
    Change,
    Difference,
    breaking,
    differences,
)


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": list(required),
        }
    }


def says(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


TEXT_PART = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "upload": "ab", "mimeType": "image/png"}
PDF = {
    "type": "resource",
    "resource": {"uri": "x:p", "mimeType": "a/b", "upload": "cd"},
}
SUGGESTING = {"name": "b", "suggestions": ["x"]}
LINK = {"content": {"type": "resource_link", "uri": "x:a"}}
TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def told(before: Any, after: Any) -> list[tuple[str, str | None, str | None]]:
    found = differences(before, after)
    return [(each.part or each.field, each.before, each.after) for each in found]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        ({"title": "a"}, {"title": "a"}, []),
        ({}, {"title": "a"}, [("title", None, "a")]),
        ({"public": True}, {}, [("public", "yes", None)]),
        ({"timeout": 2.5}, {"timeout": 3.0}, [("timeout", "2.5", "3.0")]),
        (
            schema(days={**NUMBER, "maximum": 7}),
            schema(days={**NUMBER, "maximum": 14}),
            [("parameter days, largest value", "7", "14")],
        ),
        (
            schema(a=TEXT),
            schema(a=TEXT, b=TEXT),
            [("parameter b", None, "type: string")],
        ),
        (
            schema(),
            schema(a={"type": "string", "enum": ["x", "y"]}),
            [("parameter a", None, "type: string; choices: x, y")],
        ),
        (
            schema(a={"$ref": "#/$defs/A"}),
            schema(),
            [("parameter a", '{\n  "$ref": "#/$defs/A"\n}', None)],
        ),
        (
            schema(a=TEXT),
            schema("a", a=TEXT),
            [("parameter a, required", "no", "yes")],
        ),
        (
            schema(a=TEXT, b=TEXT, c=TEXT),
            schema(c=TEXT, a=TEXT, b=TEXT),
            [("parameter c, place", "3", "1")],
        ),
        (
            {"input_schema": {"type": "object"}},
            {"input_schema": {"type": "object", "additionalProperties": False}},
            [
                (
                    "the rest",
                    '{\n  "type": "object"\n}',
                    '{\n  "type": "object",\n  "additionalProperties": false\n}',
                )
            ],
        ),
        (
            {"arguments": [{"name": "a"}]},
            {"arguments": [{"name": "a", "title": "A", "required": True}]},
            [("argument a", "a", "A (required)")],
        ),
        (
            {"arguments": [{"name": "a", "suggestions": ["one", "two"]}]},
            {"arguments": [{"name": "a", "suggestions": ["one two"]}, SUGGESTING]},
            [
                ("argument a, suggestions", "one\ntwo", "one two"),
                ("argument b", None, "b"),
                ("argument b, suggestions", None, "x"),
            ],
        ),
        (
            {"arguments": [{"name": "a", "suggestions": []}, SUGGESTING]},
            {"arguments": [{"name": "a", "title": "A"}]},
            [
                ("argument a", "a", "A"),
                ("argument b", "b", None),
                ("argument b, suggestions", "x", None),
            ],
        ),
        (
            {"config": {"content": [{"type": "text", "text": "x"}]}},
            {"config": {"content": [{"type": "text", "text": "y"}]}},
            [("text", "x", "y")],
        ),
        (
            {"suggestions": {"id": ["7"], "same": ["s"], "old": ["a"]}},
            {"suggestions": {"id": ["7", "8"], "same": ["s"], "new": ["b"]}},
            [
                ("variable id", "7", "7\n8"),
                ("variable old", "a", None),
                ("variable new", None, "b"),
            ],
        ),
        (
            {"suggestions": {"id": ["7"]}},
            {},
            [("variable id", "7", None)],
        ),
        (
            {"config": {"content": [TEXT_PART]}},
            {"config": {"content": [TEXT_PART, IMAGE, PDF]}},
            [
                ("part 2 of the answer", None, "File: image/png, fingerprint ab"),
                (
                    "part 3 of the answer",
                    None,
                    "File: a/b, x:p, fingerprint cd",
                ),
            ],
        ),
        (
            {"config": {"content": [TEXT_PART, IMAGE]}},
            {"config": {"content": [{**TEXT_PART, "text": "b"}]}},
            [
                ("part 1 of the answer", "a", "b"),
                ("part 2 of the answer", "File: image/png, fingerprint ab", None),
            ],
        ),
        (
            {},
            {"config": {"content": [7, {**IMAGE, "annotations": {}}]}},
            [
                ("part 1 of the answer", None, "7"),
                (
                    "part 2 of the answer",
                    None,
                    '{\n  "type": "image",\n  "upload": "ab",\n  "mimeType": '
                    '"image/png",\n  "annotations": {}\n}',
                ),
            ],
        ),
        (
            {"config": {"text": "x"}},
            {"config": {"upload": "d", "more": 1}},
            [
                (
                    "config",
                    '{\n  "text": "x"\n}',
                    '{\n  "upload": "d",\n  "more": 1\n}',
                )
            ],
        ),
        (
            {"config": {"messages": [says("a"), says("b", "assistant")]}},
            {"config": {"messages": [says("a"), says("c", "assistant"), LINK]}},
            [
                ("message 2", "Assistant: b", "Assistant: c"),
                (
                    "message 3",
                    None,
                    'User: {\n  "type": "resource_link",\n  "uri": "x:a"\n}',
                ),
            ],
        ),
        (
            {},
            {"config": {"messages": [says("a"), says("b")]}},
            [("message 1", None, "User: a"), ("message 2", None, "User: b")],
        ),
        ({"input_schema": True}, {"input_schema": {}}, []),
    ],
)
def test_differences(before: Any, after: Any, expected: Any) -> None:
    if before == {"input_schema": True}:
        before = {"input_schema": {"properties": True}}
    assert told(before, after)[: len(expected)] == expected


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({"name": "a"}, {"name": "b"}, "calls to a fail"),
        ({"uri": "x:a"}, {"uri": "x:b"}, "calls to x:a fail"),
        (schema(a=TEXT), schema(), "The parameter a is gone."),
        (schema(), schema("a", a=TEXT), "The parameter a is new and required."),
        (schema(a=TEXT), schema("a", a=TEXT), "The parameter a is required now."),
        (schema(a=NUMBER), schema(a={"type": "integer"}), "type"),
        (schema(a=TEXT), schema(a={**TEXT, "maxLength": 5}), "longest text"),
        (
            schema(a={**NUMBER, "minimum": 1}),
            schema(a={**NUMBER, "minimum": 2}),
            "smallest value",
        ),
        (schema(a={"enum": [1, 2]}), schema(a={"enum": [1]}), "choices"),
        (schema(a={"pattern": "a"}), schema(a={"pattern": "b"}), "pattern"),
        (schema(a=True), schema(a=False), "schema"),
        (
            {"arguments": [{"name": "a"}]},
            {"arguments": []},
            "The argument a is gone.",
        ),
        (
            {},
            {"arguments": [{"name": "a", "required": True}]},
            "The argument a is required now.",
        ),
    ],
)
def test_what_breaks_old_calls(before: Any, after: Any, reason: str) -> None:
    (said,) = breaking(differences(before, after))
    assert reason in said


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"name": "a"}),
        ({"title": "a"}, {"title": "b"}),
        (schema(), schema(a=TEXT)),
        (schema("a", a=TEXT), schema(a=TEXT)),
        (schema(a={"type": "integer"}), schema(a=NUMBER)),
        (schema(a={**TEXT, "maxLength": 5}), schema(a={**TEXT, "maxLength": 6})),
        (schema(a={**TEXT, "maxLength": 5}), schema(a=TEXT)),
        (schema(a={"enum": [1]}), schema(a={"enum": [1, 2]})),
        (schema(a=TEXT), schema(a={**TEXT, "description": "d"})),
        (schema(a=TEXT, b=TEXT), schema(b=TEXT, a=TEXT)),
        ({"output_schema": {"a": 1}}, {"output_schema": {"a": 2}}),
    ],
)
def test_what_breaks_nothing(before: Any, after: Any) -> None:
    found = differences(before, after)
    assert found
    assert breaking(found) == []


def test_words_are_marked_inside_a_text() -> None:
    difference = Difference("description", "", "Use it always.", "Use it now and then.")
    before = [(each.change, each.text) for each in difference.pieces_before()]
    after = [(each.change, each.text) for each in difference.pieces_after()]
    assert before == [(Change.SAME, "Use it "), (Change.REMOVED, "always.")]
    assert after == [(Change.SAME, "Use it "), (Change.ADDED, "now and then.")]


@pytest.mark.parametrize(
    ("before", "after"),
    [("a " * 9_990, "a b " * 4_990), ("word " * 20_000, "word " * 19_000 + "more")],
)
def test_much_that_is_alike_is_one_difference(before: str, after: str) -> None:
    """To compare it word by word would take the cube of its length."""
    difference = Difference("description", "", before, after)
    for pieces, text in (
        (difference.pieces_before(), before),
        (difference.pieces_after(), after),
    ):
        assert "".join(each.text for each in pieces) == text
        assert len(pieces) <= 3


def test_a_long_text_is_compared_word_by_word() -> None:
    words = [f"word{number} " for number in range(3_000)]
    before = "".join(words)
    words[10], words[2_000] = "new ", "other "
    difference = Difference("description", "", before, "".join(words))
    changed = [
        each.text for each in difference.pieces_after() if each.change.value == "added"
    ]
    assert changed == ["new ", "other "]
