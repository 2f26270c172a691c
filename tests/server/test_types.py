"""Python's types on the wire: what comes in, what a function gets, what goes out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

import jsonschema_rs
import pytest
from annotated_types import Le
from pydantic import (
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    EmailStr,
    Field,
    IPvAnyNetwork,
    NaiveDatetime,
)
from typing_extensions import TypedDict

from mcp_app.catalog.registry import Registry
from tests.asgi_client import Client


class Size(Enum):
    SMALL = "s"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


@dataclass
class Dog:
    kind: Literal["dog", "hound"]
    born: date | None = None


@dataclass
class Tag:
    ear: bytes


class Slot(TypedDict):
    at: time
    lasts: timedelta


Pet: TypeAlias = Annotated[Cat | Dog, Field(discriminator="kind")]


def like(example: str) -> dict[str, Any]:
    return {"type": "string", "examples": [example]}


def text(**more: str) -> dict[str, Any]:
    return {"type": "string", **more}


KEY: Final = "12345678-1234-5678-1234-567812345678"
DAY: Final = date(2026, 11, 18)
AT: Final = datetime(2026, 11, 18, 14)
NAIVE: Final = "2026-11-18T14:00:00"
AWARE: Final = f"{NAIVE}Z"
MOMENT: Final = like(AWARE)
SPAN: Final = like("PT1H30M")
TIME: Final = like("14:00:00")
URL: Final = like("https://example.com/")
NUMBER: Final = {"type": "integer"}
OR_NONE: Final = {"anyOf": [NUMBER, {"type": "null"}]}
ONE: Final = {**NUMBER, "minimum": 1, "maximum": 1}
A_OR_1: Final = {
    "anyOf": [{**text(), "enum": ["a"]}, ONE],
    "description": 'One of: "a", 1.',
}
PUNY: Final = "https://xn--exmple-cua.com/%C3%BC"
OLD: Final = {"kind": "cat", "lives": 9}
HOUND: Final = {"kind": "hound", "born": None}
SLOT: Final = {"at": "09:30:00", "lasts": "PT1H"}
HOUR: Final = timedelta(hours=1)
IN_SLOT: Final = {"at": time(9, 30), "lasts": timedelta(seconds=-1)}

# The type, what comes in, its schema (None: not looked at), what the function gets,
# and what goes out if it returns that, where it is not what came in.
ROUND: list[tuple[Any, ...]] = [
    *((bool, True, {"type": "boolean"}, True), (int, 3, NUMBER, 3)),
    (float, 1.5, {"type": "number"}, 1.5),
    (Decimal, "9.90", {"anyOf": [{"type": "number"}, text()]}, Decimal("9.90")),
    *((Decimal, "1E+3", None, Decimal("1E+3")), (str, "é", text(), "é")),
    (bytes, "aGVsbG8=", text(format="base64url"), b"hello"),
    (Base64Bytes, "aGVsbG8=", text(format="base64"), b"hello"),
    (date, "2026-11-18", text(format="date"), DAY),
    (time, "09:30", TIME, time(9, 30), "09:30:00"),
    (time, "09:30:00Z", TIME, time(9, 30, tzinfo=UTC)),
    (datetime, NAIVE, MOMENT, AT),
    (datetime, "2026-11-18 14:00", MOMENT, AT, NAIVE),
    (datetime, AWARE, MOMENT, AT.replace(tzinfo=UTC)),
    (AwareDatetime, AWARE, MOMENT, AT.replace(tzinfo=UTC)),
    (NaiveDatetime, NAIVE, like(NAIVE), AT),
    (timedelta, "PT1.5S", SPAN, timedelta(seconds=1.5)),
    (timedelta, "-PT1H", SPAN, timedelta(hours=-1)),
    (UUID, KEY, like(KEY), UUID(KEY)),
    (UUID, KEY.replace("-", ""), like(KEY), UUID(KEY), KEY),
    (Size, "s", {"enum": ["s"], **text()}, Size.SMALL),
    (Literal["a", 1], 1, A_OR_1, 1),
    (EmailStr, "jürgen@müller.de", like("ana@example.com"), "jürgen@müller.de"),
    (IPv4Address, "192.0.2.1", text(format="ipv4"), IPv4Address("192.0.2.1")),
    (IPv6Address, "fe80::1%eth0", like("2001:db8::1"), IPv6Address("fe80::1%eth0")),
    (IPv4Network, "10.0.0.0/8", None, IPv4Network("10.0.0.0/8")),
    (Path, "a/b", text(format="path"), Path("a/b")),
    (AnyUrl, "https://exämple.com/ü", {**URL, "minLength": 1}, AnyUrl(PUNY), PUNY),
    (re.Pattern, "(?P<a>x)", like("^[a-z]+$"), re.compile("(?P<a>x)")),
    (tuple[int, time], [1, "09:30:00"], None, (1, time(9, 30))),
    (set[Size], ["s"], None, {Size.SMALL}),
    (list[timedelta], ["PT0S"], {"type": "array", "items": SPAN}, [timedelta(0)]),
    (dict[date, bytes], {"2026-11-18": "aGk="}, None, {DAY: b"hi"}),
    (Slot, {"at": "09:30:00", "lasts": "-PT1S"}, None, IN_SLOT),
    (int | None, None, OR_NONE, None),
    (time | int, "09:30:00", {"anyOf": [TIME, NUMBER]}, time(9, 30)),
    (Pet, OLD, None, Cat(kind="cat", lives=9)),
    (Dog, HOUND, None, Dog("hound")),
    (Tag, {"ear": "_w=="}, None, Tag(b"\xff")),
]
WRONG: list[tuple[Any, Any, str]] = [
    (bool, "maybe", '$.x (type): The value is not of type "boolean", such as true.'),
    (int, "three", 'The value is not of type "integer", such as 3.'),
    (Decimal, "1,5", "Input should be a valid decimal, such as 1.5."),
    (bytes, "!", 'offset 0, such as "aGVsbG8=".'),
    (date, "18.11.2026", 'The value is not a "date", such as "2026-11-18".'),
    (time, "9.30", ', such as "14:00:00".'),
    (time, 930, 'The value is not of type "string", such as "14:00:00".'),
    (datetime, "yesterday", f'input is too short, such as "{AWARE}".'),
    (AwareDatetime, NAIVE, f'Input should have timezone info, such as "{AWARE}".'),
    (NaiveDatetime, AWARE, f'should not have timezone info, such as "{NAIVE}".'),
    (timedelta, "an hour", 'such as "PT1H30M".'),
    (UUID, "1", f'a valid UUID, invalid length: found 1, such as "{KEY}".'),
    (EmailStr, "ana", 'have an @-sign, such as "ana@example.com".'),
    (IPv6Address, "::x", 'is not a valid IPv6 address, such as "2001:db8::1".'),
    (IPvAnyNetwork, "10", "value is not a valid IPv4 or IPv6 network."),
    (AnyUrl, "no uri", 'without a base, such as "https://example.com/".'),
    (re.Pattern, "(", 'a valid regular expression, such as "^[a-z]+$".'),
    (Literal["a", "b"], "c", 'The value is not one of "a" or "b".'),
    (Literal[1, 2, 3, 4], 5, "The value is greater than the maximum of 4."),
    (Literal[1, 5], 3, "$.x (literal_error): Input should be 1 or 5."),
    (IntEnum("Odd", {"ONE": 1, "FIVE": 5}), 3, "$.x (enum): Input should be 1 or 5."),
    (list[Slot], [{**SLOT, "at": "9.30"}], "$.x[0].at (time_parsing): Input should"),
    (list[Slot], [{**SLOT, "at": "9.30"}], ', such as "14:00:00".'),
    (datetime | date, "x", "$.x (datetime_from_date_parsing): Input"),
    (IPv4Address | IPv6Address, "x", "$.x (ip_v4_address): Input is not"),
    (Annotated[timedelta, Le(HOUR)], "PT2H", "less than or equal to 1 hour."),
    (int | None, "x", 'The value is not of type "integer" or "null", such as 3.'),
    (Pet, {"kind": "cow"}, '$.x.kind (enum): The value is not one of "cat", "dog" or'),
    (Cat | Dog, {"kind": "cow"}, 'The value is not one of "cat", "dog" or "hound".'),
    (Cat | Dog, {**OLD, "lives": "x"}, "$.x.lives (type): The value is not of type"),
    (Cat | Dog, {**HOUND, "born": "x"}, '$.x.born (format): The value is not a "date"'),
    (list[Cat | Dog], [3], '$.x[0] (type): The value is not of type "object".'),
]
got: list[Any] = []


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer a tool for each row: it returns what it gets, of this type."""
    registry = Registry()
    for table, rows in (("round", ROUND), ("wrong", WRONG)):
        for number, (hint, *_) in enumerate(rows):
            registry.tool(f"{table}{number}", tags=["private"])(_returning(hint))
    monkeypatch.setattr("tests.behaviours.registry", registry)


def _returning(hint: Any) -> Callable[[Any], Any]:
    def tool(x: Any) -> Any:
        got.append(x)
        return x

    tool.__annotations__ = {"x": hint, "return": hint}
    return tool


async def test_types_go_round(stateful: Client) -> None:
    listed = (await stateful.request("tools/list")).result["tools"]
    tools = {each["name"]: each for each in listed}
    for number, (hint, sent, schema, value, *back) in enumerate(ROUND):
        result = (await stateful.call(f"round{number}", x=sent)).result
        assert not result.get("isError"), (hint, result)
        taken, structured = got.pop(), result["structuredContent"]
        assert (taken, type(taken)) == (value, type(value))
        assert structured.get("result", structured) == (back or [sent])[0]
        tool = tools[f"round{number}"]
        assert schema in (None, tool["inputSchema"]["properties"]["x"]), hint
        # To a stateful that is strict about formats it is right, too.
        promised = tool["outputSchema"]
        strict = jsonschema_rs.is_valid(promised, structured, validate_formats=True)
        assert strict, hint


async def test_what_is_wrong_is_told_with_what_is_right(stateful: Client) -> None:
    for number, (hint, sent, sentence) in enumerate(WRONG):
        result = (await stateful.call(f"wrong{number}", x=sent)).result
        assert (result["isError"], got) == (True, [])
        assert sentence in result["content"][0]["text"], hint
