"""Authenticators: entries of `MCP["AUTHENTICATION"]`, which verify callers."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.contrib.auth import get_user
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.module_loading import import_string

from mcp_app.auth.drf import Bridge
from mcp_app.auth.issuer_tokens import issuer
from mcp_app.auth.resources import is_usable
from mcp_app.auth.site_requests import principal_of_user, site_request
from mcp_app.auth.token_cache import access_token, oauth
from mcp_app.conf import BY_HEADER, Entry, entry_problems, mcp_settings, settings_cache
from mcp_app.interface.errors import with_remedy
from mcp_app.interface.principal import (
    ACCESS_TOKEN,
    DRF,
    ISSUER,
    SESSION,
    AuthenticationRequest,
    Principal,
)
from mcp_app.protocol.errors import RequestRefused

if TYPE_CHECKING:
    from django.contrib.sessions.backends.base import SessionBase


# -- sessions --------------------------------------------------------------------------
# Users who are signed in to the site, by its session cookie.
#
# A browser sends the cookie by itself, even for pages of other sites.  So each request
# needs a CSRF token, which Django checks, and an Origin header.

NO_ORIGIN: Final = (
    "The Origin header is missing. Users who are signed in with a session can call"
    " from pages of this site only."
)


def django_session(request: AuthenticationRequest) -> Principal | None:
    """Return the principal of a user who is signed in to the site, else None; blocks.

    Raises RequestRefused (403) if the CSRF token or the Origin is missing or wrong.
    The allowed origins were checked before; Django's own check repeats that.
    """
    # Django's check accepts every GET; here a GET opens a stream.
    site = site_request(request, method="POST")
    cookie = site.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if not cookie:
        return None
    site.session = _read_only_session(cookie)
    user = get_user(site)
    if not user.is_authenticated:
        _ask_cache(site.session)
        return None
    if doubt := _cross_site_reason(request, site):
        if b"authorization" in request.headers.raw:
            # This may be a program: the next authenticator looks at its header.
            return None
        raise RequestRefused(403, doubt)
    return principal_of_user(user, kind=SESSION, client=SESSION)


def _cross_site_reason(request: AuthenticationRequest, site: HttpRequest) -> str:
    """Return why a page of another site may have sent the request, "" if none."""
    headers = request.headers
    # For a GET to its own site, a browser sends Sec-Fetch-Site and no Origin.
    own_page = headers.get(b"sec-fetch-site") == "same-origin"
    if headers.get(b"origin") is None and not (request.method == "GET" and own_page):
        return NO_ORIGIN
    check = _CsrfCheck(lambda _: HttpResponse())
    check.process_request(site)
    # Of the view, Django asks only whether it is exempt.
    reason: Any = check.process_view(site, django_session, (), {})  # type: ignore[arg-type]
    return "" if reason is None else f"The CSRF token is missing or wrong: {reason}"


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        """Return the reason in place of a page."""
        return reason


def _read_only_session(key: str) -> SessionBase:
    """Return the site's session of this key; it is never written from here.

    If the session is over, or was signed with a former secret key, Django would give it
    a new key, and the browser would not learn it.
    """
    session: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(key)
    # Not a subclass: the name of the class is in the salt of signed sessions.
    vars(session).update(dict.fromkeys(("cycle_key", "flush", "save"), _do_nothing))
    return session


def _do_nothing(*_: object, **__: object) -> None: ...


def _ask_cache(session: SessionBase) -> None:
    """Read from the session cache, so that a cache that is down raises its error.

    Django's sessions treat a cache that cannot be reached as empty.
    """
    from django.contrib.sessions.backends.cache import SessionStore  # noqa: PLC0415

    if isinstance(session, SessionStore):
        caches[settings.SESSION_CACHE_ALIAS].get("mcp_app")


# -- authenticators --------------------------------------------------------------------

Authenticate: TypeAlias = Callable[
    [AuthenticationRequest], Principal | Awaitable[Principal | None] | None
]

SESSION_INSTEAD = "mcp_app.authentication.django_session"
"""What an error names in place of Django REST framework's session class."""


class Unusable(ImproperlyConfigured):
    """An entry that cannot verify anybody; the message follows the entry's name."""


class BringsCsrf(Unusable):
    """Session authentication through Django REST framework is not accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authenticator:
    """An entry that verifies callers, by its name in the settings.

    `kind` is the reserved kind that its principals may have, "" for code of the site.
    """

    name: str
    authenticate: Authenticate
    kind: str
    is_async: bool
    keeps: bool
    """Whether its answers are cached by the Authorization header."""
    issuer: str = ""
    """The external issuer whose tokens it accepts, "" for none."""

    @property
    def offers_sign_in(self) -> bool:
        """Whether programs sign in at this site to use this authenticator."""
        return self.authenticate is oauth


@settings_cache
def authenticator(name: str) -> Authenticator:
    """Return the authenticator of this name in the settings; raises Unusable."""
    value = mcp_settings.authentication[name]
    for problem in entry_problems(value):
        raise Unusable(f'MCP["AUTHENTICATION"][{name!r}] {problem}')
    entry = Entry.from_setting(value)
    try:
        authenticate, kind = import_verifier(entry.path)
    except Unusable as error:
        raise type(error)(f'MCP["AUTHENTICATION"][{name!r}]: {error}') from None
    if kind == ISSUER:
        # An issuer caches its answers itself, none longer than its token is valid.
        entry, authenticate = replace(entry, cache=""), issuer(name, entry.options)
    keeps = entry.cache == BY_HEADER
    if keeps and kind in _LOOK_FURTHER:
        raise Unusable(
            f'MCP["AUTHENTICATION"][{name!r}] has a "cache", but {entry.path!r} looks'
            ' at more than the Authorization header. Remove "cache".'
        )
    return Authenticator(
        name=name,
        authenticate=authenticate,
        kind=kind,
        is_async=inspect.iscoroutinefunction(authenticate),
        keeps=keeps,
        issuer=str(entry.options.get("issuer", "")),
    )


@settings_cache
def authenticators_of(names: tuple[str, ...]) -> tuple[Authenticator, ...] | None:
    """Return the authenticators of these names, None if the settings lack one.

    Raises Unusable.
    """
    if mcp_settings.authentication.keys() >= set(names):
        return tuple(map(authenticator, names))
    return None


def issuers_of(ways: Iterable[Authenticator], origin: str) -> tuple[str, ...]:
    """Return the issuers of tokens for these authenticators, in their order.

    `origin` is this site's, which is the issuer if programs sign in here.
    """
    site_issuer = origin if is_usable() else ""
    issuers = (site_issuer if way.offers_sign_in else way.issuer for way in ways)
    return tuple(dict.fromkeys(filter(None, issuers)))


def sign_in_names() -> frozenset[str]:
    """Return the names of authenticators by which programs sign in at this site."""
    return _entry_names_of(oauth)


def token_names() -> frozenset[str]:
    """Return the names of authenticators that accept access tokens of this site."""
    return _entry_names_of(access_token)


@settings_cache
def _entry_names_of(authenticate: Authenticate) -> frozenset[str]:
    names = set()
    for name in mcp_settings.authentication:
        with suppress(Unusable):
            if authenticator(name).authenticate is authenticate:
                names.add(name)
    return frozenset(names)


def import_verifier(path: str) -> tuple[Authenticate, str]:
    """Return the object at this path, and its kind if it is ours; raises Unusable."""
    try:
        target = import_string(path)
    except (ImportError, TypeError, ValueError) as error:
        sentence = f"{path!r} cannot be imported: {error}"
        raise Unusable(with_remedy(sentence, error)) from error
    if isinstance(target, type):
        return _drf_bridge(path, target), DRF
    if not callable(target):
        raise Unusable(f"{path!r} is not callable.")
    is_hashable = type(target).__hash__ is not None
    return target, _OURS.get(target, "") if is_hashable else ""


_OURS: dict[Any, str] = {
    access_token: ACCESS_TOKEN,
    oauth: ACCESS_TOKEN,
    django_session: SESSION,
    issuer: ISSUER,
}
_LOOK_FURTHER = frozenset(_OURS.values())
"""Kinds whose code also looks at cookies or addresses, unlike the cache."""


def _drf_bridge(path: str, authentication: type) -> Bridge:
    # A subclass has imported the framework; other sites need not install it.
    drf = sys.modules.get("rest_framework.authentication")
    if drf is None or not issubclass(authentication, drf.BaseAuthentication):
        raise Unusable(
            f"{path!r} is a class, but not an authentication class of Django REST"
            " framework. Use such a class, a function, or another callable object."
        )
    if issubclass(authentication, drf.SessionAuthentication):
        raise BringsCsrf(
            f"{path!r} accepts session cookies, which a browser also sends for pages"
            f" of other sites. Use {SESSION_INSTEAD!r}, which requires the CSRF token"
            " and an Origin."
        )
    return Bridge(authentication)
