"""Whose address counts, by what proxies say and the settings believe."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import pytest

from mcp_app.auth.site_requests import CallerAddresses, client_address

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


FAR: Final = "203.0.113.7"


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "key"),
    [
        (FAR, None, 0, f"@{FAR}"),
        ("::ffff:203.0.113.7", None, 0, f"@{FAR}"),
        ("2001:db8:1:2:3::4", None, 0, "@2001:db8:1:2::/64"),
        # Where somebody forwards, and nobody is trusted, all would share one.
        (FAR, "198.51.100.7", 0, ""),
        (FAR, "", 0, ""),
        ("127.0.0.1", None, 0, ""),
        ("::1", None, 0, ""),
        ("", None, 0, ""),
        ("testclient", None, 0, ""),
        ("10.0.0.1", FAR, 1, f"@{FAR}"),
        ("127.0.0.1", FAR, 1, f"@{FAR}"),
        ("", f"10.1.2.3, {FAR}", 1, f"@{FAR}"),
        ("10.0.0.1", f"198.51.100.7, {FAR}", INNER, f"@{FAR}"),
        # uvicorn leaves blanks at the end of a header.
        ("10.0.0.1", FAR + " \t" * 600, 1, f"@{FAR}"),
        ("10.0.0.1", "unknown", 1, ""),
        ("10.0.0.1", None, 1, ""),
    ],
)
def test_an_address_counts_where_it_is_vouched_for(
    peer: str, forwarded: str | None, trusted: int | Sequence[str], key: str
) -> None:
    addresses = CallerAddresses(trusted)
    assert addresses.of(peer, forwarded) == key
    assert addresses.of(peer, forwarded) == key


def test_that_addresses_are_not_known_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    addresses = CallerAddresses(0)
    with caplog.at_level(logging.INFO, "mcp_app.auth"):
        for number in range(5):
            assert addresses.of(FAR, f"198.51.100.{number}") == ""
    assert len(caplog.records) == 1
    assert 'MCP["TRUSTED_PROXIES"]' in caplog.text
