"""Client assertions: JWTs by which a program proves who it is (RFC 7523, section 2.2).

The messages of `AuthenticationFailed` here are for the log, not for the program.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.views.decorators.debug import sensitive_variables

from mcp_app.auth.issuer_keys import ALGORITHMS, build_key, matches_key
from mcp_app.auth.issuer_tokens import UnverifiedToken, decode_part, signed_claims
from mcp_app.interface.principal import AuthenticationFailed

MAX_ASSERTION_LENGTH: Final = 8 * 1_024
MAX_LIFETIME_S: Final = 600
MAX_JTI_LENGTH: Final = 200


@sensitive_variables()
def read_jwt(text: str) -> UnverifiedToken:
    """Return an unverified JWT; its algorithm is one of `ALGORITHMS`."""
    # The third part, which is left out, is the signature.
    parts = [decode_part(each) for each in text.split(".", 2)[:2]]
    header, claims = parts if len(parts) > 1 else (None, None)
    if len(text) > MAX_ASSERTION_LENGTH or header is None or claims is None:
        raise AuthenticationFailed("It is no JWT of at most 8 KiB.")
    if header.get("alg") not in [*ALGORITHMS] or "crit" in header:
        raise AuthenticationFailed("Its alg is not accepted, or its header has crit.")
    return UnverifiedToken(text, header, claims)


@sensitive_variables()
def read_assertion(text: str) -> UnverifiedToken:
    """Return an unverified assertion, whose `iss` is the id of its client."""
    assertion = read_jwt(text)
    client_id, claims = assertion.claims.get("iss"), assertion.claims
    is_id = isinstance(client_id, str) and client_id.isprintable()
    if not is_id or claims.get("sub") != client_id:
        raise AuthenticationFailed("Its iss and sub are not one client id.")
    return assertion


@sensitive_variables()
def verify_assertion(
    assertion: UnverifiedToken, keys: Sequence[Mapping[str, Any]], issuer: str
) -> dict[str, Any]:
    """Return the claims of an assertion that one of its client's keys has signed.

    `keys` are JWKs, `issuer` is this site's.  Whether `jti` was used is not checked.
    """
    algorithm = assertion.header["alg"]
    # A client with one key need not name it.
    kid = assertion.header.get("kid") if len(keys) > 1 else None
    fitting_keys = [each for each in keys if matches_key(each, kid, algorithm)]
    key = build_key(fitting_keys[0], algorithm) if len(fitting_keys) == 1 else None
    if key is None:
        raise AuthenticationFailed("No key of the program fits to its header.")
    claims = signed_claims(assertion, key, algorithm, assertion.claims["iss"])
    check_claims(claims, issuer)
    return claims


@sensitive_variables()
def check_claims(claims: Mapping[str, Any], issuer: str) -> None:
    """Raise if claims are not for our issuer, are valid too long, or have no id."""
    # Some URL libraries add the slash.
    if claims["aud"] not in (issuer, f"{issuer}/", [issuer], [f"{issuer}/"]):
        raise AuthenticationFailed(f"Its aud is not {issuer}.")
    if claims["exp"] > time.time() + MAX_LIFETIME_S:
        raise AuthenticationFailed("Its exp is more than 10 minutes ahead.")
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI_LENGTH:
        raise AuthenticationFailed("Its jti is no text of 1 to 200 characters.")
