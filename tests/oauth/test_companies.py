"""Companies that let programs in: `mcp_app/auth/companies.py`."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any, Final
from uuid import uuid4

import jwt
import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.db import connection as database
from django.test import Client
from django.utils import timezone

from mcp_app.account.connected_apps import end_connected_apps, narrow_to_reading
from mcp_app.account.token_issuance import forget_token
from mcp_app.auth import rights
from mcp_app.auth.token_cache import _families, read_keys
from mcp_app.models import AccessToken, Connection, IssuedToken, Server, UsedAssertion
from mcp_app.models.fields import digest
from mcp_app.oauth import endpoints
from mcp_app.process.rates import MinuteLimit
from mcp_app.protocol.oauth.requests import JWT_BEARER
from tests.auth.issuers.loopback_issuer import LoopbackIssuer, encoded, loopback_issuer
from tests.oauth.program import ORIGIN, RESOURCE, Program
from tests.published import published

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

SECRET: Final = "a secret of claude's"
BOTH: Final = "mcp:read mcp:change"
ENDED: Final = "This connection was ended at the site."
LONG_AGO: Final = datetime(2020, 1, 1, tzinfo=UTC)
CLIENTS: Final = {"claude": {"secret": SECRET}, "open": {"proof": "none"}}
PROFILE: Final = "urn:ietf:params:oauth:grant-profile:id-jag"


@dataclass
class Acme:
    """A company in the settings, and the program "claude", which shows ID-JAGs."""

    issuer: LoopbackIssuer
    program: Program
    settings: Any

    def enter(self, **changes: Any) -> None:
        usual = {"path": None, "title": "Acme", "clients": CLIENTS, "may": "change"}
        entries = {"acme": self.issuer.entry(**{**usual, **changes})}
        self.settings.MCP = {**self.settings.MCP, "OAUTH": {"issuers": entries}}

    def send(self, assertion: str, **changes: str) -> Any:
        form = {"client_secret": SECRET, "resource": RESOURCE, **changes}
        return self.program.post(grant_type=JWT_BEARER, assertion=assertion, **form)

    def told(self, assertion: str = "", **changes: str) -> str:
        """Return the error or the scope of an answer."""
        answer = self.send(assertion or self.issuer.id_jag(), **changes).json()
        return str(answer.get("error") or answer["scope"])

    def metadata(self) -> Any:
        return self.program.http.get("/.well-known/oauth-authorization-server").json()


@pytest.fixture
def acme(
    program: Program, support: Server, ana: User, settings: Any, monkeypatch: Any
) -> Iterator[Acme]:
    monkeypatch.setattr(endpoints, "wrong_proofs", MinuteLimit(60))
    program.client_id = "claude"
    with loopback_issuer() as issuer:
        made = Acme(issuer, program, settings)
        made.enter()
        yield made


def app() -> AccessToken:
    return AccessToken.objects.select_related("connection").get()


def test_a_company_lets_a_program_in(acme: Acme, ana: User) -> None:
    answer = acme.send(acme.issuer.id_jag()).json()
    key = answer.pop("access_token")
    assert answer == {"token_type": "Bearer", "expires_in": 3_600, "scope": BOTH}
    row = app()
    assert (row.user, row.name, row.connection.issuer) == (ana, "claude (Acme)", "acme")
    assert row.expires
    assert row.expires > timezone.now() + timedelta(days=29)
    entry = read_keys([digest(key)])[digest(key)]
    assert (entry.is_app, entry.principal.scope) == (True, None)
    assert [*(entry.servers or ())] == ["support"]
    logged = LogEntry.objects.get().change_message
    assert logged == "Let “claude (Acme)” in by acme (change)."
    assert acme.told(acme.issuer.id_jag(scope="mcp:read")) == "mcp:read"
    assert app() == row
    browser = Client()
    browser.force_login(ana)
    page = browser.get(f"/account/tokens/apps/{row.pk}/").content.decode()
    assert "let in by acme<br>This company let it in, not you." in page


def test_a_key_may_the_least_of_all(acme: Acme) -> None:
    for claimed, asked, may, granted in (
        (None, "", "change", "mcp:read"),
        (BOTH, "mcp:read openid", "change", "mcp:read"),
        (BOTH, "mcp:change", "change", "mcp:change"),
        (BOTH, BOTH, "read", "mcp:read"),
        ("mcp:read", "mcp:change", "change", "invalid_scope"),
        (BOTH, "openid", "change", "invalid_scope"),
        ("mcp:change", "", "read", "invalid_scope"),
        ("", "", "change", "invalid_scope"),
    ):
        acme.enter(may=may)
        found = acme.told(acme.issuer.id_jag(scope=claimed), scope=asked)
        assert found == granted, (claimed, asked, may)


def test_what_is_wrong_is_refused_and_burns_nothing(
    acme: Acme, caplog: pytest.LogCaptureFixture
) -> None:
    published(Server(slug="sales", access="oauth"))
    published(Server(slug="closed", access="token"))
    now, keep, typ = int(time.time()), {"jti": str(uuid4())}, "oauth-id-jag+jwt"
    claims: list[dict[str, Any]] = [
        *(
            {"aud": each}
            for each in (None, f"{ORIGIN}//", [ORIGIN, "https://x.example"])
        ),
        *({"exp": each} for each in (None, now + 700, now - 100, "9", float("nan"))),
        *({"iat": each} for each in (None, str(now), now + 300)),
        *({"sub": each} for each in (None, "", ["ana"], "nobody", "ANA")),
        *({"jti": each} for each in (None, "", ["x"], "x" * 201)),
        *({"client_id": each} for each in (None, "open", ["claude"])),
        *({"header": {"typ": each}} for each in (None, "JWT", "at+jwt", "ID-JAG")),
        {"header": {"kid": "another"}},
        {"header": {"crit": ["exp"]}},
        {"iss": f"{acme.issuer.url}/"},
        {"nbf": now + 300},
        {"scope": ["mcp:read"]},
        {"more": "x" * 8_192},
        {"name": "two", "header": {"kid": "ES256 one"}},
    ]
    head, body, _ = acme.issuer.id_jag(**keep).split(".")
    plain = json.loads(base64.urlsafe_b64decode(body + "=="))
    shared = jwt.encode(plain, "x" * 32, "HS256", headers={"typ": typ})
    unsigned = f"{encoded({'alg': 'none', 'typ': typ})}.{body}."
    deep = encoded(b'{"iss":' + b"[" * 2_000 + b"]" * 2_000 + b"}")
    broken = [shared, unsigned, f"{head}.{body}.", f"{head}.{deep}.x", "x", "a.b.c"]
    grants = [acme.issuer.id_jag(**{**keep, **each}) for each in claims] + broken
    places = (None, [RESOURCE], f"{ORIGIN}/mcp/none", f"{ORIGIN}/mcp/closed", "x")
    targets = [acme.issuer.id_jag(**keep, resource=each) for each in places]
    with caplog.at_level(logging.WARNING, "mcp_app"):
        for assertion in grants:
            assert acme.told(assertion) == "invalid_grant", assertion
        for assertion in targets:
            assert acme.told(assertion, resource="") == "invalid_target", assertion
    assert "eyJ" not in caplog.text
    good = acme.issuer.id_jag(**keep)
    for changes, error in (
        ({"client_secret": "another secret"}, "invalid_client"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_id": "open", "client_secret": ""}, "invalid_grant"),
        ({"resource": f"{ORIGIN}/mcp/sales"}, "invalid_target"),
        ({"resource": "https://evil.example"}, "invalid_target"),
        ({"scope": "openid"}, "invalid_scope"),
    ):
        assert acme.told(good, **changes) == error, changes
    assert not AccessToken.objects.exists()
    assert not UsedAssertion.objects.exists()
    assert acme.told(good, resource="") == BOTH
    assert acme.told(good) == "invalid_grant"
    assert acme.told(acme.issuer.id_jag(aud=[f"{ORIGIN}/"])) == BOTH


def test_wrong_proofs_are_counted_and_lock_nobody_out(acme: Acme) -> None:
    found = [acme.send("x", client_secret="wrong").status_code for _ in range(61)]
    assert found == [401] * 60 + [429]
    assert acme.told() == BOTH
    assertion = acme.issuer.id_jag(client_id="open")
    assert acme.told(assertion, client_id="open", client_secret="") == BOTH


def test_an_issuer_that_is_away_is_no_refusal(acme: Acme) -> None:
    acme.issuer.stop()
    away = acme.send(acme.issuer.id_jag())
    assert (away.status_code, away.json()["error"]) == (503, "temporarily_unavailable")


STEPS: Final[dict[str, Callable[[], object]]] = {
    "owner": lambda: end_connected_apps(app().user, [app()]),
    "staff": lambda: end_connected_apps(User.objects.create_user(uuid4().hex), [app()]),
    "forget": lambda: forget_token(app().user, app()),
    "narrow": lambda: narrow_to_reading(app().user, app()),
    "tag": lambda: AccessToken.objects.update(tags="orders"),
    "until": lambda: Connection.objects.update(until=LONG_AGO),
    "idle": lambda: AccessToken.objects.move_end(app().pk, LONG_AGO),
    "inactive": lambda: User.objects.update(is_active=False),
}
"""What may happen to the one app."""


def test_what_people_ended_or_narrowed_stays_so(acme: Acme) -> None:
    for words, found, stays in (
        ("owner", ENDED, True),
        ("staff", ENDED, True),
        ("until idle", ENDED, True),
        ("until program", ENDED, True),
        ("program owner", ENDED, True),
        ("narrow", "mcp:read", True),
        ("narrow program", "mcp:read", True),
        ("narrow idle", "mcp:read", True),
        ("tag idle", BOTH, True),
        ("narrow owner forget", BOTH, False),
        ("program", BOTH, False),
        ("idle", BOTH, False),
        ("inactive", "invalid_grant", False),
    ):
        User.objects.update(is_active=True)
        AccessToken.objects.all().delete()
        key = acme.send(acme.issuer.id_jag()).json()["access_token"]
        family = app().family
        for word in words.split():
            if word == "program":
                acme.program.post("revoke", token=key)
            else:
                STEPS[word]()
        answer = acme.send(acme.issuer.id_jag()).json()
        assert found in answer.values(), words
        if "scope" in answer and words.endswith(("program", "idle", "forget")):
            # What it had before opens nothing any more.
            assert app().family != family
            assert not read_keys([digest(key)])
            assert app().tags == ("orders" if "tag" in words else "")
        # What people said outlives the list of ended apps.
        STEPS["idle"]()
        for each in rights.expired_apps():
            each.remove()
        assert AccessToken.objects.exists() is stays, words


def test_what_a_program_has_open_ends_with_its_last_key(acme: Acme) -> None:
    """Nobody hears that a company lets somebody in no more."""
    assert acme.told() == BOTH
    row, key_of = app(), IssuedToken.objects.latest
    assert _families([row.family])[row.family].ends == key_of("pk").expires
    for told, ended in (("", True), (BOTH, False)):
        IssuedToken.objects.update(expires=LONG_AGO)
        assert not told or acme.told() == told
        assert _families([row.family])[row.family].live is not ended
    # The app itself stays, so that its person can narrow and end it.
    assert not app().has_ended(timezone.now())
    assert app().family == row.family


def test_an_entry_that_changes_holds_at_once(acme: Acme) -> None:
    assert acme.told() == BOTH
    for changes, found in (
        ({"may": "read"}, "mcp:read"),
        ({"servers": ["sales"]}, "invalid_target"),
        ({"clients": {"another": {"secret": SECRET}}}, "invalid_client"),
        ({"issuer": "https://other.example"}, "invalid_grant"),
    ):
        acme.enter(**changes)
        assert acme.told() == found


def find_by_mail(claims: dict[str, Any]) -> Any:
    """Find a user as a site does it: Django's own e-mail column is not unique."""
    return User.objects.filter(username="ana", is_active=True).first()


def test_an_issuer_speaks_for_its_domains_alone(acme: Acme) -> None:
    for domains, email, verified, found in (
        (["ACME.example"], "ana@acme.example", None, BOTH),
        (["acme.example"], "Ana@Acme.EXAMPLE", None, BOTH),
        (["acme.example"], "ana@acme.example", False, "invalid_grant"),
        (["acme.example"], "ana@other.example", True, "invalid_grant"),
        (["acme.example"], "ana@acme.example.other.example", True, "invalid_grant"),
        (["acme.example"], "ana@\u0430cme.example", True, "invalid_grant"),
        (["acme.example"], ["ana@acme.example"], True, "invalid_grant"),
        (["acme.example"], None, None, "invalid_grant"),
        (None, "ana@acme.example", None, "invalid_grant"),
        (None, "ana@acme.example", True, BOTH),
    ):
        user = {"claim": "email", "field": None, "user": f"{__name__}.find_by_mail"}
        acme.enter(**user, domains=domains)
        assertion = acme.issuer.id_jag(email=email, email_verified=verified)
        assert acme.told(assertion) == found, (domains, email, verified)
    unnamed = acme.issuer.id_jag(sub="", email=email, email_verified=True)
    assert acme.told(unnamed) == "invalid_grant"


@pytest.mark.django_db(transaction=True)
def test_one_assertion_is_one_key_and_many_are_of_one_row(acme: Acme) -> None:
    found: list[str] = []

    def show_assertion(assertion: str) -> None:
        found.append(acme.told(assertion))
        database.close()

    def show_together(assertions: list[str]) -> None:
        threads = [Thread(target=show_assertion, args=[each]) for each in assertions]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    show_together([acme.issuer.id_jag() for _ in range(8)])
    assert found == [BOTH] * 8
    assert app().issued.count() == 8
    show_together([acme.issuer.id_jag()] * 8)
    assert sorted(found[8:]) == ["invalid_grant"] * 7 + [BOTH]
    assert (app().issued.count(), UsedAssertion.objects.count()) == (9, 9)


def test_a_wrong_entry_is_off_alone_and_shows_no_secret(acme: Acme) -> None:
    good, mixed = acme.issuer.entry(path=None, clients=CLIENTS), {"proof": "none"}
    for changes, said in (
        ({"clients": {}}, 'needs "clients"'),
        ({"clients": {"claude": {}}}, 'needs "clients"'),
        ({"clients": {"a b": {"secret": SECRET}}}, 'needs "clients"'),
        ({"title": "Acme\n"}, 'has the "title"'),
        ({"clients": {"claude": {"secret": "s" * 15}}}, 'needs "clients"'),
        ({"clients": {"claude": {"secret": "s" * 16, **mixed}}}, 'needs "clients"'),
        ({"may": "write"}, "has the \"may\" 'write'"),
        ({"domains": ["a.example"]}, 'has "domains", which need'),
        ({"claim": "email", "domains": []}, 'has "domains" without any'),
        ({"field": "email"}, "has the \"field\" 'email', which several"),
        ({"clamp": 1}, "has no option 'clamp'"),
        ({"servers": ["sales"]}, 'has the "issuer" and a client of'),
    ):
        entries = {"acme": good, "wrong": {**good, **changes}}
        acme.settings.MCP = {**acme.settings.MCP, "OAUTH": {"issuers": entries}}
        [error] = [each for each in run_checks() if each.id == "mcp_app.E031"]
        assert f"['wrong'] {said}" in error.msg.replace('["issuers"]', "")
        assert "sss" not in error.msg
        assert acme.told() == "mcp:read"
    assert acme.metadata()["authorization_grant_profiles_supported"] == [PROFILE]
    assert JWT_BEARER in acme.metadata()["grant_types_supported"]
    acme.settings.MCP = {**acme.settings.MCP, "OAUTH": {"issuers": [good]}}
    assert SECRET not in str(run_checks())
    acme.settings.MCP = {**acme.settings.MCP, "OAUTH": {}}
    assert PROFILE not in str(acme.metadata())
    assert JWT_BEARER not in acme.metadata()["grant_types_supported"]
    assert acme.told() == "unsupported_grant_type"
