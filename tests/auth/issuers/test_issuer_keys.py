"""Tests of `mcp_app/auth/issuers/issuer_keys.py`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcp_app.auth import issuer_keys
from mcp_app.interface.principal import AuthenticationFailed, AuthenticationUnavailable
from tests.auth.issuers.conftest import Clock
from tests.auth.issuers.loopback_issuer import (
    KEYS,
    OPENID,
    RFC_8414,
    LoopbackIssuer,
    public_jwk,
)
from tests.egress.peer import peer_on, settled


def test_the_latest_end_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = issuer_keys.KeyEnds()
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    for end in (1_100.0, 1_300.0, 1_200.0):
        ends.note_key_end("ana", end)
    ends.note_key_end("bert", 1_250.0)
    both = ("ana", "bert", "unheard of")
    for now, over, upcoming in (
        (1_249.9, set(), 1_250.0),
        (1_250.0, {"bert"}, 1_300.0),
        (1_300.0, {"ana", "bert"}, None),
    ):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert ends.ended_keys(both) == over
        found = ends.next_key_end(both)
        assert (None if found is None else found.timestamp()) == upcoming
    assert ends.ended_keys(["bert"]) == {"bert"}
    ends.note_key_end("ana", 1_400.0)
    assert ends.ended_keys(both) == {"bert"}


def test_old_ends_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = issuer_keys.KeyEnds()
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    ends.note_key_end("ana", 1_000.0)
    monkeypatch.setattr(time, "time", lambda: 1_000.0 + issuer_keys.RETENTION_S)
    assert ends.ended_keys(["ana"]) == {"ana"}
    monkeypatch.setattr(time, "time", lambda: 1_000.1 + issuer_keys.RETENTION_S)
    assert ends.ended_keys(["ana"]) == set()
    assert not ends._ends


def test_any_number_may_be_an_end() -> None:
    ends = issuer_keys.KeyEnds()
    ends.note_key_end("ana", 1e300)
    found = ends.next_key_end(["ana"])
    assert found is not None
    assert found.timestamp() == issuer_keys.LATEST


# -- key sets --------------------------------------------------------------------------


ONE = "ES256 one"
TWO = "ES256 two"


async def outcome(
    keys: issuer_keys.KeySet, kid: str | None = ONE, algorithm: str = "ES256"
) -> str:
    try:
        return str((await keys.find(kid, algorithm)).algorithm_name)
    except AuthenticationFailed:
        return "wrong"
    except AuthenticationUnavailable:
        return "away"


def fetches(issuer: LoopbackIssuer) -> int:
    """Return how often the key set was asked for since the last time."""
    times = issuer.requests.count(KEYS)
    issuer.requests.clear()
    return times


# -- where they are -------------------------------------------------------------------


def test_where_metadata_may_be() -> None:
    for host, path in (
        ("id.example.com", ""),
        ("id.example.com:8443", "/realms/staff"),
    ):
        for slash in ("", "/"):
            found = [*issuer_keys.metadata_addresses(f"https://{host}{path}{slash}")]
            assert found == [
                f"https://{host}/.well-known/oauth-authorization-server{path}",
                f"https://{host}{path}/.well-known/openid-configuration",
            ]


async def test_metadata_of_oauth_come_before_openid_s(
    issuer: LoopbackIssuer,
) -> None:
    assert await outcome(issuer_keys.KeySet(issuer.options())) == "ES256"
    assert issuer.requests == [RFC_8414, OPENID, KEYS]
    issuer.documents[RFC_8414] = issuer.metadata()
    issuer.requests.clear()
    assert await outcome(issuer_keys.KeySet(issuer.options())) == "ES256"
    assert issuer.requests == [RFC_8414, KEYS]


async def test_a_named_key_set_needs_no_metadata(issuer: LoopbackIssuer) -> None:
    issuer.documents.pop(OPENID)
    keys = issuer_keys.KeySet(issuer.options(jwks=f"{issuer.origin}{KEYS}?policy=a"))
    issuer.documents[f"{KEYS}?policy=a"] = {"keys": [public_jwk("ES256")]}
    assert await outcome(keys) == "ES256"
    assert issuer.requests == [f"{KEYS}?policy=a"]


Break = Callable[[LoopbackIssuer], dict[str, Any]]

WRONG: dict[str, tuple[Break, str]] = {
    "another issuer": (
        lambda each: {OPENID: each.metadata(issuer="https://evil.example")},
        "is of another issuer: 'https://evil.example'",
    ),
    "a slash more": (
        lambda each: {OPENID: each.metadata(issuer=f"{each.url}/")},
        "is of another issuer",
    ),
    "no key set": (lambda each: {OPENID: {"issuer": each.url}}, 'names no "jwks_uri"'),
    "a key set that is no text": (
        lambda each: {OPENID: each.metadata(jwks_uri=7)},
        'names no "jwks_uri"',
    ),
    "no JSON": (lambda _: {OPENID: b"<html>"}, "has no JSON object"),
    "a list": (lambda _: {OPENID: []}, "has no JSON object"),
    "an error": (lambda _: {OPENID: 500}, "answered with the status 500"),
    "a redirect": (lambda _: {OPENID: 302}, "answered with the status 302"),
    "large metadata": (
        lambda each: {OPENID: each.metadata(more="x" * 17_000)},
        "larger than 16,384 bytes",
    ),
    "a large key set": (
        lambda _: {KEYS: {"keys": [], "more": "x" * issuer_keys.MAX_KEY_SET_BYTES}},
        "larger than 262,144 bytes",
    ),
    "no keys": (lambda _: {KEYS: {"keys": []}}, "has no key that signs by"),
    "keys that are no list": (lambda _: {KEYS: {"keys": 7}}, "has no key that signs"),
    "a shared secret": (
        lambda _: {KEYS: {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": ONE}]}},
        "has no key that signs by",
    ),
    "a set in a private network": (
        lambda each: {OPENID: each.metadata(jwks_uri="https://10.0.0.7/keys")},
        "is not public",
    ),
    "a set by http": (
        lambda each: {OPENID: each.metadata(jwks_uri="http://id.example.com/keys")},
        "which is for loopback alone",
    ),
    "a set that is a file": (
        lambda each: {OPENID: each.metadata(jwks_uri="file:///etc/passwd")},
        'needs "url", an address',
    ),
}


@pytest.mark.parametrize("case", WRONG)
async def test_what_cannot_be_read_is_an_outage_that_the_log_explains(
    issuer: LoopbackIssuer, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    changes, said = WRONG[case]
    issuer.documents.update(changes(issuer))
    with caplog.at_level(logging.WARNING):
        assert await outcome(issuer_keys.KeySet(issuer.options())) == "away"
    (message,) = (each.getMessage() for each in caplog.records)
    assert message.startswith("The keys of the issuer 'keycloak' cannot be read: ")
    assert said in message


async def test_nothing_is_fetched_from_other_networks(
    issuer: LoopbackIssuer,
) -> None:
    async with peer_on("::1") as canary:
        named = f"http://[::1]:{canary.port}/keys"
        issuer.documents[OPENID] = issuer.metadata(jwks_uri=named)
        assert await outcome(issuer_keys.KeySet(issuer.options())) == "away"
        assert canary.connections == 0


async def test_an_issuer_that_never_answers_is_given_up(
    issuer: LoopbackIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    async def say_nothing(_: object, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with peer_on() as peer:
        peer.send = say_nothing
        jwks = f"http://127.0.0.1:{peer.port}/keys"
        assert (
            await outcome(issuer_keys.KeySet(issuer.options(jwks=jwks, timeout=0.05)))
            == "away"
        )
        await settled()
    assert "cannot be read: " in caplog.text


# -- which one ------------------------------------------------------------------------


async def test_a_key_is_for_its_algorithm_and_its_use(issuer: LoopbackIssuer) -> None:
    table: list[tuple[list[dict[str, Any]], str | None, str, str]] = [
        ([public_jwk("ES256")], ONE, "ES256", "ES256"),
        ([public_jwk("ES256")], None, "ES256", "ES256"),
        ([public_jwk("ES256", use=None)], ONE, "ES256", "ES256"),
        ([public_jwk("ES256", alg="ES256")], ONE, "ES256", "ES256"),
        ([public_jwk("EdDSA")], "EdDSA one", "EdDSA", "EdDSA"),
        ([public_jwk("RS256")], "RS256 one", "PS256", "PS256"),
        ([public_jwk("RS256", alg="RS256")], "RS256 one", "PS256", "wrong"),
        ([public_jwk("ES256")], ONE, "RS256", "wrong"),
        ([public_jwk("ES256")], TWO, "ES256", "wrong"),
        ([public_jwk("ES256", use="enc"), public_jwk("EdDSA")], ONE, "ES256", "wrong"),
        ([public_jwk("ES256", crv="P-384"), public_jwk("EdDSA")], ONE, "ES256",
         "wrong"),
        ([public_jwk("ES256", x="AA")], ONE, "ES256", "wrong"),
        ([public_jwk("ES256"), public_jwk("ES256", "two")], None, "ES256", "wrong"),
        ([public_jwk("ES256"), public_jwk("EdDSA")], None, "ES256", "ES256"),
        ([public_jwk("ES256"), public_jwk("ES256", "two", kid=ONE)], ONE, "ES256",
         "wrong")
    ]  # fmt: skip
    for served, kid, algorithm, found in table:
        issuer.serve_keys(*served)
        keys = issuer_keys.KeySet(issuer.options(jwks=f"{issuer.origin}{KEYS}"))
        assert await outcome(keys, kid, algorithm) == found, (served, kid, algorithm)


# -- how long -------------------------------------------------------------------------


async def test_a_set_is_read_every_hour(issuer: LoopbackIssuer, clock: Clock) -> None:
    keys = issuer_keys.KeySet(issuer.options())
    for passed, times in ((0, 1), (1, 0), (issuer_keys.FRESH_S - 2, 0), (1, 1), (1, 0)):
        clock.now += passed
        assert await outcome(keys) == "ES256"
        assert fetches(issuer) == times


async def test_a_lost_key_signs_no_more(issuer: LoopbackIssuer, clock: Clock) -> None:
    keys = issuer_keys.KeySet(issuer.options())
    assert await outcome(keys) == "ES256"
    issuer.serve_keys(public_jwk("ES256", "two"))
    clock.now += issuer_keys.FRESH_S
    assert await outcome(keys) == "wrong"
    assert await outcome(keys, TWO) == "ES256"


async def test_unknown_keys_once_a_minute(issuer: LoopbackIssuer, clock: Clock) -> None:
    keys = issuer_keys.KeySet(issuer.options())
    assert await outcome(keys) == "ES256"
    issuer.serve_keys(public_jwk("ES256", "two"))
    fetches(issuer)
    for passed, found, times in (
        (0, "wrong", 0),
        (issuer_keys.AGAIN_S - 1, "wrong", 0),
        (1, "ES256", 1),
        (1, "ES256", 0),
    ):
        clock.now += passed
        assert await outcome(keys, TWO) == found
        assert fetches(issuer) == times


async def test_unknown_keys_are_forgotten(issuer: LoopbackIssuer, clock: Clock) -> None:
    keys = issuer_keys.KeySet(issuer.options())
    for kid in (ONE, *(f"key {number}" for number in range(20))):
        await outcome(keys, kid)
    assert list(keys._built_keys) == [(ONE, "ES256")]


async def test_callers_at_the_same_time_share_one_fetch(issuer: LoopbackIssuer) -> None:
    keys = issuer_keys.KeySet(issuer.options())
    asked = [asyncio.create_task(outcome(keys)) for _ in range(20)]
    await asyncio.sleep(0)
    # Whoever asked first may go.
    asked[0].cancel()
    assert await asyncio.gather(*asked[1:]) == ["ES256"] * 19
    assert fetches(issuer) == 1


async def test_known_keys_are_good_a_day(issuer: LoopbackIssuer, clock: Clock) -> None:
    keys = issuer_keys.KeySet(issuer.options())
    assert await outcome(keys) == "ES256"
    issuer.stop()
    for passed, known, unknown in (
        (issuer_keys.FRESH_S, "ES256", "away"),
        (1, "ES256", "away"),
        (issuer_keys.GOOD_S - issuer_keys.FRESH_S - 2, "ES256", "away"),
        (1, "away", "away"),
    ):
        clock.now += passed
        assert await outcome(keys) == known
        assert await outcome(keys, TWO) == unknown
    issuer.start()
    assert await outcome(keys) == "away"
    clock.now += issuer_keys.AWAY_S
    assert await outcome(keys) == "ES256"
    assert await outcome(keys, TWO) == "wrong"


async def test_known_keys_need_no_fetch(issuer: LoopbackIssuer, clock: Clock) -> None:
    keys = issuer_keys.KeySet(issuer.options(jwks=f"{issuer.origin}{KEYS}"))
    assert await outcome(keys) == "ES256"
    issuer.stop()
    clock.now += issuer_keys.FRESH_S
    assert await outcome(keys) == "ES256"
    issuer.start()
    clock.now += issuer_keys.AGAIN_S
    fetches(issuer)
    # The answer is there before the set is asked for, and the set is read all the same.
    assert await outcome(keys) == "ES256"
    assert fetches(issuer) == 0
    await settled()
    assert fetches(issuer) == 1
    issuer.stop()
    assert await outcome(keys) == "ES256"


async def test_a_lost_issuer_asked_again(issuer: LoopbackIssuer, clock: Clock) -> None:
    issuer.stop()
    keys = issuer_keys.KeySet(issuer.options())
    assert await outcome(keys) == "away"
    issuer.start()
    for passed, found in ((issuer_keys.AWAY_S - 1, "away"), (1, "ES256")):
        clock.now += passed
        assert await outcome(keys) == found
