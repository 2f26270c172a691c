from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.models import Blob, Prompt
from mcp_app.models.fields import digest
from tests.admin.editors.prompts.test_arguments import LISTS
from tests.admin.pages import (
    add,
    errors,
    fill_in,
    fill_in_again,
    form_of,
    form_page,
    page,
    page_of,
    save,
    saved,
    shown_values,
    text_of,
)
from tests.published import published

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

PNG = b"\x89PNG\r\n\x1a\n"
EVIL = "</textarea><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def test_a_text_prompt_needs_no_json(admin_client: Client) -> None:
    typed = {
        "name": "answer",
        "title": "Answer a complaint",
        "config-0-text": "Order {{order}}.\r\nTone: {{tone}}",
        "config-1-role": "assistant",
        "config-1-text": "I will keep it short.",
        "arguments-0-name": "order",
        "arguments-0-title": "Order number",
        "arguments-0-description": "On the bill",
        "arguments-0-required": "on",
        "arguments-1-name": "tone",
    }
    prompt = add(admin_client, Prompt, **typed)
    first = {"type": "text", "text": "Order {{order}}.\nTone: {{tone}}"}
    second = {"type": "text", "text": "I will keep it short."}
    assert prompt.json("config") == {
        "messages": [
            {"role": "user", "content": first},
            {"role": "assistant", "content": second},
        ]
    }
    said = {"title": "Order number", "description": "On the bill", "required": True}
    assert prompt.json("arguments") == [{"name": "order", **said}, {"name": "tone"}]
    shown = shown_values(admin_client.get(page_of(prompt)))
    assert shown["config-0-text"] == "Order {{order}}.\r\nTone: {{tone}}"
    assert shown["arguments-0-title"] == "Order number"


RICH = (
    '{"messages": [{"role": "user", "content": {"type": "text", "text": "a",'
    ' "annotations": {"priority": 1}}}]}'
)


def test_richer_contents_are_edited_as_json(admin_client: Client) -> None:
    prompt = Prompt.objects.create(name="a", config=RICH)
    response = admin_client.get(page_of(prompt))
    assert "(annotations in message 1)" in response.content.decode()
    assert json.loads(shown_values(response)["config-json"]) == json.loads(RICH)
    save(admin_client, prompt, title="A")
    assert (prompt.title, prompt.config) == ("A", RICH)


def test_arguments_keep_their_json_where_nobody_edited_them(
    admin_client: Client,
) -> None:
    for number, arguments in enumerate(LISTS):
        stored = json.dumps(arguments) if arguments else ""
        prompt = Prompt.objects.create(name=f"a{number}", arguments=stored)
        save(admin_client, prompt, title="A")
        assert prompt.arguments == stored


def test_a_wrong_message_is_told_beside_it(admin_client: Client) -> None:
    typed = {
        "name": "a",
        "arguments-0-name": "order",
        "config-0-text": "{{order}}",
        "config-1-text": "{{ordr}}",
    }
    response = fill_in(admin_client, form_page("prompt"), **typed)
    given = form_of(response)["config"].data
    assert [bool(form.errors) for form in given.submitted_rows.forms] == [False, True]
    said = "{{ordr}} is not an argument. Did you mean {{order}}?"
    assert said in given.submitted_rows.forms[1].errors["text"][0]
    assert 'href="#id_config-1-text"' in response.content.decode()


def test_a_name_that_is_taken_is_told_once(admin_client: Client) -> None:
    typed = {"name": "taken", "config-0-text": "{{x}}"}
    mcp.prompt("taken")(lambda: "a")
    try:
        found = errors(fill_in(admin_client, form_page("prompt"), **typed))
    finally:
        del mcp.prompts["taken"]
    assert "declared in code already" in found["name"]
    assert "{{x}} is not an argument." in found["config"]
    assert "declared" not in found["config"]


FILE = {"config-0-kind": "file"}
LINK = {"config-0-kind": "link"}
CONTENTS = {"config-0-kind": "contents"}
GONE = {"config-0-upload": "0" * 64, "config-0-mime_type": "image/png"}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"config-0-role": "assistant"}, "Write the text of the message."),
        ({"config-0-text": "\u202e"}, "U+202E"),
        (FILE, "Choose a file."),
        (LINK, "Fill in the address of the resource."),
        (LINK, "Fill in the name of the link."),
        (CONTENTS, "Fill in the address of the resource."),
        (
            {**CONTENTS, "config-0-uri": "a", "config-0-text": "b"},
            "not an absolute URI",
        ),
        (
            {**FILE, "config-0-upload": "../etc/passwd"},
            "This is not the name of a file.",
        ),
        ({**FILE, **GONE}, "No uploaded file has the digest"),
    ],
)
def test_what_makes_no_message(
    admin_client: Client, typed: dict[str, str], said: str
) -> None:
    found = errors(fill_in(admin_client, form_page("prompt"), name="a", **typed))
    assert set(found) == {"config"}
    assert said in found["config"]


def test_every_kind_of_message(admin_client: Client) -> None:
    typed: dict[str, Any] = {
        "name": "a",
        "config-TOTAL_FORMS": "4",
        "config-0-kind": "file",
        "config-0-file": SimpleUploadedFile("a.png", PNG, "image/png"),
        # What another kind has left behind is not read.
        "config-0-text": "Hello",
        "config-1-kind": "contents",
        "config-1-uri": "shop://policy",
        "config-1-text": "30 days",
        "config-1-mime_type": "text/markdown",
        "config-2-kind": "contents",
        "config-2-uri": "shop://logo",
        "config-2-file": SimpleUploadedFile("a.pdf", b"%PDF", "application/pdf"),
        "config-3-kind": "link",
        "config-3-uri": "shop://terms",
        "config-3-name": "terms",
        "config-3-title": "Terms",
    }
    prompt = add(admin_client, Prompt, **typed)
    contents = [each["content"] for each in prompt.json("config")["messages"]]
    policy = {"uri": "shop://policy", "mimeType": "text/markdown", "text": "30 days"}
    logo = {"uri": "shop://logo", "mimeType": "application/pdf"}
    link = {"uri": "shop://terms", "name": "terms", "title": "Terms"}
    assert contents == [
        {"type": "image", "upload": digest(PNG), "mimeType": "image/png"},
        {"type": "resource", "resource": policy},
        {"type": "resource", "resource": {**logo, "upload": digest(b"%PDF")}},
        {"type": "resource_link", **link},
    ]
    assert {bytes(blob.content) for blob in Blob.objects.all()} == {PNG, b"%PDF"}

    # The files stay, and a text can take the place of one.
    before = prompt.config
    save(admin_client, prompt, title="A")
    assert prompt.config == before
    save(admin_client, prompt, **{"config-2-text": "b", "config-2-mime_type": ""})
    third = prompt.json("config")["messages"][2]["content"]
    assert third["resource"] == {"uri": "shop://logo", "text": "b"}


def test_a_message_is_an_image_or_audio(admin_client: Client) -> None:
    typed = {
        "name": "a",
        "config-0-kind": "file",
        "config-0-file": SimpleUploadedFile("a.pdf", b"%PDF", "application/pdf"),
        "config-1-kind": "contents",
        "config-1-uri": "x:a",
        "config-1-text": "a",
        "config-1-file": SimpleUploadedFile("b.pdf", b"%PDF", "application/pdf"),
    }
    found = errors(fill_in(admin_client, form_page("prompt"), **typed))
    assert "The file is application/pdf. Only images and audio" in found["config"]
    assert "Give a text or a file, not both." in found["config"]
    assert not Blob.objects.exists()


PREVIEW = {
    "name": "a",
    "config-0-text": "Order {{order}}, {{tone}}.",
    "arguments-0-name": "order",
    "arguments-1-name": "tone",
    "show-preview": "Refresh the preview",
}


def test_the_preview_needs_no_scripts_and_saves_nothing(admin_client: Client) -> None:
    url = form_page("prompt")
    response = fill_in(admin_client, url, **PREVIEW)
    assert errors(response) == {}
    text = response.content.decode()
    assert "Order , ." in text
    assert "2 values are empty" in text
    assert not Prompt.objects.exists()
    typed = {"preview-order": "{{tone}} 1", "show-preview": "Refresh"}
    again = fill_in_again(admin_client, url, response, **typed)
    # What a value contains is never looked at again.
    assert "Order {{tone}} 1, ." in again.content.decode()
    assert shown_values(again)["preview-order"] == "{{tone}} 1"
    assert saved(fill_in_again(admin_client, url, again))


def test_the_preview_says_what_is_wrong(admin_client: Client) -> None:
    url = form_page("prompt")
    wrong = {**PREVIEW, "config-0-text": "{{ordr}}"}
    text = fill_in(admin_client, url, **wrong).content.decode()
    assert "Correct the arguments and the messages first." in text
    unused = {**PREVIEW, "config-0-text": "{{ order }}"}
    text = fill_in(admin_client, url, **unused).content.decode()
    assert "The argument tone is never used." in text
    assert "The argument order is never used." not in text


def test_a_preview_that_grows_too_long_is_told(admin_client: Client) -> None:
    many = "{{order}}" * 2000
    typed = {**PREVIEW, "config-0-text": many, "preview-order": "x" * 1000}
    text = fill_in(admin_client, form_page("prompt"), **typed).content.decode()
    assert "With these values the text is longer than" in text


def test_the_preview_of_a_saved_prompt_is_there_at_once(admin_client: Client) -> None:
    prompt = Prompt.objects.create(
        name="a",
        arguments='[{"name": "a"}]',
        config='{"messages": [{"content": {"type": "text", "text": "x{{a}}y"}}]}',
    )
    assert ">xy</pre>" in text_of(admin_client, prompt)


def test_scripts_get_the_preview_alone(admin_client: Client) -> None:
    url = form_page("prompt")
    sent = {**shown_values(admin_client.get(url)), **PREVIEW, "preview-order": EVIL}
    response = admin_client.post(f"{page('prompt', 'preview')}?part=preview", sent)
    text = response.content.decode()
    assert response.status_code == 200
    assert "Order &lt;/textarea&gt;&lt;script&gt;" in text
    assert "<script>" not in text
    assert "<html" not in text


def test_markup_stays_text(admin_client: Client) -> None:
    link = {"type": "resource_link", "uri": "x:a", "name": EVIL, "title": EVIL}
    resource = {"type": "resource", "resource": {"uri": "x:a", "text": EVIL}}
    blocks = ({"type": "text", "text": EVIL}, link, resource)
    prompt = Prompt.objects.create(
        name="a",
        title=EVIL,
        arguments=json.dumps([{"name": "a", "title": EVIL, "description": EVIL}]),
        config=json.dumps({"messages": [{"content": each} for each in blocks]}),
    )
    url = page_of(prompt)
    for response in (
        admin_client.get(url),
        fill_in(admin_client, url, **{"show-preview": "Refresh"}),
        fill_in(admin_client, url, **{"arguments-0-name": EVIL}),
    ):
        text = response.content.decode()
        assert "<script>alert" not in text
        assert "<img src=x" not in text


def test_the_arguments_of_a_function_are_its_own(admin_client: Client) -> None:
    prompt = Prompt.objects.create(
        name="a", kind="function", config='{"function": "shop.find"}'
    )
    shown = shown_values(admin_client.get(page_of(prompt)))
    assert shown["arguments-as"] == "own"
    names = [shown["arguments-0-name"], shown["arguments-1-name"]]
    assert names == ["customer", "limit"]
    typed = {"arguments-0-title": "Customer", "arguments-0-suggestions": "Ada"}
    save(admin_client, prompt, **typed)
    customer = {"name": "customer", "title": "Customer", "required": True}
    assert prompt.json("arguments") == [
        {**customer, "suggestions": ["Ada"]},
        {"name": "limit"},
    ]


def test_suggestions_are_written_kept_and_shown(admin_client: Client) -> None:
    typed = {
        "name": "answer",
        "description": "Answers.",
        "config-0-text": "Tone: {{tone}}",
        "arguments-0-name": "tone",
        "arguments-0-suggestions": "kind\r\nvery brief",
    }
    prompt = add(admin_client, Prompt, **typed)
    suggesting = [{"name": "tone", "suggestions": ["kind", "very brief"]}]
    assert prompt.json("arguments") == suggesting
    response = admin_client.get(page_of(prompt))
    shown = shown_values(response)
    assert shown["arguments-0-suggestions"] == "kind\r\nvery brief"
    assert json.loads(shown["arguments-json"]) == suggesting
    assert '<option value="very brief">' in response.content.decode()
    published_page = text_of(admin_client, page_of(prompt, "publish"))
    assert "tone: suggestions: " in published_page

    published(prompt)
    save(admin_client, prompt, **{"arguments-0-suggestions": "kind"})
    assert prompt.state == "changed"
    assert prompt.published is not None
    assert prompt.published.read()["arguments"] == suggesting


def test_wrong_suggestions_are_told_at_their_field(admin_client: Client) -> None:
    typed = {
        "name": "answer",
        "config-0-text": "a",
        "arguments-0-name": "tone",
        "arguments-0-suggestions": "kind\r\n" + "x" * 201,
    }
    response = fill_in(admin_client, form_page("prompt"), **typed)
    found = errors(response)
    assert set(found) == {"arguments"}
    assert "has 201 characters; a suggestion has at most 200." in found["arguments"]
    assert 'href="#id_arguments-0-suggestions"' in response.content.decode()
    # Nothing is lost.
    shown = shown_values(response)["arguments-0-suggestions"]
    assert shown.split() == typed["arguments-0-suggestions"].split()
    assert not Prompt.objects.exists()
