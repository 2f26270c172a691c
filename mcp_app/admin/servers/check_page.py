"""The page *Check*: the data for its script, and the findings in words."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy

from mcp_app.auth.resources import server_url
from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import Label
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.models import Server
from mcp_app.transports.http.probe import (
    BEYOND_HEARTBEAT_S,
    HEADER,
    PING,
    PROBE_HEADERS,
    Probe,
    issue_ticket,
)
from mcp_app.workbench.checking.client import address_problem
from mcp_app.workbench.checking.directories import findings_of_server
from mcp_app.workbench.checking.findings import Finding, Grade
from mcp_app.workbench.checking.judging import judge_observations
from mcp_app.workbench.checking.observing import (
    MAX_PAGE_BYTES,
    Unreadable,
    metadata_address,
    observations_of_page,
)
from mcp_app.workbench.checking.site_findings import (
    process_findings,
    server_findings,
    site_at_address,
)

WORDS: Final[dict[Grade, tuple[Label, str]]] = {
    Grade.PROBLEM: (gettext_lazy("Problem"), "bad"),
    Grade.ADVICE: (gettext_lazy("Advice"), "warn"),
    Grade.UNKNOWN: (gettext_lazy("Cannot tell from here"), ""),
    Grade.GOOD: (gettext_lazy("Good"), "good"),
}
"""The word and the CSS class of each grade, the worst first."""


def probe_context(request: HttpRequest, row: Server) -> dict[str, Any]:
    """Return the data for the page's script, and the command that does the same."""
    origin = f"{request.scheme}://{request.get_host()}"
    url = server_url(row.slug, origin)
    parts = urlsplit(url)
    command = f"python manage.py mcp_check {url}"
    if row.slug != DEFAULT_SLUG:
        command = f"{command} --server {row.slug}"
    metadata = ""
    if site_at_address(url, row).signs_in:
        metadata = urlsplit(metadata_address(url)).path
    has_public_url = mcp_settings.public_url is not None
    plan = {
        "path": parts.path,
        "metadata": metadata,
        # Without a public URL, clients use the address of the page.
        "origin": f"{parts.scheme}://{parts.netloc}" if has_public_url else "",
        "header": HEADER,
        "tickets": {each.value: issue_ticket(row.slug, each) for each in Probe},
        "sent": dict(PROBE_HEADERS),
        "ping": PING.decode(),
        "body": mcp_settings.limits.body,
        "silence": mcp_settings.limits.heartbeat + BEYOND_HEARTBEAT_S,
    }
    return {"url": url, "command": command, "plan": json.dumps(plan)}


def judged_fragment(request: HttpRequest, row: Server) -> HttpResponse:
    """Return the findings about the answers that a browser got."""
    try:
        text = request.read(MAX_PAGE_BYTES + 1)
        url, answers = _parse_answers(text)
        observation = observations_of_page(answers, url, mcp_settings.limits.body)
    except Unreadable as error:
        return HttpResponse(str(error), status=400, content_type="text/plain")
    findings = judge_observations(observation, site_at_address(url, row))
    context = {"lines": _finding_lines(findings)}
    response = render(request, "admin/mcp_app/includes/findings.html", context)
    response.headers["Cache-Control"] = "no-store"
    return response


def _parse_answers(text: bytes) -> tuple[str, object]:
    """Return the address that the page called, and the answers."""
    if len(text) > MAX_PAGE_BYTES:
        raise Unreadable(f"The page has sent more than {MAX_PAGE_BYTES} bytes.")
    try:
        report = json.loads(text)
        url, answers = report["url"], report["answers"]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise Unreadable("The page must send an address and answers.") from None
    if not isinstance(url, str) or (problem := address_problem(url)):
        reason = problem if isinstance(url, str) else "it must be a text."
        raise Unreadable(f"The page has sent an address that is none: {reason}")
    return url, answers


def _finding_lines(findings: list[Finding]) -> list[dict[str, object]]:
    """Return the findings for the template, the worst first."""
    order = [*WORDS]
    lines: list[dict[str, object]] = []
    for each in sorted(findings, key=lambda each: order.index(each.grade)):
        word, look = WORDS[each.grade]
        lines.append({"word": word, "look": look, "finding": each})
    return lines


def here_lines(row: Server) -> list[dict[str, object]]:
    """Return findings about the server and this process; blocks."""
    return _finding_lines([*server_findings(row), *process_findings()])


def directory_lines(request: HttpRequest, row: Server) -> list[dict[str, object]]:
    """Return findings on whether the server is ready for a directory; blocks."""
    url = server_url(row.slug, f"{request.scheme}://{request.get_host()}")
    return _finding_lines(findings_of_server(url, site_at_address(url, row)))
