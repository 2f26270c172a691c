"""Write servers and definitions into one reviewable file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused


class Command(BaseCommand):
    help = (
        "Writes servers, definitions and what is published of them as one JSON file "
        "for mcp_import: the same bytes for the same content, without secrets, tokens, "
        "users and calls."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--server",
            action="append",
            default=[],
            metavar="SLUG",
            help="Only this server and what it offers; may be given several times.",
        )
        parser.add_argument(
            "--output", metavar="FILE", help="The file to write; standard output."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slugs = options["server"]
        try:
            rows = bundle.servers_named(slugs) if slugs else bundle.everything()
            written = bundle.export(rows)
        except BundleRefused as refused:
            raise CommandError("\n".join(refused.problems)) from None
        if options["output"]:
            Path(options["output"]).write_bytes(written)
        else:
            self.stdout.write(written.decode(), ending="")
