"""Messages after saving and publishing: what clients see, and what comes next."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from mcp_app.admin.page import stop_banner
from mcp_app.admin.page.broken_rows import broken_reason
from mcp_app.admin.page.header import page_url
from mcp_app.admin.publishing.comparison import offering
from mcp_app.models import DefinitionRow, PublishedRow, Server


def unseen(request: HttpRequest, row: PublishedRow) -> str:
    """Return why clients do not see a published row; "" if they do."""
    if stop_banner.holding(request, row):
        return _("It is stopped, so clients do not see it.")
    if broken_reason(request, row) or row.broken:
        return _("It is broken, so clients do not see it.")
    if isinstance(row, DefinitionRow) and not offering(row, None):
        return _("No server offers it, so clients do not see it.")
    return ""


def saved_sentence(
    request: HttpRequest, row: PublishedRow, *, may_publish: bool
) -> SafeString:
    """Return what clients see of a row that was saved, with a link to publish it."""
    seen = _seen(request, row)
    is_current = row.served_hash() == row.content_hash
    if is_current or not may_publish:
        return format_html("{} {}", _("Saved."), seen)
    publish = _("Publish “%(name)s”…") % {"name": row}
    return format_html(
        '{} {} <a href="{}">{}</a>',
        _("Saved."),
        seen,
        page_url(row, "publish"),
        publish,
    )


def _seen(request: HttpRequest, row: PublishedRow) -> str:
    is_in_code = isinstance(row, DefinitionRow) and row.from_code
    if row.published is None and not is_in_code:
        return _("Clients do not see it yet.")
    if why := unseen(request, row):
        return why
    if row.served_hash() == row.content_hash:
        return _("Clients see exactly this.")
    if row.published is not None:
        return _("Clients still see version %(number)d.") % {
            "number": row.published.number
        }
    return _("Clients still see the definition from the code.")


def published_sentence(
    request: HttpRequest, row: PublishedRow, number: int
) -> SafeString:
    """Return what publishing did, with links to what people do next."""
    if stop_banner.holding(request, row):
        done = _(
            "Version %(number)d is published. It is stopped, so clients do not see "
            "it until somebody starts it again."
        )
    elif isinstance(row, DefinitionRow) and not offering(row, None):
        done = _(
            "Version %(number)d is published. No server offers it, so clients do not"
            " see it."
        )
    else:
        done = _("Version %(number)d is published. Clients see it now.")
    look, connect = "who", reverse("admin:app_list", args=["mcp_app"]) + "#mcp-servers"
    if isinstance(row, Server):
        look, connect = "seen", page_url(row, "connect")
    return format_html(
        '{} <a href="{}">{}</a> · <a href="{}">{}</a>',
        done % {"number": number},
        page_url(row, look),
        _("What clients see") if look == "seen" else _("Who can see it"),
        connect,
        _("Connect a client"),
    )
