"""Users who are signed in to the site, by its session cookie.

A browser sends the cookie by itself, whatever page asks: so the CSRF token has to be
there, as Django checks it, and an Origin, for each request.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth import get_user
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from mcp_app.auth.site_requests import let_in, site_request
from mcp_app.interface.principal import SESSION, AuthenticationRequest, Principal
from mcp_app.protocol.errors import RequestRefused

if TYPE_CHECKING:
    from django.contrib.sessions.backends.base import SessionBase

NO_ORIGIN: Final = (
    "The Origin header is missing. Users who are signed in with a session can call"
    " from pages of this site only."
)
SAME_ORIGIN: Final = "same-origin"


def django_session(request: AuthenticationRequest) -> Principal | None:
    """Let in who is signed in to the site; others pass by.  Blocks.

    Raises Refused (403) where the CSRF token or the Origin is missing or wrong.  Which
    origins are allowed was looked at before; Django's own check looks again.
    """
    # For Django's check a GET is harmless; here it opens a stream.
    site = site_request(request, method="POST")
    cookie = site.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if not cookie:
        return None
    site.session = _session(cookie)
    user = get_user(site)
    if not user.is_authenticated:
        _ask_cache(site.session)
        return None
    if doubt := _doubt(request, site):
        if b"authorization" in request.headers.raw:
            # A program's, perhaps: the next way in looks at what it shows.
            return None
        raise RequestRefused(403, doubt)
    return let_in(user, kind=SESSION, client=SESSION)


def _doubt(request: AuthenticationRequest, site: HttpRequest) -> str:
    """Return why a page of another site may have sent it, "" for no reason."""
    headers = request.headers
    # Browsers send no Origin with a GET to where the page is from; they say so.
    own_page = headers.get(b"sec-fetch-site") == SAME_ORIGIN
    if headers.get(b"origin") is None and not (request.method == "GET" and own_page):
        return NO_ORIGIN
    check = _CsrfCheck(lambda _: HttpResponse())
    check.process_request(site)
    reason: Any = check.process_view(site, django_session, (), {})  # type: ignore[arg-type]
    return "" if reason is None else f"The CSRF token is missing or wrong: {reason}"


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        """Return the reason in place of a page."""
        return reason


def _session(key: str) -> SessionBase:
    """Return the site's session of this key, which is never written from here.

    One that is over, or of a former secret key, would get another id, of which the
    browser would not be told.
    """
    session: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(key)
    # Not a class of our own: the name of the class is in the salt of what is signed.
    vars(session).update(dict.fromkeys(("cycle_key", "flush", "save"), _do_nothing))
    return session


def _do_nothing(*_: object, **__: object) -> None:
    """Write nothing."""


def _ask_cache(session: SessionBase) -> None:
    """Raise what a cache says in which nothing was found: perhaps that it is away.

    Django's sessions take a cache that cannot be reached for an empty one.
    """
    from django.contrib.sessions.backends.cache import SessionStore  # noqa: PLC0415

    if isinstance(session, SessionStore):
        caches[settings.SESSION_CACHE_ALIAS].get("mcp_app")
