"""What a person may view: each right alone."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.test import RequestFactory

from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.process.background import run_on_loop
from mcp_app.workbench.viewer import MODELS, Viewer, viewer_of

pytestmark = pytest.mark.django_db


def test_each_right_alone() -> None:
    models = [Tool, Prompt, Resource, ResourceTemplate, Server]
    expected: dict[str, dict[str, Any]] = {
        f"{act}_{model._meta.model_name}": {"models": (model,)}
        for model in models
        for act in ("view", "change")
    }
    expected |= {
        "view_call": {"calls": True},
        "view_session": {"sessions": True},
        "view_user": {"users": True},
        "change_user": {"users": True},
        "manage_tokens": {"tokens": True},
        "view_task": {"tasks": True},
        "view_eventsubscription": {"subscriptions": True},
        "publish": {},
        "delete_tool": {},
        "add_server": {},
        "stop": {},
    }
    user = User.objects.create_user("kim", is_staff=True)
    for right, seen in expected.items():
        user.user_permissions.set(Permission.objects.filter(codename=right))
        anew = User.objects.get(pk=user.pk)
        assert viewer_of(anew) == Viewer(key=user.pk, **seen), right


def test_superusers_and_nobody() -> None:
    admin = User.objects.create_superuser("admin")
    every: dict[str, Any] = dict.fromkeys(
        ("calls", "sessions", "users", "tokens", "tasks", "subscriptions"), True
    )
    assert viewer_of(admin) == Viewer(key=admin.pk, models=MODELS, **every)
    assert viewer_of(AnonymousUser()) == Viewer(key=None)


def test_under_wsgi_a_coroutine_runs_on_the_loop_beside_it() -> None:
    async def where() -> str:
        return threading.current_thread().name

    assert run_on_loop(RequestFactory().get("/"), where) == "mcp-loop"
