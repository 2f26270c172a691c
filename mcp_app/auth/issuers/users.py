"""The user of the site whom the claims of a verified token mean.  Nobody is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DataError

from mcp_app.auth.issuers.options import EMAIL, IssuerOptions
from mcp_app.interface.principal import AuthenticationFailed

NOBODY: Final = "This site has no user for the token."
MOST_ROWS: Final = 100
"""So many may be equal to a database without being so."""


def find_user(options: IssuerOptions, claims: Mapping[str, Any]) -> Any:
    """Return who is meant, active or not; blocks, raises `AuthenticationFailed`."""
    value = _value(options.claim, claims)
    if options.user is None:
        return _by_column(options, value)
    found = options.user(dict(claims))
    if found is None:
        raise AuthenticationFailed(NOBODY)
    return found


def _value(claim: str, claims: Mapping[str, Any]) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not value:
        raise AuthenticationFailed(f"The token has no {claim}.")
    if claim == EMAIL and claims.get("email_verified") is not True:
        raise AuthenticationFailed("The e-mail address of the token is not verified.")
    return value


def _by_column(options: IssuerOptions, value: str) -> Any:
    """Return the one user whose column is the value, character by character.

    Collations of databases find others, too.
    """
    same = _lower if options.claim == EMAIL else str
    lookup = "iexact" if options.claim == EMAIL else "exact"
    users = get_user_model()._default_manager
    try:
        rows = list(users.filter(**{f"{options.field}__{lookup}": value})[:MOST_ROWS])
    except (DataError, TypeError, ValueError, ValidationError):
        # What no row of the column can be: a text that is no number, or has a NUL.
        rows = []
    found = [
        each for each in rows if same(str(getattr(each, options.field))) == same(value)
    ]
    if len(found) != 1:
        raise AuthenticationFailed(NOBODY)
    return found[0]


def _lower(text: str) -> str:
    """Return it in lower case, if no character stands for another one there."""
    return text.lower() if text.isascii() else text
