"""Fields that somebody may not change are left as they are."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import RequestFactory

from mcp_app.admin.definitions.definition_admin import DefinitionAdmin
from mcp_app.admin.forms import form_of
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

ROWS: list[tuple[type[Any], dict[str, Any]]] = [
    (
        Tool,
        {
            "config": '{ "content": [{"type": "text", "text": "a"}] }',
            "input_schema": '{ "type": "object" }',
            "read_only": True,
            "destructive": True,
        },
    ),
    (
        Tool,
        {
            "kind": "function",
            "config": '{ "function": "shop.find" }',
            "open_world": True,
        },
    ),
    (Resource, {"uri": "x:a", "config": '{ "text": "a" }', "mime_type": "text/csv"}),
    (
        Resource,
        {"uri": "x:a", "kind": "function", "config": '{"function": "shop.policy"}'},
    ),
    (
        Resource,
        {"uri": "x:a", "config": '{ "text": "a" }', "annotations": '{ "priority": 1 }'},
    ),
    (ResourceTemplate, {"uri_template": "x:{a}", "config": '{ "text": "{{a}}" }'}),
    (
        Prompt,
        {
            "config": '{ "messages": [{"content": {"type": "text", "text": "a"}}] }',
            "arguments": '[ {"name": "a"} ]',
        },
    ),
    (Prompt, {"kind": "function", "config": '{ "function": "shop.policy" }'}),
]
COMMON = ("icons", "kind", "opened_fields", "opened_version")


@pytest.mark.parametrize(("model", "columns"), ROWS)
def test_what_is_not_asked_is_not_changed(
    model: type[DefinitionRow], columns: dict[str, Any]
) -> None:
    row = model._default_manager.create(name="a", tags="x", **columns)
    before = {
        field.attname: getattr(row, field.attname) for field in model._meta.fields
    }
    form_class = form_of(model, row.kind)

    class OnlyTexts(DefinitionAdmin[Any]):
        readonly_fields = [
            *DefinitionAdmin.readonly_fields,
            *(each for each in form_class.declared_fields if each not in COMMON),
            *(each for each in columns if each not in ("kind", "read_only")),
            "tags",
        ]

    request = RequestFactory().post("/")
    request.user = User.objects.create_superuser("ana")
    ours = OnlyTexts(model, admin.site)
    made = ours.get_form(request, row, change=True)
    sent = {
        "title": "A",
        "name": "a",
        "position": "0",
        "ttl_ms": "0",
        "opened_version": "0",
        "tags": "y",
        "text": "evil",
        "function": "shop.find",
        "changes": "deletes",
        "changes-asked": "1",
        "audience": "user",
        "config": "{}",
        "config-as": "json",
        "config-json": "{}",
        "input_schema-as": "json",
        "input_schema-json": "{}",
    }
    form = made(sent, instance=row)
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

    class WithoutImportance(DefinitionAdmin[Any]):
        readonly_fields = [*DefinitionAdmin.readonly_fields, "importance"]

    request = RequestFactory().post("/")
    request.user = User.objects.create_superuser("ana")
    ours = WithoutImportance(Resource, admin.site)
    sent = {
        "name": "a",
        "uri": "x:a",
        "text": "a",
        "position": "0",
        "ttl_ms": "0",
        "opened_version": "0",
        "audience": "user",
        "annotations": '{\n  "priority": 0.8\n}',
    }
    form = ours.get_form(request, row, change=True)(sent, instance=row)
    assert form.is_valid(), form.errors
    assert form.save().json("annotations") == {"priority": 0.8, "audience": ["user"]}
