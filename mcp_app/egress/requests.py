"""Requests to a site: what may be sent, and checks of paths and headers."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol
from urllib.parse import quote_plus, urlencode

from mcp_app.egress.resolving import Forbidden
from mcp_app.egress.sites import Caller, Site, header_problem, path_problem
from mcp_app.interface.principal import AccessRequest
from mcp_app.pools.database import judges

# -- secrets ---------------------------------------------------------------------------
# The secrets that a site's calls carry: they are never shown, logged or sent back.

CALLER_S: Final = 10.0
"""How long the function for a caller's headers may take."""
SHORTEST: Final = 8
"""The least length of secrets that are blotted out: shorter ones may be words."""
BLOT: Final = "•••"

logger = logging.getLogger("mcp_app.egress")


class Secrets:
    """The secret headers and pairs of the query of one call."""

    def __init__(self, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
        self.headers = headers
        self.query = query

    def __repr__(self) -> str:
        return f"<Secrets {BLOT}>"

    @cached_property
    def _secret_pattern(self) -> re.Pattern[str] | None:
        """Finds the secrets, their words and parts, and the decoded Basic secrets."""
        query = self.query.values()
        pieces = set[str]()
        for value in (*self.headers.values(), *query, *map(quote_plus, query)):
            pieces |= {value, *value.split(), *_PARTS.findall(value)}
            pieces |= {*_decode_basic(value)}
        texts = [re.escape(piece) for piece in pieces if len(piece) >= SHORTEST]
        longest_first = sorted(texts, key=len, reverse=True)
        return re.compile("|".join(longest_first)) if texts else None

    def blot(self, value: Any) -> Any:
        """Return a text, or a JSON value, with the secrets in its texts blotted out."""
        if self._secret_pattern is None:
            return value
        if isinstance(value, str):
            return self._secret_pattern.sub(BLOT, value)
        if isinstance(value, list):
            return [*map(self.blot, value)]
        if isinstance(value, dict):
            return {self.blot(name): self.blot(each) for name, each in value.items()}
        return value


_PARTS: Final = re.compile(r'[^\s=;,"]++(?!=[^\s=;,])')
"""Finds the values in cookies and in schemes with parameters, without names."""


def _decode_basic(value: str) -> Iterable[str]:
    """Return the pair that a Basic secret encodes, and its parts (RFC 7617)."""
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        return ()
    try:
        pair = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ()
    return (pair, *pair.split(":", 1))


async def secrets_for(site: Site, access_request: AccessRequest) -> Secrets:
    """Return the secrets of a call for this caller; raise `Forbidden` if it fails."""
    configured = site.secret_headers
    if isinstance(configured, Mapping):
        return Secrets(configured, site.secret_query)
    try:
        async with asyncio.timeout(CALLER_S):
            headers = await judges.run(
                _headers_of, configured, access_request, site.key
            )
    except TimeoutError:
        late = f"The secret_headers of {site.key} took longer than {CALLER_S:g} s."
        raise Forbidden(late) from None
    return Secrets(headers, site.secret_query)


def _headers_of(
    function: Caller, access_request: AccessRequest, key: str
) -> Mapping[str, str]:
    try:
        returned: object = function(access_request)
    except Exception:
        # The trace is logged as text, because error mails show the variables of frames.
        trace = "".join(traceback.format_exc())
        logger.error("The secret_headers of the site %s failed.\n%s", key, trace)
        raise Forbidden(f"The secret_headers of {key} failed.") from None
    if not isinstance(returned, Mapping):
        kind = type(returned).__name__
        raise Forbidden(f"The secret_headers of {key} returned {kind}, not a dict.")
    headers = {}
    for name, value in returned.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise Forbidden(f"The secret_headers of {key} returned what is no text.")
        if problem := header_problem(name, value):
            raise Forbidden(f"The secret_headers of {key} returned a dict {problem}")
        headers[name] = value
    return headers


# -- requests --------------------------------------------------------------------------

MAX_TARGET_LENGTH: Final = 16 * 1024
"""Characters of a path with its query: more than servers accept."""


class EventTaker(Protocol):
    """Takes a stream of events piece by piece."""

    def __call__(self, piece: bytes, *, secrets: Secrets) -> bool:
        """Return whether this piece has the answer to the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRequest:
    """A request below a site's URL.

    `path` begins with a slash, or is "" for the URL itself.  It is encoded already, and
    so is `query`, which has no question mark.  An idempotent request may be sent twice.
    The log shows `log_path`, so it must have no value of a caller.  The repr has no
    such value either, because error pages show the variables of frames.
    """

    method: str
    path: str = field(repr=False)
    query: str = field(default="", repr=False)
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    idempotent: bool = False
    log_path: str = ""
    reader: EventTaker | None = field(default=None, repr=False)
    """Takes a stream of events; the answer's body is empty then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAnswer:
    """A whole answer; the names of headers are in lower case, `took` is in seconds."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    took: float
    secrets: Secrets
    """The secrets to remove before the answer is passed on."""

    @property
    def media_type(self) -> str:
        """Return the type of the body without its parameters, in lower case.

        It is "" if it is not well formed (RFC 9110, section 8.3.1) or has a secret.
        """
        content_type = self.headers.get("content-type", "")
        media_type = content_type.partition(";")[0].strip()
        has_secret = self.secrets.blot(content_type) != content_type
        if has_secret or not _MEDIA_TYPE.fullmatch(media_type):
            return ""
        return media_type.lower()


_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,127}/[\w.+-]{1,127}", re.ASCII)
_PATH: Final = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
_QUERY: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/?\[\]|-]*")


def target_of(site: Site, request: SiteRequest, secrets: Secrets) -> str:
    """Return path and query as they are sent; raise `Forbidden`."""
    if request.path:
        check_path(request.path)
    if not _QUERY.fullmatch(request.query):
        raise Forbidden("The query has a character that must be encoded.")
    query = "&".join(filter(None, (request.query, urlencode(secrets.query))))
    path = site.prefix + request.path or "/"
    target = path + (f"?{query}" if query else "")
    if len(target) > MAX_TARGET_LENGTH:
        raise Forbidden(f"The address is longer than {MAX_TARGET_LENGTH:,} characters.")
    return target


def check_path(path: str) -> None:
    """Raise `Forbidden` if a path could lead outside the site's URL."""
    if not _PATH.fullmatch(path):
        raise Forbidden("The path has a character that must be encoded.")
    if problem := path_problem(path):
        raise Forbidden(f"A segment of the path {problem}.")


def headers_of(
    site: Site, request: SiteRequest, secrets: Secrets
) -> list[tuple[str, str]]:
    """Return all headers; raise `Forbidden` if one cannot be sent."""
    secret_names = {header.lower() for header in secrets.headers}
    headers = [
        ("Host", site.authority),
        ("Accept-Encoding", "identity"),
        ("User-Agent", "django-mcp-app"),
    ]
    for name, value in request.headers:
        if problem := header_problem(name, value):
            raise Forbidden(f"The request is {problem}")
        if name.lower() in secret_names:
            raise Forbidden(f"The header {name} is set by the settings.")
        headers = [header for header in headers if header[0].lower() != name.lower()]
        headers.append((name, value))
    headers = [header for header in headers if header[0].lower() not in secret_names]
    return [*headers, *secrets.headers.items()]
