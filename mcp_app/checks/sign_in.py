"""Whether programs can sign in safely, if the settings let them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.http.request import split_domain_port
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, Resolver404, resolve

from mcp_app import conf
from mcp_app.auth.authenticators import sign_in_names
from mcp_app.auth.oauth_settings import problems
from mcp_app.auth.resources import WELL_KNOWN
from mcp_app.oauth import metadata_views
from mcp_app.protocol.loopback import is_loopback_host

ADDRESSES: Final = {
    WELL_KNOWN: metadata_views.resource,
    "/.well-known/oauth-authorization-server": metadata_views.server,
}


def check_sign_in(
    app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[checks.CheckMessage]:
    """Report what keeps programs from signing in, and what would make it unsafe."""
    try:
        current = conf.current()
    except ImproperlyConfigured:
        # Another check says it.
        return []
    wrong = [
        checks.Error(f"{sentence} Until then nobody can sign in.", id="mcp_app.E015")
        for sentence in problems(current.oauth)
    ]
    if conf.problems(current) or not sign_in_names():
        return [*wrong]
    return [*wrong, *_public_url(current.public_url), *_urls(), *_login(), *_proxy()]


def _public_url(url: str | None) -> Iterator[checks.CheckMessage]:
    if url is None:
        if not settings.DEBUG:
            yield checks.Error(
                'Nobody can sign in, because MCP["PUBLIC_URL"] is not set. Set it to'
                " the address by which programs reach this site, such as"
                ' "https://shop.example.com".',
                id="mcp_app.E016",
            )
        return
    parts = urlsplit(url)
    domain, _port = split_domain_port(parts.netloc.lower())
    if parts.scheme != "https" and not is_loopback_host(domain):
        yield checks.Error(
            f'MCP["PUBLIC_URL"] is {url!r}: programs sign in over https:// alone.',
            id="mcp_app.E017",
        )


def _urls() -> Iterator[checks.CheckMessage]:
    for address, view in ADDRESSES.items():
        try:
            match = resolve(address)
        except Resolver404:
            match = None
        if match is None or match.func is not view:
            yield checks.Error(
                f"{address} is not answered by this app, so programs cannot find out"
                ' how to sign in. Add path("", include("mcp_app.oauth_urls")) to the'
                " site's own URLs, at the root and before what else answers there.",
                id="mcp_app.E018",
            )


def _login() -> Iterator[checks.CheckMessage]:
    try:
        path = urlsplit(resolve_url(settings.LOGIN_URL))
        if not path.netloc:
            resolve(path.path)
    except (NoReverseMatch, Resolver404):
        yield checks.Error(
            f"LOGIN_URL is {settings.LOGIN_URL!r}, where nothing is, so people cannot"
            " log in to let a program in. Set it to the site's login page.",
            id="mcp_app.E019",
        )


def _proxy() -> Iterator[checks.CheckMessage]:
    header = getattr(settings, "SECURE_PROXY_SSL_HEADER", None)
    if header and not conf.mcp_settings.trusted_proxies:
        yield checks.Warning(
            'SECURE_PROXY_SSL_HEADER is set, but MCP["TRUSTED_PROXIES"] is 0. Set it to'
            " the number of proxies in front of the site.",
            id="mcp_app.W024",
        )
