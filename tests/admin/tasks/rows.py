"""Rows of tasks, as calls make them."""

from __future__ import annotations

import json
from typing import Any

from mcp_app.conf import Limits
from mcp_app.models import Task
from mcp_app.protocol.tasks import NewTask
from mcp_app.streams.tasks import store_task


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
