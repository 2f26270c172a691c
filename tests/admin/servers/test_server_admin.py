from __future__ import annotations

import re
from html import unescape
from typing import Any, Final

import pytest
from django.test import Client, override_settings

from mcp_app.models import Server, Tool
from tests.admin.pages import (
    Staff,
    errors,
    fill_in,
    fill_in_again,
    form_of,
    page,
    page_of,
    save,
    saved,
    shown_values,
    text_of,
)
from tests.published import stopped

pytestmark = pytest.mark.django_db


BY_KEY: Final = {"path": "shop.auth.PartnerKey", "cache": "header"}
WAYS: Final = {
    "token": "mcp_app.authentication.access_token",
    "session": "mcp_app.authentication.django_session",
    "partners": BY_KEY,
}
PUBLIC: Final = {"access-public": "on", "access-way-token": None}


def boxes(response: Any) -> dict[str, str]:
    """Return what is said beside each box of *Who may come in*."""
    found = re.findall(
        r'<label[^>]*><input type="checkbox" name="access-([^"]+)"[^>]*>(.*?)</label>',
        unescape(response.content.decode()),
        re.DOTALL,
    )
    return {name: " ".join(re.sub("<[^>]+>", "", said).split()) for name, said in found}


def test_a_server_is_made_for_who_has_a_token(admin_client: Client) -> None:
    assert saved(fill_in(admin_client, page("server", "add"), slug="shop"))
    assert Server.objects.get(slug="shop").access_names == ("token",)


@override_settings(MCP={"AUTHENTICATION": WAYS})
def test_there_is_a_box_for_each_way_in(admin_client: Client) -> None:
    shown = admin_client.get(page("server", "add"))
    assert boxes(shown) == {
        "way-token": "Access token",
        "way-session": "Signed-in users of this site",
        "way-partners": "Other: shop.auth.PartnerKey partners",
        "public": "Public: anyone on the internet, without signing in",
    }
    assert "Type the word public to confirm" in shown.content.decode()


@override_settings(MCP={"AUTHENTICATION": WAYS})
def test_what_was_ticked_before_is_asked_before(admin_client: Client) -> None:
    server = Server.objects.create(slug="shop", access="partners token")
    ways: list[tuple[dict[str, str | None], str]] = [
        ({}, "partners token"),
        ({"access-way-session": "on"}, "partners token session"),
        ({"access-way-partners": None}, "token session"),
    ]
    for ticked, names in ways:
        save(admin_client, server, **ticked)
        assert server.access == names


def test_a_server_becomes_public_with_a_word(admin_client: Client) -> None:
    server = Server.objects.get()
    url = page_of(server)
    for typed in (None, "", "yes", "PUBLIC"):
        sent = {**PUBLIC, "access-confirm": typed}
        found = errors(fill_in(admin_client, url, **sent))
        assert found == {"access": "Type the word public to confirm."}
        server.refresh_from_db()
        assert server.access == "token"
    save(admin_client, server, **{**PUBLIC, "access-confirm": " public "})
    assert server.access_names == ("public",)
    # Who edits it later is not asked again.
    assert "Type the word public" not in text_of(admin_client, url)
    save(admin_client, server, title="Shop", listed="on")
    assert (server.title, server.access, server.listed) == ("Shop", "public", True)


def test_public_stands_alone(admin_client: Client) -> None:
    sent = {"access-public": "on", "access-confirm": "public"}
    found = errors(fill_in(admin_client, page_of(Server.objects.get()), **sent))
    assert "must be the only entry" in found["access"]


NOBODY: Final = "Nobody could connect. Tick at least one way to come in."


@pytest.mark.parametrize("slug", ["default", "new"])
def test_somebody_must_be_able_to_come_in(admin_client: Client, slug: str) -> None:
    server = Server.objects.filter(slug=slug).first()
    url = page_of(server) if server else page("server", "add")
    sent = {"slug": slug, "access-way-token": None}
    assert errors(fill_in(admin_client, url, **sent)) == {"access": NOBODY}


def test_a_name_that_the_settings_lack_is_seen_and_said(admin_client: Client) -> None:
    server = Server.objects.create(slug="shop", access="partners token")
    shown = admin_client.get(page_of(server))
    said = boxes(shown)["way-partners"]
    assert said.startswith("partners This way to come in is missing")
    found = errors(fill_in_again(admin_client, page_of(server), shown))
    assert "no authentication method “partners”. Available: token." in found["access"]
    save(admin_client, server, **{"access-way-partners": None})
    assert server.access == "token"


@override_settings(MCP={"AUTHENTICATION": {"partners": BY_KEY}})
def test_a_new_server_where_the_settings_have_no_tokens(admin_client: Client) -> None:
    url = page("server", "add")
    shown = admin_client.get(url)
    assert set(boxes(shown)) == {"way-partners", "public"}
    found = errors(fill_in_again(admin_client, url, shown, slug="a"))
    assert found == {"access": NOBODY}
    ticked = {"slug": "a", "access-way-partners": "on"}
    assert saved(fill_in_again(admin_client, url, shown, **ticked))
    assert Server.objects.get(slug="a").access == "partners"


def test_a_way_that_nobody_offered(admin_client: Client) -> None:
    sent = {"slug": "shop", "access-way-tokens": "on", "access-way-a b": "on"}
    found = errors(fill_in(admin_client, page("server", "add"), **sent))
    assert "no authentication method “tokens”. Available: token." in found["access"]


def test_without_the_right_it_is_text(staff: Staff) -> None:
    client = staff("view_server", "change_server", "add_server")
    server = Server.objects.create(slug="shop", access="gone token", listed=True)
    url = page_of(server)
    shown = client.get(url)
    assert boxes(shown) == {}
    for name in ("access-public", "access-way-token", "listed"):
        sent = {name: "on"}
        assert fill_in_again(client, url, shown, **sent).status_code == 403
    assert saved(fill_in(client, page("server", "add"), slug="other"))
    assert Server.objects.get(slug="other").access == "token"
    server.refresh_from_db()
    assert (server.access, server.listed) == ("gone token", True)


def test_a_box_is_not_lost_where_two_people_edit(admin_client: Client) -> None:
    server = Server.objects.get()
    url = page_of(server)
    with override_settings(MCP={"AUTHENTICATION": WAYS}):
        sent = {**shown_values(admin_client.get(url)), "access-way-session": "on"}
        server.title = "Theirs"
        server.save()
        assert "token session" in admin_client.post(url, sent).content.decode()
        mine = admin_client.post(url, {**sent, "_mine": "Keep"})
        assert shown_values(mine)["access-way-session"] == "on"
        assert saved(fill_in_again(admin_client, url, mine))
    server.refresh_from_db()
    assert (server.title, server.access) == ("Theirs", "token session")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("slug", "sse", "“sse” cannot be used here"),
        ("slug", "default", "already exists"),
        ("tags", "a/b", "“a/b”"),
        ("page_size", "0", "1"),
        ("website_url", "ftp://x", "https://"),
    ],
)
def test_errors_appear_beside_their_field(
    admin_client: Client, field: str, value: str, said: str
) -> None:
    typed = {"slug": "shop", field: value}
    found = errors(fill_in(admin_client, page("server", "add"), **typed))
    assert set(found) == {field}
    assert said in found[field]


def test_two_people_at_one_server(admin_client: Client) -> None:
    server = Server.objects.get()
    server.title = "Theirs"
    server.save()
    typed = {"title": "Mine", "opened_version": 0}
    found = errors(fill_in(admin_client, page_of(server), **typed))
    assert "Someone saved this server at" in found["__all__"]


def test_the_list(admin_client: Client) -> None:
    text = text_of(admin_client, page("server"))
    for said in ("default", "Everything published", "/mcp", ">token</td>"):
        assert said in text
    Server.objects.update(access="")
    Server.objects.create(slug="shop", access="public", selection="tags", tags="sale")
    text = text_of(admin_client, page("server"))
    for access in ("nobody", "public"):
        assert f'<td class="field-who_may_come_in">{access}</td>' in text
    assert '<td class="field-offers">sale</td>' in text


def test_the_list_is_filtered_by_state(admin_client: Client) -> None:
    stopped(Server(slug="shop"))
    response = admin_client.get(f"{page('server')}?state=stopped")
    assert [row.slug for row in response.context["cl"].result_list] == ["shop"]


def test_a_server_is_copied(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a")
    columns = {"selection": "chosen", "access": "public", "page_size": 7}
    server = Server.objects.create(slug="shop", title="Shop", **columns)
    server.tools.add(tool)
    sent = {"action": "copy_chosen", "_selected_action": [server.pk]}
    for slug in ("shop-copy", "shop-copy1"):
        response = admin_client.post(page("server"), sent)
        copy = Server.objects.get(slug=slug)
        assert response["Location"] == page_of(copy)
        assert (copy.title, copy.access, copy.page_size) == ("Shop", "public", 7)
        assert (copy.state, copy.published) == ("unpublished", None)
        assert list(copy.tools.all()) == [tool]


def test_one_server_is_copied_at_a_time(admin_client: Client) -> None:
    Server.objects.create(slug="shop")
    keys = list(Server.objects.values_list("pk", flat=True))
    sent = {"action": "copy_chosen", "_selected_action": keys}
    response = admin_client.post(page("server"), sent, follow=True)
    assert "Choose one server to copy." in response.content.decode()
    assert Server.objects.count() == 2


def test_what_a_server_offers_is_chosen_in_its_form(admin_client: Client) -> None:
    tools = [Tool.objects.create(name=name) for name in "ab"]
    server = Server.objects.create(slug="shop")
    save(admin_client, server, selection="chosen", tools=[str(tools[1].pk)])
    assert server.working_content()["chosen"]["tools"] == [tools[1].pk]
    assert server.content_hash == server.working_hash()


def test_a_choice_is_not_lost_where_two_people_edit(admin_client: Client) -> None:
    rows = [Tool.objects.create(name=name) for name in "ab"]
    server = Server.objects.create(slug="shop", selection="chosen")
    url = page_of(server)
    keys = [str(row.pk) for row in rows]
    sent = {**shown_values(admin_client.get(url)), "tools": keys}
    server.title = "Theirs"
    server.save()
    assert "(empty)" in admin_client.post(url, sent).content.decode()
    mine = admin_client.post(url, {**sent, "_mine": "Keep"})
    shown = form_of(mine)
    assert shown["tools"].value() == keys
    assert shown["title"].value() == "Theirs"


def test_a_server_whose_clients_search(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = page("server", "add")
    sent = {"slug": "shop", "listing": "search", "listed_tags": "often used"}
    assert saved(fill_in(admin_client, url, **sent))
    row = Server.objects.get(slug="shop")
    assert (row.listing, row.listed_tags) == ("search", "often used")
    wrong = fill_in(admin_client, page_of(row), listed_tags="a/b")
    assert "listed_tags" in errors(wrong)
    monkeypatch.setattr("mcp_app.admin.forms.server.has_full_text", lambda: False)
    wrong = fill_in(admin_client, url, slug="other", listing="search")
    assert "FTS5" in errors(wrong)["listing"]
    assert saved(fill_in(admin_client, url, slug="other"))
