"""How codes and tokens look, and which lead to which."""

from __future__ import annotations

import pytest

from mcp_app.protocol.oauth.texts import (
    code_of,
    is_access,
    new_access,
    new_refresh,
    refresh_parts,
    successor,
)


def test_one_page_has_one_code() -> None:
    code = code_of("page", "a")
    assert code.startswith("mcp_ac_")
    assert len(code) == 50
    assert code == code_of("page", "a")
    assert len({code, code_of("page2", "a"), code_of("page", "b")}) == 3


def test_access_tokens() -> None:
    tokens = {new_access() for _ in range(9)}
    assert len(tokens) == 9
    assert all(map(is_access, tokens))
    for text in [
        *("", "mcp_at_", "mcp_at_" + "a" * 42, "mcp_at_" + "a" * 44),
        # An access token that people make has 47 characters and may begin so.
        *("mcp_at_" + "a" * 40, "mcp_rt_" + "a" * 43, "MCP_AT_" + "a" * 43),
        *("mcp_at_" + "a" * 43 + "\n", "mcp_at_" + "é" * 43, " mcp_at_" + "a" * 42),
    ]:
        assert not is_access(text), text


def test_refresh_tokens() -> None:
    token = new_refresh()
    name, secret = refresh_parts(token) or ("", "")
    assert token == "mcp_rt_" + name + secret
    assert (len(name), len(secret), len(token)) == (22, 43, 72)
    assert new_refresh() != token
    for text in [
        *("", "mcp_rt_", token[:-1], token + "a", token + "\n", token.upper()),
        *("mcp_at_" + name + secret, token[:-1] + "=", token[:-1] + "é", new_access()),
    ]:
        assert refresh_parts(text) is None, text
        with pytest.raises(ValueError, match="no refresh token"):
            successor(text, "a")


def test_a_successor_is_computed() -> None:
    first = new_refresh()
    second = successor(first, "a")
    assert second == successor(first, "a")
    chain = [first, second, successor(second, "a"), successor(first, "b")]
    parts = [refresh_parts(each) or ("", "") for each in chain]
    assert len({name for name, _ in parts}) == 1
    assert len({secret for _, secret in parts}) == 4


def test_no_text_tells_another() -> None:
    """A code and a successor of the same text have nothing in common."""
    first = new_refresh()
    _, secret = refresh_parts(first) or ("", "")
    assert code_of(secret, "a")[7:] != successor(first, "a")[29:]
