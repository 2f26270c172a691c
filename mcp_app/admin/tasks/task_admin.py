"""The admin pages of tasks, which run in the background and can be cancelled."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.admin.utils import label_for_field, lookup_field
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.account import call_decisions as decisions
from mcp_app.account.call_presentation import decision_context, sentence_of
from mcp_app.admin.operations.live_parts import age_text
from mcp_app.admin.page.bulk_deletion import NoBulkDeletion
from mcp_app.admin.page.concurrency import SettledAdmin
from mcp_app.admin.page.header import PAGE_MEDIA, render_page, render_part
from mcp_app.admin.page.keys import primary_key_of
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.page.unfold import AnyRow, FixedRows
from mcp_app.admin.trying.tabs import NoVariables
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.principal import CONSOLE
from mcp_app.interface.rules import visible
from mcp_app.models import Task, Worker
from mcp_app.models.fields import parse_json
from mcp_app.models.history import CHANGE, log_actions
from mcp_app.models.tasks import Status
from mcp_app.protocol.tasks import UNDECIDED, read_json
from mcp_app.server.recording import task_handle
from mcp_app.site_time import time_html, unix_time

CANCEL: Final = "cancel_task"
"""The permission to cancel tasks."""
BY_STAFF: Final = "The people who run this site cancelled this task."
LOOKS: Final = {"input_required": "warn", "completed": "good", "failed": "bad"}


@admin.action(
    description=gettext_lazy("Cancel the chosen tasks"), permissions=["cancel"]
)
def cancel_tasks(page: TaskAdmin, request: HttpRequest, tasks: QuerySet[Task]) -> None:
    """Cancel the tasks that have not ended, and stop their code in any process."""
    cancelled = [task for task in tasks if Task.objects.cancel(task.pk, BY_STAFF)]
    log_actions(request.user, cancelled, CHANGE, _("Cancelled."))
    count = len(cancelled)
    message = ngettext(
        "%(count)d task was cancelled.", "%(count)d tasks were cancelled.", count
    )
    if not count:
        message = _("These tasks have ended already.")
    level = messages.SUCCESS if count else messages.WARNING
    page.message_user(request, message % {"count": count}, level)


class CallerAdmin(NoBulkDeletion[AnyRow], FixedRows[AnyRow], SettledAdmin[AnyRow]):
    """Shows read-only rows that store their caller."""

    template: str
    facts: tuple[str, ...]
    """The template of the page of one row, and the columns that this page shows."""

    def row_context(self, request: HttpRequest, row: AnyRow) -> dict[str, Any]:
        """Return more context for the template."""
        raise NotImplementedError

    def change_view(
        self, request: HttpRequest, object_id: str, *positional: object, **named: object
    ) -> HttpResponse:
        """Show a row, or only the part that the script of its page reloads."""
        request.exception_reporter_filter = NoVariables()
        row = self.get_object(request, object_id)
        if row is None or not self.has_view_permission(request):
            raise Http404(_("It is not there, or you may not see such rows."))
        # `lookup_field` returns the field, the attribute and the value.
        facts = (
            (label_for_field(name, self.model, self), lookup_field(name, row, self)[2])
            for name in self.facts
        )
        context = {
            "media": PAGE_MEDIA,
            "facts": [(label, value) for label, value in facts if value],
            **self.row_context(request, row),
        }
        if "part" in request.GET:
            return render_part(request, self.template, context)
        response = render_page(self, request, self.template, str(row), context)
        response["Cache-Control"] = "no-store"
        return response

    def has_delete_permission(
        self, request: HttpRequest, obj: AnyRow | None = None
    ) -> bool:
        return False

    @admin.display(description=gettext_lazy("user"))
    def who(self, row: Any) -> str:
        principal = parse_json(row.caller)["principal"]
        return visible(str(principal["user_name"])) or _("nobody")

    @admin.display(description=gettext_lazy("client"))
    def client(self, row: Any) -> str:
        client = parse_json(row.caller)["client"]
        return visible(f"{client['name']} {client['version']}".strip())

    @admin.display(description=gettext_lazy("user and client"))
    def who_calls(self, row: Any) -> str:
        return format_html("{}<br>{}", self.who(row), self.client(row))

    @admin.display(description=gettext_lazy("began"), ordering="created_ms")
    def began(self, row: Any) -> str:
        return time_html(unix_time(row.created_ms / 1_000))


@admin.register(Task)
class TaskAdmin(CallerAdmin[Task]):
    template = "task"
    facts = (
        *("tool", "who", "client", "decided_by", "server", "revision", "done"),
        *("worker", "dead_workers", "began", "took", "expires"),
    )
    change_list_template = "admin/mcp_app/tasks.html"
    list_display = ["tool", "condition", "done", "who_calls", "took", "began"]
    list_filter = ["status"]
    search_fields = ["tool", "server"]
    ordering = ["-pk"]
    show_full_result_count = False
    actions = [cancel_tasks]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        # A result may have megabytes: do not load it.
        large = ["result", "error"]
        if not _lists_decisions(request):
            # Only the list of decisions says what a call would do.
            large += ["arguments", "state"]
        rows = super().get_queryset(request).defer(*large)
        if has_right(request, "view_task"):
            return rows
        return rows.filter(pk__in=list(decisions.calls_to_approve(request.user)))

    def get_list_display(self, request: HttpRequest) -> Any:
        if not _lists_decisions(request):
            return self.list_display

        @admin.display(description=_("what it would do"))
        def would_do(task: Task) -> str:
            may_read = decisions.may_decide(request.user, task)
            return sentence_of(task) if may_read else task.tool

        return [would_do, "tool", "who_calls", "began"]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return any(has_right(request, each) for each in ("view_task", "approve_task"))

    def change_view(
        self, request: HttpRequest, object_id: str, *positional: object, **named: object
    ) -> HttpResponse:
        if not request.POST.keys() & decisions.DECISIONS:
            return super().change_view(request, object_id, *positional, **named)
        request.exception_reporter_filter = NoVariables()
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            message, level = _decide_call(request, object_id), messages.SUCCESS
        except decisions.CallDecided as late:
            message, level = str(late), messages.WARNING
        self._hold_response()
        self.message_user(request, message, level)
        listed = reverse("admin:mcp_app_task_changelist")
        return redirect(f"{listed}?status__exact={Status.APPROVAL}")

    def row_context(self, request: HttpRequest, task: Task) -> dict[str, Any]:
        is_own = task.person == f"u{request.user.pk}"
        return {
            "task": task,
            "condition": self.condition(task),
            "who": self.who(task),
            "client": self.client(task),
            "is_trial": parse_json(task.caller)["principal"].get("kind") == CONSOLE,
            "may_cancel": self.has_cancel_permission(request),
            "may_see_calls": has_right(request, "view_call"),
            "handle": task_handle(task.public_id),
            "shown": _present_result(task) if is_own else None,
            "problem": task.status in UNDECIDED
            and decisions.decision_problem(request.user, task),
            **decision_context(request, task),
        }

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return has_right(request, CANCEL)

    @admin.display(description=gettext_lazy("state"), ordering="status")
    def condition(self, task: Task) -> str:
        word = str(task.get_status_display())
        if task.status == Status.WORKING:
            word = _("runs") if task.owner else _("waits for a place")
        look = "warn" if task.status in UNDECIDED else LOOKS.get(task.status, "")
        return format_html('<span class="mcp-state {}">{}</span>', look, word)

    @admin.display(description=gettext_lazy("progress"), empty_value="")
    def done(self, task: Task) -> str:
        text = format_html("<span>{}</span>", visible(task.message, None))
        if task.progress is None or not task.total or task.ended_ms is not None:
            return text if task.message else ""
        bar = '<progress max="{}" value="{}" aria-label="{}"></progress> {}'
        label = _("progress of %(tool)s") % {"tool": task.tool}
        return format_html(bar, task.total, task.progress, label, text)

    @admin.display(description=gettext_lazy("took"))
    def took(self, task: Task) -> str:
        end_ms = task.ended_ms or now().timestamp() * 1_000
        return age_text(int(end_ms - task.created_ms))

    @admin.display(description=gettext_lazy("is deleted"))
    def expires(self, task: Task) -> str:
        return time_html(unix_time(task.expires_ms / 1_000))

    @admin.display(description=gettext_lazy("decided by"))
    def decided_by(self, task: Task) -> str:
        return str(task.approver or "")

    @admin.display(description=gettext_lazy("runs in"))
    def worker(self, task: Task) -> str:
        worker = Worker.objects.filter(pk=task.owner).first()
        return "" if worker is None else str(worker)

    @admin.display(description=gettext_lazy("workers that died with it"))
    def dead_workers(self, task: Task) -> str:
        return str(task.deaths or "")


def _lists_decisions(request: HttpRequest) -> bool:
    """Whether the list shows the calls that wait for a decision."""
    is_chosen = request.GET.get("status__exact") in UNDECIDED
    return is_chosen or not has_right(request, "view_task")


def _decide_call(request: HttpRequest, key: str) -> str:
    """Decide a call as the form says; return the message of the page."""
    by: Any = request.user
    pk: Any = primary_key_of(Task, key)
    # Look among all tasks: a late user must read that the call was decided.
    if (task := Task.objects.filter(pk=pk).first()) is None:
        raise decisions.CallDecided
    return decisions.decide_call(by, task, request.POST)


def _present_result(task: Task) -> object:
    """Return a task's result as the page *Try it* shows results; None without one."""
    # Import here: only this page needs the code of trials.
    from mcp_app.admin.trying.presentation import present_trial  # noqa: PLC0415
    from mcp_app.workbench.trying.trial import Trial  # noqa: PLC0415

    text = task.result or task.error
    if not text:
        return None
    answer = {"result" if task.result else "error": read_json(text)}
    fails = task.error or answer["result"].get("isError")
    outcome = Outcome.TOOL_ERROR if fails else Outcome.ANSWERED
    took_ms = (task.ended_ms or 0) - task.created_ms
    trial = Trial(
        answer=answer, size=len(text.encode()), took_ms=took_ms, outcome=outcome
    )
    return present_trial(trial, None)
