"""Results that are one value: the schema that promises them, and their JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from mcp_app.catalog.type_hints import SCALARS, ScalarOutput, scalar_of, scalar_schema
from mcp_app.interface.questions import ToolOutput
from mcp_app.protocol.content import Text
from mcp_app.protocol.jsonrpc import UnserializableValue

LIMIT = 10**18
"""From here on integers are written in the other way."""


@pytest.mark.parametrize("kind", SCALARS)
def test_a_schema_promises_its_type(kind: type) -> None:
    assert scalar_of(scalar_schema(kind)) is kind


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {**scalar_schema(int), "title": "Sum"},
        {**scalar_schema(int), "required": []},
        {**scalar_schema(str), "properties": {"result": {"type": "string", "x": 1}}},
        {**scalar_schema(str), "properties": {"result": {"type": "null"}}},
    ],
)
def test_a_schema_that_promises_more(schema: object) -> None:
    assert scalar_of(schema) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ('a "quoted" é\n', 'a "quoted" é\n'),
        (True, "true"),
        (False, "false"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e300, "1e+300"),
        (0, "0"),
        (-7, "-7"),
        *((each, str(each)) for each in (LIMIT - 1, LIMIT, LIMIT + 1)),
        *((each, str(each)) for each in (1 - LIMIT, -LIMIT, -LIMIT - 1)),
    ],
)
def test_a_result_as_json(value: Any, text: str) -> None:
    output = ScalarOutput(value)
    read = json.loads(output.members() + b"}")
    assert read == {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"result": value},
    }
    # 1 and True are equal, but not the same JSON.
    assert type(read["structuredContent"]["result"]) is type(value)
    assert output.content == (Text(text),)


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800"])
def test_what_is_no_json(value: Any) -> None:
    with pytest.raises(UnserializableValue):
        ScalarOutput(value).members()


def test_it_is_equal_to_the_output_that_it_stands_for() -> None:
    output = ScalarOutput(3)
    assert output == ScalarOutput(3)
    assert hash(output) == hash(ScalarOutput(3))
    assert output != ScalarOutput(4)
    assert (output.is_error, output.meta) == (False, None)
    whole = ToolOutput((Text("3"),), structured={"result": 3})
    assert output == whole
    assert output != replace(whole, is_error=True)
    assert output != replace(whole, meta={"shop/x": 1})
    assert output != "3"
