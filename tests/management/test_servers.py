"""Errors that name the servers that there are."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from mcp_app.management.servers import MOST, server_named
from mcp_app.models import Server

pytestmark = pytest.mark.django_db


def test_those_that_there_are_are_named() -> None:
    Server.objects.all().delete()
    with pytest.raises(CommandError, match="There is none yet"):
        server_named("x")
    team = Server.objects.create(slug="team")
    assert server_named("team") == team
    Server.objects.create(slug="staff")
    with pytest.raises(CommandError, match=r"'team', 'staff'\.$") as error:
        server_named("x", 2)
    assert error.value.returncode == 2
    for number in range(MOST):
        Server.objects.create(slug=f"s{number}")
    with pytest.raises(CommandError, match=r"'s17' and more\.$"):
        server_named("x")
