from __future__ import annotations

from typing import Any

import pytest

from mcp_app.publishing.differences import breaking_reasons, differences
from tests.publishing.differences.contents import (
    IMAGE,
    PDF,
    TEXT_PART,
    as_told,
    says,
    told,
)

SUGGESTING = {"name": "b", "suggestions": ["x"]}
LINK = {"content": {"type": "resource_link", "uri": "x:a"}}


def message(**members: Any) -> dict[str, Any]:
    return {"config": {"messages": [says("a"), {**says("b"), **members}]}}


def parts(*blocks: Any) -> dict[str, Any]:
    return {"config": {"content": [TEXT_PART, *blocks]}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
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
        ({"suggestions": {"id": ["7"]}}, {}, [("variable id", "7", None)]),
        (
            {"config": {"content": [TEXT_PART]}},
            {"config": {"content": [TEXT_PART, IMAGE, PDF]}},
            [
                ("part 2 of the answer", None, "File: image/png, fingerprint ab"),
                ("part 3 of the answer", None, "File: a/b, x:p, fingerprint cd"),
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
                ("part 2 of the answer", None, {**IMAGE, "annotations": {}}),
            ],
        ),
        (
            {"config": {"text": "x"}},
            {"config": {"upload": "d", "more": 1}},
            [("config", {"text": "x"}, '{\n  "upload": "d",\n  "more": 1\n}')],
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
    ],
)
def test_differences(before: Any, after: Any, expected: Any) -> None:
    said = [as_told(*each) for each in expected]
    assert told(before, after)[: len(said)] == said


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({"name": "a"}, {"name": "b"}, "calls to a fail"),
        ({"uri": "x:a"}, {"uri": "x:b"}, "calls to x:a fail"),
        ({"arguments": [{"name": "a"}]}, {"arguments": []}, "The argument a is gone."),
        (
            {},
            {"arguments": [{"name": "a", "required": True}]},
            "The argument a is required now.",
        ),
    ],
)
def test_what_breaks_old_calls(before: Any, after: Any, reason: str) -> None:
    (said,) = breaking_reasons(differences(before, after))
    assert reason in said


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"arguments": [{"name": "a", "title": ""}]},
            {"arguments": [{"name": "a"}]},
            ("argument a", {"name": "a", "title": ""}, {"name": "a"}),
        ),
        (
            {"arguments": [{"name": "a"}, {"name": "b"}]},
            {"arguments": [{"name": "b"}, {"name": "a"}]},
            ("argument b, place", "2", "1"),
        ),
        (
            {"arguments": [{"name": "a"}, {"name": "a"}]},
            {"arguments": [{"name": "a"}]},
            ("arguments", [{"name": "a"}, {"name": "a"}], [{"name": "a"}]),
        ),
        (
            {"suggestions": {"a": ["x\ny"]}},
            {"suggestions": {"a": ["x", "y"]}},
            ("variable a", ["x\ny"], ["x", "y"]),
        ),
        ({"suggestions": {"a": []}}, {"suggestions": {}}, ("variable a", "", None)),
        (
            {"suggestions": {"a": ["x"], "b": ["y"]}},
            {"suggestions": {"b": ["y"], "a": ["x"]}},
            ("suggestions", {"a": ["x"], "b": ["y"]}, {"b": ["y"], "a": ["x"]}),
        ),
        (parts("7"), parts(7), ("part 2 of the answer", '"7"', "7")),
        (
            parts({"type": "text", "text": "7"}),
            parts("7"),
            ("part 2 of the answer", {"type": "text", "text": "7"}, '"7"'),
        ),
        (
            message(role="user"),
            message(role="system"),
            (
                "message 2",
                {**says("b"), "role": "user"},
                {**says("b"), "role": "system"},
            ),
        ),
        (
            message(),
            message(_meta={"a": 1}),
            ("message 2", says("b"), {**says("b"), "_meta": {"a": 1}}),
        ),
        (
            {"config": {"messages": [says("a"), "b"]}},
            {"config": {"messages": [says("a"), ["b"]]}},
            ("message 2", "b", '[\n  "b"\n]'),
        ),
        (
            {"config": {"text": "x"}},
            {"config": {"content": [{"type": "text", "text": "x"}]}},
            ("text", {"text": "x"}, {"content": [{"type": "text", "text": "x"}]}),
        ),
        (
            parts({**IMAGE, "type": "image"}),
            parts({**IMAGE, "type": "audio"}),
            (
                "part 2 of the answer",
                {**IMAGE, "type": "image"},
                {**IMAGE, "type": "audio"},
            ),
        ),
    ],
)
def test_what_differs_a_little(
    before: Any, after: Any, expected: tuple[str, Any, Any]
) -> None:
    assert told(before, after) == [as_told(*expected)]
