"""Look at a server as clients reach it, through all proxies, and say what to change."""

from __future__ import annotations

import json
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcp_app.auth.resources import server_url
from mcp_app.conf import mcp_settings
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.models import Server
from mcp_app.transports.http.probe import BEYOND_HEARTBEAT_S
from mcp_app.workbench.checking import here
from mcp_app.workbench.checking.address import address_problem
from mcp_app.workbench.checking.findings import Finding, Grade, has_problem
from mcp_app.workbench.checking.judging import has_answer, judge
from mcp_app.workbench.checking.observing import observe

NO_ANSWER: Final = 2
"""The exit status if there is no answer, or nothing was looked at."""
WORDS: Final = {
    Grade.GOOD: "Good",
    Grade.ADVICE: "Advice",
    Grade.PROBLEM: "Problem",
    Grade.UNKNOWN: "Cannot tell from here",
}


class Command(BaseCommand):
    help = (
        "Sends a few requests to a server at the address that clients use, and says"
        " what a proxy on the way does to them, with the line to change. Run it with"
        " the settings of the site. The exit status is 1 if there is a problem, and 2"
        " if there is no answer."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "url",
            nargs="?",
            metavar="URL",
            help="The address of the server; by default that of MCP['PUBLIC_URL'].",
        )
        parser.add_argument(
            "--server",
            default=DEFAULT_SLUG,
            metavar="SLUG",
            help="The address (slug) of the server.",
        )
        parser.add_argument(
            "--ca", metavar="FILE", help="Trust the certificates in this file, too."
        )
        parser.add_argument(
            "--slow",
            action="store_true",
            help="Also see whether a silent stream stays open: half a minute.",
        )
        parser.add_argument(
            "--json", action="store_true", help="Print the findings as JSON."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["server"]
        if not Server.objects.filter(slug=slug).exists():
            raise _unusable(f"There is no MCP server {slug!r} here.")
        url = _address(options["url"], slug)
        silence = mcp_settings.limits.heartbeat + BEYOND_HEARTBEAT_S
        seen = observe(
            url,
            slug,
            mcp_settings.limits.body,
            _trust(options["ca"]),
            silence=silence if options["slow"] else 0.0,
        )
        findings = [
            *judge(seen, here.site_at(urlsplit(url).netloc)),
            *here.process_findings(),
            *here.settings_findings(),
        ]
        self._tell(findings, as_json=options["json"])
        if not has_answer(seen):
            raise SystemExit(NO_ANSWER)
        if has_problem(findings):
            raise SystemExit(1)

    def _tell(self, findings: list[Finding], *, as_json: bool) -> None:
        if as_json:
            told = [each.as_json() for each in findings]
            self.stdout.write(json.dumps(told, indent=2, ensure_ascii=False))
            return
        for each in findings:
            self.stdout.write(f"{WORDS[each.grade]}: {each.what}")
            if each.why:
                self.stdout.write(f"    {each.why}")
            for line in each.line.splitlines():
                self.stdout.write(f"    > {line}")


def _unusable(sentence: str) -> CommandError:
    return CommandError(sentence, returncode=NO_ANSWER)


def _address(given: str | None, slug: str) -> str:
    """Return the address to look at; raise CommandError if there is none."""
    if given is None and mcp_settings.public_url is None:
        raise _unusable(
            "Name the address that clients use, such as https://example.com/mcp, or"
            " set MCP['PUBLIC_URL'] to it."
        )
    url = server_url(slug) if given is None else given
    if problem := address_problem(url):
        raise _unusable(f"{url!r} cannot be looked at: {problem}")
    return url


def _trust(file: str | None) -> ssl.SSLContext:
    """Return whose certificates are trusted; raise CommandError for a bad file."""
    context = ssl.create_default_context()
    try:
        if file is not None:
            context.load_verify_locations(file)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(f"The file {file!r} has no certificates: {error}.") from None
    return context
