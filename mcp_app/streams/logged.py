"""Log messages from outside of calls, on their way to standing streams."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from django.db import Error as DatabaseError
from django.db import router

from mcp_app.models import LoggedMessage
from mcp_app.models.logged import Numbered
from mcp_app.pools.database import writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.sessions import OpenSession

logger = logging.getLogger("mcp_app.streams")

RETRY_S: Final = 1.0


async def deliver(session: OpenSession) -> None:
    """Send what was logged for a session on its newest stream, if that is here.

    An outage is waited for, as long as the stream is open.
    """
    while stream := next((each for each in session.streams if each.newest), None):
        try:
            messages = await writer.run(_numbered, session.pk, stream.logged)
        except (DatabaseError, Unavailable) as error:
            logger.warning("Messages could not be read: %r", error.__cause__ or error)
            await asyncio.sleep(RETRY_S)
            continue
        if not messages:
            return
        stream.log(messages)


def _numbered(session: int, after: int) -> list[Numbered]:
    using = router.db_for_write(LoggedMessage)
    return LoggedMessage.objects.using(using).numbered(session, after)
