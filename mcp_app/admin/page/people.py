"""Who stands behind a key: users by the primary keys that rows keep as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.models import Session

GREATEST: Final = 2**63 - 1
"""The greatest number that a column has."""


def users(keys: Iterable[str]) -> QuerySet[Any]:
    """Return the users that there are."""
    model = get_user_model()
    return model._default_manager.filter(pk__in=set(filter(_is_key, keys)))


def user_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the names of the users that there are; one query."""
    return {str(user.pk): user.get_username() for user in users(keys)}


def who(session: Session, names: dict[str, str]) -> str:
    """Return whose session it is: a name, the key of a user who is gone, or nobody."""
    known = names.get(session.user_id, session.user_id)
    return visible(known) or _("nobody")


def client_of(session: Session) -> str:
    """Return what a client calls itself."""
    return visible(session.client_name) or _("a client without a name")


def _is_key(text: str) -> bool:
    """Whether a text can be a primary key of the site's users."""
    field = get_user_model()._meta.pk
    try:
        key = field.to_python(text) if text else None
    except ValidationError:
        return False
    # A greater number is in no column, and some databases cannot be asked for it.
    return key is not None and not (type(key) is int and abs(key) > GREATEST)
