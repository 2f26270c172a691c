"""A site that is run at DEBUG, and what clients send it that nobody may read again.

Each secret has a text of its own, a canary; the same texts are looked for in all that
the server wrote, in all rows, and in each answer that is an error.
"""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from mcp_app.protocol.cursors import derived_key
from tests.process.streaming import (
    INITIALIZED,
    JSON,
    Answer,
    Session,
    encoded,
    stateless,
)
from tests.secrecy import PURPOSES

SECRET_KEY: Final = "canary-secret-key-of-the-site-4f9c1d7be2a85036"
ARGUMENT: Final = "canary-argument-a1b2c3d4e5f6"
ANSWER: Final = "canary-answer-0a9b8c7d6e5f"
COOKIE: Final = "canary-cookie-11223344556677"
WRONG: Final = "mcp_canaryOfATokenThatIsNone00000000000000000"
BASIC: Final = base64.b64encode(b"user:canary-password").decode()


@dataclass(slots=True)
class Canaries:
    """What was secret, by what it is; and the answers that were errors."""

    texts: dict[str, str] = field(default_factory=dict)
    errors: list[bytes] = field(default_factory=list)

    def note(self, kind: str, text: str) -> str:
        self.texts[f"{kind} {len(self.texts)}"] = text
        return text

    def taken(self, answer: Answer) -> Answer:
        whole = answer.whole()
        if whole.status >= 400 or b'"error"' in whole.raw:
            self.errors.append(repr(dict(whole.headers)).encode() + whole.raw)
        return whole

    def forms(self) -> Iterator[tuple[str, bytes]]:
        """Yield each secret in the forms in which it might be written."""
        for kind, text in self.texts.items():
            raw = text.encode()
            for form in {
                raw,
                quote(text).encode(),
                base64.b64encode(raw).rstrip(b"="),
                raw.hex().encode(),
            }:
                yield kind, form

    def found(self, where: str, content: bytes) -> list[str]:
        return [f"{kind} in {where}" for kind, form in self.forms() if form in content]


def keys(secret: str) -> Iterator[str]:
    """Yield what is derived from the site's key, as it might be written."""
    yield secret
    for purpose in PURPOSES:
        yield derived_key(secret, purpose).hex()


def rows(database: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        names = [name for (name,) in tables]
        return {
            name: "\n".join(
                repr(row)
                for row in connection.execute(f'SELECT * FROM "{name}"')  # noqa: S608
            ).encode()
            for name in names
        }


class Client:
    """Somebody whose every secret is a canary."""

    def __init__(self, url: str, token: str, canaries: Canaries) -> None:
        self._url = url
        self._canaries = canaries
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Cookie": f"sessionid={COOKIE}; csrftoken={COOKIE}",
        }

    def _session(self) -> Session:
        opened = Session(self._url, self._headers)
        self._canaries.note("session id", opened.headers["Mcp-Session-Id"])
        assert opened.send(INITIALIZED).whole().status == 202
        return opened

    def stateful(self) -> None:
        session = self._session()
        taken = self._canaries.taken
        standing = session.standing()
        for tool, arguments in CALLS:
            taken(session.called(tool, **arguments))
        for method, params in REQUESTS:
            taken(session.request(method, **params))
        call = session.called("drill_ask", question="Which?")
        call.until(lambda each: each.messages)
        result = {"action": "accept", "content": {"answer": ANSWER}}
        reply = encoded(id=call.messages[0]["id"], result=result)
        # What follows the answer is the call's result, which may say it: it is the
        # client's own.
        assert session.send(reply).whole().status == 202
        call.whole()
        taken(session.send(reply))
        taken(session.send(b'{"jsonrpc": "2.0", "id": 1, "' + ARGUMENT.encode()))
        standing.leave()
        for each in ("nothing", f"{'x' * 24}.1"):
            taken(session.stream(each))
        session.close().whole()
        taken(session.request("ping"))

    def stateless(self) -> None:
        """Do the same in the stateless era, with request state and cursors."""
        note, taken = self._canaries.note, self._canaries.taken
        for tool, arguments in CALLS:
            taken(self._sent("tools/call", name=tool, arguments=arguments))
        call = {"name": "drill_ask", "arguments": {"question": "Which?"}}
        asked = self._sent("tools/call", **call).whole().messages[-1]["result"]
        state = note("request state", asked["requestState"])
        answers = {
            key: {"action": "accept", "content": {"answer": ANSWER}}
            for key in asked["inputRequests"]
        }
        brought = {**call, "inputResponses": answers}
        assert self._sent("tools/call", **brought, requestState=state).whole().messages
        taken(self._sent("tools/call", **brought, requestState=state[:-2]))
        paged = f"{self._url.rpartition('/')[0]}/paged"
        listed = stateless(paged, "tools/list", self._headers).whole()
        cursor = note("cursor", listed.messages[0]["result"]["nextCursor"])
        taken(stateless(paged, "tools/list", self._headers, cursor=cursor))
        taken(stateless(self._url, "tools/list", self._headers, cursor=cursor))
        taken(stateless(paged, "tools/list", self._headers, cursor=f"{cursor}A"))

    def _sent(self, method: str, **params: Any) -> Answer:
        return stateless(self._url, method, self._headers, **params)

    def refused(self) -> None:
        """Show what lets nobody in, wherever it may be shown."""
        taken = self._canaries.taken
        token = self._headers["Authorization"].removeprefix("Bearer ")
        shown: list[Mapping[str, str]] = [
            {"Authorization": f"Bearer {WRONG}"},
            {"Authorization": f"Bearer {token}x"},
            {"Authorization": f"Basic {BASIC}"},
            {"Cookie": f"sessionid={COOKIE}"},
        ]
        for headers in shown:
            for path in ("", "/sse", "/nothing"):
                url = f"{self._url}{path}"
                for method in ("POST", "GET", "DELETE"):
                    taken(Answer(url, method, {**JSON, **headers}, b"{}"))
        for query in (f"?access_token={token}", f"?a=1&access_token={WRONG}"):
            taken(Answer(f"{self._url}{query}", "POST", JSON, b"{}"))
        unknown = {**JSON, **self._headers, "Mcp-Session-Id": "canary-session-unknown"}
        self._canaries.note("session id", "canary-session-unknown")
        taken(Answer(self._url, "POST", unknown, b'{"jsonrpc":"2.0","method":"x"}'))
        # Of the site around the endpoint.
        root = self._url.partition("/mcp")[0]
        for path in ("/nowhere", "/admin/mcp_app/tool/", "/mcp/a/b/c"):
            taken(Answer(f"{root}{path}", "GET", self._headers))

    def old(self) -> None:
        """Open the stream of HTTP+SSE, call there, and leave."""
        headers = {**self._headers, "Accept": "text/event-stream"}
        stream = Answer(f"{self._url}/sse", "GET", headers)
        stream.until(lambda each: b"session_id=" in each.raw)
        address = stream.field("data")[0]
        self._canaries.note("session id", address.partition("session_id=")[2])
        url = self._url.partition("/mcp")[0] + address
        for body in (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b"{"):
            self._canaries.taken(Answer(url, "POST", {**JSON, **self._headers}, body))
        stream.leave()
        self._canaries.taken(Answer(url, "POST", {**JSON, **self._headers}, b"{}"))


CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("drill_echo", {"value": ARGUMENT}),
    ("drill_echo", {"value": ARGUMENT, "unknown": ARGUMENT}),
    ("drill_add", {"a": ARGUMENT, "b": 1}),
    ("drill_add", {"a": 1}),
    ("drill_fail", {"kind": "exception"}),
    ("drill_fail", {"kind": "tool_error"}),
    ("drill_fail", {"kind": ARGUMENT}),
    ("drill_nothing", {"value": ARGUMENT}),
    ("drill_sleep_sync", {"seconds": ARGUMENT}),
]
"""What is called with secrets: it answers, fails, crashes, and is not there."""
REQUESTS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("logging/setLevel", {"level": "debug"}),
    ("resources/subscribe", {"uri": "test://static-text"}),
    ("resources/read", {"uri": "test://nothing"}),
    ("prompts/get", {"name": "nothing", "arguments": {"word": ARGUMENT}}),
    ("tools/list", {"cursor": "canary-cursor-none"}),
    ("nothing/at/all", {"value": ARGUMENT}),
]
