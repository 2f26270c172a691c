"""Settings of the site that close the endpoint, open it too far, or turn calls away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from mcp_app import conf
from mcp_app.checks.advice import advising
from mcp_app.invalidation.doorbell import shared_layer
from mcp_app.invalidation.workers import FRESHNESS


@advising
def check_deployment(
    app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[checks.CheckMessage]:
    """Report settings that make the endpoint refuse everything, or let in too much."""
    try:
        current = conf.current()
    except ImproperlyConfigured:
        # `check_settings` tells.
        return []
    found: list[checks.CheckMessage] = []
    if conf.refuses_every_host(current):
        said, hint = conf.EVERY_HOST_REFUSED, conf.HOSTS_NAMED_BY
        found.append(checks.Error(said, hint=hint, id="mcp_app.E005"))
    if "*" in (current.hosts or ()) or "*" in (current.origins or ()):
        found.append(
            checks.Error(
                'MCP["HOSTS"] and MCP["ORIGINS"] must not have "*", because a page of'
                " any site could then call the endpoint.",
                id="mcp_app.E006",
            )
        )
    found += map(_redirected, _redirecting(current.public_url or ""))
    # Of one that cannot be made `check_settings` tells.
    with suppress(ImproperlyConfigured):
        if shared_layer(current.doorbell) is None:
            found.append(_silent(current.doorbell))
    return found


def _redirecting(public_url: str) -> Iterator[str]:
    """Yield the settings that redirect who calls the endpoint by another address.

    Where the site names the address that it gives to people, they have the right one.
    """
    url = urlsplit(public_url)
    if settings.SECURE_SSL_REDIRECT and url.scheme != "https":
        yield "SECURE_SSL_REDIRECT"
    if settings.PREPEND_WWW and not (url.hostname or "").startswith("www."):
        yield "PREPEND_WWW"


def _redirected(setting: str) -> checks.CheckMessage:
    return checks.Warning(
        f"{setting} redirects clients that call the MCP endpoint at another address,"
        " and most clients lose the body of their request in a redirect.",
        hint='Set MCP["PUBLIC_URL"] to the address that clients should use.',
        id="mcp_app.W018",
    )


def _silent(alias: str) -> checks.CheckMessage:
    return checks.Info(
        f"The channel layer {alias!r} reaches this process only. If you run several"
        f" workers, each checks the database for changes every {FRESHNESS / 2:g} s"
        " while it serves. This works, but changes arrive a moment later than with a"
        " shared layer.",
        hint='Set MCP["DOORBELL"] to a Redis layer'
        " (channels_redis.pubsub.RedisPubSubChannelLayer).",
        id="mcp_app.I001",
    )
