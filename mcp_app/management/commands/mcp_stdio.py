"""Serve one client on standard input and output."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.db import connections

from mcp_app.auth.permissions import named
from mcp_app.interface.principal import STDIO, Principal
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.protocol.errors import Unavailable
from mcp_app.transports.stdio import server
from mcp_app.transports.stdio.connection import NotServed
from mcp_app.transports.stdio.pipes import take_standard_streams

NOT_SERVED = 2
"""The exit status where this server is not for this caller."""


class Command(BaseCommand):
    help = (
        "Serves one MCP client on standard input and output, until the input ends. "
        "Everything that is printed goes to standard error."
    )
    # A site whose checks fail still has to say so on standard error only.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--server", default=DEFAULT_SLUG, metavar="SLUG", help="Which server."
        )
        parser.add_argument(
            "--user",
            default=os.environ.get("MCP_USER", ""),
            metavar="NAME",
            help="As whom calls are made; the environment's MCP_USER. Without one "
            "only a public server can be used.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        incoming, outgoing = take_standard_streams()
        try:
            principal = _principal(options["user"])
            connections.close_all()
            asyncio.run(server.serve(options["server"], principal, incoming, outgoing))
        except NotServed as refused:
            raise CommandError(refused.message, returncode=NOT_SERVED) from None
        except (DatabaseError, Unavailable) as error:
            raise CommandError(f"The database cannot be used: {error}") from None


def _principal(name: str) -> Principal:
    """Return who calls; raise where there is no such active user."""
    if not name:
        return Principal.ANONYMOUS
    user = named(name)
    if user is None:
        raise NotServed(f"There is no active user {name!r}.")
    return Principal(kind=STDIO, user_id=str(user.pk), user_name=name, client=STDIO)
