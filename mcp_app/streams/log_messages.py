"""Sends log messages from outside of calls to standing streams."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from django.db import Error as DatabaseError
from django.db import router

from mcp_app.models import LoggedMessage
from mcp_app.models.log_messages import AT_ONCE, NumberedText
from mcp_app.pools.database import writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.open_session import OpenSession

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

    async def deliver(self, session: OpenSession) -> None:
        """Send a session's log messages on its newest stream, if that is open here.

        In an outage it retries, as long as the stream is open.
        """
        if session.pk in self._under_way:
            self._under_way[session.pk] = True
            return
        try:
            self._under_way[session.pk] = True
            while self._under_way[session.pk]:
                self._under_way[session.pk] = await self._sent(session)
        finally:
            del self._under_way[session.pk]

    async def _sent(self, session: OpenSession) -> bool:
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
        return self._under_way[session.pk] or len(messages) == AT_ONCE


def _numbered(session: int, after: int) -> list[NumberedText]:
    using = router.db_for_write(LoggedMessage)
    return LoggedMessage.objects.using(using).numbered(session, after)
