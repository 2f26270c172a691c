"""The keys of external issuers, and when the streams of their users end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from mcp_app.auth.issuer_options import IssuerOptions
from mcp_app.conf import KIB
from mcp_app.egress.documents import Bounds, fetch
from mcp_app.egress.resolving import EgressError, Unreadable
from mcp_app.interface.principal import AuthenticationFailed, AuthenticationUnavailable
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.site_time import unix_time

# -- key ends --------------------------------------------------------------------------
# How long streams of users of external issuers may stay open.
#
# Nobody tells us that a token has ended.  So what it opened ends with the last token
# that its user and client sent to this process.

RETENTION_S: Final = 3_600.0
"""How long a past end is kept: a request may open a stream after that end."""
LATEST: Final = datetime(3000, 1, 1, tzinfo=UTC).timestamp()
"""The latest end that is noted: issuers may write any number."""


class KeyEnds:
    """The last end of each principal, by its key, in Unix time; for the loop only."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}

    def note_key_end(self, key: str, end: float) -> None:
        """Note when the token of a principal ends."""
        self._ends[key] = max(self._ends.get(key, 0.0), min(end, LATEST))

    def ended_keys(self, keys: Iterable[str]) -> set[str]:
        """Return those of these keys whose end is past, and forget old ends."""
        now = time.time()
        ends = self._ends.items()
        self._ends = {key: end for key, end in ends if end >= now - RETENTION_S}
        # The default is in the future: a key without an end has not ended.
        return {key for key in keys if self._ends.get(key, now + 1) <= now}

    def next_key_end(self, keys: Iterable[str]) -> datetime | None:
        """Return the first end of these keys that is still to come, None for none."""
        now = time.time()
        ends = [end for key in keys if (end := self._ends.get(key, now)) > now]
        return unix_time(min(ends)) if ends else None


key_ends = KeyEnds()
"""The ends in this process."""


# -- key sets --------------------------------------------------------------------------
# The keys of an issuer: where they are, and how long they are valid (RFC 7517).
#
# A set is read again after an hour, and for an unknown key at most once a minute.  If
# it cannot be read, the last set stays valid for a day.

FRESH_S: Final = 3_600.0
GOOD_S: Final = 86_400.0
AGAIN_S: Final = 60.0
"""How long to wait after an attempt to read the set, while a set is valid."""
AWAY_S: Final = 5.0
"""How long to wait after an attempt, while no set is valid."""
MAX_KEY_SET_BYTES: Final = 256 * KIB
"""A key set may be large, because some hold chains of certificates."""
ALGORITHMS: Final = {
    "RS256": ("RSA", None),
    "PS256": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The algorithms of signatures, with the type and curve of the key (RFC 7518)."""

logger = logging.getLogger("mcp_app.auth")


class KeySet:
    """The keys of one issuer in this process; used on the loop only."""

    def __init__(self, options: IssuerOptions) -> None:
        self._options = options
        self._entries: Sequence[Mapping[str, Any]] = ()
        self._built_keys: dict[tuple[str | None, str], Any] = {}
        self._read_at = self._tried_at = float("-inf")
        self._is_away = False
        self._reading: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> Any:
        """Return the PyJWK of this name (`kid`) for this algorithm.

        If `kid` is None, exactly one key must fit.  Raises `AuthenticationFailed`, or
        `AuthenticationUnavailable` if the keys cannot be read.
        """
        key = self._usable_key(kid, algorithm)
        if key is not None and self._seconds_since_read() < FRESH_S:
            return key
        wait = AGAIN_S if self._seconds_since_read() < GOOD_S else AWAY_S
        if self._reading is None and monotonic() - self._tried_at >= wait:
            self._reading = start_background_task(self._read_key_set())
        # A known key does not wait for an issuer that was down at the last attempt.
        if self._reading is not None and (key is None or not self._is_away):
            # If the first caller is cancelled, the others still wait for the task.
            await asyncio.shield(self._reading)
            key = self._usable_key(kid, algorithm)
        if key is not None:
            return key
        if self._is_away:
            raise AuthenticationUnavailable
        raise AuthenticationFailed("The token is signed with no key of its issuer.")

    def _seconds_since_read(self) -> float:
        return monotonic() - self._read_at

    def _usable_key(self, kid: str | None, algorithm: str) -> Any:
        """Return the key, None if no key or more than one key fits."""
        if self._seconds_since_read() >= GOOD_S:
            return None
        if (kid, algorithm) not in self._built_keys:
            fits = partial(matches_key, kid=kid, algorithm=algorithm)
            matches = [*filter(fits, self._entries)]
            key = build_key(matches[0], algorithm) if len(matches) == 1 else None
            if key is None:
                return None
            self._built_keys[kid, algorithm] = key
        return self._built_keys[kid, algorithm]

    async def _read_key_set(self) -> None:
        self._tried_at = began = monotonic()
        try:
            async with asyncio.timeout(self._options.bounds.timeout):
                entries = await _read_entries(self._options)
        except (EgressError, TimeoutError) as error:
            self._is_away = True
            why, name = str(error) or "It took too long.", self._options.name
            logger.warning("The keys of the issuer %r cannot be read: %s", name, why)
        else:
            self._is_away = False
            self._entries, self._built_keys, self._read_at = entries, {}, began
        finally:
            self._reading = None


def matches_key(entry: Mapping[str, Any], kid: str | None, algorithm: str) -> bool:
    """Whether a JWK is for an algorithm, and has this `kid` if that is not None."""
    kind, curve = ALGORITHMS[algorithm]
    return (
        (kid is None or entry.get("kid") == kid)
        and entry.get("kty") == kind
        and (curve is None or entry.get("crv") == curve)
        and entry.get("use", "sig") == "sig"
        and entry.get("alg", algorithm) == algorithm
    )


def build_key(entry: Mapping[str, Any], algorithm: str) -> Any:
    """Return the PyJWK of an entry, None if the entry is broken."""
    import jwt  # noqa: PLC0415 - an extra

    try:
        return jwt.PyJWK(dict(entry), algorithm)
    except (jwt.PyJWTError, TypeError, ValueError):
        return None


async def _read_entries(options: IssuerOptions) -> Sequence[Mapping[str, Any]]:
    address = options.jwks or await _address_by_metadata(options)
    bounds = replace(options.bounds, answer=MAX_KEY_SET_BYTES)
    keys = (await _fetch_document(address, bounds, options.name)).get("keys")
    usable = [
        each
        for each in (keys if isinstance(keys, list) else ())
        if isinstance(each, dict)
        and any(matches_key(each, None, algorithm) for algorithm in ALGORITHMS)
    ]
    if not usable:
        raise Unreadable(f"{address} has no key that signs by {', '.join(ALGORITHMS)}.")
    return usable


async def _address_by_metadata(options: IssuerOptions) -> str:
    """Return the address of the key set; raises `EgressError`.

    The metadata must name the same issuer (RFC 8414, section 3.3).
    """
    why = ""
    for address in metadata_addresses(options.issuer):
        try:
            metadata = await _fetch_document(address, options.bounds, options.name)
        except Unreadable as error:
            why = error.message
            continue
        jwks_uri = metadata.get("jwks_uri")
        if metadata.get("issuer") != options.issuer:
            other = str(metadata.get("issuer"))[:200]
            why = f"{address} is of another issuer: {other!r}."
        elif isinstance(jwks_uri, str):
            return jwks_uri
        else:
            why = f'{address} names no "jwks_uri".'
    raise Unreadable(why)


def metadata_addresses(issuer: str) -> Iterator[str]:
    """Yield the addresses where the metadata of an issuer may be.

    The first is that of RFC 8414, section 3, then OpenID Connect Discovery, section 4.
    """
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    origin = f"{parts.scheme}://{parts.netloc}"
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}{path}/.well-known/openid-configuration"


async def _fetch_document(address: str, bounds: Bounds, name: str) -> Mapping[str, Any]:
    answer = await fetch(address, bounds, key=name)
    try:
        document = orjson.loads(answer.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Unreadable(f"{address} has no JSON object.")
    return document
