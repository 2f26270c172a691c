"""What leads to this computer alone."""

from __future__ import annotations

import pytest

from mcp_app.protocol.headers import is_loopback_host


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "::1"])
def test_this_computer(host: str) -> None:
    assert is_loopback_host(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "[localhost]",
        "localhost.",
        "localhost.evil.example",
        "127.1",
        "127.0.0.1.evil.example",
        "0x7f.1",
        "::ffff:127.0.0.1",
        "::1%lo",
    ],
)
def test_what_may_be_another_one(host: str | None) -> None:
    assert not is_loopback_host(host)
