"""Access tokens in the admin: one's own, everyone's with the right, and their ends."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client, RequestFactory
from django.urls import clear_url_caches, path
from django.utils import timezone
from pytest_django import Settings

from mcp_app.account.presentation import token_state
from mcp_app.admin.tokens import token_admin
from mcp_app.admin.tokens.token_admin import LONG, STATES, TokenStateFilter
from mcp_app.models import AccessToken, Server
from mcp_app.models.tokens import SOON
from tests.account.conftest import Make, filled, made, shown
from tests.admin.pages import Staff, page, page_of, text_of, words_in
from tests.published import published

pytestmark = pytest.mark.django_db

LIST = page("accesstoken")
urlpatterns = [path("admin/", admin.site.urls)]
"""Of a site without a page for users."""
ADD = page("accesstoken", "add")
ALREADY = (
    "This token was already shown. If it is lost, make another and delete this one."
)


@pytest.fixture
def token() -> Make:
    def make(user: User, **columns: Any) -> AccessToken:
        columns.setdefault("name", "a laptop")
        return AccessToken.objects.make(user=user, **columns)[0]

    return make


@pytest.fixture
def kim(staff: Staff) -> Client:
    """Return the browser of somebody who may open the admin of the app."""
    return staff("view_tool")


@pytest.fixture
def manager(staff: Staff) -> Client:
    return staff("manage_tokens")


def user(name: str) -> User:
    return User.objects.get_or_create(username=name)[0]


# -- who sees which ----------------------------------------------------------------


def test_one_s_own_need_no_right(kim: Client, token: Make) -> None:
    mine, hers = token(user("kim"), name="mine"), token(user("ana"), name="hers")
    text = words_in(kim.get(LIST))
    assert "mine" in text
    assert "hers" not in text
    assert kim.get(page_of(mine)).status_code == 200
    assert kim.get(page_of(hers)).status_code == 302
    for what in ("replace", "revoke", "forget"):
        assert kim.post(page_of(hers, what)).status_code == 404
    kim.post(LIST, {"action": "end_chosen", "_selected_action": [hers.pk]})
    hers.refresh_from_db()
    assert hers.revoked is None


@pytest.mark.parametrize(
    ("right", "named"), [("view_tool", False), ("view_server", True)]
)
def test_drafts_are_named_to_whoever_may_see_servers(
    staff: Staff, right: str, named: bool
) -> None:
    Server.objects.create(slug="draft", title="The draft", access="token")
    published(Server(slug="shop", title="The shop", access="token"))
    text = words_in(staff(right).get(ADD))
    assert "The shop" in text
    assert ("The draft" in text) is named


def test_staff_of_other_apps_find_nothing_here(staff: Staff, token: Make) -> None:
    client = staff("view_group")
    row = token(user("kim"))
    assert client.get(LIST).status_code == 403
    assert client.get(ADD).status_code == 403
    assert client.post(page_of(row, "revoke")).status_code == 403


def test_everyone_s_are_seen_and_deleted_and_never_taken_over(
    manager: Client, token: Make
) -> None:
    row = token(User.objects.create_superuser("root"), name="of root")
    assert "of root" in words_in(manager.get(LIST))
    change, replace = page_of(row), page_of(row, "replace")
    text = words_in(manager.get(change))
    assert "Only its owner can replace a token." in text
    assert "Replace…" not in text
    for response in (
        manager.get(replace),
        manager.post(replace, {"overlap": "0", "once": "0" * 32}),
        manager.post(change, {"name": "mine"}),
    ):
        assert response.status_code == 403
    assert AccessToken.objects.get().name == "of root"
    manager.post(page_of(row, "revoke"))
    row.refresh_from_db()
    assert row.revoked is not None
    # One's own, though.
    assert manager.get(ADD).status_code == 200


def test_whoever_deletes_a_user_deletes_the_tokens(staff: Staff, token: Make) -> None:
    client = staff("delete_user", "view_user")
    row = token(user("ana"))
    url = f"/admin/auth/user/{row.user_id}/delete/"
    assert "Are you sure" in text_of(client, url)
    assert client.post(url, {"post": "yes"}).status_code == 302
    assert not AccessToken.objects.exists()


def test_there_is_no_other_way_to_delete_one(admin_client: Client, token: Make) -> None:
    row = token(user("admin"))
    url = page_of(row, "delete")
    assert admin_client.post(url, {"post": "yes"}).status_code == 404
    sent = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    admin_client.post(LIST, sent)
    assert AccessToken.objects.exists()
    assert url not in text_of(admin_client, row)


# -- the list ----------------------------------------------------------------------


def test_the_columns(admin_client: Client, token: Make) -> None:
    shop = Server.objects.create(slug="shop", title="The shop")
    at = timezone.now().replace(year=2021, month=3, day=4)
    row = token(user("ana"), servers=[shop], may="change", used=at, expires=None)
    text = words_in(admin_client.get(LIST))
    assert " Name Starts with Whose Servers May Ends Last used " in text
    shown_row = "The shop Read and change never 4 Mar 2021, "
    assert f"a laptop {row.prefix}… ana {shown_row}" in text
    shop.delete()
    assert "none: its servers were deleted" in words_in(admin_client.get(LIST))


def test_an_empty_list_says_what_a_token_is(kim: Client) -> None:
    text = words_in(kim.get(LIST))
    assert "No tokens. A token lets one program connect as you. Make one" in text
    assert "Colleagues make their own tokens at http://testserver/account" in text


def test_a_site_without_the_users_page(kim: Client, settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    clear_url_caches()
    assert "Colleagues make" not in words_in(kim.get(LIST))


def names(client: Client, **query: str) -> set[str]:
    text = text_of(client, LIST, query)
    return set(re.findall(r'field-name"><a [^>]*>([^<]+)</a>', text))


def test_the_filters(admin_client: Client, token: Make) -> None:
    now = timezone.now()
    ana, gone = user("ana"), user("gone")
    token(ana, name="good", expires=now + timedelta(days=30))
    long_ago = now - timedelta(days=60)
    ends = {"created": long_ago, "used": now, "expires": now + timedelta(days=3)}
    token(ana, name="soon", may="change", **ends)
    token(ana, name="unused", created=now - timedelta(days=100))
    token(ana, name="old", created=now - timedelta(days=100), used=now)
    token(ana, name="revoked").revoke()
    token(ana, name="expired", expires=now - timedelta(days=3))
    token(gone, name="stopped")
    gone.is_active = False
    gone.save()
    expected = {state: {state} for state in ("soon", "unused", "revoked", "expired")}
    expected["good"] = {"good", "soon", "unused", "old"}
    expected["stopped"] = {"stopped"}
    expected["x"] = {each.name for each in AccessToken.objects.all()}
    for state, those in expected.items():
        assert names(admin_client, state=state) == those
    assert names(admin_client, may="change") == {"soon"}
    assert names(admin_client, q="gone") == {"stopped"}
    text = words_in(admin_client.get(LIST))
    for said in ("Revoked: ", "Expired: ", "Stopped: its owner cannot log in."):
        assert said in text


@pytest.mark.parametrize("count", [1, 10_000])
def test_the_list_asks_no_more_for_many_tokens(
    manager: Client, count: int, django_assert_max_num_queries: Any
) -> None:
    ana = user("ana")
    AccessToken.objects.bulk_create(
        AccessToken(
            user=ana,
            name=f"token {number}",
            prefix="mcp_abcdef",
            digest=f"{number:064}",
            family=f"{number:032}",
            everywhere=False,
        )
        for number in range(count)
    )
    # Session, user, permissions (2); a count, the rows, their servers, what is stopped.
    with django_assert_max_num_queries(8):
        manager.get(LIST)
    row = AccessToken.objects.first()
    assert row is not None
    with django_assert_max_num_queries(10):
        manager.get(page_of(row))


# -- making ------------------------------------------------------------------------


def test_a_token_is_shown_once(kim: Client) -> None:
    sent = filled(kim, ADD, networks="::1", tags="a b", may="change")
    response = kim.post(ADD, sent)
    token = shown(response)
    row = AccessToken.objects.of(token).get()
    assert (row.user.get_username(), row.may) == ("kim", "change")
    assert (row.networks, row.tags) == ("::1", "a b")
    assert "no-store" in response["Cache-Control"]
    assert "Your token. It is shown only now." in words_in(response)
    assert f"Authorization: Bearer {token}" in words_in(response)
    for url in (LIST, page_of(row), page_of(row, "history")):
        assert token not in text_of(kim, url)
    said = "The token itself is not stored and cannot be shown again."
    assert said in words_in(kim.get(page_of(row)))
    entry = LogEntry.objects.get()
    assert "Made the token “a laptop" in entry.change_message
    again = kim.post(ADD, sent)
    assert ALREADY in words_in(again)
    assert token not in again.content.decode()
    assert AccessToken.objects.count() == 1


def test_what_is_wrong_is_told_at_its_field(kim: Client) -> None:
    response = kim.post(ADD, filled(kim, ADD, networks="home", name=""))
    assert "“home” is not a network" in words_in(response)
    assert "Please correct the errors below." in words_in(response)
    assert not AccessToken.objects.exists()


def test_only_superusers_choose_whose_it_is(
    kim: Client, admin_user: User, token: Make
) -> None:
    user("robot")
    assert "service_user" not in kim.get(ADD).content.decode()
    mine = made(kim, ADD, service_user="robot")
    assert AccessToken.objects.of(mine).get().user.get_username() == "kim"
    kim.force_login(admin_user)
    text = made(kim, ADD, service_user="robot")
    assert AccessToken.objects.of(text).get().user.get_username() == "robot"
    wrong = kim.post(ADD, filled(kim, ADD, service_user="nobody"))
    assert "no active user whose username is “nobody”." in words_in(wrong)


# -- what is done to one -----------------------------------------------------------


def test_another_name_changes_nothing_else(kim: Client, token: Make) -> None:
    row = token(user("kim"))
    before = AccessToken.objects.values().get()
    sent = {"name": "old laptop", "may": "change", "revoked": "x", "expires": ""}
    assert kim.post(page_of(row), sent).status_code == 302
    assert AccessToken.objects.values().get() == {**before, "name": "old laptop"}
    logged = LogEntry.objects.get().change_message
    assert logged == f"Renamed this token to “old laptop ({row.prefix}…)”."


def test_a_name_given_at_the_moment_of_revoking_undoes_nothing(
    kim: Client, token: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = token(user("kim"))

    def clean(form: Any) -> None:
        # Somebody else is faster.
        AccessToken.objects.get(pk=row.pk).revoke()

    monkeypatch.setattr("django.forms.ModelForm.clean", clean)
    kim.post(page_of(row), {"name": "other"})
    row.refresh_from_db()
    assert (row.name, row.revoked is not None) == ("other", True)


def test_it_is_deleted_now_and_taken_off_later(kim: Client, token: Make) -> None:
    row = token(user("kim"))
    revoke, forget = page_of(row, "revoke"), page_of(row, "forget")
    assert kim.get(revoke).status_code == kim.get(forget).status_code == 405
    assert "Delete it first" in words_in(kim.post(forget, follow=True))
    text = words_in(kim.post(revoke, follow=True))
    assert "lets nobody in any more." in text
    assert "Revoked: " in text
    assert "Delete now" not in text
    row.refresh_from_db()
    assert row.revoked is not None
    kim.post(forget)
    assert not AccessToken.objects.exists()
    assert LogEntry.objects.count() == 2


def test_several_are_deleted_together(kim: Client, token: Make) -> None:
    rows = [token(user("kim"), name=str(number)) for number in range(3)]
    rows[0].revoke()
    sent = {"action": "end_chosen", "_selected_action": [row.pk for row in rows]}
    response = kim.post(LIST, sent, follow=True)
    assert "Deleted: 2 tokens let nobody in any more." in words_in(response)
    assert not AccessToken.objects.filter(revoked=None).exists()
    assert LogEntry.objects.filter(action_flag=CHANGE).count() == 2


@pytest.mark.parametrize(("overlap", "hours"), [("0", 0), ("1", 1), ("24", 24)])
def test_it_is_replaced(kim: Client, token: Make, overlap: str, hours: int) -> None:
    old = token(user("kim"), may="change")
    url = page_of(old, "replace")
    sent = filled(kim, url, overlap=overlap)
    response = kim.post(url, sent)
    new = AccessToken.objects.of(shown(response)).get()
    assert (new.family, new.may) == (old.family, "change")
    assert "no-store" in response["Cache-Control"]
    old.refresh_from_db()
    assert old.expires is not None
    good = old.expires - timezone.now()
    assert abs(good - timedelta(hours=hours)) < timedelta(minutes=10)
    assert (old.revoked is not None) == (hours == 0)
    assert ALREADY in words_in(kim.post(url, sent))
    assert AccessToken.objects.count() == 2


def test_in_24_hours_is_chosen_at_first(kim: Client, token: Make) -> None:
    row = token(user("kim"))
    url = page_of(row, "replace")
    text = text_of(kim, url)
    chosen = re.findall(r'<input[^>]*value="(\w+)"[^>]*checked', text)
    assert chosen == ["24"]
    assert "Made the token" not in text
    # What has ended meanwhile is not replaced.
    sent = filled(kim, url, overlap="24")
    row.revoke()
    assert "This token has ended." in words_in(kim.post(url, sent, follow=True))
    assert AccessToken.objects.count() == 1


def test_the_right_has_its_name() -> None:
    right = Permission.objects.get(codename="manage_tokens")
    assert right.name == "Can manage everyone's access tokens"
    own = Permission.objects.filter(content_type__model="accesstoken")
    assert list(own) == [right]


# -- token lists -----------------------------------------------------------------------


NOW = datetime(2026, 11, 18, 14, tzinfo=timezone.get_default_timezone())
TICK = timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)


def token_lists_token(name: str, *, active: bool = True, **columns: Any) -> AccessToken:
    user, _ = User.objects.get_or_create(username=f"{active}", is_active=active)
    return AccessToken.objects.create(
        name=name, user=user, digest=f"{name:0>64}", everywhere=True, **columns
    )


def chosen(state: str) -> set[str]:
    request = RequestFactory().get("/")
    made = TokenStateFilter(request, {"state": [state]}, AccessToken, None)  # type: ignore[arg-type]
    return {each.name for each in made.queryset(request, AccessToken.objects.all())}


def test_a_token_is_in_the_state_that_its_page_says() -> None:
    ends = (None, NOW - TICK, NOW, NOW + TICK)
    for number, (active, expires, revoked) in enumerate(
        product((True, False), ends, (None, NOW - TICK))
    ):
        token_lists_token(f"{number}", active=active, expires=expires, revoked=revoked)
    words = {"good": "Good", "stopped": "Stopped", "revoked": "Revoked"}
    for state, word in {**words, "expired": "Expired"}.items():
        rows = AccessToken.objects.all()
        said = {each.name for each in rows if token_state(each).word == word}
        assert chosen(state) == said != set()
    assert len(chosen("no-such")) == 16


@pytest.mark.parametrize(
    ("expires", "soon"),
    [(NOW, False), (NOW + TICK, True), (NOW + SOON, True), (NOW + SOON + TICK, False)],
)
def test_what_ends_soon(expires: datetime, soon: bool) -> None:
    created = NOW - SOON
    token_lists_token("a", expires=expires, created=created)
    token_lists_token("for a week", expires=expires, created=expires - SOON)
    token_lists_token("forever", created=created)
    token_lists_token("revoked", expires=expires, revoked=NOW, created=created)
    assert chosen("soon") == ({"a"} if soon else set())


@pytest.mark.parametrize(
    ("used", "created", "unused"),
    [
        (NOW - LONG, NOW - 2 * LONG, False),
        (NOW - LONG - TICK, NOW - 2 * LONG, True),
        (None, NOW - LONG - TICK, True),
        (None, NOW - LONG, False),
        (NOW, NOW - 2 * LONG, False),
    ],
)
def test_what_nobody_uses(used: Any, created: datetime, unused: bool) -> None:
    for name, revoked in (("a", None), ("revoked", NOW)):
        row = token_lists_token(name, used=used, revoked=revoked)
        AccessToken.objects.filter(pk=row.pk).update(created=created)
    assert chosen("unused") == ({"a"} if unused else set())
    assert "a" in chosen("idle") or used == NOW


def test_each_state_can_be_chosen() -> None:
    made = TokenStateFilter(RequestFactory().get("/"), {}, AccessToken, None)  # type: ignore[arg-type]
    assert [name for name, _ in made.lookup_choices] == [*STATES]
    assert SOON < token_admin.LONG
