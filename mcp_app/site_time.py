"""Times as the site has them: with a zone, or without one if `USE_TZ` is off.

Without a zone they are in `TIME_ZONE`.  Django's `localtime` and `localdate` refuse
such times, and columns refuse the others.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from django.conf import settings
from django.utils import timezone


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
