"""Serve one client on standard input and output."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.db import connections

from mcp_app.auth.permissions import find_user, no_such_user
from mcp_app.interface.principal import STDIO, Principal
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.protocol.errors import Unavailable
from mcp_app.transports.stdio import server
from mcp_app.transports.stdio.connection import NotServed
from mcp_app.transports.stdio.pipes import take_standard_streams

NOT_SERVED = 2
"""The exit status if this server does not admit this caller."""


class Command(BaseCommand):
    help = (
        "Serves one MCP client on standard input and output, until the input ends. "
        "Everything that is printed goes to standard error."
    )
    # Even failing system checks must not write to standard output.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
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

    def handle(self, *args: Any, **options: Any) -> None:
        incoming, outgoing = take_standard_streams()
        try:
            principal = _principal(options["user"])
            connections.close_all()
            asyncio.run(
                server.serve_client(options["server"], principal, incoming, outgoing)
            )
        except NotServed as refused:
            raise CommandError(refused.message, returncode=NOT_SERVED) from None
        except (DatabaseError, Unavailable) as error:
            raise CommandError(f"The database cannot be used: {error}") from None


def _principal(name: str) -> Principal:
    if not name:
        return Principal.ANONYMOUS
    user = find_user(name)
    if user is None:
        raise NotServed(no_such_user(name))
    return Principal(kind=STDIO, user_id=str(user.pk), user_name=name, client=STDIO)
