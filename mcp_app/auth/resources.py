"""The addresses of servers as clients and OAuth name them.

Every origin in documents, challenges and answers is that of `MCP["PUBLIC_URL"]`, never
that of the Host header: a site with several hosts has one issuer and one audience.
In development, if that setting is missing, the loopback host of a request is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port
from django.urls import NoReverseMatch, reverse
from pydantic import AfterValidator, Field, model_validator

from mcp_app.conf import mcp_settings, settings_cache
from mcp_app.egress.sites import Options, option_problems
from mcp_app.interface.server import DEFAULT_SLUG, SSE_PART
from mcp_app.protocol.headers import is_loopback_host
from mcp_app.protocol.oauth.addresses import canonical, scheme_problem

# -- oauth settings --------------------------------------------------------------------
# `MCP["OAUTH"]`: which programs may sign in, and how their documents are fetched.
#
#     MCP = {
#         "OAUTH": {"clients": ["claude.ai", "!evil.example"], "schemes": ["cursor"]}
#     }
#
# If one option is wrong, a check says so, and nobody can sign in until it is mended.

OUT: Final = "!"
"""It stands before a host that is kept out."""
_PORT: Final = re.compile(r":[0-9]*\Z")


def _read_client(text: str) -> str:
    out = OUT if text.startswith(OUT) else ""
    host = text.removeprefix(OUT)
    if not host or not host.isascii() or set(host) & set("/@ \\?#*"):
        raise ValueError(
            "it must be a host such as “claude.ai”, or “!claude.ai” to keep it out"
        )
    return f"{out}{_normalized_host(host)}"


def _read_scheme(text: str) -> str:
    if problem := scheme_problem(text):
        raise ValueError(problem.rstrip("."))
    return text.lower()


class OAuthSettings(Options):
    """The options; `clients` are hosts, `schemes` those of private-use redirects."""

    clients: Annotated[
        list[Annotated[str, AfterValidator(_read_client)]], Field(strict=False)
    ] = []
    registration: bool = True
    documents: bool = True
    """Whether programs may name an address as their id, which is then fetched."""
    schemes: Annotated[
        list[Annotated[str, AfterValidator(_read_scheme)]], Field(strict=False)
    ] = []
    issuers: Mapping[str, Any] = Field(default={}, repr=False)

    @model_validator(mode="after")
    def _check_ways(self) -> Self:
        if not self.registration and not self.documents:
            raise ValueError(
                'has False for "registration" and for "documents", so no program can'
                " say who it is. Leave one of them out."
            )
        return self

    def admits_hosts(self, hosts: Sequence[str]) -> bool:
        """Whether a client with these hosts may sign in.

        `hosts` are the host of its document, or those of its redirects, with their
        ports.  If the option names hosts that are let in, each must be among them.
        """
        # The first character is `OUT`.
        excluded = {client[1:] for client in self.clients if client.startswith(OUT)}
        allowed = {client for client in self.clients if not client.startswith(OUT)}
        written = map(_normalized_host, hosts)
        # Each host counts with its port, and without.
        variants = [{host, _PORT.sub("", host)} for host in written]
        if any(names & excluded for names in variants):
            return False
        return not allowed or all(names & allowed for names in variants)


def _normalized_host(text: str) -> str:
    """Return a host in its one normal form, with its port if that is not 443.

    All loopback hosts become “localhost”.
    """
    host = text.lower()
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    name = _PORT.sub("", host)
    port = host[len(name) :].removesuffix(":443").removesuffix(":")
    name = name.removesuffix(".")
    return f"{'localhost' if is_loopback_host(name) else name}{port}"


@settings_cache
def oauth_settings() -> OAuthSettings:
    """Return the options of the settings, or the defaults if anything is wrong."""
    return OAuthSettings(**mcp_settings.oauth) if is_usable() else OAuthSettings()


@settings_cache
def is_usable() -> bool:
    """Whether all options are right; if not, nobody can sign in."""
    return not any(oauth_problems(mcp_settings.oauth))


def oauth_problems(options: object) -> Iterator[str]:
    """Yield a sentence for each option that cannot be used."""
    return option_problems("OAUTH", OAuthSettings, options)


# -- resources -------------------------------------------------------------------------

LOCAL: Final = "http://127.0.0.1:8000"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""Where clients look for the metadata of a resource (RFC 9728, section 3.1)."""


def server_url(slug: str, site: str = LOCAL) -> str:
    """Return the URL of a server: the public one, or else the one at this site."""
    base = (mcp_settings.public_url or site).rstrip("/")
    if not urlsplit(base).path:
        base += _endpoint_path()
    return base if slug == DEFAULT_SLUG else f"{base}/{slug}"


def site_origin(scheme: str, host: str) -> str | None:
    """Return the issuer of this site, None if nobody can sign in there.

    `scheme` and `host` are those of a request; they are used in development only.
    """
    if mcp_settings.public_url is not None:
        parts = urlsplit(mcp_settings.public_url)
        return f"{parts.scheme}://{parts.netloc}".lower()
    if settings.DEBUG and is_loopback_host(split_domain_port(host.lower())[0]):
        return f"{scheme}://{host}".lower()
    return None


def slug_of_resource(resource: str, origin: str) -> str | None:
    """Return the slug of the server that a resource names, None if it is not ours.

    `resource` is a URL; case of the host, default port, a slash at the end and the
    address of HTTP+SSE make no difference (`canonical`).
    """
    try:
        address = canonical(resource)
    except ValueError:
        return None
    base = canonical(server_url(DEFAULT_SLUG, origin))
    if address == base:
        return DEFAULT_SLUG
    slug = address.removeprefix(f"{base}/")
    return slug if slug != address and "/" not in slug and slug != SSE_PART else None


def audience_of(slug: str) -> str:
    """Return the one audience of tokens for a server (RFC 8707, section 2).

    It is "" without `MCP["PUBLIC_URL"]`; ValueError if that is no address.
    """
    return canonical(server_url(slug)) if mcp_settings.public_url else ""


def is_audience(text: str, slug: str) -> bool:
    """Whether a text is the address of a server, in whatever form."""
    try:
        return canonical(text) == audience_of(slug)
    except ValueError:
        return False


def metadata_of(slug: str) -> str:
    """Return the URL of a server's metadata at its public address, or ""."""
    parts = urlsplit(audience_of(slug))
    if not parts.netloc:
        return ""
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"


def metadata_url(origin: str, path: str) -> str:
    """Return the URL of the metadata for the resource at this path.

    `path` is that of a request: strict clients compare the address that they called
    with the address in the metadata.
    """
    # Clients know the public path, which a proxy may map to ours.
    public = urlsplit(mcp_settings.public_url or "").path.rstrip("/")
    endpoint_path = _endpoint_path()
    if public and (path == endpoint_path or path.startswith(f"{endpoint_path}/")):
        path = f"{public}{path.removeprefix(endpoint_path)}"
    return f"{origin}{WELL_KNOWN}{path}"


def _endpoint_path() -> str:
    try:
        return reverse("mcp_app:endpoint")
    except NoReverseMatch:
        return "/mcp"
