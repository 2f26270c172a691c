"""Alerts by signals and by mail: definitions that fail, and work that waits.

The process that first writes an alert's row sends it.  Names are those of definitions:
an alert has no text that a caller sent.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final, NamedTuple

from django.core.mail import send_mail
from django.db import IntegrityError, connections, router, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.catalog.schema_lint import names_text
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.models import Once, State, Task
from mcp_app.models.calls import HOUR_S
from mcp_app.models.fields import digest
from mcp_app.models.tasks import Status
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.signals import tool_failing, work_waiting
from mcp_app.workbench.overview import read_paces, row_counts, token_counts
from mcp_app.workbench.viewer import MODELS, Viewer

logger = logging.getLogger("mcp_app.workbench")

DAY_S: Final = 24 * HOUR_S
"""Waiting work is announced once a day, because it may wait for weeks."""
CALL_S: Final = 10_000 * DAY_S
"""So long that a call that waits for a person is announced only once."""


def watch() -> None:
    """Send all alerts that are due; run it in a thread, because mails may take long."""
    try:
        signals = (tool_failing, work_waiting)
        if mcp_settings.alerts or any(signal.has_listeners() for signal in signals):
            tell_alerts(timezone.now())
    except Exception:
        logger.exception("Alerts could not be sent.")
    finally:
        connections.close_all()


def tell_alerts(now: datetime) -> None:
    """Send each alert that no process has sent in this hour, or day."""
    for pace in read_paces(now).failing:
        counts = {"failed": pace.failed, "calls": pace.calls}
        hour = Period(now, HOUR_S, (pace.kind, pace.name))
        if hour.claim():
            tool_failing.send_robust(None, kind=pace.kind, name=pace.name, **counts)
        text = _("%(name)s fails: %(failed)d of %(calls)d calls in 15 minutes.")
        _mail(text % {"name": visible(pace.name), **counts}, hour)
    # No row is added to the broken ones: this function does not use their count.
    rows = row_counts(MODELS, lambda _model: Q(pk__in=[])).values()
    tokens = token_counts(Viewer(key=None, tokens=True), now)["ending"]
    for what, label, count in (
        ("drafts", _("Drafts"), sum(row.states[State.UNPUBLISHED] for row in rows)),
        (
            "changes",
            _("Working copies that differ from what clients see"),
            sum(row.states[State.CHANGED] for row in rows),
        ),
        ("tokens", _("Access tokens that end within 7 days"), tokens),
    ):
        day = Period(now, DAY_S, (what,))
        if count and day.claim():
            work_waiting.send_robust(None, what=what, count=count)
        if count:
            _mail(f"{label}: {count}", day)
    _tell_approvals(now)


def _tell_approvals(now: datetime) -> None:
    """Announce calls that another person must approve, again after each new one."""
    tasks = Task.objects.still_open().filter(status=Status.APPROVAL)
    rows = list(tasks.order_by("pk").values_list("pk", "tool"))
    if not rows:
        return
    period, count = Period(now, CALL_S, ("approvals", str(rows[-1][0]))), len(rows)
    if period.claim():
        work_waiting.send_robust(None, what="approvals", count=count)
    text = ngettext(
        "%(count)d call waits for approval: %(tools)s",
        "%(count)d calls wait for approval: %(tools)s",
        count,
    )
    tools = names_text(dict.fromkeys(tool for _pk, tool in rows))
    _mail(text % {"count": count, "tools": tools}, period, "approvals")


class Period(NamedTuple):
    """The hour, or day, in which the alert with these `names` is sent once."""

    now: datetime
    seconds: int
    names: tuple[str, ...]

    def claim(self, *how: str) -> Once | None:
        """Return the only row of this alert; None if it exists already.

        `how` is "mail" for the mail, and nothing for the signal.
        """
        alias, timestamp = router.db_for_write(Once), int(self.now.timestamp())
        key = digest(f"alert {timestamp // self.seconds}")
        names = digest(repr((*how, *self.names)))
        row = Once(
            round_trip=names, key=key, result="null", created_ms=NowMilliseconds()
        )
        try:
            with transaction.atomic(using=alias):
                row.save(using=alias, force_insert=True)
        except IntegrityError:
            return None
        return row


def _mail(sentence: str, period: Period, to: str = "mail") -> None:
    """Mail the addresses of `MCP["ALERTS"][to]`; if that fails, try in a minute."""
    alerts = mcp_settings.alerts
    addresses = alerts.get(to, alerts.get("mail"))
    row = period.claim("mail") if addresses else None
    if not addresses or row is None:
        return
    advice = _("The home page of the MCP server in the admin says more.")
    try:
        send_mail(f"[MCP] {sentence}", f"{sentence}\n\n{advice}", None, [*addresses])
    except Exception:
        # Any backend of the site may have failed.
        logger.exception("An alert could not be sent by mail.")
        row.delete()
