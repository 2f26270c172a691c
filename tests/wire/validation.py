"""Judges what the server sends by the official schema of a revision.

    validator = WireValidator("2025-11-25")
    validator.check(message, method="tools/call")  # [] or sentences

Beyond the schemas, whose messages are open: an envelope has no members that
JSON-RPC does not know, and an empty result is empty.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

SCHEMAS: Final = Path(__file__).with_name("schemas")
EXTENSIONS: Final = SCHEMAS / "extensions"
"""What an extension adds to a revision: that of tasks, and events to all of them."""
VERSIONS: Final = tuple(sorted(path.stem for path in SCHEMAS.glob("*.json")))

# The members of an envelope beside `jsonrpc`, by those that tell its shape.
_REQUEST: Final = frozenset({"id", "method"})
_NOTIFICATION: Final = frozenset({"method"})
_RESULT: Final = frozenset({"id", "result"})
_ERROR: Final = frozenset({"id", "error"})
_ERROR_WITHOUT_ID: Final = frozenset({"error"})
_TELLING: Final = _REQUEST | _RESULT | _ERROR


CREATED: Final = "CreateTaskResult"

JsonObject = Mapping[str, Any]
Check = Callable[[JsonObject, str | None], Iterator[str]]

SKILLS: Final = dict.fromkeys(
    ("skills/list", "skills/get", "resources/directory/read"), "Result"
)
"""What SEP-2640 adds has no schema here: tests/conformance judges it."""


class WireValidator:
    """The rules of one revision for messages from the server to the client."""

    def __init__(self, version: str) -> None:
        self.version = version
        text = (SCHEMAS / f"{version}.json").read_text(encoding="utf-8")
        self._schema: dict[str, Any] = json.loads(text)
        self._definitions_key = "$defs" if "$defs" in self._schema else "definitions"
        added = EXTENSIONS / f"{version}.json"
        self._added: JsonObject = (
            json.loads(added.read_text())["$defs"] if added.exists() else {}
        )
        events = json.loads((EXTENSIONS / "events.json").read_text())["$defs"]
        self._schema[self._definitions_key] |= self._added | events
        self._more = (*self._added, *events)
        self._definitions: JsonObject = self._schema[self._definitions_key]
        first = self._first_defined
        self._result_envelope = first("JSONRPCResultResponse", "JSONRPCResponse")
        self._error_envelope = first("JSONRPCErrorResponse", "JSONRPCError")
        self._requests = self._by_method("ServerRequest")
        self._notifications = self._by_method("ServerNotification")
        self._compiled: dict[str, jsonschema_rs.Validator] = {}
        self._checks: Mapping[frozenset[str], Check] = {
            _REQUEST: self._check_request,
            _NOTIFICATION: self._check_notification,
            _RESULT: self._check_result,
            _ERROR: self._check_error,
            _ERROR_WITHOUT_ID: self._check_error,
        }

    def check(self, message: JsonObject, *, method: str | None = None) -> list[str]:
        """What is wrong with the message, in sentences; empty where nothing is.

        `method` is that of the request which the message answers.  A result of an
        unknown request (None) is held against the rules of every result only.  The
        members of a batch are checked one by one.
        """
        shape = _TELLING.intersection(message)
        check = self._checks.get(shape)
        if check is None:
            return [
                "The message is no request, notification, result or error: "
                f"its members are {sorted(message)}."
            ]
        return [*_foreign_members(shape, message), *check(message, method)]

    def kind(self, message: JsonObject, *, method: str | None = None) -> str:
        """Return the definition by which a message is judged, of errors the code.

        "" is that of a message which is none, or which the revision does not have.
        """
        shape = _TELLING.intersection(message)
        if shape == _REQUEST:
            return self._requests.get(str(message["method"]), "")
        if shape == _NOTIFICATION:
            return self._notifications.get(str(message["method"]), "")
        if shape in (_ERROR, _ERROR_WITHOUT_ID):
            return f"error {message['error'].get('code')}"
        if shape == _RESULT and message["result"].get("resultType") == "input_required":
            return "InputRequiredResult"
        if shape == _RESULT and self._creates_task(method, message["result"]):
            return CREATED
        return self._results.get(method or "", "")

    @cached_property
    def kinds(self) -> frozenset[str]:
        asking = {"InputRequiredResult"} if self._methods_that_ask else set()
        sent = [self._requests, self._notifications, self._results]
        return frozenset(asking.union(*(each.values() for each in sent)))

    def _check_request(self, message: JsonObject, _: str | None) -> Iterator[str]:
        yield from self._violations("JSONRPCRequest", message)
        yield from self._check_sent(message, self._requests, "request")

    def _check_notification(self, message: JsonObject, _: str | None) -> Iterator[str]:
        yield from self._violations("JSONRPCNotification", message)
        yield from self._check_sent(message, self._notifications, "notification")

    def _check_sent(
        self, message: JsonObject, definitions: Mapping[str, str], shape: str
    ) -> Iterator[str]:
        definition = definitions.get(str(message["method"]))
        if definition is None:
            yield (
                f"A server of revision {self.version} sends no {shape} "
                f"{message['method']!r}."
            )
        else:
            yield from self._violations(definition, message)

    def _check_result(self, message: JsonObject, method: str | None) -> Iterator[str]:
        yield from self._violations(self._result_envelope, message)
        if method is None or not isinstance(message["result"], dict):
            return
        result: JsonObject = message["result"]
        definition = self._results.get(method) or SKILLS.get(method)
        if definition is None:
            yield f"Revision {self.version} has no results of {method!r}."
        elif definition == "EmptyResult":
            if result:
                yield f"The result of {method!r} has no members: {sorted(result)}."
        elif result.get("resultType") == "input_required":
            yield from self._check_input_required(method, result)
        elif self._creates_task(method, result):
            yield from self._violations(CREATED, result)
        else:
            yield from self._violations(definition, result)

    def _creates_task(self, method: str | None, result: JsonObject) -> bool:
        by_type = self._added and result.get("resultType") == "task"
        by_member = not self._added and CREATED in self._definitions
        return method == "tools/call" and bool(
            by_type or (by_member and "task" in result)
        )

    def _check_input_required(self, method: str, result: JsonObject) -> Iterator[str]:
        if method not in self._methods_that_ask:
            yield f"A result of {method!r} cannot require input in {self.version}."
            return
        yield from self._violations("InputRequiredResult", result)
        if not {"inputRequests", "requestState"} & result.keys():
            yield "An InputRequiredResult has inputRequests, requestState or both."

    def _check_error(self, message: JsonObject, _: str | None) -> Iterator[str]:
        # JSON-RPC wants `id: null` where the request's id could not be read, and
        # these schemas want an id: the one exception from them.
        id_required = "id" in self._definitions[self._error_envelope]["required"]
        if id_required and message.get("id", 0) is None:
            message = {**message, "id": 0}
        yield from self._violations(self._error_envelope, message)
        match message["error"]:
            case {"code": int(code)} if code in self._response_errors:
                yield from self._violations(self._response_errors[code], message)
            case {"code": int(code)} if code in self._bare_errors:
                yield from self._violations(self._bare_errors[code], message["error"])

    def _violations(self, definition: str, instance: object) -> Iterator[str]:
        for error in self._validator(definition).iter_errors(instance):
            path = "".join(f"[{step!r}]" for step in error.instance_path)
            yield f"{definition}{path}: {error.message}"[:400]

    def _validator(self, definition: str) -> jsonschema_rs.Validator:
        if definition not in self._compiled:
            reference = {"$ref": f"#/{self._definitions_key}/{definition}"}
            self._compiled[definition] = jsonschema_rs.validator_for(
                {**self._schema, "allOf": [reference]},
                offline=True,
                validate_formats=True,
                formats={"byte": _is_base64},
            )
        return self._compiled[definition]

    def _first_defined(self, *names: str) -> str:
        return next(name for name in names if name in self._definitions)

    @cached_property
    def _results(self) -> Mapping[str, str]:
        return {
            method: self._first_defined(
                f"{request.removesuffix('Request')}Result", "EmptyResult"
            )
            for method, request in self._by_method("ClientRequest").items()
        }

    @cached_property
    def _methods_that_ask(self) -> frozenset[str]:
        return frozenset(
            method
            for method, request in self._by_method("ClientRequest").items()
            if "InputRequiredResult" in self._results_in_envelope(request)
        )

    def _results_in_envelope(self, request: str) -> list[str]:
        stem = request.removesuffix("Request")
        envelope = self._definitions.get(f"{stem}ResultResponse")
        return _references(envelope["properties"]["result"]) if envelope else []

    def _by_method(self, union: str) -> Mapping[str, str]:
        """Methods -> definitions of the messages in a union, {} without that union."""
        names = _references(self._definitions.get(union, {}))
        suffix = {"ClientRequest": "Request", "ServerNotification": "Notification"}
        end = suffix.get(union, union)
        more = [each for each in self._more if each.endswith(end)]
        return {_method_of(self._definitions[name]): name for name in (*names, *more)}

    @cached_property
    def _response_errors(self) -> Mapping[int, str]:
        return {
            part["properties"]["code"]["const"]: name
            for name, members in self._defined_errors()
            for part in members.get("error", {}).get("allOf", ())
            if "properties" in part
        }

    @cached_property
    def _bare_errors(self) -> Mapping[int, str]:
        return {
            members["code"]["const"]: name
            for name, members in self._defined_errors()
            if "const" in members.get("code", {})
        }

    def _defined_errors(self) -> Iterator[tuple[str, JsonObject]]:
        for name, definition in self._definitions.items():
            if name.endswith("Error"):
                yield name, definition["properties"]


wire_validator: Final = cache(WireValidator)


def _foreign_members(shape: frozenset[str], message: JsonObject) -> Iterator[str]:
    known = shape | {"jsonrpc"} | ({"params"} if "method" in shape else set())
    if foreign := message.keys() - known:
        yield f"The envelope has members that JSON-RPC lacks: {sorted(foreign)}."


def _references(schema: JsonObject) -> list[str]:
    """The names of the definitions that a reference or a union of them names."""
    members = schema.get("anyOf", [schema] if "$ref" in schema else [])
    return [member["$ref"].rpartition("/")[2] for member in members]


def _method_of(definition: JsonObject) -> str:
    parts = definition.get("allOf", [definition])
    method: str = parts[-1]["properties"]["method"]["const"]
    return method


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True
