from __future__ import annotations

import json
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from mcp_app.models import Blob, DefinitionRow, Prompt, Resource, ResourceTemplate, Tool
from tests.admin.pages import page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def looking(client: Client) -> Client:
    """Log someone in who may look at everything."""
    user = User.objects.create_user("kim", password="x", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(
            content_type__app_label="mcp_app", codename__startswith="view_"
        )
    )
    client.force_login(user)
    return client


def text_of(client: Client, row: DefinitionRow) -> str:
    url = page(str(row._meta.model_name), "change", row.pk)
    response = client.get(url)
    assert response.status_code == 200
    text = response.content.decode()
    assert EVIL not in text
    return unescape(text)


def test_a_text_tool(looking: Client) -> None:
    tool = Tool.objects.create(
        name="a",
        config='{"content": [{"type": "text", "text": "<script>alert(1)</script>"}]}',
        read_only=False,
        destructive=False,
        open_world=True,
    )
    text = text_of(looking, tool)
    assert f"<pre>{EVIL}</pre>" in text
    assert "It adds or changes things. It reaches outside this site" in text
    assert "Not said" in text_of(looking, Tool.objects.create(name="b"))


def test_a_function_tool(looking: Client) -> None:
    tool = Tool.objects.create(
        name="a", kind="function", config='{"function": "shop.find"}'
    )
    text = text_of(looking, tool)
    assert "shop.find: Find orders." in text
    assert "For developers" in text


def test_a_resource(looking: Client) -> None:
    row = Resource.objects.create(
        name="a",
        uri="x:a",
        config='{"text": "<script>alert(1)</script>"}',
        annotations='{"audience": ["assistant"], "priority": 0.8}',
    )
    text = text_of(looking, row)
    assert "Models" in text
    assert "0.8" in text
    assert f">{EVIL}</pre>" in text


def test_a_template_and_a_prompt(looking: Client) -> None:
    row = ResourceTemplate.objects.create(name="a", uri_template="x:{a}")
    assert "x:{a}" in text_of(looking, row)
    prompt = Prompt.objects.create(
        name="a", config='{"messages": [{"content": {"type": "text", "text": "hey"}}]}'
    )
    text = text_of(looking, prompt)
    assert ">hey</pre>" in text
    assert "Refresh the preview" not in text


def test_a_row_of_an_unknown_kind(looking: Client) -> None:
    tool = Tool.objects.create(name="a", kind="http", config='{"url": "x"}')
    assert '"url": "x"' in text_of(looking, tool)


def test_the_file_of_a_tool(looking: Client) -> None:
    picture = Blob.objects.keep(b"\x89PNG", "image/png").digest
    resource = {"uri": "x:logo", "mimeType": "image/png", "upload": picture}
    blocks = [{"type": "resource", "resource": resource}]
    tool = Tool.objects.create(name="a", config=json.dumps({"content": blocks}))
    text = text_of(looking, tool)
    assert "data:image/png;base64," in text
    assert "<code>x:logo</code>" in text
    assert 'type="file"' not in text


def test_suggestions_stand_by_the_names_of_variables(looking: Client) -> None:
    row = ResourceTemplate.objects.create(
        name="a",
        uri_template="x:{kind}/{number}",
        suggestions=json.dumps({"kind": ["order", EVIL], "gone": ["old"]}),
    )
    text = text_of(looking, row)
    assert '<th scope="row">kind</th>' in text
    assert f'<td data-label="Suggestions">order<br>{EVIL}</td>' in text
    assert '<th scope="row">number</th>' in text
    assert "The address pattern has no gone, so these suggestions are not used." in text
    # The labels and the help are those of the form.
    assert "Address pattern:" in text
    assert "For example shop://orders/{number}." in text


def test_parameters_are_a_table(looking: Client) -> None:
    properties = {
        "size": {
            "type": "string",
            "enum": ["S", "L"],
            "default": "S",
            "examples": ["L"],
            "description": EVIL,
        },
        "count": {"type": "integer", "minimum": 1},
    }
    schema = {"type": "object", "properties": properties, "required": ["count"]}
    tool = Tool.objects.create(name="a", input_schema=json.dumps(schema))
    text = text_of(looking, tool)
    for cell in (
        '<td data-label="Limits">S<br>L</td>',
        '<td data-label="If left out">S</td>',
        f'<td data-label="Description">{EVIL}<br>Example: L</td>',
        '<td data-label="Type">Whole number, required</td>',
        '<td data-label="Limits">at least 1</td>',
    ):
        assert cell in text
    assert '"minimum": 1' in text
    tool.input_schema = '{"type": "object", "properties": {"a": {"oneOf": []}}}'
    tool.save()
    assert '<th scope="row">a</th>' in text_of(looking, tool)
    tool.kind, tool.config, tool.input_schema = (
        "function",
        '{"function": "shop.find"}',
        "",
    )
    tool.save()
    assert '<th scope="row">customer</th>' in text_of(looking, tool)


def test_arguments_are_a_table(looking: Client) -> None:
    argument = {"name": "order", "title": EVIL, "suggestions": ["1042", "7"]}
    row = Prompt.objects.create(
        name="a",
        arguments=json.dumps([argument, {"name": "tone", "required": True}]),
        config='{"messages": [{"content": {"type": "text", "text": "{{order}}"}}]}',
        icons='[{"src": "https://example.com/a.png"}]',
    )
    text = text_of(looking, row)
    assert f'<td data-label="Title">{EVIL}</td>' in text
    assert '<td data-label="Suggestions">1042<br>7</td>' in text
    assert '<td data-label="Required">yes</td>' in text
    # The messages stand there as they are written, too.
    assert '"text": "{{order}}"' in text
    assert "https://example.com/a.png" in text
