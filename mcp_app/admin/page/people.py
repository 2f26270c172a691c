"""Users by the primary keys that rows store as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.models import Session

HANDLE: Final = 8
"""Characters of a digest to show as a short name."""
GREATEST: Final = 2**63 - 1
"""The greatest number that a column of integers can hold."""


def existing_users(keys: Iterable[str]) -> QuerySet[Any]:
    """Return the users with these keys that still exist."""
    model = get_user_model()
    return model._default_manager.filter(pk__in=set(filter(_is_user_key, keys)))


def user_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the names of the users that still exist; one query."""
    return {str(user.pk): user.get_username() for user in existing_users(keys)}


def session_user_name(session: Session, names: dict[str, str]) -> str:
    """Return the user of a session: the name, the key if deleted, or "nobody"."""
    name = names.get(session.user_id, session.user_id)
    return visible(name) or _("nobody")


def client_of(session: Session) -> str:
    """Return the name that a client gives itself."""
    return visible(session.client_name) or _("a client without a name")


def _is_user_key(text: str) -> bool:
    """Return whether a text can be a primary key of the site's users."""
    field = get_user_model()._meta.pk
    try:
        key = field.to_python(text) if text else None
    except ValidationError:
        return False
    # Some databases refuse a greater number in a query, and no key is greater.
    return key is not None and not (type(key) is int and abs(key) > GREATEST)
