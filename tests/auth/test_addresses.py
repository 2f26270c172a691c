"""Whose address counts, by what proxies say and the settings believe."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mcp_app.auth.addresses import client_address

INNER = ["10.0.0.0/8", "fd00::/8"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "address"),
    [
        ("192.0.2.1", None, 0, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", 0, "192.0.2.1"),
        ("10.0.0.1", "198.51.100.7", 1, "198.51.100.7"),
        ("10.0.0.1", "203.0.113.9, 198.51.100.7", 1, "198.51.100.7"),
        ("10.0.0.2", "203.0.113.9, 198.51.100.7, 10.0.0.1", 2, "198.51.100.7"),
        ("10.0.0.1", None, 1, None),
        ("10.0.0.1", "198.51.100.7", 2, None),
        ("10.0.0.1", "unknown", 1, None),
        ("", "10.1.2.3", 0, None),
        ("", "10.1.2.3, 198.51.100.7", 1, "198.51.100.7"),
        ("", "10.1.2.3, 198.51.100.7", INNER, "198.51.100.7"),
        ("", None, INNER, None),
        ("10.0.0.1", "198.51.100.7", -1, None),
        ("", None, 0, None),
        ("192.0.2.1", "198.51.100.7", INNER, "192.0.2.1"),
        ("10.0.0.2", "203.0.113.9, 198.51.100.7, 10.0.0.1", INNER, "198.51.100.7"),
        ("fd00::1", "203.0.113.9,[2001:db8::5]:4711", INNER, "2001:db8::5"),
        ("10.0.0.1", "198.51.100.7:4711", INNER, "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7, unknown", INNER, None),
        ("10.0.0.1", "10.0.0.9", INNER, None),
        ("::ffff:192.0.2.1", None, 0, "192.0.2.1"),
    ],
)
def test_the_address_of_the_client(
    peer: str, forwarded: str | None, trusted: int | Sequence[str], address: str | None
) -> None:
    found = client_address(peer, forwarded, trusted)
    assert (None if found is None else str(found)) == address
