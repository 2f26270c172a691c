"""Judges what comes to one client, message by message, as the type that it must be."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from tests.wire.middleware import STATEFUL
from tests.wire.validation import wire_validator

JsonObject: TypeAlias = dict[str, Any]


class Judge:
    """A client of one revision tells it what it sends, and what comes.

    A result is judged as that of the request which it answers. What answers no request
    is wrong: only an error may have no id, where the id of its request was not read.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self.kinds: set[str] = set()
        """What came: the definitions of the schema, and "error" with its code."""
        self.known = version not in STATEFUL
        """Whether the server knows the revision: in a session from its answer on."""
        self._validator = wire_validator(version)
        self._open: dict[str, str] = {}

    def sent(self, value: object) -> None:
        """Note the requests of a message or a batch."""
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict) and "method" in each and "id" in each:
                self._open[json.dumps(each["id"])] = str(each["method"])

    def came(self, message: JsonObject) -> None:
        """Raise AssertionError with what is wrong with a message."""
        method = self._answered(message)
        found = self._wrong(message, method)
        assert found == [], f"{self.version}, {method}: {found} {message}"
        kind = self._validator.kind(message, method=method)
        assert kind, f"{self.version}, {method}: {message}"
        self.kinds.add(kind)
        self.known |= kind == "InitializeResult"

    def _wrong(self, message: JsonObject, method: str | None) -> list[str]:
        """Before the revision is known any of those with sessions may be followed."""
        versions = (self.version,) if self.known else STATEFUL
        return min(
            (wire_validator(each).check(message, method=method) for each in versions),
            key=len,
        )

    def _answered(self, message: JsonObject) -> str | None:
        """Return the method of the request that a message answers, and forget it."""
        if "method" in message or message.get("id") is None:
            return None
        key = json.dumps(message["id"])
        assert key in self._open, f"Nobody has asked for {message}"
        return self._open.pop(key)
