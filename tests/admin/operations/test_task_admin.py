from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils.html import strip_tags

from mcp_app.conf import Limits
from mcp_app.models import Task, Worker
from mcp_app.protocol.tasks import NewTask
from mcp_app.streams.tasks import store_task
from tests.admin.pages import Queries, page, page_of, text_of

pytestmark = pytest.mark.django_db


def task(tool: str, owner: str = "", **columns: Any) -> Task:
    caller = {
        "principal": {"user_name": "maria"},
        "client": {"name": "<b>desk</b>", "version": "2"},
    }
    new = NewTask(
        server="default",
        tool=tool,
        holder="",
        person="u1",
        caller=json.dumps(caller),
        revision="2026-07-28",
        arguments="{}",
        state="{}",
        rerun=False,
        ttl_ms=60_000,
    )
    record = store_task(new, owner, Limits())
    assert not isinstance(record, str)
    Task.objects.filter(pk=record.pk).update(**columns)
    return Task.objects.get(pk=record.pk)


@pytest.fixture
def tasks() -> list[Task]:
    Worker.objects.create(pk="w", host="web7", pid=42, started_ms=1, seen_ms=1)
    half = {"progress": 2, "total": 4, "message": "Half"}
    return [
        task("waits"),
        task("runs", "w", **half),
        task("wants_answer", status="input_required"),
        task("is_done", status="completed", ended_ms=1, result="{}"),
    ]


def test_the_list_says_what_runs_and_for_whom(
    admin_client: Client, tasks: list[Task], django_assert_max_num_queries: Queries
) -> None:
    with django_assert_max_num_queries(6):
        response = admin_client.get(page("task"))
    text = strip_tags(response.content.decode())
    for words in ("waits for a place", "runs", "waits for an answer", "completed"):
        assert words in text
    assert "maria" in text
    assert "&lt;b&gt;desk&lt;/b&gt; 2" in response.content.decode()
    assert '<progress max="4.0" value="2.0"' in response.content.decode()
    filtered = text_of(admin_client, f"{page('task')}?status=completed")
    assert "is_done" in filtered
    assert "wants_answer" not in filtered
    text = text_of(admin_client, page_of(tasks[1]))
    assert "web7 42" in text
    assert "Half" in text


def test_tasks_are_cancelled_by_who_may(client: Client, tasks: list[Task]) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    rights = Permission.objects.filter(content_type__app_label="mcp_app")
    staff.user_permissions.set(rights.filter(codename="view_task"))
    client.force_login(staff)
    chosen = {"action": "cancel_tasks", "_selected_action": [t.pk for t in tasks]}
    client.post(page("task"), chosen)
    assert not Task.objects.filter(status="cancelled").exists()
    staff.user_permissions.add(rights.get(codename="cancel_task"))
    response = client.post(page("task"), chosen, follow=True)
    assert "3 tasks were cancelled." in response.content.decode()
    cancelled = Task.objects.filter(status="cancelled")
    assert {each.tool for each in cancelled} == {"waits", "runs", "wants_answer"}
    assert LogEntry.objects.filter(user=staff).count() == 3
    response = client.post(page("task"), chosen, follow=True)
    assert "These tasks have ended already." in response.content.decode()


def test_without_tasks_the_page_says_what_one_is(admin_client: Client) -> None:
    assert "A task is a call that runs in the background." in text_of(
        admin_client, page("task")
    )
