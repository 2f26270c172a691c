"""What a person sees of a waiting call, on the account's pages and in the admin.

Users confirm their own calls on the pages of their account; staff decide in the admin.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from mcp_app.account.call_decisions import (
    DECISIONS,
    CallDecided,
    calls_to_confirm,
    decide_call,
    may_decide,
)
from mcp_app.account.views import own_page
from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken, Task
from mcp_app.models.tasks import Status
from mcp_app.process.background import run_on_loop
from mcp_app.process.current import process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.tasks import read_json
from mcp_app.server.approving import fingerprint, with_defaults
from mcp_app.site_time import time_html, unix_time

MAX_VALUE: Final = 2_000
MAX_LINE: Final = 200


def decision_context(request: HttpRequest, task: Task) -> dict[str, Any]:
    """Return the context of a call's page for a person who may decide it, else {}."""
    if "part" in request.GET or not may_decide(request.user, task):
        return {}
    tool = run_on_loop(request, partial(_find_tool, task))
    approval, caller = read_json(task.state)["approval"], read_json(task.caller)
    headers = {name: value for name, value in caller["headers"].items() if value}
    sentence = approval["text"]
    family = caller["principal"]["client"] or None
    token = AccessToken.objects.filter(family=family).order_by("-pk").first()
    return {
        "title": sentence or str(task),
        "sentence": sentence,
        "values": value_lines(task, tool),
        "token": token and visible(token.name),
        "version": tool and tool.version,
        "headers": headers.items(),
        "is_changed": tool is None or fingerprint(tool) != approval["tool"],
    }


async def _find_tool(task: Task) -> ToolEntry | None:
    current = process()
    await current.gate.wait_for_check()
    catalog = current.catalogs.by_slug.get(task.server)
    return None if catalog is None else catalog.tools.get(task.tool)


def value_lines(task: Task, tool: ToolEntry | None) -> list[tuple[str, str, str]]:
    """Return title and beginning of each value, and the whole value if it is longer."""
    schema: Any = tool.definition.input_schema if tool else {}
    about = schema.get("properties", {})
    lines = []
    values = read_json(task.arguments)
    for name, value in (with_defaults(tool, values) if tool else values).items():
        title = about[name].get("title") if type(about.get(name)) is dict else None
        text = f"“{value}”" if type(value) is str else jsonrpc.pretty_text(value)
        start, whole = visible(text, MAX_VALUE), visible(text, None)
        lines.append((visible(title or name), start, whole if start != whole else ""))
    return lines


def sentence_of(task: Task) -> str:
    """Return what a call would do: the sentence of the site, or else the values."""
    values = "; ".join(f"{each[0]}: {each[1]}" for each in value_lines(task, None))
    sentence = read_json(task.state)["approval"]["text"]
    return str(sentence or visible(values, MAX_LINE) or task.tool)


@own_page
@require_safe
@sensitive_variables()
def call_list(request: HttpRequest) -> HttpResponse:
    """List the calls that wait for the user, the oldest first."""
    lines = [
        (row, sentence_of(row), time_html(unix_time(row.created_ms / 1_000)))
        for row in calls_to_confirm(request.user)
    ]
    return render(request, "mcp_app/account/calls.html", {"lines": lines})


@own_page
@sensitive_variables()
def call_page(request: HttpRequest, key: int) -> HttpResponse:
    """Show what a call of the user would do; on POST let it run or deny it."""
    user: Any = request.user
    tasks = Task.objects.filter(person=f"u{user.pk}").exclude(status=Status.APPROVAL)
    task = get_object_or_404(tasks, pk=key)
    try:
        if request.POST.keys() & DECISIONS:
            message = decide_call(user, task, request.POST)
            messages.success(request, message, fail_silently=True)
        elif decision := decision_context(request, task):
            context = {"task": task, "who": user, **decision}
            return render(request, "mcp_app/account/call.html", context)
        else:
            raise CallDecided
    except CallDecided as late:
        messages.error(request, str(late), fail_silently=True)
    return redirect("mcp_account:calls")
