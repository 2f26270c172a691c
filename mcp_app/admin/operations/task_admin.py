"""The admin pages of tasks: what runs in the background, and a way to cancel it."""

from __future__ import annotations

from typing import Final

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.page.concurrency import NoBulkDeletion, SettledAdmin, has_right
from mcp_app.interface.rules import visible
from mcp_app.models import Task, Worker
from mcp_app.models.fields import parse_json
from mcp_app.models.tasks import Status
from mcp_app.site_time import time_html, unix_time

CANCEL: Final = "cancel_task"
"""The permission to cancel tasks."""
BY_STAFF: Final = "The people who run this site cancelled this task."


@admin.action(
    description=gettext_lazy("Cancel the chosen tasks"), permissions=["cancel"]
)
def cancel_tasks(page: TaskAdmin, request: HttpRequest, tasks: QuerySet[Task]) -> None:
    """Cancel those that have not ended, and stop their code wherever it runs."""
    cancelled = [each for each in tasks if Task.objects.cancel(each.pk, BY_STAFF)]
    if cancelled:
        LogEntry.objects.log_actions(
            str(request.user.pk), cancelled, CHANGE, _("Cancelled.")
        )
    count = len(cancelled)
    message = ngettext(
        "%(count)d task was cancelled.", "%(count)d tasks were cancelled.", count
    )
    if not count:
        message = _("These tasks have ended already.")
    level = messages.SUCCESS if count else messages.WARNING
    page.message_user(request, message % {"count": count}, level)


@admin.register(Task)
class TaskAdmin(NoBulkDeletion[Task], SettledAdmin[Task]):
    change_list_template = "admin/mcp_app/change_list.html"
    list_display = ["tool", "condition", "done", "who", "client", "began", "took"]
    list_filter = ["status"]
    search_fields = ["tool", "server"]
    ordering = ["-pk"]
    show_full_result_count = False
    actions = [cancel_tasks]
    fields = [
        *("tool", "condition", "who", "client", "server", "revision", "done"),
        *("worker", "deaths", "began", "took", "expires"),
    ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Task | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Task | None = None
    ) -> bool:
        return False

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return has_right(request, CANCEL)

    @admin.display(description=gettext_lazy("state"), ordering="status")
    def condition(self, task: Task) -> str:
        if task.status != Status.WORKING:
            return str(task.get_status_display())
        return _("runs") if task.owner else _("waits for a place")

    @admin.display(description=gettext_lazy("user"))
    def who(self, task: Task) -> str:
        principal = parse_json(task.caller)["principal"]
        return visible(str(principal["user_name"])) or _("nobody")

    @admin.display(description=gettext_lazy("client"))
    def client(self, task: Task) -> str:
        client = parse_json(task.caller)["client"]
        return visible(f"{client['name']} {client['version']}".strip())

    @admin.display(description=gettext_lazy("progress"))
    def done(self, task: Task) -> str:
        text = visible(task.message)
        if task.progress is None or not task.total or task.ended_ms is not None:
            return text
        bar = '<progress max="{}" value="{}" aria-label="{}"></progress> {}'
        label = _("progress of %(tool)s") % {"tool": task.tool}
        return format_html(bar, task.total, task.progress, label, text)

    @admin.display(description=gettext_lazy("began"), ordering="created_ms")
    def began(self, task: Task) -> str:
        return time_html(unix_time(task.created_ms / 1_000))

    @admin.display(description=gettext_lazy("took"))
    def took(self, task: Task) -> str:
        end_ms = task.ended_ms or now().timestamp() * 1_000
        return _("%(n)d s") % {"n": (end_ms - task.created_ms) // 1_000}

    @admin.display(description=gettext_lazy("is deleted"))
    def expires(self, task: Task) -> str:
        return time_html(unix_time(task.expires_ms / 1_000))

    @admin.display(description=gettext_lazy("runs in"))
    def worker(self, task: Task) -> str:
        worker = Worker.objects.filter(pk=task.owner).first()
        return "" if worker is None else str(worker)
