"""Options of several commands: a server, and a user who calls in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from django.core.management.base import CommandError, CommandParser
from django.db import Error as DatabaseError
from django.db import connections

from mcp_app.auth.users import find_user, no_such_user
from mcp_app.interface.principal import STDIO, Principal
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.models import Server
from mcp_app.pools.database import reader
from mcp_app.pools.pump import run_pumped
from mcp_app.process.current import begin_process
from mcp_app.process.resting import run_at_rest
from mcp_app.protocol.errors import ProtocolError, Unavailable
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import LATEST
from mcp_app.transports.in_process import Caller
from mcp_app.transports.stdio.connection import NotServed

Value = TypeVar("Value")

MAX_SLUGS: Final = 20
"""Slugs that an error names."""
NOT_SERVED: Final = 2
"""The exit status if this server does not admit this caller."""


def find_server(slug: str, returncode: int = 1) -> Server:
    """Return the server with this slug.

    Raises CommandError, which names the servers that exist.
    """
    if (server := Server.objects.filter(slug=slug).first()) is not None:
        return server
    rows = Server.objects.order_by("pk").values_list("slug", flat=True)
    slugs = [repr(row) for row in rows[: MAX_SLUGS + 1]]
    ending = " and more" if len(slugs) > MAX_SLUGS else ""
    names = f"There are: {', '.join(slugs[:MAX_SLUGS])}{ending}."
    raise CommandError(
        f"There is no MCP server {slug!r} here."
        f" {names if slugs else 'There is none yet.'}",
        returncode=returncode,
    )


def add_caller_options(parser: CommandParser) -> None:
    """Add the options that say which server is called, and who calls."""
    parser.add_argument(
        "--server",
        default=DEFAULT_SLUG,
        metavar="SLUG",
        help="The address (slug) of the server.",
    )
    parser.add_argument(
        "--user",
        default=os.environ.get("MCP_USER", ""),
        metavar="NAME",
        help="The user who makes the calls; by default the environment's MCP_USER."
        " Without a user only a public server can be used.",
    )


def principal_of(name: str) -> Principal:
    """Return the principal of a user; raise `NotServed` if there is no active one."""
    if not name:
        return Principal.ANONYMOUS
    user = find_user(name)
    if user is None:
        raise NotServed(no_such_user(name))
    return Principal(kind=STDIO, user_id=str(user.pk), user_name=name, client=STDIO)


def run_as(
    user: str,
    capabilities: JsonObject,
    work: Callable[[Caller], Awaitable[Value]],
) -> Value:
    """Run work of a client of the newest revision, in a process of its own.

    If this thread is in a transaction, all statements run in it, because no other
    connection sees its rows.  Otherwise its connections are not used.

    Raises CommandError if there is no such user, or if the server refuses them.
    """

    async def run_work() -> Value:
        caller = Caller(
            principal=await reader.run(principal_of, user),
            person="",
            revision=LATEST,
            name="manage.py",
            capabilities=capabilities,
            # A person with a shell needs nobody's agreement.
            approved=True,
        )
        return await work(caller)

    try:
        opened = connections.all(initialized_only=True)
        if any(each.in_atomic_block for each in opened):
            return run_pumped(partial(run_at_rest, run_work))
        return asyncio.run(_run_in_process(run_work))
    except NotServed as refused:
        hint = "" if user else " Add --user NAME, or set MCP_USER."
        raise CommandError(f"{refused.message}{hint}", returncode=NOT_SERVED) from None
    except (DatabaseError, Unavailable) as error:
        raise CommandError(f"The database cannot be used: {error}") from None
    except ProtocolError as error:
        raise CommandError(error.message, returncode=NOT_SERVED) from None


async def _run_in_process(work: Callable[[], Awaitable[Value]]) -> Value:
    current = begin_process()
    try:
        return await work()
    finally:
        await current.drain(0)
        current.close()
