"""Django's permissions of a principal, kept for a short while."""

from __future__ import annotations

import time
from collections.abc import Collection, Container
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from mcp_app.interface.principal import Principal
from mcp_app.pools.database import reader

HARD_AGE = 30.0
"""Seconds after which rights are read again, whatever changed them."""
KEPT = 10_000


class Everything(Container[str]):
    """The rights of a superuser."""

    def __contains__(self, permission: object) -> bool:
        return True


NOTHING: Container[str] = frozenset()


class Nobody(Container[str]):
    """The rights of a user who is gone, or not active: a call has to be refused."""

    def __contains__(self, permission: object) -> bool:
        return False


NOBODY: Container[str] = Nobody()


class Permissions:
    """Rights by principal; used on the loop only."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Container[str]]] = {}

    async def of(self, principal: Principal) -> Container[str]:
        """Return what the principal may; nothing for who is no active user."""
        if principal.permissions is not None:
            return principal.permissions
        if not principal.user_id:
            return NOTHING
        now = time.monotonic()
        keep = self._kept
        kept = keep.get(principal.user_id)
        if kept is not None and now - kept[0] < HARD_AGE:
            return kept[1]
        rights = await reader.run(_read, principal.user_id)
        if len(keep) >= KEPT:
            keep.clear()
        keep[principal.user_id] = (now, rights)
        return rights

    def forget(self) -> None:
        """Read all rights again at their next use."""
        # Another dict: what is being read at this moment must not be kept.
        self._kept = {}


class UserRows:
    """The way from a principal to a fresh row of the user."""

    def user(self, principal: Principal) -> AbstractBaseUser | None:
        """Return the active user, None for nobody; blocks."""
        if not principal.user_id:
            return None
        return _active(pk=principal.user_id)


def named(name: str) -> AbstractBaseUser | None:
    """Return the active user who logs in by this name; blocks."""
    return _active(**{get_user_model().USERNAME_FIELD: name})


def active_users(keys: Collection[Any]) -> dict[Any, AbstractBaseUser]:
    """Return those of these users who may log in, by their primary keys; blocks."""
    found = get_user_model()._default_manager.in_bulk(list(keys))
    return {key: user for key, user in found.items() if user.is_active}


def _active(**which: str) -> AbstractBaseUser | None:
    found: AbstractBaseUser | None
    found = get_user_model()._default_manager.filter(**which).first()
    return found if found is not None and found.is_active else None


def _read(user_id: str) -> Container[str]:
    user = _active(pk=user_id)
    if user is None:
        return NOBODY
    if getattr(user, "is_superuser", False):
        return Everything()
    read = getattr(user, "get_all_permissions", None)
    return frozenset(read()) if read is not None else NOTHING
