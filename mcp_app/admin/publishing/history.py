"""The history of a row: its versions and everything else that staff did to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.utils.translation import gettext as _

from mcp_app.admin.page.header import page_url
from mcp_app.models import DefinitionVersion, PublishedRow

MOST: Final = 200
"""Entries of each sort that a page shows."""
AT_ONCE: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that staff did; `version` is None if it made no version."""

    what: str
    who: str
    at: datetime
    note: str = ""
    version: DefinitionVersion | None = None
    served: bool = False
    look_url: str = ""
    restore_url: str = ""
    newest: bool = False
    older: bool = False


def context(row: PublishedRow, *, may_restore: bool) -> dict[str, Any]:
    """Return the context of the page *History*, newest events first."""
    versions = list(DefinitionVersion.objects.of(row).defer("content")[:MOST])
    entries = list(_entries(row))
    events = [
        *_versions(row, versions, may_restore=may_restore),
        *(_entry(each) for each in entries if not _is_said(each, versions)),
    ]
    return {
        "events": sorted(events, key=lambda event: event.at, reverse=True),
        "can_compare": len(versions) > 1,
        "more": MOST in {len(versions), len(entries)},
    }


def _versions(
    row: PublishedRow, versions: list[DefinitionVersion], *, may_restore: bool
) -> Iterator[Event]:
    for place, version in enumerate(versions):
        served = version.pk == row.published_id
        restore = "" if served or not may_restore else "rollback"
        yield Event(
            what=_what(version),
            who=version.author_name or _("a command"),
            at=version.created,
            note=version.note,
            version=version,
            served=served,
            look_url=page_url(row, "version", version.number),
            restore_url=page_url(row, restore, version.number) if restore else "",
            newest=place == 0,
            older=place == 1,
        )


def _what(version: DefinitionVersion) -> str:
    if version.restored is not None:
        return _("Published version %(old)d again as version %(number)d") % {
            "old": version.restored,
            "number": version.number,
        }
    return _("Published version %(number)d") % {"number": version.number}


def _entries(row: PublishedRow) -> Iterator[LogEntry]:
    """Yield the newest entries of the admin log about a row."""
    kind = ContentType.objects.get_for_model(type(row))
    logged = LogEntry.objects.filter(content_type=kind, object_id=str(row.pk))
    yield from logged.select_related("user").order_by("-action_time")[:MOST]


def _is_said(entry: LogEntry, versions: list[DefinitionVersion]) -> bool:
    """Return whether an entry repeats a version: one transaction wrote both.

    Its message is translated, so we compare only author, number and time.
    """
    return any(
        version.author_id == entry.user_id
        and str(version.number) in entry.change_message
        and abs(version.created - entry.action_time) < AT_ONCE
        for version in versions
    )


def _entry(entry: LogEntry) -> Event:
    said = str(entry.get_change_message()) or str(entry)
    return Event(what=said, who=entry.user.get_username(), at=entry.action_time)
