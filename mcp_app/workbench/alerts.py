"""What is told by signals and by mail: definitions that fail, and work that waits.

Whoever writes the row of a thing first tells it.  Names are those of definitions:
nothing is told that a caller sent.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from django.core.mail import send_mail
from django.db import IntegrityError, connections, router, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.models import Once, State
from mcp_app.models.calls import HOUR_S
from mcp_app.models.fields import digest
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.signals import tool_failing, work_waiting
from mcp_app.workbench.overview import read_paces, row_counts, token_counts
from mcp_app.workbench.viewer import MODELS, Viewer

DAY_S: Final = 24 * HOUR_S
"""Work that waits is told once a day: it may wait for weeks."""


def watch() -> None:
    """Tell what is to be told, in a thread that ends then: mails may take long."""
    try:
        signals = (tool_failing, work_waiting)
        if mcp_settings.alerts or any(each.has_listeners() for each in signals):
            tell_alerts(timezone.now())
    except Exception:
        logging.getLogger("mcp_app.workbench").exception("Alerts could not be sent.")
    finally:
        connections.close_all()


def tell_alerts(now: datetime) -> None:
    """Tell each thing that no process has told in this hour, or day."""
    for each in read_paces(now).failing:
        if _is_first(now, HOUR_S, each.kind, each.name):
            counts = {"failed": each.failed, "calls": each.calls}
            tool_failing.send_robust(None, kind=each.kind, name=each.name, **counts)
            text = _("%(name)s fails: %(failed)d of %(calls)d calls in 15 minutes.")
            _mail(text % {"name": visible(each.name), **counts})
    rows = row_counts(MODELS, lambda _model: Q(pk__in=[])).values()
    tokens = token_counts(Viewer(key=None, tokens=True), now).ending
    for what, label, count in (
        ("drafts", _("Drafts"), sum(each.states[State.UNPUBLISHED] for each in rows)),
        (
            "changes",
            _("Working copies that differ from what clients see"),
            sum(each.states[State.CHANGED] for each in rows),
        ),
        ("tokens", _("Access tokens that end within 7 days"), tokens),
    ):
        if count and _is_first(now, DAY_S, what):
            work_waiting.send_robust(None, what=what, count=count)
            _mail(f"{label}: {count}")


def _is_first(now: datetime, seconds: int, *names: str) -> bool:
    """Return whether nobody had this row, of which there is one for each period."""
    alias, period = router.db_for_write(Once), int(now.timestamp()) // seconds
    columns = {"round_trip": digest(repr(names)), "key": digest(f"alert {period}")}
    row = Once(**columns, result="null", created_ms=NowMilliseconds())
    try:
        with transaction.atomic(using=alias):
            row.save(using=alias, force_insert=True)
    except IntegrityError:
        return False
    return True


def _mail(sentence: str) -> None:
    if addresses := mcp_settings.alerts.get("mail"):
        more = _("The home page of the MCP server in the admin says more.")
        send_mail(f"[MCP] {sentence}", f"{sentence}\n\n{more}", None, [*addresses])
