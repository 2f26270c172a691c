from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool
from mcp_app.publishing import row_findings
from tests.admin.pages import (
    add,
    errors,
    fill_in,
    fill_in_again,
    form_of,
    form_page,
    page_of,
    save,
    saved,
    shown_values,
    text_of,
)


class Own:
    """It has no JSON form."""


CONFIG = '{ "content": [ {"type":"text","text":"a"} ] }'
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]


WRONG: list[tuple[str, dict[str, str], str, str]] = [
    ("tool", {"name": "a b", "text": "a"}, "name", "“a b” cannot be a name"),
    ("tool", {"name": "search", "text": "a"}, "name", "declared in code already"),
    ("tool", {"text": "{{x}}"}, "text", "{{x}} is not a parameter."),
    ("tool", {"text": "{{ x.__a__ }}"}, "text", "“{{ x.__a__ }}” is not understood."),
    ("tool", {"text": "{% debug %}"}, "text", "is not understood"),
    ("tool", {"text": "{{x|safe}}"}, "text", "is not understood"),
    ("tool", {"function": "shop.fnd"}, "function", "Similar names: shop.find"),
    ("tool", {"function": "os.system"}, "function", "No function is registered as “os"),
    (
        "tool",
        {"function": "shop.find", "input_schema-json": '{"type": "object"}'},
        "input_schema",
        "customer",
    ),
    ("tool", {"text": "a", "config": '{"content": []}'}, "config", "not both"),
    ("tool", {"config": "{"}, "config", "Line 1: This is not JSON."),
    ("tool", {"config": '{"content": 1}'}, "config", "“content” must be a list"),
    ("tool", {"text": "a", "icons": "[1]"}, "icons", "JSON object"),
    ("tool", {"permission": "shop.view_ordr"}, "permission", "does not exist."),
    ("tool", {"permission": "view"}, "permission", "app_label.codename"),
    ("tool", {"description": "Hi\U000e0049"}, "description", "U+E0049"),
    (
        "prompt",
        {"config-0-text": "{{ordr}}", "arguments-0-name": "order"},
        "config",
        "{{ordr}} is not an argument. Did you mean {{order}}?",
    ),
    ("prompt", {"arguments-0-name": "a b"}, "arguments", "“a b” cannot name an arg"),
    ("prompt", {"function": "shop.find", "arguments-0-name": "x"}, "arguments", "x"),
    ("resource", {"text": "a", "uri": "a"}, "uri", "not an absolute URI"),
    (
        "resourcetemplate",
        {"uri_template": "x:{a}", "text": "{{b}}"},
        "text",
        "{{b}} is not a variable.",
    ),
    (
        "resourcetemplate",
        {"uri_template": "x:{order}", "function": "shop.find"},
        "uri_template",
        "customer",
    ),
]


@pytest.mark.parametrize(("model", "typed", "field", "said"), WRONG)
def test_errors_appear_beside_their_field(
    admin_client: Client, model: str, typed: dict[str, Any], field: str, said: str
) -> None:
    url = form_page(model, "function" if "function" in typed else "text")
    found = errors(fill_in(admin_client, url, **{"name": "a", **typed}))
    assert set(found) == {field}
    assert said in found[field]
    for rows in (Tool, Resource, ResourceTemplate, Prompt):
        assert not rows.objects.exists()


@pytest.mark.parametrize(
    ("model", "kind", "missing"),
    [
        (Tool, "text", "Write the text of the answer."),
        (Resource, "text", "Write the text, or give a file."),
        (ResourceTemplate, "text", "Write the text of the answer."),
        (Prompt, "text", "Write at least one message."),
        (Tool, "function", "Choose a function."),
        (Prompt, "function", "Choose a function."),
    ],
)
def test_half_done_work_is_kept_and_cannot_be_published(
    admin_client: Client, model: type[DefinitionRow], kind: str, missing: str
) -> None:
    address: dict[type[Any], dict[str, str]] = {
        Resource: {"uri": "x:a"},
        ResourceTemplate: {"uri_template": "x:{a}"},
    }
    row = add(admin_client, model, kind, name="a", **address.get(model, {}))
    assert row.json("config") == {}
    # It opens again, and says what is missing before anybody can publish.
    assert admin_client.get(page_of(row)).status_code == 200
    found = row_findings.judge_row_content(row, row.working_content(), mcp).to_fix
    assert missing in [each.message for each in found]
    text = text_of(admin_client, page_of(row, "publish"))
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
    text = fill_in(admin_client, form_page("tool"), **typed).content.decode()
    assert "Please correct the 2 errors below." in text
    for link in ('href="#id_name"', 'href="#id_input_schema-0-name"'):
        assert link in text
    assert 'aria-invalid="true"' in text
    assert 'aria-describedby="id_name_helptext id_name_error"' in text


def test_a_function_tool_needs_no_json(admin_client: Client) -> None:
    tool = add(admin_client, Tool, "function", name="find", function="shop.find")
    assert (tool.kind, tool.json("config")) == ("function", {"function": "shop.find"})
    assert tool.input_schema == ""
    form = form_of(admin_client.get(page_of(tool)))
    assert form["function"].value() == "shop.find"
    choices = form.fields["function"].widget.choices
    assert ("shop.find", "shop.find: Find orders.") in choices
    assert ("shop.policy", "shop.policy") in choices


def test_a_function_that_vanished_is_still_shown(admin_client: Client) -> None:
    tool = Tool.objects.create(
        name="a", kind="function", config='{"function": "shop.gone"}'
    )
    assert "shop.gone (no longer in the code)" in text_of(admin_client, tool)
    found = errors(fill_in(admin_client, page_of(tool)))
    assert "No function is registered as “shop.gone”." in found["function"]


def test_a_function_whose_result_has_no_json_form_is_told(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "functions", mcp.functions.copy())

    @mcp.function("shop.own")
    def own() -> Own:
        return Own()

    typed = {"name": "a", "function": "shop.own"}
    found = errors(fill_in(admin_client, form_page("tool", "function"), **typed))
    assert "cannot be written as JSON" in found["function"]


def test_the_kind_of_a_row_never_changes(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a", config=CONFIG)
    typed = {"kind": "function", "function": "shop.find"}
    assert saved(fill_in(admin_client, f"{page_of(tool)}?kind=function", **typed))
    tool.refresh_from_db()
    assert (tool.kind, tool.config) == ("text", CONFIG)
    # What nobody changed keeps its bytes.
    save(admin_client, tool, title="A")
    assert (tool.title, tool.config) == ("A", CONFIG)


def test_a_name_follows_the_title_until_it_is_saved(admin_client: Client) -> None:
    url = form_page("tool")
    refused = fill_in(admin_client, url, title="Aaa first", timeout="0")
    assert shown_values(refused)["name"] == ""
    assert 'data-prepopulated-fields="[]"' in refused.content.decode()
    typed = {"title": "Long words " * 8, "timeout": ""}
    assert saved(fill_in_again(admin_client, url, refused, **typed))
    assert 50 < len(Tool.objects.get().name) <= 64
