"""What a page asks for, and the request that it makes of it."""

from __future__ import annotations

import json
from typing import Final

import pytest
from django.http import QueryDict

from mcp_app.admin.forms.arguments import (
    Arguments,
    arguments_of,
    request_of,
    with_errors,
)
from mcp_app.interface.definitions import (
    Definition,
    ResourceTemplateDefinition,
    ToolDefinition,
)

TOOL: Final = ToolDefinition(
    name="add",
    input_schema={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "examples": [{"a": 1}],
    },
)
ONE_OF: Final = ToolDefinition(
    name="either", input_schema={"type": "object", "oneOf": [{"required": ["a"]}]}
)
SEARCHED: Final = ResourceTemplateDefinition(
    name="search", uri_template="shop://{id}/{kind}{?page}"
)


def data(asked: Arguments, /, **values: str) -> QueryDict:
    names = {each.key: each.name for each in asked.fields or ()}
    query = QueryDict(mutable=True)
    query.update({names.get(key, key): value for key, value in values.items()})
    return query


def typed(definition: Definition, **values: str) -> Arguments:
    return arguments_of(definition, data(arguments_of(definition), **values))


def test_all_arguments_as_json() -> None:
    arguments = typed(TOOL, a="2", way="json", arguments='{"a": 5,\r\n"c": null}')
    assert arguments.by_json
    assert arguments.parsed_values == {"a": 5, "c": None}
    # What stands in the fields stays there.
    assert (arguments.fields or [])[0].value == "2"
    assert typed(TOOL, way="json").parsed_values == {}
    assert typed(TOOL, a="2", way="fields", arguments="{").parsed_values == {"a": 2}
    assert json.loads(arguments_of(TOOL).text) == {"a": 1}
    assert not arguments_of(TOOL).by_json


def test_one_of_on_top_is_json_alone() -> None:
    arguments = arguments_of(ONE_OF)
    assert (arguments.fields, arguments.by_json) == (None, True)
    assert typed(ONE_OF, arguments='{"a": 1}').parsed_values == {"a": 1}


def test_an_address_without_a_value_of_its_path() -> None:
    arguments = typed(SEARCHED, id="7")
    with pytest.raises(ValueError, match="has no value") as caught:
        request_of(SEARCHED, arguments.parsed_values)
    told = with_errors(arguments, caught.value)
    errors = [each.error for each in told.fields or ()]
    assert errors == ["", "This needs a value.", ""]
    assert not told.error
    values = typed(SEARCHED, id="7", kind="a").parsed_values
    assert request_of(SEARCHED, values)[1] == {"uri": "shop://7/a"}
