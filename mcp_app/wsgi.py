"""The site's WSGI application with plain calls in front of it.

In wsgi.py: `application = mcp_app.wsgi.application(get_wsgi_application())`.  This
module can be imported before the app registry is ready.

A plain call of a quick sync tool is answered before the site's handler and middleware.
All other requests go to the site, whose URLconf includes the endpoint as always.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.core.handlers.wsgi import get_path_info, get_script_name

from mcp_app.asgi import Places

if TYPE_CHECKING:
    from mcp_app.transports.http.bridge import Whole

_LENGTH: Final = re.compile(r"[0-9]{1,15}")

Environ: TypeAlias = dict[str, Any]
Application: TypeAlias = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Switch(Places):
    """Serves plain calls; everything else goes to the site."""

    def __init__(self, site: Application) -> None:
        super().__init__()
        self._site = site

    def __call__(
        self, environ: Environ, start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        answer = None
        if (
            environ["REQUEST_METHOD"] == "POST"
            and environ.get("HTTP_MCP_METHOD") == "tools/call"
        ):
            answer = self._answer_plain_call(environ)
        if answer is None:
            return self._site(environ, start_response)
        return answer.respond_to_wsgi(start_response)

    def _answer_plain_call(self, environ: Environ) -> Whole | None:
        root = get_script_name(environ)
        path = root.rstrip("/") + get_path_info(environ)
        slug, part = self.find_place(root, path) or ("", "")
        length = environ.get("CONTENT_LENGTH") or ""
        if not slug or part or not _LENGTH.fullmatch(length):
            return None
        # Both need the app registry, which `get_wsgi_application()` has filled.
        from mcp_app.conf import mcp_settings  # noqa: PLC0415
        from mcp_app.transports.http import bridge, view  # noqa: PLC0415

        if int(length) > mcp_settings.limits.body:
            return None
        try:
            body = environ["wsgi.input"].read(int(length))
        except Exception:
            # A server may raise anything: the site reads on, and answers as always.
            return None
        # If the call is not plain, the site reads it from here.
        environ["wsgi.input"] = BytesIO(body)
        if len(body) < int(length):
            return None
        return view.serve(bridge.asgi_scope_of(environ, "POST", path), body, slug)


def application(site: Application) -> Application:
    """Return the site's application with plain calls in front of it."""
    return Switch(site)
