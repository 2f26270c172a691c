"""Only the verifier that a challenge was made of fits it."""

from __future__ import annotations

from mcp_app.protocol.oauth.requests import fits, is_challenge, is_verifier

# RFC 7636, appendix B.
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_the_example_of_the_rfc() -> None:
    assert fits(CHALLENGE, VERIFIER)


def test_what_does_not_fit() -> None:
    for challenge, verifier in [
        (VERIFIER, VERIFIER),
        (CHALLENGE, CHALLENGE),
        (CHALLENGE, VERIFIER[:-1] + "l"),
        (CHALLENGE, VERIFIER.lower()),
        (CHALLENGE[:-1] + "N", VERIFIER),
        (CHALLENGE + "=", VERIFIER),
        (CHALLENGE, VERIFIER + "\n"),
        (CHALLENGE, ""),
        ("", VERIFIER),
        ("", ""),
        (CHALLENGE, "é" * 43),
        ("é" * 43, VERIFIER),
    ]:
        assert not fits(challenge, verifier), (challenge, verifier)


def test_the_form_of_challenges() -> None:
    for text in (CHALLENGE, "a" * 43, "-_" + "0" * 41):
        assert is_challenge(text), text
    for text in (
        *("", "a" * 42, "a" * 44, "a" * 42 + "=", "a" * 42 + "~", "a" * 42 + "\n"),
        *("a" * 43 + "\n", "é" * 43, "٣" * 43, " " + "a" * 42),
    ):
        assert not is_challenge(text), text


def test_the_form_of_verifiers() -> None:
    for text in (VERIFIER, "a" * 43, "a" * 128, "-._~" + "A" * 39):
        assert is_verifier(text), text
    for text in ("", "a" * 42, "a" * 129, "+" * 43, "é" * 43, "a" * 43 + "\n"):
        assert not is_verifier(text), text
