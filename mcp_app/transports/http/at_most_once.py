"""Requests that must not run twice: their rows exist before they run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from django.db import IntegrityError

from mcp_app.pools.database import unavailable
from mcp_app.server import identity
from mcp_app.transports.http.logged_replies import open_stream

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process
    from mcp_app.server.exchange import Exchange
    from mcp_app.streams.open_session import OpenSession
    from mcp_app.streams.request_log import OwnedStream, RequestLog

PATIENCE_S: Final = 10.0
"""In an outage of the database a request is refused after so long."""


async def begin_and_serve(
    current: Process, exchange: Exchange, session: OpenSession
) -> OwnedStream | None:
    """Call `begin`, then renew the exchange; raise if it is refused by now.

    The call sees the catalog after its row is written.
    """
    stream = await begin(current.log, exchange, session)
    if stream is not None:
        try:
            if exchange.renew is not None:
                await exchange.renew(exchange)
        except BaseException:
            stream.withdraw()
            raise
    return stream


async def begin(
    log: RequestLog, exchange: Exchange, session: OpenSession
) -> OwnedStream | None:
    """Return the stream of a request once its row exists.

    None stands for one that came before, or whose session is gone.  Raises 503 if
    the database is away.
    """
    stream = open_stream(
        log,
        session,
        exchange.request_id,
        tool=exchange.params["name"],
        request_key=identity.key(exchange.request_id),
        request_digest=await identity.digest_of(exchange),
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            await stream.committed()
    except IntegrityError:
        return None
    except TimeoutError:
        stream.withdraw()
        raise unavailable() from None
    except BaseException:
        stream.withdraw()
        raise
    return stream
