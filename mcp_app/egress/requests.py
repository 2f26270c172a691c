"""What is sent to a site, and what must never be: the guard of paths and headers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from mcp_app.egress.errors import Forbidden
from mcp_app.egress.secrets import Secrets
from mcp_app.egress.sites import Site, header_problem, path_problem

MOST_TARGET: Final = 16 * 1024
"""Characters of a path with its query: more than any server takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRequest:
    """A request below a site's URL.

    `path` begins with a slash, and is encoded as it is to be sent; so is `query`,
    without the question mark.  An idempotent request may be sent twice.  `log_path` is
    what the log shows: no value of a caller.  The repr has none either, because error
    pages show the variables of frames.
    """

    method: str
    path: str = field(repr=False)
    query: str = field(default="", repr=False)
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    idempotent: bool = False
    log_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAnswer:
    """A whole answer; the names of headers are in lower case, `took` is in seconds."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    took: float
    secrets: Secrets
    """What must not come out of the answer."""

    @property
    def media_type(self) -> str:
        """Return the type of the body without its parameters, in lower case.

        It is "" if it is not well formed (RFC 9110, section 8.3.1) or has a secret.
        """
        given = self.headers.get("content-type", "")
        found = given.partition(";")[0].strip()
        if self.secrets.are_in(given) or not _MEDIA_TYPE.fullmatch(found):
            return ""
        return found.lower()


_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,127}/[\w.+-]{1,127}", re.ASCII)
_PATH: Final = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
_QUERY: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/?\[\]|-]*")


def target_of(site: Site, request: SiteRequest, secrets: Secrets) -> str:
    """Return path and query as they are sent; raise `Forbidden`."""
    check_path(request.path)
    if not _QUERY.fullmatch(request.query):
        raise Forbidden("The query has a character that must be encoded.")
    secret = urlencode(secrets.query)
    query = "&".join(filter(None, (request.query, secret)))
    target = site.prefix + request.path + (f"?{query}" if query else "")
    if len(target) > MOST_TARGET:
        raise Forbidden(f"The address is longer than {MOST_TARGET:,} characters.")
    return target


def check_path(path: str) -> None:
    """Raise `Forbidden` where a path could leave the site's URL."""
    if not _PATH.fullmatch(path):
        raise Forbidden("The path has a character that must be encoded.")
    if problem := path_problem(path):
        raise Forbidden(f"A segment of the path {problem}.")


def headers_of(
    site: Site, request: SiteRequest, secrets: Secrets
) -> list[tuple[str, str]]:
    """Return all headers; raise `Forbidden` for one that cannot be sent."""
    secret = {each.lower() for each in secrets.headers}
    headers = [
        ("Host", site.authority),
        ("Accept-Encoding", "identity"),
        ("User-Agent", "django-mcp-app"),
    ]
    for name, value in request.headers:
        if problem := header_problem(name, value):
            raise Forbidden(f"The request is {problem}")
        if name.lower() in secret:
            raise Forbidden(f"The header {name} is set by the settings.")
        headers = [each for each in headers if each[0].lower() != name.lower()]
        headers.append((name, value))
    headers = [each for each in headers if each[0].lower() not in secret]
    return [*headers, *secrets.headers.items()]
