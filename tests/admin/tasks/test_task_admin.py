from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils.html import strip_tags

from mcp_app.conf import Limits
from mcp_app.models import Task, Worker
from mcp_app.protocol.tasks import NewTask
from mcp_app.server.recording import task_handle
from mcp_app.streams.tasks import store_task
from tests.admin.calls.rows import write
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
    with django_assert_max_num_queries(6) as queries:
        response = admin_client.get(page("task"))
    # Results may have megabytes.
    assert not any('"result"' in each["sql"] for each in queries.captured_queries)
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
    text = text_of(admin_client, page_of(tasks[2]))
    assert "waits for an answer of maria, whom &lt;b&gt;desk&lt;/b&gt; 2 asks" in text
    part = admin_client.get(f"{page_of(tasks[1])}?part=task")
    assert "MCP-Updated" in part.headers
    assert "Half" in part.content.decode()
    assert "<html" not in part.content.decode()
    assert "Progress" not in text_of(admin_client, page_of(tasks[0]))
    assert admin_client.get(page("task", "change", 9_999)).status_code == 404


def test_tasks_are_cancelled_by_who_may(client: Client, tasks: list[Task]) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    rights = Permission.objects.filter(content_type__app_label="mcp_app")
    staff.user_permissions.set(rights.filter(codename="view_task"))
    client.force_login(staff)
    chosen = {"action": "cancel_tasks", "_selected_action": [t.pk for t in tasks]}
    client.post(page("task"), chosen)
    assert not Task.objects.filter(status="cancelled").exists()
    assert "Cancel this task" not in text_of(client, page_of(tasks[0]))
    staff.user_permissions.add(rights.get(codename="cancel_task"))
    assert "Cancel this task" in text_of(client, page_of(tasks[0]))
    response = client.post(page("task"), chosen, follow=True)
    assert "3 tasks were cancelled." in response.content.decode()
    cancelled = Task.objects.filter(status="cancelled")
    assert {each.tool for each in cancelled} == {"waits", "runs", "wants_answer"}
    assert LogEntry.objects.filter(user=staff).count() == 3
    response = client.post(page("task"), chosen, follow=True)
    assert "These tasks have ended already." in response.content.decode()


def test_a_task_and_its_lines_of_the_call_log_lead_to_each_other(
    admin_client: Client, tasks: list[Task]
) -> None:
    columns = {"name": "is_done", "session": task_handle(tasks[3].public_id)}
    mine, other = write(columns, {"name": "is_done"})
    text = text_of(admin_client, page_of(tasks[3]))
    found = re.search(r'href="([^"]+)">Its lines of the call log', text)
    assert found
    listed = text_of(admin_client, unescape(found[1]))
    assert page_of(mine) in listed
    assert page_of(other) not in listed
    assert page_of(tasks[3]) in text_of(admin_client, page_of(mine))


def test_without_tasks_the_page_says_what_one_is(admin_client: Client) -> None:
    assert "A task is a call that runs in the background." in text_of(
        admin_client, page("task")
    )
