"""Calls in words: one line of the list, and one call in full.

Only plain text: call data comes from clients and users, so hidden characters are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Q, Subquery
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.calls.charts import count_similar, grouped_digits
from mcp_app.admin.calls.filters import KINDS, CallFilter, stored_time
from mcp_app.admin.calls.outcome_help import meaning_of, outcome_look
from mcp_app.admin.calls.values import CALL, VALUES_RIGHT, value_texts
from mcp_app.admin.page.header import page_url
from mcp_app.admin.page.people import HANDLE, existing_users
from mcp_app.admin.page.rights import has_right
from mcp_app.audit.tallies import period_start_ms
from mcp_app.audit.writing import may_be_cut
from mcp_app.conf import mcp_settings
from mcp_app.interface.call_record import FAILED, FINE, REFUSED, Outcome
from mcp_app.interface.principal import ANONYMOUS, CONSOLE
from mcp_app.interface.rules import visible
from mcp_app.models import (
    AccessToken,
    Call,
    DefinitionRow,
    EventType,
    Prompt,
    Resource,
    ResourceTemplate,
    Task,
    Tool,
)
from mcp_app.models.call_rows import CallingClient
from mcp_app.models.calls import HOUR_S
from mcp_app.models.tokens import APP, PROGRAM
from mcp_app.publishing.rights import lacking_sentence
from mcp_app.server.recording import TASK_PREFIX
from mcp_app.site_time import time_text

MODELS: Final[Mapping[str, type[DefinitionRow]]] = {
    "tool": Tool,
    "resource": Resource,
    "template": ResourceTemplate,
    "prompt": Prompt,
    "event": EventType,
}
STAFF_REASONS: Final = (
    Outcome.OTHER_SITE,
    Outcome.EGRESS,
    Outcome.TOO_LARGE,
    Outcome.SHAPE,
)
"""Outcomes whose error text is for staff; the client may have got a shorter one."""
SLOW_MS: Final = 1_000
DAY_S: Final = 86_400


def call_line(call: Call, call_filter: CallFilter) -> dict[str, Any]:
    """Return a row of the list; its names link to the list filtered by that name."""
    name_url = call_filter.query_string(kind=call.kind, name=call.name, q="")
    who_url = call_filter.query_string(user=call.user_name, q="")
    return {
        "url": reverse("admin:mcp_app_call_change", args=[call.pk]),
        "at": stored_time(call.time_ms),
        "label": meaning_of(call.outcome).label,
        "look": outcome_look(call.outcome) or "quiet",
        "name": called_name(call),
        "name_url": name_url if call.name else "",
        "who": caller_name(call),
        "who_url": who_url if call.user_name else "",
        "client": visible(call.client_name),
        "took": milliseconds_text(call.took_us / 1_000),
    }


def called_name(call: Call) -> str:
    """Return the name of what was called; calls of unknown names store none."""
    return visible(call.name) or _("an unknown name")


def caller_name(call: Call | CallingClient) -> str:
    """Return the caller: the copied user name, or else the kind of principal."""
    if call.user_name or call.user_id:
        return visible(call.user_name or call.user_id)
    if call.principal == ANONYMOUS:
        return _("anonymous")
    if call.principal == CONSOLE:
        return _("nobody")
    return _("nobody (%(kind)s)") % {"kind": visible(call.principal)}


def client_of(call: Call | CallingClient) -> str:
    """Return the name that a client gives itself, with its version."""
    name = f"{call.client_name} {call.client_version}".strip()
    return visible(name) or _("a client without a name")


def milliseconds_text(milliseconds: float) -> str:
    """Format milliseconds; use seconds from `SLOW_MS` on."""
    if milliseconds < 1:
        return _("< 1 ms")
    if milliseconds < SLOW_MS:
        return _("%(n)d ms") % {"n": milliseconds}
    return _("%(n).1f s") % {"n": milliseconds / 1_000}


def retention() -> str:
    """Say how long calls are kept."""
    days = int(mcp_settings.limits.calls_kept // DAY_S)
    if days:
        return ngettext("%(n)d day", "%(n)d days", days) % {"n": days}
    hours = int(mcp_settings.limits.calls_kept // HOUR_S)
    return ngettext("%(n)d hour", "%(n)d hours", hours) % {"n": hours}


class CallDetails:
    """One call in full. Reads the definition's row and the user once each."""

    def __init__(self, request: HttpRequest, call: Call) -> None:
        self.call = call
        self.meaning = meaning_of(call.outcome)
        self.look = outcome_look(call.outcome)
        self.kind = KINDS.get(call.kind, visible(call.kind))
        self.row = _definition(call)
        self.user = _user_of_call(call) if call.user_id else None
        self.at = stored_time(call.time_ms)
        self.took = milliseconds_text(call.took_us / 1_000)
        self.size = filesizeformat(call.size)
        self.arguments_size = filesizeformat(call.arguments_size)
        self.failure = visible(call.failure)
        self.error_text = visible(call.error, None)
        self.is_for_staff = call.outcome in STAFF_REASONS
        """Whether `error_text` is a reason for staff; else the client got this text."""
        self.may_see_values = has_right(request, VALUES_RIGHT)
        self.lacking = lacking_sentence(VALUES_RIGHT)
        self.values = value_texts(call) if self.may_see_values else ()
        self.server = visible(call.server)
        self.session = visible(call.session[:HANDLE])
        """The beginning of the digest of the session's id, as on other pages."""
        self.task_url = _task_url(request, call)
        self.revision = visible(call.revision)
        self.client = client_of(call)
        self.hour_ms = period_start_ms(call.time_ms, HOUR_S)
        self.hour = stored_time(self.hour_ms)
        self._request = request

    @property
    def who(self) -> str:
        who = caller_name(self.call)
        is_deleted = self.call.user_id and self.user is None
        return _("%(name)s (deleted)") % {"name": who} if is_deleted else who

    @property
    def what(self) -> str:
        if self.row is not None:
            return str(self.row)
        call, name = self.call, called_name(self.call)
        if not call.name or call.kind not in MODELS or may_be_cut(call.name):
            return name
        if call.principal == CONSOLE:
            # Staff can fetch an answer for a definition that is not saved yet.
            return name
        return _("%(name)s (deleted)") % {"name": name}

    @property
    def failure_note(self) -> str:
        """Whether the call counts as a failure."""
        if self.call.outcome in FAILED:
            return _("This counts as a failure.")
        if self.call.outcome in REFUSED:
            return _("This does not count as a failure: the caller caused it.")
        return ""

    @property
    def keeps_values(self) -> bool:
        """Whether the working copy of the definition is set to keep values."""
        return bool(getattr(self.row, "keeps_values", False))

    @property
    def values_url(self) -> str:
        """The page of *Try it*, filled with the values."""
        if self.row is None or not has_right(self._request, "try"):
            return ""
        return f"{page_url(self.row, 'try')}?{CALL}={self.call.pk}"

    @property
    def shown_name(self) -> str:
        """The identity that programs use, "" if the title is the same."""
        name = visible(self.call.name)
        return "" if self.row is None or str(self.row) == name else name

    @property
    def definition_url(self) -> str:
        row = self.row
        may_view = row is not None and any(
            has_right(self._request, f"{right}_{row.kind_of_row}")
            for right in ("view", "change")
        )
        return page_url(row, "change") if row is not None and may_view else ""

    @property
    def version(self) -> str:
        """The number of the version that answered, or what answered instead."""
        if self.call.version:
            return str(self.call.version)
        if not self.call.name:
            return _("None: there is nothing with this name")
        if self.row is None or self.row.from_code:
            return _("As the code says")
        if self.call.principal == CONSOLE:
            return _("None: a working copy that was tried")
        return _("None")

    @property
    def version_url(self) -> str:
        if not (self.call.version and self.definition_url and self.row):
            return ""
        return page_url(self.row, "version", self.call.version)

    @property
    def user_url(self) -> str:
        """The page of the user, "" if there is none that staff may see."""
        model = get_user_model()
        label, name = model._meta.app_label, model._meta.model_name
        user = self._request.user
        rights = [f"{label}.{right}_{name}" for right in ("view", "change")]
        if self.user is None or not any(map(user.has_perm, rights)):
            return ""
        try:
            return reverse(f"admin:{label}_{name}_change", args=[self.call.user_id])
        except NoReverseMatch:
            return ""

    @property
    def authentication_text(self) -> str:
        """How the caller was authenticated; a token is shown by its public prefix."""
        if self.call.principal == CONSOLE:
            tester = visible(self.call.principal_client)
            return _("tried by %(name)s") % {"name": tester}
        if self.call.principal != "token":
            return visible(self.call.principal)
        if self.user is None or not self.user.token_prefix:
            return _("an access token that no longer exists")
        text = _("access token %(prefix)s… (%(name)s)")
        if self.user.token_prefix.startswith(APP):
            text = _("connected app %(prefix)s (%(name)s)")
        if self.user.token_prefix.startswith(PROGRAM):
            text = _("program %(prefix)s (%(name)s)")
        values = {"prefix": self.user.token_prefix, "name": self.user.token_name}
        return visible(text % values)

    @property
    def similar_count_text(self) -> str:
        """How many calls ended in the same way in the 24 hours from `hour_ms`."""
        call = self.call
        count = count_similar(call.kind, call.name, call.outcome, self.hour_ms)
        if count < 2 or call.outcome in FINE:  # noqa: PLR2004 - itself and another
            return ""
        text = _("%(count)s calls ended like this in the 24 hours from %(time)s on.")
        return text % {"count": grouped_digits(count), "time": time_text(self.hour)}

    @property
    def similar_url(self) -> str:
        """The list of the calls of 30 days that ended in the same way."""
        call = self.call
        similar = CallFilter(
            "month", self.hour, kind=call.kind, name=call.name, outcome=call.outcome
        )
        return reverse("admin:mcp_app_call_changelist") + similar.query_string()


def _task_url(request: HttpRequest, call: Call) -> str:
    """Return the page of the task that made a call, "" if there is none."""
    if not call.session.startswith(TASK_PREFIX) or not has_right(request, "view_task"):
        return ""
    id_start = call.session.removeprefix(TASK_PREFIX)
    task = Task.objects.filter(public_id__startswith=id_start).first()
    return reverse("admin:mcp_app_task_change", args=[task.pk]) if task else ""


def _definition(call: Call) -> DefinitionRow | None:
    """Return the row of the called definition, None if no row has that name now."""
    model = MODELS.get(call.kind)
    if model is None or not call.name:
        return None
    served = Q(published_identity=model.identity_hash(call.name))
    by_identity = Q(**{model.IDENTITY: call.name})
    # At most two rows match, as each identity is unique: prefer the published one.
    rows: Any = model._default_manager.filter(served | by_identity)
    return min(rows, key=lambda row: row.published_identity is None, default=None)


def _user_of_call(call: Call) -> Any:
    """Return the user of the call, with the newest token of the call's token family.

    That token may have replaced the one that was used.
    """
    family = AccessToken.objects.filter(family=call.principal_client or None)
    newest = family.order_by("-created", "-pk")
    tokens = {name: Subquery(newest.values(name)[:1]) for name in ("prefix", "name")}
    token_fields = {f"token_{name}": token for name, token in tokens.items()}
    return existing_users([call.user_id]).annotate(**token_fields).first()
