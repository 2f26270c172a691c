"""What the system checks would say, logged where no check runs: in a server process.

Each sentence is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from mcp_app import conf
from mcp_app.catalog.cross_references import problems, unknown_rules
from mcp_app.catalog.registry import mcp

logger = logging.getLogger("mcp_app.process")

_logged: set[str] = set()


def log_problems() -> None:
    """Log the definitions in code that are not served, or to nobody."""
    _log(logging.ERROR, problems(mcp))
    _log(logging.WARNING, [sentence for sentence, _ in unknown_rules(mcp)])


def log_closed_hosts() -> None:
    """Log that the settings close the endpoint, as they do without DEBUG."""
    if settings.DEBUG:
        return
    # Settings that cannot be read have a check of their own.
    with suppress(ImproperlyConfigured):
        if conf.refuses_every_host(conf.current()):
            said = f"{conf.EVERY_HOST_REFUSED} {conf.HOSTS_NAMED_BY}"
            _log(logging.ERROR, [said])


def _log(level: int, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        if sentence not in _logged:
            _logged.add(sentence)
            logger.log(level, "%s", sentence)
