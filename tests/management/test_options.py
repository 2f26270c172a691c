"""Errors that name the servers that there are."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from mcp_app.management.options import MAX_SLUGS, find_server
from mcp_app.models import Server

pytestmark = pytest.mark.django_db


def test_those_that_there_are_are_named() -> None:
    Server.objects.all().delete()
    with pytest.raises(CommandError, match="There is none yet"):
        find_server("x")
    team = Server.objects.create(slug="team")
    assert find_server("team") == team
    Server.objects.create(slug="staff")
    with pytest.raises(CommandError, match=r"'team', 'staff'\.$") as error:
        find_server("x", 2)
    assert error.value.returncode == 2
    for number in range(MAX_SLUGS):
        Server.objects.create(slug=f"s{number}")
    with pytest.raises(CommandError, match=r"'s17' and more\.$"):
        find_server("x")
