"""Writes how clients call `drill_add`: a line of JSON for each way to write that.

What differs from run to run has a name instead: the id, the session, the token, the
port.  The differential tests of plain calls send these requests again.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tests.wire.middleware import Application, Receive, Scope, Send

SESSION: Final = "SESSION"
TOKEN: Final = "TOKEN"
HOST: Final = "localhost"
ID: Final = 7
STREAMABLE: Final = frozenset({b"mcp-session-id", b"mcp-method"})
"""Calls by the older transport have neither header."""
_DIFFERENT: Final = {
    "host": HOST,
    "mcp-session-id": SESSION,
    "authorization": f"Bearer {TOKEN}",
    "content-length": None,
}
_NUMBER: Final = re.compile(r'("(?:id|progressToken)": ?)\d+')
_TEXT: Final = re.compile(r'("(?:id|progressToken)": ?)"[^"]*"')


class Recorder:
    """ASGI middleware; a call that is written in a new way goes to a file."""

    def __init__(self, application: Application, path: str) -> None:
        self._application = application
        self._path = path
        self._lines: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()

        async def heard() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            if not message.get("more_body"):
                self._write(scope, bytes(body))
                body.clear()
            return message

        await self._application(scope, heard, send)

    def _write(self, scope: Scope, body: bytes) -> None:
        if not all(each in body for each in (b'"tools/call"', b'"drill_add"')):
            return
        if STREAMABLE.isdisjoint(name for name, _ in scope["headers"]):
            return
        text = _TEXT.sub(r'\1"seven"', _NUMBER.sub(rf"\g<1>{ID}", body.decode()))
        pairs = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        headers = [
            (name, _DIFFERENT.get(name, value))
            for name, value in pairs
            if _DIFFERENT.get(name, value) is not None
        ]
        line = json.dumps({"headers": headers, "body": text}, ensure_ascii=False)
        if line not in self._lines:
            self._lines.add(line)
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
