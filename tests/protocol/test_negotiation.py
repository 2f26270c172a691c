"""Which era and revision a message belongs to, and what it must say for that."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.protocol.envelope import LARGEST_ID, MAX_ID_LENGTH, Request, parse_message
from mcp_app.protocol.errors import (
    HeaderMismatch,
    IncompleteMeta,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ProtocolError,
    UnsupportedProtocolVersion,
)
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.negotiation import (
    LEVELS,
    PREFIX,
    check_session_version,
    check_stateless,
    check_version_header,
    is_stateless,
    meta_of,
    negotiate,
    recognise,
)
from mcp_app.protocol.revisions import REVISIONS, STATEFUL, SUPPORTED_VERSIONS

NEWEST: Final = "2026-07-28"
VERSION: Final = f"{PREFIX}protocolVersion"
CAPABILITIES: Final = f"{PREFIX}clientCapabilities"
INFO: Final = f"{PREFIX}clientInfo"
LEVEL: Final = f"{PREFIX}logLevel"
META: Final[dict[str, Any]] = {VERSION: NEWEST, CAPABILITIES: {}}

ERAS: Final[list[tuple[dict[str, Any], str | None, bool]]] = [
    *(({}, None, False), ({}, "2025-11-25", False), ({}, "2024-11-05", False)),
    *(({}, NEWEST, True), ({}, "1.0", True), ({}, "", True)),
    *(({"_meta": None}, None, False), ({"_meta": []}, None, False)),
    ({"_meta": {}}, "2025-11-25", False),
    ({"_meta": {VERSION: NEWEST}}, None, True),
    ({"_meta": {VERSION: NEWEST}}, "2025-11-25", True),
    ({"_meta": {VERSION: "2025-11-25"}}, None, True),
    ({"_meta": {VERSION: None}}, None, True),
    ({"_meta": {CAPABILITIES: {}}}, None, False),
    ({VERSION: NEWEST}, None, False),
]


@pytest.mark.parametrize(("params", "header", "stateless"), ERAS)
def test_eras(params: dict[str, Any], header: str | None, stateless: bool) -> None:
    assert is_stateless(params, header) is stateless


def headers(method: str = "tools/list", name: str | None = None) -> Headers:
    pairs = [(b"mcp-method", method.encode())]
    return Headers(pairs + ([(b"mcp-name", name.encode())] if name else []))


def checked(
    meta: Any = META,
    header: str | None = NEWEST,
    method: str = "tools/list",
    routing: Headers | None = None,
    **params: Any,
) -> Any:
    given = params if meta is None else {**params, "_meta": meta}
    found = headers(method) if routing is None else routing
    return check_stateless(Request(1, method, given), found, header)


def test_a_whole_request() -> None:
    assert checked() == (REVISIONS[NEWEST], META)
    meta = {**META, INFO: {"name": "a", "version": "1"}, LEVEL: "error", "x": 1}
    assert checked(meta)[1] == meta
    for level in LEVELS:
        assert checked({**META, LEVEL: level})
    for method, params in (
        ("tools/call", {"name": "a"}),
        ("prompts/get", {"name": "a"}),
        ("resources/read", {"uri": "a"}),
    ):
        assert checked(method=method, routing=headers(method, "a"), **params)
    # What has no name is for the handler to refuse.
    assert checked(method="tools/call", name=7)


WRONG: Final[list[tuple[dict[str, Any], type[ProtocolError]]]] = [
    *(({"meta": None}, IncompleteMeta), ({"meta": {}}, IncompleteMeta)),
    *(({"meta": []}, IncompleteMeta), ({"meta": "x"}, IncompleteMeta)),
    ({"meta": {**META, "progressToken": 1.5}}, IncompleteMeta),
    ({"meta": {VERSION: NEWEST}}, IncompleteMeta),
    ({"meta": {**META, VERSION: 7}}, IncompleteMeta),
    ({"meta": {**META, VERSION: 7}, "header": None}, IncompleteMeta),
    ({"meta": {**META, CAPABILITIES: []}}, IncompleteMeta),
    ({"meta": {**META, INFO: None}}, IncompleteMeta),
    ({"meta": {**META, INFO: {"name": "a"}}}, IncompleteMeta),
    ({"meta": {**META, INFO: {"name": 1, "version": "1"}}}, IncompleteMeta),
    ({"meta": {**META, LEVEL: "loud"}}, IncompleteMeta),
    ({"meta": {**META, LEVEL: None}}, IncompleteMeta),
    ({"header": None}, HeaderMismatch),
    ({"header": "2025-11-25"}, HeaderMismatch),
    ({"header": "1.0"}, HeaderMismatch),
    ({"meta": {**META, VERSION: "1.0"}, "header": "1.0"}, UnsupportedProtocolVersion),
    ({"meta": {**META, VERSION: "1.0"}, "header": None}, UnsupportedProtocolVersion),
    (
        {"meta": {**META, VERSION: "2025-11-25"}, "header": "2025-11-25"},
        UnsupportedProtocolVersion,
    ),
    ({"meta": None, "header": "1.0"}, UnsupportedProtocolVersion),
    ({"method": "ping"}, MethodNotFound),
    ({"method": "initialize"}, MethodNotFound),
    ({"routing": Headers([])}, HeaderMismatch),
    ({"routing": headers("tools/call")}, HeaderMismatch),
    ({"method": "tools/call", "name": "a"}, HeaderMismatch),
]


@pytest.mark.parametrize(("given", "error"), WRONG)
def test_what_is_wrong(given: dict[str, Any], error: type[ProtocolError]) -> None:
    with pytest.raises(error) as caught:
        checked(**given)
    assert type(caught.value) is error
    status = 404 if error is MethodNotFound else 400
    if error is not MethodNotFound:
        # The status of an unknown method is the revision's.
        assert caught.value.http_status == status
    if error is UnsupportedProtocolVersion:
        assert caught.value.data is not None
        assert caught.value.data["supported"] == list(SUPPORTED_VERSIONS)


@pytest.mark.parametrize("header", [None, *REVISIONS])
def test_version_headers(header: str | None) -> None:
    check_version_header(header)


@pytest.mark.parametrize("header", ["", "1.0", "2026-07-29"])
def test_version_headers_that_nobody_speaks(header: str) -> None:
    with pytest.raises(UnsupportedProtocolVersion):
        check_version_header(header)


@pytest.mark.parametrize("header", [None, *STATEFUL, NEWEST, "1.0", ""])
@pytest.mark.parametrize("version", STATEFUL)
def test_the_version_of_a_session(version: str, header: str | None) -> None:
    revision = REVISIONS[version]
    fine = header in (None, version) or (
        not revision.version_header and header in STATEFUL
    )
    if fine:
        check_session_version(revision, header)
        return
    with pytest.raises(InvalidRequest) as caught:
        check_session_version(revision, header)
    assert caught.value.http_status == 400


@pytest.mark.parametrize(
    ("requested", "agreed"),
    [
        *zip(STATEFUL, STATEFUL, strict=True),
        (NEWEST, "2025-11-25"),
        ("2024-10-07", "2025-11-25"),
        ("", "2025-11-25"),
    ],
)
def test_negotiated(requested: str, agreed: str) -> None:
    assert negotiate(requested).version == agreed


@pytest.mark.parametrize(
    ("params", "meta"),
    [
        ({}, None),
        ({"_meta": {}}, {}),
        ({"_meta": {"progressToken": "a"}}, {"progressToken": "a"}),
        ({"_meta": {"progressToken": 0}}, {"progressToken": 0}),
        ({"_meta": {"a/b": None}}, {"a/b": None}),
    ],
)
def test_meta(params: dict[str, Any], meta: dict[str, Any] | None) -> None:
    assert meta_of(params) == meta


@pytest.mark.parametrize(
    "meta",
    [
        *([], "x", 7, True),
        *({"progressToken": 1.5}, {"progressToken": True}, {"progressToken": []}),
    ],
)
def test_wrong_meta(meta: Any) -> None:
    with pytest.raises(InvalidParams):
        meta_of({"_meta": meta})


# -- recognised: the quick way says the same as the long one ----------------------

PLAIN_META: Final[dict[str, Any]] = {**META, INFO: {"name": "c", "version": "1"}}
PLAIN: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "add", "arguments": {"a": 1}, "_meta": PLAIN_META},
}
PLAIN_HEADERS: Final = {
    b"mcp-protocol-version": NEWEST.encode(),
    b"mcp-method": b"tools/call",
    b"mcp-name": b"add",
}

Altered = tuple[dict[str, Any], dict[bytes, bytes]]


def altered(
    body: dict[str, Any] | None = None,
    params: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
    headers: dict[bytes, bytes] | None = None,
) -> Altered:
    """Return the plain request with members changed; `...` takes one away."""
    whole_meta = merged(PLAIN_META, meta)
    whole_params = merged({**PLAIN["params"], "_meta": whole_meta}, params)
    whole = merged({**PLAIN, "params": whole_params}, body)
    return whole, merged(PLAIN_HEADERS, headers)


def merged(first: dict[Any, Any], second: dict[Any, Any] | None) -> dict[Any, Any]:
    both = {**first, **(second or {})}
    return {name: value for name, value in both.items() if value is not ...}


USUAL: Final[list[Altered]] = [
    *(altered(), altered(body={"id": "one"}), altered(body={"id": LARGEST_ID})),
    altered(body={"id": "x" * MAX_ID_LENGTH}),
    altered(meta={INFO: ...}),
    altered(meta={LEVEL: "info", "progressToken": 3, "example.org/more": []}),
    altered(body={"method": "tools/list"}, headers={b"mcp-method": b"tools/list"}),
    altered(
        body={"method": "resources/read"},
        params={"uri": "shop://orders/1"},
        headers={b"mcp-method": b"resources/read", b"mcp-name": b"shop://orders/1"},
    ),
]

WRONG_METHODS: Final[tuple[object, ...]] = (1, None, ["tools/call"], "ping")
WRONG_PARAMS: Final[tuple[object, ...]] = (None, [], "x", 1)
WRONG_IDS: Final[tuple[object, ...]] = (
    *(None, True, 1.5, "", LARGEST_ID + 1),
    "x" * (MAX_ID_LENGTH + 1),
)
WRONG_TOKENS: Final[tuple[object, ...]] = ({}, 1.5, "x" * (MAX_ID_LENGTH + 1))

UNUSUAL: Final[list[Altered]] = [
    altered(body={"jsonrpc": "1.0"}),
    altered(body={"jsonrpc": ...}),
    altered(body={"more": 1}),
    altered(body={"id": ...}),
    *(altered(body={"id": wrong}) for wrong in WRONG_IDS),
    altered(body={"id": -1}),
    *(altered(body={"method": wrong}) for wrong in WRONG_METHODS),
    *(altered(body={"params": wrong}) for wrong in WRONG_PARAMS),
    altered(params={"_meta": ...}),
    altered(params={"_meta": []}),
    altered(params={"name": ...}),
    altered(params={"name": 5}),
    altered(params={"name": "other"}),
    altered(params={"name": "ä"}, headers={b"mcp-name": b"\xc3\xa4"}),
    altered(params={"name": "=?x"}, headers={b"mcp-name": b"=?x"}),
    altered(meta={VERSION: "2025-11-25"}),
    altered(meta={VERSION: ...}),
    altered(meta={CAPABILITIES: []}),
    altered(meta={CAPABILITIES: ...}),
    altered(meta={INFO: {}}),
    altered(meta={INFO: {"name": "c", "version": 1}}),
    altered(meta={LEVEL: "loud"}),
    *(altered(meta={"progressToken": wrong}) for wrong in WRONG_TOKENS),
    altered(headers={b"mcp-protocol-version": b"2025-11-25"}),
    altered(headers={b"mcp-protocol-version": b"v9"}),
    altered(headers={b"mcp-protocol-version": ...}),  # type: ignore[dict-item]
    altered(headers={b"mcp-method": b"TOOLS/CALL"}),
    altered(headers={b"mcp-method": ...}),  # type: ignore[dict-item]
    altered(headers={b"mcp-name": b"=?base64?YWRk?="}),
    altered(headers={b"mcp-name": b" add "}),
    altered(headers={b"mcp-name": ...}),  # type: ignore[dict-item]
]


def test_usual_requests_are_recognised() -> None:
    for body, headers in USUAL:
        request = parse_message(body)
        assert isinstance(request, Request)
        slowly = check_stateless(request, Headers(list(headers.items())), NEWEST)
        assert recognise(body, headers) == (request, *slowly)


def test_the_others_go_the_long_way() -> None:
    quick = [each for each in UNUSUAL if recognise(*each) is not None]
    assert quick == []


@pytest.mark.parametrize("value", [None, 1, "x", [], [PLAIN], {}])
def test_what_is_no_message_is_not_recognised(value: object) -> None:
    assert recognise(value, PLAIN_HEADERS) is None
