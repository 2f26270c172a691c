"""Errors that name the servers that there are, and whose connection is used."""

from __future__ import annotations

import json
from functools import partial
from io import StringIO

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from mcp_app.catalog.registry import Registry
from mcp_app.management.options import MAX_SLUGS, find_server
from mcp_app.models import Call, Server
from mcp_app.process import resting
from mcp_app.process.resting import RestingProcess

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


class TestWithinATransaction:
    """A call sees what its caller has written, and is undone with it."""

    @pytest.fixture(autouse=True)
    def _served(self, monkeypatch: pytest.MonkeyPatch) -> None:
        registry = Registry()
        registry.tool("group_add")(lambda: Group.objects.create(name="made").name)

        async def count_groups() -> int:
            return await Group.objects.acount()

        registry.tool("group_count", read_only=True)(count_groups)
        begun = partial(RestingProcess, registry)
        monkeypatch.setattr(resting, "RestingProcess", begun)
        User.objects.create_user("maria")

    def test_a_call_is_undone_with_it(self) -> None:
        assert _run("mcp_call", "group_count").strip() == "0"
        with transaction.atomic():
            assert _run("mcp_call", "group_add", "--yes").strip() == "made"
            assert _run("mcp_call", "group_count").strip() == "1"
            assert Call.objects.count() == 3
            transaction.set_rollback(True)
        assert (Group.objects.count(), Call.objects.count()) == (0, 1)

    def test_lists_are_those_of_its_rows(self) -> None:
        tools = json.loads(_run("mcp_list", "--json"))["tools"]
        assert [each["name"] for each in tools] == ["group_add", "group_count"]
        assert User.objects.get().username == "maria"


@pytest.mark.django_db(transaction=True)
def test_a_connection_of_the_caller_stays_open() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE mine (n integer)")
        with pytest.raises(CommandError, match="no active user"):
            _run("mcp_list")
        cursor.execute("SELECT count(*) FROM mine")


def _run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, "--user=maria", stdout=out)
    return out.getvalue()
