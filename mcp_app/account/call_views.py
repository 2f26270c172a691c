"""The pages on which users confirm their own calls; staff decide in the admin."""

from __future__ import annotations

from typing import Any

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
)
from mcp_app.account.call_presentation import decision_context, sentence_of
from mcp_app.account.views import own_page
from mcp_app.models import Task
from mcp_app.models.tasks import Status
from mcp_app.site_time import time_html, unix_time


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
    """Show what a call of the user would do; on POST let it run, or deny it."""
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
