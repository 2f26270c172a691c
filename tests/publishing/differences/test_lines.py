from __future__ import annotations

from typing import Any, Final

from tests.publishing.differences.contents import IMAGE, PDF, TEXT_PART, as_told, told

GONE: Final = object()
A: Final = {"name": "a"}
B: Final = {"name": "b"}
C: Final = {"name": "c"}
D: Final = {"name": "d"}
NEEDED: Final = {**A, "required": True}
USER_A: Final = {"role": "user", "content": TEXT_PART}
USER_B: Final = {"role": "user", "content": {"type": "text", "text": "b"}}
HELPER_A: Final = {**USER_A, "role": "assistant"}
HELPER_B: Final = {**USER_B, "role": "assistant"}
LINK: Final = {"content": {"type": "resource_link", "uri": "x:a"}}
OTHER: Final = {"type": "text", "text": "b"}


PARAMETERS: Final = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"$ref": "#"}},
}
OTHERS: Final = {
    "a": {"type": "string", "description": "d"},
    "c": {"type": "string", "format": "date", "default": "2026"},
    "d": {"enum": ["x", "y"]},
    "e": {"type": "array", "items": {"type": ["integer", "null"]}, "maxItems": 3},
}


def content(*blocks: Any) -> dict[str, Any]:
    return {"content": [*blocks]}


def messages(*each: Any) -> dict[str, Any]:
    return {"messages": [*each]}


CASES: Final[list[tuple[Any, ...]]] = [
    ("title", "a", "a"),
    ("title", GONE, "a", ("title", None, "a")),
    ("title", None, GONE, ("title", "null", None)),
    ("title", "", GONE, ("title", "", None)),
    ("icons", [], GONE, ("icons", [], None)),
    ("public", True, GONE, ("public", "yes", None)),
    ("public", True, "yes", ("public", "true", '"yes"')),
    ("timeout", 2.5, 3.0, ("timeout", "2.5", "3.0")),
    ("position", 1, 1.0, ("position", "1", "1.0")),
    ("position", 1, True, ("position", "1", "yes")),
    ("position", 1, "1", ("position", "1", '"1"')),
    (
        "arguments",
        [A],
        [{**A, "title": "A", "required": True, "description": "d"}],
        ("arguments", "a", "a: A, required, “d”"),
    ),
    (
        "arguments",
        [{**A, "suggestions": ["one", "two"]}, B],
        [{**A, "suggestions": ["one two"]}, C, D],
        ("arguments", "a: suggestions: one, two", "a: suggestions: one two"),
        ("arguments", "b", "c"),
        ("arguments", None, "d"),
    ),
    ("arguments", [{**A, "title": ""}], [A], ("arguments", [{**A, "title": ""}], [A])),
    ("arguments", [A, B], [B, A], ("arguments", [A, B], [B, A])),
    ("arguments", [A, A], [A], ("arguments", [A, A], [A])),
    (
        "suggestions",
        {"id": ["7"], "same": ["s"], "old": ["a"]},
        {"id": ["7", "8"], "same": ["s"], "new": ["b"]},
        ("suggestions", "id: 7", "id: 7, 8"),
        ("suggestions", "old: a", "new: b"),
    ),
    ("suggestions", {"id": ["7"]}, GONE, ("suggestions", "id: 7", None)),
    (
        "suggestions",
        {"a": ["x, y"]},
        {"a": ["x", "y"]},
        ("suggestions", {"a": ["x, y"]}, {"a": ["x", "y"]}),
    ),
    (
        "input_schema",
        PARAMETERS,
        {**PARAMETERS, "required": ["c"], "properties": OTHERS},
        ("input_schema", "a: text, not required", "a: text, not required, “d”"),
        (
            "input_schema",
            'b: anything, not required, {\n  "$ref": "#"\n}',
            "c: date, required, if left out: 2026",
        ),
        ("input_schema", None, "d: one of x, y, not required"),
        (
            "input_schema",
            None,
            "e: list: whole number or nothing, not required, at most 3 entries",
        ),
    ),
    (
        "input_schema",
        {"type": "object"},
        PARAMETERS,
        ("input_schema", "none", "a: text, not required"),
        ("input_schema", None, 'b: anything, not required, {\n  "$ref": "#"\n}'),
    ),
    (
        "input_schema",
        {"type": "object"},
        {"type": "object", "minProperties": 1},
        ("input_schema", "none", None),
        ("the rest of the schema", None, {"minProperties": 1}),
    ),
    ("input_schema", True, False, ("input_schema", "yes", "no")),
    ("annotations", {"priority": 1}, {"priority": 2}, ("priority", "1", "2")),
    (
        "config",
        messages(USER_A, HELPER_B),
        messages(USER_A, HELPER_A, LINK),
        ("Message 2", "Assistant: b", "Assistant: a"),
        ("Message 3", None, 'User: {\n  "type": "resource_link",\n  "uri": "x:a"\n}'),
    ),
    ("config", content(TEXT_PART), content(OTHER), ("Text", "a", "b")),
    (
        "config",
        content(TEXT_PART, IMAGE),
        content(TEXT_PART, PDF, 7),
        (
            "Part 2 of the answer",
            "File: image/png, fingerprint ab",
            "File: a/b, x:p, fingerprint cd",
        ),
        ("Part 3 of the answer", None, "7"),
    ),
    (
        "config",
        {"text": "x"},
        {"upload": "d", "is_error": True, "more": 1},
        ("Text", "x", None),
        ("File", None, "fingerprint d"),
        ("The answer is", None, "an error"),
        ("More", None, "1"),
    ),
    (
        "config",
        {"text": "a"},
        content(TEXT_PART),
        ("config", {"text": "a"}, content(TEXT_PART)),
    ),
]


def test_differences() -> None:
    for field, *values, expected in [(*each[:3], each[3:]) for each in CASES]:
        before, after = ({} if each is GONE else {field: each} for each in values)
        assert told(before, after) == [as_told(*each) for each in expected], values


def test_members_in_another_order() -> None:
    before, after = {"title": "a", "uri": "b"}, {"uri": "b", "title": "a"}
    assert told(before, after) == [("order", "title, uri", "uri, title")]
