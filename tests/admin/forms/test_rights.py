"""Fields that somebody may not change are left as they are."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from pytest_django import Settings

from mcp_app.admin.definitions.definition_admin import DefinitionAdmin
from mcp_app.admin.forms import form_of
from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool
from tests.admin.pages import Staff, form_page, page_of, save, shown_values
from tests.kinds.query import shop

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

TEXT = '{ "content": [{"type": "text", "text": "a"}] }'
MESSAGE = '{ "messages": [{"content": {"type": "text", "text": "a"}}] }'
HINTS = {"read_only": True, "destructive": True}
POLICY = {"kind": "function", "config": '{ "function": "shop.policy" }'}
ROWS: list[tuple[type[Any], dict[str, Any]]] = [
    (Tool, {"config": TEXT, "input_schema": '{ "type": "object" }', **HINTS}),
    (Tool, {**POLICY, "open_world": True}),
    (Resource, {"uri": "x:a", "config": '{ "text": "a" }', "mime_type": "text/csv"}),
    (Resource, {"uri": "x:a", **POLICY}),
    (
        Resource,
        {"uri": "x:a", "config": '{ "text": "a" }', "annotations": '{ "priority": 1 }'},
    ),
    (ResourceTemplate, {"uri_template": "x:{a}", "config": '{ "text": "{{a}}" }'}),
    (Prompt, {"config": MESSAGE, "arguments": '[ {"name": "a"} ]'}),
    (Prompt, POLICY),
]
COMMON = ("icons", "kind", "opened_fields", "opened_version")
SENT = {"name": "a", "position": "0", "ttl_ms": "0", "opened_version": "0"}


def form_without(row: DefinitionRow, *names: str, **sent: str) -> Any:
    """Return what was sent in a form whose page only shows these fields."""

    class Restricted(DefinitionAdmin[Any]):
        readonly_fields = [*DefinitionAdmin.readonly_fields, *names]

    request = RequestFactory().post("/")
    request.user = User.objects.create_superuser("ana")
    form = Restricted(type(row), admin.site).get_form(request, row, change=True)
    return form({**SENT, **sent}, instance=row)


@pytest.mark.parametrize(("model", "columns"), ROWS)
def test_what_is_not_asked_is_not_changed(
    model: type[DefinitionRow], columns: dict[str, Any]
) -> None:
    row = model._default_manager.create(name="a", tags="x", **columns)
    before = {
        field.attname: getattr(row, field.attname) for field in model._meta.fields
    }
    declared = form_of(model, row.kind).declared_fields
    form = form_without(
        row,
        *(each for each in declared if each not in COMMON),
        *(each for each in columns if each not in ("kind", "read_only")),
        "tags",
        title="A",
        tags="y",
        text="evil",
        function="shop.find",
        changes="deletes",
        audience="user",
        config="{}",
        **{
            "changes-asked": "1",
            "config-as": "json",
            "config-json": "{}",
            "input_schema-as": "json",
            "input_schema-json": "{}",
        },
    )
    assert form.is_valid(), form.errors
    form.save()
    row.refresh_from_db()
    after = {name: getattr(row, name) for name in before}
    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"size"} <= {"title", "lock_version", "updated", "content_hash"}
    assert row.title == "A"


def test_one_of_two_choices_can_be_asked_alone() -> None:
    row = Resource.objects.create(
        name="a", uri="x:a", config='{"text": "a"}', annotations='{"priority": 0.8}'
    )
    sent = {"uri": "x:a", "text": "a", "audience": "user"}
    shown = '{\n  "priority": 0.8\n}'
    form = form_without(row, "importance", annotations=shown, **sent)
    assert form.is_valid(), form.errors
    assert form.save().json("annotations") == {"priority": 0.8, "audience": ["user"]}


SITES: Final = {"peer": {"url": "https://peer.example"}}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "query": {"model": "drill.Order", "fields": ["number"]},
    "http": {"site": "peer", "path": "/a"},
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_each_field_of_what_stands_behind_needs_its_right(
    admin_client: Client,
    staff: Staff,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    settings.MCP = {**settings.MCP, "HTTP": SITES}
    monkeypatch.setattr(mcp, "open_models", shop.shop())
    row = Tool.objects.create(name="a", kind=kind, config=json.dumps(CONFIGS[kind]))
    url = page_of(row)
    whole = shown_values(admin_client.get(url))
    client = staff("view_tool", "change_tool", "add_tool", "grant")
    own = shown_values(client.get(url))
    # Rows of one kind have the same fields.
    alike = {re.sub(r"\d+", "", each): each for each in whole.keys() - own.keys()}
    guarded = alike.values()
    assert any(each.startswith("config-0-") for each in guarded)
    before = Tool.objects.values().get()
    for name in guarded:
        sent = {**own, "title": "New", name: whole[name] or "1"}
        assert client.post(url, sent).status_code == 403, name
        assert Tool.objects.values().get() == before
    sent = {**whole, "name": "another"}
    assert client.post(form_page("tool", kind), sent).status_code == 403
    assert Tool.objects.count() == 1
    save(client, row, title="New")
    assert row.json("config") == CONFIGS[kind]
