"""The admin pages of event subscriptions: receivers, event types, and deliveries.

The pages show only the host of a receiver's address.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.account import event_subscriptions as subscriptions
from mcp_app.admin.editors.json_texts import parse_strict_json
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.tasks.task_admin import CallerAdmin
from mcp_app.models import EventSubscription
from mcp_app.models.fields import parse_json
from mcp_app.process.background import run_on_loop
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.events import DIALECTS
from mcp_app.site_time import time_html, unix_time


@admin.action(
    description=gettext_lazy("Stop the chosen subscriptions"), permissions=["end"]
)
def end_chosen(
    page: SubscriptionAdmin, request: HttpRequest, rows: QuerySet[EventSubscription]
) -> None:
    count = subscriptions.end_subscriptions(request.user, list(rows))
    message = _("Subscriptions stopped: %(count)d. The receivers are told so.")
    page.message_user(request, message % {"count": count}, messages.SUCCESS)


class SubscriptionList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        subscriptions.count_waiting(self.result_list)


class StateFilter(admin.SimpleListFilter):
    title, parameter_name = gettext_lazy("state"), "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("failing", _("Failing")), ("paused", _("Paused"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "failing":
            return queryset.exclude(failed_since_ms=None)
        return queryset.filter(active=False) if self.value() == "paused" else queryset


@admin.register(EventSubscription)
class SubscriptionAdmin(CallerAdmin[EventSubscription]):
    template = "subscription"
    change_list_template = "admin/mcp_app/tasks.html"
    list_display = ["event_type", "which", "receiver", "condition", "last_delivery"]
    facts = (
        *("event_type", "which", "who", "client", "server", "host"),
        *("began", "last_delivery", "sent", "ids", "ends"),
    )
    list_filter = [StateFilter]
    search_fields = ["event_type", "host", "server"]
    ordering = ["-pk"]
    show_full_result_count = False
    actions = [end_chosen]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EventSubscription]:
        return EventSubscription.objects.open().defer("recent")

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return SubscriptionList

    def row_context(
        self, request: HttpRequest, row: EventSubscription
    ) -> dict[str, object]:
        """Return the state, and the form of a test event; send an event on POST."""
        if key := request.POST.get("again"):
            error = subscriptions.send_again(request.user, row, key)
            level = messages.WARNING if error else messages.SUCCESS
            self.message_user(request, error or _("It is sent in a moment."), level)
        # The column has the latest delivery at its end.
        recent = parse_json(row.recent)[::-1]
        subscriptions.count_waiting([row])
        return {
            "subscription": row,
            "state": subscriptions.state_of(row),
            "deliveries": [(each, unix_time(each["at_ms"] / 1e3)) for each in recent],
            "may_end": self.has_end_permission(request),
            **self._test_context(request, row),
        }

    def _test_context(
        self, request: HttpRequest, row: EventSubscription
    ) -> dict[str, object]:
        """Return the form of a test event, if it is open; post the event on POST."""
        on_loop, text = partial(run_on_loop, request), request.POST.get("data", "")
        if request.method != "POST" or "again" in request.POST:
            if "test" not in request.GET or not self.has_end_permission(request):
                return {}
            data = on_loop(partial(subscriptions.example_data, row))
            return {"data": jsonrpc.pretty_text(data)}
        try:
            data = parse_strict_json(text)
            if type(data) is not dict:
                raise ValueError(_("It must be a JSON object."))
        except ValueError as problem:
            return {"data": text, "problem": str(problem)}
        error = subscriptions.send_test_event(request.user, row, data, on_loop)
        return {"data": text, "error": error, "at": time_html(now())}

    def has_end_permission(self, request: HttpRequest) -> bool:
        return has_right(request, subscriptions.SUBSCRIPTION_RIGHT)

    @admin.display(description=gettext_lazy("which"))
    def which(self, row: EventSubscription) -> str:
        return subscriptions.arguments_words(row)

    @admin.display(description=gettext_lazy("user, client and host"), ordering="host")
    def receiver(self, row: EventSubscription) -> str:
        return format_html("{}<br>{}", self.who_calls(row), row.host)

    @admin.display(description=gettext_lazy("state"))
    def condition(self, row: EventSubscription) -> str:
        state = subscriptions.state_of(row)
        pill = '<span class="mcp-state {}">{}</span> {}'
        return format_html(pill, state.look, state.word, state.sentence)

    @admin.display(description=gettext_lazy("last delivery"), ordering="last_ok_ms")
    def last_delivery(self, row: EventSubscription) -> str:
        last = row.last_ok_ms
        return _("never") if last is None else time_html(unix_time(last / 1_000))

    @admin.display(description=gettext_lazy("ids"))
    def ids(self, row: EventSubscription) -> str:
        if row.by_event:
            return _("of the event: its receiver refused the others")
        dialect = DIALECTS[parse_json(row.caller)["dialect"]]
        return _("of the message") if dialect.message_ids else _("of the event")

    @admin.display(description=gettext_lazy("ends"))
    def ends(self, row: EventSubscription) -> str:
        return time_html(unix_time(row.expires_ms / 1_000))
