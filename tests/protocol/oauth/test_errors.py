"""A refusal has the form of RFC 6749 §5.2."""

from __future__ import annotations

import re

from mcp_app.protocol.oauth.requests import OAuthError


def test_a_refusal_has_its_code_its_sentence_and_its_status() -> None:
    error = OAuthError("invalid_client", "Nobody knows it.", status=401)
    assert (error.error, error.description) == ("invalid_client", "Nobody knows it.")
    assert error.status == 401
    assert error.body() == {
        "error": "invalid_client",
        "error_description": "Nobody knows it.",
    }
    assert str(error) == "invalid_client: Nobody knows it."
    assert OAuthError("invalid_grant", "").status == 400


def test_a_sentence_stays_readable() -> None:
    error = OAuthError("invalid_request", 'A “b” of "c" \\ d\n§')
    assert error.description == "A 'b' of 'c' / d??"


def test_a_sentence_is_ascii_as_the_rfc_wants() -> None:
    text = "".join(map(chr, [*range(0x800), 0x201C, 0xD800, 0x1F916]))
    description = OAuthError("invalid_request", text).description
    assert re.fullmatch(r"[\x20\x21\x23-\x5B\x5D-\x7E]*", description)
    assert len(description) == len(text)
