"""What a site's calls carry besides the request: never shown, logged or sent back."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import re
import traceback
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote_plus

from mcp_app.egress.errors import Forbidden
from mcp_app.egress.sites import Caller, Site, header_problem
from mcp_app.interface.rights import AccessRequest
from mcp_app.pools.database import judges

CALLER_S: Final = 10.0
"""So long a function may look for the headers of a caller."""
SHORTEST: Final = 8
"""Characters of a secret that is looked for in answers: shorter ones are words."""
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
    def _pattern(self) -> re.Pattern[str] | None:
        query = self.query.values()
        sent = [*self.headers.values(), *query, *map(quote_plus, query)]
        texts = set(_pieces(sent))
        longest_first = sorted(texts, key=lambda each: (-len(each), each))
        return re.compile("|".join(map(re.escape, longest_first))) if texts else None

    def are_in(self, text: str) -> bool:
        """Tell whether a text has one of the secrets."""
        return self._pattern is not None and bool(self._pattern.search(text))

    def blot(self, value: Any) -> Any:
        """Return a JSON value, or a text, without the secrets in its texts."""
        if self._pattern is None:
            return value
        return _blotted(value, self._pattern)


def _blotted(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(BLOT, value)
    if isinstance(value, list):
        return [_blotted(each, pattern) for each in value]
    if isinstance(value, dict):
        return {
            pattern.sub(BLOT, name): _blotted(each, pattern)
            for name, each in value.items()
        }
    return value


_PARTS: Final = re.compile(r'[^\s=;,"]++(?!=[^\s=;,])')
"""The parts of cookies and of schemes with parameters, but no name before a value."""


def _pieces(values: Iterable[str]) -> Iterable[str]:
    """Yield secrets, their words and parts, and what a Basic one encodes (RFC 7617)."""
    for value in values:
        parts = _PARTS.findall(value)
        for piece in (value, *value.split(), *parts, *_decoded(value)):
            if len(piece) >= SHORTEST:
                yield piece


def _decoded(value: str) -> Iterable[str]:
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        return ()
    try:
        pair = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ()
    return (pair, *pair.split(":", 1))


async def secrets_for(site: Site, asked: AccessRequest) -> Secrets:
    """Return what a call for this caller carries; raise `Forbidden` without it."""
    given = site.secret_headers
    if isinstance(given, Mapping):
        return Secrets(given, site.secret_query)
    try:
        async with asyncio.timeout(CALLER_S):
            headers = await judges.run(_headers_of, given, asked, site.key)
    except TimeoutError:
        late = f"The secret_headers of {site.key} took longer than {CALLER_S:g} s."
        raise Forbidden(late) from None
    return Secrets(headers, site.secret_query)


def _headers_of(function: Caller, asked: AccessRequest, key: str) -> Mapping[str, str]:
    try:
        given: object = function(asked)
    except Exception:
        # As text: error pages and mails show the variables of frames.
        trace = "".join(traceback.format_exc())
        logger.error("The secret_headers of the site %s failed.\n%s", key, trace)
        raise Forbidden(f"The secret_headers of {key} failed.") from None
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise Forbidden(f"The secret_headers of {key} returned {kind}, not a dict.")
    headers = {}
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise Forbidden(f"The secret_headers of {key} returned what is no text.")
        if problem := header_problem(name, value):
            raise Forbidden(f"The secret_headers of {key} returned a dict {problem}")
        headers[name] = value
    return headers
