"""Look at a server as clients reach it, through all proxies, and say what to change."""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any, Final
from urllib.parse import urlsplit

from django.contrib.auth.models import AbstractBaseUser
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.views.decorators.debug import sensitive_variables

from mcp_app.auth.resources import server_url, slug_of_resource
from mcp_app.auth.users import find_user, no_such_user
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.interface.server import DEFAULT_SLUG, PUBLIC
from mcp_app.management.options import find_server
from mcp_app.models import Server
from mcp_app.transports.http.probe import BEYOND_HEARTBEAT_S
from mcp_app.workbench.checking.client import address_problem, token_for, why_no_token
from mcp_app.workbench.checking.directories import findings_of_server
from mcp_app.workbench.checking.findings import Finding, Grade, has_problem
from mcp_app.workbench.checking.judging import has_answer, judge_observations
from mcp_app.workbench.checking.observing import observe_server, read_report
from mcp_app.workbench.checking.site_findings import (
    DOCUMENTS,
    Conversations,
    judge_revisions,
    process_findings,
    server_findings,
    site_at_address,
)
from mcp_app.workbench.checking.upstream_findings import upstream_findings

NO_ANSWER: Final = 2
"""The exit status if there is no answer, or nothing was looked at."""
_NO_TOKEN: Final = re.compile(r"[^!-~]")
"""A character that no token has."""
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
            metavar="SLUG",
            help=(
                "The address (slug) of the server; by default the one at the end of"
                " URL."
            ),
        )
        parser.add_argument(
            "--user",
            metavar="NAME",
            help=(
                "Call as this user, with a read-only token that ends after the check."
                " Without this option you can put a token into the environment variable"
                " MCP_TOKEN."
            ),
        )
        parser.add_argument(
            "--ca", metavar="FILE", help="Trust the certificates in this file, too."
        )
        parser.add_argument(
            "--slow",
            action="store_true",
            help=(
                "Also see whether a silent stream stays open; this takes up to half a"
                " minute."
            ),
        )
        parser.add_argument(
            "--directory",
            action="store_true",
            help="Also say what the directories of Claude and ChatGPT would refuse.",
        )
        parser.add_argument(
            "--json", action="store_true", help="Print the findings as JSON."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._check_site(options)
        except DatabaseError as error:
            raise _usage_error(f"The database reported an error: {error}") from None
        except UnicodeEncodeError as error:
            raise _usage_error(f"{visible(error.object)!r} is not a text.") from None

    @sensitive_variables("token")
    def _check_site(self, options: Mapping[str, Any]) -> None:
        slug = options["server"] or _slug_from_url(options["url"])
        server = find_server(slug, NO_ANSWER)
        url = _address_to_check(options["url"], slug)
        name = options["user"]
        user = None if name is None else find_user(name)
        if name is not None and user is None:
            raise _usage_error(no_such_user(name))
        token = "" if user else _environment_token()
        tls = _trusted_context(options["ca"])
        silence = mcp_settings.limits.heartbeat + BEYOND_HEARTBEAT_S
        site = site_at_address(url, server)
        observations = observe_server(
            url,
            slug,
            site.body,
            tls,
            silence=silence if options["slow"] else 0.0,
            signs_in=site.signs_in,
        )
        findings = judge_observations(observations, site)
        report = read_report(observations.main)
        is_conclusive = report is not None or has_problem(findings)
        if report is not None:
            findings += server_findings(server)
            speaker = Conversations(url, tls, streams=report.interface == "ASGI")
            findings += _try_clients(findings, speaker, server, user, token)
        findings += [*process_findings(), *upstream_findings(user)]
        if options["directory"]:
            findings += findings_of_server(url, site)
        self._print_findings(findings, as_json=options["json"])
        if not is_conclusive or not has_answer(observations):
            raise SystemExit(NO_ANSWER)
        if has_problem(findings):
            raise SystemExit(1)

    def _print_findings(self, findings: list[Finding], *, as_json: bool) -> None:
        if as_json:
            objects = [asdict(finding) for finding in findings]
            self.stdout.write(json.dumps(objects, indent=2, ensure_ascii=False))
            return
        for each in findings:
            self.stdout.write(f"{WORDS[each.grade]}: {each.what}")
            if each.why:
                self.stdout.write(f"    {each.why}")
            for line in each.line.splitlines():
                self.stdout.write(f"    > {line}")


@sensitive_variables("token", "shown")
def _try_clients(
    findings: Sequence[Finding],
    speaker: Conversations,
    server: Server,
    user: AbstractBaseUser | None,
    token: str,
) -> list[Finding]:
    # A client speaks only to this site.  A problem with the documents of other sites
    # hides nothing of this one.
    if has_problem(finding for finding in findings if finding.rule != DOCUMENTS):
        message = "Clients were not tried: first mend what is a problem."
        return [Finding("revisions", Grade.UNKNOWN, message)]
    if server.access_names == (PUBLIC,):
        message = "The server is public: it looks at no token, so none was tried."
        why = "Whoever shows a wrong one is let in as nobody, like everybody else."
        advice = [Finding("token", Grade.ADVICE, message, why)] if user or token else []
        return [*advice, *judge_revisions(speaker.run_each_revision())]
    if user is None and not token:
        return judge_revisions(speaker.run_each_revision())
    if why := why_no_token(speaker.url, issued_here=user is not None):
        message = "Nothing was tried as a client."
        return [Finding("revisions", Grade.UNKNOWN, message, why)]
    with nullcontext(token) if user is None else token_for(user, server) as shown:
        speaker = replace(speaker, shown={"Authorization": f"Bearer {shown}"})
        return judge_revisions(speaker.run_each_revision(), has_token=True)


@sensitive_variables()
def _environment_token() -> str:
    """Return the token of the environment, or ""; raise CommandError if it is none.

    A token that was read from a file often has a line end behind it.
    """
    token = os.environ.get("MCP_TOKEN", "").strip()
    if _NO_TOKEN.search(token):
        raise _usage_error(
            "MCP_TOKEN has a character that no token has: it may have only visible"
            " ones of ASCII."
        )
    return token


def _usage_error(sentence: str) -> CommandError:
    return CommandError(sentence, returncode=NO_ANSWER)


def _slug_from_url(url: str | None) -> str:
    """Return the slug of the server that is meant by an address.

    Only its path counts: the address may be that behind a proxy.
    """
    site = server_url(DEFAULT_SLUG)
    try:
        path, parts = urlsplit(url or site).path, urlsplit(site)
    except ValueError:
        return DEFAULT_SLUG
    origin = f"{parts.scheme}://{parts.netloc}"
    return slug_of_resource(f"{origin}{path}", origin) or DEFAULT_SLUG


def _address_to_check(url_option: str | None, slug: str) -> str:
    if url_option is None and mcp_settings.public_url is None:
        raise _usage_error(
            "Name the address that clients use, such as https://example.com/mcp, or"
            " set MCP['PUBLIC_URL'] to it."
        )
    url = server_url(slug) if url_option is None else url_option
    if problem := address_problem(url):
        raise _usage_error(f"{url!r} cannot be looked at: {problem}")
    return url


def _trusted_context(file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    try:
        if file is not None:
            context.load_verify_locations(file)
    except (OSError, ssl.SSLError) as error:
        raise _usage_error(f"The file {file!r} has no certificates: {error}.") from None
    return context
