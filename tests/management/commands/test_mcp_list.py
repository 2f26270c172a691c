"""`mcp_list` says what clients of that user are offered."""

from __future__ import annotations

import json
import random
from functools import partial
from io import StringIO

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command

from mcp_app.catalog.registry import Registry
from mcp_app.models import Server, Tool
from mcp_app.process import current
from mcp_app.process.runtime import Process
from mcp_app.test import Client
from tests.published import published

HELLO = '{"content": [{"type": "text", "text": "Hello."}]}'
pytestmark = pytest.mark.django_db(transaction=True)


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command("mcp_list", *arguments, stdout=out)
    return out.getvalue()


def do_nothing() -> None:
    """Do nothing."""


def test_it_agrees_with_what_clients_are_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry, draw = Registry(), random.Random(7)  # noqa: S311 - no secret
    permissions = list(Permission.objects.select_related("content_type")[:8])
    for each in permissions:
        name = f"{each.content_type.app_label}.{each.codename}"
        registry.tool(f"tool_{each.codename}", permission=name)(do_nothing)
    monkeypatch.setattr(current, "Process", partial(Process, registry))
    monkeypatch.setattr(Client, "_registry", registry)
    for number in range(20):
        user = User.objects.create_user(f"user{number}")
        user.user_permissions.set(draw.sample(permissions, draw.randrange(9)))
        rows = json.loads(printed("--user", user.username, "--json"))["tools"]
        assert [each["name"] for each in rows] == [
            each["name"] for each in Client(user).tools()
        ]


def test_for_people() -> None:
    Server.objects.filter(slug="default").update(access="public")
    text = printed()
    assert "tokens of a model's memory" in text
    assert "Who can see it" in text


def test_what_nobody_declares_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    registry.tool("slow", task="optional")(do_nothing)
    monkeypatch.setattr(current, "Process", partial(Process, registry))
    Server.objects.filter(slug="default").update(access="public")
    published(Tool(name="hello", config=HELLO))
    rows = json.loads(printed("--json"))["tools"]
    declared = {each["name"]: each["declared"] for each in rows}
    assert declared.items() >= {"hello": "admin", "get_task_result": "built in"}.items()


def test_who_is_not_served() -> None:
    with pytest.raises(CommandError, match="is not public") as caught:
        printed()
    assert caught.value.returncode == 2
