"""Recording changes of rights that Django's own models make.

Whoever is asked once such a change was answered knows of it, in every process.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db import models
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete

from mcp_app.invalidation.changes import RIGHTS, record
from mcp_app.invalidation.workers import hold_after_commit
from mcp_app.models import AccessToken
from mcp_app.models.changes import ANY
from mcp_app.models.transactions import in_atomic

# Signing in writes it; it is nobody's right.
_NO_RIGHT = frozenset({"last_login"})
_PERSONAL = ("groups", "user_permissions")


def connect() -> None:
    """Watch users, their groups and permissions; called once the models are there."""
    from django.contrib.auth.models import Group, Permission  # noqa: PLC0415

    user = get_user_model()
    # Without a sender: a proxy of the model, and a subclass, send their own.
    post_save.connect(_user_saved)
    post_delete.connect(_user_deleted)
    for name in _PERSONAL:
        relation = getattr(user, name, None)
        if relation is not None:
            m2m_changed.connect(_user_related, sender=relation.through)
    m2m_changed.connect(_all_changed, sender=Group.permissions.through)
    # What is demanded names a group by its name, and a permission by its codename.
    post_save.connect(_renamed, sender=Group)
    post_save.connect(_renamed, sender=Permission)
    # Once the group is gone, nobody knows any more who was in it.
    pre_delete.connect(_all_changed, sender=Group)
    pre_delete.connect(_all_changed, sender=Permission)
    post_save.connect(_token_saved, sender=AccessToken)
    post_delete.connect(_token_deleted, sender=AccessToken)
    m2m_changed.connect(_all_changed, sender=AccessToken.servers.through)


def _user_saved(
    sender: type[models.Model],
    instance: models.Model,
    using: str,
    created: bool,
    raw: bool,
    update_fields: frozenset[str] | None = None,
    **_: object,
) -> None:
    harmless = update_fields is not None and update_fields <= _NO_RIGHT
    if not issubclass(sender, get_user_model()):
        return
    if not created and not raw and not harmless:
        record_rights(str(instance.pk), using)


def _user_deleted(
    sender: type[models.Model], instance: models.Model, using: str, **_: object
) -> None:
    if issubclass(sender, get_user_model()):
        record_rights(str(instance.pk), using)


def _user_related(
    instance: models.Model,
    action: str,
    reverse: bool,
    pk_set: set[Any] | None,
    using: str,
    **_: object,
) -> None:
    """A user's groups or permissions changed, or the users of a group did."""
    if not _changes(action) or pk_set == set():
        return
    if not reverse:
        record_rights(str(instance.pk), using)
    elif pk_set is None:
        record_rights(ANY, using)
    else:
        for key in pk_set:
            record_rights(str(key), using)


def _all_changed(
    using: str, action: str = "post_add", pk_set: set[Any] | None = None, **_: object
) -> None:
    if _changes(action) and pk_set != set():
        record_rights(ANY, using)


def _renamed(using: str, created: bool, **_: object) -> None:
    # A new one is nobody's yet.
    if not created:
        record_rights(ANY, using)


def _token_saved(
    instance: AccessToken,
    using: str,
    created: bool,
    update_fields: frozenset[str] | None = None,
    **_: object,
) -> None:
    # A new one is nobody's yet.
    if not created and (update_fields is None or update_fields - AccessToken.PRIVATE):
        record_rights(str(instance.user_id), using)


def _token_deleted(instance: AccessToken, using: str, **_: object) -> None:
    record_rights(str(instance.user_id), using)


def _changes(action: str) -> bool:
    # What is cleared is known only before.
    return action in ("post_add", "post_remove", "pre_clear")


def record_rights(ref: str, using: str) -> None:
    """Record that rights of a user, by the key, or of all changed."""
    record(using, RIGHTS, ref)
    if in_atomic(using):
        hold_after_commit(using)
