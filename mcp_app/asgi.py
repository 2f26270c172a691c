"""The site's ASGI application with the endpoint in front of it.

In asgi.py: `application = mcp_app.asgi.application(get_asgi_application())`.  This
module can be imported before the app registry is ready.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.urls import NoReverseMatch, Resolver404, get_script_prefix, resolve, reverse

from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.transports.asgi_types import (
    Application,
    Receive,
    Scope,
    Send,
    path_below_root,
)

if TYPE_CHECKING:
    from mcp_app.transports.http.consumer import MCPConsumer


Place: TypeAlias = tuple[str, str]
"""The slug of a server, and the part of its address: "" is the endpoint."""

MAX_CACHED_PATHS = 1_024
"""Paths that the switch remembers."""
MAX_CACHED_PATH_LENGTH = 256
"""Longer paths are not remembered: a client may make up any."""
_UNKNOWN: Final[Place] = "", ""
"""Stands for a path that is not remembered: no server has an empty slug."""


class Places:
    """Knows which paths are those of the endpoint."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], Place | None] = {}

    @cached_property
    def _endpoint_path(self) -> str | None:
        """The endpoint's path in the site's URLconf, None where it is not included."""
        try:
            path = reverse("mcp_app:endpoint")
        except NoReverseMatch:
            return None
        # Where `manage.py` has set the prefix, the path has it, too.
        return "/" + path.removeprefix(get_script_prefix())

    def find_place(self, root: str, path: str) -> Place | None:
        """Return what a path names that begins with `root`; None if it is not ours."""
        key = root, path
        cached = self._places.get(key, _UNKNOWN)
        if cached is not _UNKNOWN:
            return cached
        place = self._read_place(*key)
        if len(path) <= MAX_CACHED_PATH_LENGTH:
            if len(self._places) >= MAX_CACHED_PATHS:
                self._places.clear()
            self._places[key] = place
        return place

    def _read_place(self, root: str, whole: str) -> Place | None:
        base = self._endpoint_path
        if base is None:
            return None
        # Django's own handler takes the same prefix away.
        path = path_below_root(settings.FORCE_SCRIPT_NAME or root, whole)
        if not f"{path}/".startswith(f"{base}/"):
            return None
        try:
            match = resolve(path)
        except Resolver404:
            return None
        # The site may have a page of its own there.
        if match.app_name != "mcp_app":
            return None
        return match.kwargs.get("slug", DEFAULT_SLUG), match.kwargs.get("part", "")


class Switch(Places):
    """Serves the endpoint's paths; everything else goes to the site."""

    def __init__(
        self, site: Callable[..., Awaitable[Any]], consumer: MCPConsumer
    ) -> None:
        super().__init__()
        self._site = site
        self._endpoint = consumer.endpoint

    # It must be a coroutine function: by that, servers tell ASGI from WSGI.
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind, place = scope["type"], None
        if kind in ("http", "websocket"):
            place = self.find_place(scope.get("root_path", ""), scope["path"])
        if place is None:
            await self._site(scope, receive, send)
        elif kind == "websocket":
            await _refuse_websocket(receive, send)
        else:
            slug, part = place
            await self._endpoint(scope, receive, send, slug=slug, part=part)


async def _refuse_websocket(receive: Receive, send: Send) -> None:
    """Close it, which servers answer with 403: no revision of MCP has WebSockets.

    An answer of our own (the extension `websocket.http.response`) would be an error in
    uvicorn's log each time.
    """
    await receive()
    await send({"type": "websocket.close"})


def application(site: Callable[..., Awaitable[Any]]) -> Application:
    """Return the site's application with the MCP endpoint in front of it."""
    # The consumer needs the app registry, which `get_asgi_application()` has filled.
    from mcp_app.transports.http.consumer import MCPConsumer  # noqa: PLC0415

    return Switch(site, MCPConsumer())
