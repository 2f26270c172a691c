"""Rows of programs with a key: what is pasted, refused and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from mcp_app.models import AccessToken
from tests.account.conftest import account, filled
from tests.account.test_secrets import Open, heard, opened, rows
from tests.auth.issuers.loopback_issuer import private_key, public_jwk
from tests.oauth.program import ORIGIN, WAYS
from tests.oauth.program_rows import pem

__all__ = ["heard", "opened"]

pytestmark = pytest.mark.django_db

RULE = "This must be a public key, as PEM or JWK: of RSA with 2,048 to 8,192 bits"


@pytest.fixture(autouse=True)
def site(settings: Any) -> None:
    settings.MCP = {**settings.MCP, "PUBLIC_URL": ORIGIN, "AUTHENTICATION": WAYS}


@pytest.mark.parametrize("place", ["account", "admin"])
def test_a_private_key_is_kept_nowhere(
    opened: Open, heard: Callable[[], str], place: str
) -> None:
    client, url, _ = opened(place)
    whole = public_jwk("ES256", d="a0canary0of0a0key")
    private = pem(private_key("EdDSA"), private=True)
    for pasted, canary in (
        (private, private.split("\n")[1]),
        (json.dumps({"keys": [whole]}), whole["d"]),
        (private + "\0", private.split("\n")[1]),
    ):
        page = client.post(url, filled(client, url, public_key=pasted, name=""))
        text = page.content.decode()
        assert "\0" in pasted or "This is a private key, which must not" in text
        assert canary not in text + rows() + heard()
    assert not AccessToken.objects.exists()


def test_what_else_is_refused(hers: Client, tmp_path: Any) -> None:
    one, certificate = pem(private_key("RS256")), "-----BEGIN CERTIFICATE-----"
    for pasted, sentence in (
        (pem(private_key("RS256", "short")), RULE),
        (pem(ec.generate_private_key(ec.SECP521R1())), RULE),
        (json.dumps({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}), RULE),
        ("ssh-ed25519 AAAA", RULE),
        (certificate, "This is a certificate."),
        (one + one, "These are several keys."),
        (one + "x" * 1_048_576, "This has more than 16 KiB."),
    ):
        sent = filled(hers, account("add"), public_key=pasted)
        assert sentence in hers.post(account("add"), sent).content.decode()
        file = tmp_path / "key"
        file.write_text(pasted)
        with pytest.raises(CommandError, match=sentence):
            call_command("mcp_token", "new", "ana", "x", "--public-key", str(file))
    assert not AccessToken.objects.exists()


def test_what_is_shown_of_it(hers: Client, ana: User) -> None:
    sent = filled(hers, account("add"), public_key=pem(private_key("ES256")))
    page = hers.post(account("add"), sent).content.decode()
    row = AccessToken.objects.get()
    expected = {name: public_jwk("ES256")[name] for name in ("kty", "crv", "x", "y")}
    assert json.loads(row.public_key) == expected
    assert row.prefix in page
    assert f"<code>{ORIGIN}</code>" in page
    assert 'id="mcp-token"' not in page
    for url in (account("tokens"), account("token", row.pk)):
        later = hers.get(url).content.decode()
        assert f"<code>{row.prefix}</code>" in later
        assert account("replace", row.pk) not in later
    assert row.prefix in str(row)
