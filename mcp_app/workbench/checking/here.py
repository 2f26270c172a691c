"""What is looked at in this process: settings, rows of processes, the doorbell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core import checks
from django.db import Error as DatabaseError
from django.db import router
from django.http.request import split_domain_port, validate_host
from django.utils.translation import gettext as _

from mcp_app.auth.authenticators import Unusable, authenticators_of, issuers_of
from mcp_app.auth.connections import signs_in
from mcp_app.auth.oauth_settings import oauth_settings
from mcp_app.auth.resources import site_origin
from mcp_app.conf import mcp_settings
from mcp_app.egress.documents import Bounds, fetch
from mcp_app.egress.errors import EgressError, TooLarge, Unreadable
from mcp_app.interface.extras import is_installed
from mcp_app.interface.rules import visible
from mcp_app.invalidation.doorbell import why_unreachable
from mcp_app.models import Server, Stop, Worker
from mcp_app.models.stops import Scope
from mcp_app.transports.http.host_and_origin import DEBUG_HOSTS, answered_hosts
from mcp_app.workbench.checking.findings import Finding, Grade
from mcp_app.workbench.checking.judging import Site

TAG = "mcp"
_LONGEST = 300
TRIED_DOCUMENT = "https://claude.ai/oauth/claude-code-client-metadata"
"""The id of a program that many people use: if it can be had, so can others."""


def site_at(url: str, server: Server) -> Site:
    """Return what the settings say of a server at this address."""
    parts = urlsplit(url)
    domain = split_domain_port(parts.netloc.lower())[0] or str(parts.hostname)
    allowed = [*settings.ALLOWED_HOSTS]
    if settings.DEBUG and not allowed:
        allowed = [*DEBUG_HOSTS]
    return Site(
        slug=server.slug,
        hosts_line=_with_host('MCP["HOSTS"]', domain, answered_hosts()),
        allowed_hosts_line=_with_host("ALLOWED_HOSTS", domain, allowed),
        trusts_proxies=bool(mcp_settings.trusted_proxies),
        body=mcp_settings.limits.body,
        heartbeat=mcp_settings.limits.heartbeat,
        signs_in=_signs_in(parts.scheme, parts.netloc, server),
    )


def _with_host(setting: str, domain: str, hosts: list[str]) -> str:
    """Return the setting with a host more, "" if it has it already."""
    if validate_host(domain, hosts):
        return ""
    # Those that are there by another setting would be lost with this one.
    return f"{setting} = {json.dumps([*map(str, hosts), domain])}"


def _signs_in(scheme: str, netloc: str, server: Server) -> bool:
    """Whether somebody issues tokens for a server at this address."""
    origin = site_origin(scheme, netloc)
    try:
        ways = authenticators_of(server.access_names)
    except Unusable:
        # The system checks tell.
        return False
    return origin is not None and bool(issuers_of(ways or (), origin))


def server_findings(server: Server) -> list[Finding]:
    """Return why clients get nothing of a server, whatever else is right."""
    rule = "server"
    if server.published_id is None:
        said = _("The server is not published, so clients get 404.")
        why = _("The working copy is for staff alone.")
        return [Finding(rule, Grade.PROBLEM, said, why)]
    on = [*Stop.objects.on()]
    if any(each.scope == Scope.EVERYTHING or each.holds(server) for each in on):
        said = _("The server is stopped, so clients get 503.")
        why = _("Whoever may stop and start can start it again.")
        return [Finding(rule, Grade.PROBLEM, said, why, "mcp_stop list")]
    return []


def document_findings(server: Server) -> list[Finding]:
    """Return whether documents of programs that sign in can be fetched from here."""
    options = oauth_settings()
    if not (options.documents and is_installed("httpcore2") and signs_in(server)):
        return []
    rule, bounds = "documents", Bounds(networks=options.networks, ca=options.ca)
    try:
        async_to_sync(fetch)(TRIED_DOCUMENT, bounds, key="a client's document")
    except (TooLarge, Unreadable):
        # Whatever answers shows a way out.
        pass
    except EgressError as error:
        said = _("The document of Claude Code cannot be fetched from here: %(url)s")
        why = _(
            "Programs with a document cannot sign in. Let the site reach the internet,"
            " or let all programs register. The reason: %(error)s"
        )
        what, because = said % {"url": TRIED_DOCUMENT}, why % {"error": error.message}
        # It is added to what the settings have: it must replace none of it.
        line = 'MCP["OAUTH"] = {**MCP.get("OAUTH", {}), "documents": False}'
        return [Finding(rule, Grade.PROBLEM, what, because, line)]
    said = _("Documents of programs that sign in can be fetched.")
    return [Finding(rule, Grade.GOOD, said)]


def settings_findings() -> list[Finding]:
    """Return what `check --deploy --tag mcp --database` and the doorbell say."""
    return [*_system_checks(), *_doorbell()]


def process_findings() -> list[Finding]:
    """Return whether the processes that live run the same code with the same keys."""
    try:
        return [*_processes()]
    except DatabaseError as error:
        said = _("The rows of the processes could not be read: %(error)s")
        what = said % {"error": visible(str(error)[:_LONGEST])}
        return [Finding("processes", Grade.UNKNOWN, what)]


def _system_checks() -> Iterator[Finding]:
    found = checks.run_checks(
        tags=[TAG],
        include_deployment_checks=True,
        databases=[router.db_for_write(Server)],
    )
    told = [each for each in found if not each.is_silenced()]
    for each in told:
        grade = Grade.PROBLEM if each.is_serious() else Grade.ADVICE
        rule = str(each.id or "check")
        # Whole: what is cut off may be the line to change.
        what, why = visible(str(each.msg), None), visible(each.hint or "", None)
        yield Finding(rule, grade, what, why)
    if not told:
        yield Finding("check", Grade.GOOD, _("The settings are as they should be."))


def _doorbell() -> Iterator[Finding]:
    why = async_to_sync(why_unreachable)(mcp_settings.doorbell)
    if why:
        said = _("The doorbell cannot be reached: %(error)s")
        what = said % {"error": visible(why[:_LONGEST])}
        meant = _("Changes arrive a moment later in other processes.")
        yield Finding("doorbell", Grade.PROBLEM, what, meant)


def _processes() -> Iterator[Finding]:
    rule = "processes"
    live = list(Worker.objects.live())
    reports = [each.report_of_process() for each in live]
    codes = {each.code for each in reports if each.code}
    keys = {each.keys for each in reports if each.keys}
    if len(keys) > 1:
        said = _("Processes have different secret keys.")
        why = _("A session or a state of one means nothing to another.")
        line = _("Give all processes one SECRET_KEY, and restart them.")
        yield Finding(rule, Grade.PROBLEM, said, why, line)
    if len(codes) > 1:
        said = _("Processes run different code.")
        why = _("Clients see now this, now that.")
        line = _("Restart those that run old code.")
        yield Finding(rule, Grade.PROBLEM, said, why, line)
    if not keys or not codes:
        said = _(
            "No process has reported yet which code it runs. It reports this after its"
            " first request."
        )
        yield Finding(rule, Grade.UNKNOWN, said)
    elif len(keys) == len(codes) == 1:
        said = _("All processes run the same code with the same keys: %(count)d.")
        yield Finding(rule, Grade.GOOD, said % {"count": len(live)})
    yield from _silent(Worker.objects.count() - len(live))


def _silent(number: int) -> Iterator[Finding]:
    if number > 0:
        said = _("Processes that have ended without a word: %(count)d.")
        why = _("They were killed, or the machine was. Their rows go by themselves.")
        what = said % {"count": number}
        yield Finding("silent processes", Grade.ADVICE, what, why)
