from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol.errors import HeaderMismatch, RequestRefused
from mcp_app.protocol.headers import (
    MOST_HEADER_BYTES,
    MOST_HEADERS,
    Accepts,
    Headers,
    MirroredParameter,
    check_mirrored,
    check_repeated,
    check_routing,
    check_session_header,
    check_singletons,
    decode_value,
    encode_value,
    is_json_type,
    is_loopback_host,
    is_plain_value,
    mirrored_parameters,
    parse_accept,
)
from mcp_app.protocol.json_types import JsonObject
from tests.apart import ROOT


def headers(*pairs: tuple[str, str]) -> Headers:
    return Headers((name.lower().encode(), value.encode()) for name, value in pairs)


VALUES = [
    *((b"plain", "plain"), (b"", ""), (b"  padded\t ", "padded")),
    *((b"us west 1", "us west 1"), (b"caf\xe9", "caf\u00e9")),
]


@pytest.mark.parametrize(("raw", "value"), VALUES)
def test_a_value_is_without_surrounding_white_space(raw: bytes, value: str) -> None:
    assert Headers([(b"x-a", raw), (b"x-b", b"other")]).get(b"x-a") == value


def test_headers_that_are_too_many_or_too_large() -> None:
    many = [(b"x-%d" % number, b"") for number in range(MOST_HEADERS)]
    half = b"x" * (MOST_HEADER_BYTES // 2)
    large = [(b"x-a", half), (b"x-b", half)]
    for fitting in (many, large):
        assert len(Headers(fitting).raw) == len(fitting)
        with pytest.raises(RequestRefused) as refused:
            Headers([*fitting, (b"y", b"1")])
        assert refused.value.http_status == 431
    with pytest.raises(RequestRefused):
        Headers([(b"accept", b"")] * (MOST_HEADERS + 1))


def test_the_limits_are_documented() -> None:
    said = (ROOT / "docs/settings.md").read_text("utf-8")
    limits = (
        f"more than {MOST_HEADERS} headers, or with more than"
        f" {MOST_HEADER_BYTES >> 10} KiB"
    )
    assert limits in " ".join(said.split())


@pytest.mark.parametrize("name", ["authorization", "Authorization", b"authorization"])
def test_names_are_found_in_any_case(name: str | bytes) -> None:
    assert headers(("Authorization", "Bearer a")).get(name, "") == "Bearer a"
    assert headers(("X-Other", "b")).get(name, "") == ""


def test_lists_that_stand_several_times_are_one_list() -> None:
    found = headers(("Accept", "a/b"), ("X", "1"), ("Accept", "c/d"), ("Accept", "e/f"))
    assert found.get(b"accept") == "a/b, c/d, e/f"
    assert found.get(b"x") == "1"


SINGLETONS = [
    ("Host", RequestRefused, 400, -32600),
    ("Origin", RequestRefused, 403, -32600),
    ("Authorization", RequestRefused, 400, -32600),
    ("Content-Type", RequestRefused, 400, -32600),
    ("Last-Event-ID", RequestRefused, 400, -32600),
    ("MCP-Protocol-Version", HeaderMismatch, 400, -32020),
]


@pytest.mark.parametrize("values", [("a", "b"), ("a", "a"), ("a", "")])
@pytest.mark.parametrize(("name", "error", "status", "code"), SINGLETONS)
def test_singletons_that_are_repeated_are_refused(
    name: str,
    error: type[RequestRefused | HeaderMismatch],
    status: int,
    code: int,
    values: tuple[str, str],
) -> None:
    with pytest.raises(error) as caught:
        check_singletons(headers(("X", "1"), *((name, value) for value in values)))
    assert (caught.value.http_status, caught.value.code) == (status, code)
    assert f"the {name.lower()} header is there more" in caught.value.message.lower()


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_what_admits_a_request_is_looked_at_first(name: str) -> None:
    with pytest.raises(RequestRefused):
        headers((name, "a"), (name, "a"))


def test_a_singleton_that_is_repeated_is_not_joined() -> None:
    found = headers(("Content-Type", "a/b"), ("Content-Type", "c/d"))
    assert found.get(b"content-type") == "c/d"


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name", "Mcp-Param-Region"])
def test_a_mirrored_header_that_is_repeated(name: str) -> None:
    found = headers((name, "a"), ("Mcp-Session-Id", "s"), (name, "a"))
    check_session_header(found)
    with pytest.raises(HeaderMismatch, match="is there more than once") as caught:
        check_repeated(found)
    assert name.lower() in caught.value.message.lower()


def test_a_session_header_that_is_repeated() -> None:
    found = headers(("Mcp-Session-Id", "s"), ("Mcp-Session-Id", "s"))
    check_repeated(found)
    with pytest.raises(RequestRefused, match="is there more than once"):
        check_session_header(found)


def test_other_headers_may_be_repeated() -> None:
    found = headers(("Accept", "a"), ("Accept", "b"))
    assert found.get("Accept") == "a, b"
    check_singletons(found)
    check_repeated(found)
    check_session_header(found)


ACCEPTED = [
    *((None, True, True), ("", True, True), ("*/*", True, True)),
    ("application/json, text/event-stream", True, True),
    ("text/event-stream,application/json", True, True),
    ("Application/JSON;q=0.5 ,\ttext/*", True, True),
    *(("application/json", True, False), ("application/*", True, False)),
    ("application/json; charset=utf-8; q=1.0", True, False),
    *(("text/event-stream", False, True), ("text/*;q=0.001", False, True)),
    ("application/json;q=0, */*", False, True),
    ("*/*;q=0.0", False, False),
    ("application/json;q=0.000, text/event-stream; q=0", False, False),
    ("application/*;q=0, application/json", True, False),
    *(("*/*, text/*;q=0", True, False), ("text/html", False, False)),
    *(("application/jsonx", False, False), ("json", False, False), (",", False, False)),
    (";q=0", False, False),
]


def test_accept_says_what_a_client_takes() -> None:
    for value, json, events in ACCEPTED:
        assert parse_accept(value) == Accepts(json=json, events=events), value


@given(st.text())
def test_any_accept_header_says_something(value: str) -> None:
    assert isinstance(parse_accept(value), Accepts)


CONTENT_TYPES: dict[bool, list[str | None]] = {
    True: [
        *("application/json", "Application/Json", "application/json; charset=utf-8"),
        *("application/json;charset=UTF-8", 'application/json; charset="utf-8"'),
    ],
    False: [
        *(None, "", "application/jsonx", "application/json-rpc"),
        *("application/json; charset=utf-16", "application/json; charset=utf-8; x=y"),
        *("application/json;", "application/json, text/plain", "text/plain"),
        *("text/plain; application/json", "multipart/form-data"),
    ],
}


def test_only_json_is_json() -> None:
    for expected, values in CONTENT_TYPES.items():
        for value in values:
            assert is_json_type(value) is expected, value


# The examples of the specification, and those of the conformance suite.
DECODED = [
    *(("us-west1", "us-west1"), ("us west\t1", "us west\t1"), ("", "")),
    ("file:///path/to/file%20name.txt?id=1", "file:///path/to/file%20name.txt?id=1"),
    ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
    ("=?base64?IHBhZGRlZCA=?=", " padded "),
    ("=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"),
    ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
    *(("=?base64?SGVsbG8=?=", "Hello"), ("=?base64??=", ""), ("SGVsbG8=", "SGVsbG8=")),
    ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
    ("SGVsbG8=?=", "SGVsbG8=?="),
    ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
    ("=?base64?=", "=?base64?="),
]


@pytest.mark.parametrize(("value", "text"), DECODED)
def test_base64_is_decoded_once_and_nothing_else_is(value: str, text: str) -> None:
    assert decode_value(value) == text


MALFORMED = [
    *("=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?!!!?="),
    *("=?base64?SGVsbG8==?=", "=?base64?SGVsbG8=SGVsbG8=?=", "=?base64?SGVs bG8=?="),
    *("=?base64?SGVsbG9=?=", "=?base64?_-8=?=", "=?base64?=?=", "=?base64?/w==?="),
    *("=?base64?7aCA?=", "caf\u00e9", "世界", "a\x00b", "a\x7fb", "a\nb"),
]


@pytest.mark.parametrize("value", MALFORMED)
def test_malformed_values_are_refused(value: str) -> None:
    with pytest.raises(HeaderMismatch, match="Header mismatch: a header value"):
        decode_value(value)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_can_be_encoded(text: str) -> None:
    encoded = base64.b64encode(text.encode()).decode()
    assert decode_value(f"=?base64?{encoded}?=") == text


ROUTED = [
    ([("Mcp-Method", "tools/list")], "tools/list", None),
    ([("MCP-METHOD", " tools/list ")], "tools/list", None),
    ([("mcp-method", "tools/list"), ("Mcp-Name", "any")], "tools/list", None),
    ([("Mcp-Method", "tools/call"), ("Mcp-Name", "add")], "tools/call", "add"),
    ([("Mcp-Method", "tools/call"), ("Mcp-Name", "  add ")], "tools/call", "add"),
    (
        [("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?w6k=?=")],
        "tools/call",
        "é",
    ),
    (
        [("Mcp-Method", "resources/read"), ("Mcp-Name", "file:///a%20b?c")],
        "resources/read",
        "file:///a%20b?c",
    ),
]


def test_routing_headers_that_say_what_the_body_says() -> None:
    for pairs, method, name in ROUTED:
        check_routing(headers(*pairs), method, name)


MISROUTED = [
    ([], "tools/list", None, "the Mcp-Method header is missing"),
    (
        [("Mcp-Method", "prompts/list")],
        "tools/list",
        None,
        "Mcp-Method header value 'prompts/list' does not match body value 'tools/list'",
    ),
    ([("Mcp-Method", "TOOLS/LIST")], "tools/list", None, "'TOOLS/LIST' does not match"),
    ([("Mcp-Method", "")], "tools/list", None, "'' does not match"),
    ([("Mcp-Method", "a")], "a", "foo", "the Mcp-Name header is missing"),
    (
        [("Mcp-Method", "a"), ("Mcp-Name", "foo")],
        "a",
        "bar",
        "Mcp-Name header value 'foo' does not match body value 'bar'",
    ),
    ([("Mcp-Method", "a"), ("Mcp-Name", "Foo")], "a", "foo", "'Foo' does not match"),
    ([("Mcp-Method", "a"), ("Mcp-Name", "é")], "a", "é", "invalid characters"),
    ([("Mcp-Method", "a"), ("Mcp-Name", "=?base64?!?=")], "a", "b", "valid Base64"),
]


def test_routing_headers_that_say_something_else_are_refused() -> None:
    for pairs, method, name, sentence in MISROUTED:
        with pytest.raises(HeaderMismatch) as caught:
            check_routing(headers(*pairs), method, name)
        assert caught.value.message.startswith("Header mismatch: ")
        assert sentence in caught.value.message
        assert (caught.value.http_status, caught.value.code) == (400, -32020)


def test_a_long_value_is_not_repeated() -> None:
    with pytest.raises(HeaderMismatch) as caught:
        check_routing(headers(("Mcp-Method", "a" * 5000)), "b" * 5000, None)
    assert len(caught.value.message) < 400


def annotated(header: object = "Region", kind: object = "string") -> JsonObject:
    return {"type": kind, "x-mcp-header": header}


MIRRORED: list[tuple[JsonObject, list[MirroredParameter]]] = [
    ({}, []),
    ({"type": "object", "properties": {"a": {"type": "string"}}}, []),
    (
        {"properties": {"region": annotated()}},
        [MirroredParameter(("region",), "Region", "string")],
    ),
    (
        {
            "properties": {
                "a": {"properties": {"properties": annotated("X", "integer")}}
            }
        },
        [MirroredParameter(("a", "properties"), "X", "integer")],
    ),
    (
        {
            "properties": {
                "a": annotated("Method", "boolean"),
                "b": annotated("!#$%&'*+-.^_`|~"),
            }
        },
        [
            MirroredParameter(("a",), "Method", "boolean"),
            MirroredParameter(("b",), "!#$%&'*+-.^_`|~", "string"),
        ],
    ),
    # The name of a property, and values, are no annotations.
    ({"properties": {"x-mcp-header": {"type": "string"}}}, []),
    ({"properties": {"a": {"default": annotated(), "enum": [annotated()]}}}, []),
    ({"properties": {"a": True}, "items": False}, []),
]


def test_mirrored_parameters_are_found_by_their_annotation() -> None:
    for schema, expected in MIRRORED:
        assert list(mirrored_parameters(schema)) == expected, schema


BAD_HEADERS = [
    *("", " ", "a b", "a:b", "a@b", "a\r\nb", "é", "a/b", "a\x00", None, 1, True)
]
BAD_TYPES = [
    *("number", "object", "array", "null", None, ["string"], ["string", "null"], 1),
]
BAD_PLACES: list[JsonObject] = [
    annotated(),
    {"properties": {"a": {"items": annotated()}}},
    {"properties": {"a": {"items": {"properties": {"b": annotated()}}}}},
    {"properties": {"a": {"prefixItems": [annotated()]}}},
    {"properties": {"a": {"contains": annotated()}}},
    {"properties": {"a": {"anyOf": [annotated()]}}},
    {"additionalProperties": annotated()},
    {"patternProperties": {"a": annotated()}},
    {"unevaluatedProperties": annotated()},
    {"dependentSchemas": {"a": {"properties": {"b": annotated()}}}},
    *(
        {word: [{"properties": {"a": annotated()}}]}
        for word in ("oneOf", "anyOf", "allOf")
    ),
    *(
        {word: {"properties": {"a": annotated()}}}
        for word in ("not", "if", "then", "else")
    ),
    {"$defs": {"a": annotated()}, "properties": {"b": {"$ref": "#/$defs/a"}}},
    {"definitions": {"a": annotated()}},
]


@pytest.mark.parametrize("header", BAD_HEADERS)
def test_an_annotation_is_a_token(header: object) -> None:
    with pytest.raises(ValueError, match=r"\$\.properties\.a must be a token"):
        mirrored_parameters({"properties": {"a": annotated(header)}})


@pytest.mark.parametrize("kind", BAD_TYPES)
def test_only_integers_strings_and_booleans_are_mirrored(kind: object) -> None:
    with pytest.raises(ValueError, match="only an integer, a string or a boolean"):
        mirrored_parameters({"properties": {"a": annotated(kind=kind)}})


@pytest.mark.parametrize("schema", BAD_PLACES)
def test_an_annotation_is_reached_through_properties_alone(schema: JsonObject) -> None:
    with pytest.raises(ValueError, match="must be on a parameter that"):
        mirrored_parameters(schema)


def test_an_annotation_is_unique_without_regard_to_case() -> None:
    properties = {
        "a": annotated("Region"),
        "b": {"properties": {"c": annotated("region")}},
    }
    with pytest.raises(ValueError, match=r"More than one parameter has .* 'Region'"):
        mirrored_parameters({"properties": properties})


LARGEST = 2**53 - 1

# A type, what the header says (None: no header), and the argument (absent without).
SAID: list[tuple[str, str | None, JsonObject]] = [
    *(("string", "Hello", {"p": "Hello"}), ("string", " Hello ", {"p": "Hello"})),
    ("string", "", {"p": ""}),
    ("string", "=?base64?SGVsbG8=?=", {"p": "Hello"}),
    ("string", "=?base64?IHBhZGRlZCA=?=", {"p": " padded "}),
    ("string", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", {"p": "=?base64?literal?="}),
    ("string", "SGVsbG8=", {"p": "SGVsbG8="}),
    ("string", "=?base64?SGVsbG8=", {"p": "=?base64?SGVsbG8="}),
    *(("string", "042", {"p": "042"}), ("string", None, {})),
    *(("string", None, {"p": None}), ("integer", "42", {"p": 42})),
    *(("integer", "042", {"p": 42}), ("integer", "42.0", {"p": 42})),
    *(("integer", "42", {"p": 42.0}), ("integer", "+42", {"p": 42})),
    ("integer", "-7", {"p": -7}),
    ("integer", "=?base64?NDI=?=", {"p": 42}),
    ("integer", str(LARGEST), {"p": LARGEST}),
    ("integer", str(-LARGEST), {"p": -LARGEST}),
    *(("integer", None, {"p": None}), ("boolean", "true", {"p": True})),
    ("boolean", "false", {"p": False}),
]
CONTRADICTED: list[tuple[str, str | None, JsonObject, str]] = [
    ("string", None, {"p": "test-value"}, "the Mcp-Param-P header is missing"),
    ("string", "a", {"p": "b"}, "'a' does not match body value 'b'"),
    ("string", "A", {"p": "a"}, "'A' does not match body value 'a'"),
    ("string", "042", {"p": "42"}, "does not match body value '42'"),
    ("string", "a", {}, "'a' does not match body value null"),
    ("string", "a", {"p": None}, "'a' does not match body value null"),
    ("string", "", {}, "'' does not match body value null"),
    ("string", "null", {"p": None}, "'null' does not match body value null"),
    ("string", "=?base64?SGVsbG8?=", {"p": "Hello"}, "not valid Base64"),
    ("string", "=?base64?SGVs!!!bG8=?=", {"p": "Hello"}, "not valid Base64"),
    ("string", "é", {"p": "é"}, "invalid characters"),
    ("string", "{}", {"p": {}}, "body value of another type"),
    ("string", "[]", {"p": []}, "body value of another type"),
    ("string", None, {"p": ["a"]}, "the Mcp-Param-P header is missing"),
    ("integer", "43", {"p": 42}, "'43' does not match body value 42"),
    ("integer", "42.5", {"p": 42}, "'42.5' does not match body value 42"),
    ("integer", "4.2e1", {"p": 42}, "does not match"),
    ("integer", "0x2a", {"p": 42}, "does not match"),
    ("integer", "4_2", {"p": 42}, "does not match"),
    ("integer", "", {"p": 0}, "does not match"),
    ("integer", "9" * 5000, {"p": 42}, "does not match"),
    ("integer", str(LARGEST + 1), {"p": LARGEST + 1}, "does not match"),
    ("integer", str(-LARGEST - 1), {"p": -LARGEST - 1}, "does not match"),
    ("integer", "1", {"p": True}, "'1' does not match body value true"),
    ("boolean", "True", {"p": True}, "'True' does not match body value true"),
    ("boolean", "1", {"p": True}, "does not match"),
    ("boolean", "true", {"p": False}, "does not match body value false"),
    ("boolean", None, {"p": False}, "missing"),
]


def mirrored(kind: str, said: str | None, arguments: JsonObject) -> None:
    pairs = [] if said is None else [("Mcp-Param-P", said)]
    found = headers(("Mcp-Param-Unknown", "ignored"), *pairs)
    check_mirrored((MirroredParameter(("p",), "P", kind),), found, arguments)
    nested = MirroredParameter(("deep", "p"), "P", kind)
    check_mirrored((nested,), found, {"deep": arguments})


def test_headers_that_say_what_the_arguments_say() -> None:
    for kind, said, arguments in SAID:
        mirrored(kind, said, arguments)


def test_headers_that_contradict_the_arguments_are_refused() -> None:
    for kind, said, arguments, sentence in CONTRADICTED:
        with pytest.raises(HeaderMismatch) as caught:
            mirrored(kind, said, arguments)
        assert sentence in caught.value.message
        assert len(caught.value.message) < 400


def test_an_argument_inside_something_else_is_absent() -> None:
    parameter = MirroredParameter(("a", "b"), "P", "string")
    for arguments in ({}, {"a": 1}, {"a": None}, {"a": [{"b": "x"}]}):
        check_mirrored((parameter,), headers(), arguments)


def test_cookies_are_put_together_again() -> None:
    """HTTP/2 may take them apart (RFC 9113, section 8.2.3)."""
    headers = Headers([(b"cookie", b"a=1"), (b"x-a", b"1"), (b"cookie", b"b=2")])
    assert headers.get("Cookie") == "a=1; b=2"
    assert Headers([(b"x-a", b"1"), (b"x-a", b"2")]).get("X-A") == "1, 2"


@given(st.text())
def test_what_a_client_encodes_is_decoded(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    encoded = encode_value(text)
    assert encoded.isascii()
    assert encoded.isprintable()
    assert decode_value(encoded) == text
    if is_plain_value(text) and text == text.strip():
        assert encoded == text


def test_a_mirrored_argument_says_what_is_checked() -> None:
    schema = {
        "properties": {
            name: {"type": kind, "x-mcp-header": name}
            for name, kind in (("s", "string"), ("i", "integer"), ("b", "boolean"))
        }
    }
    parameters = mirrored_parameters(schema)
    arguments = {"s": "São", "i": -5, "b": False}
    said = [each.header_value(arguments) for each in parameters]
    assert said == ["=?base64?U8Ojbw==?=", "-5", "false"]
    pairs = zip(parameters, said, strict=True)
    sent = Headers((each.name, str(text).encode()) for each, text in pairs)
    check_mirrored(parameters, sent, arguments)
    assert [each.header_value({"s": None, "i": 1.5}) for each in parameters] == [
        None
    ] * 3


# -- loopback --------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "::1"])
def test_this_computer(host: str) -> None:
    assert is_loopback_host(host)


@pytest.mark.parametrize(
    "host",
    [
        *(None, "", "[localhost]", "localhost.", "localhost.evil.example", "127.1"),
        *("127.0.0.1.evil.example", "0x7f.1", "::ffff:127.0.0.1", "::1%lo"),
    ],
)
def test_what_may_be_another_one(host: str | None) -> None:
    assert not is_loopback_host(host)
