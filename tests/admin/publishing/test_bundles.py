"""Importing bundles, as a person with rights and one without does."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mcp_app.admin.editors import files
from mcp_app.admin.publishing import bundles
from mcp_app.models import (
    Blob,
    DefinitionVersion,
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from mcp_app.models.versions import hash_of
from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import Outcome
from tests.admin.pages import Queries, Staff, page, text_of
from tests.published import published
from tests.publishing.bundle.content import (
    as_bytes,
    clear,
    entry,
    exported,
    fill,
    overlay,
    tool,
)

pytestmark = pytest.mark.django_db

MARKUP = "<img src=x onerror=alert(1)>"
URL = "/admin/mcp_app/server/import/"


def look(client: Client, body: Any, name: str = "staging.json") -> Any:
    body = body if isinstance(body, bytes) else as_bytes(body)
    return client.post(URL, {"bundle": SimpleUploadedFile(name, body)})


def sent(response: Any, **more: str) -> dict[str, str]:
    """Return what the form under the comparison sends."""
    shown = {name: response.context[name] for name in ("file", "name")}
    looked_at = response.context["comparison"].looked_at
    return {**shown, "looked_at": looked_at, **more}


def words(response: Any) -> str:
    return unescape(response.content.decode())


# -- looking and importing ------------------------------------------------------------


def test_staging_to_production(admin_client: Client, admin_user: User) -> None:
    fill()
    file = bundle.export_bundle(bundle.everything())
    clear()
    mine = tool("mine")
    response = look(admin_client, file)
    text = words(response)
    assert "9 new · 0 changed · 0 the same · 1 not in the file (unchanged)" in text
    assert "Broken here: the code does not declare it." in text
    assert "It is not published here, and stays unpublished until you" in text
    assert "5 versions are published." in text
    assert list(Tool.objects.all()) == [mine]
    own = response.content.decode().partition('id="content-main"')[2]
    assert not re.search(r"<script| style=| on[a-z]+=", own.partition("<footer")[0])
    done = admin_client.post(URL, sent(response, publish="on"), follow=True)
    assert "9 were imported." in words(done)
    row = Tool.objects.get(name="hours")
    assert row.published is not None
    assert row.published.author == admin_user
    logged = LogEntry.objects.get(object_id=str(row.pk), content_type__model="tool")
    assert (logged.user, logged.action_flag) == (admin_user, ADDITION)
    assert "Imported from staging.json. Published version 1, imported from" in (
        logged.change_message
    )
    assert LogEntry.objects.count() == 9
    # What was kept between the two pages is gone.
    assert Blob.objects.count() == 1
    # A server is published by hand: before, nobody could come in.
    Server.objects.publish(Server.objects.filter(slug="shop", published=None))
    again = look(admin_client, file)
    assert "All of it is here already." in words(again)
    assert "Import all" not in words(again)


def test_working_copies_alone(admin_client: Client) -> None:
    fill()
    file = exported()
    found = entry(file, "tools", "Hours")
    found["working"]["title"] = "Opening hours"
    response = look(admin_client, file)
    text = words(response)
    assert "0 new · 1 changed" in text
    assert "Opening hours" in text
    assert "Import 1" in text
    assert "Publish the imported versions at once" not in text
    done = admin_client.post(URL, sent(response), follow=True)
    assert "1 was imported." in words(done)
    row = Tool.objects.get(name="Hours")
    assert (row.title, row.published) == ("Opening hours", None)
    logged = LogEntry.objects.get()
    said = "The working copy was imported from staging.json."
    assert (logged.action_flag, logged.change_message) == (CHANGE, said)


def test_what_is_only_to_be_published(admin_client: Client) -> None:
    row = published(tool())
    file = exported()
    Tool.objects.unpublish([row])
    response = look(admin_client, file)
    assert "The working copy is the same" in words(response)
    done = admin_client.post(URL, sent(response), follow=True)
    assert "There was nothing to import: all of it is here" in words(done)
    response = look(admin_client, file)
    admin_client.post(URL, sent(response, publish="on"))
    row.refresh_from_db()
    # The same content is the same hash under a new number.
    assert row.published is not None
    assert row.published.number == 2
    said = "Published version 2, imported from staging.json."
    assert LogEntry.objects.get().change_message == said


def test_what_clients_would_see_is_shown_beside_the_working_copy(
    admin_client: Client,
) -> None:
    row = published(tool(title="One"))
    row.title = "Two"
    row.save()
    file = exported()
    row.title = "Three"
    row.save()
    Tool.objects.publish([row])
    text = words(look(admin_client, file))
    assert "If it is published at once" in text
    assert "Published there as version 1" in text
    assert "Now (version 2)" in text


def test_old_calls_that_break_are_told(admin_client: Client) -> None:
    row = published(tool())
    file = exported()
    found = entry(file, "tools", "hours")["published"]
    schema = {"type": "object", "properties": {"day": {"type": "string"}}}
    content = {**found["content"], "input_schema": {**schema, "required": ["day"]}}
    found.update(content=content, hash=hash_of(content))
    text = words(look(admin_client, file))
    assert "Calls that work now will fail when it is published:" in text
    assert "those without “day”." in text
    assert row.published is not None


def test_what_changed_meanwhile_is_shown_again(admin_client: Client) -> None:
    tool()
    file = exported()
    Tool.objects.update(title="Old")
    response = look(admin_client, file)
    Tool.objects.update(title="Newer")
    late = admin_client.post(URL, sent(response))
    text = words(late)
    assert "Nothing was imported." in text
    assert "something at this site, has changed since you checked it." in text
    assert "Newer" in text
    assert Tool.objects.get().title == "Newer"
    assert admin_client.post(URL, sent(late)).status_code == 302
    assert Tool.objects.get().title == ""


def test_what_stands_in_the_way_holds_all_of_it_up(admin_client: Client) -> None:
    tool()
    file = exported()
    file["tools"].append({"name": "no spaces", "working": {"name": "no spaces"}})
    Tool.objects.all().delete()
    response = look(admin_client, file)
    text = words(response)
    assert "“no spaces” cannot be a name" in text
    assert "Nothing can be imported, because some entries" in text
    assert "Import all" not in text
    assert "Nothing was imported." in words(admin_client.post(URL, sent(response)))
    assert not Tool.objects.exists()


def test_what_cannot_be_published_can_be_imported(admin_client: Client) -> None:
    published(tool(kind="function", config='{"function": "shop.gone"}'))
    file = exported()
    clear()
    response = look(admin_client, file)
    text = words(response)
    assert "Must be fixed" in text
    assert "shop.gone" in text
    assert 'name="publish" disabled' in text
    refused = admin_client.post(URL, sent(response, publish="on"))
    assert "Nothing was imported." in words(refused)
    assert admin_client.post(URL, sent(response)).status_code == 302
    assert Tool.objects.get().state == "unpublished"
    text = words(look(admin_client, file))
    assert "The working copies are the same, but they cannot be published:" in text


def test_markup_in_a_file_stays_text(admin_client: Client) -> None:
    tool_ = {"name": "a", "working": {"name": "a", "title": MARKUP}}
    slug = {"slug": MARKUP, "access": [MARKUP.replace(" ", "/")], "page_size": 1}
    file = {**exported(), "tools": [tool_], "servers": [slug]}
    for body in (file, {**file, MARKUP: 1}):
        content = look(admin_client, body, MARKUP).content.decode()
        assert "<img" not in content
        assert "&lt;img" in content


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "The file is not complete: it ends in line 1."),
        (b"{}", "This is not a bundle"),
        (b"{\n,}", "Line 2: this is not JSON."),
    ],
)
def test_a_file_that_is_none_is_refused(
    admin_client: Client, body: bytes, said: str
) -> None:
    assert said in words(look(admin_client, body))
    assert not Blob.objects.exists()


def test_no_file_and_one_that_is_too_large(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Choose a file first." in words(admin_client.post(URL))
    monkeypatch.setattr(bundle, "MOST_BYTES", 3)
    assert "The file has 4 bytes; the limit is" in words(look(admin_client, b"1234"))


def test_a_file_that_is_not_kept_any_more(admin_client: Client) -> None:
    tool()
    file = exported()
    Tool.objects.update(title="Old")
    response = look(admin_client, file)
    files.delete_user_file(User.objects.get())
    for name in (response.context["file"], "", "x"):
        refused = admin_client.post(URL, {**sent(response), "file": name})
        assert "The file is no longer stored." in words(refused)


def test_many_entries_are_named(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill()
    file = bundle.export_bundle(bundle.everything())
    clear()
    monkeypatch.setattr(bundles, "MOST_SHOWN", 2)
    text = words(look(admin_client, file))
    assert "Not shown field by field" in text
    assert text.count('<section class="mcp-box">') == 3
    assert "Import all 9" in text


def test_the_page_takes_few_queries_however_large_the_file(
    admin_client: Client, django_assert_num_queries: Queries
) -> None:
    fill()
    for count in (0, 30):
        for number in range(count):
            tool(f"tool_{number}")
            published(overlay(f"code_{number}", title="Better"))
        file = bundle.export_bundle(bundle.everything())
        Tool.objects.filter(name__startswith="tool_1").delete()
        Tool.objects.filter(name__startswith="code_2").update(title="Other")
        files.delete_user_file(User.objects.get())
        with django_assert_num_queries(13):
            look(admin_client, file)


def test_whoever_has_the_right_needs_few_queries_whatever_the_file_changes(
    staff: Staff, django_assert_max_num_queries: Queries
) -> None:
    fill()
    server = Server.objects.get(slug="shop")
    chosen: list[tuple[str, PublishedRow]] = [
        ("tools", tool("another")),
        ("resources", Resource.objects.create(name="r", uri="x:r")),
        ("templates", ResourceTemplate.objects.create(name="t", uri_template="x:{t}")),
        ("prompts", Prompt.objects.create(name="p")),
    ]
    for name, row in chosen:
        getattr(server, name).add(row)
    Server.objects.publish([server])
    file = bundle.export_bundle(bundle.everything())
    for model in (Tool, Resource, ResourceTemplate, Prompt, Server):
        model.rows().update(title="Changed here")
    Prompt.objects.update(config="{}")
    for name, row in chosen:
        getattr(server, name).remove(row)
    tool("here_alone")
    server.tools.add(Tool.objects.get(name="here_alone"))
    Server.objects.publish([server])
    client = staff("bundle", "publish")
    # The second look takes the place of what was kept after the first.
    for _ in range(2):
        with django_assert_max_num_queries(16):
            response = look(client, file)
    changed = response.context["comparison"].entries_with_outcome(Outcome.CHANGED)
    assert len(changed) == 12
    text = words(response)
    assert all(each in text for each in ("another", "x:r", "x:{t}", "here_alone"))
    assert "12 in conflict" in text
    assert "overwrite what is saved and not published: a command, " in text


# -- rights -------------------------------------------------------------------------


@pytest.mark.parametrize("may", [False, True])
def test_the_page_and_the_link_need_a_right(staff: Staff, may: bool) -> None:
    client = staff("view_server", "change_server", *(["bundle"] if may else []))
    assert client.get(URL).status_code == (200 if may else 403)
    assert client.post(URL).status_code == (200 if may else 403)
    assert ("import/" in text_of(client, page("server"))) is may


FUNCTION = {"kind": "function", "config": {"function": "shop.find"}}
PUBLIC = {"servers": [{"slug": "new", "access": ["public"], "page_size": 1}]}


def one_tool(**working: Any) -> dict[str, Any]:
    return {"tools": [{"name": "a", "working": {"name": "a", **working}}]}


@pytest.mark.parametrize(
    ("entries", "right"),
    [
        (one_tool(**FUNCTION), "Can change what stands behind a definition"),
        (one_tool(permission="shop.view_order"), "Can change who may use it"),
        (one_tool(approval="self"), "Can change who may use it"),
        (PUBLIC, "Can change who may use it"),
    ],
)
def test_a_right_that_is_missing_refuses_the_whole_file(
    staff: Staff, entries: Any, right: str
) -> None:
    client = staff("bundle", "publish")
    prompt = {"name": "p", "working": {"name": "p"}}
    form = {"format": "django-mcp-app bundle", "version": 2}
    response = look(client, {**form, **entries, "prompts": [prompt]})
    text = words(response)
    assert f"This needs the right “{right}”." in text
    assert "Import all" not in text
    assert client.post(URL, sent(response)).status_code == 403
    assert not Tool.objects.exists()
    assert Server.objects.count() == 1


def test_publishing_needs_its_own_right(staff: Staff) -> None:
    fill()
    file = exported()
    for kind in file.keys() - {"format", "version", "tools"}:
        file[kind] = []
    file["tools"] = [entry(file, "tools", "hours")]
    clear()
    client = staff("bundle")
    response = look(client, file)
    assert "Publishing needs the right “Can publish and roll back”." in words(response)
    assert client.post(URL, sent(response, publish="on")).status_code == 403
    assert not Tool.objects.exists()
    assert client.post(URL, sent(response)).status_code == 302
    assert Tool.objects.get().title == "Öffnungszeiten"
    assert not DefinitionVersion.objects.exists()


def test_the_file_of_another_person_is_not_imported(
    staff: Staff, admin_user: User
) -> None:
    client = staff("bundle")
    tool()
    file = bundle.export_bundle(bundle.everything())
    Tool.objects.all().delete()
    theirs = files.store_user_file(admin_user, file)
    response = look(client, file)
    refused = client.post(URL, {**sent(response), "file": theirs})
    assert "The file is no longer stored." in words(refused)
    assert not Tool.objects.exists()


# -- exports ---------------------------------------------------------------------------


def test_chosen_definitions_are_exported(admin_client: Client) -> None:
    fill()
    row = Tool.objects.get(name="hours")
    action = {"action": "export_chosen", "_selected_action": [row.pk]}
    response = admin_client.post(page("tool"), action)
    assert response["Content-Type"] == "application/json"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith('attachment; filename="mcp-')
    file = json.loads(response.content)
    assert [each["name"] for each in file["tools"]] == ["hours"]
    assert not file["servers"]


def test_servers_take_along_what_they_offer(admin_client: Client) -> None:
    fill()
    row = Server.objects.get(slug="shop")
    action = {"action": "export_chosen", "_selected_action": [row.pk]}
    file = json.loads(admin_client.post(page("server"), action).content)
    assert [each["slug"] for each in file["servers"]] == ["shop"]
    assert [each["name"] for each in file["tools"]] == ["Hours", "hours"]
    assert [each["uri"] for each in file["resources"]] == ["shop://logo"]
    assert len(file["blobs"]) == 1


def test_what_cannot_be_exported_is_told(admin_client: Client) -> None:
    row = tool(config='{"content": [{"type": "image", "upload": "gone"}]}')
    action = {"action": "export_chosen", "_selected_action": [row.pk]}
    response = admin_client.post(page("tool"), action, follow=True)
    assert "“hours” uses the upload gone…, which no longer exists." in words(response)


@pytest.mark.parametrize("may", [True, False])
def test_it_takes_a_right(staff: Staff, may: bool) -> None:
    client = staff("view_tool", "change_tool", *(["bundle"] if may else []))
    row = tool()
    assert ("export_chosen" in text_of(client, page("tool"))) is may
    action = {"action": "export_chosen", "_selected_action": [row.pk]}
    assert ("Content-Disposition" in client.post(page("tool"), action)) is may
