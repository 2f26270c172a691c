from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol import jsonrpc
from mcp_app.publishing.differences import ClientView, differences, plain_differences
from tests.publishing.differences.contents import IMAGE, PDF

SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 1.0, "", "1", "a", "true", "\u200b"]
)
MEMBERS = st.sampled_from(
    [*("a", "b", "name", "type", "text", "title"), *("enum", "required", "minimum")]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=3)
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
    for found in (
        differences(ClientView(before), ClientView(after)),
        plain_differences(before, after),
    ):
        assert bool(found) is (jsonrpc.write(before) != jsonrpc.write(after))
        assert all(each.before != each.after for each in found)
        missing = object()
        for field in {*before, *after}:
            sides = [content.get(field, missing) for content in (before, after)]
            differ = missing in sides or (
                jsonrpc.write(sides[0]) != jsonrpc.write(sides[1])
            )
            assert differ is any(each.field == field for each in found)
