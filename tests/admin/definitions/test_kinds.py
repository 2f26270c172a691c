from __future__ import annotations

import pytest
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.models import Tool
from tests.admin.pages import (
    Staff,
    form_of,
    form_page,
    grant,
    page,
    page_of,
    saved,
    text_of,
)

pytestmark = pytest.mark.django_db

MODELS = ["tool", "resource", "resourcetemplate", "prompt"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.usefixtures("functions")
def test_what_stands_behind_it_is_asked_first(admin_client: Client, model: str) -> None:
    text = text_of(admin_client, page(model, "add"))
    assert "You cannot change this later." in text
    for kind in ("text", "function"):
        assert f'href="?kind={kind}"' in text
        assert form_of(admin_client.get(form_page(model, kind)))["kind"].value() == kind


def test_the_choice_keeps_what_the_address_says(admin_client: Client) -> None:
    text = text_of(admin_client, f"{page('tool', 'add')}?title=A&kind=x")
    assert 'href="?title=A&amp;kind=text"' in text
    form = form_of(admin_client.get(f"{page('tool', 'add')}?title=A&kind=text"))
    assert form["title"].value() == "A"


def test_functions_cannot_be_chosen_where_there_are_none(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "functions", {})
    text = text_of(admin_client, page("tool", "add"))
    assert 'href="?kind=function"' not in text
    assert "No function is registered." in text
    assert "@mcp.function(&quot;shop.find_orders&quot;)" in text


def test_a_form_that_comes_without_a_kind_is_about_a_text(admin_client: Client) -> None:
    sent = {"name": "a", "text": "a", "position": "0"}
    assert saved(admin_client.post(page("tool", "add"), sent))
    assert Tool.objects.get().kind == "text"


def test_who_may_not_add_is_asked_nothing(staff: Staff) -> None:
    client = staff("view_tool")
    assert client.get(page("tool", "add")).status_code == 403
    assert client.get(form_page("tool")).status_code == 403
    assert client.post(page("tool", "preview")).status_code == 403


def test_parts_of_a_form_are_answered_alone(admin_client: Client) -> None:
    config = '{"content": [{"type": "text", "text": "a"}]}'
    tool = Tool.objects.create(name="a", config=config)
    url = f"{page_of(tool, 'preview')}?part=input_schema"
    typed = {
        "input_schema-as": "json",
        "input_schema-json": '{"type": "object", "properties": {"x": {}}}',
        "input_schema-shown": "",
    }
    response = admin_client.post(url, typed)
    text = response.content.decode()
    assert response.status_code == 200
    assert 'name="input_schema-0-name" value="x"' in text
    tool.refresh_from_db()
    assert tool.input_schema == ""


@pytest.mark.parametrize("part", ["name", "permission", "preview"])
def test_no_other_part_is_answered(admin_client: Client, part: str) -> None:
    url = f"{page('tool', 'preview')}?part={part}"
    assert admin_client.post(url, {}).status_code == 404


def test_parts_are_for_those_who_may_save(staff: Staff) -> None:
    tool = Tool.objects.create(name="a")
    url = f"{page_of(tool, 'preview')}?part=input_schema"
    client = staff("view_tool", "add_tool")
    assert client.post(url, {}).status_code == 403
    grant("change_tool")
    assert client.post(url, {}).status_code == 200
    assert client.get(url).status_code == 403
    gone = f"{page('tool', 'preview', 7)}?part=input_schema"
    assert client.post(gone, {}).status_code == 404
    assert Client().post(url, {}).status_code == 302


def test_return_in_a_field_saves(admin_client: Client) -> None:
    """The first button of a form is the one that Return presses."""
    text = text_of(admin_client, form_page("tool"))
    form = text[text.index('id="tool_form"') :]
    first = form[form.index('type="submit"') :]
    assert first.startswith('type="submit" name="_save"')
