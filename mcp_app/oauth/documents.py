"""Fetches what programs say of themselves at the URL that is their id.

Only for people who are signed in, one at a time for each, and few at once: whoever
points at hosts that never answer keeps nobody else from signing in.  A document that
was read before serves for a day if it cannot be had again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from asgiref.sync import async_to_sync
from django.contrib.auth.models import AbstractBaseUser

from mcp_app.auth.oauth_settings import oauth_settings
from mcp_app.egress.documents import Bounds, fetch
from mcp_app.egress.errors import EgressError
from mcp_app.oauth.minute_limit import MinuteLimit
from mcp_app.protocol.oauth.client_metadata import MOST_BYTES
from mcp_app.protocol.oauth.documents import (
    ClientDocument,
    document_url_problem,
    kept_for,
    read_document,
)
from mcp_app.protocol.oauth.errors import OAuthError

logger = logging.getLogger("mcp_app.oauth")

TIMEOUT_S: Final = 5.0
FAILED_S: Final = 60.0
"""So long a document that could not be had is not asked for again."""
LONGEST_S: Final = 86_400.0
MOST_A_MINUTE: Final = 10
MOST_AT_ONCE: Final = 20
MOST_STORED: Final = 1_000

Fetch = Callable[[str], tuple[ClientDocument, int]]
"""Returns a document, and for how many seconds it is good; raises `OAuthError`."""


REMEDY: Final = (
    'If this site has no way to the internet, set MCP["OAUTH"]["documents"] to False:'
    " programs then register."
)


class NoDocument(OAuthError):
    """A document cannot be had at the moment."""

    def __init__(self) -> None:
        super().__init__("invalid_client", "Its document cannot be had at the moment.")


class NotFetched(NoDocument):
    """It was asked for, and nothing came; the log has the reason."""


class Busy(NoDocument):
    """Too much is being fetched, by this person or by all."""


@dataclass(frozen=True, slots=True)
class _Entry:
    document: ClientDocument | None
    """None where the last fetch failed and none was read before."""
    read: float
    until: float
    fetched: bool = True
    """Whether something came."""


class Documents:
    """The documents of this process; callable from any thread."""

    def __init__(
        self, fetch: Fetch, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._stored: dict[str, _Entry] = {}
        self._busy: set[str] = set()
        self._limit = MinuteLimit(MOST_A_MINUTE)

    def find(self, url: str, user: AbstractBaseUser) -> ClientDocument:
        """Return the document at a URL; raise `OAuthError` if it cannot be had."""
        problem = document_url_problem(url)
        if problem is not None:
            raise OAuthError("invalid_client", f"client_id is no document. {problem}")
        known, now = self._stored.get(url), self._clock()
        if known is not None and now < known.until:
            if known.document is None:
                raise NoDocument if known.fetched else NotFetched
            return known.document
        old = None
        if known is not None and now - known.read < LONGEST_S:
            old = known.document
        try:
            with self._turn(str(user.pk)):
                document, seconds = self._fetch(url)
        except OAuthError as error:
            if not isinstance(error, Busy):
                read = known.read if known is not None else now
                fetched = not isinstance(error, NotFetched)
                self._store(url, _Entry(old, read, self._clock() + FAILED_S, fetched))
            if old is None:
                raise
            return old
        now = self._clock()
        self._store(url, _Entry(document, now, now + seconds))
        return document

    @contextmanager
    def _turn(self, user: str) -> Iterator[None]:
        """Take one of the places, and give it back; raise `Busy` without one."""
        with self._lock:
            if user in self._busy or len(self._busy) >= MOST_AT_ONCE:
                raise Busy
            if not self._limit.take(user, self._clock()):
                raise Busy
            self._busy.add(user)
        try:
            yield
        finally:
            with self._lock:
                self._busy.discard(user)

    def _store(self, url: str, stored: _Entry) -> None:
        with self._lock:
            self._stored.pop(url, None)
            if len(self._stored) >= MOST_STORED:
                del self._stored[next(iter(self._stored))]
            self._stored[url] = stored


def fetch_document(url: str) -> tuple[ClientDocument, int]:
    """Return the document at a URL, and for how many seconds it is good; blocks."""
    options = oauth_settings()
    bounds = Bounds(
        networks=options.networks, ca=options.ca, timeout=TIMEOUT_S, answer=MOST_BYTES
    )
    try:
        answer = async_to_sync(fetch)(url, bounds, key="a client's document")
        document = read_document(url, answer.media_type, answer.body, options.schemes)
    except EgressError as error:
        logger.warning("No document of %s: %s %s", url, error.message, REMEDY)
        raise NotFetched from None
    except OAuthError as error:
        logger.warning("No document of the client %s: %s", url, error.description)
        raise
    return document, kept_for(answer.headers.get("cache-control"))


documents: Final = Documents(fetch_document)
"""Those of this process."""
