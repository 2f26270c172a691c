"""The keys of external issuers, and when what they opened ends."""

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
# Until when what the users of external issuers have opened may stay open.
#
# A token is not looked up, so nobody hears of its end: what it opened ends with the
# last token that its user and client showed to this process.

RETENTION_S: Final = 3_600.0
"""How long a past end is kept: what a request opens may open later."""
LATEST: Final = datetime(3000, 1, 1, tzinfo=UTC).timestamp()
"""Issuers may write any number."""


class KeyEnds:
    """The last ends by the keys of principals, in Unix time; used on the loop only."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}

    def note_key_end(self, key: str, end: float) -> None:
        """Note when what a principal has shown ends."""
        self._ends[key] = max(self._ends.get(key, 0.0), min(end, LATEST))

    def ended_keys(self, keys: Iterable[str]) -> set[str]:
        """Return those of these keys whose end is past, and forget old ends."""
        now = time.time()
        ends = self._ends.items()
        self._ends = {key: end for key, end in ends if end >= now - RETENTION_S}
        return {key for key in keys if self._ends.get(key, now + 1) <= now}

    def next_key_end(self, keys: Iterable[str]) -> datetime | None:
        """Return the first end of these keys that is still to come, None for none."""
        now = time.time()
        ends = [end for key in keys if (end := self._ends.get(key, now)) > now]
        return unix_time(min(ends)) if ends else None


key_ends = KeyEnds()
"""Those of this process."""


# -- key sets --------------------------------------------------------------------------
# The keys of an issuer: where they are, and how long they are good (RFC 7517).
#
# A set is read again after an hour, and at most once a minute for a key that it does
# not have.  While it cannot be had, that of the last time is good for a day.

FRESH_S: Final = 3_600.0
GOOD_S: Final = 86_400.0
AGAIN_S: Final = 60.0
"""After an attempt, how long no missing key is asked for."""
AWAY_S: Final = 5.0
"""The same, while there is no set at all."""
MAX_KEY_SET_BYTES: Final = 256 * KIB
"""Of a key set: sets with chains of certificates are large."""
ALGORITHMS: Final = {
    "RS256": ("RSA", None),
    "PS256": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""What a token may be signed with, and the type and curve of its key (RFC 7518)."""

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
        """Return the PyJWK that signs by this algorithm under this name.

        Without a name it is the only one that can.  Raises `AuthenticationFailed`, or
        `AuthenticationUnavailable` where nobody can know.
        """
        key = self._usable_key(kid, algorithm)
        if key is not None and self._seconds_since_read() < FRESH_S:
            return key
        wait = AGAIN_S if self._seconds_since_read() < GOOD_S else AWAY_S
        if self._reading is None and monotonic() - self._tried_at >= wait:
            self._reading = start_background_task(self._read_key_set())
        # Known keys do not wait for an issuer that was away the last time.
        if self._reading is not None and (key is None or not self._is_away):
            # Whoever asked first may go; the others still wait.
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
        """Return the key, None where there is none, or more than one."""
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
    kind, curve = ALGORITHMS[algorithm]
    return (
        (kid is None or entry.get("kid") == kid)
        and entry.get("kty") == kind
        and (curve is None or entry.get("crv") == curve)
        and entry.get("use", "sig") == "sig"
        and entry.get("alg", algorithm) == algorithm
    )


def build_key(entry: Mapping[str, Any], algorithm: str) -> Any:
    """Return the PyJWK of an entry, None where it is broken."""
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

    The metadata must name the very issuer (RFC 8414, section 3.3).
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
    """Yield where the metadata of an issuer may be.

    That is RFC 8414, section 3, then OpenID Connect Discovery, section 4.
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
