from __future__ import annotations

import pytest

from mcp_app.models.fields import tag_problems, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        (" , ", ()),
        ("a", ("a",)),
        ("b, a", ("b", "a")),
        ("b a\n,b", ("b", "a")),
    ],
)
def test_words(text: str, expected: tuple[str, ...]) -> None:
    assert words(text) == expected


def test_each_bad_tag_is_named() -> None:
    problems = list(tag_problems("fine, n/t, <b>"))
    assert [field for field, _ in problems] == ["tags", "tags"]
    assert "“n/t”" in problems[0][1]
    assert "“<b>”" in problems[1][1]
