"""Texts of others, as every database takes them."""

from __future__ import annotations

import pytest

from mcp_app.audit.writing import LONGEST, cut, storable


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a\0b", "ab"),
        ("\0\0", ""),
        ("é𝄞", "é𝄞"),
        ("é\0", "é"),
        ("a\ud800b", "a?b"),
        ("\udc00\ud800\0", "??"),
        ("\n\t\x01", "\n\t\x01"),
    ],
)
def test_a_text(text: str, stored: str) -> None:
    assert storable(text) == stored
    assert storable(stored) == stored
    stored.encode()


def test_a_text_is_cut_by_bytes_and_no_character_is_split() -> None:
    for character, size in {"a": 1, "é": 2, "€": 3, "𝄞": 4}.items():
        for count in (0, 1, 124, 125, 126, 166, 167, 250, 251, 500, 501, 2_000):
            text = character * count
            assert cut(text) == character * min(count, LONGEST // size)
    assert [cut("a𝄞é", most) for most in range(8)] == [
        *("", "a", "a", "a", "a"),
        *("a𝄞", "a𝄞", "a𝄞é"),
    ]
