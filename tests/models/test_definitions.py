from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool

pytestmark = pytest.mark.django_db


def tool(**columns: Any) -> Tool:
    return Tool(**{"name": "find_orders", **columns})


def taking(parameter: str) -> Tool:
    schema = f'{{"type": "object", "properties": {{"a": {parameter}}}}}'
    return tool(input_schema=schema)


def resource(**columns: Any) -> Resource:
    return Resource(**{"name": "Returns", "uri": "shop://returns", **columns})


def template(**columns: Any) -> ResourceTemplate:
    defaults = {"name": "Order", "uri_template": "shop://orders/{id}"}
    return ResourceTemplate(**{**defaults, **columns})


def prompt(**columns: Any) -> Prompt:
    return Prompt(**{"name": "answer", **columns})


@pytest.mark.parametrize(
    ("row", "field", "said"),
    [
        (tool(name="find orders"), "name", "“find orders” cannot be a name"),
        (tool(name="Send\U000e0049"), "name", "U+E0049"),
        (tool(title="a\u202eb"), "title", "U+202E"),
        (tool(description="a\u200bb"), "description", "U+200B"),
        (tool(description="a\x00b"), "description", "U+0000"),
        (tool(permission="view_order"), "permission", "app_label.codename"),
        (tool(tags="a/b"), "tags", "“a/b”"),
        (tool(app="https://a"), "app", "must begin with ui://"),
        (tool(timeout=0), "timeout", "0.001"),
        (tool(config="{"), "config", "not JSON"),
        (tool(config="[]"), "config", "JSON object"),
        (tool(icons='[{"src": "x"}]'), "icons", "https:"),
        (tool(input_schema="{"), "input_schema", "not JSON"),
        (tool(input_schema='{"type": "string"}'), "input_schema", '"object"'),
        (taking('{"$ref": "https://x.org/x"}'), "input_schema", "https://x.org/x"),
        (taking('{"type": "object", "x-mcp-header": "A"}'), "input_schema", "x-mcp-"),
        (taking('{"description": "\\u202e"}'), "input_schema", "U+202E"),
        (tool(output_schema='{"type": "array"}'), "output_schema", '"object"'),
        (resource(uri="returns"), "uri", "not an absolute URI"),
        (resource(uri="shop://a b"), "uri", "not an absolute URI"),
        (resource(uri="x:" + "y" * 4095), "uri", "4097 characters; a URI"),
        (
            template(uri_template="x:{a}" + "y" * 4092),
            "uri_template",
            "4097 characters; 4096",
        ),
        (resource(annotations='{"priority": 2}'), "annotations", "from 0 to 1"),
        (resource(mime_type="text\n"), "mime_type", "U+000A"),
        (resource(mime_type="markdown"), "mime_type", "written as type/subtype"),
        (resource(mime_type="not a type!!"), "mime_type", "written as type/subtype"),
        (template(uri_template="shop://orders/{id"), "uri_template", "shop://orders"),
        (template(uri_template="shop://orders"), "uri_template", "no variable"),
        (template(uri_template="{id}"), "uri_template", "not an absolute URI"),
        (template(uri_template="shop://{id}/\u202e"), "uri_template", "U+202E"),
        (prompt(name="a b"), "name", "“a b”"),
        (prompt(arguments="{}"), "arguments", "JSON array"),
        (prompt(arguments='[{"name": "x.y"}]'), "arguments", "“x.y”"),
    ],
)
def test_what_cannot_be_saved_says_so_at_its_field(
    row: DefinitionRow, field: str, said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        row.full_clean()
    assert said in " ".join(caught.value.message_dict[field])


@pytest.mark.parametrize(
    ("row", "field", "said"),
    [
        (tool(), "name", "Another tool has this name."),
        (resource(name="other"), "uri", "shop://returns"),
        (template(name="other"), "uri_template", "shop://orders/{id}"),
        (prompt(), "name", "Another prompt has this name."),
    ],
)
def test_no_two_rows_have_one_name(row: DefinitionRow, field: str, said: str) -> None:
    for first in (tool(), resource(), template(), prompt()):
        first.save()
    with pytest.raises(ValidationError) as caught:
        row.full_clean()
    assert said in " ".join(caught.value.message_dict[field])
