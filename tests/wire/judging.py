"""Judges what comes to one client, message by message, as the type that it must be."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from tests.wire.middleware import STATEFUL, STATELESS, names_version
from tests.wire.validation import wire_validator

JsonObject: TypeAlias = dict[str, Any]


class Judge:
    """A client of one revision tells it what it sends, and what comes.

    A result is judged as that of the request which it answers, and by the revision that
    this names. What answers no request is wrong: only an error may have no id, where
    the id of its request was not read. Of requests with one id, a message answers that
    which it may answer, the last one first.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self.kinds: set[str] = set()
        """What came: the definitions of the schema, and "error" with its code."""
        self.known = version not in STATEFUL
        """Whether the server knows the revision: in a session from its answer on."""
        self._validator = wire_validator(version)
        self._open: dict[str, list[JsonObject]] = {}
        self._named = False
        """Whether what was sent last names its revision, as in the stateless era."""

    def sent(self, value: object) -> None:
        sent = value if isinstance(value, list) else [value]
        messages = [each for each in sent if isinstance(each, dict)]
        self._named = any(map(names_version, messages))
        for each in messages:
            if "method" in each and "id" in each:
                self._open.setdefault(json.dumps(each["id"]), []).append(each)

    def came(self, message: JsonObject) -> None:
        """Raise AssertionError with what is wrong with a message."""
        request = self._answered(message)
        method = None if request is None else str(request["method"])
        found = self._wrong(message, request)
        assert found == [], f"{self.version}, {method}: {found} {message}"
        kind = self._validator.kind(message, method=method)
        assert kind, f"{self.version}, {method}: {message}"
        self.kinds.add(kind)
        self.known |= kind == "InitializeResult"

    def _wrong(self, message: JsonObject, request: JsonObject | None) -> list[str]:
        """Before the revision is known any of those with sessions may be followed."""
        method = None if request is None else str(request["method"])
        versions = (self.version,) if self.known else STATEFUL
        if request is not None and names_version(request):
            versions = (STATELESS,)
        elif "error" in message and self._named:
            versions = (*versions, STATELESS)
        return min(
            (wire_validator(each).check(message, method=method) for each in versions),
            key=len,
        )

    def _answered(self, message: JsonObject) -> JsonObject | None:
        if "method" in message or message.get("id") is None:
            return None
        waiting = self._open.get(json.dumps(message["id"]))
        assert waiting, f"Nobody has asked for {message}"
        request = min(
            reversed(waiting), key=lambda each: len(self._wrong(message, each))
        )
        waiting.remove(request)
        return request
