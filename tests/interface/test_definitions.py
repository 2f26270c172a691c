"""Definitions: what a hint means, and what of it clients are told."""

from __future__ import annotations

from itertools import product

import pytest

from mcp_app.interface.definitions import (
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
    annotations_from_json,
    arguments_from_json,
    icons_from_json,
    suggestions_from_json,
)
from mcp_app.interface.principal import Scope
from mcp_app.protocol.content import Annotations, Icon


def test_a_tool_only_reads_where_it_says_so_and_by_no_other_hint() -> None:
    names = ("read_only", "idempotent", "destructive", "open_world")
    for says in product((None, False, True), repeat=4):
        hints = ToolHints(**dict(zip(names, says, strict=True)))
        tool = ToolDefinition(name="tool", hints=hints)
        assert tool.only_reads is (says[0] is True)
        assert Scope(read_only=True).includes(tool) is tool.only_reads
        assert hints.repeatable is (True in says[:2])


def test_whatever_is_no_tool_only_reads() -> None:
    assert PromptDefinition(name="prompt").only_reads
    assert ResourceDefinition(name="resource", uri="a://b").only_reads
    assert ResourceTemplateDefinition(name="t", uri_template="a://{b}").only_reads


def test_only_what_is_said_is_told() -> None:
    assert ToolHints().to_wire() == {}
    assert ToolHints(destructive=False, open_world=True).to_wire() == {
        "destructiveHint": False,
        "openWorldHint": True,
    }
    assert ToolHints(read_only=True, idempotent=False).to_wire() == {
        "readOnlyHint": True,
        # What only reads deletes nothing: that follows, and is said.
        "destructiveHint": False,
        "idempotentHint": False,
    }
    assert ToolHints(read_only=True, destructive=True).to_wire()["destructiveHint"]


def test_tools_do_not_share_what_one_may_change() -> None:
    first, second = ToolDefinition(name="a"), ToolDefinition(name="b")
    assert first.meta is not second.meta
    assert first.input_schema == {"type": "object", "properties": {}}
    assert first.output_schema is None


# -- decorations -----------------------------------------------------------------------


def test_icons() -> None:
    wire = {
        "src": "https://example.org/i.png",
        "mimeType": "image/png",
        "sizes": ["48x48"],
        "theme": "dark",
    }
    assert icons_from_json([wire, {"src": "data:image/png;base64,AA=="}]) == (
        Icon(
            src="https://example.org/i.png",
            mime_type="image/png",
            sizes=["48x48"],
            theme="dark",
        ),
        Icon(src="data:image/png;base64,AA=="),
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "not a JSON list"),
        (["x"], "must be a JSON object"),
        ([{"src": "javascript:alert(1)"}], "https:"),
        ([{"src": "http://example.org/i.png"}], "https:"),
        ([{}], "An icon needs “src”."),
        ([{"src": 1}], r"\$\[0\].src of the icons is 1: it must be a valid string."),
        ([{"src": "https://x", "size": "1"}], "no member “size”; it may have: mimeT"),
        ([{"src": "https://x", "sizes": "48x48"}], "sizes of the icons is '48x48': "),
        ([{"src": "https://x", "theme": "blue"}], "it must be 'light' or 'dark'."),
        ([{"src": "https://x", "mimeType": 1}], "mimeType of the icons is 1: it must"),
    ],
)
def test_what_is_no_icon(value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        icons_from_json(value)


def test_annotations() -> None:
    wire = {
        "audience": ["user"],
        "priority": 0.5,
        "lastModified": "2026-01-31T12:00:00Z",
    }
    assert annotations_from_json(wire) == Annotations(
        audience=["user"], priority=0.5, last_modified="2026-01-31T12:00:00Z"
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "JSON object"),
        ({"audience": ["everyone"]}, r"\$.audience\[0\] .* 'everyone': it must be 'us"),
        ({"audience": "user"}, "audience"),
        ({"audience": [{}]}, "audience"),
        ({"priority": 1.5}, "from 0 to 1"),
        ({"priority": True}, "priority of the annotations is True: it must be a valid"),
        ({"lastModified": "yesterday"}, "ISO 8601"),
        ({"importance": 1}, "importance"),
    ],
)
def test_what_is_no_annotation(value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        annotations_from_json(value)


def test_arguments() -> None:
    wire = [
        {"name": "order", "title": "Order", "required": True},
        {"name": "tone", "suggestions": ["kind", "Kind", "very brief"]},
        {"name": "more", "suggestions": []},
    ]
    assert arguments_from_json(wire) == (
        PromptArgument(name="order", title="Order", required=True),
        PromptArgument(name="tone", suggestions=("kind", "Kind", "very brief")),
        PromptArgument(name="more"),
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "not a JSON list"),
        ([{"title": "x"}], "An argument needs “name”."),
        ([{"name": "x.y"}], "cannot name an argument"),
        ([{"name": "a"}, {"name": "a"}], "more than once"),
        ([{"name": "a", "required": "yes"}], "'yes': it must be a valid boolean"),
        ([{"name": "a", "description": "b\u200bc"}], r"U\+200B"),
        ([{"name": "a", "default": "b"}], "default"),
        ([{"name": "a", "suggestions": "b"}], "suggestions of the arguments is 'b'"),
        ([{"name": "a", "suggestions": [1]}], r"suggestions\[0\] of the arguments is"),
        ([{"name": "a", "suggestions": ["b", "b"]}], "for a: “b” is suggested more"),
    ],
)
def test_what_is_no_argument(value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        arguments_from_json(value)


def test_suggestions_for_variables() -> None:
    given = {"number": ["7", "8"], "at.home": []}
    assert suggestions_from_json(given) == {"number": ("7", "8"), "at.home": ()}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "not a JSON object"),
        ({"a b": ["c"]}, "“a b” cannot name a variable"),
        ({"a": "b"}, "for a must be a list of texts"),
        ({"a": ["b", "b"]}, "Suggestions for a: “b” is suggested more than once."),
    ],
)
def test_what_suggests_nothing(value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        suggestions_from_json(value)
