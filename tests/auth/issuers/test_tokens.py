"""Which tokens are an issuer's, and which of them are good."""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Callable
from typing import Any, Final

import pytest
from django.views.debug import ExceptionReporter
from pytest_django import Settings

from mcp_app.auth.issuer_keys import KeySet
from mcp_app.auth.issuer_tokens import LEEWAY_S, token_from_headers, verify
from mcp_app.interface.principal import AuthenticationFailed
from mcp_app.protocol.headers import Headers
from tests.auth.issuers.loopback_issuer import (
    LoopbackIssuer,
    encoded,
    private_key,
    public_jwk,
)
from tests.egress.peer import peer_on

SERVER: Final = "by-issuer"

Make = Callable[[LoopbackIssuer], str]


def bearing(token: str, scheme: str = "Bearer") -> Headers:
    return Headers([(b"authorization", f"{scheme} {token}".encode())])


def reading(issuer: LoopbackIssuer, token: str, scheme: str = "Bearer") -> bool:
    """Whether a token is the issuer's by what it says of itself."""
    return token_from_headers(bearing(token, scheme), issuer.url) is not None


async def outcome(
    issuer: LoopbackIssuer, token: str, keys: KeySet | None = None, **options: Any
) -> str:
    """Return why a token is refused, "" if it is good."""
    given = issuer.options(**options)
    found = token_from_headers(bearing(token), given.issuer)
    assert found is not None
    try:
        await verify(found, given, keys or KeySet(given), SERVER)
    except AuthenticationFailed as error:
        return str(error)
    return ""


@pytest.mark.parametrize("more", ["\xa0", "\x85", "\xa0\xa0", "!!!!", "====", "="])
async def test_a_longer_token_is_another_one(issuer: LoopbackIssuer, more: str) -> None:
    options = issuer.options()
    shown = f"Bearer {issuer.token()}{more}".encode("latin-1")
    found = token_from_headers(Headers([(b"authorization", shown)]), options.issuer)
    assert found is not None
    with pytest.raises(AuthenticationFailed, match="not valid"):
        await verify(found, options, KeySet(options), SERVER)


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes) -> str:
    return f"{encoded(header)}.{encoded(claims)}.{encoded(signature)}"


def claims_of(issuer: LoopbackIssuer) -> dict[str, Any]:
    found = token_from_headers(bearing(issuer.token()), issuer.url)
    assert found is not None
    return dict(found.claims)


# -- whose it is ----------------------------------------------------------------------


def test_whose_a_token_is(issuer: LoopbackIssuer) -> None:
    own = issuer.token()
    head, body, signature = own.split(".")
    assert reading(issuer, own)
    assert reading(issuer, f" {own} ", "bearer")
    # That is to be refused, not to be passed by.
    assert reading(issuer, f"{head}.{body}.")
    others = [
        "",
        "opaque",
        "mcp_9fK2ab.a.b",
        f"mcp_{own}",
        f"{head}.{body}",
        f"{own}.{signature}",
        f"{head}.{body}.{signature}.a.b",
        f"..{signature}",
        f"{head}.{encoded(b'7')}.{signature}",
        f"{encoded(b'[]')}.{body}.{signature}",
        f"{head}.{encoded(b'{')}.{signature}",
        f"{head}.{encoded(b'[' * 30_000)}.{signature}",
        f"{head}.{body}é.{signature}",
        f"{head}.{body[:-1]}!.{signature}",
        f"{head}.{body[:4]}!!!!{body[4:]}.{signature}",
        issuer.token(iss="https://evil.example"),
        issuer.token(iss=f"{issuer.url}/"),
        issuer.token(iss=issuer.url.upper()),
        issuer.token(iss=None),
        f"{head}.{encoded({'iss': [issuer.url]})}.{signature}",
    ]
    for each in others:
        assert not reading(issuer, each), each
    assert not reading(issuer, own, "Basic")
    assert token_from_headers(Headers([]), issuer.url) is None


# -- what is good ---------------------------------------------------------------------


async def test_what_is_good(issuer: LoopbackIssuer) -> None:
    every = ("ES256", "EdDSA", "RS256")
    issuer.serve_keys(*map(public_jwk, every))
    good = [
        *map(issuer.token, every),
        issuer.token("PS256", header={"kid": "RS256 one"}),
        issuer.token(header={"kid": None}),
        issuer.token(header={"typ": "JWT"}),
        issuer.token(header={"typ": "application/AT+JWT"}),
        issuer.token(header={"typ": None}),
        issuer.token(aud=["https://other.example", claims_of(issuer)["aud"]]),
        issuer.token(exp=time.time() - LEEWAY_S + 20),
        issuer.token(nbf=time.time() + LEEWAY_S - 20, iat=time.time() + 20),
        issuer.token(typ="Bearer"),
    ]
    keys = KeySet(issuer.options())
    for each in good:
        assert await outcome(issuer, each, keys) == ""


def signed_with_the_public_key(issuer: LoopbackIssuer) -> str:
    """HS256 whose secret is what everybody may read: the oldest of confusions."""
    public = private_key("RS256").public_key()
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    secret = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header = {"alg": "HS256", "typ": "at+jwt", "kid": "RS256 one"}
    signed = f"{encoded(header)}.{encoded(claims_of(issuer))}"
    signature = hmac.digest(secret, signed.encode(), "sha256")
    return f"{signed}.{encoded(signature)}"


def with_another_payload(issuer: LoopbackIssuer) -> str:
    head, _, signature = issuer.token().split(".")
    return f"{head}.{encoded({**claims_of(issuer), 'sub': 'bert'})}.{signature}"


def unsigned(issuer: LoopbackIssuer, alg: str) -> str:
    return forged({"alg": alg, "typ": "at+jwt"}, claims_of(issuer), b"")


BAD: dict[str, tuple[Make, str]] = {
    "none": (lambda each: unsigned(each, "none"), "algorithm"),
    "None": (lambda each: unsigned(each, "None"), "algorithm"),
    "a list of algorithms": (
        lambda each: forged({"alg": ["ES256"]}, claims_of(each), b"a"),
        "algorithm"
    ),
    "no algorithm": (lambda each: forged({}, claims_of(each), b"a"), "algorithm"),
    "HS256 with the public key": (signed_with_the_public_key, "algorithm"),
    "RS384": (lambda each: each.token("RS384", header={"kid": "RS256 one"}),
              "algorithm"),
    "no signature": (lambda each: unsigned(each, "ES256"), "signature"),
    "another payload": (with_another_payload, "signature"),
    "another key under its name": (
        lambda each: each.token("ES256", "two", header={"kid": "ES256 one"}),
        "signature"
    ),
    "another key": (lambda each: each.token("ES256", "two"), "no key of its issuer"),
    "the key of another algorithm": (
        lambda each: each.token("RS256", header={"kid": "ES256 one"}),
        "no key of its issuer"
    ),
    "RSA 1,024": (lambda each: each.token("RS256", "short"), "too short"),
    "a key that is no text": (
        lambda each: forged({"alg": "ES256", "kid": 7}, claims_of(each), b"a"),
        "header"
    ),
    "unknown crit": (
        lambda each: each.token(header={"crit": ["exp2"], "exp2": 1}), "header"
    ),
    "crit of b64": (
        lambda each: forged(
            {"alg": "ES256", "kid": "ES256 one", "crit": ["b64"], "b64": False},
            claims_of(each),
            b"a"
        ),
        "header"
    ),
    "another type": (lambda each: each.token(header={"typ": "dpop+jwt"}), "type"),
    "a logout token": (lambda each: each.token(header={"typ": "logout+jwt"}), "type"),
    "an ID token": (lambda each: each.token(nonce="n"), "ID token"),
    "an ID token of Keycloak": (lambda each: each.token(typ="ID"), "ID token"),
    "a token for another API of Entra": (
        lambda each: each.token(header={"nonce": "n"}), "ID token"
    ),
    "expired": (lambda each: each.token(exp=time.time() - LEEWAY_S - 5), "expired"),
    "not yet": (lambda each: each.token(nbf=time.time() + LEEWAY_S + 30), "not valid"),
    "made later": (lambda each: each.token(iat=time.time() + 300), "not valid"),
    "no end": (lambda each: each.token(exp=None), "has no exp"),
    "an end that is text": (
        lambda each: each.token(exp=str(int(time.time()) + 99)), "not a number"
    ),
    "an end that is true": (lambda each: each.token(exp=True), "expired"),
    "nobody": (lambda each: each.token(sub=None), "has no sub"),
    "a number for somebody": (lambda each: each.token(sub=7), "not valid"),
    "no audience": (lambda each: each.token(aud=None), "has no aud"),
    "another audience": (lambda each: each.token(aud="https://x.example"), "audience"),
    "a longer audience": (
        lambda each: each.token(aud=f"{claims_of(each)['aud']}/more"), "audience"
    ),
    "audiences of other types": (lambda each: each.token(aud=[7, None]), "audience"),
    "an object as audience": (lambda each: each.token(aud={"a": 1}), "audience")
}  # fmt: skip


async def test_what_is_not(issuer: LoopbackIssuer) -> None:
    served = [("ES256", "one"), ("RS256", "one"), ("RS256", "short")]
    issuer.serve_keys(*(public_jwk(*each) for each in served))
    keys = KeySet(issuer.options())
    for name, (make, said) in BAD.items():
        assert said in await outcome(issuer, make(issuer), keys), name


async def test_an_end_beyond_all_numbers(issuer: LoopbackIssuer) -> None:
    head, _, _ = issuer.token().split(".")
    for number in (b"1e999", b"NaN", b"Infinity", b"1" * 5_000):
        said = f'{{"iss": "{issuer.url}", "exp": '.encode() + number + b"}"
        token = f"{head}.{encoded(said)}.AAAA"
        found = token_from_headers(bearing(token), issuer.url)
        assert found is None or await outcome(issuer, token) != ""


async def test_keys_that_a_token_brings_are_ignored(
    issuer: LoopbackIssuer,
) -> None:
    keys = KeySet(issuer.options())
    async with peer_on() as canary:
        address = f"http://127.0.0.1:{canary.port}/keys"
        for header in (
            {"jku": address},
            {"x5u": address},
            {"jwk": public_jwk("ES256", "two")},
            {"x5c": [base64.b64encode(b"a certificate").decode()]},
        ):
            bad = issuer.token("ES256", "two", header={**header, "kid": "ES256 one"})
            assert "signature" in await outcome(issuer, bad, keys)
            assert await outcome(issuer, issuer.token(header=header), keys) == ""
        assert canary.connections == 0


# -- for whom -------------------------------------------------------------------------


async def test_the_address_of_the_server_is_the_audience(
    issuer: LoopbackIssuer, settings: Settings
) -> None:
    settings.MCP = {"PUBLIC_URL": "https://Shop.example.com:443/mcp/"}
    keys = KeySet(issuer.options())
    for aud, is_good in (
        ("https://shop.example.com/mcp/by-issuer", True),
        ("https://SHOP.example.com/mcp/by-issuer/", True),
        ("https://shop.example.com:443/mcp/by-issuer/sse", True),
        ("https://shop.example.com/mcp", False),
        ("https://shop.example.com/mcp/other", False),
        ("https://shop.example.com/mcp/by-issuer2", False),
        ("http://shop.example.com/mcp/by-issuer", False),
        ("https://shop.example.com:444/mcp/by-issuer", False),
        ("https://evil.example/mcp/by-issuer", False),
        ("https://shop.example.com/mcp/by-issuer?a", False),
        ("", False),
        (["", "https://shop.example.com/mcp/by-issuer"], True),
    ):
        said = await outcome(issuer, issuer.token(aud=aud), keys, audience="")
        assert (said == "") is is_good, aud


async def test_an_own_audience_is_compared_as_text(
    issuer: LoopbackIssuer,
) -> None:
    keys = KeySet(issuer.options())
    for aud, is_good in (
        ("api://mcp", True),
        (["api://mcp"], True),
        ("API://mcp", False),
        ("api://mcp/", False),
        ("https://shop.example.com/mcp/by-issuer", False),
    ):
        token = issuer.token(aud=aud)
        said = await outcome(issuer, token, keys, audience="api://mcp")
        assert (said == "") is is_good, aud


# -- what is shown of it --------------------------------------------------------------


async def test_no_fault_of_a_library_shows_a_token(
    issuer: LoopbackIssuer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    import jwt  # noqa: PLC0415

    def fail(token: str, *_: object, **__: object) -> None:
        raise LookupError(token)

    token = issuer.token()
    with monkeypatch.context() as broken:
        broken.setattr(jwt, "decode", fail)
        assert await outcome(issuer, token) == "The token is not valid."
    assert token.rpartition(".")[2] not in caplog.text


@pytest.mark.parametrize("debug", [True, False])
async def test_no_page_about_an_error_shows_a_token(
    issuer: LoopbackIssuer,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    debug: bool,
) -> None:
    async def fail(*_: object) -> None:
        raise LookupError("a fault of ours")

    monkeypatch.setattr(KeySet, "find", fail)
    token = issuer.token()
    settings.DEBUG = debug
    with pytest.raises(LookupError) as raised:
        await outcome(issuer, token)
    reporter = ExceptionReporter(None, raised.type, raised.value, raised.tb)
    frames = reporter.get_traceback_frames()
    frames = [each for each in frames if "/mcp_app/" in each["filename"]]
    assert frames
    assert token.rpartition(".")[2] not in str(frames)
