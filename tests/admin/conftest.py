"""People with few rights, and functions that code registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from mcp_app.catalog.registry import mcp


@pytest.fixture
def staff(client: Client) -> Callable[..., Client]:
    """Return a function that logs in someone with these rights only."""

    def login(*codenames: str) -> Client:
        user = User.objects.create_user("kim", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client.force_login(user)
        return client

    return login


@pytest.fixture
def functions() -> Iterator[None]:
    """Registers shop.find(customer, limit) and shop.policy(), and a tool `search`."""

    @mcp.function("shop.find")
    def find(customer: str, limit: int = 10) -> int:
        """Find orders."""
        return limit

    @mcp.function("shop.policy")
    def policy() -> str:
        return "No returns."

    @mcp.tool("search")
    def search() -> str:
        return ""

    yield
    for key in ("shop.find", "shop.policy"):
        del mcp.functions[key]
    del mcp.tools["search"]
