"""Texts of others, as every database takes them."""

from __future__ import annotations

import pytest

from mcp_app.audit.storable import storable


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
