"""People with and without rights, and their clients."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User

from mcp_app.catalog.registry import Registry
from mcp_app.test import Client


def person(name: str, *permissions: str, **columns: Any) -> User:
    """Make somebody on the staff with these permissions."""
    user = User.objects.create_user(name, **{"is_staff": True, **columns})
    for each in permissions:
        user.user_permissions.add(Permission.objects.get(codename=each))
    return user


def client_of(user: User | None, registry: Registry, **options: Any) -> Client:
    """Return a client at what a registry declares."""
    kind = type("OfficeClient", (Client,), {"_registry": registry})
    client: Client = kind(user, **options)
    return client


def problem_of(registry: Registry) -> str:
    """Return the only sentence of a line that makes no tools."""
    assert registry.tools == {}
    [sentence] = registry.toolset_problems
    return sentence
