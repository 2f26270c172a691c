"""How a token stands, where it is good, and what a person gives to a client."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import RequestFactory
from django.utils import timezone

from mcp_app.account.client_configs import CLIENTS
from mcp_app.account.presentation import (
    MAX_ADDRESSES,
    MAX_REASONS,
    Contact,
    begins_of,
    counts_of_text,
    counts_text,
    end_or_reason,
    first_contact,
    last_use_of,
    own_token,
    refusal_counts,
    reveal_token,
    servers_of,
    token_state,
)
from mcp_app.audit.turned_away import Reason
from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.models import AccessToken, Server
from mcp_app.models.tokens import Secret
from mcp_app.models.workers import Report
from mcp_app.site_time import time_html
from tests.account.conftest import Make
from tests.admin.operations.test_live import session
from tests.published import published

DAY = timedelta(days=1)
TOKEN = Secret("mcp_secret")


def row(*, active: bool = True, **columns: Any) -> AccessToken:
    given = {"name": "laptop", "prefix": "mcp_abc", "everywhere": True, **columns}
    return AccessToken(user=User(username="ana", is_active=active), **given)


@pytest.mark.parametrize(
    ("revoked", "expires", "active", "word"),
    [
        (None, None, True, "Good"),
        (None, DAY, True, "Good"),
        (None, -DAY, True, "Expired"),
        (None, None, False, "Stopped"),
        (None, DAY, False, "Stopped"),
        # What cannot be undone is said first.
        (None, -DAY, False, "Expired"),
        (-DAY, None, True, "Revoked"),
        (-DAY, -DAY, False, "Revoked"),
        (-DAY, DAY, True, "Revoked"),
    ],
)
def test_how_a_token_stands(
    revoked: timedelta | None, expires: timedelta | None, active: bool, word: str
) -> None:
    now = timezone.now()
    made = row(
        active=active,
        revoked=None if revoked is None else now + revoked,
        expires=None if expires is None else now + expires,
    )
    state = token_state(made)
    assert state.word == word
    assert state.has_ended is (word in {"Revoked", "Expired"})
    assert (state.look == "good") is (word == "Good")
    if word != "Good":
        assert end_or_reason(made) == state.sentence


def test_it_ends_at_the_moment_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    assert token_state(row(expires=now)).word == "Expired"
    assert token_state(row(expires=now + timedelta(microseconds=1))).word == "Good"


def test_when_it_ends_and_was_used() -> None:
    assert (end_or_reason(row()), last_use_of(row())) == ("never", "never")
    soon = timezone.now() + DAY
    assert end_or_reason(row(expires=soon)) == time_html(soon)
    assert last_use_of(row(used=soon)) == time_html(soon)


def test_the_beginning_is_no_markup() -> None:
    assert begins_of(row(prefix="<b>")) == "<code>&lt;b&gt;…</code>"


# -- servers -----------------------------------------------------------------------


def server(slug: str, **columns: Any) -> Server:
    return published(Server(slug=slug, **{"access": "token", **columns}))


@pytest.fixture
def default() -> Server:
    row = Server.objects.get()
    row.access = "token"
    row.save()
    return published(row)


def good_at(*servers: Server) -> AccessToken:
    made = row(everywhere=False, digest="d")
    made.user.save()
    made.user_id = made.user.pk
    made.save()
    made.servers.set(servers)
    return made


@pytest.mark.django_db
def test_where_a_token_is_good() -> None:
    assert servers_of(row()) == "all"
    shop = server("shop", title="Shop")
    made = good_at(shop)
    assert servers_of(made) == "Shop"
    shop.delete()
    # It is not good everywhere all at once.
    assert servers_of(made) == "none: its servers were deleted"


def told(made: AccessToken) -> dict[str, Any]:
    request = RequestFactory().get("/", headers={"host": "testserver"})
    return reveal_token(request, made, TOKEN)


@pytest.mark.django_db
def test_the_default_server_is_told_of_first(default: Server) -> None:
    server("a")
    page = told(row())
    assert page["url"] == "http://testserver/mcp"
    assert page["others"] == ["http://testserver/mcp/a"]
    assert page["header"] == "Authorization: Bearer mcp_secret"
    assert not page["is_public"]
    assert [each["key"] for each in page["files"]] == [*CLIENTS]
    without = {each["key"] for each in page["files"] if TOKEN not in each["text"]}
    assert without == {"claude", "chatgpt", "vscode"}
    noted = {each["key"] for each in page["files"] if each["note"]}
    assert noted == {"claude", "chatgpt"}


@pytest.mark.django_db
def test_only_servers_where_it_is_good(default: Server) -> None:
    page = told(good_at(server("shop", access="public")))
    assert (page["url"], page["others"]) == ("http://testserver/mcp/shop", [])
    assert page["is_public"]
    assert "shop" in page["line"]


@pytest.mark.django_db
def test_without_a_server_the_default_address_is_told() -> None:
    Server.objects.all().delete()
    page = told(row())
    assert (page["url"], page["others"]) == ("http://testserver/mcp", [])
    assert not page["is_public"]


@pytest.mark.django_db
def test_addresses_are_limited(default: Server) -> None:
    for number in range(MAX_ADDRESSES + 1):
        server(f"s{number}")
    assert len(told(row())["others"]) == MAX_ADDRESSES


# -- first contact ---------------------------------------------------------------------


NOON: Final = datetime(2026, 11, 26, 12, tzinfo=UTC)
NOON_MS: Final = int(NOON.timestamp()) * 1_000
HOUR_MS: Final = 3_600_000


def report(*refused: tuple[int, str, str, int]) -> Report:
    return Report(refused=refused)


def test_refusals_of_all_processes_since_the_hour_began() -> None:
    reports = [
        report((NOON_MS, "nobody", "a", 2), (NOON_MS - HOUR_MS, "nobody", "a", 9)),
        report((NOON_MS, "nobody", "b", 1), (NOON_MS + HOUR_MS, "host", "", 4)),
        Report(),
    ]
    for minutes in (0, 59):
        since = NOON + timedelta(minutes=minutes)
        assert refusal_counts(reports, since) == {"nobody": 3, "host": 4}
    assert refusal_counts(reports, NOON + timedelta(hours=1)) == {"host": 4}


def test_counts_are_read_as_they_were_written() -> None:
    for counts in ({}, {"host": 1}, dict.fromkeys(map(str, Reason), 12)):
        assert counts_of_text(counts_text(counts)) == Counter(counts)


@pytest.mark.parametrize(
    "text", ["", "-", "host", "host.", ".1", "host.-1", "host.1.2", "HOST.1", "host.٣"]
)
def test_an_unreadable_count_is_nothing(text: str) -> None:
    assert counts_of_text(text) == Counter()
    assert counts_of_text(f"{text}-nobody.2") == {"nobody": 2}


def test_a_text_can_be_long() -> None:
    text = "-".join(f"{'x' * 20}.{number}" for number in range(100_000))
    assert len(counts_of_text(text)) <= MAX_REASONS


@pytest.mark.django_db
def test_only_one_s_own_token_is_found(ana: User, bert: User, token: Make) -> None:
    mine, hers = token(ana), token(bert)
    assert own_token(ana, mine.pk, "default") == mine
    assert own_token(ana, hers.pk, "default") is None
    assert own_token(ana, mine.pk + 100, "default") is None


@pytest.mark.databases
@pytest.mark.django_db
def test_the_newest_session_at_a_server_names_it(ana: User, token: Make) -> None:
    row = token(ana)
    principal = Principal(kind=ACCESS_TOKEN, user_id=str(ana.pk), client=row.family)
    named = {"principal_key": principal.key, "server": "shop"}
    session(1, client_info='{"name": "new"}', revision="2025-06-18", **named)
    session(2, client_info='{"name": "old"}', seen_ms=5, **named)
    session(3, client_info='{"name": "x"}', **{**named, "server": "default"})
    session(4, client_info='{"name": "x"}', **{**named, "principal_key": "x"})
    found = own_token(ana, row.pk, "shop")
    assert found is not None
    assert first_contact(found) == Contact(None)
    AccessToken.objects.note_uses([row.pk], timezone.now())
    found = own_token(ana, row.pk, "shop")
    assert found is not None
    assert first_contact(found) == Contact(found.used, "new", "2025-06-18")
    elsewhere = own_token(ana, row.pk, "nowhere")
    assert elsewhere is not None
    assert first_contact(elsewhere) == Contact(found.used)
