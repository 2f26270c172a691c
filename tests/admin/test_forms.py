from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from mcp_app.models import Blob, Prompt, Resource, ResourceTemplate, Tool
from mcp_app.models.fields import digest
from tests.admin.pages import errors, fill_in, form_of, page, saved

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_text_prompt_needs_no_json(admin_client: Client) -> None:
    assert saved(
        fill_in(
            admin_client,
            page("prompt", "add"),
            name="answer",
            title="Answer a complaint",
            text="Order {{order}}.\r\nTone: {{tone}}",
            arguments="order* (Order number): On the bill\r\ntone",
        )
    )
    prompt = Prompt.objects.get()
    assert json.loads(prompt.config) == {
        "messages": [
            {
                "role": "user",
                "content": {"type": "text", "text": "Order {{order}}.\nTone: {{tone}}"},
            }
        ]
    }
    assert prompt.json("arguments") == [
        {
            "name": "order",
            "title": "Order number",
            "description": "On the bill",
            "required": True,
        },
        {"name": "tone"},
    ]
    form = form_of(admin_client.get(page("prompt", "change", prompt.pk)))
    assert form["text"].value() == "Order {{order}}.\nTone: {{tone}}"
    assert form["arguments"].value() == ("order* (Order number): On the bill\ntone")
    assert form["config"].value() == ""


def test_a_text_resource_needs_no_json(admin_client: Client) -> None:
    url = page("resource", "add")
    typed = {"name": "Returns", "uri": "shop://returns", "text": "30 dáys"}
    assert saved(fill_in(admin_client, url, **typed))
    resource = Resource.objects.get()
    assert json.loads(resource.config) == {"text": "30 dáys"}
    assert (resource.mime_type, resource.size) == ("text/plain", 8)


def test_a_function_tool_needs_no_json(admin_client: Client) -> None:
    url = page("tool", "add")
    typed = {"name": "find_orders", "kind": "function", "function": "shop.find"}
    assert saved(fill_in(admin_client, url, **typed))
    tool = Tool.objects.get()
    assert json.loads(tool.config) == {"function": "shop.find"}
    assert tool.input_schema == ""
    form = form_of(admin_client.get(page("tool", "change", tool.pk)))
    assert form["function"].value() == "shop.find"
    choices = form.fields["function"].widget.choices
    assert ("shop.find", "shop.find: Find orders.") in choices
    assert ("shop.policy", "shop.policy") in choices


def test_a_template_needs_no_json(admin_client: Client) -> None:
    url = page("resourcetemplate", "add")
    typed = {"name": "Order", "uri_template": "shop://o/{n}", "text": "Order {{n}}"}
    assert saved(fill_in(admin_client, url, **typed))
    assert ResourceTemplate.objects.get().json("config") == {"text": "Order {{n}}"}


@pytest.mark.parametrize(
    ("model", "typed", "field", "said"),
    [
        ("tool", {"name": "a b", "text": "a"}, "name", "“a b” cannot be a name"),
        ("tool", {"name": "search", "text": "a"}, "name", "declared in code already"),
        ("tool", {"name": "a"}, "text", "Write the text of the answer."),
        ("tool", {"name": "a", "text": "{{x}}"}, "text", "{{x}} is not a parameter."),
        (
            "tool",
            {"name": "a", "text": "{{ x.__class__ }}"},
            "text",
            "“{{ x.__class__ }}” is not understood.",
        ),
        ("tool", {"name": "a", "text": "{% debug %}"}, "text", "is not understood"),
        ("tool", {"name": "a", "text": "{{x|safe}}"}, "text", "is not understood"),
        ("tool", {"name": "a", "kind": "function"}, "function", "Choose a function."),
        (
            "tool",
            {"name": "a", "kind": "function", "function": "shop.fnd"},
            "function",
            "No function is registered as “shop.fnd”. There is: shop.find",
        ),
        (
            "tool",
            {"name": "a", "kind": "function", "function": "os.system"},
            "function",
            "No function is registered as “os.system”.",
        ),
        (
            "tool",
            {
                "name": "a",
                "kind": "function",
                "function": "shop.find",
                "input_schema": '{"type": "object", "properties": {}}',
            },
            "input_schema",
            "customer",
        ),
        (
            "tool",
            {"name": "a", "text": "a", "config": '{"content": []}'},
            "config",
            "not both",
        ),
        ("tool", {"name": "a", "config": "{"}, "config", "not JSON"),
        ("tool", {"name": "a", "config": "{}"}, "config", "“content” must be a list"),
        ("tool", {"name": "a", "text": "a", "icons": "[1]"}, "icons", "JSON object"),
        (
            "tool",
            {"name": "a", "text": "a", "permission": "shop.view_ordr"},
            "permission",
            "There is no permission “shop.view_ordr”.",
        ),
        (
            "tool",
            {"name": "a", "text": "a", "permission": "view"},
            "permission",
            "app_label.codename",
        ),
        (
            "tool",
            {"name": "a", "text": "a", "description": "Hi\U000e0049"},
            "description",
            "U+E0049",
        ),
        (
            "prompt",
            {"name": "a", "text": "{{ordr}}", "arguments": "order"},
            "text",
            "{{ordr}} is not an argument. Did you mean {{order}}?",
        ),
        (
            "prompt",
            {"name": "a", "text": "a", "arguments": "two words"},
            "arguments",
            "is not understood",
        ),
        (
            "prompt",
            {
                "name": "a",
                "kind": "function",
                "function": "shop.find",
                "arguments": "x",
            },
            "arguments",
            "x",
        ),
        ("resource", {"name": "a", "text": "a", "uri": "a"}, "uri", "no absolute URI"),
        ("resource", {"name": "a", "uri": "x:a"}, "text", "Write the text"),
        (
            "resourcetemplate",
            {"name": "a", "uri_template": "x:{a}", "text": "{{b}}"},
            "text",
            "{{b}} is not a variable.",
        ),
        (
            "resourcetemplate",
            {
                "name": "a",
                "uri_template": "x:{order}",
                "kind": "function",
                "function": "shop.find",
            },
            "uri_template",
            "customer",
        ),
    ],
)
def test_errors_appear_beside_their_field(
    admin_client: Client, model: str, typed: dict[str, Any], field: str, said: str
) -> None:
    found = errors(fill_in(admin_client, page(model, "add"), **typed))
    assert set(found) == {field}
    assert said in found[field]
    for rows in (Tool, Resource, ResourceTemplate, Prompt):
        assert not rows.objects.exists()


def test_the_kind_is_asked_although_other_fields_have_errors(
    admin_client: Client,
) -> None:
    typed = {"name": "a b", "text": "{{x}}"}
    found = errors(fill_in(admin_client, page("tool", "add"), **typed))
    assert set(found) == {"name", "text"}


def test_a_permission_that_exists_is_kept(admin_client: Client) -> None:
    typed = {"name": "a", "text": "a", "permission": "auth.view_user"}
    assert saved(fill_in(admin_client, page("tool", "add"), **typed))
    assert Tool.objects.get().permission == "auth.view_user"


def test_richer_contents_are_edited_as_json(admin_client: Client) -> None:
    config = (
        '{"messages": [{"role": "user", "content": {"type": "text", "text": "a"}},'
        ' {"role": "assistant", "content": {"type": "text", "text": "b"}}]}'
    )
    prompt = Prompt.objects.create(name="a", config=config)
    url = page("prompt", "change", prompt.pk)
    form = form_of(admin_client.get(url))
    assert (form["text"].value(), form["config"].value()) == (None, config)
    assert saved(fill_in(admin_client, url, title="A"))
    prompt.refresh_from_db()
    assert (prompt.title, prompt.config) == ("A", config)


def test_arguments_that_say_more_than_lines_are_kept(admin_client: Client) -> None:
    arguments = '[{"required": false, "name": "a", "description": "x\\ny"}]'
    prompt = Prompt.objects.create(name="a", arguments=arguments)
    url = page("prompt", "change", prompt.pk)
    assert saved(fill_in(admin_client, url, text="{{a}}"))
    prompt.refresh_from_db()
    assert prompt.arguments == arguments


def test_a_function_that_vanished_is_still_shown(admin_client: Client) -> None:
    tool = Tool.objects.create(
        name="a", kind="function", config='{"function": "shop.gone"}'
    )
    url = page("tool", "change", tool.pk)
    response = admin_client.get(url)
    assert "shop.gone (no longer in the code)" in response.content.decode()
    found = errors(fill_in(admin_client, url))
    assert "No function is registered as “shop.gone”." in found["function"]


def test_a_file_is_uploaded_kept_and_replaced(admin_client: Client) -> None:
    file = SimpleUploadedFile("logo.png", PNG, "image/png")
    url = page("resource", "add")
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
    assert saved(fill_in(admin_client, page("resource", "add"), **typed))
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
    found = errors(fill_in(admin_client, page("resource", "add"), **typed))
    assert found == {"upload": "Give a text or a file, not both."}
    assert not Blob.objects.exists()


@override_settings(MCP={"LIMITS": {"body": 10}})
def test_a_file_has_a_limit(admin_client: Client) -> None:
    file = SimpleUploadedFile("a.bin", b"x" * 11)
    typed = {"name": "a", "uri": "x:a", "upload": file}
    found = errors(fill_in(admin_client, page("resource", "add"), **typed))
    assert "The file is 11" in found["upload"]
    assert not Blob.objects.exists()


def test_a_schema_and_hints_come_back(admin_client: Client) -> None:
    typed = {
        "name": "greet",
        "text": "Hello, {{who}}!",
        "input_schema": '{"type": "object", "properties": {"who": {}}}',
        "read_only": "true",
    }
    assert saved(fill_in(admin_client, page("tool", "add"), **typed))
    row = Tool.objects.get()
    assert (row.read_only, row.destructive) == (True, None)
    form = form_of(admin_client.get(page("tool", "change", row.pk)))
    assert form["input_schema"].value() == typed["input_schema"]


def test_what_someone_else_saved_meanwhile_is_not_overwritten(
    admin_client: Client, admin_user: Any
) -> None:
    tool = Tool.objects.create(name="a", config='{"content": []}')
    url = page("tool", "change", tool.pk)
    opened = form_of(admin_client.get(url))["opened_version"].value()
    tool.title, tool.updated_by = "Theirs", admin_user
    tool.save()
    found = errors(
        fill_in(admin_client, url, text="a", title="Mine", opened_version=opened)
    )
    assert "admin saved this at" in found["__all__"]
    tool.refresh_from_db()
    assert tool.title == "Theirs"
