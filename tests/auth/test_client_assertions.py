"""What programs sign to prove who they are: what is taken, and what is refused."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import jwt
import pytest
from django.db import transaction
from django.utils import timezone

from mcp_app.auth.client_assertions import read_assertion, verify_assertion
from mcp_app.auth.rights import expired_assertions
from mcp_app.interface.principal import AuthenticationFailed
from mcp_app.models import UsedAssertion
from tests.auth.issuers.loopback_issuer import public_jwk
from tests.oauth.program import ORIGIN
from tests.oauth.program_rows import assertion

ID = "key_9f2a01bc"
OTHER = "https://other.example.com"
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")


def test_what_is_taken() -> None:
    keys = [public_jwk(each) for each in ("RS256", "ES256", "EdDSA")]
    for algorithm in ALGORITHMS:
        for audience in (ORIGIN, f"{ORIGIN}/", [ORIGIN]):
            text = assertion(ID, algorithm=algorithm, aud=audience)
            found = read_assertion(text)
            alone = verify_assertion(found, [public_jwk(algorithm, alg=None)], ORIGIN)
            assert alone["jti"] == verify_assertion(found, keys, ORIGIN)["jti"]
    two = [public_jwk("ES256"), public_jwk("ES256", "two")]
    by_kid = read_assertion(assertion(ID, key="two", header={"kid": "ES256 two"}))
    assert verify_assertion(by_kid, two, ORIGIN)["iss"] == ID


def test_what_is_refused() -> None:
    now = int(time.time())

    def signed(**changes: Any) -> str:
        return assertion(ID, **changes)

    claims = {"iss": ID, "sub": ID}
    for reason, text in (
        ("It is no JWT", "x"),
        ("It is no JWT", "a.b.c"),
        ("It is no JWT", "W10.W10.c"),
        ("It is no JWT", signed(more="x" * 6_200)),
        ("Its alg is not", jwt.encode(claims, "x" * 32, "HS256")),
        ("Its alg is not", jwt.encode(claims, "", "none")),
        ("Its alg is not", signed(header={"crit": ["b64"]})),
        ("Its iss and sub", signed(iss=None)),
        ("Its iss and sub", signed(sub="key_00000000")),
        ("Its iss and sub", signed(iss=["x"], sub=["x"])),
        ("Its iss and sub", signed(iss="key_\0", sub="key_\0")),
        ("No key of the", signed(algorithm="RS256")),
        ("The signature of", signed(key="two")),
        ("The token has expired", signed(exp=now - 120)),
        ("The token is not valid yet", signed(iat=now + 300)),
        ("The token has no exp", signed(exp=None)),
        ("The token has no aud", signed(aud=None)),
        ("The exp of the token", signed(exp=str(now + 60))),
        ("Its exp is more", signed(exp=now + 700)),
        ("Its exp is more", signed(exp=now + 86_400)),
        ("Its aud is not", signed(aud=f"{ORIGIN}/mcp-oauth/token")),
        ("Its aud is not", signed(aud=[ORIGIN, OTHER])),
        ("Its jti is no", signed(jti=None)),
        ("Its jti is no", signed(jti="")),
        ("Its jti is no", signed(jti="j" * 201)),
        ("The token is not valid", signed(jti=["j"])),
    ):
        with pytest.raises(AuthenticationFailed) as refused:
            verify_assertion(read_assertion(text), [public_jwk("ES256")], ORIGIN)
        assert str(refused.value).startswith(reason), (reason, refused.value)
        assert text not in str(refused.value)


@pytest.mark.django_db
@pytest.mark.databases
def test_an_assertion_counts_once() -> None:
    until = timezone.now()

    def note_use(issuer: str = ID) -> bool:
        with transaction.atomic():
            return UsedAssertion.note_use(issuer, "a jti", until, "default")

    with transaction.atomic():
        assert note_use()
        transaction.set_rollback(True)
    # What was rolled back was not used; the transaction goes on after an answer.
    with transaction.atomic():
        assert [note_use(), note_use(), note_use("another")] == [True, False, True]
    assert not note_use()
    assert expired_assertions().remove() is None
    UsedAssertion.objects.update(expires=until - timedelta(hours=2))
    assert expired_assertions().remove() == 2
