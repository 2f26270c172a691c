"""MCP Apps (SEP-1865): pages that a host shows instead of a tool's answer.

Source: ext-apps, specification/2026-01-26/apps.mdx.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from mcp_app.protocol.json_types import JsonObject

EXTENSION: Final = "io.modelcontextprotocol/ui"
SCHEME: Final = "ui://"
MEDIA_TYPE: Final = "text/html;profile=mcp-app"
META_KEY: Final = "ui"
FLAT_META_KEY: Final = "ui/resourceUri"
"""The key for hosts older than `_meta.ui`; the official library writes both."""
DOMAINS: Final = {
    "connect": "connectDomains",
    "resources": "resourceDomains",
    "frames": "frameDomains",
    "base": "baseUriDomains",
}
"""The members of a policy: their names in code, and in `_meta.ui.csp`."""
PERMISSIONS: Final = {
    "camera": "camera",
    "microphone": "microphone",
    "geolocation": "geolocation",
    "clipboard-write": "clipboardWrite",
}

_ORIGIN: Final = re.compile(
    r"(?:https?|wss?)://(?:\*\.)?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]{1,5})?"
)


def is_app(media_type: str) -> bool:
    """Whether resources of this type are apps."""
    return media_type.replace(" ", "").lower() == MEDIA_TYPE


def origin_problem(origin: str) -> str | None:
    """Return a sentence if an origin cannot be in a policy, else None."""
    if _ORIGIN.fullmatch(origin):
        return None
    return (
        f"{origin!r:.80} is no origin: write a scheme and a host, such as"
        " https://api.example.com or https://*.example.com."
    )


def resource_meta(
    policy: Mapping[Any, Collection[str]],
    permissions: Collection[str] = (),
    *,
    border: bool | None = None,
    domain: str = "",
) -> JsonObject:
    """Return `_meta.ui` of an app's resource ("UI Resource Format")."""
    members: dict[str, Any] = {
        "csp": {DOMAINS[name]: [*origins] for name, origins in policy.items()},
        "permissions": {PERMISSIONS[name]: {} for name in permissions},
        "domain": domain,
    }
    members = {name: value for name, value in members.items() if value}
    return members if border is None else {**members, "prefersBorder": border}


def tool_meta(uri: str, *, app_only: bool) -> JsonObject:
    """Return the members about its app in a tool's `_meta` ("Resource Discovery")."""
    ui: JsonObject = {"resourceUri": uri} if uri else {}
    if app_only:
        ui["visibility"] = ["app"]
    flat = {FLAT_META_KEY: uri} if uri else {}
    return {META_KEY: ui, **flat} if ui else {}


def page_meta(media_type: str, meta: Mapping[str, object]) -> JsonObject | None:
    """Return the `_meta` of a page's contents: the same as that of its resource."""
    has_ui = is_app(media_type) and META_KEY in meta
    return {META_KEY: meta[META_KEY]} if has_ui else None


def page_policy(meta: JsonObject) -> str:
    """Return the `Content-Security-Policy` of a page ("Host Behavior").

    `meta` is the `_meta` of its contents.  Entries that are no origins are left out.
    """
    policy = meta.get(META_KEY, {}).get("csp", {})
    connect, loaded, frames, base = (
        " ".join(filter(_ORIGIN.fullmatch, map(str, policy.get(member, ()))))
        for member in DOMAINS.values()
    )
    return (
        "sandbox allow-scripts; default-src 'none'; frame-ancestors 'self';"
        f" script-src 'unsafe-inline' {loaded}; style-src 'unsafe-inline' {loaded};"
        f" img-src data: {loaded}; media-src data: {loaded}; font-src {loaded};"
        f" connect-src {connect}; frame-src {frames}; base-uri {base}"
    )


def app_capabilities() -> JsonObject:
    """Return the member of a server's capabilities for apps."""
    return {"extensions": {EXTENSION: {}}}
