"""Serve one client on standard input and output."""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError

from mcp_app.management.options import NOT_SERVED, add_caller_options, principal_of
from mcp_app.pools.database import reader
from mcp_app.protocol.errors import Unavailable
from mcp_app.transports.stdio import server
from mcp_app.transports.stdio.connection import NotServed
from mcp_app.transports.stdio.pipes import take_standard_streams


class Command(BaseCommand):
    help = (
        "Serves one MCP client on standard input and output, until the input ends. "
        "Everything that is printed goes to standard error."
    )
    # Even failing system checks must not write to standard output.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_caller_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        incoming, outgoing = take_standard_streams()
        try:
            asyncio.run(
                _serve_user(options["user"], options["server"], incoming, outgoing)
            )
        except NotServed as refused:
            raise CommandError(refused.message, returncode=NOT_SERVED) from None
        except (DatabaseError, Unavailable) as error:
            raise CommandError(f"The database cannot be used: {error}") from None


async def _serve_user(user: str, slug: str, incoming: int, outgoing: int) -> None:
    # Read in a thread: the connection of this one may be in use by `call_command`.
    principal = await reader.run(principal_of, user)
    await server.serve_client(slug, principal, incoming, outgoing)
