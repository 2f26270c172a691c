"""Write servers and definitions into one reviewable file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused


class Command(BaseCommand):
    help = (
        "Writes servers and definitions, with their working copies and published"
        " versions, to one JSON file for mcp_import. The same content gives the same"
        " bytes. Secrets, tokens, users and calls are not in it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--server",
            action="append",
            default=[],
            metavar="SLUG",
            help="Only this server and its definitions; you can give it several times.",
        )
        parser.add_argument(
            "--working",
            action="store_true",
            help="Only working copies, without version numbers, authors and times: the"
            " same content gives the same bytes at every site, as Git wants it.",
        )
        parser.add_argument(
            "--output",
            metavar="FILE",
            help="The file to write; by default standard output.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slugs = options["server"]
        try:
            rows = bundle.servers_by_name(slugs) if slugs else bundle.everything()
            written = bundle.export_bundle(rows, published=not options["working"])
        except BundleRefused as refused:
            raise CommandError("\n".join(refused.problems)) from None
        if options["output"]:
            Path(options["output"]).write_bytes(written)
        else:
            self.stdout.write(written.decode(), ending="")
