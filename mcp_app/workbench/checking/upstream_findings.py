"""Whether the other MCP servers answer, whose tools are offered here."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.utils.translation import ngettext

from mcp_app.egress.sites import upstream_sites
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.publishing.upstream import list_tools_there
from mcp_app.workbench.checking.findings import Finding, Grade


def upstream_findings(user: AbstractBaseUser | None) -> Iterator[Finding]:
    """Ask each server of the settings, and yield a finding for each; blocks."""
    for site in upstream_sites().values():
        try:
            listing, _info = list_tools_there(site, user or AnonymousUser())
        except DocumentError as error:
            yield Finding("upstream", Grade.PROBLEM, str(error))
            continue
        number = len(listing.tools)
        sentence = ngettext(
            "%(site)s: answers, %(number)d tool.",
            "%(site)s: answers, %(number)d tools.",
            number,
        )
        words = {"site": site.title, "number": number}
        yield Finding("upstream", Grade.GOOD, sentence % words)
