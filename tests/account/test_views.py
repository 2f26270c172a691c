"""The users' own page: one's own tokens, and nobody else's."""

from __future__ import annotations

import html
import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from mcp_app import models
from mcp_app.models import EventSubscription
from tests.account.apps import app, end, many_apps
from tests.account.conftest import Make, account, filled, made, shown
from tests.admin.tasks.test_subscription_admin import subscription
from tests.audit.rows import call
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


def test_somebody_who_is_no_staff_logs_in(client: Client, ana: User) -> None:
    sent = {"username": "ana", "password": "a-Long-enough-1"}
    response = client.post("/account/login/", sent, follow=True)
    assert response.redirect_chain == [(account("tokens"), 302)]
    assert "No tokens. A token lets one program connect as you." in text_of(response)
    assert "Connected apps" not in text_of(response)
    wrong = client.post("/account/login/", {**sent, "password": "x"})
    assert "Please enter a correct username and password." in text_of(wrong)


def test_an_inactive_user_is_refused(client: Client, ana: User) -> None:
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
    before = models.AccessToken.objects.values().get()
    sent = {"name": "mine", "overlap": "0", "once": "0" * 32}
    for key in (his.pk, his.pk + 1, 10**30):
        url = account(page, key)
        assert hers.post(url, sent).status_code == 404
        if page in ("token", "replace"):
            assert hers.get(url).status_code == 404
        else:
            assert hers.get(url).status_code == 405
    assert models.AccessToken.objects.values().get() == before
    assert "of bert" not in text_of(hers.get(account("tokens")))


def test_a_form_of_another_site_does_nothing(ana: User, token: Make) -> None:
    client, row = Client(enforce_csrf_checks=True), token(ana)
    client.force_login(ana)
    for page in ("token", "replace", "delete", "forget"):
        assert client.post(account(page, row.pk)).status_code == 403
    found = app(ana)
    for url in (account("add"), account("app", found.pk), account("end_all")):
        assert client.post(url).status_code == 403
    assert client.get(account("app", found.pk)).status_code == 200
    assert models.AccessToken.objects.filter(revoked=None).count() == 2


# -- making ------------------------------------------------------------------------


def test_a_token_is_shown_once(hers: Client, ana: User) -> None:
    sent = filled(hers, account("add"))
    response = hers.post(account("add"), sent)
    token = shown(response)
    row = models.AccessToken.objects.of(token).get()
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
    server = models.Server.objects.get()
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
    assert models.AccessToken.objects.count() == 1
    # What somebody else's page held is another one.
    hers.force_login(bert)
    shown(hers.post(account("add"), sent))


@pytest.mark.parametrize("once", ["", "x", "0" * 31, "G" * 32])
def test_a_form_that_is_none_of_ours_makes_nothing(hers: Client, once: str) -> None:
    sent = filled(hers, account("add"), once=once)
    assert hers.post(account("add"), sent).status_code == 200
    assert not models.AccessToken.objects.exists()


def test_whatever_else_is_sent_is_ignored(hers: Client, ana: User, bert: User) -> None:
    wrong = {"user": bert.pk, "service_user": "bert", "family": "f" * 32}
    token = made(hers, account("add"), **wrong, everywhere="", digest="d" * 64)
    row = models.AccessToken.objects.of(token).get()
    assert (row.user, row.everywhere) == (ana, True)
    assert row.family != "f" * 32


def test_only_servers_that_let_somebody_in_are_named(hers: Client) -> None:
    shop = published(models.Server(slug="shop", title="The shop", access="token"))
    published(models.Server(slug="shut", title="The shut one", access=""))
    models.Server.objects.create(slug="draft", title="The draft", access="token")
    off = published(models.Server(slug="off", title="The stopped one", access="token"))
    stopped(off)
    text = text_of(hers.get(account("add")))
    assert "The shop" in text
    for hidden in ("The shut one", "The draft", "The stopped one"):
        assert hidden not in text
    token = made(hers, account("add"), servers=[shop.pk])
    row = models.AccessToken.objects.of(token).get()
    assert (row.everywhere, list(row.servers.all())) == (False, [shop])
    everywhere = text_of(hers.post(account("add"), filled(hers, account("add"))))
    assert "/mcp/shop" in everywhere
    for hidden in ("shut", "draft", "off"):
        assert f"/mcp/{hidden}" not in everywhere
    sent = filled(hers, account("add"), servers=[off.pk])
    assert "Select a valid choice" in text_of(hers.post(account("add"), sent))


# -- the list, and what is done to one ---------------------------------------------


def test_the_list_says_why_a_token_ended(hers: Client, ana: User, token: Make) -> None:
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
        models.AccessToken(
            user=ana,
            name=f"token {number}",
            prefix="mcp_abcdef",
            digest=f"{number:064}",
            family=f"{number:032}",
            everywhere=False,
        )
        for number in range(count)
    ]
    models.AccessToken.objects.bulk_create(rows)
    with django_assert_max_num_queries(6):
        text = hers.get(account("tokens")).content.decode()
    assert text.count('<th scope="row">') == min(count, 50)
    assert ("Older" in text) == (count > 50)


def test_a_token_is_ended_then_taken_off(hers: Client, ana: User, token: Make) -> None:
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
    assert not models.AccessToken.objects.exists()


def test_another_name_changes_only_that(hers: Client, ana: User, token: Make) -> None:
    row = token(ana)
    before = models.AccessToken.objects.values().get()
    sent = {"name": "the old laptop", "may": "change", "revoked": "", "networks": "::1"}
    assert hers.post(account("token", row.pk), sent).status_code == 302
    after = {**before, "name": "the old laptop"}
    assert models.AccessToken.objects.values().get() == after
    response = hers.post(account("token", row.pk), {"name": "a\u202eb"})
    assert "the old laptop" in text_of(response)
    assert models.AccessToken.objects.values().get()["name"] == "the old laptop"


@pytest.mark.parametrize(("overlap", "good_for"), [("0", 0), ("1", 1), ("24", 24)])
def test_a_token_is_replaced(
    hers: Client, ana: User, token: Make, overlap: str, good_for: int
) -> None:
    old = token(ana, may="change", networks="::1")
    url = account("replace", old.pk)
    sent = filled(hers, url, overlap=overlap)
    new = models.AccessToken.objects.of(shown(hers.post(url, sent))).get()
    assert (new.family, new.may, new.networks) == (old.family, "change", "::1")
    old.refresh_from_db()
    assert old.expires is not None
    good = old.expires - timezone.now()
    assert abs(good - timedelta(hours=good_for)) < timedelta(minutes=10)
    # Whoever may have it goes at once, with all that is open.
    assert (old.revoked is not None) == (good_for == 0)
    assert ALREADY in text_of(hers.post(url, sent))
    assert models.AccessToken.objects.count() == 2


def test_what_has_ended_is_not_replaced(hers: Client, ana: User, token: Make) -> None:
    row = token(ana)
    url = account("replace", row.pk)
    sent = filled(hers, url, overlap="24")
    row.revoke()
    response = hers.post(url, sent, follow=True)
    assert "This token has ended. Make a new one." in text_of(response)
    assert "Make a new one." in text_of(hers.get(url))
    assert models.AccessToken.objects.count() == 1


def test_what_was_done_is_logged(hers: Client, ana: User) -> None:
    token = made(hers, account("add"), name="laptop")
    row = models.AccessToken.objects.of(token).get()
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
    rows = [token(ana, name="<b>x</b>"), app(ana, name="<b>x</b>")]
    pages = [account("token", rows[0].pk), account("app", rows[1].pk)]
    for page in (account("tokens"), *pages):
        text = hers.get(page).content
        assert b"&lt;b&gt;x&lt;/b&gt;" in text
        assert not any(each in text for each in (b"<b>x</b>", b"style=", b"<script>"))


# -- app views -------------------------------------------------------------------------


BEFORE = re.compile(r'name="before" value="([0-9a-f]{64})"')
TEXT = '{"content":[{"type":"text","text":"a"}]}'
CHOSEN = re.compile(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"[^>]*checked')


def app_views_text_of(response: Any) -> str:
    text = re.sub(r"<[^>]+>", " ", response.content.decode())
    return " ".join(html.unescape(text).split())


def form(client: Client, row: models.AccessToken, **typed: Any) -> dict[str, Any]:
    page = client.get(account("app", row.pk)).content.decode()
    found = BEFORE.search(page)
    assert found, page
    usual = {"name": row.name, "may": row.may, "which": "all", "ends": "keep"}
    return {**usual, "before": found[1], **typed}


def send(client: Client, row: models.AccessToken, **typed: Any) -> Any:
    sent = form(client, row, **typed)
    return client.post(account("app", row.pk), sent, follow=True)


def tool(name: str, tags: str) -> None:
    published(models.Tool(name=name, read_only=True, tags=tags, config=TEXT))


# -- whose -------------------------------------------------------------------------


def test_anothers_app_is_not_there(hers: Client, bert: User) -> None:
    his = app(bert)
    sent = {"name": "mine", "may": "read", "ends": "keep"}
    assert hers.get(account("app", his.pk)).status_code == 404
    assert hers.post(account("app", his.pk), sent).status_code == 404
    assert hers.post(account("delete", his.pk)).status_code == 404
    hers.post(account("end_all"))
    assert models.AccessToken.objects.get().revoked is None


def test_a_token_has_no_page_of_an_app(hers: Client, ana: User, token: Make) -> None:
    row = token(ana)
    assert hers.get(account("app", row.pk)).status_code == 404
    found = app(ana)
    response = hers.get(account("token", found.pk))
    assert response["Location"] == account("app", found.pk)


# -- what the page says ------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "redirect", "place", "claim"),
    [
        ("claude.ai", "https://claude.ai/cb", "claude.ai", "by a document of claude"),
        ("", "https://cursor.com:8443/cb", "cursor.com:8443", "Nobody has checked"),
        ("claude.ai", "http://localhost/cb", "on this computer", "Nobody can check"),
        ("", "http://127.0.0.1:31/cb", "on this computer", "Nobody has checked"),
        ("", "cursor://anysphere/cb", "on this computer", "Nobody has checked"),
    ],
)
def test_which_program_it_is(
    hers: Client, ana: User, host: str, redirect: str, place: str, claim: str
) -> None:
    row = app(ana, host=host, redirect=redirect)
    text = app_views_text_of(hers.get(account("app", row.pk)))
    assert place in text
    assert claim in text
    assert place in app_views_text_of(hers.get(account("tokens")))


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("code", "Its sign-in was used twice. Somebody else may have had it."),
        ("refresh", "Its sign-in was used twice. Somebody else may have had it."),
        ("client", "The program ended it."),
        ("person", "Its owner ended it."),
        ("staff", "Staff ended it."),
    ],
)
def test_why_it_has_ended(hers: Client, ana: User, why: str, said: str) -> None:
    row = app(ana)
    end(row, why)
    for address in (account("app", row.pk), account("tokens")):
        text = app_views_text_of(hers.get(address))
        assert said in text
        assert "End now" not in text
    response = hers.post(account("app", row.pk), {"may": "change"}, follow=True)
    assert "This connected app has ended." in app_views_text_of(response)


def test_why_its_time_is_over(hers: Client, ana: User) -> None:
    past = timezone.now() - timedelta(days=1)
    unfinished = app(ana, is_used=False, expires=past)
    idle, over = app(ana, expires=past), app(ana, until=past, expires=past)
    signing = app(ana, is_used=False)
    said = {
        unfinished.pk: "It did not finish signing in.",
        idle.pk: "It was not used for too long.",
        over.pk: "Its time is over.",
        signing.pk: "The program has not finished signing in.",
    }
    for key, sentence in said.items():
        assert sentence in app_views_text_of(hers.get(account("app", key)))


def test_the_list_in_two_parts(hers: Client, ana: User, token: Make) -> None:
    token(ana, name="a laptop")
    gone, row = app(ana, name="Old"), app(ana, may="read")
    end(gone, "person")
    now = int(time.time() * 1_000)
    for age in (0, 1, 29, 31):
        at = now - age * 86_400_000
        call(user_name="ana", principal_client=row.family, time_ms=at)
    call(user_name="bert", principal_client=row.family, time_ms=now)
    text = app_views_text_of(hers.get(account("tokens")))
    parts = [text.index(each) for each in ("Connected apps", "Access tokens Make")]
    assert parts == sorted(parts)
    assert "Claude claude.ai Support desk only look things up never never 3 " in text
    assert text.index("Claude claude.ai") < text.index("Old claude.ai")
    assert parts[0] < text.index("Old claude.ai") < parts[1] < text.index("a laptop")


# -- what is changed ---------------------------------------------------------------


def test_less_and_again_all_that_it_asked_for(hers: Client, ana: User) -> None:
    tool("find_order", "orders")
    tool("give_back", "refunds")
    row = app(ana)
    response = send(hers, row, may="read", which="some", tags=["orders"], ends="30")
    assert "The changes were saved." in app_views_text_of(response)
    row.refresh_from_db()
    until = models.Connection.objects.get().until
    assert (row.may, row.tags) == ("read", "orders")
    assert until is not None
    assert abs(until - timezone.now() - timedelta(days=30)) < timedelta(hours=1)
    page = response.content.decode()
    assert set(CHOSEN.findall(page)) >= {("may", "read"), ("which", "some")}
    assert ("tags", "orders") in CHOSEN.findall(page)
    send(hers, row, may="change")
    row.refresh_from_db()
    assert (row.may, row.tags) == ("change", "")
    assert models.Connection.objects.get().until == until
    said = [each.change_message for each in LogEntry.objects.order_by("pk")]
    assert said[0].startswith("Changed this connected app: “Claude”, Read, orders")
    assert len(said) == 2


def test_never_more_than_it_asked_for(hers: Client, ana: User) -> None:
    row = app(ana, may_ask="read", may="read")
    page = hers.get(account("app", row.pk)).content.decode()
    assert "also change things" not in page
    assert "Select a valid choice" in app_views_text_of(send(hers, row, may="change"))
    row.refresh_from_db()
    assert row.may == "read"


def test_another_name(hers: Client, ana: User) -> None:
    row = app(ana)
    send(hers, row, name="On my laptop")
    row.refresh_from_db()
    assert (row.name, row.may) == ("On my laptop", "change")
    assert "Enter" not in app_views_text_of(send(hers, row))
    wrong = send(hers, row, name="a\u202eb")
    assert "U+202E" in app_views_text_of(wrong)
    row.refresh_from_db()
    assert row.name == "On my laptop"


def test_a_page_older_than_a_change_undoes_nothing(hers: Client, ana: User) -> None:
    row = app(ana)
    old = form(hers, row, name="Mine")
    send(hers, row, may="read")
    response = hers.post(account("app", row.pk), old, follow=True)
    assert "Nothing was saved." in app_views_text_of(response)
    row.refresh_from_db()
    assert (row.name, row.may) == ("Claude", "read")


def test_what_is_missing_allows_nothing(hers: Client, ana: User) -> None:
    tool("find_order", "orders")
    row = app(ana, tags="orders", may="read")
    sent = form(hers, row)
    for name in ("which", "may", "ends", "before"):
        less = {key: value for key, value in sent.items() if key != name}
        assert hers.post(account("app", row.pk), less).status_code == 200
    row.refresh_from_db()
    assert (row.tags, row.may) == ("orders", "read")
    chosen = send(hers, row, which="some")
    assert "Choose at least one group, or all." in app_views_text_of(chosen)


def test_a_group_that_is_gone_stays_chosen(hers: Client, ana: User) -> None:
    row = app(ana, tags="old")
    page = hers.get(account("app", row.pk)).content.decode()
    assert ("tags", "old") in CHOSEN.findall(page)


def test_an_app_whose_server_is_gone(hers: Client, ana: User) -> None:
    row = app(ana)
    row.servers.get().delete()
    text = app_views_text_of(hers.get(account("app", row.pk)))
    assert "You may not use this server at the moment" in text
    send(hers, row, may="read")
    row.refresh_from_db()
    assert row.may == "read"


# -- its end -----------------------------------------------------------------------


def test_an_app_is_ended_and_later_removed(hers: Client, ana: User) -> None:
    row = app(ana)
    response = hers.post(account("delete", row.pk), follow=True)
    assert "Ended: “Claude" in app_views_text_of(response)
    assert models.Connection.objects.get().ended == "person"
    assert LogEntry.objects.get().change_message.startswith("Ended this connected")
    hers.post(account("forget", row.pk))
    assert not models.AccessToken.objects.exists()


def test_all_apps_are_ended(hers: Client, ana: User, bert: User, token: Make) -> None:
    mine, his = token(ana), app(bert)
    apps = [app(ana), app(ana, may="read")]
    assert hers.get(account("end_all")).status_code == 405
    response = hers.post(account("end_all"), follow=True)
    said = "Ended: 2 connected apps let nobody in any more."
    assert said in app_views_text_of(response)
    still = models.AccessToken.objects.filter(revoked=None)
    assert {each.pk for each in still} == {mine.pk, his.pk}
    ended = models.Connection.objects.filter(ended="person")
    assert {each.pk for each in ended} == {each.pk for each in apps}


def test_what_an_app_watches_is_ended_by_its_owner(
    client: Client, ana: User, bert: User, token: Make
) -> None:
    own, principal = app(ana), app(ana).principal_key
    key = own.principal_key
    row = subscription(person=f"u{ana.pk}", principal=key, arguments={"shop": "ulm"})
    subscription("ticket.opened", person=f"u{ana.pk}", principal=principal)
    place = (own.pk, row.pk)
    client.force_login(bert)
    assert client.post(account("end_watch", *place)).status_code == 404
    client.force_login(ana)
    text = client.get(account("app", own.pk)).content.decode()
    for words in ("order.paid", "shop: ulm", "hooks.example.com", "up to date"):
        assert words in text
    assert "ticket.opened" not in text
    assert f'action="{account("end_watch", *place)}"' in text
    answer = client.post(account("end_watch", *place), follow=True)
    assert "not told of “order.paid” any more" in answer.content.decode()
    assert "What it watches" not in answer.content.decode()
    assert client.post(account("end_watch", *place)).status_code == 404
    assert EventSubscription.objects.get(pk=row.pk).ending
    assert LogEntry.objects.get().change_message == "Ended this event subscription."


def test_an_app_is_not_replaced(hers: Client, ana: User) -> None:
    row = app(ana)
    sent = {"overlap": "0", "once": "0" * 32}
    for response in (
        hers.get(account("replace", row.pk), follow=True),
        hers.post(account("replace", row.pk), sent, follow=True),
    ):
        assert "A connected app is not replaced." in app_views_text_of(response)
    assert models.AccessToken.objects.count() == 1


@pytest.mark.parametrize("count", [1, 300])
def test_the_pages_ask_no_more_for_many(
    hers: Client, ana: User, token: Make, count: int, django_assert_max_num_queries: Any
) -> None:
    token(ana)
    first = app(ana)
    # Without a process that serves here, all definitions are read, kind by kind.
    for row in (
        models.Tool(name="find", config=TEXT),
        models.Resource(name="text", uri="shop://text", config=TEXT),
        models.ResourceTemplate(name="order", uri_template="shop://{id}", config=TEXT),
        models.Prompt(name="ask", config=TEXT),
    ):
        published(row)
    many_apps(ana, count - 1)
    # Session, user, counts, apps, tokens, their servers, calls.
    with django_assert_max_num_queries(8):
        page = hers.get(account("tokens")).content.decode()
    assert ("Older apps" in page) == (count > 50)
    with django_assert_max_num_queries(17):
        hers.get(account("app", first.pk))
