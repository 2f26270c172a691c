"""Programs that prove themselves by a key of their own (RFC 7523, section 2.2)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from mcp_app.auth.token_cache import read_keys
from mcp_app.models import AccessToken, Change, IssuedToken, Server, UsedAssertion
from mcp_app.models.fields import digest
from tests.oauth.program import ORIGIN, Program
from tests.oauth.program_rows import assertion, form, program_row
from tests.published import published

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

REFUSED = {
    "error": "invalid_client",
    "error_description": (
        "The assertion is not accepted. The log of this site says why."
    ),
}


@pytest.fixture
def row(ana: User, support: Server) -> AccessToken:
    return program_row(user=ana, servers=[support])


def test_a_program_gets_a_key_for_an_assertion_once(
    program: Program, ana: User, support: Server
) -> None:
    row = program_row(user=ana, servers=[support], may="change")
    # However long the row lasts, a key has an hour.
    AccessToken.objects.move_end(row.pk, timezone.now() + timedelta(days=90))
    assert (row.prefix[:4], len(row.prefix)) == ("key_", 12)
    signed = assertion(row.prefix)
    answer = program.post(**form(signed)).json()
    key = answer.pop("access_token")
    assert answer == {
        "token_type": "Bearer",
        "expires_in": 3_600,
        "scope": "mcp:read mcp:change",
    }
    entry = read_keys([digest(key)])[digest(key)]
    assert (entry.pk, entry.is_app, entry.principal.client) == (
        *(row.pk, False),
        row.family,
    )
    for client_id in ("", row.prefix):
        again = program.post(**form(signed, client_id=client_id))
        assert (again.status_code, again.json()) == (401, REFUSED)
    assert IssuedToken.objects.count() == 1


def test_keys_lose_what_their_row_loses(program: Program, row: AccessToken) -> None:
    AccessToken.objects.move_end(row.pk, timezone.now() + timedelta(minutes=9))
    answer = program.post(**form(assertion(row.prefix))).json()
    name = digest(answer["access_token"])
    assert 530 < answer["expires_in"] <= 540
    assert read_keys([name])[name].refusal_at("support") is None
    AccessToken.objects.get(pk=row.pk).revoke()
    assert read_keys([name])[name].refusal_at("support") == (
        "This access token was revoked."
    )
    assert program.post(**form(assertion(row.prefix))).json() == REFUSED


def test_a_program_ends_one_of_its_keys(program: Program, row: AccessToken) -> None:
    answers = [program.post(**form(assertion(row.prefix))).json() for _ in range(2)]
    ended, other = (each["access_token"] for each in answers)
    rights = Change.objects.filter(kind="rights", ref=str(row.user_id))
    for client_id, names in (
        ("key_00000000", {digest(ended), digest(other)}),
        (row.prefix, {digest(other)}),
    ):
        written = rights.count()
        answer = program.post("revoke", client_id=client_id, token=ended)
        assert (answer.status_code, answer.json()) == (200, {})
        found = read_keys([digest(ended), digest(other)])
        assert found.keys() == names
        assert found[digest(other)].refusal_at("support") is None
        # The caches of all processes hear of it.
        assert rights.count() - written == (client_id == row.prefix)


def test_what_is_wrong_with_an_assertion_stands_in_the_log(
    program: Program,
    row: AccessToken,
    ana: User,
    support: Server,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = program_row("RS256", user=ana, servers=[support])
    ended.revoke()
    cases = [
        ("It is no JWT", "x"),
        ("No program has", assertion("key_00000000")),
        ("The signature of", assertion(row.prefix, key="two")),
        ("Its access token or", assertion(ended.prefix, algorithm="RS256")),
    ]
    for reason, sent in cases:
        caplog.clear()
        answer = program.post(**form(sent))
        assert (answer.status_code, answer.json()) == (401, REFUSED), reason
        [line] = [each.getMessage() for each in caplog.records if "refused" in each.msg]
        assert f"is refused: {reason}" in line
        assert sent not in caplog.text
    ana.is_active = False
    ana.save()
    assert program.post(**form(assertion(row.prefix))).json() == REFUSED
    assert not IssuedToken.objects.exists()
    assert not UsedAssertion.objects.exists()


def test_refused_assertions_may_come_again(program: Program, row: AccessToken) -> None:
    published(Server(slug="sales", access="token"))
    signed = assertion(row.prefix)
    right = form(signed)
    for changes, status, error in (
        ({"client_secret": "x"}, 400, "invalid_request"),
        ({"client_assertion_type": "x"}, 400, "invalid_request"),
        ({"client_id": "key_00000000"}, 401, "invalid_client"),
        ({"resource": f"{ORIGIN}/mcp/sales"}, 400, "invalid_target"),
        ({"resource": ""}, 400, "invalid_target"),
    ):
        refused = program.post(**{**right, **changes})
        assert (refused.status_code, refused.json()["error"]) == (status, error)
    both = program.http.post(
        "/mcp-oauth/token", right, headers={"authorization": "Basic eDp5"}
    )
    assert both.status_code == 400
    address = program.post(f"token?client_assertion={signed}", **right)
    assert (address.status_code, address.json()["error"]) == (400, "invalid_request")
    assert program.post(**right).status_code == 200


def test_keys_are_limited_by_the_minute(program: Program, row: AccessToken) -> None:
    signed = [assertion(row.prefix) for _ in range(33)]
    found = [program.post(**form(each)).status_code for each in signed]
    assert found == [200] * 32 + [429]
    assert UsedAssertion.objects.count() == 32
