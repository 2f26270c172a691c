"""Functions that find users by claims, as a site writes them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model

from mcp_app.interface.principal import AuthenticationFailed, AuthenticationUnavailable


def by_employee(claims: dict[str, Any]) -> Any:
    """Find by a part of a claim, or do what it says."""
    name = claims["employee"]
    if name == "refused":
        raise AuthenticationFailed("Employees of yesterday are not let in.")
    if name == "away":
        raise AuthenticationUnavailable
    if name == "wrong":
        return "ana"
    claims["changed"] = True
    users: Any = get_user_model()._default_manager
    return users.filter(username=name.removeprefix("e-")).first()


async def in_async(claims: dict[str, Any]) -> Any:
    """Look as a function that cannot be used."""


NO_FUNCTION = 7
