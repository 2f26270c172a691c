"""The admin pages of tasks: what runs in the background, and a way to cancel it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import label_for_field, lookup_field
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.operations.live import MEDIA
from mcp_app.admin.operations.live_parts import age_text
from mcp_app.admin.page.concurrency import (
    NoBulkDeletion,
    SettledAdmin,
    has_right,
    lacking_sentence,
)
from mcp_app.admin.page.deleted_rows import to_the_list
from mcp_app.admin.page.header import render_page, render_part
from mcp_app.admin.trying.tabs import NoVariables
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.principal import CONSOLE
from mcp_app.interface.rules import visible
from mcp_app.models import Task, Worker
from mcp_app.models.fields import parse_json
from mcp_app.models.tasks import Status
from mcp_app.protocol.tasks import read_json
from mcp_app.server.recording import task_handle
from mcp_app.site_time import local_time, time_html, unix_time

CANCEL: Final = "cancel_task"
"""The permission to cancel tasks."""
BY_STAFF: Final = "The people who run this site cancelled this task."
LOOKS: Final[Mapping[str, str]] = {
    Status.INPUT_REQUIRED: "warn",
    Status.COMPLETED: "good",
    Status.FAILED: "bad",
}
"""The CSS class of a state's mark."""
FACTS: Final = (
    *("tool", "who", "client", "server", "revision", "done"),
    *("worker", "dead_workers", "began", "took", "expires"),
)
"""What the page of a task says."""


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
    change_list_template = "admin/mcp_app/tasks.html"
    list_display = ["tool", "condition", "done", "who", "client", "began", "took"]
    list_filter = ["status"]
    search_fields = ["tool", "server"]
    ordering = ["-pk"]
    show_full_result_count = False
    actions = [cancel_tasks]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.cancel_view)
        name = "mcp_app_task_cancel"
        return [path("<int:key>/cancel/", view, name=name), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        # A task that has just begun may not be in a replica yet.
        return super().get_queryset(request).using(router.db_for_write(Task))

    def changelist_view(
        self, request: HttpRequest, extra_context: Mapping[str, Any] | None = None
    ) -> HttpResponse:
        updated = {"updated": now(), **(extra_context or {})}
        response = super().changelist_view(request, updated)
        response["MCP-Updated"] = local_time(now()).isoformat(timespec="seconds")
        return response

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a task, or the part that its page loads again."""
        request.exception_reporter_filter = NoVariables()
        if not self.has_view_permission(request):
            raise PermissionDenied
        task = self.get_object(request, object_id)
        if task is None:
            message = _("There is no such task. Tasks are deleted some time after.")
            return to_the_list(self, request, message)
        context = {"task": task, **self._task_context(request, task)}
        if "part" in request.GET:
            return render_part(request, "task", context)
        context |= {"media": MEDIA, "updated": now()}
        response = render_page(self, request, "task", str(task), context)
        response["Cache-Control"] = "no-store"
        return response

    def cancel_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Cancel one task, as the action of the list does, and show its page."""
        may_view = self.has_view_permission(request)
        if not (may_view and self.has_cancel_permission(request)):
            raise PermissionDenied(lacking_sentence(CANCEL))
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        cancel_tasks(self, request, Task.objects.filter(pk=key))
        self._hold_response()
        return HttpResponseRedirect(reverse("admin:mcp_app_task_change", args=[key]))

    def _task_context(self, request: HttpRequest, task: Task) -> dict[str, Any]:
        facts = (
            (label_for_field(name, Task, self), lookup_field(name, task, self)[2])
            for name in FACTS
        )
        calls = {"when": "week", "name": task.tool, "q": task_handle(task.public_id)}
        calls_url = f"{reverse('admin:mcp_app_call_changelist')}?{urlencode(calls)}"
        is_own = task.person == f"u{request.user.pk}"
        has_ended = task.ended_ms is not None
        return {
            "opts": self.opts,
            "condition": self.condition(task),
            "look": LOOKS.get(task.status, ""),
            "facts": [(label, value) for label, value in facts if value],
            "waits_for": self._waiting_sentence(task),
            "may_cancel": not has_ended and self.has_cancel_permission(request),
            "calls_url": calls_url if has_right(request, "view_call") else "",
            "shown": _present_result(task) if has_ended and is_own else None,
            "tried_as": self.who(task),
        }

    def _waiting_sentence(self, task: Task) -> str:
        """Say whose answer a task waits for, "" if it waits for none."""
        if task.status != Status.INPUT_REQUIRED:
            return ""
        if parse_json(task.caller)["principal"].get("kind") == CONSOLE:
            return _(
                "It waits for an answer. Tasks of “Try it” are not answered: cancel it,"
                " and run the tool without a task."
            )
        sentence = _("It waits for an answer of %(who)s, whom %(client)s asks.")
        return sentence % {"who": self.who(task), "client": self.client(task)}

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
        return age_text(int(end_ms - task.created_ms))

    @admin.display(description=gettext_lazy("is deleted"))
    def expires(self, task: Task) -> str:
        return time_html(unix_time(task.expires_ms / 1_000))

    @admin.display(description=gettext_lazy("runs in"))
    def worker(self, task: Task) -> str:
        worker = Worker.objects.filter(pk=task.owner).first()
        return "" if worker is None else str(worker)

    @admin.display(description=gettext_lazy("workers that died with it"))
    def dead_workers(self, task: Task) -> str:
        return str(task.deaths or "")


def _present_result(task: Task) -> object:
    """Return the result of a task as *Try it* shows one, None for none."""
    # What runs a trial is imported by the first page that needs it.
    from mcp_app.admin.trying.presentation import present_trial  # noqa: PLC0415
    from mcp_app.workbench.trying.trial import Trial  # noqa: PLC0415

    text = task.result or task.error
    if not text or task.ended_ms is None:
        return None
    answer = {"result" if task.result else "error": read_json(text)}
    is_error = answer.get("result", {}).get("isError")
    outcome = Outcome.TOOL_ERROR if is_error else Outcome.ANSWERED
    trial = Trial(
        answer=answer,
        size=len(text.encode()),
        took_ms=task.ended_ms - task.created_ms,
        outcome=Outcome.FAILED if task.error else outcome,
    )
    return present_trial(trial, None)
