"""The site's ASGI application with the endpoint in front of it.

In asgi.py: `application = mcp_app.asgi.application(get_asgi_application())`.  This
module can be imported before the app registry is ready.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.urls import NoReverseMatch, get_script_prefix, reverse

from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.transports.asgi_types import Application, Receive, Scope, Send

if TYPE_CHECKING:
    from mcp_app.transports.consumer import MCPConsumer


KEPT = 1_024
"""Paths that the switch remembers."""
LONGEST_KEPT = 256
"""Whoever makes paths up may make long ones up."""


class Switch:
    """Serves the endpoint's paths; everything else goes to the site."""

    def __init__(
        self, site: Callable[..., Awaitable[Any]], consumer: MCPConsumer
    ) -> None:
        self._site = site
        self._endpoint = consumer.endpoint
        self._slugs: dict[tuple[str, str], str | None] = {}

    @cached_property
    def _base(self) -> str | None:
        """The endpoint's path in the site's URLconf, None where it is not included."""
        try:
            found = reverse("mcp_app:endpoint")
        except NoReverseMatch:
            return None
        # Where `manage.py` has set the prefix, the path has it, too.
        return "/" + found.removeprefix(get_script_prefix())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        slug = self._slug(scope) if scope["type"] == "http" else None
        if slug is None:
            await self._site(scope, receive, send)
        else:
            await self._endpoint(scope, receive, send, slug=slug)

    def _slug(self, scope: Scope) -> str | None:
        """Return the server that a path names, None for the site's own paths."""
        key = (scope.get("root_path", ""), scope["path"])
        if key in self._slugs:
            return self._slugs[key]
        slug = self._named(*key)
        if len(key[1]) <= LONGEST_KEPT:
            if len(self._slugs) >= KEPT:
                self._slugs.clear()
            self._slugs[key] = slug
        return slug

    def _named(self, root: str, whole: str) -> str | None:
        base = self._base
        if base is None:
            return None
        # Django's own handler takes the same one away.
        path = _below(settings.FORCE_SCRIPT_NAME or root, whole)
        if path in (base, base + "/"):
            return DEFAULT_SLUG
        if not path.startswith(base + "/"):
            return None
        slug = path[len(base) + 1 :].removesuffix("/")
        return None if not slug or "/" in slug else slug


def _below(root: str, path: str) -> str:
    """Return a path without the root path, which some servers leave in it."""
    prefix = root.rstrip("/")
    return path[len(prefix) :] if path.startswith(prefix + "/") else path


def application(site: Callable[..., Awaitable[Any]]) -> Application:
    """Return the site's application with the MCP endpoint in front of it."""
    # Its rows need the app registry, which `get_asgi_application()` has filled.
    from mcp_app.transports.consumer import MCPConsumer  # noqa: PLC0415

    return Switch(site, MCPConsumer())
