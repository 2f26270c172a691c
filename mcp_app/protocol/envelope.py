"""JSON-RPC 2.0 messages: what came in as dataclasses, what goes out as objects.

The rules are those of the official message schema: no other members, ids that are
non-empty strings or integers, `params` and `result` that are objects.  That an id has
a longest length is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mcp_app.protocol.errors import InvalidRequest, ProtocolError
from mcp_app.protocol.json_types import JsonObject

RequestId: TypeAlias = str | int

LARGEST_ID = 2**53 - 1
"""Beyond it a JavaScript client would read another id than it sent."""

LONGEST_ID = 1_024
"""Characters of an id, and of a progress token: both are kept, and said again.

The specification has no bound.
"""


@dataclass(slots=True)
class Request:
    """A message that wants an answer; `params` is empty where none were sent.

    Never changed; not frozen, because that makes one three times as slow to build.
    """

    id: RequestId
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that has no answer."""

    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request of ours: either `result` or `error` is an object."""

    id: RequestId
    result: JsonObject | None
    error: JsonObject | None


Message: TypeAlias = Request | Notification | Reply


def parse(value: object, *, lenient: bool = False) -> Message:
    """The message that a JSON value is; raises InvalidRequest.

    The exception's `request_id` is the id to answer with, or None where the message
    was no request or its id cannot be read.  `lenient` ignores unknown members.
    `params: null` is absent: several clients write it.
    """
    if not isinstance(value, dict):
        raise InvalidRequest(f"A message must be a JSON object, not {_kind(value)}.")
    try:
        if value.get("jsonrpc") != "2.0":
            raise InvalidRequest('The member "jsonrpc" must be "2.0".')
        if "method" not in value:
            return _reply(value, lenient)
        if "id" not in value:
            return _notification(value, lenient)
        return _request(value, lenient)
    except InvalidRequest as error:
        error.request_id = _readable_id(value)
        raise


def parse_batch(
    value: list[object], most: int, *, lenient: bool = False
) -> list[Message]:
    """The messages of a batch of 2025-03-26; raises InvalidRequest for all of it.

    A batch is not empty, holds either replies or requests and notifications, and no
    request id twice.  Which methods may be in it is for the caller to say.
    """
    if not value:
        raise InvalidRequest("A batch must have at least one message.")
    if len(value) > most:
        raise InvalidRequest(
            f"The batch has {len(value)} messages; at most {most} are allowed."
        )
    messages = [
        _parse_member(member, index, lenient) for index, member in enumerate(value)
    ]
    replies = sum(isinstance(message, Reply) for message in messages)
    if replies not in {0, len(messages)}:
        raise InvalidRequest("A batch must have either replies or requests, not both.")
    ids = [message.id for message in messages if isinstance(message, Request)]
    if len(set(ids)) != len(ids):
        raise InvalidRequest("Two requests in the batch have the same id.")
    return messages


def _parse_member(member: object, index: int, lenient: bool) -> Message:
    try:
        return parse(member, lenient=lenient)
    except InvalidRequest as error:
        # A batch is refused as a whole, so the answer has no id.
        raise InvalidRequest(
            f"Message {index + 1} of the batch: {error.message}"
        ) from None


def _request(value: JsonObject, lenient: bool) -> Request:
    request_id, method = value["id"], value["method"]
    if not _is_id(request_id):
        raise InvalidRequest(_ID_RULE)
    params = value.get("params")
    # With all four members and right types there is nothing left to check.
    if type(params) is dict and type(method) is str and len(value) == 4:  # noqa: PLR2004
        return Request(request_id, method, params)
    _check_members(value, {"jsonrpc", "id", "method", "params"}, lenient)
    return Request(request_id, method, _params(value))


def _notification(value: JsonObject, lenient: bool) -> Notification:
    _check_members(value, {"jsonrpc", "method", "params"}, lenient)
    return Notification(value["method"], _params(value))


def _reply(value: JsonObject, lenient: bool) -> Reply:
    if ("result" in value) == ("error" in value):
        raise InvalidRequest(
            'A message must have exactly one of "method", "result" and "error".'
        )
    if not _is_id(value.get("id")):
        raise InvalidRequest(
            f"A reply must have the id of the request that it answers. {_ID_RULE}"
        )
    if len(value) > 3 and not lenient:  # noqa: PLR2004
        raise _unknown_member(value, {"jsonrpc", "id", "result", "error"})
    if "error" in value:
        return Reply(value["id"], None, _error(value["error"], lenient))
    if not isinstance(value["result"], dict):
        raise InvalidRequest(
            f"A result must be an object, not {_kind(value['result'])}."
        )
    return Reply(value["id"], value["result"], None)


def _check_members(value: JsonObject, known: set[str], lenient: bool) -> None:
    if not isinstance(value["method"], str):
        raise InvalidRequest(
            f"A method must be a string, not {_kind(value['method'])}."
        )
    if "result" in value or "error" in value:
        raise InvalidRequest(
            'A message with a "method" must not have a "result" or "error".'
        )
    if not (lenient or value.keys() <= known):
        raise _unknown_member(value, known)


def _params(value: JsonObject) -> JsonObject:
    params = value.get("params")
    if isinstance(params, dict):
        return params
    if params is None:
        return {}
    raise InvalidRequest(f"Params must be an object, not {_kind(params)}.")


def _error(error: object, lenient: bool) -> JsonObject:
    if not isinstance(error, dict):
        raise InvalidRequest(f"An error must be an object, not {_kind(error)}.")
    if type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        raise InvalidRequest(
            "An error must have an integer as code and a string as message."
        )
    if not (lenient or error.keys() <= {"code", "message", "data"}):
        raise _unknown_member(error, {"code", "message", "data"})
    return error


_ID_RULE = (
    f"An id must be a string of 1 to {LONGEST_ID:,} characters, or an integer within"
    " ±(2^53 - 1)."
)


def _is_id(value: object) -> bool:
    if type(value) is int:
        return -LARGEST_ID <= value <= LARGEST_ID
    return type(value) is str and 0 < len(value) <= LONGEST_ID


def _readable_id(value: JsonObject) -> RequestId | None:
    """The id of what was meant as a request; a reply's id is not ours to answer."""
    request_id: RequestId | None = value.get("id")
    is_reply = "method" not in value and ("result" in value or "error" in value)
    return request_id if _is_id(request_id) and not is_reply else None


def _unknown_member(value: JsonObject, known: set[str]) -> InvalidRequest:
    name = min(value.keys() - known)
    return InvalidRequest(
        f"A message of this kind must not have the member {name[:80]!r}."
    )


_KINDS = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")


def result_message(request_id: RequestId, result: object) -> JsonObject:
    """The answer to a request; `result` is an object or a Fragment of one."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_message(
    request_id: RequestId | None,
    error: ProtocolError,
    *,
    null_id: bool,
    code: int | None = None,
) -> JsonObject:
    """The error as a message.

    Without an id there is no `id` member, or `id: null` in revisions that demand
    it (`null_id`).  `code` replaces the error's own where a revision has another.
    """
    body: JsonObject = {
        "code": error.code if code is None else code,
        "message": error.message,
    }
    if error.data is not None:
        body["data"] = error.data
    message: JsonObject = {"jsonrpc": "2.0", "id": request_id, "error": body}
    if request_id is None and not null_id:
        del message["id"]
    return message


def notification_message(method: str, params: JsonObject | None) -> JsonObject:
    """A notification of ours; None is no `params` member."""
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def request_message(
    request_id: RequestId, method: str, params: JsonObject | None
) -> JsonObject:
    """A request of ours to the client; None is no `params` member."""
    message: JsonObject = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message
