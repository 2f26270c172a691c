from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, NotRequired, TypedDict

import pytest
from django.utils.functional import lazystr
from pydantic import BaseModel, Field, RootModel

from mcp_app.catalog.callables import MISSING
from mcp_app.catalog.outputs import (
    completion,
    jsonable_value,
    prompt_output,
    resource_output,
    tool_returns,
)
from mcp_app.interface.questions import (
    Completion,
    PromptMessage,
    PromptOutput,
    ResourceOutput,
    ToolOutput,
)
from mcp_app.protocol import schemas
from mcp_app.protocol.content import Block, Image, ResourceContents, ResourceLink, Text
from mcp_app.protocol.errors import ResourceNotFound
from mcp_app.protocol.jsonrpc import UnserializableValue

PIXEL = Image(b"\x89", "image/png")
LINK = ResourceLink("shop://orders/1", "Order 1")
SAID = PromptMessage(LINK, "assistant")


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Order:
    number: int
    day: dt.date = dt.date(2026, 1, 31)


class Customer(TypedDict):
    name: str
    orders: NotRequired[list[Order]]


class Total(BaseModel):
    amount: Decimal = Field(alias="Amount")


class Tags(RootModel[dict[str, int]]): ...


class Rows:
    """Iterable as querysets are: neither a sequence nor an iterator."""

    def __iter__(self) -> Iterator[int]:
        return iter([1, 2])


class Opaque: ...


def wrapped(inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"result": inner}, "required": ["result"]}


ORDER = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "day": {"type": "string", "format": "date", "default": "2026-01-31"},
    },
    "required": ["number"],
}

WRAPPED: list[tuple[Any, dict[str, Any], object, object, str]] = [
    (str, {"type": "string"}, "a “b”", "a “b”", "a “b”"),
    (int, {"type": "integer"}, 2**70, 2**70, str(2**70)),
    (bool, {"type": "boolean"}, False, False, "false"),
    (Annotated[int, "how many"], {"type": "integer"}, 1, 1, "1"),
    (Any, {}, {"a": [None]}, {"a": [None]}, '{"a":[null]}'),
    (object, {}, None, None, "null"),
    (list[str], {"type": "array", "items": {"type": "string"}}, ["a"], ["a"], '["a"]'),
    (Colour, {"type": "string", "enum": ["red"]}, Colour.RED, "red", "red"),
    (
        Iterable[int],
        {"type": "array", "items": {"type": "integer"}},
        iter([1, 2]),
        [1, 2],
        "[1,2]",
    ),
]


@pytest.mark.parametrize(("annotation", "inner", "value", "result", "text"), WRAPPED)
def test_what_is_no_object_is_wrapped(
    annotation: Any, inner: dict[str, Any], value: object, result: object, text: str
) -> None:
    returns = tool_returns("here", annotation)
    assert returns.schema == wrapped(inner)
    output = returns.convert(value)
    assert output == ToolOutput((Text(text),), structured={"result": result})
    assert schemas.compile_schema(returns.schema).is_valid(output.structured)


def test_definitions_stand_in_line() -> None:
    returns = tool_returns("here", list[Order])
    assert returns.schema == wrapped({"type": "array", "items": ORDER})
    assert returns.convert([Order(1)]).structured == {
        "result": [{"number": 1, "day": "2026-01-31"}]
    }


OBJECTS: list[tuple[Any, object, dict[str, Any]]] = [
    (Order, Order(1), {"number": 1, "day": "2026-01-31"}),
    (Annotated[Order, "x"], Order(1), {"number": 1, "day": "2026-01-31"}),
    (
        Customer,
        {"name": "Ada", "orders": [Order(2)]},
        {"name": "Ada", "orders": [{"number": 2, "day": "2026-01-31"}]},
    ),
    (Total, Total(Amount=Decimal("1.50")), {"Amount": "1.50"}),
    (Tags, Tags({"a": 1}), {"a": 1}),
    (dict, {"a": Decimal("1.50")}, {"a": "1.50"}),
    (dict[str, Any], {"a": {Colour.RED}}, {"a": ["red"]}),
    (dict[int, str], {1: "a"}, {"1": "a"}),
    (Mapping[str, Order], {"a": Order(1)}, {"a": {"number": 1, "day": "2026-01-31"}}),
    (dict[str, Any], {"a": lazystr("later")}, {"a": "later"}),
    (dict[str, Any], {"a": map(str, [1])}, {"a": ["1"]}),
    (dict[str, Any], {"a": Rows()}, {"a": [1, 2]}),
    (dict[str, Any], {"a": b"\xff"}, {"a": "_w=="}),
]


@pytest.mark.parametrize(("annotation", "value", "structured"), OBJECTS)
def test_objects_are_sent_as_they_are(
    annotation: Any, value: object, structured: dict[str, Any]
) -> None:
    returns = tool_returns("here", annotation)
    assert returns.schema is not None
    assert returns.schema["type"] == "object"
    output = returns.convert(value)
    assert output.structured == structured
    assert schemas.compile_schema(returns.schema).is_valid(structured)


def test_the_text_of_an_object_is_its_json() -> None:
    output = tool_returns("here", Order).convert(Order(1))
    assert output.content == (Text('{"number":1,"day":"2026-01-31"}'),)


CONTENT: list[tuple[Any, object, tuple[Block, ...]]] = [
    (Image, PIXEL, (PIXEL,)),
    (Block, LINK, (LINK,)),
    (Text | Image, Text("a"), (Text("a"),)),
    (Image | None, None, ()),
    (list[Block], [PIXEL, LINK], (PIXEL, LINK)),
    (list[Image], [], ()),
    (tuple[str, Image], ("a", PIXEL), (Text("a"), PIXEL)),
    (tuple[Image, ...], (PIXEL,), (PIXEL,)),
    (list[str | Block], ["a", "b"], (Text("a"), Text("b"))),
    (ToolOutput, ToolOutput((PIXEL,)), (PIXEL,)),
    (ToolOutput | str, "a", (Text("a"),)),
    (MISSING, "a", (Text("a"),)),
    (MISSING, ["a", "b"], (Text('["a","b"]'),)),
    (MISSING, ["a", PIXEL], (Text("a"), PIXEL)),
    (MISSING, {"a": dt.date(2026, 1, 31)}, (Text('{"a":"2026-01-31"}'),)),
    (MISSING, None, ()),
    (None, None, ()),
    (None, 1, (Text("1"),)),
    (type(None), None, ()),
]


@pytest.mark.parametrize(("annotation", "value", "content"), CONTENT)
def test_content_has_no_schema(
    annotation: Any, value: object, content: tuple[Block, ...]
) -> None:
    returns = tool_returns("here", annotation)
    assert returns.schema is None
    assert returns.convert(value) == ToolOutput(content)


@pytest.mark.parametrize("annotation", [MISSING, int, dict, list[int], ToolOutput])
def test_a_whole_output_is_never_touched(annotation: Any) -> None:
    output = ToolOutput((PIXEL,), structured={"a": 1}, is_error=True)
    assert tool_returns("here", annotation).convert(output) is output


MISFITS: list[tuple[Any, object, object]] = [
    (int, "a", {"result": "a"}),
    (int, Decimal("1.5"), {"result": "1.5"}),
    (int, [1], {"result": [1]}),
    (list[Order], Rows(), {"result": [1, 2]}),
    (Order, {"number": "x"}, {"number": "x"}),
    (Order, Total(Amount=Decimal(1)), {"Amount": "1"}),
    (Order, None, None),
    (list[Order], [{"day": dt.date(2026, 1, 31)}], {"result": [{"day": "2026-01-31"}]}),
]


@pytest.mark.parametrize(("annotation", "value", "structured"), MISFITS)
def test_misfits_come_as_well_as_possible(
    annotation: Any, value: object, structured: object
) -> None:
    assert tool_returns("here", annotation).convert(value).structured == structured


@pytest.mark.parametrize("annotation", [int, Order, Any, list[int], MISSING])
def test_what_has_no_json_form_is_a_type_error(annotation: Any) -> None:
    with pytest.raises(TypeError, match="A Opaque cannot be written as JSON"):
        tool_returns("here", annotation).convert(Opaque())


def test_a_number_that_json_cannot_say_is_named() -> None:
    with pytest.raises(UnserializableValue, match=r"\$\.a is nan"):
        tool_returns("here", dict[str, float]).convert({"a": float("nan")})


RESOURCES: list[tuple[object, str, dict[str, Any]]] = [
    ("text", "", {"text": "text", "mime_type": "text/plain"}),
    ("# text", "text/markdown", {"text": "# text", "mime_type": "text/markdown"}),
    (b"\xff", "", {"blob": b"\xff", "mime_type": "application/octet-stream"}),
    (b"\xff", "image/png", {"blob": b"\xff", "mime_type": "image/png"}),
    ({"a": Order(1)}, "", {"text": '{"a":{"number":1,"day":"2026-01-31"}}'}),
    ([1, 2], "application/json", {"text": "[1,2]"}),
    ([], "", {"text": "[]"}),
    (Total(Amount=Decimal(1)), "", {"text": '{"Amount":"1"}'}),
    (lazystr("later"), "", {"text": "later", "mime_type": "text/plain"}),
    (dt.date(2026, 1, 31), "", {"text": "2026-01-31", "mime_type": "text/plain"}),
]


@pytest.mark.parametrize(("value", "mime_type", "members"), RESOURCES)
def test_resources(value: object, mime_type: str, members: dict[str, Any]) -> None:
    output = resource_output(value, uri="shop://a", mime_type=mime_type)
    expected = {"mime_type": "application/json", **members}
    assert output == ResourceOutput((ResourceContents(uri="shop://a", **expected),))


def test_contents_of_resources_are_taken_as_they_are() -> None:
    first = ResourceContents(uri="shop://b", text="b")
    second = ResourceContents(uri="shop://c", blob=b"c")
    for value in ([first, second], (first, second), ResourceOutput((first, second))):
        output = resource_output(value, uri="shop://a", mime_type="text/html")
        assert output == ResourceOutput((first, second))
    alone = resource_output(first, uri="shop://a", mime_type="")
    assert alone == ResourceOutput((first,))


def test_none_is_no_resource() -> None:
    with pytest.raises(ResourceNotFound) as missing:
        resource_output(None, uri="shop://a", mime_type="")
    assert missing.value.data == {"uri": "shop://a"}


PROMPTS: list[tuple[object, list[PromptMessage]]] = [
    ("Hello", [PromptMessage(Text("Hello"))]),
    (PIXEL, [PromptMessage(PIXEL)]),
    ({"role": "assistant", "content": "Hi"}, [PromptMessage(Text("Hi"), "assistant")]),
    (
        ["a", PIXEL, SAID, {"role": "user", "content": LINK}],
        [PromptMessage(Text("a")), PromptMessage(PIXEL), SAID, PromptMessage(LINK)],
    ),
    ([], []),
]


@pytest.mark.parametrize(("value", "messages"), PROMPTS)
def test_prompts(value: object, messages: list[PromptMessage]) -> None:
    assert prompt_output(value) == PromptOutput(tuple(messages))


def test_a_whole_prompt_is_taken_as_it_is() -> None:
    output = PromptOutput((), "Described")
    assert prompt_output(output) is output


@pytest.mark.parametrize(
    "value", [1, None, {"role": "system", "content": "a"}, {"role": "user"}, [["a"]]]
)
def test_what_is_no_message(value: object) -> None:
    with pytest.raises(TypeError, match="A message of a prompt is a string"):
        prompt_output(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["a", "b"], Completion(["a", "b"])),
        ((number for number in (1, 2)), Completion(["1", "2"])),
        ("alone", Completion(["alone"])),
        (None, Completion(())),
        (Completion(["a"], total=7), Completion(["a"], total=7)),
    ],
)
def test_completions(value: object, expected: Completion) -> None:
    assert completion(value) == expected


def test_jsonable() -> None:
    assert jsonable_value({"a": Order(1), "b": Rows(), Colour.RED: {1}}) == {
        "a": {"number": 1, "day": "2026-01-31"},
        "b": [1, 2],
        "red": [1],
    }
