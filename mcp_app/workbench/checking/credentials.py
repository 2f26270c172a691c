"""Whom `mcp_check` calls as, and where a token may be sent.

A token that a wrong address gets is lost, and one that is sent in clear text is
everybody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from mcp_app.account import token_issuance
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken, Server
from mcp_app.models.tokens import Secret
from mcp_app.protocol.loopback import is_loopback_host
from mcp_app.transports.http.host_and_origin import DEBUG_HOSTS

GOOD_FOR: Final = timedelta(minutes=5)
"""How long a token that is made for a check is good, if nothing ends it before."""
NAME: Final = "mcp_check"


def why_no_token(url: str, *, made_here: bool) -> str:
    """Return why no token may be sent to an address, as a sentence; "" if one may.

    One that is made here goes only to a host that the site names itself.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https" and not is_loopback_host(host):
        return _("The address is http, so no token is sent to it.")
    if made_here and not _is_named(parts.netloc):
        said = _(
            "The site does not name the host “%(host)s” itself (PUBLIC_URL, HOSTS,"
            " ALLOWED_HOSTS), so no token of a user is sent to it."
        )
        return said % {"host": visible(host)}
    return ""


def _is_named(netloc: str) -> bool:
    public = urlsplit(mcp_settings.public_url or "").hostname
    named = [*(mcp_settings.hosts or ()), *settings.ALLOWED_HOSTS]
    if settings.DEBUG and not settings.ALLOWED_HOSTS:
        # These Django names itself then.
        named += DEBUG_HOSTS
    if public is not None:
        named.append(f"[{public}]" if ":" in public else public)
    domain = split_domain_port(netloc.lower())[0]
    return validate_host(domain, [each for each in named if each != "*"])


@contextmanager
@sensitive_variables("token")
def token_for(user: AbstractBaseUser, server: Server) -> Iterator[Secret]:
    """Make a token of a user, which may read at one server; it ends afterwards."""
    row, token = token_issuance.make(
        None,
        user=user,
        name=NAME,
        may=AccessToken.May.READ,
        expires=timezone.now() + GOOD_FOR,
        servers=[server],
    )
    try:
        yield token
    finally:
        token_issuance.end(None, row)
