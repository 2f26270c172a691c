from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from mcp_app.models import Blob, Resource, ResourceTemplate
from mcp_app.models.fields import digest
from tests.admin.pages import (
    add,
    errors,
    fill_in,
    fill_in_again,
    form_page,
    page,
    page_of,
    save,
    shown_values,
    text_of,
)
from tests.published import published

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_text_resource_needs_no_json(admin_client: Client) -> None:
    typed = {"name": "Returns", "uri": "shop://returns", "text": "30 dáys"}
    resource = add(admin_client, Resource, **typed)
    assert resource.json("config") == {"text": "30 dáys"}
    assert (resource.mime_type, resource.size) == ("text/plain", 8)


def test_a_template_needs_no_json(admin_client: Client) -> None:
    typed = {"name": "Order", "uri_template": "shop://o/{n}", "text": "Order {{n}}"}
    row = add(admin_client, ResourceTemplate, **typed)
    assert row.json("config") == {"text": "Order {{n}}"}
    assert "{{n}}</code>" in text_of(admin_client, row)


def test_a_template_without_names_offers_none(admin_client: Client) -> None:
    row = ResourceTemplate.objects.create(name="a", uri_template="x:{")
    assert admin_client.get(page_of(row)).status_code == 200


def logo(content: bytes = PNG) -> SimpleUploadedFile:
    return SimpleUploadedFile("logo.png", content, "image/png")


def test_a_file_is_uploaded_kept_and_replaced(admin_client: Client) -> None:
    typed = {"name": "Logo", "uri": "shop://logo"}
    resource = add(admin_client, Resource, upload=logo(), **typed)
    assert resource.json("config") == {"upload": digest(PNG)}
    assert (resource.mime_type, resource.size) == ("image/png", len(PNG))
    assert bytes(Blob.objects.get().content) == PNG
    shown = text_of(admin_client, resource)
    assert "There is a file now: " in shown
    assert digest(PNG) not in shown

    save(admin_client, resource, title="Our logo")
    assert resource.json("config") == {"upload": digest(PNG)}
    assert (resource.title, resource.size) == ("Our logo", len(PNG))

    save(admin_client, resource, upload=logo(PNG + b"2"))
    assert resource.json("config") == {"upload": digest(PNG + b"2")}
    assert resource.size == len(PNG) + 1


def test_a_file_and_a_text_take_each_others_place(admin_client: Client) -> None:
    typed = {"name": "Logo", "uri": "shop://logo"}
    resource = add(admin_client, Resource, upload=logo(), **typed)
    save(admin_client, resource, text="a text")
    assert resource.json("config") == {"text": "a text"}
    assert (resource.mime_type, resource.size) == ("text/plain", 6)

    save(admin_client, resource, text="", upload=logo())
    assert resource.json("config") == {"upload": digest(PNG)}
    assert resource.mime_type == "image/png"

    own = SimpleUploadedFile("logo.bin", b"123", "application/octet-stream")
    save(admin_client, resource, upload=own, mime_type="image/x-own")
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
    text = text_of(admin_client, row)
    assert "&lt;b&gt;30 days&lt;/b&gt;</pre>" in text
    assert "≈ 4 tokens" in text

    Blob.objects.keep(PNG, "image/png")
    row.config, row.mime_type = f'{{"upload": "{digest(PNG)}"}}', "image/png"
    row.save()
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in text_of(admin_client, row)

    Blob.objects.all().delete()
    assert "No uploaded file has the digest" in text_of(admin_client, row)


def test_a_new_resource_reads_nothing_yet(admin_client: Client) -> None:
    text = text_of(admin_client, form_page("resource"))
    assert "Clients see nothing yet, because the resource is not saved." in text


def test_for_whom_and_how_important_need_no_json(admin_client: Client) -> None:
    row = resource(
        config='{"text": "a"}',
        annotations='{"lastModified": "2026-01-31T12:00:00Z", "priority": 0.8}',
    )
    assert shown_values(admin_client.get(page_of(row)))["importance"] == "0.8"
    kept = row.annotations
    save(admin_client, row, title="A")
    assert row.annotations == kept
    save(admin_client, row, audience="assistant", importance="1")
    assert row.json("annotations") == {
        "lastModified": "2026-01-31T12:00:00Z",
        "priority": 1,
        "audience": ["assistant"],
    }
    save(admin_client, row, annotations="")
    assert row.annotations == ""


def test_the_choice_and_the_json_are_not_changed_at_once(admin_client: Client) -> None:
    row = resource(config='{"text": "a"}')
    url = page_of(row)
    typed = {"audience": "user", "annotations": '{"priority": 1}'}
    found = errors(fill_in(admin_client, url, **typed))
    said = "You changed both this and a choice above. Change only one of them."
    assert found == {"annotations": said}
    # What is no JSON is told once.
    found = errors(fill_in(admin_client, url, audience="user", annotations="{"))
    assert set(found) == {"annotations"}
    assert "Line 1: This is not JSON." in found["annotations"]


def test_contents_in_base64_are_edited_as_json(admin_client: Client) -> None:
    row = resource(config='{ "base64": "YQ==" }', mime_type="text/plain")
    text = text_of(admin_client, row)
    assert "The content is more than one text." in text
    assert ">a</pre>" in text
    save(admin_client, row, title="A")
    assert row.config == '{ "base64": "YQ==" }'


def test_a_file_on_top_of_what_someone_else_saved_is_chosen_again(
    admin_client: Client,
) -> None:
    row = resource(config='{"text": "a"}')
    url = page_of(row)
    opened = admin_client.get(url)
    row.title = "Theirs"
    row.save()
    for upload, is_asked in ((None, False), (logo(), True)):
        typed = {"text": "", "upload": upload, "_mine": "Keep"}
        merged = fill_in_again(admin_client, url, opened, **typed)
        assert ("Choose the file again." in merged.content.decode()) is is_asked


def test_a_media_type_is_no_markup(admin_client: Client) -> None:
    Blob.objects.keep(PNG, "image/png")
    row = resource(
        config=f'{{"upload": "{digest(PNG)}"}}',
        mime_type='text/plain; a="<img src=x onerror=alert(1)>"',
        size=8,
    )
    text = text_of(admin_client, row)
    assert "&lt;img src=x" in text
    assert "<img src=x" not in text


def test_a_function_resource_asks_only_for_a_function(admin_client: Client) -> None:
    assert "upload" not in text_of(admin_client, form_page("resource", "function"))
    typed = {"name": "a", "uri": "x:a", "function": "shop.policy"}
    row = add(admin_client, Resource, "function", **typed)
    assert (row.json("config"), row.size) == ({"function": "shop.policy"}, None)


def template(**columns: Any) -> ResourceTemplate:
    columns = {"uri_template": "shop://o/{n}", "config": '{"text": "{{n}}"}', **columns}
    return ResourceTemplate.objects.create(name="a", **columns)


def test_suggestions_for_the_variables_of_a_template(admin_client: Client) -> None:
    row = template()
    save(admin_client, row, **{"suggestions-n": "1042\r\n7"})
    assert row.json("suggestions") == {"n": ["1042", "7"]}
    published(row)
    shown = shown_values(admin_client.get(page_of(row)))
    assert shown["suggestions-n"] == "1042\r\n7"
    # Another pattern has other names; what was there is kept.
    save(admin_client, row, uri_template="shop://o/{m}", text="{{m}}")
    assert row.json("suggestions") == {"n": ["1042", "7"]}
    shown = shown_values(admin_client.get(page_of(row)))
    assert (shown["suggestions-m"], shown["suggestions-n"]) == ("", "1042\r\n7")
    save(admin_client, row, **{"suggestions-m": "8", "suggestions-n": ""})
    assert row.json("suggestions") == {"m": ["8"]}
    assert "m: 8" in text_of(admin_client, page_of(row, "publish"))


def test_wrong_suggestions_are_told_and_kept(admin_client: Client) -> None:
    url = page_of(template())
    response = fill_in(admin_client, url, **{"suggestions-n": "7\r\n7"})
    assert errors(response) == {"suggestions": "n: “7” is suggested more than once."}
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


def test_what_code_says_stands_beside_a_readable_function(admin_client: Client) -> None:
    policy = resource(kind="function", config='{"function": "shop.policy"}')
    find = template(kind="function", config='{"function": "shop.find"}')
    for row, said in (
        (policy, ["None", "tests.admin.conftest.functions"]),
        (find, ["<code>customer</code>: Text, required", "Find"]),
    ):
        text = text_of(admin_client, row)
        panel = text.partition('id="id_from_code"')[2].partition("</dl>")[0]
        assert all(each in panel for each in [*said, "conftest.py:"])
        assert "<input" not in panel


def test_suggestions_for_a_function_that_gives_resources(admin_client: Client) -> None:
    row = template(
        kind="function",
        uri_template="shop://o/{customer}",
        config='{"function": "shop.find"}',
    )
    save(admin_client, row, **{"suggestions-customer": "Ada"})
    assert row.json("suggestions") == {"customer": ["Ada"]}


def test_a_type_that_is_too_long_is_told(admin_client: Client) -> None:
    url = page_of(resource(config='{"text": "a"}'))
    found = errors(fill_in(admin_client, url, mime_type="a/b" + "; c=d" * 90))
    assert set(found) == {"mime_type"}
