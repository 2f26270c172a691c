"""Messages after saving and publishing: what clients see, and what comes next."""

from __future__ import annotations

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from mcp_app.admin.page.header import page_url
from mcp_app.models import DefinitionRow, PublishedRow, Server, State


def saved_sentence(row: PublishedRow, *, may_publish: bool) -> SafeString:
    """Return what clients see of a row that was saved, with a link to publish it."""
    seen = _seen(row)
    if row.state == State.PUBLISHED or not may_publish:
        return format_html("{} {}", _("Saved."), seen)
    publish = _("Publish “%(name)s”…") % {"name": row}
    return format_html(
        '{} {} <a href="{}">{}</a>',
        _("Saved."),
        seen,
        page_url(row, "publish"),
        publish,
    )


def _seen(row: PublishedRow) -> str:
    if row.state == State.PUBLISHED:
        return _("Clients see exactly this.")
    if row.published is not None:
        return _("Clients still see version %(number)d.") % {
            "number": row.published.number
        }
    if isinstance(row, DefinitionRow) and row.from_code:
        return _("Clients still see the definition from the code.")
    return _("Clients do not see it yet.")


def published_sentence(
    row: PublishedRow, number: int, *, is_stopped: bool
) -> SafeString:
    """Return what publishing did, with links to what people do next."""
    if is_stopped:
        done = _(
            "Version %(number)d is published. It is stopped, so clients do not see "
            "it until somebody starts it again."
        )
    else:
        done = _("Version %(number)d is published. Clients see it now.")
    connect = reverse("admin:app_list", args=["mcp_app"]) + "#mcp-servers"
    if isinstance(row, Server):
        connect = page_url(row, "change")
    return format_html(
        '{} <a href="{}">{}</a> · <a href="{}">{}</a>',
        done % {"number": number},
        page_url(row, "who"),
        _("Who can see it"),
        connect,
        _("Connect a client"),
    )
