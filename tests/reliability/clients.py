"""Clients that last: streams that count what they are told, and lists in a loop."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

from tests.process.streaming import EVENTS, Answer, Session, stateless_request
from tests.wire.events import EventReader

TOOLS: Final = "notifications/tools/list_changed"
PAUSE_S: Final = 0.004
"""Between two lists, so that the client leaves the processors to the servers."""


class Stream(Answer):
    """A standing stream; it counts what it is told, by URI or by method."""

    def __init__(
        self, url: str, method: str, headers: Mapping[str, str], body: bytes = b""
    ) -> None:
        self._events = EventReader()
        self.begun = False
        self.told: Counter[str] = Counter()
        self.last = 0.0
        """When it was told the last (monotonic)."""
        super().__init__(url, method, headers, body)
        self.until(lambda _: self.begun)

    @classmethod
    def listen(cls, url: str, **notifications: object) -> Self:
        params = {"notifications": notifications}
        headers, body = stateless_request("subscriptions/listen", **params)
        return cls(url, "POST", headers, body)

    @classmethod
    def standing(cls, url: str, session: Session) -> Self:
        return cls(url, "GET", {"Accept": EVENTS, **session.headers})

    def _take(self, piece: bytes) -> None:
        for event in self._events.feed(piece):
            self.begun = True
            if event.data[0]:
                self._hear(json.loads(event.data[0]))

    def _hear(self, message: dict[str, dict[str, str]]) -> None:
        what = message.get("params", {}).get("uri", message["method"])
        self.last = time.monotonic()
        self.told[str(what)] += 1

    def hears(self, what: str, count: int, within: float) -> bool:
        """Wait until it has been told so often; return False where it is not."""
        self.wait(lambda _: self.told[what] >= count, within)
        return self.told[what] >= count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to a list: when it was asked for, and what it said."""

    began: float
    status: int
    body: bytes

    def described(self, name: str) -> str | None:
        tools = json.loads(self.body)["result"]["tools"] if self.status == 200 else ()
        return next((one["description"] for one in tools if one["name"] == name), None)

    def is_old(self, name: str, text: str) -> bool:
        return self.status == 200 and self.described(name) != text


class Asker:
    """Asks one process for its list of tools, on one connection."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._path = where.path
        self._headers, self._body = stateless_request("tools/list")
        self._connection = http.client.HTTPConnection(where.netloc, timeout=30)

    def ask(self) -> Page:
        """Return the list; the status is 0 where no answer came.

        A server may have closed a connection that was kept: it is asked on another.
        """
        for _ in range(1 + (self._connection.sock is not None)):
            began = time.monotonic()
            with suppress(OSError, http.client.HTTPException):
                self._connection.request("POST", self._path, self._body, self._headers)
                response = self._connection.getresponse()
                return Page(began, response.status, response.read())
            self.close()
        return Page(began, 0, b"")

    def close(self) -> None:
        self._connection.close()


class Lister(threading.Thread):
    """Lists the tools of one process again and again, from a `with` on to its end."""

    def __init__(self, url: str, pause: float = PAUSE_S) -> None:
        super().__init__(daemon=True)
        self._pause = pause
        self._asker = Asker(url)
        self._changed = threading.Condition()
        self._stopped = False
        self._pages: list[Page] = []

    def run(self) -> None:
        while not self._stopped:
            page = self._asker.ask()
            with self._changed:
                self._pages.append(page)
                self._changed.notify_all()
            time.sleep(self._pause)

    def since(self, moment: float, enough: int) -> list[Page]:
        """Wait for so many lists that began after a moment, and return all such."""

        def later() -> list[Page]:
            return [page for page in self._pages if page.began > moment]

        with self._changed:
            self._changed.wait_for(lambda: len(later()) >= enough)
            return later()

    def taken(self) -> list[Page]:
        with self._changed:
            taken, self._pages = self._pages, []
        return taken

    def __enter__(self) -> Self:
        self.start()
        self.since(0, 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self.join()
        self._asker.close()
