from __future__ import annotations

import pytest
from django.test import Client, override_settings

from mcp_app.models import Server, Tool
from tests.admin.pages import errors, fill_in, form_of, page, saved, shown_values

pytestmark = pytest.mark.django_db


@override_settings(MCP={"AUTHENTICATION": {"token": "shop.auth.token"}})
def test_a_server_is_made_and_opened(admin_client: Client) -> None:
    typed = {"slug": "shop", "title": "Shop", "access": "token"}
    assert saved(fill_in(admin_client, page("server", "add"), **typed))
    server = Server.objects.get(slug="shop")
    assert server.access_names == ("token",)
    assert saved(
        fill_in(admin_client, page("server", "change", server.pk), access="public")
    )
    server.refresh_from_db()
    assert (server.access_names, server.lock_version) == (("public",), 1)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("slug", "sse", "“sse” cannot be used here"),
        ("slug", "default", "already exists"),
        ("access", "tokens", "no authentication method “tokens”. There is: token."),
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
    url = page("server", "change", server.pk)
    server.title = "Theirs"
    server.save()
    found = errors(fill_in(admin_client, url, title="Mine", opened_version=0))
    assert "Someone saved this server at" in found["__all__"]


def test_the_list(admin_client: Client) -> None:
    text = admin_client.get(page("server")).content.decode()
    assert "default" in text
    assert "Everything published" in text
    assert "/mcp" in text
    assert "nobody" in text


def test_the_list_says_who_comes_in_and_what_is_there(admin_client: Client) -> None:
    Server.objects.create(slug="shop", access="public", selection="tags", tags="sale")
    text = admin_client.get(page("server")).content.decode()
    assert '<td class="field-who_may_come_in">public</td>' in text
    assert '<td class="field-offers">sale</td>' in text


def test_the_list_is_filtered_by_state(admin_client: Client) -> None:
    Server.objects.create(slug="shop", enabled=False)
    response = admin_client.get(f"{page('server')}?state=stopped")
    assert [row.slug for row in response.context["cl"].result_list] == ["shop"]


def test_a_server_is_copied(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a")
    server = Server.objects.create(
        slug="shop", title="Shop", selection="chosen", access="public", page_size=7
    )
    server.tools.add(tool)
    sent = {"action": "copy_chosen", "_selected_action": [server.pk]}
    for slug in ("shop-copy", "shop-copy1"):
        response = admin_client.post(page("server"), sent)
        copy = Server.objects.get(slug=slug)
        assert response["Location"] == page("server", "change", copy.pk)
        assert (copy.title, copy.access, copy.page_size) == ("Shop", "public", 7)
        assert (copy.state, copy.published) == ("stopped", None)
        assert list(copy.tools.all()) == [tool]


def test_one_server_is_copied_at_a_time(admin_client: Client) -> None:
    Server.objects.create(slug="shop")
    sent = {
        "action": "copy_chosen",
        "_selected_action": list(Server.objects.values_list("pk", flat=True)),
    }
    response = admin_client.post(page("server"), sent, follow=True)
    assert "Choose one server to copy." in response.content.decode()
    assert Server.objects.count() == 2


def test_what_a_server_offers_is_chosen_in_its_form(admin_client: Client) -> None:
    tools = [Tool.objects.create(name=name) for name in "ab"]
    server = Server.objects.create(slug="shop")
    assert saved(
        fill_in(
            admin_client,
            page("server", "change", server.pk),
            selection="chosen",
            tools=[str(tools[1].pk)],
        )
    )
    server.refresh_from_db()
    assert server.working_content()["chosen"]["tools"] == [tools[1].pk]
    assert server.content_hash == server.working_hash()


def test_a_choice_is_not_lost_where_two_people_edit(admin_client: Client) -> None:
    rows = [Tool.objects.create(name=name) for name in "ab"]
    server = Server.objects.create(slug="shop", selection="chosen")
    url = page("server", "change", server.pk)
    keys = [str(row.pk) for row in rows]
    sent = {**shown_values(admin_client.get(url)), "tools": keys}
    server.title = "Theirs"
    server.save()
    again = admin_client.post(url, sent)
    assert "(empty)" in again.content.decode()
    mine = admin_client.post(url, {**sent, "_mine": "Keep"})
    shown = form_of(mine)
    assert shown["tools"].value() == keys
    assert shown["title"].value() == "Theirs"
