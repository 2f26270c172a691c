"""The open streams of this process that changes are announced to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Protocol, TypeAlias

from django.db import Error as DatabaseError
from django.db import router

from mcp_app.interface.principal import ACCESS_TOKEN, Principal, parts_of_key
from mcp_app.invalidation.change_reader import Name, topics_of
from mcp_app.invalidation.changes import MODEL, RIGHTS
from mcp_app.models import LoggedMessage
from mcp_app.models.changes import ANY
from mcp_app.models.fields import digest
from mcp_app.models.streams import LOG_BATCH_SIZE, NumberedText
from mcp_app.pools.database import writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.open_session import OpenSession

# -- announcing ------------------------------------------------------------------------
# What to tell a stream about some changes: each list and each resource once.

Shows: TypeAlias = Callable[[frozenset[str], str], bool]
"""Whether a URI may show an instance of one of these models."""
Personal: TypeAlias = Callable[[str], Iterable[str]]
"""The lists of a server that differ from user to user."""


class Announcement:
    """Changes by kind and ref, with their numbers as far as they are known.

    A change without a number goes to all streams, another one only to those that have
    not seen its number.
    """

    def __init__(
        self,
        names: Mapping[Name, int | None],
        everything: bool,
        shows: Shows,
        personal: Personal,
    ) -> None:
        self._everything = everything
        self._shows = shows
        self._personal = personal
        self._rights = {
            ref: number for (kind, ref), number in names.items() if kind == RIGHTS
        }
        self._models = [
            (ref, number) for (kind, ref), number in names.items() if kind == MODEL
        ]
        self._topics = [
            (what, server, number)
            for name, number in names.items()
            for what, server in topics_of(*name)
        ]

    def __bool__(self) -> bool:
        return bool(self._everything or self._topics or self._models or self._rights)

    def wanted(self, listener: Listener) -> list[str]:
        if self._everything:
            return list(dict.fromkeys(listener.watching()))
        parts = (
            self._changed_topics(listener),
            self._of_models(listener),
            self._lists_of_rights(listener),
        )
        return list(dict.fromkeys(chain(*parts)))

    def _changed_topics(self, listener: Listener) -> Iterator[str]:
        for what, server, number in self._topics:
            is_at_server = server is None or server == listener.server
            if is_at_server and _is_new_to(number, listener):
                yield from _watched_topics(listener, what)

    def _lists_of_rights(self, listener: Listener) -> Iterator[str]:
        """Yield the lists that may look different after a change of permissions."""
        kind, user, _ = parts_of_key(listener.owner)
        refs = self._rights.keys() & {user, ANY} if user else ()
        concerned = [ref for ref in refs if _is_new_to(self._rights[ref], listener)]
        if concerned:
            # A token's scope affects all lists of its user, not only the personal ones.
            has_token = kind == ACCESS_TOKEN and user in concerned
            for what in LISTS if has_token else self._personal(listener.server):
                yield from _watched_topics(listener, what)

    def _of_models(self, listener: Listener) -> Iterable[str]:
        new = frozenset(
            label for label, number in self._models if _is_new_to(number, listener)
        )
        if not new:
            return ()
        return (uri for uri in _resources(listener) if self._shows(new, uri))


def _is_new_to(number: int | None, listener: Listener) -> bool:
    return number is None or number > listener.seen


def _watched_topics(listener: Listener, what: str) -> list[str]:
    if what == ANY:
        return _resources(listener)
    topic = listener.watched(what)
    return [] if topic is None else [topic]


def _resources(listener: Listener) -> list[str]:
    return [each for each in listener.watching() if each not in LISTS]


SESSION_LISTS = ("tools", "prompts", "resources")
"""The lists that sessions are told of."""
LISTS = (*SESSION_LISTS, "events")


digest_of = digest
"""Returns the ref of a resource in change rows."""


class Listener(Protocol):
    """A stream that changes are announced to; used on the loop only."""

    server: str
    principal: Principal
    owner: str
    """Key of the principal, "" for an anonymous one."""
    session: str
    """Digest of the session, "" in the stateless era."""
    seen: int
    """Number up to which everything has been announced to it, as far as is known."""
    lasts: bool
    """Whether it is part of a connection that outlives a stop of its server."""

    def watched(self, what: str) -> str | None:
        """Return the list's name or the URI if the stream watches it.

        `what` is the name of a list, or the digest of a URI.
        """

    def watching(self) -> Iterable[str]:
        """Return all lists and URIs that the stream watches."""

    def tell(self, what: Sequence[str], number: int) -> None:
        """Announce that these lists and URIs changed, at least one.

        With the last of them, everything up to the number has been announced.
        """

    def beat(self) -> None:
        """Write a heartbeat."""

    def end(self, *, retry_ms: int | None = None) -> None:
        """End the stream, in the way of its kind."""


class Listeners:
    """The open streams of the process."""

    def __init__(self) -> None:
        self._open: dict[Listener, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Listener]:
        return iter(tuple(self._open))

    def count_at_address(self, address: str) -> int:
        """Return how many streams anonymous callers have open from an address."""
        return sum(each == address for each in self._open.values())

    def add(self, listener: Listener, address: str = "") -> None:
        """Add a stream; of an anonymous caller its `address`, if that is known."""
        self._open[listener] = address

    def discard(self, listener: Listener) -> None:
        self._open.pop(listener, None)


# -- log messages ----------------------------------------------------------------------
# Sends log messages from outside of calls to standing streams.

logger = logging.getLogger("mcp_app.streams")

RETRY_S: Final = 1.0


class Deliveries:
    """Sends log messages to sessions; used on the loop only.

    Only one transaction is queued at a time, however many sessions there are: the
    heartbeat uses the same thread.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._under_way: dict[int, bool] = {}
        """The sessions in progress, and whether to look at each once more."""

    async def deliver_messages(self, session: OpenSession) -> None:
        """Send a session's log messages on its newest stream, if that is open here.

        In an outage it retries, as long as the stream is open.
        """
        if session.pk in self._under_way:
            self._under_way[session.pk] = True
            return
        try:
            self._under_way[session.pk] = True
            while self._under_way[session.pk]:
                self._under_way[session.pk] = await self._deliver_batch(session)
        finally:
            del self._under_way[session.pk]

    async def _deliver_batch(self, session: OpenSession) -> bool:
        """Send some messages; return whether there may be more."""
        stream = next((each for each in session.streams if each.newest), None)
        if stream is None:
            return False
        self._under_way[session.pk] = False
        try:
            async with self._turn:
                messages = await writer.run(_numbered, session.pk, stream.logged)
        except (DatabaseError, Unavailable) as error:
            logger.warning("Messages could not be read: %r", error.__cause__ or error)
            await asyncio.sleep(RETRY_S)
            return True
        stream.log(messages)
        return self._under_way[session.pk] or len(messages) == LOG_BATCH_SIZE


def _numbered(session: int, after: int) -> list[NumberedText]:
    using = router.db_for_write(LoggedMessage)
    return LoggedMessage.objects.using(using).numbered(session, after)
