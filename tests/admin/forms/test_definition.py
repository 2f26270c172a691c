from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.models import Prompt, Resource, ResourceTemplate, Tool
from mcp_app.publishing import overlays
from tests.admin.pages import errors, fill_in, form_of, form_page, page, saved


class Own:
    """It has no JSON form."""


pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]


@pytest.mark.parametrize(
    ("model", "typed", "field", "said"),
    [
        ("tool", {"name": "a b", "text": "a"}, "name", "“a b” cannot be a name"),
        ("tool", {"name": "search", "text": "a"}, "name", "declared in code already"),
        ("tool", {"name": "a", "text": "{{x}}"}, "text", "{{x}} is not a parameter."),
        (
            "tool",
            {"name": "a", "text": "{{ x.__class__ }}"},
            "text",
            "“{{ x.__class__ }}” is not understood.",
        ),
        ("tool", {"name": "a", "text": "{% debug %}"}, "text", "is not understood"),
        ("tool", {"name": "a", "text": "{{x|safe}}"}, "text", "is not understood"),
        (
            "tool",
            {"name": "a", "kind": "function", "function": "shop.fnd"},
            "function",
            "No function is registered as “shop.fnd”. Similar names: shop.find",
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
                "input_schema-json": '{"type": "object", "properties": {}}',
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
        ("tool", {"name": "a", "config": "{"}, "config", "Line 1: This is not JSON."),
        (
            "tool",
            {"name": "a", "config": '{"content": 1}'},
            "config",
            "“content” must be a list",
        ),
        ("tool", {"name": "a", "text": "a", "icons": "[1]"}, "icons", "JSON object"),
        (
            "tool",
            {"name": "a", "text": "a", "permission": "shop.view_ordr"},
            "permission",
            "“shop.view_ordr” does not exist.",
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
            {"name": "a", "config-0-text": "{{ordr}}", "arguments-0-name": "order"},
            "config",
            "{{ordr}} is not an argument. Did you mean {{order}}?",
        ),
        (
            "prompt",
            {"name": "a", "config-0-text": "a", "arguments-0-name": "two words"},
            "arguments",
            "“two words” cannot name an argument",
        ),
        (
            "prompt",
            {
                "name": "a",
                "kind": "function",
                "function": "shop.find",
                "arguments-0-name": "x",
            },
            "arguments",
            "x",
        ),
        (
            "resource",
            {"name": "a", "text": "a", "uri": "a"},
            "uri",
            "not an absolute URI",
        ),
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
    url = form_page(model, typed.get("kind", "text"))
    found = errors(fill_in(admin_client, url, **typed))
    assert set(found) == {field}
    assert said in found[field]
    for rows in (Tool, Resource, ResourceTemplate, Prompt):
        assert not rows.objects.exists()


@pytest.mark.parametrize(
    ("model", "kind", "missing"),
    [
        ("tool", "text", "Write the text of the answer."),
        ("resource", "text", "Write the text, or give a file."),
        ("resourcetemplate", "text", "Write the text of the answer."),
        ("prompt", "text", "Write at least one message."),
        ("tool", "function", "Choose a function."),
        ("prompt", "function", "Choose a function."),
    ],
)
def test_half_done_work_is_kept_and_cannot_be_published(
    admin_client: Client, model: str, kind: str, missing: str
) -> None:
    address = {
        "resource": {"uri": "x:a"},
        "resourcetemplate": {"uri_template": "x:{a}"},
    }
    typed = {"name": "a", **address.get(model, {})}
    assert saved(fill_in(admin_client, form_page(model, kind), **typed))
    row = apps.get_model("mcp_app", model).objects.get()
    assert row.json("config") == {}
    # It opens again, and says what is missing before anybody can publish.
    assert admin_client.get(page(model, "change", row.pk)).status_code == 200
    found = overlays.judge_row_content(row, row.working_content(), mcp).to_fix
    assert missing in [each.message for each in found]
    text = admin_client.get(page(model, "publish", row.pk)).content.decode()
    assert missing in unescape(text)
    assert "First fix the problems that must be fixed." in text


def test_the_kind_is_asked_although_other_fields_have_errors(
    admin_client: Client,
) -> None:
    typed = {"name": "a b", "text": "{{x}}"}
    found = errors(fill_in(admin_client, form_page("tool"), **typed))
    assert set(found) == {"name", "text"}


def test_errors_are_listed_at_the_top_with_links(admin_client: Client) -> None:
    typed = {"name": "a b", "text": "a", "input_schema-0-default": "x"}
    response = fill_in(admin_client, form_page("tool"), **typed)
    text = response.content.decode()
    assert "Please correct the 2 errors below." in text
    for link in ('href="#id_name"', 'href="#id_input_schema-0-name"'):
        assert link in text
    assert 'aria-invalid="true"' in text
    assert 'aria-describedby="id_name_helptext id_name_error"' in text


def test_a_permission_that_exists_is_kept(admin_client: Client) -> None:
    typed = {"name": "a", "text": "a", "permission": "auth.view_user"}
    assert saved(fill_in(admin_client, form_page("tool"), **typed))
    assert Tool.objects.get().permission == "auth.view_user"


def test_a_function_tool_needs_no_json(admin_client: Client) -> None:
    url = form_page("tool", "function")
    typed = {"name": "find_orders", "function": "shop.find"}
    assert saved(fill_in(admin_client, url, **typed))
    tool = Tool.objects.get()
    assert (tool.kind, json.loads(tool.config)) == (
        "function",
        {"function": "shop.find"},
    )
    assert tool.input_schema == ""
    form = form_of(admin_client.get(page("tool", "change", tool.pk)))
    assert form["function"].value() == "shop.find"
    choices = form.fields["function"].widget.choices
    assert ("shop.find", "shop.find: Find orders.") in choices
    assert ("shop.policy", "shop.policy") in choices


def test_a_function_that_vanished_is_still_shown(admin_client: Client) -> None:
    tool = Tool.objects.create(
        name="a", kind="function", config='{"function": "shop.gone"}'
    )
    url = page("tool", "change", tool.pk)
    response = admin_client.get(url)
    assert "shop.gone (no longer in the code)" in response.content.decode()
    found = errors(fill_in(admin_client, url))
    assert "No function is registered as “shop.gone”." in found["function"]


def test_a_function_whose_result_has_no_json_form_is_told(
    admin_client: Client,
) -> None:
    @mcp.function("shop.own")
    def own() -> Own:
        return Own()

    try:
        typed = {"name": "a", "function": "shop.own"}
        found = errors(fill_in(admin_client, form_page("tool", "function"), **typed))
    finally:
        del mcp.functions["shop.own"]
    assert "cannot be written as JSON" in found["function"]


def test_the_kind_of_a_row_never_changes(admin_client: Client) -> None:
    tool = Tool.objects.create(
        name="a", config='{"content": [{"type": "text", "text": "a"}]}'
    )
    url = page("tool", "change", tool.pk)
    assert saved(
        fill_in(
            admin_client, f"{url}?kind=function", kind="function", function="shop.find"
        )
    )
    tool.refresh_from_db()
    assert tool.kind == "text"
    assert "shop.find" not in tool.config


def test_an_unchanged_config_keeps_its_bytes(admin_client: Client) -> None:
    config = '{ "content": [ {"type":"text","text":"a"} ] }'
    tool = Tool.objects.create(name="a", config=config)
    url = page("tool", "change", tool.pk)
    assert saved(fill_in(admin_client, url, title="A"))
    tool.refresh_from_db()
    assert (tool.title, tool.config) == ("A", config)
