"""Which programs `MCP["OAUTH"]["clients"]` lets in, by their hosts."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from mcp_app.auth.resources import oauth_settings

HERE = "localhost"


@pytest.mark.parametrize(
    ("clients", "hosts", "is_in"),
    [
        ([], ["claude.ai"], True),
        (["claude.ai"], ["claude.ai"], True),
        (["claude.ai"], ["claude.ai:8443"], True),
        (["claude.ai:8443"], ["claude.ai:8443"], True),
        (["claude.ai:8443"], ["claude.ai"], False),
        (["claude.ai"], ["a.claude.ai"], False),
        (["claude.ai"], ["claude.ai", "evil.example"], False),
        (["!evil.example"], ["claude.ai"], True),
        (["!evil.example"], ["evil.example"], False),
        (["!evil.example"], ["claude.ai", "evil.example:1"], False),
        # A name that is no host by RFC 1123, and one from the root.
        (["!my_host.example"], ["my_host.example:8443"], False),
        (["my_host.example"], ["my_host.example:8443"], True),
        (["!evil.example"], ["evil.example."], False),
        (["!evil.example"], ["evil.example.:443"], False),
        ([HERE], ["127.0.0.1:1"], True),
        ([HERE], ["[::1]:1"], True),
        ([f"!{HERE}"], ["[::1]"], False),
        ([f"!{HERE}"], ["127.0.0.1"], False),
        # Entries may be written in several ways, too.
        (["!Evil.example."], ["evil.example"], False),
        (["!evil.example:443"], ["evil.example"], False),
        (["!127.0.0.1"], ["localhost:3000"], False),
        (["!localhost:3000"], ["127.0.0.1:3000"], False),
        (["!localhost:3000"], ["127.0.0.1:3001"], True),
        (["!::1"], ["[::1]:3000"], False),
        (["claude.ai.", "127.0.0.1"], ["claude.ai", "localhost:1"], True),
        (["2001:db8::1"], ["[2001:db8::1]:8443"], True),
    ],
)
def test_whom_it_lets_in(
    settings: Settings, clients: list[str], hosts: list[str], is_in: bool
) -> None:
    settings.MCP = {**settings.MCP, "OAUTH": {"clients": clients}}
    assert oauth_settings().lets_in(hosts) is is_in
