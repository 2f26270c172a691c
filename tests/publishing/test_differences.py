from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.models.fields import digest
from mcp_app.protocol import jsonrpc
from mcp_app.publishing.differences import (
    Change,
    Difference,
    breaking,
    differences,
    plain_differences,
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
        (schema(a={"minimum": "1"}), schema(a={"minimum": 1}), "smallest value"),
        (schema(a={"enum": 1}), schema(a={"enum": [1]}), "choices"),
        (schema(a={"enum": [1]}), schema(a={"enum": [True]}), "choices"),
        (schema(a={"type": [{}]}), schema(a={"type": "string"}), "type"),
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
        (schema(a={"enum": [1, "x"]}), schema(a={"enum": [1.0, "x"]})),
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


# -- whatever differs is shown ------------------------------------------------------


def message(**members: Any) -> dict[str, Any]:
    return {"config": {"messages": [says("a"), {**says("b"), **members}]}}


def parts(*blocks: Any) -> dict[str, Any]:
    return {"config": {"content": [TEXT_PART, *blocks]}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"position": 1}, {"position": 1.0}, ("position", "1", "1.0")),
        ({"position": 1}, {"position": True}, ("position", "1", "yes")),
        ({"position": 1}, {"position": "1"}, ("position", "1", '"1"')),
        ({"public": True}, {"public": "yes"}, ("public", "true", '"yes"')),
        ({"icons": []}, {}, ("icons", "[]", None)),
        ({"title": None}, {}, ("title", "null", None)),
        ({"title": ""}, {}, ("title", "", None)),
        (
            {"title": "a", "uri": "b"},
            {"uri": "b", "title": "a"},
            ("order", "title, uri", "uri, title"),
        ),
        (
            schema(a={"default": 1}),
            schema(a={"default": True}),
            ("parameter a, value if left out", "1", "yes"),
        ),
        (
            schema(a={"default": "1"}),
            schema(a={"default": 1}),
            ("parameter a, value if left out", '"1"', "1"),
        ),
        (
            schema(a={"enum": [1, {"x": [1]}]}),
            schema(a={"enum": [1, {"x": [1.0]}]}),
            (
                "parameter a, choices",
                jsonrpc.indented([1, {"x": [1]}]),
                jsonrpc.indented([1, {"x": [1.0]}]),
            ),
        ),
        (
            schema(a={"type": "string", "title": "A"}),
            schema(a={"title": "A", "type": "string"}),
            (
                "parameter a",
                "type: string; title: A",
                "title: A; type: string",
            ),
        ),
        (
            schema("a", "b", a=TEXT, b=TEXT),
            schema("b", "a", a=TEXT, b=TEXT),
            (
                "the rest",
                '{\n  "type": "object",\n  "required": [\n    "a",\n    "b"\n  ]\n}',
                '{\n  "type": "object",\n  "required": [\n    "b",\n    "a"\n  ]\n}',
            ),
        ),
        (
            schema("gone"),
            schema(),
            (
                "the rest",
                '{\n  "type": "object",\n  "required": [\n    "gone"\n  ]\n}',
                '{\n  "type": "object",\n  "required": []\n}',
            ),
        ),
        (
            {"input_schema": {"type": "object"}},
            {"input_schema": {"type": "object", "properties": {}}},
            (
                "input_schema",
                '{\n  "type": "object"\n}',
                '{\n  "type": "object",\n  "properties": {}\n}',
            ),
        ),
        (
            {"input_schema": True},
            {"input_schema": False},
            ("input_schema", "yes", "no"),
        ),
        (
            {"arguments": [{"name": "a", "title": ""}]},
            {"arguments": [{"name": "a"}]},
            (
                "argument a",
                '{\n  "name": "a",\n  "title": ""\n}',
                '{\n  "name": "a"\n}',
            ),
        ),
        (
            {"arguments": [{"name": "a"}, {"name": "b"}]},
            {"arguments": [{"name": "b"}, {"name": "a"}]},
            ("argument b, place", "2", "1"),
        ),
        (
            {"arguments": [{"name": "a"}, {"name": "a"}]},
            {"arguments": [{"name": "a"}]},
            (
                "arguments",
                jsonrpc.indented([{"name": "a"}, {"name": "a"}]),
                jsonrpc.indented([{"name": "a"}]),
            ),
        ),
        (
            {"suggestions": {"a": ["x\ny"]}},
            {"suggestions": {"a": ["x", "y"]}},
            ("variable a", '[\n  "x\\ny"\n]', '[\n  "x",\n  "y"\n]'),
        ),
        ({"suggestions": {"a": []}}, {"suggestions": {}}, ("variable a", "", None)),
        (
            {"suggestions": {"a": ["x"], "b": ["y"]}},
            {"suggestions": {"b": ["y"], "a": ["x"]}},
            (
                "suggestions",
                jsonrpc.indented({"a": ["x"], "b": ["y"]}),
                jsonrpc.indented({"b": ["y"], "a": ["x"]}),
            ),
        ),
        (parts("7"), parts(7), ("part 2 of the answer", '"7"', "7")),
        (
            parts({"type": "text", "text": "7"}),
            parts("7"),
            ("part 2 of the answer", '{\n  "type": "text",\n  "text": "7"\n}', '"7"'),
        ),
        (
            message(role="user"),
            message(role="system"),
            (
                "message 2",
                jsonrpc.indented({**says("b"), "role": "user"}),
                jsonrpc.indented({**says("b"), "role": "system"}),
            ),
        ),
        (
            message(),
            message(_meta={"a": 1}),
            (
                "message 2",
                jsonrpc.indented(says("b")),
                jsonrpc.indented({**says("b"), "_meta": {"a": 1}}),
            ),
        ),
        (
            {"config": {"messages": [says("a"), "b"]}},
            {"config": {"messages": [says("a"), ["b"]]}},
            ("message 2", "b", '[\n  "b"\n]'),
        ),
        (
            {"config": {"text": "x"}},
            {"config": {"content": [{"type": "text", "text": "x"}]}},
            (
                "text",
                '{\n  "text": "x"\n}',
                jsonrpc.indented({"content": [{"type": "text", "text": "x"}]}),
            ),
        ),
        (
            parts({**IMAGE, "type": "image"}),
            parts({**IMAGE, "type": "audio"}),
            (
                "part 2 of the answer",
                jsonrpc.indented({**IMAGE, "type": "image"}),
                jsonrpc.indented({**IMAGE, "type": "audio"}),
            ),
        ),
    ],
)
def test_what_differs_a_little(
    before: Any, after: Any, expected: tuple[str, str, str]
) -> None:
    assert told(before, after) == [expected]


SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 1.0, "", "1", "a", "true", "\u200b"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "a",
                    "b",
                    "name",
                    "type",
                    "text",
                    "title",
                    "enum",
                    "required",
                    "minimum",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.lists(NAMES, max_size=3)
BLOCKS = st.one_of(
    VALUES,
    st.fixed_dictionaries({"type": st.just("text"), "text": SCALARS}),
    st.sampled_from([IMAGE, PDF, {"type": "text", "text": "a", "annotations": {}}]),
)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "type": SCALARS,
        "required": TEXTS,
        "properties": st.dictionaries(NAMES, VALUES, max_size=3),
        "additionalProperties": SCALARS,
    },
)
ARGUMENTS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={"title": SCALARS, "required": SCALARS, "suggestions": TEXTS},
    ),
    max_size=3,
)
CONFIGS = st.one_of(
    VALUES,
    st.fixed_dictionaries({"content": st.lists(BLOCKS, max_size=3)}),
    st.fixed_dictionaries(
        {
            "messages": st.lists(
                st.one_of(
                    BLOCKS, st.fixed_dictionaries({"role": SCALARS, "content": BLOCKS})
                ),
                max_size=3,
            )
        }
    ),
)
CONTENTS = st.fixed_dictionaries(
    {},
    optional={
        "name": SCALARS,
        "input_schema": VALUES | SCHEMAS,
        "output_schema": VALUES,
        "arguments": VALUES | ARGUMENTS,
        "suggestions": VALUES | st.dictionaries(NAMES, TEXTS, max_size=2),
        "config": CONFIGS,
        "tags": VALUES,
    },
).flatmap(lambda content: st.permutations(list(content.items())).map(dict))


@given(before=CONTENTS, after=CONTENTS)
def test_what_differs_reads_as_a_difference(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Each column that differs is named, and no difference has two sides alike."""
    for compare in (differences, plain_differences):
        found = compare(before, after)
        assert bool(found) is (jsonrpc.write(before) != jsonrpc.write(after))
        assert all(each.before != each.after for each in found)
        missing = object()
        for field in {*before, *after}:
            sides = [content.get(field, missing) for content in (before, after)]
            differ = missing in sides or (
                jsonrpc.write(sides[0]) != jsonrpc.write(sides[1])
            )
            assert differ is any(each.field == field for each in found)


@given(data=st.data())
def test_one_part_hides_no_other(data: st.DataObject) -> None:
    """What changes beside something else is shown as well."""
    blocks = data.draw(st.lists(BLOCKS, min_size=3, max_size=4))
    changed = list(blocks)
    for place in data.draw(st.sets(st.integers(0, len(blocks) - 1))):
        changed[place] = data.draw(BLOCKS)
    found = differences(
        {"config": {"content": blocks}}, {"config": {"content": changed}}
    )
    pairs = zip(blocks, changed, strict=True)
    differ = [jsonrpc.write(old) != jsonrpc.write(new) for old, new in pairs]
    assert [each.part for each in found] == [
        f"part {number} of the answer" for number, each in enumerate(differ, 1) if each
    ]


def test_what_nobody_sees_is_written_out() -> None:
    difference = Difference("description", "", "Use it.", "Use\u200b it.")
    added = [each.text for each in difference.pieces_after()]
    assert added == ["Use⟦U+200B⟧ ", "it."]


def test_texts_that_are_alike_in_every_other_word_are_one_difference() -> None:
    """Each word that is the same would be looked for in all that follow."""
    before, after = (
        " ".join(f"w{number} {name}{number}" for number in range(20_000))
        for name in "xy"
    )
    assert len(Difference("description", "", before, after).pieces_after()) == 2


def test_as_few_parameters_as_can_be_are_said_to_have_moved() -> None:
    names = [f"p{number}" for number in range(4_000)]
    shuffled = [names[7], *names[:7], *names[8:]]
    found = told(*(schema(**dict.fromkeys(each, TEXT)) for each in (names, shuffled)))
    assert found == [("parameter p7, place", "8", "1")]
    shuffled.sort(key=digest)
    found = told(*(schema(**dict.fromkeys(each, TEXT)) for each in (names, shuffled)))
    assert 3_700 < len(found) < 4_000
