"""How a document writes addresses: paths with more behind them, styles of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from mcp_app.egress.sites import Site
from mcp_app.kinds.http.schema import BRACKETS, COMMAS, PIPES, REPEAT, SPACES
from mcp_app.protocol.json_types import JsonObject

_STYLES: Final[Mapping[str, tuple[str, str]]] = {
    "form": (REPEAT, COMMAS),
    "spaceDelimited": (REPEAT, SPACES),
    "pipeDelimited": (REPEAT, PIPES),
    "deepObject": (BRACKETS, BRACKETS),
}
"""What is sent with and without `explode`."""


def split_path(path: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a path, and the pairs of a query that a document writes behind it.

    What follows a # tells operations apart there; it is never sent (RFC 3986, 3.5).
    """
    path, _, query = path.partition("#")[0].partition("?")
    return path, parse_qsl(query, keep_blank_values=True)


def is_here(url: str, site: Site, *, any_host: bool) -> bool:
    """Return whether calls of a site go to a server of a document, if that is known."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    path = parts.path.rstrip("/")
    if "{" in url or (any_host and not path):
        return True
    return path == site.prefix and (any_host or parts.hostname in (None, site.host))


def style_of(parameter: JsonObject) -> str | None:
    """Return how lists and objects of a pair are written, None if that is unknown."""
    style = parameter.get("style", "form")
    if not isinstance(style, str) or style not in _STYLES:
        return None
    exploded, together = _STYLES[style]
    return exploded if parameter.get("explode", style == "form") else together
