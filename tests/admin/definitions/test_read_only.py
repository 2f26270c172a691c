from __future__ import annotations

import json
from html import unescape

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from mcp_app.admin.definitions.read_only import (
    arguments,
    parameters,
    render_table,
    suggestions,
)
from mcp_app.models import Blob, DefinitionRow, Prompt, Resource, ResourceTemplate, Tool
from tests.admin.pages import Staff, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

EVIL = "<script>alert(1)</script>"
FIND = {"kind": "function", "config": '{"function": "shop.find"}'}


@pytest.fixture
def looking(staff: Staff) -> Client:
    """Log someone in who may look at everything."""
    rights = Permission.objects.filter(content_type__app_label="mcp_app")
    names = rights.filter(codename__startswith="view_")
    return staff(*names.values_list("codename", flat=True))


def read(client: Client, row: DefinitionRow) -> str:
    text = text_of(client, row)
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
    text = read(looking, tool)
    assert f"<pre>{EVIL}</pre>" in text
    assert "It adds or changes things. It reaches outside this site" in text
    assert "Not said" in read(looking, Tool.objects.create(name="b"))


def test_a_function_tool(looking: Client) -> None:
    tool = Tool.objects.create(name="a", **FIND)
    text = read(looking, tool)
    assert "shop.find: Find orders." in text
    assert "For developers" in text


def test_a_resource(looking: Client) -> None:
    row = Resource.objects.create(
        name="a",
        uri="x:a",
        config='{"text": "<script>alert(1)</script>"}',
        annotations='{"audience": ["assistant"], "priority": 0.8}',
    )
    text = read(looking, row)
    assert "Models" in text
    assert "0.8" in text
    assert f">{EVIL}</pre>" in text


def test_a_template_and_a_prompt(looking: Client) -> None:
    row = ResourceTemplate.objects.create(name="a", uri_template="x:{a}")
    assert "x:{a}" in read(looking, row)
    prompt = Prompt.objects.create(
        name="a", config='{"messages": [{"content": {"type": "text", "text": "hey"}}]}'
    )
    text = read(looking, prompt)
    assert ">hey</pre>" in text
    assert "Refresh the preview" not in text


def test_a_row_of_an_unknown_kind(looking: Client) -> None:
    tool = Tool.objects.create(name="a", kind="http", config='{"url": "x"}')
    assert '"url": "x"' in read(looking, tool)


def test_the_file_of_a_tool(looking: Client) -> None:
    picture = Blob.objects.keep(b"\x89PNG", "image/png").digest
    resource = {"uri": "x:logo", "mimeType": "image/png", "upload": picture}
    blocks = [{"type": "resource", "resource": resource}]
    tool = Tool.objects.create(name="a", config=json.dumps({"content": blocks}))
    text = read(looking, tool)
    assert "data:image/png;base64," in text
    assert "<code>x:logo</code>" in text
    assert 'type="file"' not in text


def test_suggestions_stand_by_the_names_of_variables(looking: Client) -> None:
    row = ResourceTemplate.objects.create(
        name="a",
        uri_template="x:{kind}/{number}",
        suggestions=json.dumps({"kind": ["order", EVIL], "gone": ["old"]}),
    )
    text = read(looking, row)
    assert '<th scope="row">kind</th>' in text
    assert f'<td data-label="Suggestions">order<br>{EVIL}</td>' in text
    assert '<th scope="row">number</th>' in text
    assert "The address pattern has no gone, so these suggestions are not used." in text
    # The labels and the help are those of the form.
    assert "Address pattern:" in text
    assert "For example shop://orders/{number}." in text


def test_parameters_are_a_table(looking: Client) -> None:
    size = {"type": "string", "enum": ["S", "L"], "default": "S", "examples": ["L"]}
    properties = {
        "size": {**size, "description": EVIL},
        "count": {"type": "integer", "minimum": 1},
    }
    schema = {"type": "object", "properties": properties, "required": ["count"]}
    tool = Tool.objects.create(name="a", input_schema=json.dumps(schema))
    text = read(looking, tool)
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
    assert '<th scope="row">a</th>' in read(looking, tool)
    own = Tool.objects.create(name="b", **FIND)
    assert '<th scope="row">customer</th>' in read(looking, own)


def test_arguments_are_a_table(looking: Client) -> None:
    argument = {"name": "order", "title": EVIL, "suggestions": ["1042", "7"]}
    row = Prompt.objects.create(
        name="a",
        arguments=json.dumps([argument, {"name": "tone", "required": True}]),
        config='{"messages": [{"content": {"type": "text", "text": "{{order}}"}}]}',
        icons='[{"src": "https://example.com/a.png"}]',
    )
    text = read(looking, row)
    assert f'<td data-label="Title">{EVIL}</td>' in text
    assert '<td data-label="Suggestions">1042<br>7</td>' in text
    assert '<td data-label="Required">yes</td>' in text
    # The messages stand there as they are written, too.
    assert '"text": "{{order}}"' in text
    assert "https://example.com/a.png" in text


def test_a_table_hides_nothing_and_is_no_markup() -> None:
    text = render_table(("A", "B"), [("<b>", "a\u202eb\nc")], '{"x":"\u200b"}')
    cells = '<th scope="row">&lt;b&gt;</th><td data-label="B">a⟦U+202E⟧b<br>c</td>'
    assert cells in text
    assert "⟦U+200B⟧" in text
    assert "None" in render_table(("A",), [])


@pytest.mark.parametrize("stored", ["", "{", "[]", "{}", "7"])
def test_what_is_no_schema_has_no_rows(stored: str) -> None:
    assert "<td" not in parameters(stored)


@pytest.mark.parametrize("stored", ["7", "[7]", '[{"name": "a", "suggestions": 7}]'])
def test_what_are_no_arguments_is_shown_as_json(stored: str) -> None:
    text = arguments(stored)
    assert "<td" not in text
    assert "7" in text


def test_what_is_stored_for_no_variable() -> None:
    text = suggestions(json.dumps({"gone": ["a"]}), "x:{a}")
    assert "The address pattern has no gone" in text
    # While the pattern is none, nobody knows which variables it has.
    assert "has no gone" not in suggestions(json.dumps({"gone": ["a"]}), "x:{")
