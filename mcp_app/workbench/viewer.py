"""What a person may view; their pages read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, AnonymousUser

from mcp_app.catalog.row_loader import DEFINITION_ROWS
from mcp_app.models import PublishedRow, Server

MODELS: Final[tuple[type[PublishedRow], ...]] = (*DEFINITION_ROWS, Server)


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person, and what they may view.

    `models` are those of definitions and servers.  `tokens` says whether they may view
    the access tokens of others, `users` whether they may view the site's users.
    The rights of `person`, the user, tell which waiting calls they may approve.
    """

    key: Any
    models: tuple[type[PublishedRow], ...] = ()
    calls: bool = False
    sessions: bool = False
    users: bool = False
    tokens: bool = False
    tasks: bool = False
    subscriptions: bool = False
    person: Any = field(default=None, compare=False)


def viewer_of(user: AbstractUser | AnonymousUser) -> Viewer:
    """Return what a user may view. The right to change includes the right to view."""
    users = get_user_model()._meta
    return Viewer(
        key=user.pk,
        models=tuple(
            model
            for model in MODELS
            if _may_view_model(user, "mcp_app", str(model._meta.model_name))
        ),
        calls=user.has_perm("mcp_app.view_call"),
        sessions=_may_view_model(user, "mcp_app", "session"),
        users=_may_view_model(user, users.app_label, str(users.model_name)),
        tokens=user.has_perm("mcp_app.manage_tokens"),
        tasks=user.has_perm("mcp_app.view_task"),
        subscriptions=user.has_perm("mcp_app.view_eventsubscription"),
        person=user,
    )


def _may_view_model(user: AbstractUser | AnonymousUser, app: str, name: str) -> bool:
    return any(user.has_perm(f"{app}.{act}_{name}") for act in ("view", "change"))
