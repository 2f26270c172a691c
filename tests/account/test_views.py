"""The users' own page: one's own tokens, and nobody else's."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from mcp_app.models import AccessToken, Server
from tests.account.conftest import Make, account, filled, made, shown
from tests.published import published, stopped

pytestmark = pytest.mark.django_db

ALREADY = (
    "This token was already shown. If it is lost, make another and delete this one."
)


def text_of(response: Any) -> str:
    return re.sub(r"<[^>]+>", "", response.content.decode())


# -- who may come ------------------------------------------------------------------


def test_whoever_is_not_logged_in_is_sent_to_the_login_page(client: Client) -> None:
    response = client.get(account("tokens"))
    assert response.status_code == 302
    assert response["Location"] == f"/account/login/?next={account('tokens')}"


def test_somebody_who_is_no_staff_logs_in_and_is_there(
    client: Client, ana: User
) -> None:
    sent = {"username": "ana", "password": "a-Long-enough-1"}
    response = client.post("/account/login/", sent, follow=True)
    assert response.redirect_chain == [(account("tokens"), 302)]
    assert "No tokens. A token lets one program connect as you." in text_of(response)
    wrong = client.post("/account/login/", {**sent, "password": "x"})
    assert "Please enter a correct username and password." in text_of(wrong)


def test_whoever_may_not_log_in_any_more_is_refused(client: Client, ana: User) -> None:
    backend = "django.contrib.auth.backends.AllowAllUsersModelBackend"
    ana.is_active = False
    ana.save()
    with override_settings(AUTHENTICATION_BACKENDS=[backend]):
        client.force_login(ana, backend)
        assert client.get(account("tokens")).status_code == 403


@pytest.mark.parametrize("page", ["token", "replace", "delete", "forget"])
def test_anothers_token_is_not_there(
    hers: Client, bert: User, token: Make, page: str
) -> None:
    his = token(bert, name="of bert")
    before = AccessToken.objects.values().get()
    sent = {"name": "mine", "overlap": "0", "once": "0" * 32}
    for key in (his.pk, his.pk + 1, 10**30):
        url = account(page, key)
        assert hers.post(url, sent).status_code == 404
        if page in ("token", "replace"):
            assert hers.get(url).status_code == 404
        else:
            assert hers.get(url).status_code == 405
    assert AccessToken.objects.values().get() == before
    assert "of bert" not in text_of(hers.get(account("tokens")))


def test_a_form_of_another_site_does_nothing(ana: User, token: Make) -> None:
    client, row = Client(enforce_csrf_checks=True), token(ana)
    client.force_login(ana)
    for page in ("token", "replace", "delete", "forget"):
        assert client.post(account(page, row.pk)).status_code == 403
    assert client.post(account("add")).status_code == 403
    assert AccessToken.objects.count() == 1


# -- making ------------------------------------------------------------------------


def test_a_token_is_shown_once(hers: Client, ana: User) -> None:
    sent = filled(hers, account("add"))
    response = hers.post(account("add"), sent)
    token = shown(response)
    row = AccessToken.objects.of(token).get()
    assert (row.user, row.name, row.may) == (ana, "a laptop", "read")
    assert row.expires is not None
    assert abs(row.expires - timezone.now() - timedelta(days=30)) < timedelta(hours=1)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert response["X-Frame-Options"] == "DENY"
    text = text_of(response)
    assert f"Authorization: Bearer {token}" in text
    assert "claude mcp add --transport http" in text
    for page in (account("tokens"), account("token", row.pk)):
        later = hers.get(page).content.decode()
        assert token not in later
        assert f"{row.prefix}…" in later
    assert (
        "The token itself is not stored and cannot be shown again."
        in hers.get(account("token", row.pk)).content.decode()
    )


@pytest.mark.parametrize("access", ["token", "public", "token public"])
def test_a_server_for_everyone_asks_for_no_token(hers: Client, access: str) -> None:
    server = Server.objects.get()
    server.access = access
    server.save()
    published(server)
    page = text_of(hers.post(account("add"), filled(hers, account("add"))))
    assert "Authorization: Bearer mcp_" in page
    assert ("so it does not ask for the token." in page) is (access == "public")


def test_to_load_the_page_again_makes_no_second_one(hers: Client, bert: User) -> None:
    sent = filled(hers, account("add"))
    token = shown(hers.post(account("add"), sent))
    again = hers.post(account("add"), sent)
    assert ALREADY in text_of(again)
    assert token not in again.content.decode()
    assert AccessToken.objects.count() == 1
    # What somebody else's page held is another one.
    hers.force_login(bert)
    shown(hers.post(account("add"), sent))


@pytest.mark.parametrize("once", ["", "x", "0" * 31, "G" * 32])
def test_a_form_that_is_none_of_ours_makes_nothing(hers: Client, once: str) -> None:
    sent = filled(hers, account("add"), once=once)
    assert hers.post(account("add"), sent).status_code == 200
    assert not AccessToken.objects.exists()


def test_whatever_else_is_sent_is_of_no_use(
    hers: Client, ana: User, bert: User
) -> None:
    wrong = {"user": bert.pk, "service_user": "bert", "family": "f" * 32}
    token = made(hers, account("add"), **wrong, everywhere="", digest="d" * 64)
    row = AccessToken.objects.of(token).get()
    assert (row.user, row.everywhere) == (ana, True)
    assert row.family != "f" * 32


def test_only_servers_that_let_somebody_in_are_named(hers: Client) -> None:
    shop = published(Server(slug="shop", title="The shop", access="token"))
    published(Server(slug="shut", title="The shut one", access=""))
    Server.objects.create(slug="draft", title="The draft", access="token")
    off = stopped(
        published(Server(slug="off", title="The stopped one", access="token"))
    )
    text = text_of(hers.get(account("add")))
    assert "The shop" in text
    for hidden in ("The shut one", "The draft", "The stopped one"):
        assert hidden not in text
    token = made(hers, account("add"), servers=[shop.pk])
    row = AccessToken.objects.of(token).get()
    assert (row.everywhere, list(row.servers.all())) == (False, [shop])
    everywhere = text_of(hers.post(account("add"), filled(hers, account("add"))))
    assert "/mcp/shop" in everywhere
    for hidden in ("shut", "draft", "off"):
        assert f"/mcp/{hidden}" not in everywhere
    sent = filled(hers, account("add"), servers=[off.pk])
    assert "Select a valid choice" in text_of(hers.post(account("add"), sent))


# -- the list, and what is done to one ---------------------------------------------


def test_the_list_says_why_a_token_has_ended(
    hers: Client, ana: User, token: Make
) -> None:
    now = timezone.now()
    token(ana, name="revoked one").revoke()
    token(ana, name="expired one", expires=now - timedelta(days=3))
    token(ana, name="good one")
    text = text_of(hers.get(account("tokens")))
    assert text.index("good one") < text.index("expired one")
    assert "Revoked: " in text
    assert "Expired: " in text


@pytest.mark.parametrize("count", [1, 10_000])
def test_the_list_asks_no_more_for_many_tokens(
    hers: Client, ana: User, count: int, django_assert_max_num_queries: Any
) -> None:
    rows = [
        AccessToken(
            user=ana,
            name=f"token {number}",
            prefix="mcp_abcdef",
            digest=f"{number:064}",
            family=f"{number:032}",
            everywhere=False,
        )
        for number in range(count)
    ]
    AccessToken.objects.bulk_create(rows)
    with django_assert_max_num_queries(5):
        text = hers.get(account("tokens")).content.decode()
    assert text.count('<th scope="row">') == min(count, 50)
    assert ("Older" in text) == (count > 50)


def test_a_token_is_deleted_at_once_and_then_taken_off(
    hers: Client, ana: User, token: Make
) -> None:
    row = token(ana)
    hers.post(account("forget", row.pk))
    response = hers.post(account("delete", row.pk), follow=True)
    assert "lets nobody in any more." in text_of(response)
    row.refresh_from_db()
    assert row.revoked is not None
    revoked = row.revoked
    hers.post(account("delete", row.pk))
    row.refresh_from_db()
    assert row.revoked == revoked
    hers.post(account("forget", row.pk))
    assert not AccessToken.objects.exists()


def test_another_name_changes_nothing_else(
    hers: Client, ana: User, token: Make
) -> None:
    row = token(ana)
    before = AccessToken.objects.values().get()
    sent = {"name": "the old laptop", "may": "change", "revoked": "", "networks": "::1"}
    assert hers.post(account("token", row.pk), sent).status_code == 302
    assert AccessToken.objects.values().get() == {**before, "name": "the old laptop"}
    response = hers.post(account("token", row.pk), {"name": "a\u202eb"})
    assert "the old laptop" in text_of(response)
    assert AccessToken.objects.values().get()["name"] == "the old laptop"


@pytest.mark.parametrize(("overlap", "good_for"), [("0", 0), ("1", 1), ("24", 24)])
def test_a_token_is_replaced(
    hers: Client, ana: User, token: Make, overlap: str, good_for: int
) -> None:
    old = token(ana, may="change", networks="::1")
    url = account("replace", old.pk)
    sent = filled(hers, url, overlap=overlap)
    new = AccessToken.objects.of(shown(hers.post(url, sent))).get()
    assert (new.family, new.may, new.networks) == (old.family, "change", "::1")
    old.refresh_from_db()
    assert old.expires is not None
    good = old.expires - timezone.now()
    assert abs(good - timedelta(hours=good_for)) < timedelta(minutes=10)
    # Whoever may have it goes at once, with all that is open.
    assert (old.revoked is not None) == (good_for == 0)
    assert ALREADY in text_of(hers.post(url, sent))
    assert AccessToken.objects.count() == 2


def test_what_has_ended_is_not_replaced(hers: Client, ana: User, token: Make) -> None:
    row = token(ana)
    url = account("replace", row.pk)
    sent = filled(hers, url, overlap="24")
    row.revoke()
    response = hers.post(url, sent, follow=True)
    assert "This token has ended. Make a new one." in text_of(response)
    assert "Make a new one." in text_of(hers.get(url))
    assert AccessToken.objects.count() == 1


def test_what_was_done_is_logged(hers: Client, ana: User) -> None:
    token = made(hers, account("add"), name="laptop")
    row = AccessToken.objects.of(token).get()
    hers.post(account("token", row.pk), {"name": "old"})
    hers.post(account("delete", row.pk))
    hers.post(account("forget", row.pk))
    name = f"{row.prefix}…"
    said = [each.change_message for each in LogEntry.objects.order_by("pk")]
    assert said[0].startswith(f"Made the token “laptop ({name})” for ana (Read). It")
    assert said[1:] == [
        f"Renamed this token to “old ({name})”.",
        f"Deleted the token “old ({name})”. It lets nobody in any more.",
        f"Took the token “old ({name})”, which had ended, from the list.",
    ]


def test_a_name_is_no_markup(hers: Client, ana: User, token: Make) -> None:
    row = token(ana, name="<b>x</b>")
    for page in (account("tokens"), account("token", row.pk)):
        text = hers.get(page).content
        assert b"&lt;b&gt;x&lt;/b&gt;" in text
        assert b"<b>x</b>" not in text
