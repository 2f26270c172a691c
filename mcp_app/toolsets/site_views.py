"""Calls the site's own views: a call of a tool becomes a request to the site.

The view runs behind the site's whole middleware, with the caller as its user.  All that
we add to a request is in one attribute, `request.mcp`.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from functools import cache, partial
from io import BytesIO
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends import signed_cookies
from django.core.cache import caches
from django.core.handlers.base import BaseHandler
from django.core.handlers.wsgi import WSGIRequest
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.http import HttpResponse
from django.http.request import HttpHeaders, split_domain_port, validate_host
from django.template.response import SimpleTemplateResponse
from django.urls import ResolverMatch, get_script_prefix
from django.utils.crypto import salted_hmac

from mcp_app.conf import mcp_settings
from mcp_app.interface.context import SyncContext
from mcp_app.interface.principal import AccessRequest
from mcp_app.server.context import current_call
from mcp_app.server.run import Run

Context: TypeAlias = Mapping[str, Any]
"""The context of a template."""
Read: TypeAlias = "Callable[[SiteRequest, Context], Any]"

logger = logging.getLogger("mcp_app.toolsets")

OWN_RIGHTS: Final = "mcp_app.own_rights"
"""The rule of tools that are calls of views."""
UNKNOWN_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - of a caller, nothing is bound
"""The address of unknown callers: no list of trusted addresses has it."""
_OWN_HOSTS: Final = (".localhost", "127.0.0.1", "[::1]")
"""The hosts that Django allows in development if a site names none."""


def has_own_rights(request: AccessRequest) -> bool:
    """Lets in callers with all rights of their user, because views see them all."""
    user, rights = request.user, request.principal.permissions
    return rights is None or user is None or rights >= user.get_all_permissions()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteCall:
    """A request to a view; `path` is what `reverse` returns, `query` is encoded.

    `is_view` says whether a match of the URLconf is the right view: arguments in a path
    must not lead to another one.  `headers` are additional ones.  `read_page` gets the
    context of a template inside the middleware; the template is not rendered.
    """

    path: str
    is_view: Callable[[ResolverMatch], bool]
    method: str = "GET"
    query: str = ""
    body: bytes = b""
    content_type: str = ""
    accept: str = "text/html"
    headers: Mapping[str, str] = field(default_factory=dict)
    read_page: Read | None = None


class Visit:
    """A call on its way through the site, and its results."""

    request: SiteRequest
    response: Any
    is_reached = False
    """Whether the view itself was called."""
    page: Any = None
    """What `read_page` returned."""
    error: Exception | None = None
    """What the view or `read_page` raised.  Check it beside the response: Django turns
    an exception into a response."""

    def __init__(self, call: SiteCall, user: Any) -> None:
        self.call = call
        self.user = user


class SiteViews(BaseHandler):
    """Django's handler, with hooks of ours around the view."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()
        # These hooks see the view, its exceptions, and the context of its template.
        # The type stubs do not have Django's lists.
        lists: Any = self
        lists._view_middleware.append(self._check_view)
        lists._template_response_middleware.append(self._read_page)
        lists._exception_middleware.insert(0, self._note_error)

    @contextmanager
    def visit(self, call: SiteCall, ctx: SyncContext) -> Iterator[Visit]:
        """Let a view of the site answer the caller; blocks."""
        visit = Visit(call, ctx.user() or AnonymousUser())
        visit.request = SiteRequest(_environ(call, ctx), visit)
        # What middleware activates and does not reset, such as a language, ends here.
        context = contextvars.copy_context()
        context.run(_hide_cached_pages)
        visit.response = context.run(self.get_response, visit.request)
        try:
            yield visit
        finally:
            # `close` would also signal the end of a request, but the client's goes on.
            for close in visit.response._resource_closers:
                with suppress(Exception):
                    close()

    # -- hooks: what they raise would become a page of status 500 -------------------

    def _check_view(self, request: SiteRequest, view: object, *_: object) -> Any:
        visit = request.mcp
        if not visit.call.is_view(request.resolver_match):
            return HttpResponse(status=404)
        user = getattr(request, "user", None)
        if _identity(user) != _identity(visit.user):
            logger.error(
                "The middleware of the site puts %r in the place of the caller %r, so"
                " that %s was not called for an MCP client. If it is"
                " RemoteUserMiddleware, which logs out whoever has no header, use"
                " PersistentRemoteUserMiddleware.",
                *(str(user), str(visit.user), request.path),
            )
            return HttpResponse(status=403)
        visit.is_reached = True
        return None

    def _read_page(
        self, request: SiteRequest, response: SimpleTemplateResponse
    ) -> SimpleTemplateResponse:
        visit = request.mcp
        if visit.call.read_page is None or not visit.is_reached:
            return response
        try:
            visit.page = visit.call.read_page(request, response.context_data or {})
        except Exception as error:
            visit.error = error
        response.content = b""
        return response

    def _note_error(self, request: SiteRequest, error: Exception) -> None:
        request.mcp.error = error


@cache
def site_views() -> SiteViews:
    """Return the handler of this process, with its middleware loaded."""
    return SiteViews()


@receiver(setting_changed)
def _forget_middleware(**_: object) -> None:
    site_views.cache_clear()


class SiteRequest(WSGIRequest):
    """A request whose user is the caller, and whose session is never stored."""

    _dont_enforce_csrf_checks = True
    _memory: _MemorySession | None = None
    resolver_match: ResolverMatch

    def __init__(self, environ: dict[str, Any], visit: Visit) -> None:
        super().__init__(environ)
        self.mcp = visit
        self.user = self._acached_user = visit.user
        """The user for views without a middleware, and for async views."""
        if visit.user.is_authenticated:
            self._force_auth_user = visit.user
            """The user that Django REST framework takes instead of credentials."""

    @property
    def _cached_user(self) -> Any:
        """The user for Django's middleware; this reads the session.

        So responses vary by Cookie, and no cache of the site gives the response for one
        caller to another.
        """
        if self._memory is not None:
            self._memory.get(SESSION_KEY)
        return self.mcp.user

    @property
    def session(self) -> _MemorySession:
        """A session in memory, where the site's middleware sets one."""
        if self._memory is None:
            raise AttributeError("The site has no SessionMiddleware.")
        return self._memory

    @session.setter
    def session(self, store: object) -> None:
        self._memory = _MemorySession()


class _MemorySession(signed_cookies.SessionStore):
    """A session in memory: no row, file or cookie keeps it."""

    def save(self, must_create: bool = False) -> None:
        pass


# -- caches ----------------------------------------------------------------------------


def _hide_cached_pages() -> None:
    """Hide cached pages in Django's caches from all code in this context.

    A view may forget to say that its answer varies, or that it is for one person.
    """
    for alias in caches:
        # If a cache cannot be made, it has no pages to hide.
        with suppress(Exception):
            # `caches` are per thread and task, so only this context gets the copy.
            caches[alias] = cache = copy(caches[alias])
            for name in ("get", "set"):
                setattr(cache, name, partial(_unless_page, getattr(cache, name)))


def _unless_page(use: Callable[..., Any], key: Any, *values: Any, **kwargs: Any) -> Any:
    """Use a cache, but not for pages that `cache_page` or its middleware keep."""
    is_page = str(key).startswith("views.decorators.cache.cache_")
    return None if is_page else use(key, *values, **kwargs)


def _identity(user: Any) -> tuple[object, ...]:
    names = ("pk", "is_staff", "is_superuser")
    return tuple(getattr(user, name, None) for name in names)


def _environ(call: SiteCall, ctx: SyncContext) -> dict[str, Any]:
    """Return the environ of the request, without the client's headers.

    A digest of the caller keeps caches apart; it grants no access.
    """
    run = current_call.get()
    host = _site_host("" if run is None else run.request.host)
    public = urlsplit(mcp_settings.public_url or "").scheme
    scheme = "https" if settings.SECURE_SSL_REDIRECT else public or "http"
    name, port = split_domain_port(host)
    prefix = get_script_prefix().rstrip("/")
    path = unquote_to_bytes(call.path.removeprefix(prefix))
    headers = {HttpHeaders.to_wsgi_name(n): each for n, each in call.headers.items()}
    environ = {
        **headers,
        "REQUEST_METHOD": call.method,
        "SCRIPT_NAME": prefix,
        "PATH_INFO": path.decode("latin-1"),
        "QUERY_STRING": call.query,
        "SERVER_NAME": name,
        "SERVER_PORT": port or ("443" if scheme == "https" else "80"),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": _address_of(run),
        "HTTP_HOST": host,
        "HTTP_ACCEPT": call.accept,
        "HTTP_USER_AGENT": "django-mcp-app",
        "CONTENT_TYPE": call.content_type,
        "CONTENT_LENGTH": str(len(call.body)),
        "wsgi.url_scheme": scheme,
        "wsgi.input": BytesIO(call.body),
    }
    if not ctx.principal.anonymous:
        key = salted_hmac("mcp_app.toolsets", ctx.principal.key, algorithm="sha256")
        digest = key.hexdigest()[:32]
        environ |= {"HTTP_COOKIE": f"mcp={digest}"}
        environ |= {"HTTP_AUTHORIZATION": f"MCP {digest}"}
    return environ


def _address_of(run: Run | None) -> str:
    """Return the address of an anonymous caller if it is known, else a fixed one."""
    # The key of an anonymous caller is “@” with an address or a network, if known.
    person = "" if run is None else run.request.person
    network = person[1:] if person.startswith("@") else ""
    return network.partition("/")[0] or UNKNOWN_ADDRESS


def _site_host(host_of_call: str) -> str:
    """Return a host that the site allows: the call's, else one of its own."""
    allowed = settings.ALLOWED_HOSTS
    if settings.DEBUG and not allowed:
        allowed = _OWN_HOSTS
    public = urlsplit(mcp_settings.public_url or "").netloc
    hosts = (each.lstrip(".") for each in allowed if each != "*")
    for host in (host_of_call, public, *hosts):
        domain = split_domain_port(host)[0]
        if domain and validate_host(domain, allowed):
            return str(host)
    return "localhost"
