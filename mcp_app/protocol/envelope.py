"""JSON-RPC 2.0 messages: received ones as dataclasses, sent ones as objects.

The rules are those of the official message schema: no other members, ids that are
non-empty strings or integers, `params` and `result` that are objects.  Only the longest
length of an id is our own rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, error
from typing import Any, Final, TypeAlias

from orjson import Fragment, JSONDecodeError, JSONEncodeError, dumps, loads

from mcp_app.protocol.errors import InvalidRequest, ProtocolError
from mcp_app.protocol.json_types import JsonObject

RequestId: TypeAlias = str | int

LARGEST_ID = 2**53 - 1
"""Beyond this number a JavaScript client would read another id than it sent."""

MAX_ID_LENGTH = 1_024
"""Characters of an id and of a progress token, which are stored and sent back.

The specification has no limit.
"""


@dataclass(slots=True)
class Request:
    """A message that wants an answer; `params` is empty if none were sent.

    It is never changed, but not frozen: that would triple the time to build it.
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


def parse_message(value: object, *, lenient: bool = False) -> Message:
    """Return the message in a JSON value; raise InvalidRequest.

    The exception's `request_id` is the id to answer with, None if the message is no
    request or its id cannot be read.  `lenient` ignores unknown members.  A `params`
    of null counts as absent, because several clients send null.
    """
    if not isinstance(value, dict):
        raise InvalidRequest(
            f"A message must be a JSON object, not {_kind_of_value(value)}."
        )
    try:
        if value.get("jsonrpc") != "2.0":
            raise InvalidRequest('The member "jsonrpc" must be "2.0".')
        if "method" not in value:
            return _read_reply(value, lenient)
        if "id" not in value:
            return _read_notification(value, lenient)
        return _read_request(value, lenient)
    except InvalidRequest as error:
        # The id of a reply gets no answer.
        is_reply = "method" not in value and ("result" in value or "error" in value)
        if not is_reply and _is_request_id(value.get("id")):
            error.request_id = value["id"]
        raise


def parse_batch(
    value: list[object], most: int, *, lenient: bool = False
) -> list[Message]:
    """Return the messages of a batch of 2025-03-26; raise InvalidRequest for the whole.

    A batch is not empty, holds either replies or requests and notifications, and has no
    request id twice.  The caller checks which methods may be in it.
    """
    if not value:
        raise InvalidRequest("A batch must have at least one message.")
    if len(value) > most:
        raise InvalidRequest(
            f"The batch has {len(value)} messages; at most {most} are allowed."
        )
    messages: list[Message] = []
    for number, member in enumerate(value, 1):
        try:
            messages.append(parse_message(member, lenient=lenient))
        except InvalidRequest as error:
            # A batch is refused as a whole, so the answer has no id.
            message = f"Message {number} of the batch: {error.message}"
            raise InvalidRequest(message) from None
    replies = sum(isinstance(message, Reply) for message in messages)
    if replies not in {0, len(messages)}:
        raise InvalidRequest("A batch must have either replies or requests, not both.")
    ids = [message.id for message in messages if isinstance(message, Request)]
    if len(set(ids)) != len(ids):
        raise InvalidRequest("Two requests in the batch have the same id.")
    return messages


def _read_request(value: JsonObject, lenient: bool) -> Request:
    request_id, method = value["id"], value["method"]
    if not _is_request_id(request_id):
        raise InvalidRequest(_ID_RULE)
    params = value.get("params")
    # With all four members and the right types, nothing is left to check.
    if type(params) is dict and type(method) is str and len(value) == 4:  # noqa: PLR2004
        return Request(request_id, method, params)
    _check_members(value, {"jsonrpc", "id", "method", "params"}, lenient)
    return Request(request_id, method, _read_params(value))


def _read_notification(value: JsonObject, lenient: bool) -> Notification:
    _check_members(value, {"jsonrpc", "method", "params"}, lenient)
    return Notification(value["method"], _read_params(value))


def _read_reply(value: JsonObject, lenient: bool) -> Reply:
    if ("result" in value) == ("error" in value):
        raise InvalidRequest(
            'A message must have exactly one of "method", "result" and "error".'
        )
    if not _is_request_id(value.get("id")):
        raise InvalidRequest(
            f"A reply must have the id of the request that it answers. {_ID_RULE}"
        )
    if len(value) > 3 and not lenient:  # noqa: PLR2004
        raise _unknown_member(value, {"jsonrpc", "id", "result", "error"})
    if "error" in value:
        return Reply(value["id"], None, _read_error(value["error"], lenient))
    if not isinstance(value["result"], dict):
        raise InvalidRequest(
            f"A result must be an object, not {_kind_of_value(value['result'])}."
        )
    return Reply(value["id"], value["result"], None)


def _check_members(value: JsonObject, known: set[str], lenient: bool) -> None:
    if not isinstance(value["method"], str):
        raise InvalidRequest(
            f"A method must be a string, not {_kind_of_value(value['method'])}."
        )
    if "result" in value or "error" in value:
        raise InvalidRequest(
            'A message with a "method" must not have a "result" or "error".'
        )
    if not (lenient or value.keys() <= known):
        raise _unknown_member(value, known)


def _read_params(value: JsonObject) -> JsonObject:
    params = value.get("params")
    if isinstance(params, dict):
        return params
    if params is None:
        return {}
    raise InvalidRequest(f"Params must be an object, not {_kind_of_value(params)}.")


def _read_error(error: object, lenient: bool) -> JsonObject:
    if not isinstance(error, dict):
        raise InvalidRequest(
            f"An error must be an object, not {_kind_of_value(error)}."
        )
    if type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        raise InvalidRequest(
            "An error must have an integer as code and a string as message."
        )
    if not (lenient or error.keys() <= {"code", "message", "data"}):
        raise _unknown_member(error, {"code", "message", "data"})
    return error


_ID_RULE = (
    f"An id must be a string of 1 to {MAX_ID_LENGTH:,} characters, or an integer within"
    " ±(2^53 - 1)."
)


def _is_request_id(value: object) -> bool:
    if type(value) is int:
        return -LARGEST_ID <= value <= LARGEST_ID
    return type(value) is str and 0 < len(value) <= MAX_ID_LENGTH


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


def _kind_of_value(value: object) -> str:
    return _KINDS.get(type(value), "a number")


def result_message(request_id: RequestId, result: object) -> JsonObject:
    """Return the answer to a request; `result` is an object or a Fragment of one."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_message(
    request_id: RequestId | None,
    error: ProtocolError,
    *,
    null_id: bool,
    code: int | None = None,
) -> JsonObject:
    """Return the error as a message.

    Without an id there is no `id` member, or `id: null` in revisions that require it
    (`null_id`).  `code` replaces the error's own code if a revision has another.
    """
    body: JsonObject = {"code": code or error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    if request_id is None and not null_id:
        return {"jsonrpc": "2.0", "error": body}
    return {"jsonrpc": "2.0", "id": request_id, "error": body}


def notification_message(method: str, params: JsonObject | None) -> JsonObject:
    """Return a notification of ours; if `params` is None, there is no such member."""
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def request_message(
    request_id: RequestId, method: str, params: JsonObject | None
) -> JsonObject:
    """Return a request of ours to the client; None means no `params` member."""
    return {"jsonrpc": "2.0", "id": request_id, **notification_message(method, params)}


# -- call template ---------------------------------------------------------------------
# The text that all calls of one client to one tool have in common.
#
# A client sends the same members in the same order each time.  Mostly all bytes are the
# same except for the id and the arguments, so only these two are read.

_ID: Final = b"\0"
_ARGUMENTS: Final = b"\1"
"""Placeholders of the gaps: JSON has these characters only in their escaped form."""
MAX_ID_DIGITS: Final = 15
"""The most digits of an id in a template: each such number is a valid id."""


class CallTemplate:
    """The text of a call with a gap for its id and one for its arguments.

    The id and the two `_texts` around it are the beginning or the end of the body, and
    `_rest` is the text on the other side of the arguments.
    """

    __slots__ = ("_gap", "_id_is_first", "_meta", "_rest", "_size", "_texts", "_unpack")

    def __init__(self, message: JsonObject) -> None:
        """Make the template of a valid `tools/call`.

        Raise `JSONEncodeError` if it has integers of more than 64 bits.
        """
        params = {**message["params"], "arguments": Fragment(_ARGUMENTS)}
        text = dumps({**message, "id": Fragment(_ID), "params": params})
        self._id_is_first = text.index(_ID) < text.index(_ARGUMENTS)
        before, between, after = text.replace(_ARGUMENTS, _ID).split(_ID)
        self._size = len(before) + len(between) + len(after)
        # The copy has no spare room; the result of `dumps` has.
        self._meta = bytes(memoryview(dumps(params.get("_meta") or {})))
        first = self._id_is_first
        self._texts = (before, between) if first else (between, after)
        self._rest = after if first else before
        self._expect_digits(1)

    def __len__(self) -> int:
        return self._size

    def _expect_digits(self, digits: int) -> None:
        """From now on expect an id of `digits` digits: clients count ids up."""
        left, right = self._texts
        unpacked = Struct(f"{len(left)}s{digits}s{len(right)}s")
        self._unpack = unpacked.unpack_from
        size, rest = unpacked.size, len(self._rest)
        self._gap = slice(size, -rest) if self._id_is_first else slice(rest, -size)

    def read(self, body: bytes) -> tuple[bytes, JsonObject] | None:
        """Return the digits of the id and the arguments; None for another form.

        If they are returned, the body is strict JSON: a call of this template, with a
        number as id and a strict object as arguments.  Their depth is not checked.
        """
        if self._id_is_first:
            fits, begin = body.endswith(self._rest), 0
        else:
            # `stop` is negative: it counts from the end of the body.
            fits, begin = body.startswith(self._rest), self._gap.stop
        if not fits:
            return None
        try:
            left, number, right = self._unpack(body, begin)
            if (left, right) != self._texts or not number.isdigit() or number < b"1":
                # The id has more digits than the last one, or fewer, or begins with 0.
                number = self._find_number(body)
            text = body[self._gap]
            arguments: Any = loads(text)
            if type(arguments) is dict and dumps(arguments) == text:
                return number, arguments
        except (JSONDecodeError, JSONEncodeError, error, LookupError):
            pass
        return None

    def _find_number(self, body: bytes) -> bytes:
        """Find an id of another length, and expect that length; raise LookupError."""
        left, right = self._texts
        if self._id_is_first and body.startswith(left):
            number, _, _ = body[len(left) :].partition(right)
        elif not self._id_is_first and body.endswith(right):
            _, _, number = body[: -len(right)].rpartition(left)
        else:
            raise LookupError
        if not number.isdigit() or len(number) > MAX_ID_DIGITS:
            raise LookupError
        if b"%d" % int(number) != number:
            # JSON has no numbers that begin with 0.
            raise LookupError
        self._expect_digits(len(number))
        return number

    def copy_of_meta(self) -> Any:
        """Return the `_meta`, which the caller may change; {} if there is none."""
        return loads(self._meta)
