from __future__ import annotations

import json
import math
import uuid
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType

import orjson
import pytest
from django.utils.functional import lazystr
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ParseError
from mcp_app.protocol.jsonrpc import (
    ReadLimits,
    UnserializableValue,
    canonical,
    read,
    write,
)

# Text, and what it says.
ACCEPTED: list[tuple[bytes, object]] = [
    *((b"{}", {}), (b"[]", []), (b" [ ] ", []), (b"\t{\r\n}\n", {}), (b"null", None)),
    *((b"true", True), (b"false", False), (b"0", 0), (b"-0", 0), (b"-1", -1)),
    *((b"42", 42), (b"1.5", 1.5), (b"-1.50", -1.5), (b"1e3", 1000.0)),
    *((b"1E+3", 1000.0), (b"1e-400", 0.0)),
    (b"1.7976931348623157e308", 1.7976931348623157e308),
    *((b"9223372036854775807", 2**63 - 1), (b"-9223372036854775808", -(2**63))),
    *((b"-9223372036854775809", -(2**63) - 1), (b"18446744073709551615", 2**64 - 1)),
    (b"18446744073709551616", 2**64),
    (b"1000000000000000000000000000000", 10**30),
    (b"9" * 4001, int("9" * 4001)),
    *((b'""', ""), (b'"a"', "a"), (b'"\\""', '"'), (b'"\\\\"', "\\"), (b'"\\/"', "/")),
    *((b'"\\b\\f\\n\\r\\t"', "\b\f\n\r\t"), (b'"\\u0041"', "A"), (b'"\\u0000"', "\0")),
    *((b'"\\u00e9"', "é"), (b'"\\ud83d\\ude00"', "😀"), (b'"\\\\ud800"', "\\ud800")),
    ('"é"'.encode(), "é"),
    ('"😀"'.encode(), "😀"),
    ('"\ufeff"'.encode(), "\ufeff"),
    ('"\u2028"'.encode(), "\u2028"),
    *((b'"\x7f"', "\x7f"), (b'{"a":1}', {"a": 1})),
    *((b'{"a":1,"A":2}', {"a": 1, "A": 2}), (b'{"":0}', {"": 0})),
    (b'{"a":{"a":{"a":1}}}', {"a": {"a": {"a": 1}}}),
    (b'[1,"[[[[",{"{":"}"}]', [1, "[[[[", {"{": "}"}]),
    *((b"[1, 2]", [1, 2]), (b"[[],[[]]]", [[], [[]]]), (b"[" * 64 + b"]" * 64, None)),
    (b'["' + b"[" * 100 + b'"]', ["[" * 100]),
    (b'["\\"' + b"[" * 100 + b'"]', ['"' + "[" * 100]),
    (b'["\\\\",' + b"[]," * 70 + b"1]", None),
]

# A part of the sentence that refuses texts, and these.
REFUSED = {
    "empty": [b""],
    "not JSON": [
        *(b" ", b"nul", b"True", b"undefined", b"{", b"}", b"[", b"[1", b"[1,]"),
        *(b"[,1]", b"[1 2]", b"[1]]", b"[1}", b"[] []", b"{}x", b'{"a"}', b'{"a":}'),
        *(b'{"a":1,}', b"{a:1}", b"{'a':1}", b"{1:1}", b'{"a" 1}', b"01", b"-01"),
        *(b"+1", b"-", b".5", b"1.", b"1.e1", b"1e", b"0x10", b"1_000"),
        *("\u0661".encode(), b'"', b'"a', b"'a'", b'"\\x41"', b'"\\u12"', b'"\\"'),
        *(b'"a\nb"', b'"a\x00b"', b'"\x1f"', "{}".encode("utf-16-le")),
        *("{}".encode("utf-32-be"), b"\x00{}", b"\x0b{}", "\u00a0{}".encode()),
        *(b"// x\n{}", b"{}/* x */"),
    ],
    "NaN is not a JSON number": [b"NaN"],
    "Infinity is not a JSON number": [b"[Infinity]"],
    "-Infinity is not a JSON number": [b"-Infinity"],
    "beyond the range": [b"1e400", b"[-1e400]", b"1.0e999999999"],
    "5000 digits": [b"9" * 5000],
    "surrogate": [b'"\\ud800"', b'"\\uDFFF"', b'["\\ude00\\ud83d"]', b'{"\\ud800":1}'],
    "not UTF-8": [
        *(b'"\xed\xa0\x80"', b'"\xc0\xaf"', b'"\xe2\x82"', "{}".encode("utf-16"))
    ],
    "not UTF-8 at byte 1": [b'"\xff"'],
    "byte order mark": [b"\xef\xbb\xbf{}"],
    "key 'a' twice": [b'{"a":1,"a":1}', b'{"a":1,"\\u0061":2}'],
    "key 'x' twice": [b'[{"b":{"x":1,"y":2,"x":3}}]'],
    "key 'method' twice": [b'{"method":"tools/list","method":"tools/call"}'],
    "more than 64": [
        *(b"[" * 65 + b"]" * 65, b"[" * 100_000, b'{"a":' * 65 + b"1" + b"}" * 65),
        b'[{"a":' * 40 + b"1" + b"}]" * 40,
    ],
    "more than 100000 values": [
        *(b"[" + b"1," * 100_000 + b"1]", b"[" + b"[]," * 60_000 + b"1]"),
        b"[" * 4_000_000,
    ],
}


def test_strict_json_is_read_exactly() -> None:
    for body, value in ACCEPTED:
        found = read(body)
        expected = json.loads(body) if value is None else value
        assert found == expected, body
        assert type(found) is type(expected), body


def test_anything_else_is_refused_with_a_sentence() -> None:
    for reason, bodies in REFUSED.items():
        for body in bodies:
            with pytest.raises(ParseError) as caught:
                read(body)
            error = caught.value
            case = (body[:80], error.message)
            assert reason in error.message, case
            assert error.message.endswith("."), case
            assert len(error.message) < 200, case
            assert (error.code, error.http_status) == (-32700, 400), case


def test_what_comes_out_otherwise_than_it_went_in_is_read_again() -> None:
    # The quick reader takes the last of two keys and rounds big integers.
    assert orjson.loads(b'{"a":1,"a":2}') == {"a": 2}
    assert orjson.loads(b"18446744073709551616") == 2.0**64
    assert isinstance(read(b"18446744073709551616"), int)


@pytest.mark.parametrize("body", [b"[[1]]", b"[ [1]]"])
def test_limits_are_parameters(body: bytes) -> None:
    assert read(body, ReadLimits(depth=2)) == [[1]]
    with pytest.raises(ParseError, match="more than 1 "):
        read(body, ReadLimits(depth=1))
    with pytest.raises(ParseError, match="more than 1 values"):
        read(body, ReadLimits(nodes=1))


def test_a_depth_beyond_pythons_own_is_still_a_parse_error() -> None:
    with pytest.raises(ParseError, match="too deeply"):
        read(b"[ " * 200_000 + b"]" * 200_000, ReadLimits(10**6, 10**6))


def test_an_unclosed_string_of_escapes_is_read_in_linear_time() -> None:
    with pytest.raises(ParseError, match="not JSON"):
        read(b'["' + b'\\"' * 1_000_000)


DEPTHS = [
    *((b"1", 0), (b"[]", 1), (b'{"a":[1]}', 2), (b'["[[["]', 1), (b'["\\"[[[",[]]', 2)),
    *((b'["\\\\",[[]]]', 3), (b"[" * 9 + b"]" * 9, 6), (b"]", 6)),
]


@pytest.mark.parametrize(("text", "expected"), DEPTHS)
def test_depth_counts_containers_outside_strings(text: bytes, expected: int) -> None:
    assert jsonrpc.nesting_depth(text, 5) == expected


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(json_values)
def test_what_is_written_is_read_again(value: object) -> None:
    assert read(write(value)) == value


@given(json_values)
def test_every_spelling_of_a_value_reads_the_same(value: object) -> None:
    assert read(json.dumps(value, indent=1).encode()) == value
    assert read(json.dumps(value, ensure_ascii=False).encode()) == value


@given(json_values)
def test_the_bound_on_values_is_one(value: object) -> None:
    def count(inner: object) -> int:
        if isinstance(inner, dict):
            inner = list(inner.values())
        return 1 + sum(map(count, inner)) if isinstance(inner, list) else 1

    assert jsonrpc.node_count(write(value)) + 1 >= count(value)


pieces = ['{"a":', "{", "}", "[", "]", ",", "1", "-0", "1e5", '"\\u0041"', '"', " "]


@given(st.binary() | st.lists(st.sampled_from(pieces)).map("".join).map(str.encode))
@example(b'[ {"a":1}, 1e5]')
def test_arbitrary_bytes_are_read_as_the_standard_library_does_or_refused(
    body: bytes,
) -> None:
    try:
        value = read(body)
    except ParseError:
        return
    assert value == json.loads(body)


class Colour(Enum):
    RED = "red"
    ODD = (1, 2)


class Size(IntEnum):
    BIG = 3


class Word(StrEnum):
    YES = "yes"


@dataclass
class Point:
    x: int
    y: float | None = None
    _hidden: int = 0


@dataclass(slots=True)
class Nested:
    points: list[Point]


class Item(BaseModel):
    name: str
    price: Decimal


Pair = namedtuple("Pair", "left right")
ID = uuid.UUID("12345678-1234-5678-1234-567812345678")

WRITTEN: list[tuple[object, str]] = [
    *((None, "null"), ("é😀\u2028", '"é😀\u2028"'), (0.1, "0.1")),
    *((2**64 - 1, "18446744073709551615"), (2**64, "18446744073709551616")),
    (-(2**63) - 1, "-9223372036854775809"),
    ([10**30, 1.5], "[1000000000000000000000000000000,1.5]"),
    (date(2026, 7, 28), '"2026-07-28"'),
    (datetime(2026, 7, 28, 1, 2, 3), '"2026-07-28T01:02:03"'),
    (datetime(2026, 7, 28, 1, 2, 3, 4, UTC), '"2026-07-28T01:02:03.000004+00:00"'),
    (time(1, 2), '"01:02:00"'),
    (time(1, 2, tzinfo=UTC), '"01:02:00+00:00"'),
    (timedelta(0), '"P0DT0H0M0S"'),
    (timedelta(days=1, seconds=3723, microseconds=5), '"P1DT1H2M3.000005S"'),
    (-timedelta(hours=25), '"-P1DT1H0M0S"'),
    (Decimal("1.10"), '"1.10"'),
    (ID, '"12345678-1234-5678-1234-567812345678"'),
    *((Colour.RED, '"red"'), (Colour.ODD, "[1,2]"), (Size.BIG, "3")),
    (Word.YES, '"yes"'),
    (Point(1), '{"x":1,"y":null}'),
    (Nested([Point(1, 2.5)]), '{"points":[{"x":1,"y":2.5}]}'),
    (Item(name="a", price=Decimal("1.5")), '{"name":"a","price":"1.5"}'),
    ({3, 1, 2}, "[1,2,3]"),
    (frozenset({"b", "a"}), '["a","b"]'),
    ({(1, "a")}, '[[1,"a"]]'),
    ({1, "a"}, '["a",1]'),
    ((1, (2,)), "[1,[2]]"),
    (Pair(1, 2), "[1,2]"),
    (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
    (MappingProxyType({"a": 1}), '{"a":1}'),
    (b"\x00\xff", '"AP8="'),
    (bytearray(b"a"), '"YQ=="'),
    (memoryview(b"a"), '"YQ=="'),
    (lazystr("later"), '"later"'),
    (orjson.Fragment(b'{"raw": null}'), '{"raw": null}'),
    ({1: 2, None: 3}, '{"1":2,"null":3}'),
    ({True: 1, 1.5: 2, ID: 3}, f'{{"true":1,"1.5":2,"{ID}":3}}'),
    ({Colour.RED: 1, date(2026, 1, 2): 2}, '{"red":1,"2026-01-02":2}'),
    ({Size.BIG: lazystr("x")}, '{"3":"x"}'),
]


def test_values_have_one_written_form() -> None:
    for value, text in WRITTEN:
        assert write(value).decode() == text


def test_the_form_is_the_same_where_the_quick_writer_has_to_give_up() -> None:
    for value, text in WRITTEN:
        assert write([value, 2**70]).decode() == f"[{text},{2**70}]"


UNWRITABLE: list[tuple[object, str]] = [
    *((math.nan, "$ is nan"), ([None, math.inf], "$[1] is inf")),
    ({"items": [0, 0, 0, {"price": math.nan}]}, "$.items[3].price is nan"),
    ({"a b": {"c": -math.inf}}, '$["a b"].c is -inf'),
    ({"a": Point(1, math.nan)}, "$.a.y is nan"),
    ({"a": (1, math.nan)}, "$.a[1] is nan"),
    ("\ud800", "$ has half of a surrogate pair"),
    ({"a": ["ok", "é\udfff"]}, "$.a[1] has half"),
    ({"a": {"\ud800": 1}}, "$.a has half"),
    ({"a": object()}, "$.a is of type 'object'"),
    ([iter(())], "$[0] is of type 'tuple_iterator'"),
    ([Point], "$[0] is of type 'type'"),
    ([Item], "$[0] is of type 'ModelMetaclass'"),
    ({"a": {(1, 2): 3}}, "$.a has a key of type 'tuple'"),
    ({1: 1, "1": 2}, "$ has two keys that are both written as '1'"),
    ([10**5000], "$[0] is an integer with too many digits"),
]


def test_what_json_cannot_say_is_refused_with_its_place() -> None:
    for value, sentence in UNWRITABLE:
        with pytest.raises(UnserializableValue) as caught:
            write(value)
        assert str(caught.value).startswith(sentence)
        assert str(caught.value).startswith(f"{caught.value.path} ")


def test_nulls_beside_numbers_are_no_nan() -> None:
    value = {"a": None, "b": [1.5, True, "null", {"c": None}]}
    assert write(value) == b'{"a":null,"b":[1.5,true,"null",{"c":null}]}'


def test_values_within_themselves_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(UnserializableValue, match="within itself"):
        write(endless)


def test_the_deepest_value_is_written_both_ways() -> None:
    def nested(levels: int, inner: object) -> object:
        for _ in range(levels):
            inner = [inner]
        return inner

    assert write(nested(254, 1)) == b"[" * 254 + b"1" + b"]" * 254
    assert write(nested(254, 2**70)) == b"[" * 254 + b"%d" % 2**70 + b"]" * 254
    with pytest.raises(UnserializableValue, match="254 deep"):
        write(nested(255, 1))


def test_canonical_text_does_not_depend_on_the_order_of_keys() -> None:
    one, other = {"b": 1, "a": {"d": 2**70, "c": None}}, {"a": {"c": None}, "b": 1}
    other["a"]["d"] = 2**70  # type: ignore[index]
    assert canonical(one) == canonical(other)
    assert (
        canonical({"b": 1, "a": [{"d": 1, "c": 2}]}) == b'{"a":[{"c":2,"d":1}],"b":1}'
    )


@given(json_values)
def test_canonical_text_says_the_same_value(value: object) -> None:
    assert read(canonical(value)) == value
    assert canonical(read(canonical(value))) == canonical(value)


def test_indented_text_keeps_order_and_characters() -> None:
    assert jsonrpc.pretty_text({"b": ["é"], "a": 1}) == (
        '{\n  "b": [\n    "é"\n  ],\n  "a": 1\n}'
    )


@pytest.mark.parametrize(
    ("text", "there"),
    [
        *((rb'"\u0000"', True), (rb'"\\\u0000"', True), (rb'"\\u0000"', False)),
        (rb'"u0000"', False),
    ],
)
def test_nul_is_found_where_it_is_not_escaped_itself(text: bytes, there: bool) -> None:
    assert jsonrpc.holds_nul(text) is there
