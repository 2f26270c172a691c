"""Exchanges that are drawn from a seed: right ones, and ones that are wrong in one way.

An exchange is of one revision. In a session it begins with `initialize`, and ends with
a request that is right, so that a session that was spoilt is found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, TypeAlias

from tests.asgi_client import BASE_HEADERS, CLIENT, PREFIX, routing_headers

JsonObject: TypeAlias = dict[str, Any]

STATEFUL: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS: Final = ("2026-07-28",)
VERSIONS: Final = STATEFUL + STATELESS
SESSION: Final = "the session of this side"
LONG: Final = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One HTTP request; a header whose value is `SESSION` names each side's own."""

    method: str = "POST"
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Requests that follow each other; `kind` says what is tried, `streams` how the
    official SDK is to answer."""

    number: int
    version: str
    kind: str
    streams: bool
    steps: tuple[Step, ...]

    @property
    def stateless(self) -> bool:
        return self.version in STATELESS


class Draw:
    """What a kind is made with: chance, and messages of a revision."""

    def __init__(self, random: Random, version: str) -> None:
        self.random = random
        self.version = version
        self.stateless = version in STATELESS
        self._id = 10

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    # -- messages -----------------------------------------------------------------

    def request(self, method: str, params: Any = None, **more: Any) -> JsonObject:
        """Return a request; stateless ones have the `_meta` that they need."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method}
        if self.stateless and (params is None or isinstance(params, dict)):
            own = (params or {}).get("_meta", {})
            meta = {**self.meta(), **own} if isinstance(own, dict) else own
            params = {**(params or {}), "_meta": meta}
        if params is not None:
            message["params"] = params
        return {**message, **more}

    def meta(self) -> JsonObject:
        return {
            f"{PREFIX}protocolVersion": self.version,
            f"{PREFIX}clientInfo": CLIENT,
            f"{PREFIX}clientCapabilities": {},
        }

    def step(self, message: object, **changes: str | None) -> Step:
        """Return the POST of a message; None takes a header away."""
        headers: dict[str, str | None] = dict(BASE_HEADERS)
        if self.stateless:
            headers["mcp-protocol-version"] = self.version
            headers.update(routing_headers(message))
        else:
            headers["mcp-session-id"] = SESSION
            if self.version >= "2025-06-18":
                headers["mcp-protocol-version"] = self.version
        headers.update({k.replace("_", "-"): v for k, v in changes.items()})
        named = {name: value for name, value in headers.items() if value is not None}
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return Step(headers=named, body=body)

    def asked(self, method: str, params: Any = None, **more: Any) -> Step:
        return self.step(self.request(method, params, **more))

    def called(self, tool: object, arguments: object = None, **params: Any) -> Step:
        given = {} if arguments is None else {"arguments": arguments}
        return self.asked("tools/call", {"name": tool, **given, **params})

    def opening(self, **changes: Any) -> list[Step]:
        """Return what opens a session."""
        return [
            self.initialize(**changes),
            self.step({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ]

    def initialize(self, **changes: Any) -> Step:
        params = {
            "protocolVersion": self.version,
            "capabilities": {},
            "clientInfo": CLIENT,
            **changes,
        }
        given = {name: value for name, value in params.items() if value != "away"}
        message = self.request("initialize", given, id="hello")
        return self.step(message, mcp_session_id=None, mcp_protocol_version=None)


Make: TypeAlias = Callable[[Draw], list[Step]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A way in which a request is right or wrong; `opens` says whether a session is
    opened before it."""

    make: Make
    versions: tuple[str, ...] = VERSIONS
    opens: bool = True


def exchange(seed: int, number: int) -> Exchange:
    """Return the exchange of a number, the same one each time."""
    random = Random(f"{seed}.{number}")  # noqa: S311 - no secret
    # Each kind as often as any other, whatever is drawn.
    name = list(KINDS)[number % len(KINDS)]
    version = random.choice(KINDS[name].versions)
    kind, draw = KINDS[name], Draw(random, version)
    steps = kind.make(draw)
    if kind.opens:
        last = draw.called("paints", {})
        steps = [*([] if draw.stateless else draw.opening()), *steps, last]
    return Exchange(
        number=number,
        version=version,
        kind=name,
        streams=random.random() < 0.5,
        steps=tuple(steps),
    )


def exchanges(seed: int, count: int) -> Iterator[Exchange]:
    """Give so many exchanges."""
    return (exchange(seed, number) for number in range(count))


# -- what is right ---------------------------------------------------------------------

LISTS: Final = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
)
CALLS: Final[tuple[tuple[str, JsonObject], ...]] = (
    ("add", {"a": 1, "b": -2}),
    ("add", {"a": LONG, "b": 1}),
    ("greet", {"name": "Ada"}),
    ("greet", {"name": "Zoë \U0001f375", "times": 2}),
    ("weather", {"place": "Ulm"}),
    ("paints", {}),
    ("fails", {"why": "It is late."}),
    ("breaks", {}),
    ("counts", {"steps": 3}),
)


def _lists(draw: Draw) -> list[Step]:
    given = draw.one(None, {}, {"_meta": {}})
    return [draw.asked(draw.one(*LISTS), given)]


def _calls(draw: Draw) -> list[Step]:
    return [draw.called(*draw.one(*CALLS)) for _ in range(draw.one(1, 2, 3))]


def _counts(draw: Draw) -> list[Step]:
    token = draw.one("t", "", 0, 7, -1)
    meta = {"progressToken": token}
    return [draw.called("counts", {"steps": draw.one(0, 1, 3)}, _meta=meta)]


def _reads(draw: Draw) -> list[Step]:
    uri = draw.one("note://one", "note://data", "note://by/ada", "note://by/a%20b")
    return [draw.asked("resources/read", {"uri": uri})]


def _prompts(draw: Draw) -> list[Step]:
    given: JsonObject = draw.one(
        {"name": "hello"},
        {"name": "hello", "arguments": {}},
        {"name": "ask", "arguments": {"topic": "tea"}},
        {"name": "ask", "arguments": {"topic": "tea", "tone": "loud"}},
    )
    return [draw.asked("prompts/get", given)]


def _completes(draw: Draw) -> list[Step]:
    argument = {"name": "topic", "value": draw.one("", "t", "to", "x")}
    ref = {"type": "ref/prompt", "name": "ask"}
    return [draw.asked("completion/complete", {"ref": ref, "argument": argument})]


def _pings(draw: Draw) -> list[Step]:
    return [draw.asked("ping", draw.one(None, {}, {"_meta": {"example.org/a": 1}}))]


def _discovers(draw: Draw) -> list[Step]:
    return [draw.asked("server/discover")]


def _right_ids(draw: Draw) -> list[Step]:
    number = draw.one(0, -1, 1, LONG - 1, "", "a", "1", "Zoë", "x" * 200)
    return [draw.called("add", {"a": 1, "b": 2}), draw.asked("tools/list", id=number)]


def _ids_again(draw: Draw) -> list[Step]:
    """Of a request that was answered, with the same message and with another one."""
    first = draw.called("add", {"a": 1, "b": 2})
    other = replace(first, body=first.body.replace(b"2}", b"3}"))
    return [first, draw.one(first, other, other)]


# -- wrong parameters ------------------------------------------------------------------


def _params_of_no_object(draw: Draw) -> list[Step]:
    method = draw.one(*LISTS, "tools/call", "prompts/get", "resources/read")
    return [
        draw.step(draw.request(method) | {"params": draw.one([], [1], "a", 1, True)})
    ]


def _null_params(draw: Draw) -> list[Step]:
    return [draw.step(draw.request(draw.one(*LISTS)) | {"params": None})]


def _missing_members(draw: Draw) -> list[Step]:
    method, params = draw.one(
        ("tools/call", {}),
        ("tools/call", {"arguments": {"a": 1, "b": 2}}),
        ("prompts/get", {}),
        ("resources/read", {}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "ask"}}),
    )
    return [draw.asked(method, params)]


def _wrong_types(draw: Draw) -> list[Step]:
    wrong = draw.one(1, None, [], {}, True)
    method, params = draw.one(
        ("tools/call", {"name": wrong}),
        ("prompts/get", {"name": wrong}),
        ("resources/read", {"uri": wrong}),
        ("prompts/get", {"name": "ask", "arguments": draw.one(1, "a", [], ["x"])}),
        ("prompts/get", {"name": "ask", "arguments": {"topic": draw.one(1, {}, [])}}),
        ("completion/complete", {"ref": draw.one(1, "ask", []), "argument": {}}),
        ("completion/complete", {"ref": {"type": "ref/tool", "name": "add"}}),
    )
    return [draw.asked(method, params)]


def _arguments_of_no_object(draw: Draw) -> list[Step]:
    return [draw.called("add", draw.one(1, "a", [], [1, 2], True))]


def _null_arguments(draw: Draw) -> list[Step]:
    return [draw.asked("tools/call", {"name": "paints", "arguments": None})]


def _wrong_arguments(draw: Draw) -> list[Step]:
    given = draw.one(
        {},
        {"a": 1},
        {"a": "x", "b": 1},
        {"a": 1.5, "b": 2},
        {"a": None, "b": 2},
        {"a": [1], "b": 2},
        {"a": {"b": 1}, "b": 2},
    )
    return [draw.called("add", given)]


def _lax_arguments(draw: Draw) -> list[Step]:
    return [
        draw.called(
            *draw.one(
                ("add", {"a": "1", "b": 2}),
                ("add", {"a": True, "b": 2}),
                ("greet", {"name": "Ada", "times": "2"}),
            )
        )
    ]


def _whole_floats(draw: Draw) -> list[Step]:
    return [draw.called("add", {"a": 1.0, "b": draw.one(2, 2.0, 1e3)})]


def _more_arguments(draw: Draw) -> list[Step]:
    return [draw.called("add", {"a": 1, "b": 2, "c": draw.one(1, None, {})})]


def _more_members(draw: Draw) -> list[Step]:
    more = {draw.one("extra", "x-y", ""): draw.one(1, None, {})}
    return [
        draw.one(
            draw.asked("tools/list", more),
            draw.called("add", {"a": 1, "b": 2}, **more),
            draw.asked("resources/read", {"uri": "note://one", **more}),
        )
    ]


def _unknown_tools(draw: Draw) -> list[Step]:
    return [draw.called(draw.one("none", "Add", " add", "x" * 300), {})]


def _unknown_prompts(draw: Draw) -> list[Step]:
    return [draw.asked("prompts/get", {"name": draw.one("none", "Ask", "")})]


def _prompts_without_arguments(draw: Draw) -> list[Step]:
    given = draw.one({}, {"arguments": {}}, {"arguments": {"tone": "loud"}})
    return [draw.asked("prompts/get", {"name": "ask", **given})]


def _unknown_resources(draw: Draw) -> list[Step]:
    uri = draw.one("note://none", "other://one", "note://by/a/b", "one", "")
    return [draw.asked("resources/read", {"uri": uri})]


def _lost_resources(draw: Draw) -> list[Step]:
    return [draw.asked("resources/read", {"uri": "note://lost"})]


def _unknown_completions(draw: Draw) -> list[Step]:
    ref, name = draw.one(
        ({"type": "ref/prompt", "name": "none"}, "topic"),
        ({"type": "ref/prompt", "name": "ask"}, "none"),
        ({"type": "ref/prompt", "name": "ask"}, "tone"),
        ({"type": "ref/resource", "uri": "note://none"}, "name"),
        ({"type": "ref/resource", "uri": "note://by/{name}"}, "name"),
    )
    argument = {"name": name, "value": "t"}
    return [draw.asked("completion/complete", {"ref": ref, "argument": argument})]


def _bad_cursors(draw: Draw) -> list[Step]:
    return [draw.asked(draw.one(*LISTS), {"cursor": draw.one("", "x", "MTA=", "0")})]


def _cursors_of_no_text(draw: Draw) -> list[Step]:
    return [draw.asked(draw.one(*LISTS), {"cursor": draw.one(1, [], {}, True)})]


# -- wrong messages --------------------------------------------------------------------


def _wrong_ids(draw: Draw) -> list[Step]:
    return [draw.asked("tools/list", id=draw.one([], {}, True, [1]))]


def _null_ids(draw: Draw) -> list[Step]:
    return [draw.asked("tools/list", id=None)]


def _fractional_ids(draw: Draw) -> list[Step]:
    return [draw.asked("tools/list", id=draw.one(1.5, -0.5))]


def _large_ids(draw: Draw) -> list[Step]:
    return [draw.asked("tools/list", id=draw.one(LONG + 1, 2**63, 2**70))]


def _wrong_envelopes(draw: Draw) -> list[Step]:
    message = draw.request("tools/list")
    change = draw.one(
        {"jsonrpc": "1.0"},
        {"jsonrpc": 2.0},
        {"jsonrpc": None},
        {"method": 1},
        {"method": None},
        {"method": []},
    )
    return [
        draw.step(message | change, mcp_method="tools/list" if draw.stateless else None)
    ]


def _without_jsonrpc(draw: Draw) -> list[Step]:
    message = draw.request("tools/list")
    del message["jsonrpc"]
    return [draw.step(message)]


def _more_in_the_envelope(draw: Draw) -> list[Step]:
    return [draw.step(draw.request("tools/list") | {"extra": draw.one(1, None, {})})]


def _request_and_answer(draw: Draw) -> list[Step]:
    more = draw.one({"result": {}}, {"error": {"code": 1, "message": "No."}})
    return [draw.step(draw.request("tools/list") | more)]


def _no_messages(draw: Draw) -> list[Step]:
    value = draw.one({}, 1, "a", None, True, {"id": 1}, {"jsonrpc": "2.0"})
    return [draw.step(value)]


def _answers(draw: Draw) -> list[Step]:
    """To questions that nobody has asked."""
    answer = draw.one({"result": {}}, {"error": {"code": 1, "message": "No."}})
    return [draw.step({"jsonrpc": "2.0", "id": draw.one(1, "a"), **answer})]


def _no_json(draw: Draw) -> list[Step]:
    return [draw.step(draw.one(b"", b"{", b"nothing", b"{]", b"\xff\xfe", b'{"a":1}}'))]


def _names_twice(draw: Draw) -> list[Step]:
    text = json.dumps(draw.request("tools/list"))
    return [replace(draw.asked("tools/list"), body=f'{{"id":0,{text[1:]}'.encode())]


def _no_finite_numbers(draw: Draw) -> list[Step]:
    text = json.dumps(
        draw.request("tools/call", {"name": "add", "arguments": {"a": 0}})
    )
    text = text.replace('"a": 0', f'"a": {draw.one("NaN", "Infinity")}, "b": 1')
    return [replace(draw.called("add"), body=text.encode())]


def _unknown_methods(draw: Draw) -> list[Step]:
    method = draw.one(
        "no/such", "tools", "Tools/list", "", "rpc.discover", "tools/list "
    )
    return [draw.asked(method, draw.one(None, {}, {"a": 1}))]


def _methods_of_others(draw: Draw) -> list[Step]:
    """Those of clients, those of notifications, and those of another era."""
    methods = ["sampling/createMessage", "roots/list", "notifications/initialized"]
    methods += ["initialize", "ping"] if draw.stateless else ["server/discover"]
    return [draw.asked(draw.one(*methods))]


def _methods_not_offered(draw: Draw) -> list[Step]:
    return [
        draw.one(
            draw.asked("logging/setLevel", {"level": "info"}),
            draw.asked("resources/subscribe", {"uri": "note://one"}),
            draw.asked("resources/unsubscribe", {"uri": "note://one"}),
        )
    ]


def _batches(draw: Draw) -> list[Step]:
    ping = draw.request("tools/list")
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return [draw.step(draw.one([ping], [ping, draw.request("tools/list")], [told]))]


def _empty_batches(draw: Draw) -> list[Step]:
    return [draw.step([])]


# -- notifications ---------------------------------------------------------------------


def _notifications(draw: Draw) -> list[Step]:
    method, params = draw.one(
        ("notifications/initialized", None),
        ("notifications/initialized", {}),
        ("notifications/cancelled", {"requestId": 99}),
        ("notifications/cancelled", {}),
        ("notifications/progress", {"progressToken": 1, "progress": 1}),
        ("notifications/roots/list_changed", None),
        ("notifications/none", {"a": 1}),
        ("none", None),
        ("tools/list", None),
    )
    message = {"jsonrpc": "2.0", "method": method}
    return [draw.step(message if params is None else {**message, "params": params})]


def _notifications_with_wrong_params(draw: Draw) -> list[Step]:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return [draw.step({**message, "params": draw.one([], 1, "a")})]


# -- _meta -----------------------------------------------------------------------------


def _meta_of_no_object(draw: Draw) -> list[Step]:
    return [draw.asked("tools/list", {"_meta": draw.one(1, "a", [], True)})]


def _unknown_meta(draw: Draw) -> list[Step]:
    meta = {draw.one("example.org/a", "a", "x.y/z"): draw.one(1, None, {}, [])}
    return [
        draw.one(
            draw.asked("tools/list", {"_meta": meta}),
            draw.called("paints", {}, _meta=meta),
        )
    ]


def _wrong_tokens(draw: Draw) -> list[Step]:
    meta = {"progressToken": draw.one([], {}, True)}
    return [draw.called("counts", {"steps": 1}, _meta=meta)]


def _fractional_tokens(draw: Draw) -> list[Step]:
    return [draw.called("counts", {"steps": 1}, _meta={"progressToken": 1.5})]


def _without_meta(draw: Draw) -> list[Step]:
    message = draw.request("tools/list")
    key = draw.one("protocolVersion", "clientCapabilities")
    if draw.one(True, False):
        del message["params"]["_meta"][f"{PREFIX}{key}"]
    else:
        message["params"] = draw.one({}, {"_meta": {}})
    return [draw.step(message)]


def _without_client_info(draw: Draw) -> list[Step]:
    message = draw.request("tools/list")
    del message["params"]["_meta"][f"{PREFIX}clientInfo"]
    return [draw.step(message)]


def _wrong_meta(draw: Draw) -> list[Step]:
    key, value = draw.one(
        ("protocolVersion", draw.one(1, None, [])),
        ("clientCapabilities", draw.one(1, None, [], "a")),
        ("clientInfo", draw.one(1, [], "a", {}, {"name": "x"})),
    )
    return [draw.asked("tools/list", {"_meta": {f"{PREFIX}{key}": value}})]


def _other_versions(draw: Draw) -> list[Step]:
    """In the header and in the body."""
    version = draw.one("2099-01-01", "1.0", "x")
    message = draw.request(
        "tools/list", {"_meta": {f"{PREFIX}protocolVersion": version}}
    )
    return [draw.step(message, mcp_protocol_version=version)]


def _older_versions(draw: Draw) -> list[Step]:
    version = draw.one(*STATEFUL)
    message = draw.request(
        "tools/list", {"_meta": {f"{PREFIX}protocolVersion": version}}
    )
    return [draw.step(message, mcp_protocol_version=draw.one(version, draw.version))]


# -- headers ---------------------------------------------------------------------------


def _wrong_routing(draw: Draw) -> list[Step]:
    message = draw.request("tools/call", {"name": "paints", "arguments": {}})
    name, value = draw.one(
        ("mcp_method", None),
        ("mcp_method", "tools/list"),
        ("mcp_method", ""),
        ("mcp_name", None),
        ("mcp_name", "add"),
        ("mcp_name", ""),
        ("mcp_name", "PAINTS"),
    )
    return [draw.step(message, **{name: value})]


def _encoded_names(draw: Draw) -> list[Step]:
    message = draw.request("tools/call", {"name": "paints", "arguments": {}})
    name = draw.one("=?base64?cGFpbnRz?=", "=?base64?cGFpbnR?=", "=?base64?!?=")
    return [draw.step(message, mcp_name=name)]


def _without_version_header(draw: Draw) -> list[Step]:
    return [draw.step(draw.request("tools/list"), mcp_protocol_version=None)]


def _wrong_version_header(draw: Draw) -> list[Step]:
    version = draw.one("2099-01-01", "x", "2025-06-19")
    return [draw.step(draw.request("tools/list"), mcp_protocol_version=version)]


def _wrong_accept(draw: Draw) -> list[Step]:
    accept = draw.one("application/json", "text/event-stream", "text/html", None)
    return [draw.step(draw.request("tools/list"), accept=accept)]


def _wide_accept(draw: Draw) -> list[Step]:
    accept = draw.one(
        "*/*", "application/*, text/*", "text/event-stream,application/json"
    )
    return [draw.step(draw.request("tools/list"), accept=accept)]


def _content_types(draw: Draw) -> list[Step]:
    kind = draw.one("text/plain", "application/jsonx", None, "application/xml")
    return [draw.step(draw.request("tools/list"), content_type=kind)]


def _json_with_parameters(draw: Draw) -> list[Step]:
    kind = draw.one("application/json; charset=utf-8", "Application/JSON")
    return [draw.step(draw.request("tools/list"), content_type=kind)]


def _http_methods(draw: Draw) -> list[Step]:
    step = draw.step(b"")
    return [replace(step, method=draw.one("PUT", "PATCH", "DELETE", "GET"))]


# -- sessions --------------------------------------------------------------------------


def _before_initialize(draw: Draw) -> list[Step]:
    """Requests of nobody's session."""
    return [draw.one(draw.asked("tools/list"), *_calls(draw), draw.asked("no/such"))]


def _unknown_sessions(draw: Draw) -> list[Step]:
    session = draw.one("none", "0" * 32)
    return [draw.step(draw.request("tools/list"), mcp_session_id=session)]


def _closed_sessions(draw: Draw) -> list[Step]:
    closing = replace(draw.step(b""), method="DELETE")
    again = draw.one(closing, draw.asked("tools/list"), replace(closing, method="GET"))
    return [*draw.opening(), closing, again]


def _not_yet_initialized(draw: Draw) -> list[Step]:
    """Between the answer to `initialize` and the notification."""
    return [draw.initialize(), draw.one(draw.asked("tools/list"), *_calls(draw))]


def _initialize_twice(draw: Draw) -> list[Step]:
    again = draw.request("initialize", json.loads(draw.initialize().body)["params"])
    return [draw.step(again)]


def _wrong_initialize(draw: Draw) -> list[Step]:
    name = draw.one("protocolVersion", "capabilities", "clientInfo")
    value = draw.one("away", 1, None, [])
    return [draw.initialize(**{name: value})]


def _wrong_client_info(draw: Draw) -> list[Step]:
    info = draw.one({}, {"name": "x"}, {"version": "1"}, {"name": 1, "version": "1"})
    return [draw.initialize(clientInfo=info)]


def _other_initialize(draw: Draw) -> list[Step]:
    version = draw.one("2099-01-01", "1.0", "", "2026-07-28", "2024-10-07")
    return [draw.initialize(protocolVersion=version)]


def _ping_first(draw: Draw) -> list[Step]:
    return [draw.asked("ping")]


KINDS: Final[Mapping[str, Kind]] = {
    "lists": Kind(_lists),
    "calls": Kind(_calls),
    "progress": Kind(_counts),
    "reads": Kind(_reads),
    "prompts": Kind(_prompts),
    "completion": Kind(_completes),
    "pings": Kind(_pings, STATEFUL),
    "discovery": Kind(_discovers, STATELESS),
    "ids": Kind(_right_ids),
    "reused ids": Kind(_ids_again),
    "params of no object": Kind(_params_of_no_object),
    "null params": Kind(_null_params),
    "missing members": Kind(_missing_members),
    "wrong types": Kind(_wrong_types),
    "arguments of no object": Kind(_arguments_of_no_object),
    "null arguments": Kind(_null_arguments),
    "wrong arguments": Kind(_wrong_arguments),
    "lax arguments": Kind(_lax_arguments),
    "whole floats": Kind(_whole_floats),
    "more arguments": Kind(_more_arguments),
    "more members": Kind(_more_members),
    "unknown tools": Kind(_unknown_tools),
    "unknown prompts": Kind(_unknown_prompts),
    "prompts without arguments": Kind(_prompts_without_arguments),
    "unknown resources": Kind(_unknown_resources),
    "lost resources": Kind(_lost_resources),
    "unknown completions": Kind(_unknown_completions),
    "bad cursors": Kind(_bad_cursors),
    "cursors of no text": Kind(_cursors_of_no_text),
    "wrong ids": Kind(_wrong_ids),
    "null ids": Kind(_null_ids),
    "fractional ids": Kind(_fractional_ids),
    "large ids": Kind(_large_ids),
    "wrong envelopes": Kind(_wrong_envelopes),
    "without jsonrpc": Kind(_without_jsonrpc),
    "more in the envelope": Kind(_more_in_the_envelope),
    "request and answer": Kind(_request_and_answer),
    "no messages": Kind(_no_messages),
    "answers": Kind(_answers),
    "no JSON": Kind(_no_json),
    "names twice": Kind(_names_twice),
    "no finite numbers": Kind(_no_finite_numbers),
    "unknown methods": Kind(_unknown_methods),
    "methods of others": Kind(_methods_of_others),
    "methods not offered": Kind(_methods_not_offered),
    "batches": Kind(_batches),
    "empty batches": Kind(_empty_batches),
    "notifications": Kind(_notifications),
    "notifications with wrong params": Kind(_notifications_with_wrong_params),
    "meta of no object": Kind(_meta_of_no_object),
    "unknown meta": Kind(_unknown_meta),
    "wrong tokens": Kind(_wrong_tokens),
    "fractional tokens": Kind(_fractional_tokens),
    "without meta": Kind(_without_meta, STATELESS),
    "without client info": Kind(_without_client_info, STATELESS),
    "wrong meta": Kind(_wrong_meta, STATELESS),
    "other versions": Kind(_other_versions, STATELESS),
    "older versions": Kind(_older_versions, STATELESS),
    "wrong routing": Kind(_wrong_routing, STATELESS),
    "encoded names": Kind(_encoded_names, STATELESS),
    "without version header": Kind(_without_version_header),
    "wrong version header": Kind(_wrong_version_header),
    "wrong accept": Kind(_wrong_accept),
    "wide accept": Kind(_wide_accept),
    "content types": Kind(_content_types),
    "JSON with parameters": Kind(_json_with_parameters),
    "HTTP methods": Kind(_http_methods, STATELESS),
    "before initialize": Kind(_before_initialize, STATEFUL, opens=False),
    "unknown sessions": Kind(_unknown_sessions, STATEFUL, opens=False),
    "closed sessions": Kind(_closed_sessions, STATEFUL, opens=False),
    "not yet initialized": Kind(_not_yet_initialized, STATEFUL, opens=False),
    "initialize twice": Kind(_initialize_twice, STATEFUL),
    "wrong initialize": Kind(_wrong_initialize, STATEFUL, opens=False),
    "wrong client info": Kind(_wrong_client_info, STATEFUL, opens=False),
    "other initialize": Kind(_other_initialize, STATEFUL, opens=False),
    "ping first": Kind(_ping_first, STATEFUL, opens=False),
}
