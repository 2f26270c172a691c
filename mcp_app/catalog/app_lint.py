"""Lint of MCP Apps, the pages that show answers: why a frame would stay empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.catalog.apps import our_app_title
from mcp_app.catalog.findings import Finding, advice, must_fix
from mcp_app.catalog.registered_function import Declaration, RegisteredFunction
from mcp_app.catalog.schema_lint import names_text
from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import Definition, ResourceDefinition, ToolDefinition
from mcp_app.interface.rules import visible
from mcp_app.protocol.apps import DOMAINS, META_KEY, is_app

MAX_ADDRESSES: Final = 5
"""Addresses that a finding names."""
_LOADED: Final = re.compile(
    r"(?:\bsrc\s*=|<link\b[^>]*?\bhref\s*=|@import\s+(?:url\()?|\burl\(|\bfetch\()"
    r"\s*[\"'`]?\s*((?:https?:)?/[^\s\"'`)>]*)",
    re.IGNORECASE,
)
"""Finds files that a page loads from elsewhere: `src="/static/shop.js"`."""


def server_app_findings(
    title: str, definitions: Sequence[Definition]
) -> Iterator[Finding]:
    """Yield the tools whose page the server lacks, or hides from some users."""
    resources = {
        each.uri: each for each in definitions if isinstance(each, ResourceDefinition)
    }
    for tool in definitions:
        if not isinstance(tool, ToolDefinition) or not tool.app:
            continue
        page = resources.get(tool.app)
        if page is None and our_app_title(tool.app):
            continue  # The catalog adds our own pages to the server.
        values = {"tool": tool.name, "uri": visible(tool.app), "server": title}
        if page is None or not is_app(page.mime_type):
            message = _(
                "The answers of %(tool)s are shown as %(uri)s, but the server"
                " %(server)s has no app with this address. Clients would show an empty"
                " frame."
            )
            yield must_fix("app-unknown", "app", message % values)
        elif tool.demands.combined_with(page.demands) != tool.demands:
            message = _(
                "Not everybody who sees %(tool)s may see its app %(uri)s. They get an"
                " empty frame. Ask for the same rights at both."
            )
            yield must_fix("app-hidden", "app", message % values)


def page_findings(declared: Declaration[Any]) -> Iterator[Finding]:
    """Yield what is wrong with a page that code declares; this renders the page."""
    definition, function = declared.definition, declared.function
    is_page = isinstance(definition, ResourceDefinition)
    if not is_page or not is_app(definition.mime_type):
        return
    ui: Any = definition.meta.get(META_KEY, {})
    policy = ui.get("csp", {})
    if policy.get(DOMAINS["frames"]):
        message = _("The page shows frames of other sites. Claude drops them.")
        yield advice("app-frames", "", message)
    if not isinstance(function, RegisteredFunction) or function.style != "sync":
        return
    try:
        html = function.function()
    except Exception as error:
        yield must_fix("app-broken", "", _("The page cannot be made: %s") % repr(error))
        return
    limit, size = mcp_settings.limits.text, len(str(html).encode(errors="replace"))
    if not isinstance(html, str | bytes) or size > limit:
        rule = _("It must be a text of at most %d bytes (LIMITS['text']).") % limit
        yield must_fix("app-broken", "", _("The page cannot be made: %s") % rule)
        return
    origins = [origin for urls in policy.values() for origin in urls]
    loads = dict.fromkeys(_LOADED.findall(html if isinstance(html, str) else ""))
    blocked = [load for load in loads if not _is_allowed(load, origins)]
    if blocked:
        message = _(
            "The page loads %(addresses)s. Clients block what csp does not name, and"
            " know no address of this site. Put files into the page with {%% mcp_inline"
            " %%}, and get data by mcpApp.call."
        )
        names = names_text([visible(each) for each in blocked[:MAX_ADDRESSES]])
        yield advice("app-foreign", "", message % {"addresses": names})


def _is_allowed(address: str, origins: Sequence[str]) -> bool:
    """Whether a policy allows the origin of an address, also by `https://*.a.com`."""
    scheme, _slashes, after_scheme = address.partition("//")
    host = re.split(r"[/?#]", after_scheme, maxsplit=1)[0]
    for origin in origins:
        allowed_scheme, _slashes, allowed_host = origin.partition("//")
        # `[1:]` keeps the dot, so that “*.a.com” does not allow “xa.com”.
        is_sub = allowed_host.startswith("*.") and host.endswith(allowed_host[1:])
        if scheme in ("", allowed_scheme) and (host == allowed_host or is_sub):
            return bool(host)
    return False
