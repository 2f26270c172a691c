"""The ways in: entries of `MCP["AUTHENTICATION"]` and the code that verifies."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.contrib.auth import get_user
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.module_loading import import_string

from mcp_app.auth.drf import Bridge
from mcp_app.auth.issuer_tokens import issuer
from mcp_app.auth.resources import is_usable
from mcp_app.auth.site_requests import principal_of_user, site_request
from mcp_app.auth.token_cache import access_token, oauth
from mcp_app.conf import BY_HEADER, Entry, entry_problems, mcp_settings
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
# A browser sends the cookie by itself, whatever page asks: so the CSRF token has to be
# there, as Django checks it, and an Origin, for each request.

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
    site.session = _read_only_session(cookie)
    user = get_user(site)
    if not user.is_authenticated:
        _ask_cache(site.session)
        return None
    if doubt := _cross_site_reason(request, site):
        if b"authorization" in request.headers.raw:
            # Perhaps it is a program's: the next way in looks at what it shows.
            return None
        raise RequestRefused(403, doubt)
    return principal_of_user(user, kind=SESSION, client=SESSION)


def _cross_site_reason(request: AuthenticationRequest, site: HttpRequest) -> str:
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


def _read_only_session(key: str) -> SessionBase:
    """Return the site's session of this key, which is never written from here.

    One that is over, or of a former secret key, would get another id, of which the
    browser would not be told.
    """
    session: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(key)
    # Not a class of our own: the name of the class is in the salt of what is signed.
    vars(session).update(dict.fromkeys(("cycle_key", "flush", "save"), _do_nothing))
    return session


def _do_nothing(*_: object, **__: object) -> None: ...


def _ask_cache(session: SessionBase) -> None:
    """Read from the cache of sessions, so that it raises its error if it is away.

    Django's sessions take a cache that cannot be reached for an empty one.
    """
    from django.contrib.sessions.backends.cache import SessionStore  # noqa: PLC0415

    if isinstance(session, SessionStore):
        caches[settings.SESSION_CACHE_ALIAS].get("mcp_app")


# -- authenticators --------------------------------------------------------------------

Authenticate: TypeAlias = Callable[
    [AuthenticationRequest], Principal | Awaitable[Principal | None] | None
]

SESSION_INSTEAD = "mcp_app.authentication.django_session"


class Unusable(ImproperlyConfigured):
    """An entry that cannot verify anybody; the sentence follows its name."""


class BringsCsrf(Unusable):
    """A session is no way in through Django REST framework."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authenticator:
    """What verifies, by its name in the settings.

    `kind` is the one of our kinds that it may say, "" for what a site made.
    """

    name: str
    authenticate: Authenticate
    kind: str
    is_async: bool
    keeps: bool
    """Whether its answers to the same Authorization header are kept."""
    issuer: str = ""
    """Who signs the tokens that it takes, "" for nobody else."""

    @property
    def offers_sign_in(self) -> bool:
        """Whether programs sign in at this site to come in by it."""
        return self.authenticate is oauth


@cache
def authenticator(name: str) -> Authenticator:
    """Return the way in that the settings have by this name; raises Unusable."""
    value = mcp_settings.authentication[name]
    for problem in entry_problems(value):
        raise Unusable(f'MCP["AUTHENTICATION"][{name!r}] {problem}')
    entry = Entry.from_setting(value)
    try:
        authenticate, kind = import_verifier(entry.path)
    except Unusable as error:
        raise type(error)(f'MCP["AUTHENTICATION"][{name!r}]: {error}') from None
    if kind == ISSUER:
        # It keeps its answers itself, none longer than its token is good.
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


@cache
def authenticators_of(names: tuple[str, ...]) -> tuple[Authenticator, ...] | None:
    """Return the ways in of these names, None where the settings lack one.

    Raises Unusable.
    """
    if mcp_settings.authentication.keys() >= set(names):
        return tuple(map(authenticator, names))
    return None


def issuers_of(ways: Iterable[Authenticator], origin: str) -> tuple[str, ...]:
    """Return who issues tokens for a server with these ways in, in their order.

    `origin` is this site's, which is the issuer if programs sign in here.
    """
    site_issuer = origin if is_usable() else ""
    issuers = (site_issuer if way.offers_sign_in else way.issuer for way in ways)
    return tuple(dict.fromkeys(filter(None, issuers)))


def sign_in_names() -> frozenset[str]:
    """Return the names of the ways by which programs sign in at this site."""
    return _entry_names_of(oauth)


def token_names() -> frozenset[str]:
    """Return the names of the ways that accept access tokens of this site."""
    return _entry_names_of(access_token)


@cache
def _entry_names_of(authenticate: Authenticate) -> frozenset[str]:
    names = set()
    for name in mcp_settings.authentication:
        with suppress(Unusable):
            if authenticator(name).authenticate is authenticate:
                names.add(name)
    return frozenset(names)


@receiver(setting_changed)
def _clear_caches(*, setting: str, **_: object) -> None:
    if setting == "MCP":
        authenticator.cache_clear()
        authenticators_of.cache_clear()
        _entry_names_of.cache_clear()


def import_verifier(path: str) -> tuple[Authenticate, str]:
    """Return what has this path, and its kind where it is ours; raises Unusable."""
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
"""Cookies and addresses are not in the header by which answers are kept."""


def _drf_bridge(path: str, authentication: type) -> Bridge:
    # Whoever inherits from it has imported it: a site without it need not.
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
