from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.publishing.differences import breaking_reasons, differences
from tests.publishing.differences.contents import IMAGE, PDF, TEXT_PART, as_told, told

GONE: Final = object()
A: Final = {"name": "a"}
B: Final = {"name": "b"}
SUGGESTING: Final = {"name": "b", "suggestions": ["x"]}
USER_A: Final = {"role": "user", "content": TEXT_PART}
USER_B: Final = {"role": "user", "content": {"type": "text", "text": "b"}}
HELPER_A: Final = {**USER_A, "role": "assistant"}
HELPER_B: Final = {**USER_B, "role": "assistant"}
LINK: Final = {"content": {"type": "resource_link", "uri": "x:a"}}
NOTED: Final = {**IMAGE, "annotations": {}}
OTHER: Final = {"type": "text", "text": "b"}
SEVEN: Final = {"type": "text", "text": "7"}


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
        [{**A, "title": "A", "required": True}],
        ("argument a", "a", "A (required)"),
    ),
    (
        "arguments",
        [{**A, "suggestions": ["one", "two"]}],
        [{**A, "suggestions": ["one two"]}, SUGGESTING],
        ("argument a, suggestions", "one\ntwo", "one two"),
        ("argument b", None, "b"),
        ("argument b, suggestions", None, "x"),
    ),
    (
        "arguments",
        [{**A, "suggestions": []}, SUGGESTING],
        [{**A, "title": "A"}],
        ("argument a", "a", "A"),
        ("argument b", "b", None),
        ("argument b, suggestions", "x", None),
    ),
    ("arguments", [{**A, "title": ""}], [A], ("argument a", {**A, "title": ""}, A)),
    ("arguments", [A, B], [B, A], ("argument b, place", "2", "1")),
    ("arguments", [A, A], [A], ("arguments", [A, A], [A])),
    (
        "suggestions",
        {"id": ["7"], "same": ["s"], "old": ["a"]},
        {"id": ["7", "8"], "same": ["s"], "new": ["b"]},
        ("variable id", "7", "7\n8"),
        ("variable old", "a", None),
        ("variable new", None, "b"),
    ),
    ("suggestions", {"id": ["7"]}, GONE, ("variable id", "7", None)),
    (
        "suggestions",
        {"a": ["x\ny"]},
        {"a": ["x", "y"]},
        ("variable a", ["x\ny"], ["x", "y"]),
    ),
    ("suggestions", {"a": []}, {}, ("variable a", "", None)),
    (
        "suggestions",
        {"a": ["x"], "b": ["y"]},
        {"b": ["y"], "a": ["x"]},
        ("suggestions", {"a": ["x"], "b": ["y"]}, {"b": ["y"], "a": ["x"]}),
    ),
    ("config", content(TEXT_PART), content(OTHER), ("text", "a", "b")),
    (
        "config",
        content(TEXT_PART),
        content(TEXT_PART, IMAGE, PDF),
        ("part 2 of the answer", None, "File: image/png, fingerprint ab"),
        ("part 3 of the answer", None, "File: a/b, x:p, fingerprint cd"),
    ),
    (
        "config",
        content(TEXT_PART, IMAGE, 7),
        content(OTHER),
        ("part 1 of the answer", "a", "b"),
        ("part 2 of the answer", "File: image/png, fingerprint ab", None),
        ("part 3 of the answer", "7", None),
    ),
    (
        "config",
        GONE,
        content(7, NOTED),
        ("part 1 of the answer", None, "7"),
        ("part 2 of the answer", None, NOTED),
    ),
    (
        "config",
        {"text": "x"},
        {"upload": "d", "more": 1},
        ("config", {"text": "x"}, {"upload": "d", "more": 1}),
    ),
    (
        "config",
        messages(USER_A, HELPER_B),
        messages(USER_A, HELPER_A, LINK),
        ("message 2", "Assistant: b", "Assistant: a"),
        ("message 3", None, 'User: {\n  "type": "resource_link",\n  "uri": "x:a"\n}'),
    ),
    (
        "config",
        GONE,
        messages(USER_A, USER_B),
        ("message 1", None, "User: a"),
        ("message 2", None, "User: b"),
    ),
    (
        "config",
        content(TEXT_PART, "7"),
        content(TEXT_PART, 7),
        ("part 2 of the answer", '"7"', "7"),
    ),
    (
        "config",
        content(TEXT_PART, SEVEN),
        content(TEXT_PART, "7"),
        ("part 2 of the answer", SEVEN, '"7"'),
    ),
    (
        "config",
        content(TEXT_PART, IMAGE),
        content(TEXT_PART, {**IMAGE, "type": "audio"}),
        ("part 2 of the answer", IMAGE, {**IMAGE, "type": "audio"}),
    ),
    *(
        ("config", messages(USER_A, USER_B), messages(USER_A, other), said)
        for other, said in [
            (each, ("message 2", USER_B, each))
            for each in ({**USER_B, "role": "system"}, {**USER_B, "_meta": {"a": 1}})
        ]
    ),
    (
        "config",
        messages(USER_A, "b"),
        messages(USER_A, ["b"]),
        ("message 2", "b", '[\n  "b"\n]'),
    ),
    (
        "config",
        {"text": "a"},
        content(TEXT_PART),
        ("text", {"text": "a"}, content(TEXT_PART)),
    ),
]


def test_differences() -> None:
    for field, *values, expected in [(*each[:3], each[3:]) for each in CASES]:
        before, after = ({} if each is GONE else {field: each} for each in values)
        assert told(before, after) == [as_told(*each) for each in expected], values


def test_members_in_another_order() -> None:
    before, after = {"title": "a", "uri": "b"}, {"uri": "b", "title": "a"}
    assert told(before, after) == [("order", "title, uri", "uri, title")]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({"name": "a"}, {"name": "b"}, "calls to a fail"),
        ({"uri": "x:a"}, {"uri": "x:b"}, "calls to x:a fail"),
        ({"arguments": [A]}, {"arguments": []}, "The argument a is gone."),
        (
            {},
            {"arguments": [{**A, "required": True}]},
            "The argument a is required now.",
        ),
        ({}, {"name": "a"}, ""),
        ({"title": "a"}, {"title": "b"}, ""),
        ({"output_schema": {"a": 1}}, {"output_schema": {"a": 2}}, ""),
    ],
)
def test_what_breaks_old_calls(before: Any, after: Any, reason: str) -> None:
    found = differences(before, after)
    assert found
    said = breaking_reasons(found)
    assert len(said) == bool(reason)
    assert reason in "".join(said)
