"""The rows of users who may log in, by principals, names and keys."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mcp_app.interface.principal import Principal
from mcp_app.interface.rules import visible


class UserRows:
    """Reads the current row of a principal's user."""

    def active_user(self, principal: Principal) -> AbstractBaseUser | None:
        """Return the active user, None for nobody; blocks."""
        return _active(pk=principal.user_id) if principal.user_id else None


def find_user(name: str) -> AbstractBaseUser | None:
    """Return the active user who logs in by this name; blocks."""
    return _active(**{get_user_model().USERNAME_FIELD: name})


def no_such_user(name: str) -> str:
    """Say that no active user logs in by this name, and name the login column."""
    message = _("There is no active user whose %(field)s is “%(name)s”.")
    return message % {"field": get_user_model().USERNAME_FIELD, "name": visible(name)}


def active_users(keys: Collection[Any]) -> dict[Any, AbstractBaseUser]:
    """Return those of these users who may log in, by their primary keys; blocks."""
    rows = get_user_model()._default_manager.in_bulk(list(keys))
    return {key: user for key, user in rows.items() if user.is_active}


def _active(**which: str) -> AbstractBaseUser | None:
    user: AbstractBaseUser | None
    try:
        user = get_user_model()._default_manager.filter(**which).first()
    except (TypeError, ValueError, ValidationError):
        # A site's callable may have keys of its own, which no user can have.
        return None
    return user if user is not None and user.is_active else None
