from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from mcp_app.models import Blob, Resource, ResourceTemplate
from mcp_app.models.fields import digest
from tests.admin.pages import (
    errors,
    fill_in,
    fill_in_again,
    form_page,
    page,
    saved,
    shown_values,
)
from tests.published import published

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_text_resource_needs_no_json(admin_client: Client) -> None:
    typed = {"name": "Returns", "uri": "shop://returns", "text": "30 dáys"}
    assert saved(fill_in(admin_client, form_page("resource"), **typed))
    resource = Resource.objects.get()
    assert json.loads(resource.config) == {"text": "30 dáys"}
    assert (resource.mime_type, resource.size) == ("text/plain", 8)


def test_a_template_needs_no_json(admin_client: Client) -> None:
    typed = {"name": "Order", "uri_template": "shop://o/{n}", "text": "Order {{n}}"}
    assert saved(fill_in(admin_client, form_page("resourcetemplate"), **typed))
    row = ResourceTemplate.objects.get()
    assert row.json("config") == {"text": "Order {{n}}"}
    text = admin_client.get(page("resourcetemplate", "change", row.pk))
    assert "{{n}}</code>" in text.content.decode()


def test_a_template_without_names_offers_none(admin_client: Client) -> None:
    row = ResourceTemplate.objects.create(name="a", uri_template="x:{")
    url = page("resourcetemplate", "change", row.pk)
    assert admin_client.get(url).status_code == 200


def test_a_file_is_uploaded_kept_and_replaced(admin_client: Client) -> None:
    file = SimpleUploadedFile("logo.png", PNG, "image/png")
    url = form_page("resource")
    typed = {"name": "Logo", "uri": "shop://logo", "upload": file}
    assert saved(fill_in(admin_client, url, **typed))
    resource = Resource.objects.get()
    assert resource.json("config") == {"upload": digest(PNG)}
    assert (resource.mime_type, resource.size) == ("image/png", len(PNG))
    assert bytes(Blob.objects.get().content) == PNG

    url = page("resource", "change", resource.pk)
    assert saved(fill_in(admin_client, url, title="Our logo"))
    resource.refresh_from_db()
    assert resource.json("config") == {"upload": digest(PNG)}
    assert (resource.title, resource.size) == ("Our logo", len(PNG))

    other = SimpleUploadedFile("logo.png", PNG + b"2", "image/png")
    assert saved(fill_in(admin_client, url, upload=other))
    resource.refresh_from_db()
    assert resource.json("config") == {"upload": digest(PNG + b"2")}
    assert resource.size == len(PNG) + 1


def test_a_file_and_a_text_take_each_others_place(admin_client: Client) -> None:
    file = SimpleUploadedFile("logo.png", PNG, "image/png")
    typed = {"name": "Logo", "uri": "shop://logo", "upload": file}
    assert saved(fill_in(admin_client, form_page("resource"), **typed))
    resource = Resource.objects.get()
    url = page("resource", "change", resource.pk)

    shown = admin_client.get(url).content.decode()
    assert "There is a file now: " in shown
    assert digest(PNG) not in shown

    assert saved(fill_in(admin_client, url, text="a text"))
    resource.refresh_from_db()
    assert resource.json("config") == {"text": "a text"}
    assert (resource.mime_type, resource.size) == ("text/plain", 6)

    again = SimpleUploadedFile("logo.png", PNG, "image/png")
    assert saved(fill_in(admin_client, url, text="", upload=again))
    resource.refresh_from_db()
    assert resource.json("config") == {"upload": digest(PNG)}
    assert resource.mime_type == "image/png"

    own = SimpleUploadedFile("logo.bin", b"123", "application/octet-stream")
    assert saved(fill_in(admin_client, url, upload=own, mime_type="image/x-own"))
    resource.refresh_from_db()
    assert resource.mime_type == "image/x-own"


def test_a_text_and_a_file_do_not_go_together(admin_client: Client) -> None:
    file = SimpleUploadedFile("a.txt", b"a", "text/plain")
    typed = {"name": "a", "uri": "x:a", "upload": file, "text": "b"}
    found = errors(fill_in(admin_client, form_page("resource"), **typed))
    assert found == {"upload": "Give a text or a file, not both."}
    assert not Blob.objects.exists()


@override_settings(MCP={"LIMITS": {"body": 10}})
def test_a_file_has_a_limit(admin_client: Client) -> None:
    file = SimpleUploadedFile("a.bin", b"x" * 11)
    typed = {"name": "a", "uri": "x:a", "upload": file}
    found = errors(fill_in(admin_client, form_page("resource"), **typed))
    assert "The file is 11" in found["upload"]
    assert not Blob.objects.exists()


def resource(**columns: Any) -> Resource:
    return Resource.objects.create(name="a", uri="x:a", **columns)


def test_what_clients_read_now_is_shown(admin_client: Client) -> None:
    row = resource(config='{"text": "<b>30 days</b>"}', mime_type="text/plain")
    text = admin_client.get(page("resource", "change", row.pk)).content.decode()
    assert "&lt;b&gt;30 days&lt;/b&gt;</pre>" in text
    assert "≈ 4 tokens" in text

    Blob.objects.keep(PNG, "image/png")
    row.config, row.mime_type = f'{{"upload": "{digest(PNG)}"}}', "image/png"
    row.save()
    text = admin_client.get(page("resource", "change", row.pk)).content.decode()
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in text


def test_a_file_that_is_gone_is_told(admin_client: Client) -> None:
    row = resource(config=f'{{"upload": "{digest(PNG)}"}}')
    text = admin_client.get(page("resource", "change", row.pk)).content.decode()
    assert "No uploaded file has the digest" in text


def test_a_new_resource_reads_nothing_yet(admin_client: Client) -> None:
    text = admin_client.get(form_page("resource")).content.decode()
    assert "Clients see nothing yet, because the resource is not saved." in text


def test_for_whom_and_how_important_need_no_json(admin_client: Client) -> None:
    row = resource(
        config='{"text": "a"}',
        annotations='{"lastModified": "2026-01-31T12:00:00Z", "priority": 0.8}',
    )
    url = page("resource", "change", row.pk)
    assert shown_values(admin_client.get(url))["importance"] == "0.8"
    kept = row.annotations
    assert saved(fill_in(admin_client, url, title="A"))
    row.refresh_from_db()
    assert row.annotations == kept
    assert saved(fill_in(admin_client, url, audience="assistant", importance="1"))
    row.refresh_from_db()
    assert row.json("annotations") == {
        "lastModified": "2026-01-31T12:00:00Z",
        "priority": 1,
        "audience": ["assistant"],
    }
    assert saved(fill_in(admin_client, url, annotations=""))
    row.refresh_from_db()
    assert row.annotations == ""


def test_the_choice_and_the_json_are_not_changed_at_once(admin_client: Client) -> None:
    row = resource(config='{"text": "a"}')
    url = page("resource", "change", row.pk)
    typed = {"audience": "user", "annotations": '{"priority": 1}'}
    found = errors(fill_in(admin_client, url, **typed))
    assert found == {
        "annotations": "You changed both this and a choice above. Change only one"
        " of them."
    }


def test_annotations_that_are_no_json_are_told_once(admin_client: Client) -> None:
    row = resource(config='{"text": "a"}')
    url = page("resource", "change", row.pk)
    found = errors(fill_in(admin_client, url, audience="user", annotations="{"))
    assert set(found) == {"annotations"}
    assert "Line 1: This is not JSON." in found["annotations"]


def test_contents_in_base64_are_edited_as_json(admin_client: Client) -> None:
    row = resource(config='{ "base64": "YQ==" }', mime_type="text/plain")
    url = page("resource", "change", row.pk)
    text = admin_client.get(url).content.decode()
    assert "The content is more than one text." in text
    assert ">a</pre>" in text
    assert saved(fill_in(admin_client, url, title="A"))
    row.refresh_from_db()
    assert row.config == '{ "base64": "YQ==" }'


def test_choices_and_files_go_on_top_of_what_someone_else_saved(
    admin_client: Client,
) -> None:
    row = resource(config='{"text": "a"}')
    url = page("resource", "change", row.pk)
    opened = admin_client.get(url)
    row.title = "Theirs"
    row.save()
    typed = {"importance": "1", "text": "b", "_mine": "Keep"}
    merged = fill_in_again(admin_client, url, opened, **typed)
    shown = shown_values(merged)
    assert (shown["importance"], shown["text"]) == ("1", "b")
    assert shown["title"] == "Theirs"
    assert "Choose the file again." not in merged.content.decode()
    file = SimpleUploadedFile("logo.png", PNG, "image/png")
    again = fill_in_again(admin_client, url, opened, text="", upload=file, _mine="Keep")
    assert "Choose the file again." in again.content.decode()
    assert saved(fill_in_again(admin_client, url, merged))
    row.refresh_from_db()
    assert row.json("annotations") == {"priority": 1}
    assert (row.title, row.json("config")) == ("Theirs", {"text": "b"})


def test_a_media_type_is_no_markup(admin_client: Client) -> None:
    Blob.objects.keep(PNG, "image/png")
    row = resource(
        config=f'{{"upload": "{digest(PNG)}"}}',
        mime_type='text/plain; a="<img src=x onerror=alert(1)>"',
        size=8,
    )
    text = admin_client.get(page("resource", "change", row.pk)).content.decode()
    assert "&lt;img src=x" in text
    assert "<img src=x" not in text


def test_a_function_resource_asks_only_for_a_function(admin_client: Client) -> None:
    url = form_page("resource", "function")
    assert "upload" not in admin_client.get(url).content.decode()
    typed = {"name": "a", "uri": "x:a", "function": "shop.policy"}
    assert saved(fill_in(admin_client, url, **typed))
    row = Resource.objects.get()
    assert (row.json("config"), row.size) == ({"function": "shop.policy"}, None)


def template(**columns: Any) -> ResourceTemplate:
    columns = {"uri_template": "shop://o/{n}", "config": '{"text": "{{n}}"}', **columns}
    return ResourceTemplate.objects.create(name="a", **columns)


def test_suggestions_for_the_variables_of_a_template(admin_client: Client) -> None:
    row = template()
    url = page("resourcetemplate", "change", row.pk)
    assert saved(fill_in(admin_client, url, **{"suggestions-n": "1042\r\n7"}))
    row.refresh_from_db()
    assert row.json("suggestions") == {"n": ["1042", "7"]}
    published(row)
    assert shown_values(admin_client.get(url))["suggestions-n"] == "1042\r\n7"
    # Another pattern has other names; what was there is kept.
    typed = {"uri_template": "shop://o/{m}", "text": "{{m}}"}
    assert saved(fill_in(admin_client, url, **typed))
    row.refresh_from_db()
    assert row.json("suggestions") == {"n": ["1042", "7"]}
    shown = shown_values(admin_client.get(url))
    assert (shown["suggestions-m"], shown["suggestions-n"]) == ("", "1042\r\n7")
    typed = {"suggestions-m": "8", "suggestions-n": ""}
    assert saved(fill_in(admin_client, url, **typed))
    row.refresh_from_db()
    assert row.json("suggestions") == {"m": ["8"]}
    text = admin_client.get(page("resourcetemplate", "publish", row.pk))
    assert "Suggestions, variable m" in text.content.decode()


def test_wrong_suggestions_are_told_and_kept(admin_client: Client) -> None:
    url = page("resourcetemplate", "change", template().pk)
    response = fill_in(admin_client, url, **{"suggestions-n": "7\r\n7"})
    found = errors(response)
    assert found == {"suggestions": "n: “7” is suggested more than once."}
    assert shown_values(response)["suggestions-n"].split() == ["7", "7"]
    assert 'href="#id_suggestions"' in response.content.decode()


def test_a_pattern_that_is_too_long_is_not_taken_apart(admin_client: Client) -> None:
    names = ",".join(f"v{number}" for number in range(100_000))
    typed = {"name": "Order", "uri_template": f"x:{{{names}}}", "text": "Order"}
    found = errors(fill_in(admin_client, form_page("resourcetemplate"), **typed))
    assert "688893 characters; 4096 are allowed" in found["uri_template"]


def test_scripts_get_the_variables_of_a_new_pattern(admin_client: Client) -> None:
    add = form_page("resourcetemplate")
    opened = admin_client.get(add)
    assert "Write the address pattern first" in opened.content.decode()
    sent = {**shown_values(opened), "uri_template": "x:{a}/{b}"}
    url = f"{page('resourcetemplate', 'preview')}?part=suggestions"
    text = admin_client.post(url, sent).content.decode()
    assert text.startswith('<div class="mcp-panel mcp-variables" id="id_suggestions"')
    assert 'name="suggestions-b"' in text


def test_suggestions_go_on_top_of_what_someone_else_saved(
    admin_client: Client,
) -> None:
    row = template()
    url = page("resourcetemplate", "change", row.pk)
    opened = admin_client.get(url)
    row.title = "Theirs"
    row.save()
    typed = {"suggestions-n": "7", "_mine": "Keep"}
    merged = fill_in_again(admin_client, url, opened, **typed)
    shown = shown_values(merged)
    assert (shown["title"], shown["suggestions-n"]) == ("Theirs", "7")
    assert saved(fill_in_again(admin_client, url, merged))
    row.refresh_from_db()
    assert row.json("suggestions") == {"n": ["7"]}


def test_what_code_says_stands_beside_a_readable_function(
    admin_client: Client,
) -> None:
    policy = resource(kind="function", config='{"function": "shop.policy"}')
    find = template(kind="function", config='{"function": "shop.find"}')
    for model, row, said in (
        ("resource", policy, ["None", "tests.admin.conftest.functions"]),
        ("resourcetemplate", find, ["<code>customer</code>: Text, required", "Find"]),
    ):
        text = admin_client.get(page(model, "change", row.pk)).content.decode()
        panel = text.partition('id="id_from_code"')[2].partition("</dl>")[0]
        assert all(each in panel for each in [*said, "conftest.py:"])
        assert "<input" not in panel


def test_suggestions_for_a_function_that_gives_resources(admin_client: Client) -> None:
    row = template(
        kind="function",
        uri_template="shop://o/{customer}",
        config='{"function": "shop.find"}',
    )
    url = page("resourcetemplate", "change", row.pk)
    assert saved(fill_in(admin_client, url, **{"suggestions-customer": "Ada"}))
    row.refresh_from_db()
    assert row.json("suggestions") == {"customer": ["Ada"]}


def test_a_type_that_is_too_long_is_told(admin_client: Client) -> None:
    row = Resource.objects.create(name="a", uri="x:a", config='{"text": "a"}')
    url = page("resource", "change", row.pk)
    found = errors(fill_in(admin_client, url, mime_type="a/b" + "; c=d" * 90))
    assert set(found) == {"mime_type"}
