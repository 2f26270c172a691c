"""Transactions that save a ledger line and do one thing more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F
from django.db.models.signals import post_delete, post_save

from mcp_app import mcp
from mcp_app.catalog import bindings
from mcp_app.models import Counter
from tests.drill.models import Ledger
from tests.reliability.rates import COUNTER, GOES_ON, PLAIN, WATCHED

FAR_AWAY: Final = datetime(2100, 1, 1, tzinfo=UTC)


@contextmanager
def saving(key: str, mode: str) -> Iterator[Callable[[], None]]:
    """Give what saves the line once; only a watched model records a change."""
    longer, mode = mode.endswith(GOES_ON), mode.removesuffix(GOES_ON)
    line = Ledger.objects.get(key=key)
    Counter.objects.get_or_create(name=BUMPED)

    def save() -> None:
        with transaction.atomic():
            line.worker = uuid4().hex
            line.save()
            BESIDES[mode]()
            if longer:
                time.sleep(0.005)

    if mode != WATCHED:
        _unwatch()
    try:
        yield save
    finally:
        bindings.connect_signals(mcp.bindings.values())


def _unwatch() -> None:
    for uri in mcp.bindings:
        for signal in (post_save, post_delete):
            signal.disconnect(dispatch_uid=f"mcp_app {uri}")


BUMPED: Final = "benchmark"


def _insert() -> None:
    Session.objects.create(session_key=uuid4().hex, expire_date=FAR_AWAY)


def _bump() -> None:
    Counter.objects.filter(name=BUMPED).update(value=F("value") + 1)


BESIDES: Final[Mapping[str, Callable[[], None]]] = {
    WATCHED: lambda: None,
    PLAIN: _insert,
    COUNTER: _bump,
}
