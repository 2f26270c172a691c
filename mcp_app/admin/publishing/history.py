"""The history of a row: its versions and everything else that staff did to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from operator import itemgetter
from typing import Any, Final, TypeAlias

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from mcp_app.admin.page import stop_banner
from mcp_app.admin.page.broken_rows import broken_reason
from mcp_app.admin.page.header import page_url
from mcp_app.admin.publishing.comparison import servers_offering
from mcp_app.models import DefinitionRow, DefinitionVersion, PublishedRow, Server
from mcp_app.models.stops import Scope

MOST: Final = 200
"""How many versions a page shows, and how many entries of the admin's log."""
MAX_TIME_APART: Final = timedelta(seconds=1)


Event: TypeAlias = dict[str, Any]
"""An action of staff: `what`, `who` and `at`, and more for a version."""


def history_context(row: PublishedRow, *, may_restore: bool) -> dict[str, Any]:
    """Return the context of the page *History*, newest events first."""
    versions = list(DefinitionVersion.objects.of(row).defer("content")[:MOST])
    kind = ContentType.objects.get_for_model(type(row))
    logged = LogEntry.objects.filter(content_type=kind, object_id=str(row.pk))
    entries = logged.select_related("user").order_by("-action_time")[:MOST]
    events: list[Event] = [
        *_version_events(row, versions, may_restore=may_restore),
        *(
            {
                "what": str(entry.get_change_message()) or str(entry),
                "who": entry.user.get_username(),
                "at": entry.action_time,
            }
            for entry in entries
            if not _repeats_version(entry, versions)
        ),
    ]
    return {
        "events": sorted(events, key=itemgetter("at"), reverse=True),
        "can_compare": len(versions) > 1,
        "more": MOST in {len(versions), len(entries)},
    }


def _version_events(
    row: PublishedRow, versions: list[DefinitionVersion], *, may_restore: bool
) -> Iterator[Event]:
    for index, version in enumerate(versions):
        served = version.pk == row.published_id
        page = "" if served or not may_restore else "rollback"
        sentence = _("Published version %(number)d")
        if version.restored is not None:
            sentence = _("Published version %(old)d again as version %(number)d")
        yield {
            "what": sentence % {"old": version.restored, "number": version.number},
            "who": version.author_name or _("a command"),
            "at": version.created,
            "note": version.note,
            "version": version,
            "served": served,
            "look_url": page_url(row, "version", version.number),
            "restore_url": page_url(row, page, version.number) if page else "",
            # The form begins with the comparison of these two.
            "newest": index == 0,
            "older": index == 1,
        }


def _repeats_version(entry: LogEntry, versions: list[DefinitionVersion]) -> bool:
    """Return whether an entry only says that one of the versions was published.

    One transaction wrote the entry and the version. The message of the entry is
    translated, so compare only author, number and time.
    """
    return any(
        version.author_id == entry.user_id
        and str(version.number) in entry.change_message
        and abs(version.created - entry.action_time) < MAX_TIME_APART
        for version in versions
    )


# -- next steps ------------------------------------------------------------------------
# Messages after saving and publishing: what clients see, and what comes next.


def why_invisible(request: HttpRequest, row: PublishedRow) -> str:
    """Return why clients do not see a published row; "" if they do."""
    stops = stop_banner.active_stops(request)
    # Other wide stops, of a server or of all changes, are in the page's banner.
    if any(each.holds(row) or each.scope == Scope.EVERYTHING for each in stops):
        return _("It is stopped, so clients do not see it.")
    if broken_reason(request, row) or row.broken:
        return _("It is broken, so clients do not see it.")
    if isinstance(row, DefinitionRow) and not servers_offering(row, None):
        return _("No server offers it, so clients do not see it.")
    return ""


def saved_sentence(
    request: HttpRequest, row: PublishedRow, *, may_publish: bool
) -> SafeString:
    """Return what clients see of a row that was saved, with a link to publish it."""
    sentence = _visibility_sentence(request, row)
    is_current = row.served_hash() == row.content_hash
    if is_current or not may_publish:
        return format_html("{} {}", _("Saved."), sentence)
    publish = _("Publish “%(name)s”…") % {"name": row}
    text = '{} {} <a href="{}">{}</a>'
    return format_html(text, _("Saved."), sentence, page_url(row, "publish"), publish)


def _visibility_sentence(request: HttpRequest, row: PublishedRow) -> str:
    is_in_code = isinstance(row, DefinitionRow) and row.from_code
    if row.published is None and not is_in_code:
        return _("Clients do not see it yet.")
    if why := why_invisible(request, row):
        return why
    if row.served_hash() == row.content_hash:
        return _("Clients see exactly this.")
    if row.published is not None:
        number = {"number": row.published.number}
        return _("Clients still see version %(number)d.") % number
    return _("Clients still see the definition from the code.")


def published_sentence(request: HttpRequest, row: PublishedRow) -> str:
    """Return what publishing did, with links to what people do next."""
    if row.published is None:
        return _("Clients do not see it any more. Its versions are kept.")
    done = _("Version %(number)d is published.") % {"number": row.published.number}
    seen = why_invisible(request, row) or _("Clients see it now.")
    look, connect = "who", reverse("admin:app_list", args=["mcp_app"]) + "#mcp-servers"
    if isinstance(row, Server):
        look, connect = "seen", page_url(row, "connect")
    return format_html(
        '{} {} <a href="{}">{}</a> · <a href="{}">{}</a>',
        done,
        seen,
        page_url(row, look),
        _("What clients see") if look == "seen" else _("Who can see it"),
        connect,
        _("Connect a client"),
    )
