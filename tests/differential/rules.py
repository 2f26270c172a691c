"""The differences that were looked at: for each why ours is right, or both may be.

A rule explains the difference between two answers to one request. It says what each
side answers, so that it explains no other difference of the same request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tests.asgi_client import PREFIX
from tests.differential.exchanging import Answer
from tests.differential.generating import LONG, Exchange, Step

MOST: Final = 25
LARGEST_SHARE: Final = 0.1
"""Of the exchanges, for one rule."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

WITHOUT_STRUCTURE: Final = ("2024-11-05", "2025-03-26")
WITHOUT_TOOL_ERRORS: Final = (*WITHOUT_STRUCTURE, "2025-06-18")
"""Wrong arguments are errors of the protocol."""
WITH_BATCHES: Final = "2025-03-26"
MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})


@dataclass(frozen=True)
class Difference:
    """Two answers to one request that are not the same."""

    exchange: Exchange
    step: Step
    ours: Answer
    theirs: Answer

    @property
    def version(self) -> str:
        return self.exchange.version

    @cached_property
    def sent(self) -> Any:
        """The body of the request as JSON, None where it is none."""
        try:
            return json.loads(self.step.body)
        except ValueError:
            return None

    @property
    def message(self) -> dict[str, Any]:
        return self.sent if isinstance(self.sent, dict) else {}

    @property
    def method(self) -> object:
        return self.message.get("method")

    @property
    def params(self) -> dict[str, Any]:
        params = self.message.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def codes(self) -> tuple[int | None, int | None]:
        return self.ours.code, self.theirs.code

    @property
    def statuses(self) -> tuple[int, int]:
        return self.ours.status, self.theirs.status

    @property
    def refused(self) -> bool:
        """Whether we refuse at the door what is no message."""
        return (self.ours.status, self.ours.code) == (400, INVALID_REQUEST)

    @property
    def they_accept(self) -> bool:
        """Whether they give a result, or take it for a notification."""
        return self.theirs.result is not None or self.theirs.status == 202


@dataclass(frozen=True, slots=True)
class Rule:
    """What explains a difference; `section` is of the specification, or of an RFC."""

    name: str
    section: str
    why: str
    explains: Callable[[Difference], bool]


# -- messages --------------------------------------------------------------------------


def _id_of_a_refusal(found: Difference) -> bool:
    return (
        found.statuses[0] == found.statuses[1]
        and found.codes == (INVALID_REQUEST, INVALID_REQUEST)
        and found.ours.last["id"] == found.message.get("id")
        and found.theirs.last["id"] is None
    )


def _no_message(found: Difference) -> bool:
    return (
        found.refused
        and found.statuses == (400, 400)
        and found.theirs.code == INVALID_PARAMS
        and not isinstance(found.sent, list)
    )


def _batch(found: Difference) -> bool:
    if not isinstance(found.sent, list) or found.theirs.code != INVALID_PARAMS:
        return False
    if found.sent and found.version == WITH_BATCHES:
        return found.ours.status in (200, 202)
    return found.refused


def _id_that_is_none(found: Difference) -> bool:
    request_id = found.message.get("id", "")
    is_id = isinstance(request_id, int | str) and not isinstance(request_id, bool)
    return found.refused and not is_id and found.theirs.status == 202


def _id_out_of_range(found: Difference) -> bool:
    request_id = found.message.get("id")
    beyond = isinstance(request_id, int) and abs(request_id) >= LONG
    return found.refused and (beyond or request_id == "") and found.they_accept


def _members(found: Difference) -> bool:
    message = found.message
    wrong = bool(message.keys() - MEMBERS) or message.get("params", {}) is None
    return found.refused and "method" in message and wrong and found.they_accept


def _strict_json(found: Difference) -> bool:
    return found.ours.code == PARSE_ERROR and found.theirs.result is not None


def _answer_to_no_question(found: Difference) -> bool:
    return "method" not in found.message and (found.refused, found.theirs.status) == (
        True,
        202,
    )


# -- parameters ------------------------------------------------------------------------


def _cursor(found: Difference) -> bool:
    return (
        isinstance(found.params.get("cursor"), str)
        and found.ours.code == INVALID_PARAMS
        and found.theirs.result is not None
    )


def _without(answer: Answer, member: str) -> dict[str, Any] | None:
    """Return a result without a member that it has, None where it has not."""
    if f'"{member}"' not in json.dumps(answer.result):
        return None
    result = dict(answer.result or {})
    result.pop(member, None)
    if "tools" in result:
        result["tools"] = [
            {name: value for name, value in tool.items() if name != member}
            for tool in result["tools"]
        ]
    return result


def _output_schemas(found: Difference) -> bool:
    return (
        found.version in WITHOUT_STRUCTURE
        and found.method == "tools/list"
        and found.ours.result is not None
        and found.ours.result == _without(found.theirs, "outputSchema")
    )


def _structured_content(found: Difference) -> bool:
    return (
        found.version in WITHOUT_STRUCTURE
        and found.method == "tools/call"
        and found.ours.result is not None
        and found.ours.result == _without(found.theirs, "structuredContent")
        and found.ours.messages[:-1] == found.theirs.messages[:-1]
    )


def _arguments_by_the_schema(found: Difference) -> bool:
    refused = (
        found.ours.code == INVALID_PARAMS
        if found.version in WITHOUT_TOOL_ERRORS
        else (found.ours.result or {}).get("isError") is True
    )
    result = found.theirs.result or {}
    return found.method == "tools/call" and refused and "structuredContent" in result


def _arguments_of_older_revisions(found: Difference) -> bool:
    return (
        found.version in WITHOUT_TOOL_ERRORS
        and found.method == "tools/call"
        and isinstance(found.params.get("arguments", {}), dict)
        and found.ours.code == INVALID_PARAMS
        and (found.theirs.result or {}).get("isError") is True
        and found.params.get("name") == "add"
    )


def _types(found: Difference) -> bool:
    meta = found.params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    wrong = "arguments" in found.params and found.params["arguments"] is None
    return (
        (wrong or isinstance(token, bool))
        and found.ours.code == INVALID_PARAMS
        and found.theirs.result is not None
    )


def _status_of_params(found: Difference) -> bool:
    return (
        found.exchange.stateless
        and found.ours.code == INVALID_PARAMS
        and found.theirs.code in (INVALID_PARAMS, HEADER_MISMATCH)
        and found.statuses == (200, 400)
    )


def _unknown_tool(found: Difference) -> bool:
    return (
        found.method == "tools/call"
        and found.params.get("name") != "add"
        and found.ours.code == INVALID_PARAMS
        and (found.theirs.result or {}).get("isError") is True
    )


def _prompt(found: Difference) -> bool:
    return (
        found.method == "prompts/get"
        and found.ours.code == INVALID_PARAMS
        and found.theirs.code in (0, INTERNAL_ERROR)
    )


def _resource(found: Difference) -> bool:
    return (
        found.method == "resources/read"
        and not found.exchange.stateless
        and found.codes == (RESOURCE_NOT_FOUND, INVALID_PARAMS)
    )


def _completion(found: Difference) -> bool:
    if found.method != "completion/complete" or found.theirs.result is None:
        return False
    if found.theirs.result["completion"] != {"values": []}:
        return False
    nothing = {"values": [], "total": 0, "hasMore": False}
    said = (found.ours.result or {}).get("completion")
    return found.ours.code == INVALID_PARAMS or said == nothing


def _not_offered(found: Difference) -> bool:
    return found.ours.result == {} and found.theirs.code == METHOD_NOT_FOUND


def _id_again(found: Difference) -> bool:
    before = found.exchange.steps[: found.exchange.steps.index(found.step)]
    ids = [json.loads(step.body).get("id") for step in before if step.body]
    return (
        found.refused
        and found.theirs.result is not None
        and found.method == "tools/call"
        and found.message["id"] in ids
    )


# -- sessions and headers --------------------------------------------------------------


def _initialized_twice(found: Difference) -> bool:
    return (
        found.method == "initialize"
        and found.refused
        and "protocolVersion" in (found.theirs.result or {})
    )


def _content_type(found: Difference) -> bool:
    given = found.step.headers.get("content-type", "").partition(";")[0]
    if given.lower() == "application/json":
        return found.ours.result is not None and found.theirs.status == 415
    return found.ours.status == 415 and found.theirs.status in (200, 400)


def _accept(found: Difference) -> bool:
    return (
        "text/html" not in found.step.headers.get("accept", "")
        and found.ours.result is not None
        and found.theirs.status == 406
    )


def _bodies_of_http(found: Difference) -> bool:
    if found.step.method == "DELETE" and found.statuses == (204, 200):
        return not found.ours.messages and not found.theirs.messages
    return (
        found.statuses in ((405, 405), (406, 406))
        and found.ours.code == INVALID_REQUEST
        and not found.theirs.messages
    )


def _version(found: Difference) -> bool:
    meta = found.params.get("_meta")
    named = meta.get(f"{PREFIX}protocolVersion", "") if isinstance(meta, dict) else ""
    if not isinstance(named, str):
        refused = found.codes == (INVALID_PARAMS, HEADER_MISMATCH)
        return refused and found.statuses == (400, 400)
    return (
        found.statuses == (400, 400)
        and found.ours.code in (UNSUPPORTED_VERSION, HEADER_MISMATCH)
        and found.theirs.code in (INVALID_REQUEST, INVALID_PARAMS)
    )


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "id of a refusal",
        "2025-11-25 basic/index, Error Responses",
        "An error has the id of its request unless that cannot be read. Theirs has"
        " none where the transport refuses.",
        _id_of_a_refusal,
    ),
    Rule(
        "input that is not a valid JSON-RPC message",
        "JSON-RPC 2.0, 5.1 Error object and 4.2 Parameter structures",
        "-32600 is for JSON that is no message; -32602 is for the parameters of a"
        " method.",
        _no_message,
    ),
    Rule(
        "batches",
        "2025-03-26 basic/index, Batching; 2025-06-18 changelog, 1",
        "A server MUST receive batches in 2025-03-26, and no other revision has them."
        " Theirs knows none, and says -32602.",
        _batch,
    ),
    Rule(
        "invalid ids",
        "2025-11-25 basic/index, Requests",
        "An id MUST be a string or an integer, and not null. Theirs takes such a"
        " request for a notification, and never answers it.",
        _id_that_is_none,
    ),
    Rule(
        "ids out of range",
        "RFC 7493, 2.2 Numbers; 2025-11-25 basic/index, Requests",
        "Beyond 2^53 - 1 a client may read another id than it sent: such an id is"
        " refused, not answered under another one; so is an empty one, which names"
        " nothing. Both may be answered, too.",
        _id_out_of_range,
    ),
    Rule(
        "members of a message",
        "2025-11-25 basic/index, Requests; JSON-RPC 2.0, 4.2 Parameter structures",
        "Params are an object where there are any, and a message with a method and a"
        " result is none. Of members that nobody knows both may think as they like:"
        " theirs ignores them.",
        _members,
    ),
    Rule(
        "strict JSON",
        "RFC 8259, 4 Objects and 6 Numbers",
        "NaN is no JSON, and of a name that comes twice readers see another value:"
        " what one of them checked, the next would not find.",
        _strict_json,
    ),
    Rule(
        "responses without a matching request",
        "2025-11-25 basic/transports, Sending Messages to the Server, 4",
        "An answer that cannot be accepted MUST be refused with an HTTP error; theirs"
        " accepts and drops it.",
        _answer_to_no_question,
    ),
    Rule(
        "cursors",
        "2025-11-25 server/utilities/pagination, Error Handling",
        "Invalid cursors SHOULD be refused with -32602. Theirs has one page, and does"
        " not look at the cursor.",
        _cursor,
    ),
    Rule(
        "output schemas",
        "2025-06-18 changelog, 2",
        "Structured output came with 2025-06-18; earlier revisions have no member for"
        " it. Theirs sends it all the same.",
        _output_schemas,
    ),
    Rule(
        "structured content",
        "2025-06-18 changelog, 2",
        "As output schemas; the text block says the same.",
        _structured_content,
    ),
    Rule(
        "arguments that do not fit the schema",
        "2025-11-25 server/tools, Security Considerations",
        "Servers MUST validate all tool inputs: by the schema that the tool shows, in"
        " which true is no integer and nothing else is allowed. Theirs converts, or"
        " ignores.",
        _arguments_by_the_schema,
    ),
    Rule(
        "wrong arguments in older revisions",
        "2025-06-18 server/tools, Error Handling; 2025-11-25 changelog, Minor 5",
        "Invalid arguments were errors of the protocol until 2025-11-25 made them"
        " errors of the tool. Theirs is of the newer way everywhere.",
        _arguments_of_older_revisions,
    ),
    Rule(
        "types of parameters",
        "2025-11-25 schema, CallToolRequestParams and ProgressToken",
        "`arguments` is an object where it is there, and a token a string or an"
        " integer. Theirs reads null as absent, and true as 1.",
        _types,
    ),
    Rule(
        "status of refused parameters",
        "2026-07-28 basic/transports/streamable-http, Server Validation",
        "400 is demanded for `_meta` and headers. For other parameters no status is"
        " said: ours is 200, theirs 400, or -32020 where a name that is no text has no"
        " header.",
        _status_of_params,
    ),
    Rule(
        "unknown tools",
        "2025-11-25 server/tools, Error Handling",
        "An unknown tool is an error of the protocol, -32602 in the example. Theirs is"
        " an error of the tool.",
        _unknown_tool,
    ),
    Rule(
        "unknown prompts and missing arguments",
        "2025-11-25 server/prompts, Error Handling",
        "Both SHOULD be -32602. Theirs are 0, and in 2026-07-28 -32603.",
        _prompt,
    ),
    Rule(
        "unknown resources in older revisions",
        "2025-11-25 server/resources, Error Handling; 2026-07-28 changelog, Minor 6",
        "-32002 until 2026-07-28 made it -32602. Theirs is of the newer way"
        " everywhere.",
        _resource,
    ),
    Rule(
        "completion of unknown names",
        "2025-11-25 server/utilities/completion, Error Handling and Data Types",
        "An unknown prompt SHOULD be -32602; `total` and `hasMore` are optional. In"
        " theirs one function answers for all, with no values.",
        _completion,
    ),
    Rule(
        "methods that only one of the two servers has",
        "2025-11-25 basic/lifecycle, Capability Negotiation",
        "Ours has levels and subscriptions, and says so; theirs has not.",
        _not_offered,
    ),
    Rule(
        "reused ids",
        "2025-11-25 basic/index, Requests",
        "An id MUST NOT have been used before in the session: the same request is"
        " answered again, another one refused. Theirs keeps no ids.",
        _id_again,
    ),
    Rule(
        "initialize twice",
        "2025-11-25 basic/lifecycle, Initialization",
        "It MUST be the first interaction, so that a session has one revision. Theirs"
        " begins anew under the same id of the session.",
        _initialized_twice,
    ),
    Rule(
        "content types and Accept",
        "RFC 9110, 8.3.1, 12.5.1 and 15.5.16",
        "415 is the status of a content type that is not taken, and media types have no"
        " case. Who takes JSON or streams alone gets that, where it says everything.",
        lambda found: _content_type(found) or _accept(found),
    ),
    Rule(
        "bodies and statuses of HTTP",
        "2025-11-25 basic/transports, Session Management",
        "The end of a session may be answered with 204 or 200; 405 and 406 may have a"
        " body.",
        _bodies_of_http,
    ),
    Rule(
        "version header and `_meta` disagree",
        "2026-07-28 basic/transports/streamable-http, Protocol Version Header",
        "An unknown version MUST be refused with -32022, and one that the header lacks"
        " with -32020. Theirs looks first for `_meta`, or for a session. One that is no"
        " text is malformed, -32602, and matches no header, -32020.",
        _version,
    ),
)
