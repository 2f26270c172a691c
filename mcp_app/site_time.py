"""Times as the site has them: with a zone, or without one if `USE_TZ` is off.

Without a zone they are in `TIME_ZONE`.  Django's `localtime` and `localdate` refuse
such times, and columns refuse the others.  All pages write times in one format.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final

from django.conf import settings
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

DAY: Final = "j M Y"
TIME: Final = "H:i:s"
MOMENT: Final = f"{DAY}, {TIME}"
"""Formats of all pages, in the letters of Django's `date_format`."""


def site_time(moment: datetime) -> datetime:
    """Return a time as columns have it; one without a zone is in the current one."""
    if timezone.is_aware(moment) == settings.USE_TZ:
        return moment
    change = timezone.make_aware if settings.USE_TZ else timezone.make_naive
    return change(moment)


def local_time(moment: datetime) -> datetime:
    """Return a time as people read it."""
    moment = site_time(moment)
    return timezone.localtime(moment) if settings.USE_TZ else moment


def local_date() -> date:
    """Return today as people read it."""
    return local_time(timezone.now()).date()


def unix_time(seconds: float) -> datetime:
    """Return what is so many seconds after 1970 in UTC, as columns have it."""
    return site_time(datetime.fromtimestamp(seconds, UTC))


def zone_name() -> str:
    """Return the zone of the times on pages in short: "Berlin", "UTC"."""
    return timezone.get_current_timezone_name().rsplit("/", 1)[-1].replace("_", " ")


def time_text(moment: datetime) -> str:
    """Format a moment as all pages do: 27 Nov 2026, 20:12:30; of today the time."""
    local = local_time(moment)
    return date_format(local, TIME if local.date() == local_date() else MOMENT)


def time_html(moment: datetime, text: str = "") -> SafeString:
    """Format a moment as HTML, with the whole moment and its zone in the attributes."""
    local = local_time(moment)
    zoned = local if timezone.is_aware(local) else timezone.make_aware(local)
    return format_html(
        '<time datetime="{}" title="{} ({})">{}</time>',
        zoned.isoformat(timespec="seconds"),
        date_format(local, MOMENT),
        zone_name(),
        text or time_text(moment),
    )
